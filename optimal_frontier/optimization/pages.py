"""Pages that answer a price: given what a visit costs, how often is each page worth visiting, and what does that spend?

Everything runs over blocks of pages that fit in the processor's cache; nothing of size n is allocated beyond the results asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.response import TINY_ODDS, ResponseKernel, changes_between_visits, marginal_share, marginal_share_series

#: Pages per block: all blocks of one sweep stay in the second-level cache, and inner products stay below the size at
#: which BLAS would start threads (which, on busy cores, wait for each other).
BLOCK = 8192
#: A first-order step in the price is trusted for pages whose value is further from the price than this many steps; others are redone.
_TRUSTED_STEPS = 50.0


class Spending(NamedTuple):
    """What all pages together do at a price."""

    total: float  #: bandwidth spent
    free: float  #: part of it spent by pages strictly between their bounds
    slope: float  #: d total / d log(price), <= 0


class Quality(NamedTuple):
    """How good given rates are."""

    objective: float
    residual: float  #: max |marginal / price - 1| over pages strictly between their bounds
    total: float  #: bandwidth spent
    free: float  #: part of it spent by pages strictly between their bounds


class Answer(NamedTuple):
    """What the pages of one block do at a price."""

    block: slice
    rates: Floats
    bend: Floats  #: d rates / d log(price) of the page; 0 at a bound
    price: Floats | float
    free: float  #: bandwidth spent by pages strictly between their bounds


def block_of(values: Floats | float | None, block: slice) -> Floats | float | None:
    """The part of a per-page argument that belongs to a block; scalars hold for every page."""
    return values[block] if isinstance(values, np.ndarray) else values


@dataclass(slots=True)
class PricedPages:
    """The pages of one problem.

    Attributes
    ----------
    importance, change_rate : ndarray (n,)
        Checked.
    freshness : bool
        True for the freshness objective, False for changes.
    cost, low, high : ndarray (n,), float or None
        Price of one visit in the unit of the budget (None: 1), minimum rate (None: 0), maximum rate (None: inf).
    host : ndarray (n,) of int, or None
        Index into the surcharges, if there are host limits.
    """

    importance: Floats
    change_rate: Floats
    freshness: bool
    cost: Floats | None = None
    low: Floats | float | None = None
    high: Floats | float | None = None
    host: Integers | None = None
    some_static: bool = False  #: some page never changes

    def __post_init__(self) -> None:
        self.some_static = bool(self.importance.size) and float(self.change_rate.min()) == 0.0

    @property
    def size(self) -> int:
        return self.importance.size

    @property
    def bounded(self) -> bool:
        return self.low is not None or self.high is not None

    def blocks(self, width: int | None = None) -> Iterator[slice]:
        width = width or BLOCK
        for start in range(0, self.size, width):
            yield slice(start, min(start + width, self.size))

    def part(self, which: slice | NDArray[np.int64]) -> PricedPages:
        """Some of the pages, without their hosts."""
        cost, low, high = (bound[which] if isinstance(bound, np.ndarray) else bound for bound in (self.cost, self.low, self.high))
        return PricedPages(
            self.importance[which], self.change_rate[which], self.freshness, cost if isinstance(cost, np.ndarray) else None, low, high
        )

    def value(self, block: slice, out: Floats) -> Floats:
        """Worth of a visit that sees a change: importance / change rate for freshness, importance for changes; 0 if it never changes."""
        importance, change_rate = self.importance[block], self.change_rate[block]
        if not self.freshness:
            if not self.some_static:
                return importance
            return np.multiply(importance, change_rate > 0, out=out)
        np.divide(importance, change_rate, out=out)
        if self.some_static:
            out[change_rate == 0] = 0.0
        return out

    def price(self, block: slice, multiplier: float, surcharge: Floats | None, out: Floats) -> Floats | float:
        """Price of one visit to each page: multiplier x cost + surcharge of its host."""
        cost = self.cost
        if surcharge is None or self.host is None:
            return multiplier if cost is None else np.multiply(cost[block], multiplier, out=out)
        np.take(surcharge, self.host[block], out=out, mode="clip")
        if cost is None:
            return np.add(out, multiplier, out=out)
        return np.add(out, cost[block] * multiplier, out=out)

    def clip(self, block: slice, rates: Floats) -> None:
        """Bring rates between their bounds, in place."""
        low, high = block_of(self.low, block), block_of(self.high, block)
        if low is not None:
            np.maximum(rates, low, out=rates)
        if high is not None:
            np.minimum(rates, high, out=rates)

    def free(self, block: slice, rates: Floats) -> NDArray[np.bool_]:
        """Which rates are strictly between their bounds."""
        low, high = block_of(self.low, block), block_of(self.high, block)
        free = np.greater(rates, 0.0 if low is None else low)
        if high is not None:
            free &= rates < high
        return free

    def top(self) -> float:
        """The price at and above which no page is worth more than its minimum rate."""
        best = 0.0
        buffer = np.empty(min(self.size, BLOCK))
        for block in self.blocks():
            value = self.value(block, buffer[: block.stop - block.start])
            if self.cost is not None:
                value = value / self.cost[block]
            best = max(best, float(value.max()))
        return best

    def best_marginal(self, rates: Floats) -> float:
        """Highest worth of one more visit per unit of budget, over the pages below their maxima."""
        best = 0.0
        for block in self.blocks():
            rate = rates[block]
            marginal = self.value(block, np.empty(rate.size)) * marginal_share(np.fmin(self.change_rate[block] / rate, 700.0))
            if self.cost is not None:
                marginal = marginal / self.cost[block]
            high = block_of(self.high, block)
            best = max(best, float(marginal.max() if high is None else marginal.max(where=rate < high, initial=0.0)))
        return best

    def bandwidth(self, block: slice, rates: Floats) -> float:
        """What these rates spend."""
        return float(rates.sum() if self.cost is None else rates @ self.cost[block])

    def minimum_spending(self) -> float:
        """What the minimum rates spend."""
        if self.low is None:
            return 0.0
        low = np.broadcast_to(np.asarray(self.low), self.size)
        return float(sum(self.bandwidth(block, low[block]) for block in self.blocks()))

    def fill_bounds(self, rates: Floats, *, maximum: bool) -> None:
        """Minimum rates, or the maximum rates of pages worth a visit (importance > 0, change rate > 0)."""
        rates[:] = 0.0
        if maximum and self.high is not None:
            np.copyto(rates, self.high, where=(self.importance > 0) & (self.change_rate > 0))
        if self.low is not None:
            np.maximum(rates, self.low, out=rates)

    def scale_free(self, rates: Floats, factor: float) -> None:
        """Multiply the rates strictly between their bounds."""
        if not self.bounded:
            rates *= factor
            return
        np.multiply(rates, factor, out=rates, where=self.free(slice(None), rates))
        self.clip(slice(None), rates)

    def answers(
        self, multiplier: float, surcharge: Floats | None, rates_out: Floats | None, bend_out: Floats | None, *, tiny: bool
    ) -> Iterator[Answer]:
        """The best rates at a price, block by block; the arrays of an `Answer` are valid until the next one."""
        width = min(self.size, BLOCK)
        kernel = ResponseKernel(width)
        values, prices, bends, scratch = np.empty((4, width))
        for block in self.blocks():
            m = block.stop - block.start
            change_rate = self.change_rate[block]
            rates = scratch[:m] if rates_out is None else rates_out[block]
            bend = bends[:m] if bend_out is None else bend_out[block]
            price = self.price(block, multiplier, surcharge, prices[:m])
            kernel.visits_per_change(self.value(block, values[:m]), price, rates, bend, tiny=tiny)
            np.multiply(rates, change_rate, out=rates)
            np.multiply(bend, change_rate, out=bend)
            free = 0.0
            if self.bounded:
                raw = values[:m]
                raw[:] = rates
                self.clip(block, rates)
                inside = raw == rates
                np.multiply(bend, inside, out=bend)
                np.multiply(raw, inside, out=raw)
                free = self.bandwidth(block, raw)
            yield Answer(block, rates, bend, price, free)

    def spend(
        self,
        multiplier: float,
        surcharge: Floats | None = None,
        rates_out: Floats | None = None,
        bend_out: Floats | None = None,
        *,
        tiny: bool = False,
    ) -> Spending:
        """What the pages spend at a price; rates and their derivative by log(price) go to the arrays given. About 5 ns a page."""
        total = free = slope = 0.0
        for answer in self.answers(multiplier, surcharge, rates_out, bend_out, tiny=tiny):
            total += self.bandwidth(answer.block, answer.rates)
            free += answer.free
            slope += self.bandwidth(answer.block, answer.bend)
        return Spending(total, free if self.bounded else total, slope)

    def settle(
        self, rates: Floats, multiplier: float, bend: Floats | None = None, step: float = 0.0, surcharge: Floats | None = None
    ) -> Quality:
        """Take one first-order step in log(price), if asked to, and judge the rates from the definitions.

        Parameters
        ----------
        rates : ndarray (n,)
            Changed in place by ``bend x step``.
        multiplier : float
            Price after the step.
        bend : ndarray (n,), optional
            Derivative of the rates by log(price).
        step : float
            Change of log(price), small; pages whose value is within `_TRUSTED_STEPS` steps of the price are solved afresh.
        surcharge : ndarray, optional
            Of each host; `step` must be 0 then.
        """
        width = min(self.size, BLOCK)
        values, prices, changes_buffer, caught_buffer, marginals = np.empty((5, width))
        objective = residual = total = free_total = 0.0
        margin = _TRUSTED_STEPS * abs(step)
        for block in self.blocks():
            m = block.stop - block.start
            rate, changes, caught, marginal = rates[block], changes_buffer[:m], caught_buffer[:m], marginals[:m]
            value = self.value(block, values[:m])
            price = self.price(block, multiplier, surcharge, prices[:m])
            if bend is not None and step:
                np.multiply(bend[block], step, out=changes)
                np.add(rate, changes, out=rate)
                near = value < np.multiply(price, 1 + margin)
                near &= value > np.multiply(price, 1 - margin)
                if near.any():
                    self._solve_afresh(block, rate, near, value, price)
                self.clip(block, rate)
            np.divide(self.change_rate[block], rate, out=changes)
            np.fmin(changes, 700.0, out=changes)
            np.negative(changes, out=caught)
            np.exp(caught, out=caught)
            np.add(changes, 1.0, out=marginal)
            np.multiply(marginal, caught, out=marginal)
            np.subtract(1.0, marginal, out=marginal)
            np.subtract(1.0, caught, out=caught)
            if float(changes.min()) < 0.03:
                small = changes < 0.03
                marginal[small] = marginal_share_series(changes[small])
                caught[small] = -np.expm1(-changes[small])
            np.multiply(caught, rate, out=caught)
            objective += float(caught @ value)
            if self.bounded:
                np.multiply(marginal, value, out=marginal)
                np.divide(marginal, price, out=marginal)
                np.subtract(marginal, 1.0, out=marginal)
                free = self.free(block, rate)
                np.multiply(marginal, free, out=marginal)
                np.multiply(rate, free, out=changes)
                free_total += self.bandwidth(block, changes)
            else:  # an unvisited page is worth no more than the price, and its marginal share is 1: it gets residual 0
                np.maximum(value, price, out=changes)
                np.multiply(marginal, changes, out=marginal)
                np.divide(marginal, price, out=marginal)
                np.subtract(marginal, 1.0, out=marginal)
            residual = max(residual, float(marginal.max()), -float(marginal.min()))
            total += self.bandwidth(block, rate)
            if self.some_static and self.freshness:
                objective += float(self.importance[block] @ (self.change_rate[block] == 0))
        return Quality(objective, residual, total, free_total if self.bounded else total)

    def _solve_afresh(self, block: slice, rates: Floats, where: NDArray[np.bool_], value: Floats, price: Floats | float) -> None:
        """Rates of a few pages close to the price, where they bend too much for a first-order step."""
        prices = price[where] if isinstance(price, np.ndarray) else price
        gap = value[where] - prices
        odds = prices / np.maximum(gap, 2.0**-60 * prices)
        rates[where] = np.where(gap > 0, self.change_rate[block][where] / changes_between_visits(odds), 0.0)


def odds_are_tiny(multiplier: float, top: float) -> bool:
    """Whether some page's price may lie so far below its value that the table of the response does not reach it."""
    return multiplier < 4 * TINY_ODDS * top
