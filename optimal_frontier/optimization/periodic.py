"""Evenly spaced visits: the exact optimum of Azar's eq. 6 and of crawlfrontier's T, under bounds, costs and host limits."""

from __future__ import annotations

from math import exp
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InfeasibleBudgetError, InvalidProblemError
from optimal_frontier.optimization.hosts import solve_with_hosts
from optimal_frontier.optimization.initial_price import initial_price
from optimal_frontier.optimization.price_search import Clearing, clearing_price
from optimal_frontier.optimization.priced_pages import PricedPages, Spending, odds_are_tiny
from optimal_frontier.optimization.problem import DECADES, Floats, PriceSearch, check_prices, host_limits, rate_bounds
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.validation import check_values, choice, page_array, page_or_scalar, page_values, scalar

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
    start: float | None = None,
) -> Solution:
    """Best evenly spaced visits within a budget.

    Parameters
    ----------
    importance, change_rate : array_like (n,)
        Weight of each page (>= 0), and its changes per unit of time (>= 0). A page of importance 0, or one that never changes, gets its
        minimum rate; one that never changes counts as fresh. Arrays may be read-only or strided; nothing is written to them.
    bandwidth : float
        Budget, >= 0: visits per unit of time, or units of `cost` per unit of time.
    objective : {"freshness", "changes"}
        "freshness": ``sum importance x (rate / change_rate) (1 - exp(-change_rate / rate))``, the importance-weighted share of time
        that the copy is current. "changes": ``sum importance x rate (1 - exp(-change_rate / rate))``, changes seen per unit of time.
    min_rate, max_rate : float or array_like (n,), optional
        Bounds on the rates; equal ones pin a rate. `max_rate` may be inf.
    cost : float or array_like (n,), optional
        Budget that one visit takes (bytes, seconds), > 0; default 1.
    host : array_like (n,) of int, optional
        Host of each page, a non-negative id; ignored without `host_max_rate`.
    host_max_rate : float or array_like (hosts,), optional
        Maximum visits per unit of time of each host, summed over its pages; one number for all, or an array that `host` indexes.
    start : float, optional
        Multiplier of an earlier solution of nearly the same problem, to start the search from. It saves time, if it is close; the answer
        is the same to the stated tolerance.

    Returns
    -------
    Solution
        `unused` is set if maxima and host limits (or a lack of pages worth a visit) leave bandwidth; the rates sum to the rest of it.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.
    InfeasibleBudgetError
        The minimum rates need more than the bandwidth, or than the limit of their host; the message says by how much.

    Notes
    -----
    With ``r = change_rate / rate`` and ``w = importance / change_rate`` (freshness) or ``importance`` (changes), both objectives are
    ``sum w rate (1 - exp(-r))``, and a rate between its bounds has ``w (1 - (1 + r) exp(-r)) = multiplier x cost + surcharge of its host``.
    One number, the multiplier, is searched for; `response` turns a price into rates. A page is visited only if ``w / cost`` exceeds the
    multiplier. O(n) time: a sample finds a price, a rough sweep over all pages corrects it, an exact one and a first-order step end it.
    With host limits (and no costs) the price of a page is the larger of the multiplier and the price at which its host is full, which
    does not depend on the multiplier: the hosts at their limits are searched for by their own pages, all at once. With costs their
    surcharges are settled for every trial of the multiplier. Beside the rates, one array of size n; with host limits about thirteen. From
    200,000 pages on the sweeps use all cores that the process may; results do not depend on it.

    Exact to rounding as far as the objective is concerned: rates are within about 1e-7 of the optimum's, and the loss is of second order.
    Numbers other than 0 must lie within 1e-290 and 1e290.

    References
    ----------
    Azar et al. 2018, eq. 6; Cho and Garcia-Molina 2003; crawlfrontier, *Optimal revisiting algorithm*, T.

    Examples
    --------
    crawlfrontier's two pages: at a low budget the first is not visited at all, at a high one more often than the other.

    >>> solve_periodic([1.0, 5.0], [5.0, 1.0], 0.5, "changes").rates
    array([0. , 0.5])
    >>> solve_periodic([1.0, 5.0], [5.0, 1.0], 9.0, "changes").rates.round(2)
    array([5.89, 3.11])
    """
    weights = page_array("importance", importance)
    n = weights.size
    changes = page_array("change_rate", change_rate, n)
    ranges = check_values("importance", weights, decades=DECADES), check_values("change_rate", changes, decades=DECADES)
    budget = scalar("bandwidth", bandwidth, decades=DECADES)
    choice("objective", objective, ("freshness", "changes"))
    low, high = rate_bounds(min_rate, max_rate, n)
    price = page_or_scalar("cost", cost, n, positive=True, decades=DECADES)
    limits = host_limits(host, host_max_rate, n)
    check_prices(weights, changes, budget, price, ranges=ranges, search=PriceSearch(objective == "freshness"))
    warm = None if start is None else scalar("start", start, infinite=True)
    unit = price if isinstance(price, float) else 1.0
    pages = PricedPages(weights, changes, objective == "freshness", price if isinstance(price, np.ndarray) else None, low, high)
    if limits is not None and n:
        pages.host = limits[0]
        return solve_with_hosts(pages, limits[1], budget / unit, unit)
    return _solve(pages, budget / unit, unit, warm * unit if warm else None)


#: Miss of the budget, relative to the spending of pages between their bounds, from which one first-order step reaches the optimum.
#: The smaller ones are for problems in which that step leads over too many bounds.
_TOLERANCES = (2e-4, 1e-5, 1e-8)
#: Pages whose value is this close to the price are not left to a first-order step: their rates fall to 0 like ``-1 / log(value - price)``.
_CLOSENESS = 0.02
#: First-order step of log(price), a hundredth of that, after which the marginal values of all other pages are right to 1e-6.
_LONGEST_STEP = 2e-4
#: Miss of the budget, relative to the spending of pages between their bounds, that scaling their rates makes up.
_SCALABLE = 2e-7
_EXACT = 1e-12
#: Miss of the budget, relative, that is left as it is.
_ROUNDING = 1e-11
#: Relative miss of the budget that is left as it is.


def _solve(pages: PricedPages, budget: float, unit: float, start: float | None) -> Solution:
    """The optimum without host limits. `unit` is the cost of a visit if all cost the same; `budget` is in visits then."""
    least = pages.minimum_spending()
    if least > budget * (1 + 1e-12):
        raise InfeasibleBudgetError(
            f"the minimum rates need {least * unit:.6g} of a bandwidth of {budget * unit:.6g}: {(least - budget) * unit:.6g} too much"
        )
    if pages.size == 0:
        return Solution(np.zeros(0), 0.0, 0.0, budget * unit, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        rates = np.empty(pages.size)
        most = np.inf
        if pages.high is not None:
            pages.fill_bounds(rates, maximum=True)
            most = pages.bandwidth(slice(None), rates)
        if most > budget:
            guess, top = initial_price(pages, budget, least, start)
            top *= 1 + 1e-15  # multiplier x cost may be rounded to below the value, where a page that changes very often gets many visits
        if most <= budget or top == 0.0:  # the maxima, or a world without anything worth a visit, leave bandwidth
            pages.fill_bounds(rates, maximum=most <= budget)
            quality = pages.settle(rates, 1.0)
            return Solution(rates, quality.objective, 0.0, max(0.0, budget - quality.total) * unit, 0.0)
        if budget - least <= 1e-15 * budget:
            pages.fill_bounds(rates, maximum=False)
            return Solution(rates, pages.settle(rates, top).objective, pages.best_marginal(rates) / unit, 0.0, 0.0)

        bend = np.empty(pages.size)
        near = np.empty(0, np.int64)

        def spend(price: float) -> Spending:
            nonlocal near
            spending, near = pages.spend_and_watch(price, rates, bend, _CLOSENESS, tiny=odds_are_tiny(price, top))
            return spending

        for tolerance in _TOLERANCES:
            clearing = clearing_price(spend, budget, least, top, guess, tolerance)
            multiplier, step = clearing.price, 0.0
            if clearing.cheaper is not None:
                _mix(pages, rates, bend, clearing, budget, top)
            else:
                step, rates[near] = _last_step(pages.part(near), clearing, budget, top)
                multiplier *= exp(step)
            quality = pages.settle(rates, multiplier, bend, step)
            miss = budget - quality.total
            if clearing.cheaper is not None or (abs(miss) <= _SCALABLE * quality.free and abs(step) <= _LONGEST_STEP):
                break
            guess = multiplier  # the step was long, or some pages met their bounds on the way
        residual = quality.residual
        if abs(miss) > _ROUNDING * budget and quality.free > 0:
            pages.scale_free(rates, 1 + miss / quality.free)
            residual += 2 * abs(miss) / quality.free  # scaling by 1 + e moves a marginal value by 0 to 2 e of itself
    return Solution(rates, quality.objective + multiplier * miss, multiplier / unit, 0.0, residual)


def _last_step(few: PricedPages, clearing: Clearing, budget: float, top: float) -> tuple[float, Floats]:
    """Change of log(price) that meets the budget, if `few` pages answer it exactly and all others in a straight line; their new rates.

    Secants, safeguarded by bisection. Where the few jump over the budget between two neighbouring prices, their rates at both are mixed.
    """
    at, price = clearing.spending, clearing.price

    def answer(step: float) -> tuple[float, Floats]:
        rates = np.empty(few.size)
        if few.size == 0:
            return at.slope * step, rates
        now = price * exp(step)
        return few.spend(now, None, rates, tiny=odds_are_tiny(now, top)).total + at.slope * step, rates

    here = answer(0.0)
    wanted = here[0] + budget - at.total
    limit = 0.25 * _CLOSENESS
    low, high = (0.0, limit) if at.total > budget else (-limit, 0.0)
    dear: tuple[float, Floats] | None = None
    cheap: tuple[float, Floats] | None = None
    step, now, slope = 0.0, here, at.slope or -at.total
    for _ in range(80):
        if abs(now[0] - wanted) <= _EXACT * at.free:
            return step, now[1]
        last, last_step = now, step
        step -= (now[0] - wanted) / slope
        if not low < step < high:
            step = 0.5 * (low + high)
        now = answer(step)
        if now[0] > wanted:
            low, cheap = step, now
        else:
            high, dear = step, now
        if high - low <= 1e-16:
            break
        if step != last_step and (now[0] - last[0]) / (step - last_step) < 0:
            slope = (now[0] - last[0]) / (step - last_step)
    if cheap is not None and dear is not None and cheap[0] > dear[0]:
        return high, dear[1] + (wanted - dear[0]) / (cheap[0] - dear[0]) * (cheap[1] - dear[1])
    return step, now[1]


def _mix(pages: PricedPages, rates: Floats, more: Floats, clearing: Clearing, budget: float, top: float) -> None:
    """Spending jumps over the budget between two neighbouring prices: meet it by mixing the rates at both. `more` is overwritten."""
    if clearing.cheaper is None:
        return
    spent = pages.spend(clearing.price, None, rates, tiny=odds_are_tiny(clearing.price, top)).total
    spent_more = pages.spend(clearing.cheaper, None, more, tiny=odds_are_tiny(clearing.cheaper, top)).total
    np.subtract(more, rates, out=more)
    np.multiply(more, (budget - spent) / (spent_more - spent), out=more)
    np.add(rates, more, out=rates)


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
    weights = page_values("importance", importance, decades=DECADES, alone=True)
    n = weights.size
    changes = page_values("change_rate", change_rate, n, decades=DECADES, alone=True)
    choice("objective", objective, ("freshness", "changes"))
    price = scalar("multiplier", multiplier, infinite=True)
    low, high = rate_bounds(min_rate, max_rate, n)
    pages = PricedPages(weights, changes, objective == "freshness", None, low, high)
    rates = np.zeros(n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        top = pages.top() if n else 0.0
        if price == 0.0 and top > 0:
            if high is None or not np.all(np.isfinite(high)):
                raise InvalidProblemError("multiplier is 0 and max_rate leaves the rates without bound")
            pages.fill_bounds(rates, maximum=True)
        elif price >= top:
            pages.fill_bounds(rates, maximum=False)
        else:
            pages.spend(price, None, rates, tiny=odds_are_tiny(price, top))
    return rates
