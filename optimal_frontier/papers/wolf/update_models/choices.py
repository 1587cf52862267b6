"""The crawl times of all quasi-deterministic pages of a model, chosen once for an interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.papers.wolf.update_models.chosen_times import Segments, best_gains, best_nodes, greedy_choices
from optimal_frontier.papers.wolf.update_models.potential_updates import entry

Method = Literal["greedy", "exact"]
#: Entries of an array of a block, pages x times (greedy) or pages x times^2 (exact): the more, the fewer calls of numpy; the fewer, the
#: nearer the core they stay.
_ENTRIES: Final = {"greedy": 1 << 17, "exact": 1 << 20}


@dataclass(frozen=True)
class Curves:
    """What was chosen for an interval.

    Attributes
    ----------
    interval : float
    gains : ndarray (Q + 2, n)
        What the first crawl takes off, the second, and so on; the last row is 0.
    staleness : ndarray (Q + 2, n)
        By crawls.
    order : ndarray of int (Q + 1, n) or None
        Times in the order in which they are crawled, 0 for time 0, 1 for the first potential time; None where they are not nested.
    """

    interval: float
    gains: Floats
    staleness: Floats
    order: NDArray[np.int32] | None


class Choices:
    """Crawl times of all pages, chosen when first asked for; parts of a model share them.

    Parameters
    ----------
    times, probabilities : ndarray (n, Q)
    fresh : ndarray (n,)
    method : {"greedy", "exact"}
    pages : tuple
        (n,), or () for a single page, for messages.
    """

    def __init__(self, times: Floats, probabilities: Floats, fresh: Floats, method: Method, pages: tuple[int, ...]) -> None:
        self.times = times
        self.probabilities = probabilities
        self._fresh = fresh
        self._method = method
        self._pages = pages
        self._kept: Curves | None = None
        self._choosing = Lock()

    def curves(self, interval: float) -> Curves:
        """Return what was chosen for an interval; the last one asked for is kept."""
        with self._choosing:  # parts may be asked by several threads
            if self._kept is None or self._kept.interval != interval:
                late = self.times > interval
                if late.any():
                    where = entry("times", late, self._pages)
                    raise InvalidProblemError(f"{where} is {self.times[late][0]}, after the end of the interval, {interval}")
                self._kept = self._choose(interval)
            return self._kept

    def nodes(self, interval: float, rows: Integers, crawls: Integers) -> NDArray[np.bool_]:
        """Return which of 0 and the potential times some pages are crawled at, shape (m, Q + 1)."""
        order = self.curves(interval).order
        chosen = np.zeros((len(rows), self.times.shape[1] + 1), bool)
        if order is not None:
            for step, at in enumerate(order):
                pages = np.flatnonzero(crawls > step)
                chosen[pages, at[rows[pages]]] = True
        else:
            for block in self._blocks(len(rows)):
                chosen[block] = best_nodes(self._segments(rows[block], interval), crawls[block])
        return chosen

    def _choose(self, interval: float) -> Curves:
        n, nodes = len(self.times), self.times.shape[1] + 1
        gains = np.zeros((nodes + 1, n))
        order = np.empty((nodes, n), np.int32) if self._method == "greedy" else None
        for block in self._blocks(n):  # in this thread: those of a sweep may be waiting for the answer
            segments = self._segments(block, interval)
            if order is not None:
                gains[:-1, block], order[:, block] = greedy_choices(segments)
            else:
                gains[:-1, block] = best_gains(segments)
        staleness = np.zeros_like(gains)
        np.cumsum(gains[-2::-1], axis=0, out=staleness[-2::-1])  # what more crawls would still take off: exactly 0 after the last
        return Curves(interval, gains, staleness, order)

    def _blocks(self, n: int) -> Iterator[slice]:
        nodes = self.times.shape[1] + 1
        width = max(1, _ENTRIES[self._method] // (nodes if self._method == "greedy" else nodes * nodes))
        return (slice(at, at + width) for at in range(0, n, width))

    def _segments(self, rows: slice | Integers, interval: float) -> Segments:
        times = self.times[rows].T
        ends = np.vstack([np.zeros((1, times.shape[1])), times, np.full((1, times.shape[1]), interval)])
        updates = np.vstack([1.0 - self._fresh[rows], self.probabilities[rows].T])
        return Segments(np.diff(ends, axis=0) / interval, updates)
