"""``reparse``: the next visit of pages brings a full answer and a callback, so that what a callback missed is made up for.

Where the next visit is far off it is brought forward: all pages are due within the time in which the budget can fetch them, one after the
other, or now.
"""

from __future__ import annotations

import math
from typing import Final

from optimal_frontier.frontier.admitting.revival import due_at, forced
from optimal_frontier.frontier.judging.waits import shortest_wait
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import read_published
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, RETIRED, UNCONDITIONAL, Row

#: Why a page is left as it is.
GONE: Final = "retired"


def fetches_per_second(namespace: Namespace, settings: FrontierSettings) -> float:
    """Return how many revisits a second the last plan counted with, else CRAWL_RATE; inf where neither says it."""
    planned = sum(read_published(namespace, k)[0].revisit_budget for k in range(namespace.partitions))
    return planned or settings.crawl_rate or math.inf


class Reparsing:
    """Chooses when pages are due.

    Parameters
    ----------
    pages : int
        How many there are, at most.
    rate : float
        Fetches per second that they may take; inf: all are due now.
    now : float
        Server's time, seconds since the epoch.
    log_prices : list of float
        Log price of a visit, by partition.

    Attributes
    ----------
    span : float
        Seconds in which all pages are due.
    """

    def __init__(self, pages: int, rate: float, now: float, log_prices: list[float]) -> None:
        self.span = pages / rate
        self._rate = rate
        self._now = now
        self._log_prices = log_prices
        self._placed = 0

    def __call__(self, partition: int, row: Row) -> Row | str:
        """Return the row of a page whose next visit brings everything, or why it stays as it is."""
        if row.state == RETIRED:
            return GONE
        if row.state == DONE:
            row = row._replace(state=ONCE, b=max(row.b, 1.0))
        if row.b == 0:
            return row  # its first visit does so anyway
        if math.isinf(self._rate):
            return forced(row) if row.state == ACTIVE else due_at(row, 0.0, UNCONDITIONAL)
        self._placed += 1
        if row.failures and row.state == ACTIVE:
            return row._replace(flags=row.flags | UNCONDITIONAL)
        last = row.b / 1e6
        turn = max(self._now + self._placed / self._rate, last + shortest_wait(row))
        if row.state == ACTIVE:
            wait = max(min(row.a + row.s * self._log_prices[partition], row.l), row.e)
            if last + wait <= turn:
                return row._replace(flags=row.flags | UNCONDITIONAL)
        return due_at(row, turn, UNCONDITIONAL)
