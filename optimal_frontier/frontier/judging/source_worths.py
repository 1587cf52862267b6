"""What this process knows of sources of signals: their records as they were read last, and what they are worth for a page."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from optimal_frontier.estimation.signal_sources import FIRST, FIRST_OF_PINGS, NOTHING_LEARNED, Lesson, Worth, kind_of, worth_of
from optimal_frontier.frontier.judging.heard import WorthOf

#: Seconds for which a record is used before it is read again.
FRESH_S: Final = 10.0
#: Records that are remembered.
_MOST: Final = 10_000


def worth_by(known: Mapping[str, Lesson], source: str, change_rate: float) -> Worth:
    """Return what a source is worth for a page of a change rate (1/s), by records of sources and kinds; missing ones say nothing."""
    kind = kind_of(source)
    first = FIRST_OF_PINGS if kind == "ping" else FIRST
    return worth_of(known.get(source, NOTHING_LEARNED), known.get(kind, NOTHING_LEARNED), change_rate, first)


def worths_by(known: Mapping[str, Lesson]) -> WorthOf:
    """Return `worth_by` for these records."""
    return lambda source, change_rate: worth_by(known, source, change_rate)


class SourceWorths:
    """Records that this process has read, and when. Read by judges; written by whoever talks to Redis."""

    def __init__(self) -> None:
        self._known: dict[str, Lesson] = {}
        self._read: dict[str, float] = {}

    def __call__(self, source: str, change_rate: float) -> Worth:
        """Return what a source is worth for a page of a change rate (1/s)."""
        return worth_by(self._known, source, change_rate)

    def stale(self, sources: Iterable[str]) -> list[str]:
        """Return those of which no fresh record is known."""
        since = time.monotonic() - FRESH_S
        return [source for source in dict.fromkeys(sources) if self._read.get(source, -1.0) < since]

    def learn(self, found: Mapping[str, Lesson]) -> None:
        """Remember records that were read."""
        if len(self._read) > _MOST:
            self._known, self._read = {}, {}
        self._known = {**self._known, **found}
        self._read |= dict.fromkeys(found, time.monotonic())
