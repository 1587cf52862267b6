"""Pages that never look the same twice: found by a second fetch shortly after, and judged by the sections that stayed the same.

A page that changed on each of its last visits either changes often or shows something that is new on every fetch. Two fetches seconds apart
tell: by the rate that was learned, a change within seconds is unlikely. Each such pair that differs is evidence, the logarithm of that
probability; enough of it and a section that differed in all pairs make the page noisy. A list that has gained entries is news however soon
it came (`detection/growing_lists.py`): it is no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgpack

from optimal_frontier.detection.growing_lists import gained_keys, parts_of
from optimal_frontier.detection.section_history import SectionHistory, key_of
from optimal_frontier.detection.sections import WHOLE, Section
from optimal_frontier.frontier.judging.shared_noise import Pair
from optimal_frontier.frontier.judging.waits import shortest_wait
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.rows import Row

#: A second fetch counts as one shortly after within so many seconds.
QUICK_S: Final = 10.0
#: Evidence that makes a page noisy: changes within seconds had a probability of 1/100 by the rate that was learned, or at `FASTEST`.
ALARM: Final = math.log(100.0)

#: Changes in a row from which on sections are kept, and from which on a second fetch is asked for.
_KEPT_AFTER: Final = 3
_CHECKED_AFTER: Final = 4
#: The same in a crawl that can visit every page within seconds, where second fetches of what changes anyway would cost freshness.
_QUICK_CHECKED_AFTER: Final = 24
#: Changes per second beyond which a page is not told from a noisy one: little keeps a page fresh that changes every 10 s by itself, and
#: what was learned of one that always differed has no upper end.
FASTEST: Final = 0.1
#: In a crawl that can visit every page within seconds pages may well change by themselves as often: so many times a round, up to a rate
#: (1/s), count as possible. Then twice the evidence is asked for.
_CHANGES_A_ROUND: Final = 2.0
_FASTEST_OF_ALL: Final = 1.0
#: A second fetch tells little of a page that is visited this often anyway: visits fewer times as far apart as that fetch would be (s).
_NOMINAL_S: Final = 1.0
_LEAST_RATIO: Final = 5.0
#: Pairs that differ, at least, before a page is noisy; second fetches in a row at most; such that came too late.
_LEAST_PAIRS: Final = 2
_MOST_CHECKS: Final = 4
_MOST_LATE: Final = 2
#: Second fetches without a difference after which a noisy page is calm.
_CALM: Final = 2
#: Visits until the next check: the first, doubled each time, and the last.
_SPACING: Final = 8
_MOST_SPACING: Final = 64
#: Visits until the next check of a page whose pairs differed, but are not evidence enough yet.
_UNDECIDED: Final = 2
#: Of a page that is fetched again for its pattern's sake: lists whose parts are kept; share of its sections that are the same at least.
_MOST_LISTS: Final = 64
_LEAST_SAME: Final = 0.25
#: Keys in a mask; beyond that those are given up that the page has not any more.
_MOST_MASKED: Final = 512

_KEY: Final = 4


@dataclass(frozen=True, slots=True)
class PageNoise:
    """What is remembered of a page that changed on each of its last visits.

    Attributes
    ----------
    history : SectionHistory
        Its sections.
    is_noisy : bool
        Two fetches seconds apart differ, as was confirmed.
    mask : frozenset of bytes
        Keys of the sections that differed between such fetches (`key_of`); before the page is noisy, in all pairs that are evidence.
    evidence : float
        That it is noisy, nats; of all pairs of fetches seconds apart since the last one that was the same.
    checks, late, calm : int
        Of the check under way (0 checks: there is none): second fetches asked for, those that came too late, those without a difference.
    next_check : int
        Number of the visit from which on it may be checked.
    spacing : int
        Visits between two checks.
    parts : mapping of bytes to bytes
        During a check, of the sections that differed last: what lists among them held (`parts_of`).
    """

    history: SectionHistory = field(default_factory=SectionHistory)
    is_noisy: bool = False
    mask: frozenset[bytes] = frozenset()
    evidence: float = 0.0
    checks: int = 0
    late: int = 0
    calm: int = 0
    next_check: int = 0
    spacing: int = _SPACING
    parts: Mapping[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def unpack(cls, raw: bytes) -> PageNoise:
        """Read what is stored in `Memory.noise`; nothing: it was never needed."""
        if not raw:
            return cls()
        try:
            history, is_noisy, mask, *numbers = msgpack.unpackb(raw, strict_map_key=False)
            keys = frozenset(mask[at : at + _KEY] for at in range(0, len(mask), _KEY))
            return cls(SectionHistory.unpacked(history), is_noisy, keys, *numbers)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, msgpack.UnpackException):
            return cls()  # it is damaged

    def pack(self) -> bytes:
        """Return what is stored."""
        numbers = (self.evidence, self.checks, self.late, self.calm, self.next_check, self.spacing, dict(self.parts))
        return bytes(msgpack.packb([self.history.packed(), self.is_noisy, b"".join(sorted(self.mask)), *numbers]))

    @property
    def is_for_pattern(self) -> bool:
        """Whether the check under way is for the sake of the page's pattern: nothing was compared before it began."""
        return self.checks > 0 and self.history.pairs == 0

    @property
    def has_steady_sections(self) -> bool:
        """Whether there is a section that does not differ within seconds."""
        return bool(self.history.keys() - self.mask)

    def next_asked(self, visits: int) -> PageNoise:
        """Return it with the check under way ended; the next one comes after twice as many visits."""
        spacing = min(2 * self.spacing, _MOST_SPACING)
        return replace(self, evidence=0.0, checks=0, late=0, calm=0, next_check=visits + self.spacing, spacing=spacing, parts={})


@dataclass(frozen=True, slots=True)
class Noticed:
    """What was noticed of a visit.

    Attributes
    ----------
    bit : int
        1 changed, 0 unchanged, -1 nothing learned.
    noise : PageNoise or None
        To be remembered; None: nothing needs to be.
    again : bool
        A second fetch shortly after is asked for.
    forgets : bool
        What was learned so far was learned from noise.
    counters : mapping of str to int
        What happened, for ``P stats``.
    pair : Pair or None
        Two fetches within seconds: what they teach of the page's pattern.
    """

    bit: int
    noise: PageNoise | None = None
    again: bool = False
    forgets: bool = False
    counters: Mapping[str, int] = field(default_factory=dict)
    pair: Pair | None = None

    @property
    def remembered(self) -> bytes:
        """What `Memory.noise` holds after it."""
        return b"" if self.noise is None else self.noise.pack()


def _never() -> bool:
    return False


def notice(
    row: Row,
    known: bytes,
    bit: int,
    interval: float,
    cut: Callable[[], Sequence[Section]],
    round_s: float = math.inf,
    asks: Callable[[], bool] = _never,
) -> Noticed:
    """Judge a visit of a page that may be noisy.

    Parameters
    ----------
    row : Row
        Of the page, as it was handed out.
    known : bytes
        What is remembered of its noise: `Memory.noise`.
    bit : int
        By the fingerprint.
    interval : float
        Seconds since the page was last seen.
    cut : callable
        Gives the sections of the response; only called where they are needed.
    round_s : float
        Seconds in which the crawl can visit every page once; 0 or less: not known.
    asks : callable
        Whether a second fetch is wanted for the sake of its pattern; only called where one can be made.

    Notes
    -----
    Most pages cost two comparisons. Sections are kept of a page whose last three bits are changes, until two in a row are none. After
    four in a row a second fetch is asked for, where that can come within `QUICK_S` and much sooner than visits come anyway. The limit: a
    page that does change by itself every few seconds (`FASTEST`) is taken for noisy as well. Nothing that is visited less often than that
    could be kept fresh, and what of it stays the same for longer is then what decides.
    """
    possible = min(_CHANGES_A_ROUND / round_s, _FASTEST_OF_ALL) if round_s > 0 else _FASTEST_OF_ALL
    is_followed = known or (bit == 1 and _all_changed(row, _KEPT_AFTER - 1))
    if not is_followed and bit >= 0 and possible <= FASTEST and _is_telling(row, interval) and asks():
        sections = cut()
        parts = parts_of(sections, frozenset(), _MOST_LISTS)
        return Noticed(bit, PageNoise(SectionHistory().follow(sections), checks=1, parts=parts), again=True)
    if bit < 0 or not is_followed:
        # without a fingerprint to compare with, what was kept of sections may have been made under other options too
        return Noticed(bit, counters={"noisy_calmed": 1} if known and PageNoise.unpack(known).is_noisy else {})
    noise, visits = PageNoise.unpack(known), row.visits + 1
    if noise.is_for_pattern:
        return _answered(noise, bit, cut()) if interval <= QUICK_S else Noticed(bit)
    if noise.is_noisy:
        return _notice_noisy(noise, bit, interval, cut(), visits)
    if bit == 0:
        if row.bits & 1 == 0:
            return Noticed(bit)
        calm = replace(noise, history=noise.history.calm(quick=_is_quick(noise, interval)))
        if noise.checks:
            return Noticed(bit, calm.next_asked(visits), counters={"noise_checks": 1})
        return Noticed(bit, calm)
    return _notice_changing(row, noise, interval, cut(), visits, possible)


def after_template_change(known: bytes, sections: Sequence[Section]) -> bytes:
    """Return what is remembered of a page's noise after nothing but its template changed: sections as they are now, and no count.

    ``known``: what was remembered; not empty.
    """
    noise = PageNoise.unpack(known)
    return replace(noise, history=noise.history.moved_on(sections)).pack()


def _is_telling(row: Row, interval: float) -> bool:
    """Whether a second fetch can come soon enough, and much sooner than visits come anyway."""
    gap = shortest_wait(row)
    return gap < QUICK_S and interval >= _LEAST_RATIO * max(gap, _NOMINAL_S)


def _answered(noise: PageNoise, bit: int, sections: Sequence[Section]) -> Noticed:
    """Take in a second fetch that was made for the pattern's sake; of the page itself nothing is kept."""
    before = noise.history.keys()
    _, keys, gained = _followed(noise, sections, quick=True)
    names = {section.selector: key_of(section.selector) for section in sections}
    # Of a list whose entries were not kept nobody knows whether it has gained some.
    unknown = {key for section in sections if section.parts and (key := names[section.selector]) not in noise.parts}
    present = frozenset(name for name, key in names.items() if key not in unknown)
    pair = Pair(present, frozenset(name for name in present if names[name] in keys))
    same = before & set(names.values()) - keys
    # What has next to nothing of the first fetch is another page: one that refuses it, for example.
    is_other = len(same) < _LEAST_SAME * len(before)
    return Noticed(bit if bit == 0 or (gained and not keys) else -1, counters={"noise_checks": 1}, pair=None if is_other else pair)


def _is_quick(noise: PageNoise, interval: float) -> bool:
    return noise.checks > 0 and interval <= QUICK_S


def _all_changed(row: Row, n: int) -> bool:
    return row.bits & ((1 << n) - 1) == (1 << n) - 1


def _chance(row: Row, within: float, possible: float) -> float:
    """Probability of a change within so many seconds, by the posterior, or at `FASTEST` if that is less; at a rate that is possible in the
    crawl if it is above that."""
    if possible > FASTEST:
        return -math.expm1(-possible * within)
    learned = -math.expm1(-row.shape * math.log1p(within / row.time)) if row.shape > 0 else 1.0
    return min(learned, -math.expm1(-FASTEST * within))


def _notice_changing(row: Row, noise: PageNoise, interval: float, sections: Sequence[Section], visits: int, possible: float) -> Noticed:
    quick, is_hasty = _is_quick(noise, interval), possible > FASTEST
    noise, keys, gained = _followed(noise, sections, quick)
    if quick and gained and not keys:
        return Noticed(1, noise.next_asked(visits), counters={"noise_checks": 1})
    if quick:
        # its fingerprint is another, so where no section is, the order of its parts is
        differing = keys or frozenset((key_of(WHOLE),))
        mask = noise.mask & differing if noise.evidence > 0 else differing
        noise = replace(noise, mask=mask, evidence=noise.evidence - math.log(_chance(row, max(interval, 1e-3), possible)))
        # No bits from what is under suspicion: by each of them a change within seconds would seem more likely. Unless nothing goes by them.
        bit = 1 if is_hasty else -1
        if not mask:
            return Noticed(bit, noise.next_asked(visits), counters={"noise_checks": 1})
        if noise.evidence >= (2 * ALARM if is_hasty else ALARM) and noise.history.quick_pairs >= _LEAST_PAIRS:
            noisy = replace(noise.next_asked(visits), is_noisy=True, mask=_quick_keys(noise) | mask, spacing=2 * _SPACING)
            return Noticed(-1, noisy, forgets=True, counters={"noisy": 1, "noise_checks": 1})
        if noise.checks < _MOST_CHECKS:
            return Noticed(bit, replace(noise, checks=noise.checks + 1), again=True, counters={"noise_checks": 1})
        # What was found stands until a pair is the same: the next check goes on from there.
        undecided = replace(noise, checks=0, late=0, next_check=visits + _UNDECIDED, parts={})
        return Noticed(bit, undecided, counters={"noise_checks": 1})
    if noise.checks:
        late = replace(noise, late=noise.late + 1)
        return Noticed(1, late, again=True) if late.late < _MOST_LATE else Noticed(1, late.next_asked(visits))
    after = _QUICK_CHECKED_AFTER if is_hasty else _CHECKED_AFTER
    # Without a pair it would be a check for the pattern's sake.
    if noise.history.pairs and _is_telling(row, interval) and visits >= noise.next_check and _all_changed(row, after - 1):
        return Noticed(1, replace(noise, checks=1), again=True)
    return Noticed(1, replace(noise, parts={}))


def _followed(noise: PageNoise, sections: Sequence[Section], quick: bool) -> tuple[PageNoise, frozenset[bytes], frozenset[bytes]]:
    """Return what is remembered after another visit, and the keys of sections that differ: lists that have gained entries apart."""
    keys = noise.history.difference(sections).keys
    gained = gained_keys(noise.history.marks, noise.parts, sections, keys) if quick else frozenset()
    history = noise.history.follow(sections, quick=quick, gained=gained)
    return replace(noise, history=history, parts=parts_of(sections, keys | noise.parts.keys())), keys - gained, gained


def _notice_noisy(noise: PageNoise, bit: int, interval: float, sections: Sequence[Section], visits: int) -> Noticed:
    quick = _is_quick(noise, interval)
    noise, keys, gained = _followed(noise, sections, quick)
    if quick:
        if bit == 0:
            calm = replace(noise, calm=noise.calm + 1, checks=noise.checks + 1)
            if calm.calm >= _CALM:
                return Noticed(0, counters={"noise_checks": 1, "noisy_calmed": 1})
            return Noticed(0, calm, again=True, counters={"noise_checks": 1})
        # what differs within seconds is noise, also if it was not seen to before
        noise = replace(noise.next_asked(visits), mask=_widened(noise, keys))
        is_news = bool(gained - noise.mask)
        return Noticed(1 if is_news else 0 if noise.has_steady_sections else -1, noise, counters={"noise_checks": 1})
    if bit == 1:
        bit = (1 if keys - noise.mask else 0) if noise.has_steady_sections else -1
    if noise.checks:
        noise = noise.next_asked(visits)
    elif visits >= noise.next_check:
        return Noticed(bit, replace(noise, checks=1), again=True)
    return Noticed(bit, noise if noise.checks else replace(noise, parts={}))


def _widened(noise: PageNoise, keys: frozenset[bytes]) -> frozenset[bytes]:
    """The mask with the keys of sections that differed just now."""
    mask = noise.mask | keys
    return mask if len(mask) <= _MOST_MASKED else (mask & noise.history.keys()) | keys


def _quick_keys(noise: PageNoise) -> frozenset[bytes]:
    """Keys of the sections that differed in any pair of fetches seconds apart."""
    return frozenset(key_of(row.selector) for row in noise.history.rows if row.quick)


def noise_of_memory(memory: Memory) -> PageNoise | None:
    """Return what is remembered of a page's noise; None for most pages."""
    return PageNoise.unpack(memory.noise) if memory.noise else None
