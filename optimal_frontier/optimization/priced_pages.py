"""Pages that answer a price: given what a visit costs, how often is each page worth visiting, and what does that spend?

Everything runs over blocks of pages that fit in the processor's cache; nothing of size n is allocated beyond the results asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.response import (
    TINY_ODDS,
    ResponseKernel,
    RoughKernel,
    marginal_share,
    marginal_share_series,
)
from optimal_frontier.optimization.sweeps import BLOCK, blockwise, inner

#: Changes between two visits below which ``1 - (1 + r) exp(-r)`` would lose more than four of sixteen digits, and is taken from its series.
_SMALL = 0.01


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
    odds: Floats  #: price / (value - price); working memory of the kernel


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

    def blocks(self) -> Iterator[slice]:
        for start in range(0, self.size, BLOCK):
            yield slice(start, min(start + BLOCK, self.size))

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

        def work(blocks: Iterator[slice]) -> Iterator[float]:
            buffer = np.empty(min(self.size, BLOCK))
            for block in blocks:
                value = self.value(block, buffer[: block.stop - block.start])
                yield float(value.max() if self.cost is None else (value / self.cost[block]).max())

        return max(blockwise(self.size, work, BLOCK), default=0.0)

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
        # A sum by its ufunc: of few pages the method takes twice as long.
        return float(np.add.reduce(rates)) if self.cost is None else inner(rates, self.cost[block])

    def minimum_spending(self) -> float:
        """What the minimum rates spend."""
        if self.low is None:
            return 0.0
        if self.cost is None and not isinstance(self.low, np.ndarray):
            return self.low * self.size
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

        def work(blocks: Iterator[slice]) -> Iterator[None]:
            buffer = np.empty(min(self.size, BLOCK))
            for block in blocks:
                rate = rates[block]
                if not self.bounded:
                    rate *= factor
                else:
                    rate += np.multiply(
                        np.multiply(rate, factor - 1, out=buffer[: rate.size]), self.free(block, rate), out=buffer[: rate.size]
                    )
                    self.clip(block, rate)
                yield None

        blockwise(self.size, work, BLOCK)

    def answers(
        self,
        multiplier: float,
        surcharge: Floats | None,
        rates_out: Floats | None,
        bend_out: Floats | None,
        *,
        tiny: bool,
        blocks: Iterable[slice] | None = None,
    ) -> Iterator[Answer]:
        """The best rates at a price, block by block (all of them, unless told); the arrays of an `Answer` are valid until the next one."""
        width = min(self.size, BLOCK)
        kernel = ResponseKernel(width)
        values, prices, bends, scratch = np.empty((4, width))
        for block in self.blocks() if blocks is None else blocks:
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
            yield Answer(block, rates, bend, price, free, kernel.odds[:m])

    def spend(
        self,
        multiplier: float,
        surcharge: Floats | None = None,
        rates_out: Floats | None = None,
        bend_out: Floats | None = None,
        *,
        tiny: bool = False,
    ) -> Spending:
        """What the pages spend at a price; rates and their derivative by log(price) go to the arrays given. About 7 ns a page and core."""
        return self._spend(multiplier, surcharge, rates_out, bend_out, tiny, 0.0)[0]

    def spend_and_watch(
        self, multiplier: float, rates_out: Floats, bend_out: Floats, closeness: float, *, tiny: bool = False
    ) -> tuple[Spending, Integers]:
        """`spend`, and the pages whose value is that close to the price; their derivatives, good for no finite step, are left out."""
        return self._spend(multiplier, None, rates_out, bend_out, tiny, closeness)

    def _spend(
        self, multiplier: float, surcharge: Floats | None, rates_out: Floats | None, bend_out: Floats | None, tiny: bool, closeness: float
    ) -> tuple[Spending, Integers]:
        nobody = np.empty(0, np.int64)
        if not self.size:
            return Spending(0.0, 0.0, 0.0), nobody

        def work(blocks: Iterable[slice]) -> Iterator[tuple[Spending, Integers]]:
            for answer in self.answers(multiplier, surcharge, rates_out, bend_out, tiny=tiny, blocks=blocks):
                near = nobody
                if closeness:
                    near = (np.abs(answer.odds, out=answer.odds) > 1 / closeness).nonzero()[0]
                    answer.bend[near] = 0.0
                total = self.bandwidth(answer.block, answer.rates)
                spending = Spending(total, answer.free if self.bounded else total, self.bandwidth(answer.block, answer.bend))
                yield spending, near + answer.block.start

        if self.size <= BLOCK:
            return next(work((slice(0, self.size),)))
        spendings, near = zip(*blockwise(self.size, work, BLOCK), strict=True)
        totals, frees, slopes = zip(*spendings, strict=True)
        return Spending(sum(totals), sum(frees), sum(slopes)), np.concatenate(near)

    def rough_total(self, multiplier: float) -> tuple[float, float]:
        """About what the pages spend at a price without surcharges; and the highest price at which any is worth more than its minimum."""

        def work(blocks: Iterator[slice]) -> Iterator[tuple[float, float]]:
            width = min(self.size, BLOCK)
            kernel = RoughKernel(width)
            values, rates = np.empty((2, width))
            for block in blocks:
                m = block.stop - block.start
                rate, value = rates[:m], self.value(block, values[:m])
                if self.cost is not None:
                    value = np.divide(value, self.cost[block], out=values[:m])
                top = float(value.max())
                kernel.visits_per_change(value, multiplier, rate)
                rate *= self.change_rate[block]
                self.clip(block, rate)
                yield self.bandwidth(block, rate), top

        totals, tops = zip(*blockwise(self.size, work, BLOCK), strict=True)
        return sum(totals), max(tops)

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
            Change of log(price), small.
        surcharge : ndarray, optional
            Of each host; `step` must be 0 then.
        """

        def work(blocks: Iterator[slice]) -> Iterator[Quality]:
            width = min(self.size, BLOCK)
            values, prices = np.empty((2, width))
            judge = Judge(self, width)
            for block in blocks:
                m = block.stop - block.start
                rate = rates[block]
                if bend is not None and step:
                    rate += np.multiply(bend[block], step, out=values[:m])
                    self.clip(block, rate)
                yield judge.block(block, rate, self.value(block, values[:m]), self.price(block, multiplier, surcharge, prices[:m]))

        return together(blockwise(self.size, work, BLOCK))


class Judge:
    """Judges rates from the definitions, block by block.

    Parameters
    ----------
    pages : PricedPages
    width : int
        Largest block that will be asked for.
    """

    def __init__(self, pages: PricedPages, width: int) -> None:
        self._pages = pages
        self._changes, self._caught = np.empty((2, width))

    def block(self, block: slice, rate: Floats, value: Floats, price: Floats | float) -> Quality:
        """Return the quality of the rates of one block, given the worth of a visit that sees a change and its price."""
        pages, m = self._pages, rate.size
        change_rate = pages.change_rate[block]
        changes, caught = self._changes[:m], self._caught[:m]
        np.divide(change_rate, rate, out=changes)
        np.fmin(changes, 700.0, out=changes)
        seldom = np.flatnonzero(changes < _SMALL) if float(changes.min()) < _SMALL else None
        few = changes[seldom] if seldom is not None else None
        np.negative(changes, out=caught)
        np.exp(caught, out=caught)
        np.multiply(changes, caught, out=changes)
        np.subtract(1.0, caught, out=caught)
        marginal = np.subtract(caught, changes, out=changes)
        if few is not None:
            marginal[seldom] = marginal_share_series(few)
            caught[seldom] = -np.expm1(-few)
        np.multiply(caught, rate, out=caught)
        objective = inner(caught, value)
        if pages.some_static and pages.freshness:
            objective += inner(pages.importance[block], change_rate == 0)
        total = pages.bandwidth(block, rate)
        if not pages.bounded:  # an unvisited page is worth no more than the price, and its marginal share is 1: it gets residual 0
            marginal *= np.maximum(value, price, out=caught)
            if isinstance(price, np.ndarray):
                marginal /= price
                price = 1.0
            return Quality(objective, max(float(marginal.max()) / price - 1, 1 - float(marginal.min()) / price), total, total)
        marginal *= value
        marginal /= price
        marginal -= 1.0
        free = pages.free(block, rate)
        marginal *= free
        np.multiply(rate, free, out=caught)
        residual = max(float(marginal.max()), -float(marginal.min()))
        if np.isnan(residual):  # 0 x inf: a page at its maximum that is worth more than 1e308 times the price
            residual = max(float(np.nanmax(marginal)), -float(np.nanmin(marginal)))
        return Quality(objective, residual, total, pages.bandwidth(block, caught))


def together(qualities: Iterable[Quality]) -> Quality:
    """The quality of all blocks."""
    objectives, residuals, totals, frees = zip(*qualities, strict=True)
    return Quality(sum(objectives), max(residuals), sum(totals), sum(frees))


def odds_are_tiny(multiplier: float, top: float) -> bool:
    """Whether some page's price may lie so far below its value that the table of the response does not reach it."""
    return multiplier < 4 * TINY_ODDS * top
