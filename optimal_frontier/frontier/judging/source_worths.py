"""What sources of signals are worth to a page by their records, what a visit teaches of them, and which records this process has read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from optimal_frontier.estimation.signal_sources import KINDS, MEMORY, PLAIN, Kind, SignalSource, SignalVisit
from optimal_frontier.state.source_lessons import BY_HAND, NOTHING_KNOWN, PING, Lesson, Record

#: Seconds for which a record is used before it is read again.
FRESH_S: Final = 10.0
#: Records that are remembered.
_MOST: Final = 10_000
#: A source is known well from so many changes on; of the visits to a page only one in so many teaches of it then.
_WELL: Final = 100.0
LESSONS_EVERY: Final = 8
#: Who pings by hand means it, and says nothing by being silent.
_BY_HAND: Final = Kind(0.1, 0.005, 4.0)


class Worth(NamedTuple):
    """What a source is worth for a page: the share of its changes that it tells of, and signals per second that no change caused."""

    recall: float
    false_rate: float

    def precision(self, change_rate: float) -> float:
        """Return the probability that a signal is true, for a page of this change rate (1/s)."""
        told = self.recall * change_rate
        return told / (told + self.false_rate) if told > 0.0 else 0.0


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
def source_of(source: str, known: Record) -> tuple[SignalSource, Kind, float]:
    """Return what is known of a source by its name and its record, its kind, and its recall."""
    seconds, changes, squares, signals, products, *likelihoods = known
    record, kind = SignalSource(seconds, changes, squares, signals, products, tuple(likelihoods)), kind_of(source)
    return record, kind, record.recall(kind)


def worth_of(source: str, known: Record, change_rate: float) -> Worth:
    """Return what a source is worth for a page of a change rate (1/s, > 0), by its name and its record."""
    record, kind, recall = source_of(source, known)
    return Worth(recall, record.false_rate(change_rate, recall, kind))


def lesson_of(source: str, known: Record, visit: SignalVisit) -> Lesson:
    """Return what a visit teaches of a source of which so much is known.

    Examples
    --------
    >>> keep, sums = lesson_of("h feed", NOTHING_KNOWN, SignalVisit(10.0, 1, True, 0.1))
    >>> round(keep, 3), sums[0], sums[3]
    (0.998, 5.0, 0.5)
    """
    record, kind, _ = source_of(source, known)
    after = record_in(record.after(visit, kind))
    keep = 1.0 - 1.0 / MEMORY if visit.changed or visit.signals else 1.0
    return Lesson(keep, tuple(now - keep * before for now, before in zip(after, known, strict=True)))


def is_known_well(known: Record) -> bool:
    """Tell whether a record is of so many changes that visits need not all be counted."""
    return known[1] >= _WELL


def record_in(source: SignalSource) -> Record:
    """Return what is known of a source as a record."""
    return (source.time, source.changes, source.squares, source.signals, source.products, *source.likelihoods)


class SourceWorths:
    """Records that this process has read, and when. Read by judges; written by whoever talks to Redis."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Record]] = {}

    def __call__(self, source: str) -> Record:
        """Return the record of a source; of one that was not read nothing is known."""
        found = self._known.get(source)
        return NOTHING_KNOWN if found is None else found[1]

    def stale(self, sources: Iterable[str]) -> list[str]:
        """Return those of which no fresh record is known."""
        since = time.monotonic() - FRESH_S
        return [source for source in dict.fromkeys(sources) if source not in self._known or self._known[source][0] < since]

    def learn(self, found: Mapping[str, Record]) -> None:
        """Remember records that were read."""
        if len(self._known) > _MOST:
            self._known = {}
        now = time.monotonic()
        for source, known in found.items():
            self._known[source] = now, known
