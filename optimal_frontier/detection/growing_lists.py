"""Lists that gain entries: what differs there from one fetch to the next is news, and not a section that is never the same twice.

A list has gained entries when what it held before is still there in the same order, but for entries that left at one end. A clock or a
counter leaves nothing, or replaces what was there; so does a random choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from optimal_frontier.detection.section_history import key_of, marks_of
from optimal_frontier.detection.section_names import MOST_PLACES
from optimal_frontier.detection.sections import PART_BYTES, Section

#: Parts of a section that are compared: of longer ones as many at either end.
_MOST_PARTS: Final = 48
#: Sections whose parts are kept.
_MOST_KEPT: Final = 16
#: At least this share of a list stays when it gains.
_KEPT_SHARE: Final = 0.5
_PLACE: Final = re.compile(r":nth-of-type\((\d+)\)")


def parts_of(sections: Sequence[Section], first: frozenset[bytes], most: int = _MOST_KEPT) -> dict[bytes, bytes]:
    """Return what is kept of sections of more than one part, those with these keys first: for `gained_keys` of the next fetch."""
    kept = [(key_of(section.selector), section.parts) for section in sections if section.parts]
    kept.sort(key=lambda one: one[0] not in first)
    return {key: _short(parts) for key, parts in kept[:most]}


def gained_keys(marks: bytes, parts: Mapping[bytes, bytes], sections: Sequence[Section], differing: frozenset[bytes]) -> frozenset[bytes]:
    """Return the keys of those sections that differ because a list has gained entries.

    Parameters
    ----------
    marks : bytes
        Of the fetch before: `SectionHistory.marks`.
    parts : mapping of bytes to bytes
        Of the fetch before: `parts_of`.
    sections : sequence of Section
        Now.
    differing : frozenset of bytes
        Keys of sections that differ between the two.

    Notes
    -----
    Entries with a name of their own are one section, and its parts are compared. Those without are sections by their place, which all
    move on; they are compared as one list, by each place in their names.
    """
    gained = set()
    rows: dict[tuple[int, str], list[tuple[int, Section]]] = {}
    for section in sections:
        key = key_of(section.selector)
        if key in differing and key in parts and _parts_gained(_cut(parts[key]), _cut(_short(section.parts))):
            gained.add(key)
        for at, place in enumerate(_PLACE.finditer(section.selector)):
            listed = section.selector[: place.start()] + ":*" + section.selector[place.end() :]
            rows.setdefault((at, listed), []).append((int(place[1]), section))
    before = marks_of(marks)
    names = {section.selector for section in sections}
    for (at, _), row in rows.items():
        row.sort(key=lambda one: one[0])
        keys = [key_of(section.selector) for _, section in row]
        was = [before[key] for key in keys if key in before]
        # Of what was longer the rest has no section now, and is looked up by its place.
        number = row[-1][0] + 1
        while (key := key_of(_at_place(row[-1][1].selector, at, number))) in before:
            was.append(before[key])
            keys.append(key)
            number += 1
        is_cut = _at_place(row[0][1].selector, at, f"n+{MOST_PLACES + 1}") in names
        if differing & set(keys) and has_gained(was, [section.digest for _, section in row], is_cut=is_cut):
            gained |= differing & set(keys)
    return frozenset(gained)


def has_gained(before: Sequence[bytes], now: Sequence[bytes], *, is_cut: bool = False) -> bool:
    """Tell whether a list has gained entries, at either end or in between, and lost none but at one end.

    Parameters
    ----------
    before, now : sequence of bytes
        Hashes of its entries.
    is_cut : bool
        There are more of them now, which are not told apart: entries that left at the end may be there.

    Examples
    --------
    >>> has_gained("abc", "xabc"), has_gained("abc", "xab"), has_gained("abc", "bcx"), has_gained("abc", "axbc")
    (True, True, True, True)
    >>> has_gained("abc", "axc"), has_gained("abc", "cab"), has_gained("abc", "xyz"), has_gained("a", "b"), has_gained("abc", "ab")
    (False, False, False, False, False)
    """
    if len(before) < 2:
        return False
    # Where nothing was lost the list is longer; else what came has to be new, or the list only turns round.
    is_news = is_cut or bool(set(now) - set(before))
    least = max(2, round(_KEPT_SHARE * len(before)))
    for lost in range(len(before) - least + 1 if is_news else 1):
        for kept in (before[: len(before) - lost], before[lost:]):
            rest = iter(now)
            # Where entries were lost the new ones are at the other end: one in their place replaces them.
            is_there = all(entry in rest for entry in kept)
            if is_there and (len(now) > len(before) if not lost else _ends_with(now, kept, at_end=kept[-1] != before[-1])):
                return True
    return False


def _ends_with(now: Sequence[bytes], kept: Sequence[bytes], *, at_end: bool) -> bool:
    return list(now[-len(kept) :] if at_end else now[: len(kept)]) == list(kept)


def _at_place(selector: str, at: int, number: int | str) -> str:
    place = list(_PLACE.finditer(selector))[at]
    return f"{selector[: place.start()]}:nth-of-type({number}){selector[place.end() :]}"


def _parts_gained(before: Sequence[bytes], now: Sequence[bytes]) -> bool:
    if len(before) < _MOST_PARTS or len(now) < _MOST_PARTS:
        return has_gained(before, now)
    half = _MOST_PARTS // 2
    ends = [(before[:half], now[:half]), (before[half:], now[half:])]
    return all(was == is_ or has_gained(was, is_) for was, is_ in ends) and before != now


def _short(parts: bytes) -> bytes:
    most = _MOST_PARTS * PART_BYTES
    return parts if len(parts) <= most else parts[: most // 2] + parts[-most // 2 :]


def _cut(parts: bytes) -> list[bytes]:
    return [parts[at : at + PART_BYTES] for at in range(0, len(parts), PART_BYTES)]
