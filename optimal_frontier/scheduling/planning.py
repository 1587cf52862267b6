"""The arithmetic of one plan: posteriors and bounds in, revisit rates out. Planner and simulation share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation import posterior_median
from optimal_frontier.optimization import Solution, freshness_periodic, freshness_poisson, solve_periodic
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded
from optimal_frontier.scheduling.price import CarriedPrice, answers_to_price

#: Share of the revisit budget that is planned: at load 1 a queue never drains.
LOAD: Final = 0.97
#: Shape of the prior of a page without a bit; its time is pages / budget, so that its mean is the mean revisit rate.
PRIOR_SHAPE: Final = 1.0
#: Largest number that solvers are given, and the inverse of the smallest above 0.
_FAR: Final = 1e99

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RatePlan:
    """A plan.

    Attributes
    ----------
    rates : ndarray, shape (n,)
        Revisit rates, visits per second.
    weight : ndarray, shape (n,)
        The importance that was used.
    change_rate : ndarray, shape (n,)
        The change rates that were used, per second: posterior medians unless others were given.
    median : ndarray, shape (n,)
        Posterior medians, per second.
    multiplier : float
        What one more fetch per second would add to the objective.
    freshness : float
        Sum of importance x expected freshness at the change rates that were used, by the formula of the policy.
    believed : float
        The same at the posterior medians.
    unused : float
        Budget that the maxima leave, fetches per second.
    feasible : bool
        False if minima of the crawl had to be scaled down to fit.
    least : ndarray, shape (n,)
        Minima that were used, those of exploration among them, visits per second.
    most : ndarray, shape (n,)
        Maxima that were used, no less, visits per second.
    held : int
        Pages that are at a bound which exploration asks for.
    """

    rates: Floats
    weight: Floats
    change_rate: Floats
    median: Floats
    multiplier: float
    freshness: float
    believed: float
    unused: float
    feasible: bool
    least: Floats
    most: Floats
    held: int


def fit_minima(
    min_rate: Floats, max_rate: Floats, budget: float, host: NDArray[np.int64], host_max_rate: float | Floats
) -> tuple[Floats, bool]:
    """Scale minima down, each host's to its limit and all of them to the budget, where they do not fit.

    Returns
    -------
    tuple of ndarray and bool
        The minima, and whether they fitted as they were.
    """
    low = np.minimum(min_rate, max_rate)
    feasible = True
    if np.isfinite(host_max_rate).all() and len(low):
        sums = np.bincount(host, weights=low)
        limits = np.broadcast_to(np.asarray(host_max_rate, dtype=np.float64), sums.shape)
        scale = limits / np.maximum(sums, limits)
        if np.any(sums > limits * (1 + 1e-9)):
            feasible = False
        low = low * scale[host]
    total = float(low.sum())
    if total > budget:
        feasible = feasible and total <= budget * (1 + 1e-9)
        low = low * (budget / total)
    return low, feasible


def fit_beside(
    low: Floats, asked: Floats, budget: float, host: NDArray[np.int64] | None = None, host_max_rate: float | Floats = np.inf
) -> Floats:
    """Raise minima that fit to what is asked for, as far as hosts and budget have room: what is asked beyond is scaled down.

    Parameters
    ----------
    low, asked : ndarray, shape (n,)
        Minima that are kept, and what is asked for, no less, visits per second.
    budget : float
        Most that all may have, visits per second.
    host : ndarray of int, shape (n,), optional
        Host of each page, from 0.
    host_max_rate : float or ndarray, shape (hosts,)
        Most visits per second to one host, or to each.
    """
    more = asked - low
    if host is not None and np.isfinite(host_max_rate).all() and len(low):
        room = np.maximum(host_max_rate - np.bincount(host, weights=low), 0.0)
        wanted = np.bincount(host, weights=more)
        more = more * (room / np.maximum(np.maximum(wanted, room), 1 / _FAR))[host]
    total, room = float(more.sum()), max(0.0, budget - float(low.sum()))
    return low + (more * (room / total) if total > room else more)


def plan_rates(
    importance: Floats,
    shape: Floats,
    time: Floats,
    budget: float,
    min_rate: Floats,
    max_rate: Floats,
    *,
    objective: Literal["freshness", "changes"] = "freshness",
    policy: Literal["periodic", "poisson"] = "periodic",
    host: NDArray[np.int64] | None = None,
    host_max_rate: float | Floats = np.inf,
    price: CarriedPrice | None = None,
    slots: NDArray[np.int64] | None = None,
    change_rate: Floats | None = None,
    least_rate: Floats | None = None,
    most_rate: Floats | None = None,
    median: Floats | None = None,
) -> RatePlan:
    """Solve for the revisit rates of pages whose change rates are known as Gamma posteriors.

    Parameters
    ----------
    importance : ndarray, shape (n,)
        Weights above 0.
    shape, time : ndarray, shape (n,)
        Gamma posteriors, time in seconds; shape 0 where a page has no bit yet (the prior is used).
    budget : float
        Fetches per second for revisits; `LOAD` of it is planned.
    min_rate, max_rate : ndarray, shape (n,)
        Bounds, visits per second. Minima that do not fit are scaled down, and the plan is not feasible.
    objective : str
        ``freshness`` (Azar et al. 2018, eq. 6) or ``changes`` (crawlfrontier's T).
    policy : str
        ``periodic``: evenly spaced visits; ``poisson``: memoryless ones (Azar's Problem 2), with the objective ``freshness`` only. Pages
        that are pinned (equal bounds) are visited evenly under both.
    host : ndarray of int, shape (n,), optional
        Host of each page, from 0.
    host_max_rate : float or ndarray, shape (hosts,)
        Most fetches per second to one host, or to each.
    price : CarriedPrice, optional
        Where to start from, and what learns from this plan; saves time, and does not change the answer beyond the solver's tolerance.
        Not used with memoryless visits.
    slots : ndarray of int, shape (n,), optional
        Rising numbers that name the pages from plan to plan; needed with `price`.
    change_rate : ndarray, shape (n,), optional
        What to plan with instead of the posterior medians, per second; see `scheduling.exploration`.
    least_rate, most_rate : ndarray, shape (n,), optional
        Bounds that exploration asks for, visits per second. Those of the crawl go before them, and what does not fit beside these is
        scaled down without a word.
    median : ndarray, shape (n,), optional
        What `believed_rates` gives, if it is known already: a third of the time.

    Returns
    -------
    RatePlan
    """
    n = len(importance)
    if n == 0 or budget <= 0:
        none = np.zeros(n)
        return RatePlan(none, none, none, none, 0.0, 0.0, 0.0, max(budget, 0.0), True, none, none, 0)
    median = believed_rates(shape, time, budget) if median is None else median
    planned = LOAD * budget
    low, feasible = fit_minima(min_rate, max_rate, planned, host if host is not None else np.zeros(n, np.int64), host_max_rate)
    # Solvers take a hundred decades to either side of 1; what users and data bring beyond makes no difference.
    importance = np.clip(importance, 1 / _FAR, _FAR)
    change_rate = median if change_rate is None else _within_reach(change_rate)
    low = np.where(low < 1 / _FAR, 0.0, low)
    # A pinned page stays pinned when its minimum had to be scaled down.
    high = np.where(min_rate >= max_rate, low, np.where(max_rate > _FAR, np.inf, np.where(max_rate < 1 / _FAR, 0.0, max_rate)))
    limited = bool(np.isfinite(host_max_rate).all())
    own_low, own_high = low, high
    if least_rate is not None:
        asked = np.clip(_within_reach(least_rate), low, np.maximum(low, high))
        low = fit_beside(low, asked, planned, host, host_max_rate)
    if most_rate is not None:
        even = np.zeros(n, bool) if least_rate is None else least_rate >= most_rate
        high = np.where(even, low, np.maximum(low, np.minimum(high, most_rate)))
    pages = (importance, change_rate, planned, low, high)
    numbers, limits = (host, host_max_rate) if limited else (None, np.inf)
    if policy == "poisson":
        solution = _solve_memoryless(*pages, numbers, limits)
    else:
        solution = _solve_evenly_spaced(*pages, objective, numbers, limits, price, slots)
    rates = solution.rates
    pinned = min_rate >= max_rate if policy == "poisson" else None
    freshness = _freshness(importance, change_rate, rates, pinned)
    believed = freshness if change_rate is median else _freshness(importance, median, rates, pinned)
    held = np.count_nonzero(((rates <= low) & (low > own_low)) | ((rates >= high) & (high < own_high)))
    said = (solution.multiplier, freshness, believed, solution.unused, feasible)
    return RatePlan(rates, importance, change_rate, median, *said, low, np.maximum(low, high), int(held))


def believed_rates(shape: Floats, time: Floats, budget: float) -> Floats:
    """Return the posterior medians that a plan of all these pages goes by, per second: arguments as in `plan_rates`, of n pages."""
    if not len(shape) or budget <= 0:
        return np.zeros(len(shape))
    known = shape > 0
    return _within_reach(posterior_median(np.where(known, shape, PRIOR_SHAPE), np.where(known, time, len(shape) / budget)))


def _within_reach(rate: Floats) -> Floats:
    return np.where(rate < 1 / _FAR, 0.0, np.minimum(rate, _FAR))


def _freshness(importance: Floats, change_rate: Floats, rates: Floats, pinned: NDArray[np.bool_] | None) -> float:
    """Sum of importance x freshness of evenly spaced visits, or of memoryless ones to all but the pages that are pinned."""
    if pinned is None:
        return freshness_periodic(importance, change_rate, rates)
    free = ~pinned
    total = freshness_poisson(importance[free], change_rate[free], rates[free])
    return total + freshness_periodic(importance[pinned], change_rate[pinned], rates[pinned])


def _solve_evenly_spaced(
    importance: Floats,
    change_rate: Floats,
    planned: float,
    low: Floats,
    high: Floats,
    objective: Literal["freshness", "changes"],
    host: NDArray[np.int64] | None,
    host_max_rate: float | Floats,
    price: CarriedPrice | None,
    slots: NDArray[np.int64] | None,
) -> Solution:
    start = None
    if price is not None and slots is not None:
        start = price.estimate(slots, importance, change_rate, planned)
    solution = solve_periodic(
        importance,
        change_rate,
        planned,
        objective,
        min_rate=low,
        max_rate=high,
        host=host,
        host_max_rate=None if host is None else host_max_rate,
        start=start,
    )
    if price is not None and slots is not None:
        answers = answers_to_price(importance, change_rate, solution.rates, low, high, host, host_max_rate, solution.multiplier, objective)
        price.settle(solution.rates, answers, solution.multiplier)
    return solution


def _solve_memoryless(
    importance: Floats,
    change_rate: Floats,
    planned: float,
    low: Floats,
    high: Floats,
    host: NDArray[np.int64] | None,
    host_max_rate: float | Floats,
) -> Solution:
    limits = None
    if host is not None:
        limits = np.broadcast_to(np.asarray(host_max_rate, dtype=np.float64), int(host.max(initial=-1)) + 1)
    return solve_poisson_bounded(importance, change_rate, planned, low, high, host, limits)
