"""`solve_periodic` with host limits: from checked pages and limits to a `Solution`."""

from __future__ import annotations

import numpy as np

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization.guess import first_guess
from optimal_frontier.optimization.hosts import HostMarket
from optimal_frontier.optimization.market import clearing_price
from optimal_frontier.optimization.pages import PricedPages
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.solution import Solution

#: A price so far below all values that every page would be visited as often as anything allows.
_NEXT_TO_NOTHING = 2.0**-110


def solve_with_hosts(pages: PricedPages, limits: Floats, budget: float, unit: float) -> Solution:
    """The optimum under host limits. `unit` is the cost of a visit if all cost the same; `budget` is in visits then."""
    rates, bend = np.zeros(pages.size), np.empty(pages.size)
    least = pages.minimum_spending()
    if least > budget * (1 + 1e-12):
        raise InfeasibleBudgetError(
            f"the minimum rates need {least * unit:.6g} of a bandwidth of {budget * unit:.6g}: {(least - budget) * unit:.6g} too much"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        market = HostMarket(pages, limits, rates, bend)
        crowded = np.flatnonzero(market.least > limits * (1 + 1e-12))
        if crowded.size:
            at = int(crowded[0])
            raise InfeasibleBudgetError(
                f"host_max_rate[{at}] is {limits[at]:.6g}, but the minimum rates of its pages need {market.least[at]:.6g}: "
                f"{market.least[at] - limits[at]:.6g} too much"
            )
        guess, top = first_guess(pages, budget, least) if budget > least else (0.0, pages.top())
        if top == 0.0:
            pages.fill_bounds(rates, maximum=False)
            return Solution(rates, pages.settle(rates, 1.0).objective, 0.0, max(0.0, budget - least) * unit, 0.0)
        if budget - least <= 1e-15 * budget:
            pages.fill_bounds(rates, maximum=False)
            return Solution(rates, pages.settle(rates, top).objective, top / unit, 0.0, 0.0)
        if _most(market) <= budget * (1 + 1e-12):
            return _all_limits_met(market, top * _NEXT_TO_NOTHING, budget, unit)
        multiplier = market.clear(budget, guess) if pages.cost is None else None
        if multiplier is None:
            multiplier = _nested(market, budget, least, top, guess)
        return _finish(market, multiplier, budget, unit)


def _most(market: HostMarket) -> float:
    """Bandwidth that maxima and host limits let the pages spend."""
    pages = market.pages
    if pages.cost is not None:
        return market.settle(float(market.top.max()) * _NEXT_TO_NOTHING).total
    if pages.high is None:
        most = np.where(market.top > 0, np.inf, market.least)
    else:
        pages.fill_bounds(market.rates, maximum=True)
        most = market.sums(market.rates)
    return float(np.minimum(most, market.limits).sum())


def _all_limits_met(market: HostMarket, price: float, budget: float, unit: float) -> Solution:
    """More bandwidth than limits and maxima can use: each host is a problem of its own."""
    pages, rates = market.pages, market.rates
    market.settle(price)
    market.scale_to_limits(pages.free(slice(None), rates).astype(np.float64))
    if pages.high is not None:
        maxima = np.empty(pages.size)
        pages.fill_bounds(maxima, maximum=True)
        np.copyto(rates, maxima, where=(market.surcharge == 0)[market.host])
    quality = pages.settle(rates, price, surcharge=market.surcharge)
    return Solution(rates, quality.objective, 0.0, max(0.0, budget - quality.total) * unit, quality.residual)


def _nested(market: HostMarket, budget: float, least: float, top: float, guess: float) -> float:
    """Multiplier by a search in which the host prices are settled for every trial."""
    clearing = clearing_price(market.settle, budget, least, top, guess or 0.5 * top, 1e-8)
    if clearing.cheaper is None:
        return clearing.price
    expensive = market.settle(clearing.price)
    rates, surcharge = market.rates.copy(), market.surcharge.copy()
    cheap = market.settle(clearing.cheaper)
    share = (budget - expensive.total) / (cheap.total - expensive.total)
    market.rates += (1 - share) * (rates - market.rates)
    market.surcharge = np.maximum(surcharge, market.surcharge)
    return clearing.price


def _finish(market: HostMarket, multiplier: float, budget: float, unit: float) -> Solution:
    """Make the sums exact and judge the result."""
    pages, rates = market.pages, market.rates
    market.scale_to_limits(pages.free(slice(None), rates).astype(np.float64))
    riding = pages.free(slice(None), rates).astype(np.float64)
    riding *= (market.surcharge == 0)[market.host]
    miss = budget - pages.bandwidth(slice(None), rates)
    scalable = pages.bandwidth(slice(None), rates * riding)
    if scalable > 0:
        riding *= miss / scalable
        riding *= rates
        rates += riding
        pages.clip(slice(None), rates)
    quality = pages.settle(rates, multiplier, surcharge=market.surcharge)
    return Solution(rates, quality.objective, multiplier / unit, 0.0, quality.residual)
