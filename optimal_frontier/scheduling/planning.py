"""The arithmetic of one plan: posteriors and bounds in, revisit rates out. Planner and simulation share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation import posterior_median
from optimal_frontier.optimization import freshness_periodic, solve_periodic

#: Share of the revisit budget that is planned: at load 1 a queue never drains.
LOAD: Final = 0.97
#: Shape of the prior of a page without a bit; its time is pages / budget, so that its mean is the mean revisit rate.
PRIOR_SHAPE: Final = 1.0

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
        Sum of importance x expected freshness.
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
    host: NDArray[np.int64] | None = None,
    host_max_rate: float | Floats = np.inf,
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
    host : ndarray of int, shape (n,), optional
        Host of each page, from 0.
    host_max_rate : float or ndarray, shape (hosts,)
        Most fetches per second to one host, or to each.

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
    # A pinned page stays pinned when its minimum had to be scaled down.
    high = np.where(min_rate >= max_rate, low, max_rate)
    limited = bool(np.isfinite(host_max_rate).all())
    solution = solve_periodic(
        importance,
        change_rate,
        planned,
        objective,
        min_rate=low,
        max_rate=high,
        host=host if limited else None,
        host_max_rate=host_max_rate if limited else None,
    )
    freshness = freshness_periodic(importance, change_rate, solution.rates)
    return RatePlan(solution.rates, change_rate, solution.multiplier, prior_time, freshness, solution.unused, feasible)
