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
    change_rate : ndarray, shape (n,)
        The change rates that were used: posterior medians, per second.
    multiplier : float
        What one more fetch per second would add to the objective.
    prior_time : float
        Time of the prior, seconds.
    freshness : float
        Sum of importance x expected freshness, by the formula of the policy.
    unused : float
        Budget that the maxima leave, fetches per second.
    feasible : bool
        False if minima had to be scaled down to fit.
    """

    rates: Floats
    change_rate: Floats
    multiplier: float
    prior_time: float
    freshness: float
    unused: float
    feasible: bool


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

    Returns
    -------
    RatePlan
    """
    n = len(importance)
    if n == 0 or budget <= 0:
        return RatePlan(np.zeros(n), np.zeros(n), 0.0, 0.0, 0.0, max(budget, 0.0), True)
    prior_time = n / budget
    known = shape > 0
    change_rate = posterior_median(np.where(known, shape, PRIOR_SHAPE), np.where(known, time, prior_time))
    planned = LOAD * budget
    low, feasible = fit_minima(min_rate, max_rate, planned, host if host is not None else np.zeros(n, np.int64), host_max_rate)
    # Solvers take a hundred decades to either side of 1; what users and data bring beyond makes no difference.
    importance, change_rate = np.clip(importance, 1 / _FAR, _FAR), np.where(change_rate < 1 / _FAR, 0.0, np.minimum(change_rate, _FAR))
    low = np.where(low < 1 / _FAR, 0.0, low)
    # A pinned page stays pinned when its minimum had to be scaled down.
    high = np.where(min_rate >= max_rate, low, np.where(max_rate > _FAR, np.inf, np.where(max_rate < 1 / _FAR, 0.0, max_rate)))
    limited = bool(np.isfinite(host_max_rate).all())
    pages = (importance, change_rate, planned, low, high)
    numbers, limits = (host, host_max_rate) if limited else (None, np.inf)
    if policy == "poisson":
        solution = _solve_memoryless(*pages, numbers, limits)
        pinned = min_rate >= max_rate
        freshness = freshness_poisson(importance[~pinned], change_rate[~pinned], solution.rates[~pinned])
        freshness += freshness_periodic(importance[pinned], change_rate[pinned], solution.rates[pinned])
    else:
        solution = _solve_evenly_spaced(*pages, objective, numbers, limits, price, slots)
        freshness = freshness_periodic(importance, change_rate, solution.rates)
    return RatePlan(solution.rates, change_rate, solution.multiplier, prior_time, freshness, solution.unused, feasible)


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
