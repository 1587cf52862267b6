"""Sorted times of many pages, one row a page, joined in one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Times of events by page.

    Attributes
    ----------
    times : ndarray (m,)
        The rows joined, each in rising order.
    starts : ndarray of int (n + 1,)
        Where each row begins; the last one is m.
    """

    times: Floats
    starts: Ints

    @classmethod
    def joined(cls, pages: NDArray[Any], times: Floats, n: int) -> Ragged:
        """Return the rows of events that come in any order."""
        # What `np.lexsort` returns, in half of its time: numbers of 16 bits are sorted digit by digit.
        order = np.argsort(times, kind="stable")
        order = order[np.argsort(pages[order].astype(np.min_scalar_type(n)), kind="stable")]
        starts = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(pages, minlength=n), out=starts[1:])
        return cls(np.asarray(times[order], dtype=np.float64), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Ints:
        """Events of each page."""
        return np.diff(self.starts)

    def rows(self, pages: NDArray[Any]) -> Ragged:
        """Return some of the rows, in that order."""
        counts = self.counts[pages]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(self.starts[pages] - starts[:-1], counts) + np.arange(starts[-1])
        return Ragged(self.times[places], starts)

    def since(self, begin: float) -> Ragged:
        """Return what comes after a time, counted from there."""
        inside = self.times > begin
        starts = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)[self.starts]
        return Ragged(self.times[inside] - begin, starts)

    def after(self, pages: Ints, at: Floats) -> Ints:
        """Return the position in `times` of the first event of each page after a time; the end of its row if there is none.

        An event at that very time is before it. Bisection of all at once: O(log of the longest row) sweeps, and exact, which adding
        a page's number to its times would not be.
        """
        low, high = self.starts[pages], self.starts[pages + 1]
        if len(pages) == 1:
            return low + np.searchsorted(self.times[low[0] : high[0]], at, side="right")
        while True:
            open_ = low < high
            if not open_.any():
                return low
            middle = (low + high) >> 1
            later = np.zeros(len(low), bool)
            later[open_] = self.times[middle[open_]] > at[open_]
            high = np.where(open_ & later, middle, high)
            low = np.where(open_ & ~later, middle + 1, low)

    def next_time(self, pages: Ints, at: Floats) -> Floats:
        """Return the time of the first event of each page after a time; inf if there is none."""
        position = self.after(pages, at)
        there = position < self.starts[pages + 1]
        found = np.full(len(pages), np.inf)
        found[there] = self.times[position[there]]
        return found
