"""How often each section of a page differed from one visit to the next, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from optimal_frontier.detection.sections import Section

#: Sections of which counts are kept: those that differed most often.
MOST_ROWS: Final = 32
#: Pairs of visits from which on all counts are halved, so that they tell of the last few dozen.
MOST_PAIRS: Final = 40

_KEY: Final = 4
_WIDTH: Final = 8


class Row(NamedTuple):
    """A section that differed: in so many pairs of visits, in so many of them as the only one, in so many pairs that were seconds apart."""

    selector: str
    differed: int
    alone: int = 0
    quick: int = 0


class Difference(NamedTuple):
    """Sections that differ: keys of all of them, and selectors of those that are known by name."""

    keys: frozenset[bytes]
    selectors: frozenset[str]


def key_of(selector: str) -> bytes:
    """Return what stands for a selector where names would be too long: 4 bytes."""
    return blake2b(selector.encode("utf-8", "surrogatepass"), digest_size=_KEY).digest()


def marks_of(marks: bytes) -> dict[bytes, bytes]:
    """Return what `SectionHistory.marks` say: key of each section -> hash of its text."""
    return {marks[at : at + _KEY]: marks[at + _KEY : at + _WIDTH] for at in range(0, len(marks), _WIDTH)}


@dataclass(frozen=True, slots=True)
class SectionHistory:
    """What is kept of the visits of a page: at most 1 kB of hashes, and about 30 bytes for each section that ever differed.

    Attributes
    ----------
    marks : bytes
        Of the last visit, 8 bytes a section: key of its selector, hash of its text.
    pairs, quick_pairs : int
        Pairs of visits that were compared; those of them seconds apart.
    rows : tuple of Row
        Sections that differed, at most `MOST_ROWS`.

    Examples
    --------
    >>> history = SectionHistory()
    >>> for turn in range(4):
    ...     history = history.follow((Section("h1", b"same"), Section("span.clock", bytes([turn] * 4))))
    >>> history.pairs, history.rows
    (3, (Row(selector='span.clock', differed=3, alone=3, quick=0),))
    """

    marks: bytes = b""
    pairs: int = 0
    quick_pairs: int = 0
    rows: tuple[Row, ...] = ()

    def keys(self) -> frozenset[bytes]:
        """Return the keys of the sections of the last visit."""
        return frozenset(self.marks[at : at + _KEY] for at in range(0, len(self.marks), _WIDTH))

    def difference(self, sections: Sequence[Section]) -> Difference:
        """Return what differs between the last visit and `sections`.

        A section that is gone while another one came with the same text has got another name, and does not differ. One that is gone is
        known by name where it differed before.
        """
        before = marks_of(self.marks)
        now = {key_of(section.selector): section for section in sections}
        names = {key: section.selector for key, section in now.items() if key in before and section.digest != before[key]}
        gone = {key: digest for key, digest in before.items() if key not in now}
        moved = Counter(gone.values())
        for key, section in now.items():
            if key not in before:
                if moved[section.digest] > 0:
                    moved[section.digest] -= 1
                else:
                    names[key] = section.selector
        known = {key_of(row.selector): row.selector for row in self.rows}
        keys = set(names)
        for key, digest in gone.items():
            if moved[digest] > 0:
                moved[digest] -= 1
                keys.add(key)
                if key in known:
                    names[key] = known[key]
        return Difference(frozenset(keys), frozenset(names.values()))

    def follow(self, sections: Sequence[Section], *, quick: bool = False, gained: frozenset[bytes] = frozenset()) -> SectionHistory:
        """Return the history after another visit.

        Parameters
        ----------
        sections : sequence of Section
            Of the page now.
        quick : bool
            It came seconds after the one before.
        gained : frozenset of bytes
            Keys of sections that differ as lists do that gain entries: they count for no pair that is seconds apart.
        """
        marks = self.moved_on(sections).marks
        if not self.marks:
            return SectionHistory(marks)
        keys, selectors = self.difference(sections)
        rows = {row.selector: row for row in self.rows}
        for selector in sorted(selectors):
            row = rows.get(selector, Row(selector, 0))
            is_quick = quick and key_of(selector) not in gained
            rows[selector] = Row(selector, row.differed + 1, row.alone + (len(keys) == 1), row.quick + is_quick)
        kept = sorted(rows.values(), key=lambda row: (-row.quick, -row.differed))[:MOST_ROWS]
        after = SectionHistory(marks, self.pairs + 1, self.quick_pairs + quick, tuple(kept))
        return after if after.pairs < MOST_PAIRS else after._halved()

    def moved_on(self, sections: Sequence[Section]) -> SectionHistory:
        """Return the history with the sections as they are now, and no pair counted."""
        marks = b"".join(key_of(section.selector) + section.digest for section in sections)
        return SectionHistory(marks, self.pairs, self.quick_pairs, self.rows)

    def calm(self, *, quick: bool = False) -> SectionHistory:
        """Return the history after a visit at which nothing differed."""
        return SectionHistory(self.marks, self.pairs + 1, self.quick_pairs + quick, self.rows)

    def _halved(self) -> SectionHistory:
        rows = (Row(row.selector, row.differed // 2, row.alone // 2, row.quick // 2) for row in self.rows)
        return SectionHistory(self.marks, self.pairs // 2, self.quick_pairs // 2, tuple(row for row in rows if row.differed))

    def packed(self) -> list[Any]:
        """Return it as plain data, for msgpack."""
        return [self.marks, self.pairs, self.quick_pairs, *map(list, self.rows)]

    @classmethod
    def unpacked(cls, data: Sequence[Any]) -> SectionHistory:
        """Return it from plain data."""
        marks, pairs, quick_pairs, *rows = data
        return cls(marks, pairs, quick_pairs, tuple(Row(*row) for row in rows))
