"""Noise that pages share: sections that differ within seconds on some pages of a kind are left out of the fingerprints of all of them.

A counter, an advertisement or the time of day stands on every page of a template. To find it out page by page (`noise`) takes each of them
six visits, and until then all it teaches is that it changes. So pages of one pattern of URLs learn it from each other, and patterns of a
host do. Where most of them had changed at their last visits, a few are fetched again at once; where something is left out a few are now and
then, to see whether it still differs.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from optimal_frontier.detection.section_history import key_of
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
#: What is left out counts again once it was the same on so many in a round, or on all where there are fewer.
CALM_AFTER: Final = 6
#: Pages that are fetched again at most, and bits until as many more may be, doubled each time: to find noise; to check what is left out.
MOST_ASKED: Final = 8
_SPACING: Final = 64
_CHECK_SPACING: Final = 256
#: Sections that are left out, characters of the selector of one; patterns and hosts that are followed.
_MOST_LEFT_OUT: Final = 32
_LONGEST: Final = 200
_MOST_GROUPS: Final = 10_000
#: Kinds of pages that share noise, in the whole crawl: once there are so many, others find their own. Each crawler reads all of them.
MOST_STORED: Final = 1_000
#: What a name in `P flagged` has between the host and a pattern; the pattern that stands for all of a host.
_SIGN: Final = " ~"
OF_HOST: Final = 0
_PLACED: Final = ":nth-of-type"
#: Bytes of a fingerprint; last bits of a page that tell whether they are of noise.
_DIGEST: Final = 16
_LAST: Final = 8


class Kind(NamedTuple):
    """Pages that share noise: their host, their pattern (`OF_HOST`: all of the host), the tag of the `Way` of their fingerprints."""

    host: str
    pattern: int
    tag: int


def kind_of(handout: Handout, tag: int) -> Kind:
    """Return what a page shares its noise with; ``tag`` of its `Way`."""
    return Kind(handout.host, handout.row.pattern, tag)


class Pair(NamedTuple):
    """Two fetches of a page within seconds: selectors of the sections of the second, and of those that differ from the first."""

    present: frozenset[str]
    differing: frozenset[str]


class Shared(NamedTuple):
    """What is left out of all pages of a kind, by selectors; since when (s)."""

    kind: Kind
    since: float
    left_out: tuple[str, ...]

    @property
    def tag(self) -> int:
        """Of the fingerprints of these pages."""
        return _tag_without(self.kind.tag, self.left_out) if self.left_out else self.kind.tag


@lru_cache(maxsize=4 * MOST_STORED)
def _tag_without(tag: int, left_out: tuple[str, ...]) -> int:
    said = json.dumps([tag, sorted(left_out)]).encode()
    return stored_tag(int.from_bytes(blake2b(said, digest_size=4).digest(), "big"))


def name_of(shared: Shared) -> bytes:
    """Return the name under which it is stored: the host, a blank, and all else without one."""
    host, pattern, tag = shared.kind
    return f"{host}{_SIGN}{pattern:08x}{tag:04x}@{shared.since:.3f}@{quote(json.dumps(shared.left_out), safe='/:()[],')}".encode()


@lru_cache(maxsize=4 * MOST_STORED)
def parse_name(name: bytes) -> Shared | None:
    """Return what a stored name says; None if it says something else, or is damaged.

    Examples
    --------
    >>> parse_name(name_of(Shared(Kind("a.example:8000", 10, 7), 5.0, ("p.ad", "div > b"))))
    Shared(kind=Kind(host='a.example:8000', pattern=10, tag=7), since=5.0, left_out=('p.ad', 'div > b'))
    >>> parse_name(b"a.example 00ff")
    """
    host, sign, rest = name.decode("utf-8", "replace").partition(_SIGN)
    numbers, _, said = rest.partition("@")
    since, _, left_out = said.partition("@")
    try:
        selectors = json.loads(unquote(left_out)) if sign else None
        if not isinstance(selectors, list) or not all(isinstance(one, str) for one in selectors):
            return None
        return Shared(Kind(host, int(numbers[:8], 16), int(numbers[8:], 16)), float(since), tuple(selectors))
    except (ValueError, RecursionError):
        return None


def latest_of(names: Iterable[bytes]) -> dict[Kind, Shared]:
    """Return what stored names say by kind of page; of several the latest counts."""
    found: dict[Kind, Shared] = {}
    for shared in map(parse_name, (name for name in names if _SIGN.encode() in name)):
        if shared is not None and (shared.kind not in found or found[shared.kind].since < shared.since):
            found[shared.kind] = shared
    return found


@dataclass(slots=True)
class _Rounds:
    """When pages are fetched again: ``asked`` in the round under way; ``left`` bits until it begins; ``spacing`` until the next one."""

    asked: int = 0
    left: int = 0
    spacing: int = _SPACING

    def take(self) -> bool:
        if self.left:
            return False
        self.asked += 1
        if self.asked == MOST_ASKED:
            self.asked, self.left, self.spacing = 0, self.spacing, 2 * self.spacing
        return True


@dataclass(slots=True)
class _Group:
    """What this process has seen of a pattern, or of a host, since it knew what to leave out there.

    ``seen``: whether its last pages had changed. ``some``: a few of its pages (of a host: patterns). ``asked``: those that were fetched
    again in this round; ``there``, ``differing``: on how many of them a section was, by its key, and differed, by its name. ``finding``:
    rounds in which something may be found; ``checking``: in which what is left out is looked at once more.
    """

    since: float
    seen: OrderedDict[bytes, bool] = field(default_factory=OrderedDict)
    some: set[object] = field(default_factory=set)
    asked: set[object] = field(default_factory=set)
    there: Counter[bytes] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    finding: _Rounds = field(default_factory=_Rounds)
    checking: _Rounds = field(default_factory=lambda: _Rounds(left=_CHECK_SPACING, spacing=2 * _CHECK_SPACING))

    def note(self, page: bytes, one: object, changed: bool) -> None:
        if len(self.some) < CALM_AFTER:
            self.some.add(one)
        self.seen[page] = changed
        self.seen.move_to_end(page)
        if len(self.seen) > _MOST_SEEN:
            self.seen.popitem(last=False)
        for rounds in (self.finding, self.checking):
            rounds.left = max(rounds.left - 1, 0)

    def asks(self, changed: bool, leaves_out: bool) -> bool:
        """Whether a page is to be fetched again at once, which is counted."""
        is_common = len(self.seen) >= _LEAST_SEEN and sum(self.seen.values()) >= _CHANGED_SHARE * len(self.seen)
        for rounds, may_ask in ((self.finding, changed and is_common), (self.checking, leaves_out)):
            if may_ask and rounds.take():
                if rounds.asked == 1:
                    for counts in (self.asked, self.there, self.differing):
                        counts.clear()
                return True
        return False

    def tally(self, one: object, pair: Pair, known: Sequence[str]) -> tuple[str, ...]:
        """Take in a pair; return what is to be left out after it, where ``known`` was."""
        if one in self.asked:
            return tuple(known)
        self.asked.add(one)
        self.there.update(map(key_of, pair.present))
        self.differing.update(pair.differing)
        enough = max(SHOWN_BY, len(self.some))
        kept = [name for name in known if self.there[key_of(name)] < enough or self.differing[name]]
        found = [name for name, n in self.differing.items() if n >= max(SHOWN_BY, _NOISE_SHARE * self.there[key_of(name)])]
        found = sorted((name for name in found if name != WHOLE and len(name) <= _LONGEST), key=lambda name: (-self.differing[name], name))
        return tuple(dict.fromkeys([*kept, *found]))[:_MOST_LEFT_OUT]


class SharedNoise:
    """Noise of patterns, and of hosts. One for each crawler process; what it finds is shared by all.

    The courier's thread calls `learn`; all else is the judge's.
    """

    def __init__(self) -> None:
        self._groups: OrderedDict[Kind, _Group] = OrderedDict()
        self._own: dict[Kind, Shared] = {}
        self._told: dict[Kind, Shared] = {}

    def learn(self, stored: Iterable[bytes]) -> None:
        """Take over what is stored, by all names in ``P flagged``."""
        self._told = latest_of(stored)

    def of(self, kind: Kind) -> Shared | None:
        """Return what is left out of pages of a kind: what their pattern has, or else what their host has; None: nothing is."""
        if not self._told and not self._own:
            return None
        found = self._last(kind) or self._last(kind._replace(pattern=OF_HOST))
        return found if found is not None and found.left_out else None

    def _last(self, kind: Kind) -> Shared | None:
        own, told = self._own.get(kind), self._told.get(kind)
        if own is None or told is None or told.since < own.since:
            return own or told
        del self._own[kind]  # it is stored by now, and ends with that
        return told

    def tag_of(self, kind: Kind) -> int:
        """Return the tag of fingerprints of pages of a kind."""
        shared = self.of(kind)
        return kind.tag if shared is None else shared.tag

    def without(self, kind: Kind, found: Fingerprint, sections: Callable[[], Sequence[Section]]) -> Fingerprint:
        """Return the fingerprint of a page without the noise that it shares: ``found`` where there is none, empty where nothing else is.

        What cannot be cut keeps its own digest. Names of sections do not count, their order does: where noise comes and goes, others may be
        renamed.
        """
        shared = self.of(kind)
        if shared is None:
            return found
        cut = () if found.distance else sections()
        if not cut or any(section.selector == WHOLE for section in cut):
            return found._replace(tag=shared.tag)
        kept = [section.digest for section in cut if section.selector not in shared.left_out]
        digest = blake2b(b"".join(kept), digest_size=_DIGEST).digest() if kept else None
        return Fingerprint(digest, shared.tag, 0, found.counters)

    def note(self, kind: Kind, page: bytes, changed: bool) -> None:
        """Take in a bit of a page."""
        for group, one in zip(self._groups_of(kind), (page, kind.pattern), strict=True):
            group.note(page, one, changed)

    def asks(self, kind: Kind, changed: bool) -> bool:
        """Return whether a page is to be fetched again at once, for the sake of others; it is counted, for its pattern and for its host."""
        leaves_out = self.of(kind) is not None
        of_pattern, of_host = (group.asks(changed, leaves_out) for group in self._groups_of(kind))
        return of_pattern or of_host

    def tally(self, kind: Kind, handout: Handout, pair: Pair, at: float) -> bytes:
        """Take in two fetches within seconds; return the name of what was found out just now, to be stored; else empty."""
        of_pattern, of_host = self._groups_of(kind)
        # By its place alone a section says nothing on pages of another kind.
        named = Pair(pair.present, frozenset(name for name in pair.differing if _PLACED not in name))
        everywhere = kind._replace(pattern=OF_HOST)
        for level, group, one, of in ((kind, of_pattern, handout.page, pair), (everywhere, of_host, kind.pattern, named)):
            before = self._last(level) or self._last(everywhere)
            known = () if before is None else before.left_out
            left_out = group.tally(one, of, known)
            is_new = before is None or before.kind != level
            if left_out == known or (is_new and len(self._told) >= MOST_STORED):
                continue
            found = Shared(level, round(at, 3), left_out)
            name = name_of(found)
            what = "of its pages" if level.pattern == OF_HOST else f"of pages like {shown(str(handout.record['url']))}"
            logger.info("%s: sections %s that differ within seconds, and so do not count as changes: %d", kind.host, what, len(left_out))
            self._own[level] = found
            return name
        return b""

    def _groups_of(self, kind: Kind) -> tuple[_Group, _Group]:
        """Of the page's pattern, and of its host."""
        shared = self.of(kind)
        since = -math.inf if shared is None else shared.since
        return self._group(kind, since), self._group(kind._replace(pattern=OF_HOST), since)

    def _group(self, kind: Kind, since: float) -> _Group:
        found = self._groups.get(kind)
        if found is None or found.since < since:
            found = self._groups[kind] = _Group(since)
            if len(self._groups) > _MOST_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(kind)
        return found


def learned_noise(row: Row) -> bool:
    """Tell whether what was learned of a page before noise was left out was learned from that: half of its last bits are changes."""
    n = min(row.observations, _LAST)
    return n > 0 and 2 * (row.bits & ((1 << n) - 1)).bit_count() >= n
