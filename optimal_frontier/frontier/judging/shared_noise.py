"""Noise that pages share: sections that differ within seconds on some pages of a kind are left out of the fingerprints of all of them.

A counter, an advertisement or the time of day stands on every page of a template. To find it out page by page (`noise`) takes each of them
six visits, and until then all it teaches is that it changes. So pages of one pattern of URLs learn it from each other, and patterns of a
host do. Where most of them had changed at their last visits, a few are fetched again at once.
"""

from __future__ import annotations

import json
import logging
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from optimal_frontier.detection.sections import WHOLE, Section
from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint, stored_tag
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import Row

logger = logging.getLogger(__name__)

#: Pages are fetched again where of the last ones, so many at least and at most, this share had changed when they were last visited.
_LEAST_SEEN: Final = 4
_MOST_SEEN: Final = 16
_CHANGED_SHARE: Final = 0.6
#: A section is noise that differed within seconds on so many pages (of a host: patterns), and on this share of those that had it.
SHOWN_BY: Final = 3
_NOISE_SHARE: Final = 0.5
#: Pages that are fetched again at most, and bits until as many more may be: the first time, doubled each time.
MOST_ASKED: Final = 8
_SPACING: Final = 64
#: Sections that are left out, characters of the selector of one; patterns and hosts that are followed.
_MOST_LEFT_OUT: Final = 32
_LONGEST: Final = 200
_MOST_GROUPS: Final = 4_000
#: What a name in `P flagged` has between the host and a pattern; the pattern that stands for all of a host.
_SIGN: Final = " ~"
OF_HOST: Final = 0
_PLACED: Final = ":nth-of-type"
#: Bytes of a fingerprint; last bits of a page that tell whether they are of noise.
_DIGEST: Final = 16
_LAST: Final = 8


class Pair(NamedTuple):
    """Two fetches of a page within seconds: selectors of the sections of the second, and of those that differ from the first."""

    present: frozenset[str]
    differing: frozenset[str]


class Shared(NamedTuple):
    """What is left out of all pages of a pattern of a host (`OF_HOST`: of all its pages), by selectors; since when (s)."""

    host: str
    pattern: int
    since: float
    left_out: tuple[str, ...]


def name_of(shared: Shared) -> bytes:
    """Return the name under which it is stored."""
    said = quote(json.dumps(shared.left_out, ensure_ascii=False), safe="/:()[],")
    return f"{shared.host}{_SIGN}{shared.pattern:08x}@{shared.since:.3f}@{said}".encode()


def parse_name(name: bytes) -> Shared | None:
    """Return what a stored name says; None if it says something else, or is damaged.

    Examples
    --------
    >>> parse_name(name_of(Shared("a.example:8000", 10, 5.0, ("p.ad", "div > b"))))
    Shared(host='a.example:8000', pattern=10, since=5.0, left_out=('p.ad', 'div > b'))
    >>> parse_name(b"a.example 00ff")
    """
    host, sign, rest = name.decode("utf-8", "replace").partition(_SIGN)
    pattern, _, said = rest.partition("@")
    since, _, left_out = said.partition("@")
    try:
        selectors = json.loads(unquote(left_out)) if sign else None
        if not isinstance(selectors, list) or not selectors or not all(isinstance(one, str) for one in selectors):
            return None
        return Shared(host, int(pattern, 16), float(since), tuple(selectors))
    except (ValueError, RecursionError):
        return None


def latest_of(names: Iterable[bytes]) -> dict[tuple[str, int], Shared]:
    """Return what stored names say by host and pattern; of several the latest counts."""
    found: dict[tuple[str, int], Shared] = {}
    for shared in filter(None, map(parse_name, names)):
        key = shared.host, shared.pattern
        if key not in found or found[key].since < shared.since:
            found[key] = shared
    return found


@dataclass(slots=True)
class _Group:
    """What this process has seen of a pattern, or of a host, since it knew what to leave out there.

    ``seen``: whether its last pages had changed. ``there``, ``differing``: by section the pages (of a host: the patterns) that were fetched
    again and had it, and those on which it differed. ``asked``: pages of the round under way; ``left``: bits until the next one begins;
    ``spacing``: until the one after that.
    """

    since: float = -math.inf
    seen: OrderedDict[bytes, bool] = field(default_factory=OrderedDict)
    there: dict[str, set[object]] = field(default_factory=lambda: defaultdict(set))
    differing: dict[str, set[object]] = field(default_factory=lambda: defaultdict(set))
    asked: int = 0
    left: int = 0
    spacing: int = _SPACING

    def note(self, page: bytes, changed: bool) -> None:
        self.seen[page] = changed
        self.seen.move_to_end(page)
        if len(self.seen) > _MOST_SEEN:
            self.seen.popitem(last=False)
        self.left = max(self.left - 1, 0)

    def asks(self) -> bool:
        if self.left or len(self.seen) < _LEAST_SEEN or sum(self.seen.values()) < _CHANGED_SHARE * len(self.seen):
            return False
        if self.asked == 0:
            self.there.clear()
            self.differing.clear()
        self.asked += 1
        if self.asked == MOST_ASKED:
            self.asked, self.left, self.spacing = 0, self.spacing, 2 * self.spacing
        return True

    def tally(self, one: object, pair: Pair) -> list[str]:
        """Take in a pair; return the sections that are noise, the surest first."""
        for name in pair.present:
            self.there[name].add(one)
        for name in pair.differing:
            self.differing[name].add(one)
        on = {name: len(ones) for name, ones in self.differing.items()}
        found = [name for name, n in on.items() if n >= max(SHOWN_BY, _NOISE_SHARE * len(self.there[name])) and len(name) <= _LONGEST]
        return sorted(found, key=lambda name: (-on[name], name))


class SharedNoise:
    """Noise of patterns, and of hosts. One for each crawler process; what it finds is shared by all."""

    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[str, int], _Group] = OrderedDict()
        self._own: dict[tuple[str, int], Shared] = {}
        self._told: dict[tuple[str, int], Shared] = {}

    def learn(self, stored: Iterable[bytes]) -> None:
        """Take over what is stored, by all names in ``P flagged``."""
        self._told = latest_of(stored)

    def of(self, host: str, pattern: int) -> Shared | None:
        """Return what is left out of pages of a pattern: its own noise, or else that of its host; None: nothing is."""
        if not self._told and not self._own:
            return None
        return self._last((host, pattern)) or self._last((host, OF_HOST))

    def _last(self, key: tuple[str, int]) -> Shared | None:
        own, told = self._own.get(key), self._told.get(key)
        if own is None or told is None or told.since < own.since:
            return own or told
        del self._own[key]  # it is stored by now, and ends with that
        return told

    def tag_of(self, host: str, pattern: int, tag: int) -> int:
        """Return the tag of fingerprints of pages of a pattern, whose `Way` has this ``tag``."""
        shared = self.of(host, pattern)
        return tag if shared is None else _tag_without(tag, shared)

    def without(self, handout: Handout, found: Fingerprint, sections: Callable[[], Sequence[Section]]) -> Fingerprint:
        """Return the fingerprint of a page without the noise that it shares: ``found`` where there is none, empty where nothing else is.

        The order of sections, and their names, do not count: where noise comes and goes, others may be renamed.
        """
        shared = self.of(handout.host, handout.row.pattern)
        if shared is None:
            return found
        left_out = frozenset(shared.left_out)
        kept = sorted(section.digest for section in sections() if section.selector not in left_out)
        digest = blake2b(b"".join(kept), digest_size=_DIGEST).digest() if kept else None
        return Fingerprint(digest, _tag_without(found.tag, shared), 0, found.counters)

    def note(self, handout: Handout, changed: bool) -> None:
        """Take in a bit."""
        for group in self._groups_of(handout):
            group.note(handout.page, changed)

    def asks(self, handout: Handout) -> bool:
        """Return whether a page that has changed is to be fetched again at once, as others of its pattern or host have; it is counted."""
        return any([group.asks() for group in self._groups_of(handout)])  # the page counts for both

    def tally(self, handout: Handout, pair: Pair, at: float) -> bytes:
        """Take in two fetches within seconds; return the name of what was found out just now, to be stored; else empty."""
        host, pattern = handout.host, handout.row.pattern
        of_pattern, of_host = self._groups_of(handout)
        # By its place alone a section says nothing on pages of another kind.
        named = [name for name in of_host.tally(pattern, pair) if _PLACED not in name]
        for at_level, noisy in ((pattern, of_pattern.tally(handout.page, pair)), (OF_HOST, named)):
            before = self.of(host, at_level)
            known = () if before is None else before.left_out
            added = [name for name in noisy if name not in known and name != WHOLE][: _MOST_LEFT_OUT - len(known)]
            if added:
                shared = self._own[host, at_level] = Shared(host, at_level, round(at, 3), (*known, *added))
                what = "of its pages" if at_level == OF_HOST else f"of pages like {shown(str(handout.record['url']))}"
                logger.info("%s: %d sections %s differ within seconds; they do not count as changes", host, len(shared.left_out), what)
                return name_of(shared)
        return b""

    def _groups_of(self, handout: Handout) -> tuple[_Group, _Group]:
        """Of the page's pattern, and of its host."""
        shared = self.of(handout.host, handout.row.pattern)
        since = -math.inf if shared is None else shared.since
        return self._group((handout.host, handout.row.pattern), since), self._group((handout.host, OF_HOST), since)

    def _group(self, key: tuple[str, int], since: float) -> _Group:
        found = self._groups.get(key)
        if found is None or found.since < since:
            found = self._groups[key] = _Group(since)
            if len(self._groups) > _MOST_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return found


def learned_noise(row: Row) -> bool:
    """Tell whether what was learned of a page before noise was left out was learned from that: half of its last bits are changes."""
    n = min(row.observations, _LAST)
    return n > 0 and 2 * (row.bits & ((1 << n) - 1)).bit_count() >= n


def _tag_without(tag: int, shared: Shared) -> int:
    said = json.dumps([tag, sorted(shared.left_out)]).encode()
    return stored_tag(int.from_bytes(blake2b(said, digest_size=4).digest(), "big"))
