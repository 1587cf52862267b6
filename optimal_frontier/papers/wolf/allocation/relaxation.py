"""The start from the continuous problem: whole numbers at a price that is nearly right, and a selection for the few crawls left."""

from __future__ import annotations

from typing import Final

import numpy as np

from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.allocation.first_differences import Columns
from optimal_frontier.papers.wolf.allocation.selection import select

#: Pages of the sample that tells the price.
_SAMPLE: Final = 16384
#: Below this many times the sample the selection alone is as fast.
_WORTHWHILE: Final = 4
#: The price is raised by this much above the sample's, and by four times as much whenever that was too little: what a price
#: too high leaves is cheaply added, and what one too low gives out cannot be taken back.
_MARGIN: Final = 0.01
_TRIALS: Final = 4


def select_from_relaxation(columns: Columns, low: Integers, high: Integers, total: int) -> Integers:
    """Return what `select` returns, sooner where there are many pages.

    Notes
    -----
    Every entry that is worth more than some price is among the best, if there are no more than `total` of these. A sample tells the
    price; the models say what each page would get at it, were crawls no whole numbers, which is the whole number or next to it; and
    `select` adds the few entries that are missing, of which the first are among the next of each column.
    """
    rng = np.random.default_rng(columns.n)
    if columns.n < _WORTHWHILE * _SAMPLE:
        return select(columns, low, high, total)
    sample = np.sort(rng.choice(columns.n, _SAMPLE, replace=False))
    price = _price(columns.part(sample), low[sample], high[sample], (total - int(low.sum())) / columns.n)
    margin = _MARGIN
    for _ in range(_TRIALS):
        if not price > 0:
            break
        counts = counts_above(columns, price * (1 + margin), low, high)
        if int(counts.sum()) <= total:
            return select(columns, counts, high, total)
        margin *= 4
    return select(columns, low, high, total)


def _price(sample: Columns, low: Integers, high: Integers, spare: float) -> float:
    """What the last crawl is worth if the sample's pages get `spare` crawls each, besides `low`, on average; 0 if they cannot."""
    wanted = round(spare * sample.n)
    high = np.minimum(high, low + wanted)
    if wanted == 0 or high.sum(dtype=np.float64) < low.sum(dtype=np.float64) + wanted:
        return 0.0
    counts = select(sample, low, high, int(low.sum()) + wanted)
    given = np.flatnonzero(counts > low)
    return float(sample.worth(given, counts[given] - 1).min())


def counts_above(columns: Columns, price: float, low: Integers, high: Integers) -> Integers:
    """Return how many entries of each column are worth more than a price, from `low` to `high`.

    Tries where the continuous problem has it first, then goes on in steps that double, and between two trials halves.
    """
    least, most = low.copy(), high.copy()
    trial = np.clip(np.rint(columns.relaxed(price, low)).astype(np.int64), low + 1, high)
    live = np.flatnonzero(least < most)
    reach = 1
    while live.size:
        passes = columns.worth(live, trial[live] - 1) > price
        least[live[passes]] = trial[live[passes]]
        most[live[~passes]] = trial[live[~passes]] - 1
        live = live[least[live] < most[live]]
        under, over = least[live], most[live]
        upwards, downwards = over == high[live], under == low[live]
        trial[live] = np.select(
            [upwards & ~downwards, downwards & ~upwards],
            [np.minimum(under + reach, over), np.maximum(over + 1 - reach, under + 1)],
            (under + over + 1) // 2,
        )
        reach *= 2
    return least
