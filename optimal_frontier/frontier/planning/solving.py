"""From what is believed of pages to the one price: revisit rates, hosts' prices, the response of the crawl to the price, its stretch.

The planner solves with it for the crawl, and `curve` for budgets that the crawl does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.planning.host_prices import extra_prices, marginal_values
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.optimization import freshness_periodic, freshness_poisson, solve_periodic
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded
from optimal_frontier.scheduling.numbers import MOST_SLOPE
from optimal_frontier.scheduling.planning import fit_beside, fit_minima

#: Largest number that solvers are given, and the inverse of the smallest above 0.
_FAR: Final = 1e99
#: Where the budget serves all pages as often as they may be visited: the price lies so far below the median of what their visits are worth
#: at most, in logarithms.
_FREE: Final = 20.0
#: Pages with update times and all others are at one price when what the former buy moves by less than this share of the budget.
_LITTLE: Final = 1e-4
_HALVINGS: Final = 12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """What a plan is made from; n pages.

    Attributes
    ----------
    importance, change_rate : ndarray (n,)
        Weights, and the believed rates, per second.
    min_rate, max_rate : ndarray (n,)
        Bounds of the crawl, visits per second; equal for pinned pages.
    asked : ndarray (n,)
        Least rate that exploration asks for beside them, visits per second.
    is_even : bool
        Exploration visits all pages at just that rate.
    host : ndarray of int (n,)
        From 0.
    limit : ndarray (hosts,) or None
        Most revisits per second of each host.
    objective, policy : str
        OBJECTIVE and POLICY.
    timed : TimedPages or None
        Those among the pages that have update times.
    """

    importance: Floats
    change_rate: Floats
    min_rate: Floats
    max_rate: Floats
    asked: Floats
    is_even: bool
    host: Ints
    limit: Floats | None
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]
    timed: TimedPages | None = None


@dataclass(frozen=True)
class Solved:
    """A plan.

    Attributes
    ----------
    rates : ndarray (n,)
        Revisit rates, visits per second.
    multiplier : float
        What one more fetch per second would add to the objective; 0 where the budget serves all.
    log_price : float
        Its logarithm; where it is 0, a price low enough for all pages to be visited as often as they may be.
    extra : ndarray (hosts,)
        What each host adds to that.
    response : ndarray (n,)
        By how many visits' worth of waits each page answers to the log price: slope over wait, 0 at a bound.
    freshness : float
        Sum of importance x expected freshness.
    unused : float
        Budget that limits of pages and hosts leave, fetches per second.
    stretch : float
        Factor on longest intervals while the budget cannot hold them.
    feasible : bool
        False where intervals asked for had to be scaled down.
    held : int
        Pages that are at a bound which exploration asks for.
    """

    rates: Floats
    multiplier: float
    log_price: float
    extra: Floats
    response: Floats
    freshness: float
    unused: float
    stretch: float
    feasible: bool
    held: int


def solve(problem: Problem, budget: float, start: float = 0.0) -> Solved:
    """Return the plan of a budget for revisits.

    Parameters
    ----------
    problem : Problem
        The pages.
    budget : float
        Fetches per second, all of which are planned: the price follows what visits take, so that none have to be kept free.
    start : float
        Multiplier of the last plan, to start from; 0: none.
    """
    n = len(problem.importance)
    hosts = 0 if problem.limit is None else len(problem.limit)
    if n == 0 or budget <= 0:
        none = np.zeros(n)
        return Solved(none, 0.0, 0.0, np.zeros(hosts), none, 0.0, max(budget, 0.0), 1.0, True, 0)
    least = np.minimum(problem.min_rate, problem.max_rate)
    low, feasible = fit_minima(least, problem.max_rate, budget, problem.host, np.inf if problem.limit is None else problem.limit)
    stretch = max(1.0, float(least.sum()) / budget)
    low = np.where(low < 1 / _FAR, 0.0, low)
    pinned = problem.min_rate >= problem.max_rate
    # A pinned page stays pinned when its minimum had to be scaled down.
    high = np.where(pinned, low, np.where(problem.max_rate > _FAR, np.inf, np.where(problem.max_rate < 1 / _FAR, 0.0, problem.max_rate)))
    own_low, own_high = low, high
    limit: Floats | float = np.inf if problem.limit is None else problem.limit
    asked = np.clip(problem.asked, low, np.maximum(low, high))
    low = fit_beside(low, asked, budget, None if problem.limit is None else problem.host, limit)
    high = np.where(pinned, low, low if problem.is_even else np.maximum(low, high))
    importance = np.clip(problem.importance, 1 / _FAR, _FAR)
    change_rate = np.where(problem.change_rate < 1 / _FAR, 0.0, np.minimum(problem.change_rate, _FAR))

    def steady(least: Floats, most: Floats) -> tuple[Floats, float, float]:
        if problem.policy == "poisson":
            found = solve_poisson_bounded(
                importance, change_rate, budget, least, most, None if problem.limit is None else problem.host, problem.limit
            )
        else:
            found = solve_periodic(
                importance,
                change_rate,
                budget,
                problem.objective,
                min_rate=least,
                max_rate=most,
                host=None if problem.limit is None else problem.host,
                host_max_rate=problem.limit,
                start=start if start > 0 else None,
            )
        return found.rates, found.multiplier, found.unused

    if problem.timed is None:
        rates, multiplier, unused = steady(low, high)
    else:
        rates, multiplier, unused = _beside(problem.timed, steady, low, high, budget, start)
    value = np.zeros(0)
    if problem.limit is not None or multiplier <= 0:
        value = marginal_values(importance, change_rate, rates, problem.objective, problem.policy)
    is_free = (rates > low) & (rates < high) & (change_rate > 0)
    if problem.timed is not None:
        is_free[problem.timed.rows] = False
    log_price = math.log(multiplier) if multiplier > 0 else _low_price(value[(rates > 0) & (value > 0)])
    freshness = _freshness(importance, change_rate, rates, pinned, problem)
    held = np.count_nonzero(((rates <= low) & (low > own_low)) | ((rates >= high) & (high < own_high)))
    return Solved(
        rates,
        multiplier,
        log_price,
        extra_prices(problem.host, rates, is_free, value, problem.limit, log_price),
        _responses(change_rate, rates, is_free, problem.policy),
        freshness,
        unused,
        stretch,
        feasible,
        int(held),
    )


def _low_price(value: Floats) -> float:
    """Return a log price at which pages that have these marginal values at their highest rates are all visited at them."""
    if not len(value):
        return 0.0
    logs = np.log(value)
    return float(max(logs.min(), np.median(logs) - _FREE)) - 1.0


def _responses(change_rate: Floats, rates: Floats, is_free: NDArray[np.bool_], policy: str) -> Floats:
    """Return slope over wait of each page at the price; see `scheduling.numbers.wait_at_price`."""
    answers = np.zeros(len(rates))
    x, rate = change_rate[is_free], rates[is_free]
    if policy == "poisson":
        answers[is_free] = np.minimum(0.5 * (rate + x) / rate, MOST_SLOPE)
        return answers
    r = x / rate
    with np.errstate(over="ignore"):
        # q / (r^2 exp(-r)) with q = 1 - (1 + r) exp(-r).
        answers[is_free] = np.where(r < 1e-3, 0.5 + r / 6.0, np.minimum((np.expm1(r) - r) / (r * r), MOST_SLOPE))
    return answers


def _freshness(importance: Floats, change_rate: Floats, rates: Floats, pinned: NDArray[np.bool_], problem: Problem) -> float:
    apart = np.zeros(len(rates), bool)
    total = 0.0
    if problem.timed is not None:
        rows = problem.timed.rows
        apart[rows] = True
        total += float(importance[rows] @ problem.timed.freshness(rates[rows]))
    if problem.policy == "poisson":
        free = ~pinned & ~apart
        total += freshness_poisson(importance[free], change_rate[free], rates[free])
        apart |= free
    rest = ~apart
    return total + freshness_periodic(importance[rest], change_rate[rest], rates[rest])


def _beside(
    timed: TimedPages,
    steady: Callable[[Floats, Floats], tuple[Floats, float, float]],
    low: Floats,
    high: Floats,
    budget: float,
    start: float,
) -> tuple[Floats, float, float]:
    """Solve with what pages with update times buy at a price, until the others have that price; they take what is left of the budget."""
    rows = timed.rows
    low, high = low.copy(), high.copy()
    room = max(budget - float(np.delete(low, rows).sum()), 0.0)

    def at(price: float) -> tuple[Floats, float, float]:
        bought = timed.rates(np.full(len(rows), price))
        total = float(bought.sum())
        low[rows] = high[rows] = bought if total <= room else bought * (room / total)
        return steady(low, high)

    below, above = 0.0, math.inf
    price = start if start > 0 else timed.top
    found = at(price)
    for _ in range(_HALVINGS):
        multiplier = found[1]
        below, above = (max(below, price), above) if multiplier > price else (below, min(above, price))
        now, then = timed.rates(np.full(len(rows), price)), timed.rates(np.full(len(rows), multiplier))
        if abs(float((now - then).sum())) <= _LITTLE * budget:
            break
        price = multiplier if below < multiplier < above else math.sqrt(max(below, 1e-12 * above) * above)
        found = at(price)
    return found
