"""What sources of signals are worth to a page by their records, what a visit teaches of them, and which records this process has read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.estimation.signal_sources import KINDS, PLAIN, Believed, Kind, SignalSource, SignalVisit, taught
from optimal_frontier.state.source_lessons import BY_HAND, NOTHING_KNOWN, PING, Lesson, Record

#: Seconds for which a record is used before it is read again.
FRESH_S: Final = 10.0
#: Seconds for which what visits teach is held, so that it is stored by batches: while they are fewer than so many a source, as long as a
#: record is used, as a lesson costs as much as a visit.
HELD_S: Final = 2.0
_FEW: Final = 8
#: Records that are remembered.
_MOST: Final = 10_000
#: A source is known well from so many changes on; of the visits to a page only one in so many teaches of it then.
_WELL: Final = 100.0
LESSONS_EVERY: Final = 8
#: Who pings by hand means it, and says nothing by being silent.
_BY_HAND: Final = Kind(0.1, 0.005, 4.0)


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of a source, found once for each record.

    Attributes
    ----------
    record : SignalSource
        Its record.
    kind : Kind
        What its kind lets expect.
    believed : Believed
        By both.
    least_rate : float
        See `Believed.least_rate`.
    is_known_well : bool
        Whether its record is of so many changes that visits need not all be counted.
    """

    record: SignalSource
    kind: Kind
    believed: Believed
    least_rate: float
    is_known_well: bool


def kind_of(source: str) -> Kind:
    """Return what is assumed of a source, by its name.

    Examples
    --------
    >>> kind_of("example.org sitemap") == KINDS["sitemap"], kind_of("ping shop") == KINDS["ping"], kind_of("ping").recall
    (True, True, 0.1)
    """
    if source == BY_HAND:
        return _BY_HAND
    return KINDS["ping"] if source.startswith(PING) else KINDS.get(source.rpartition(" ")[2], PLAIN)


@lru_cache(maxsize=1024)
def source_of(source: str, known: Record) -> Source:
    """Return what is known of a source by its name and its record."""
    seconds, changes, squares, signals, products, *likelihoods = known
    record, kind = SignalSource(seconds, changes, squares, signals, products, tuple(likelihoods)), kind_of(source)
    try:
        believed = record.believed(kind)
    except ArithmeticError:  # numbers that no visit has made
        return source_of(source, NOTHING_KNOWN)
    return Source(record, kind, believed, believed.least_rate, record.changes >= _WELL)


class _Known(dict[str, Source]):
    """What is known of sources by their names; of one that was not read: nothing."""

    def __missing__(self, source: str) -> Source:
        return source_of(source, NOTHING_KNOWN)


class SourceWorths:
    """What this process has read of sources, and what visits have taught since: judges read, whoever talks to Redis writes.

    Visits teach by batches, every `HELD_S` to `FRESH_S` seconds: that costs less, and the server is asked seldom. A killed process loses as
    much.

    Attributes
    ----------
    known_of : callable
        Name of a source -> what is known of it; of one that was not read: nothing.
    """

    def __init__(self) -> None:
        self._known = _Known()
        self._read_at: dict[str, float] = {}
        self.known_of = self._known.__getitem__
        # Of each source what its visits show, one after the other: an array is made of them in a fifth of the time.
        self._visits: dict[str, list[float]] = {}
        self._since = 0.0

    def stale(self, sources: Iterable[str]) -> list[str]:
        """Return those of which no fresh record is known."""
        since = time.monotonic() - FRESH_S
        return [source for source in dict.fromkeys(sources) if self._read_at.get(source, -math.inf) < since]

    def learn(self, found: Mapping[str, Record]) -> None:
        """Remember records that were read."""
        if len(self._known) > _MOST:
            self._known.clear()
            self._read_at.clear()
        now = time.monotonic()
        for source, known in found.items():
            self._known[source], self._read_at[source] = source_of(source, known), now

    def take(self, visits: Iterable[tuple[str, tuple[float, float, bool, float, float]]]) -> None:
        """Keep visits to pages of sources, to learn of them."""
        for source, visit in visits:
            kept = self._visits.get(source)
            if kept is None:
                self._since = self._since if self._visits else time.monotonic()
                kept = self._visits[source] = []
            kept += visit

    def lessons(self, *, at_once: bool = False) -> dict[str, Lesson]:
        """Return what the visits that were kept teach of each source, and forget them; nothing while they are few and new."""
        counts = [len(kept) // len(SignalVisit._fields) for kept in self._visits.values()]
        are_few = sum(counts) < _FEW * len(counts)
        if not counts or not (at_once or time.monotonic() - self._since >= (FRESH_S if are_few else HELD_S)):
            return {}
        visits = np.fromiter(chain.from_iterable(self._visits.values()), np.float64).reshape(-1, len(SignalVisit._fields))
        known = {name: self.known_of(name) for name in self._visits}
        self._visits = {}
        return dict(zip(known, lessons_of_sources(known.values(), np.repeat(np.arange(len(counts)), counts), visits), strict=True))


def lessons_of_sources(sources: Iterable[Source], of: ArrayLike, visits: ArrayLike) -> list[Lesson]:
    """Return what visits, an array (n, fields of `SignalVisit`), teach of sources; ``of`` are the numbers of theirs, (n,).

    Examples
    --------
    >>> ((keep, sums),) = lessons_of_sources([source_of("h feed", NOTHING_KNOWN)], [0], [SignalVisit(10.0, 1, True, 0.1)])
    >>> round(keep, 3), sums[0], sums[3]
    (0.998, 5.0, 0.5)
    """
    return [Lesson(*lesson) for lesson in taught([(one.record, one.believed) for one in sources], of, visits)]
