"""What this process knows of sources of signals: their records, as they were read last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from optimal_frontier.estimation.signal_sources import SignalSource
from optimal_frontier.estimation.source_lessons import NOTHING_KNOWN

#: Seconds for which a record is used before it is read again.
FRESH_S: Final = 10.0
#: Records that are remembered.
_MOST: Final = 10_000


class SourceWorths:
    """Records that this process has read, and when. Read by judges; written by whoever talks to Redis."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, SignalSource]] = {}

    def __call__(self, source: str) -> SignalSource:
        """Return the record of a source; of one that was not read nothing is known."""
        found = self._known.get(source)
        return NOTHING_KNOWN if found is None else found[1]

    def stale(self, sources: Iterable[str]) -> list[str]:
        """Return those of which no fresh record is known."""
        since = time.monotonic() - FRESH_S
        return [source for source in dict.fromkeys(sources) if source not in self._known or self._known[source][0] < since]

    def learn(self, found: Mapping[str, SignalSource]) -> None:
        """Remember records that were read."""
        if len(self._known) > _MOST:
            self._known = {}
        now = time.monotonic()
        for source, known in found.items():
            self._known[source] = now, known
