"""`solve_periodic` with host limits: from checked pages and limits to a `Solution`."""

from __future__ import annotations

import numpy as np

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization.guess import first_guess
from optimal_frontier.optimization.hosts import HostMarket
from optimal_frontier.optimization.market import clearing_price
from optimal_frontier.optimization.pages import PricedPages, Spending
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.solution import Solution

#: A price so far below all values that every page would be visited as often as anything allows.
_NEXT_TO_NOTHING = 2.0**-110


def solve_with_hosts(pages: PricedPages, limits: Floats, budget: float, unit: float) -> Solution:
    """The optimum under host limits. `unit` is the cost of a visit if all cost the same; `budget` is in visits then."""
    least = pages.minimum_spending()
    if least > budget * (1 + 1e-12):
        raise InfeasibleBudgetError(
            f"the minimum rates need {least * unit:.6g} of a bandwidth of {budget * unit:.6g}: {(least - budget) * unit:.6g} too much"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        market = HostMarket(pages, limits)
        rates = market.rates
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
            return Solution(rates, pages.settle(rates, top).objective, pages.best_marginal(rates) / unit, 0.0, 0.0)
        rates[:] = 0.0
        if _most(market) <= budget * (1 + 1e-12):
            return _all_limits_met(market, top * _NEXT_TO_NOTHING, budget, unit)
        multiplier = _clear(market, budget, least, top, guess)
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
    market.scale_to_limits()
    if pages.high is not None:
        maxima = np.empty(pages.size)
        pages.fill_bounds(maxima, maximum=True)
        np.copyto(rates, maxima, where=(market.surcharge == 0)[market.host])
    quality = pages.settle(rates, price, surcharge=market.surcharge)
    return Solution(rates, quality.objective, 0.0, max(0.0, budget - quality.total) * unit, quality.residual)


def _clear(market: HostMarket, budget: float, least: float, top: float, guess: float) -> float:
    """Multiplier, by a search in which the surcharges are settled for every trial."""
    dear = (np.zeros(0), market.surcharge, least)
    cheap = (np.zeros(0), 0.0)

    def trial(price: float) -> Spending:
        nonlocal dear, cheap
        now = market.settle(price)
        if now.total > budget:
            cheap = (market.rates.copy(), now.total)
        else:
            dear = (market.rates.copy(), market.surcharge.copy(), now.total)
        return now

    clearing = clearing_price(trial, budget, least, top, guess or 0.5 * top, 1e-8)
    if clearing.cheaper is not None:  # spending jumps over the budget between two neighbouring prices
        rates, market.surcharge, spent = dear
        if not rates.size:
            rates = np.zeros(market.pages.size)
            market.pages.fill_bounds(rates, maximum=False)
            market.surcharge = np.zeros(market.limits.size)
        more, spent_more = cheap
        market.rates[:] = rates + (budget - spent) / (spent_more - spent) * (more - rates)
    return clearing.price


def _finish(market: HostMarket, multiplier: float, budget: float, unit: float) -> Solution:
    """Make the sums exact and judge the result."""
    pages, rates = market.pages, market.rates
    if pages.cost is None:
        market.scale_to_limits()
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
