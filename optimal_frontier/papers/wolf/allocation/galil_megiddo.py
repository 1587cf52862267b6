"""The same selection after Galil and Megiddo: weighted medians of the columns' medians, and a binary search in every column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.allocation.first_differences import Columns
from optimal_frontier.papers.wolf.allocation.selection import finish, heaviest


@dataclass(frozen=True)
class _Entry:
    """An entry of the matrix, as ranks see it: by worth, then page, then position."""

    worth: float
    page: int
    #: Crawls of the page with this one.
    position: int


def select_by_medians(columns: Columns, low: Integers, high: Integers, total: int) -> Integers:
    """Return how many entries of each column are among the best, `total` over all, between `low` and `high` in each.

    Notes
    -----
    The median, weighted by their sizes, of the medians of what is left of the columns ranks after a quarter of what is left and before
    another. A binary search in every column counts what ranks no later. One of the quarters leaves, so O(log(n total)) rounds of
    O(n log total) leave O(n) entries, of which the best are selected.
    """
    spare = total - int(low.sum())
    low, high = low.copy(), np.minimum(high, low + spare)
    while spare:
        sizes = high - low
        live = np.flatnonzero(sizes)
        if float(sizes.sum(dtype=np.float64)) <= 4 * columns.n:
            return finish(columns, low, high, spare)
        # Shares of 2^31, so that no sum leaves 64 bits; a column that is 0 by that is too short to matter.
        shares = (sizes[live] / sizes[live].sum(dtype=np.float64) * 2.0**31).astype(np.int64)
        middle = low[live] + (sizes[live] + 1) // 2
        worth = columns.worth(live, middle - 1)
        upper = heaviest(worth, shares, max(1, int(shares.sum()) // 2))
        last = np.flatnonzero(upper & (worth == worth[upper].min()))[-1]
        counted = _counted(columns, low, high, live, _Entry(float(worth[last]), int(live[last]), int(middle[last])))
        before = counted - low[live]
        if before.sum(dtype=np.float64) >= spare:
            high[live] = counted
        else:
            low[live] = counted
            spare -= int(before.sum())
    return low


def _counted(columns: Columns, low: Integers, high: Integers, live: Integers, pivot: _Entry) -> Integers:
    """Position of the last entry of each live column that ranks no later than the pivot, by binary search."""
    least, most = low[live], high[live]
    open_ = np.flatnonzero(least < most)
    while open_.size:
        position = (least[open_] + most[open_] + 1) // 2
        pages = live[open_]
        passes = _no_later(columns.worth(pages, position - 1), pages, position, pivot)
        least[open_[passes]] = position[passes]
        most[open_[~passes]] = position[~passes] - 1
        open_ = open_[least[open_] < most[open_]]
    return least


def _no_later(worth: NDArray[np.float64], pages: Integers, position: Integers, pivot: _Entry) -> NDArray[np.bool_]:
    before = (pages < pivot.page) | ((pages == pivot.page) & (position <= pivot.position))
    ranked: NDArray[np.bool_] = (worth > pivot.worth) | ((worth == pivot.worth) & before)
    return ranked
