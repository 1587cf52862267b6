"""`solve_periodic` with host limits: from checked pages and limits to a `Solution`.

A page on a host at its limit pays the price at which the host spends just that; all others pay the multiplier. Without costs the price of a
host does not depend on the multiplier, so one number solves ``sum over hosts of min(what it would spend at the multiplier, its limit) =
budget``, and the prices of the hosts above their limits at that number are found afterwards, all together.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization.hosts.demand import HostDemand, HostedPages
from optimal_frontier.optimization.hosts.prices import settle_prices
from optimal_frontier.optimization.hosts.surcharges import solve_with_surcharges
from optimal_frontier.optimization.price_search import Clearing, clearing_price
from optimal_frontier.optimization.priced_pages import PricedPages, Spending, odds_are_tiny
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import inner

#: Accepted miss of the budget, relative to the spending of pages between their bounds; the rest is made up by scaling their rates.
_TOLERANCE: Final = 1e-9
#: A price so far below all values that every page would be visited as often as anything allows.
_NEXT_TO_NOTHING: Final = 2.0**-110


def solve_with_hosts(pages: PricedPages, limits: Floats, budget: float, unit: float) -> Solution:
    """The optimum under host limits. `unit` is the cost of a visit if all cost the same; `budget` is in visits then."""
    if pages.host is None:
        raise TypeError("pages without hosts")
    minima = _minima(pages, limits.size)
    least = pages.minimum_spending() if pages.cost is not None else float(minima.sum())
    if least > budget * (1 + 1e-12):
        raise InfeasibleBudgetError(
            f"the minimum rates need {least * unit:.6g} of a bandwidth of {budget * unit:.6g}: {(least - budget) * unit:.6g} too much"
        )
    crowded = np.flatnonzero(minima > limits * (1 + 1e-12))
    if crowded.size:
        at = int(crowded[0])
        raise InfeasibleBudgetError(
            f"host_max_rate[{at}] is {limits[at]:.6g}, but the minimum rates of its pages need {minima[at]:.6g}: "
            f"{minima[at] - limits[at]:.6g} too much"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        crowd = HostedPages(pages, pages.host, limits.size, np.empty(pages.size), np.empty(pages.size))
        rates = crowd.rates
        top = pages.top()
        if top == 0.0:  # nothing is worth a visit
            pages.fill_bounds(rates, maximum=False)
            return Solution(rates, pages.settle(rates, 1.0).objective, 0.0, max(0.0, budget - least) * unit, 0.0)
        if budget - least <= 1e-15 * budget:
            pages.fill_bounds(rates, maximum=False)
            return Solution(rates, pages.settle(rates, top).objective, pages.best_marginal(rates) / unit, 0.0, 0.0)
        if pages.cost is not None:
            del crowd, rates
            return solve_with_surcharges(pages, limits, budget, top)
        most = _maxima(crowd)
        usable = float(np.minimum(most, limits).sum())
        if usable <= budget * (1 + 1e-12):
            return _all_limits_met(crowd, limits, most > limits, top, budget, unit)
        return _search(crowd, limits, minima, budget, least, top, unit)


def _minima(pages: PricedPages, hosts: int) -> Floats:
    """Visits that the minimum rates make to each host."""
    if pages.low is None or pages.host is None:
        return np.zeros(hosts)
    low = pages.low
    if isinstance(low, np.ndarray):
        return np.bincount(pages.host, weights=low, minlength=hosts).astype(np.float64, copy=False)
    minima: Floats = np.bincount(pages.host, minlength=hosts) * np.float64(low)
    return minima


def _maxima(crowd: HostedPages) -> Floats:
    """Visits that the maximum rates make to each host."""
    crowd.pages.fill_bounds(crowd.rates, maximum=True)
    if crowd.pages.high is None:
        np.copyto(crowd.rates, np.inf, where=(crowd.pages.importance > 0) & (crowd.pages.change_rate > 0))
    return crowd.sums(crowd.rates)


def _all_limits_met(crowd: HostedPages, limits: Floats, capped: NDArray[np.bool_], top: float, budget: float, unit: float) -> Solution:
    """More bandwidth than limits and maxima can use: each host is a problem of its own; `crowd.rates` are the maxima."""
    prices = np.zeros(limits.size)
    if capped.any():
        prices[capped] = _cap(crowd, capped, limits, top * _NEXT_TO_NOTHING, _small_interval_prices(crowd, limits), tiny=True)
    # a page at its maximum has no residual, whatever it pays
    quality = crowd.pages.settle(crowd.rates, 0.0, surcharge=np.where(capped, prices, top))
    return Solution(crowd.rates, quality.objective, 0.0, max(0.0, budget - quality.total) * unit, quality.residual)


def _small_interval_prices(crowd: HostedPages, limits: Floats) -> Floats:
    """Prices that are right if every page is visited many times between two changes, at ``change_rate sqrt(value / (2 price))``."""
    pages = crowd.pages
    roots = np.empty(pages.size)
    for block in pages.blocks():
        np.multiply(np.sqrt(pages.value(block, roots[block])), pages.change_rate[block], out=roots[block])
    return 0.5 * (crowd.sums(roots) / limits) ** 2


def _cap(crowd: HostedPages, capped: NDArray[np.bool_], limits: Floats, floor: float, start: Floats, *, tiny: bool) -> Floats:
    """Bring some hosts to their limits, in `crowd.rates`, and return their prices; `floor` is a price known to be too low for all."""
    part, places = crowd.chosen(capped)
    prices = settle_prices(part, limits[capped], floor, start[capped], tiny=tiny)
    crowd.rates[places], crowd.bend[places] = part.rates, part.bend
    return prices


def _search(crowd: HostedPages, limits: Floats, minima: Floats, budget: float, least: float, top: float, unit: float) -> Solution:
    """The multiplier by sweeps over all pages, then the prices of the hosts above their limits."""
    pages, rates = crowd.pages, crowd.rates
    demand = HostDemand(minima, minima)

    def spend(price: float) -> Spending:
        nonlocal demand
        demand = crowd.at(price, tiny=odds_are_tiny(price, top))
        riding = demand.visits <= limits
        slope = inner(demand.slope, riding)
        total = float(np.minimum(demand.visits, limits).sum())
        # what is missing is made up by a first-order step, which must be short and no leap on to a kink
        return Spending(total, min(-slope, total - least), slope)

    clearing = clearing_price(spend, budget, least, top, _first_price(crowd, budget, top), _TOLERANCE)
    multiplier = clearing.price
    tiny = odds_are_tiny(multiplier, top)
    riding = demand.visits <= limits if clearing.cheaper is None else _mix(crowd, limits, clearing, budget, tiny)
    capped = ~riding
    prices = np.full(limits.size, multiplier)
    if capped.any():
        ratio = (demand.visits - minima) / (limits - minima)
        prices[capped] = _cap(crowd, capped, limits, multiplier, multiplier * ratio, tiny=tiny)
    _meet_budget(crowd, riding, budget)
    quality = pages.settle(rates, 0.0, surcharge=prices)
    return Solution(rates, quality.objective, multiplier / unit, 0.0, quality.residual)


def _first_price(crowd: HostedPages, budget: float, top: float) -> float:
    pages = crowd.pages
    total = 0.0
    for block in pages.blocks():
        total += inner(np.sqrt(pages.value(block, crowd.rates[block])), pages.change_rate[block])
    odds = (total / budget) ** 2 / (2 * top)
    return top * max(min(odds / (1 + odds), 1 - 1e-9), 1e-300)


def _mix(crowd: HostedPages, limits: Floats, clearing: Clearing, budget: float, tiny: bool) -> NDArray[np.bool_]:
    """Spending jumps over the budget between two neighbouring prices: mix the rates at both; returns the hosts below their limits."""
    if clearing.cheaper is None:
        raise TypeError("nothing to mix")
    visits_cheap = crowd.at(clearing.cheaper, slope=False, tiny=tiny).visits
    cheap = crowd.rates.copy()
    visits_dear = crowd.at(clearing.price, tiny=tiny).visits
    riding = visits_dear <= limits
    between = visits_cheap - visits_dear
    share = np.where(riding & (between > 0), np.minimum((limits - visits_dear) / between, 1.0), 0.0)  # up to the limit
    gain = float((share * np.where(share > 0, between, 0.0)).sum())
    missing = budget - float(np.minimum(visits_dear, limits).sum())
    if gain > 0:
        crowd.rates += (share * min(missing / gain, 1.0))[crowd.host] * (cheap - crowd.rates)
    return riding


def _meet_budget(crowd: HostedPages, riding: NDArray[np.bool_], budget: float) -> None:
    """Make up for a small miss of the budget by a first-order step of the price that hosts below their limits pay."""
    rates = crowd.rates
    crowd.bend *= riding[crowd.host]
    slope = float(crowd.bend.sum())
    for _ in range(2):  # a page that reaches its bound leaves the others a little more to do
        miss = budget - float(rates.sum())
        if abs(miss) <= 1e-13 * budget or slope == 0:
            break
        rates += crowd.bend * (miss / slope)
        crowd.pages.clip(slice(None), rates)
