"""Evenly spaced visits: the exact optimum of Azar's eq. 6 and of crawlfrontier's T, under bounds, costs and host limits."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InfeasibleBudgetError, InvalidProblemError
from optimal_frontier.optimization.binned import binned_pages, small_interval_price
from optimal_frontier.optimization.market import Clearing, clearing_price
from optimal_frontier.optimization.pages import PricedPages, Spending, odds_are_tiny
from optimal_frontier.optimization.problem import Floats, host_limits, page_or_scalar, page_values, scalar
from optimal_frontier.optimization.solution import Solution

Objective = Literal["freshness", "changes"]


def solve_periodic(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    objective: Objective = "freshness",
    *,
    min_rate: ArrayLike | None = None,
    max_rate: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    host: ArrayLike | None = None,
    host_max_rate: ArrayLike | None = None,
) -> Solution:
    """Best evenly spaced visits within a budget."""
    weights = page_values("importance", importance)
    n = weights.size
    changes = page_values("change_rate", change_rate, n)
    budget = scalar("bandwidth", bandwidth)
    if objective not in ("freshness", "changes"):
        raise InvalidProblemError(f"objective is {objective!r}; expected 'freshness' or 'changes'")
    low = page_or_scalar("min_rate", min_rate, n)
    high = page_or_scalar("max_rate", max_rate, n, infinite=True)
    price = page_or_scalar("cost", cost, n, positive=True)
    if low is not None and high is not None:
        crossed = np.flatnonzero(np.less(high, low))
        if crossed.size:
            at = int(crossed[0])
            raise InvalidProblemError(
                f"min_rate[{at}] is {np.broadcast_to(low, n)[at]}, above max_rate[{at}], {np.broadcast_to(high, n)[at]}"
            )
    limits = host_limits(host, host_max_rate, n)
    if limits is not None:
        raise NotImplementedError("host limits")
    unit = price if isinstance(price, float) else 1.0
    pages = PricedPages(weights, changes, objective == "freshness", price if isinstance(price, np.ndarray) else None, low, high)
    return _solve(pages, budget / unit, unit)


#: Problems from this size on get their first guess of the price from a summary or a sample of the pages.
_LARGE = 20_000
_SAMPLE = 16_384
#: Miss of the budget, relative to the spending of pages between their bounds, from which one first-order step reaches the optimum.
_LAST_STEP = 1e-5


def _solve(pages: PricedPages, budget: float, unit: float) -> Solution:
    """The optimum without host limits. `unit` is the cost of a visit if all cost the same; `budget` is in visits then."""
    rates = np.zeros(pages.size)
    least = _minimum_spending(pages)
    if least > budget * (1 + 1e-12):
        raise InfeasibleBudgetError(
            f"the minimum rates need {least * unit:.6g} of a bandwidth of {budget * unit:.6g}: {(least - budget) * unit:.6g} too much"
        )
    if pages.size == 0:
        return Solution(rates, 0.0, 0.0, budget * unit, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        most = np.inf
        if pages.high is not None:
            _fill(pages, rates, maximum=True)
            most = pages.bandwidth(slice(None), rates)
        if most > budget:
            guess, top = _first_guess(pages, budget, least)
        if most <= budget or top == 0.0:  # the maxima, or a world without anything worth a visit, leave bandwidth
            _fill(pages, rates, maximum=most <= budget)
            quality = pages.settle(rates, 1.0)
            return Solution(rates, quality.objective, 0.0, max(0.0, budget - quality.total) * unit, 0.0)
        if budget - least <= 1e-15 * budget:
            _fill(pages, rates, maximum=False)
            return Solution(rates, pages.settle(rates, top).objective, top / unit, 0.0, 0.0)

        bend = np.empty(pages.size)

        def spend(price: float) -> Spending:
            return pages.spend(price, None, rates, bend, tiny=odds_are_tiny(price, top))

        clearing = clearing_price(spend, budget, least, top, guess, _LAST_STEP)
        multiplier, step = clearing.price, 0.0
        if clearing.cheaper is not None:
            _mix(pages, rates, bend, clearing, budget, top)
        elif clearing.spending.slope < 0:
            step = (budget - clearing.spending.total) / clearing.spending.slope
            multiplier *= 1 + step
        quality = pages.settle(rates, multiplier, bend, step)
        miss = budget - quality.total
        if miss and quality.free > 0:
            _scale_free(pages, rates, 1 + miss / quality.free)
    return Solution(rates, quality.objective + multiplier * miss, multiplier / unit, 0.0, quality.residual)


def _minimum_spending(pages: PricedPages) -> float:
    if pages.low is None:
        return 0.0
    low = np.broadcast_to(np.asarray(pages.low), pages.size)
    return float(sum(pages.bandwidth(block, low[block]) for block in pages.blocks()))


def _first_guess(pages: PricedPages, budget: float, least: float) -> tuple[float, float]:
    """A price to start from, and the highest price at which any page is worth more than its minimum."""
    if pages.size < _LARGE:
        top = pages.top()
        return small_interval_price(pages, budget - least, top) if top else 0.0, top
    if not pages.bounded:
        summary, top = binned_pages(pages)
        if summary.size == 0:
            return 0.0, top
        return _price_of(summary, budget, 0.0, summary.top()) or top * 0.5, top
    top = pages.top()
    sample = pages.sample(-(-pages.size // _SAMPLE))
    share = sample.size / pages.size
    sample_least = _minimum_spending(sample)
    sample_top = sample.top()
    guess = _price_of(sample, sample_least + (budget - least) * share, sample_least, sample_top) if sample_top else 0.0
    return guess or 0.5 * top, top


def _price_of(pages: PricedPages, budget: float, least: float, top: float) -> float:
    """Price at which `pages` spend about the budget; 0 if they cannot."""
    floor = top * 2.0**-100
    if pages.spend(floor).total <= budget or budget <= least:
        return 0.0
    return clearing_price(pages.spend, budget, least, top, max(small_interval_price(pages, budget - least, top), floor), 1e-8).price


def _mix(pages: PricedPages, rates: Floats, more: Floats, clearing: Clearing, budget: float, top: float) -> None:
    """Spending jumps over the budget between two neighbouring prices: meet it by mixing the rates at both. `more` is overwritten."""
    if clearing.cheaper is None:
        return
    spent = pages.spend(clearing.price, None, rates, tiny=odds_are_tiny(clearing.price, top)).total
    spent_more = pages.spend(clearing.cheaper, None, more, tiny=odds_are_tiny(clearing.cheaper, top)).total
    np.subtract(more, rates, out=more)
    np.multiply(more, (budget - spent) / (spent_more - spent), out=more)
    np.add(rates, more, out=rates)


def _fill(pages: PricedPages, rates: Floats, *, maximum: bool) -> None:
    """Minimum rates, or the maximum rates of pages worth a visit."""
    rates[:] = 0.0
    if maximum and pages.high is not None:
        worthy = (pages.importance > 0) & (pages.change_rate > 0)
        np.copyto(rates, pages.high, where=worthy)
    if pages.low is not None:
        np.maximum(rates, pages.low, out=rates)


def _scale_free(pages: PricedPages, rates: Floats, factor: float) -> None:
    """Multiply the rates strictly between their bounds."""
    if pages.low is None and pages.high is None:
        rates *= factor
        return
    free = np.ones(rates.size, bool)
    if pages.low is not None:
        free &= rates > pages.low
    if pages.high is not None:
        free &= rates < pages.high
    np.multiply(rates, factor, out=rates, where=free)
    pages.clip(slice(None), rates)


def periodic_rates_at(
    importance: ArrayLike,
    change_rate: ArrayLike,
    multiplier: float,
    objective: Objective = "freshness",
    *,
    min_rate: ArrayLike | None = None,
    max_rate: ArrayLike | None = None,
) -> Floats:
    """Best rates at a given price of a visit: what a page that came after the plan should get.

    Parameters
    ----------
    importance, change_rate : array_like (n,), or floats for one page
        As in `solve_periodic`.
    multiplier : float
        A plan's `Solution.multiplier`, >= 0.
    objective : {"freshness", "changes"}
    min_rate, max_rate : float or array_like (n,), optional

    Returns
    -------
    ndarray (n,)
        The rates. At a multiplier of 0 a visit costs nothing: pages worth a visit get their maximum rate.

    Raises
    ------
    InvalidProblemError
        Unusable arguments; a multiplier of 0 without maximum rates.

    Examples
    --------
    >>> periodic_rates_at([1.0, 1.0], [1.0, 3.0], 0.5).round(4)
    array([0.5958, 0.    ])
    """
    weights = page_values("importance", np.atleast_1d(importance))
    n = weights.size
    changes = page_values("change_rate", np.atleast_1d(change_rate), n)
    if objective not in ("freshness", "changes"):
        raise InvalidProblemError(f"objective is {objective!r}; expected 'freshness' or 'changes'")
    price = scalar("multiplier", multiplier, infinite=True)
    low = page_or_scalar("min_rate", min_rate, n)
    high = page_or_scalar("max_rate", max_rate, n, infinite=True)
    pages = PricedPages(weights, changes, objective == "freshness", None, low, high)
    rates = np.zeros(n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        top = pages.top() if n else 0.0
        if price == 0.0 and top > 0:
            if high is None or not np.all(np.isfinite(high)):
                raise InvalidProblemError("multiplier is 0 and max_rate leaves the rates without bound")
            _fill(pages, rates, maximum=True)
        elif price >= top:
            _fill(pages, rates, maximum=False)
        else:
            pages.spend(price, None, rates, tiny=odds_are_tiny(price, top))
    return rates
