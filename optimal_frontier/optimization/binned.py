"""A mergeable summary of the pages, from which the price of a visit follows without looking at the pages again."""

from __future__ import annotations

from math import frexp

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.price_search import clearing_price
from optimal_frontier.optimization.priced_pages import PricedPages, Spending, odds_are_tiny
from optimal_frontier.optimization.problem import Floats, check_prices
from optimal_frontier.optimization.sweeps import inner
from optimal_frontier.validation import choice, one_number, page_or_scalar, page_values, scalar

_SUB_BITS = 6
_SHIFT = 52 - _SUB_BITS
_LOWEST_OCTAVE = -128  # log2 of the lowest value that has a bin of its own
_OCTAVES = 256
#: Powers of ten, either way, of the arguments: products of three, and sums over all pages, are to be doubles.
_DECADES = 100
_BASE = (1023 + _LOWEST_OCTAVE) << _SUB_BITS
BINS = _OCTAVES << _SUB_BITS
#: Pages per step of a bulk update: so many that adding up two rows of bins costs nothing beside them.
_BATCH = 1 << 17


def _bin_index(value: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Bin of each value: its leading bits. Values out of range go to the bins at the ends."""
    index = np.right_shift(value.view(np.int64), _SHIFT)
    np.subtract(index, _BASE, out=index)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= BINS):
        np.clip(index, 0, BINS - 1, out=index)
    return index


class BinnedDual:
    """Sums over pages in 64 bins per octave of value, enough to find the multiplier of any budget.

    A page's *value* is what a visit that sees a change is worth per unit of the budget: ``importance / (change_rate x cost)`` for the
    freshness objective, ``importance / cost`` for changes. The bin of that value holds two sums over its pages, of
    ``change_rate x cost`` and of ``value x change_rate x cost``; their ratio is the value that stands for the bin.

    Parameters
    ----------
    objective : {"freshness", "changes"}

    Notes
    -----
    *Mergeable*: the sums of two summaries of different pages add up to the summary of all of them, so that shards or machines need to
    exchange 16,384 x 3 numbers to agree on one multiplier. *Updates* are O(1): `remove` the page as it was, `add` it as it is. A bin whose
    last page was removed is set to exactly 0; within a bin, rounding accumulates to about 1e-16 of the largest sum it ever held.

    *Error.* A value and the one that stands for it differ by less than ``2 ** (1/64) - 1 = 1.1%``, and as the latter is the mean over the
    bin, first-order terms cancel: spending at a given price is off by less than ``h ** 2`` (1.2e-4) of itself for bins away from the
    price. Pages within 1.1% of the price, the least valuable ones that are visited, add at most ``g(0.011) = 0.15`` x their change rate.
    The rates at the resulting multiplier, scaled to the budget, lose less than 1e-6 of the objective in every world tested (at
    worst 7e-8 with 5,000 pages): the loss is of second order in the error of the multiplier.
    Values outside ``2 ** -128 ... 2 ** 128`` share the end bins.

    Minimum and maximum rates and host limits are not represented; `solve_periodic` handles them exactly.
    """

    def __init__(self, objective: str = "freshness") -> None:
        choice("objective", objective, ("freshness", "changes"))
        self.objective = objective
        self._pages = np.zeros(BINS, np.int64)
        self._change_rate = np.zeros(BINS)
        self._worth = np.zeros(BINS)
        self._top = 0.0

    @property
    def pages(self) -> int:
        """Number of pages that are worth a visit (importance > 0, change rate > 0)."""
        return int(self._pages.sum())

    def add(self, importance: ArrayLike, change_rate: ArrayLike, cost: ArrayLike | None = None) -> None:
        """Count pages in.

        Parameters
        ----------
        importance, change_rate : float or array_like (n,)
        cost : float or array_like (n,), optional
            Per visit, in the unit of the budget; default 1.
        """
        self._update(importance, change_rate, cost, 1)

    def remove(self, importance: ArrayLike, change_rate: ArrayLike, cost: ArrayLike | None = None) -> None:
        """Count pages out; the arguments must be those they were added with.

        Raises
        ------
        InvalidProblemError
            If more pages are removed from a bin than were added to it; nothing is changed then.
        """
        self._update(importance, change_rate, cost, -1)

    def merge(self, other: BinnedDual) -> None:
        """Add another summary of other pages to this one."""
        if not isinstance(other, BinnedDual):
            raise InvalidProblemError(f"other is a {type(other).__name__}; expected a BinnedDual")
        if other.objective != self.objective:
            raise InvalidProblemError(f"other: its objective is {other.objective!r}, not {self.objective!r}")
        self._pages += other._pages
        self._change_rate += other._change_rate
        self._worth += other._worth

    def multiplier(self, bandwidth: float, start: float | None = None) -> float:
        """The price of a visit at which the pages spend `bandwidth`.

        Parameters
        ----------
        bandwidth : float
            >= 0. At 0 the price is that of the most valuable page; without any page worth a visit it is 0.
        start : float, optional
            An earlier multiplier: saves a few of about ten iterations.

        Returns
        -------
        float
            About 0.1 to 1 ms: O(number of bins in use).
        """
        budget = scalar("bandwidth", bandwidth, decades=_DECADES)
        hint = 0.0 if start is None else one_number("start", start)
        bins = self._as_pages()
        if bins.size == 0:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            sums = bins.importance, bins.change_rate
            check_prices(*sums, budget, ranges=((sums[0].min(), sums[0].max()), (sums[1].min(), sums[1].max())))
            top = bins.top()
            if budget == 0.0:
                return top

            def spend(price: float) -> Spending:
                return bins.spend(price, tiny=odds_are_tiny(price, top))

            guess = hint if top * 1e-300 < hint < top else small_interval_price(bins, budget, top)
            return clearing_price(spend, budget, 0.0, top, guess, 1e-8).price

    def spending(self, multiplier: float) -> float:
        """Bandwidth that the pages spend at a price > 0."""
        price = scalar("multiplier", multiplier, positive=True)
        bins = self._as_pages()
        if bins.size == 0:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            return bins.spend(price, tiny=odds_are_tiny(price, bins.top())).total

    def _as_pages(self) -> PricedPages:
        """One page of the freshness problem per bin in use: ``importance / change_rate`` is the value that stands for the bin."""
        used = np.flatnonzero((self._pages > 0) & (self._change_rate > 0) & (self._worth > 0))
        return PricedPages(self._worth[used], self._change_rate[used], True)

    def _update(self, importance: ArrayLike, change_rate: ArrayLike, cost: ArrayLike | None, sign: int) -> None:
        if isinstance(importance, float) and isinstance(change_rate, float) and (cost is None or isinstance(cost, float)):
            self._update_one(importance, change_rate, 1.0 if cost is None else cost, sign)
            return
        weights = page_values("importance", importance, decades=_DECADES, alone=True)
        changes = page_values("change_rate", change_rate, weights.size, decades=_DECADES, alone=True)
        prices = page_or_scalar("cost", cost, weights.size, positive=True, decades=_DECADES)
        self.update_checked(weights, changes, prices, sign)

    def update_checked(self, importance: Floats, change_rate: Floats, cost: Floats | float | None, sign: int = 1) -> None:
        """`add` (sign 1) or `remove` (-1) for arrays that are known to be valid."""
        pages, changes, worth = np.zeros(BINS, np.int64), np.zeros(BINS), np.zeros(BINS)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for start in range(0, importance.size, _BATCH):
                block = slice(start, start + _BATCH)
                weight, change = importance[block], change_rate[block]
                price = cost[block] if isinstance(cost, np.ndarray) else cost
                if min(float(weight.min()), float(change.min())) == 0.0:
                    live = (weight > 0) & (change > 0)
                    weight, change = weight[live], change[live]
                    price = price[live] if isinstance(price, np.ndarray) else price
                spent = change if price is None else change * price
                gained = weight if self.objective == "freshness" else weight * change
                index = _bin_index(
                    np.divide(gained, spent) if self.objective == "freshness" or price is not None else np.ascontiguousarray(weight)
                )
                pages += np.bincount(index, minlength=BINS)
                changes += np.bincount(index, weights=spent, minlength=BINS)
                worth += np.bincount(index, weights=gained, minlength=BINS)
        if sign < 0 and (pages > self._pages).any():
            raise InvalidProblemError("importance, change_rate: these pages were not added, or not with these values")
        self._pages += sign * pages
        self._change_rate += sign * changes
        self._worth += sign * worth
        if sign < 0:
            empty = self._pages == 0
            self._change_rate[empty] = 0.0
            self._worth[empty] = 0.0

    def _update_one(self, importance: float, change_rate: float, cost: float, sign: int) -> None:
        """One page, without an array: a few microseconds."""
        scalar("importance", importance, decades=_DECADES)
        scalar("change_rate", change_rate, decades=_DECADES)
        scalar("cost", cost, positive=True, decades=_DECADES)
        spent = change_rate * cost
        gained = importance if self.objective == "freshness" else importance * change_rate
        if gained == 0.0 or spent == 0.0:
            return
        mantissa, exponent = frexp(gained / spent)  # mantissa in [0.5, 1)
        index = ((exponent - 1 - _LOWEST_OCTAVE) << _SUB_BITS) + int((2 * mantissa - 1) * (1 << _SUB_BITS))
        index = min(max(index, 0), BINS - 1)
        if sign < 0 and self._pages[index] < 1:
            raise InvalidProblemError("importance, change_rate: this page was not added, or not with these values")
        self._pages[index] += sign
        self._change_rate[index] += sign * spent
        self._worth[index] += sign * gained
        if self._pages[index] == 0:
            self._change_rate[index] = self._worth[index] = 0.0


def small_interval_price(pages: PricedPages, budget: float, top: float) -> float:
    """First guess of the price: right if every page were visited many times between two changes, and below `top` in any case.

    Then the rate is ``change_rate sqrt(value / (2 price))``.
    """
    if budget <= 0:
        return 0.5 * top
    total = 0.0
    buffer = np.empty(pages.size)
    for block in pages.blocks():
        value = pages.value(block, buffer[block])
        if pages.cost is not None:
            value = value * pages.cost[block]
        total += inner(np.sqrt(value), pages.change_rate[block])
    odds = total / budget / (2 * top) * (total / budget)
    share = odds / (1 + odds) if odds < 1e9 else 1 - 1e-9
    return top * max(share, 1e-300)
