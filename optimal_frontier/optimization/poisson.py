"""Memoryless visits: Azar's Problem 2 and its exact solution, Algorithm 2."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded
from optimal_frontier.optimization.poisson_sweeps import solve_in_sweeps
from optimal_frontier.optimization.problem import DECADES, Floats, PriceSearch, check_prices, host_limits, rate_bounds
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import inner
from optimal_frontier.optimization.water_level import level_by_sorting, level_without_sorting
from optimal_frontier.validation import check_values, choice, page_array, scalar

Method = Literal["sort-free", "sort"]
#: Depth of a page that is not worth a visit at any price.
_BOTTOMLESS = 1e300
_BLOCK = 8192
#: Pages from which sweeps over blocks are worth their fixed cost.
_MANY = 20_000


def solve_poisson(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    *,
    method: Method = "sort-free",
    min_rate: ArrayLike | None = None,
    max_rate: ArrayLike | None = None,
    host: ArrayLike | None = None,
    host_max_rate: ArrayLike | None = None,
) -> Solution:
    """Best rates of memoryless visits within a budget.

    Maximises ``sum importance x rate / (rate + change_rate)`` subject to ``sum rate = bandwidth``.

    Parameters
    ----------
    importance, change_rate : array_like (n,)
        Weight of each page (>= 0), and its changes per unit of time (>= 0). A page that never changes counts fully without a visit.
    bandwidth : float
        Visits per unit of time, >= 0.
    method : {"sort-free", "sort"}
        "sort" is Algorithm 2 as printed, for problems without bounds; "sort-free" reaches the same rates in a few linear passes and is the
        faster.
    min_rate, max_rate, host, host_max_rate : optional
        Bounds and limits of hosts, as in `solve_periodic`.

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
    With ``m`` the multiplier, ``rate = sqrt(importance x change_rate / m) - change_rate`` where positive (eq. 11). O(n) time in practice,
    O(n log n) with "sort"; two arrays of size n beside the rates.

    By Remark 4 the same rates maximise the freshness of pages whose copy decays as ``exp(-change_rate x age)``.

    References
    ----------
    Azar, Horvitz, Lubetzky, Peres, Shahaf 2018, *Tractable near-optimal policies for crawling*, Problem 2, Algorithm 2, eqs. 5 and 11.

    Examples
    --------
    >>> solve_poisson([1.0, 1.0], [1.0, 9.0], 1.0).rates
    array([1., 0.])
    """
    weights = page_array("importance", importance)
    changes = page_array("change_rate", change_rate, weights.size)
    budget = scalar("bandwidth", bandwidth, decades=DECADES)
    choice("method", method, ("sort-free", "sort"))
    low, high = rate_bounds(min_rate, max_rate, weights.size)
    limits = host_limits(host, host_max_rate, weights.size)
    if low is not None or high is not None or limits is not None:
        if method == "sort":
            raise InvalidProblemError("method is 'sort': Algorithm 2 as printed knows no bounds; leave it at 'sort-free'")
        ranges = check_values("importance", weights, decades=DECADES), check_values("change_rate", changes, decades=DECADES)
        check_prices(weights, changes, budget, ranges=ranges, search=PriceSearch(by_share=False))
        return solve_poisson_bounded(weights, changes, budget, low, high, *(limits or ()))
    if weights.size == 0:
        return Solution(np.zeros(0), 0.0, 0.0, budget, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        if method == "sort-free" and weights.size >= _MANY and budget > 0:
            solution = solve_in_sweeps(weights, changes, budget)
            if solution is not None:
                return solution
        ranges = check_values("importance", weights, decades=DECADES), check_values("change_rate", changes, decades=DECADES)
        check_prices(weights, changes, budget, ranges=ranges, search=PriceSearch(by_share=False))
        slope, depth = slopes_and_depths(weights, changes)
        shallowest = float(depth.min())
        if shallowest >= _BOTTOMLESS:
            slope[:] = 0.0
            return Solution(slope, inner(weights, changes == 0), 0.0, budget, 0.0)
        np.subtract(depth, shallowest, out=depth)
        if budget == 0.0:
            slope[:] = 0.0
            return Solution(slope, inner(weights, changes == 0), shallowest**-2, 0.0, 0.0)
        find = level_without_sorting if method == "sort-free" else level_by_sorting
        level = find(slope, depth, budget)
        multiplier = (level + shallowest) ** -2
        np.subtract(level, depth, out=depth)
        np.maximum(depth, 0.0, out=depth)
        rates = np.multiply(slope, depth, out=slope)
        rates *= budget / float(rates.sum())
        objective, residual = _judge(weights, changes, rates, multiplier, depth)
    return Solution(rates, objective, multiplier, 0.0, residual)


def slopes_and_depths(weights: Floats, changes: Floats) -> tuple[Floats, Floats]:
    """``sqrt(importance x change rate)`` and ``sqrt(change rate / importance)``; pages not worth a visit get 0 and `_BOTTOMLESS`."""
    slope, depth = np.empty(weights.size), np.empty(weights.size)
    for start in range(0, weights.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        np.divide(changes[block], weights[block], out=depth[block])
        np.sqrt(depth[block], out=depth[block])
        np.multiply(depth[block], weights[block], out=slope[block])
    if min(float(weights.min()), float(changes.min())) == 0.0:
        idle = (weights == 0) | (changes == 0)
        slope[idle] = 0.0
        depth[idle] = _BOTTOMLESS
    return slope, depth


def _judge(weights: Floats, changes: Floats, rates: Floats, multiplier: float, work: Floats) -> tuple[float, float]:
    """Objective and KKT residual from their definitions; `work` is overwritten."""
    objective = residual = 0.0
    some_static = float(changes.min()) == 0.0
    for start in range(0, rates.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        weight, change, rate = weights[block], changes[block], rates[block]
        fresh = np.add(rate, change, out=work[block])
        np.divide(weight, fresh, out=fresh)
        if some_static:
            still = change == 0
            fresh[still] = 0.0
            objective += inner(weight, still)
        objective += inner(fresh, rate)
        np.multiply(fresh, fresh, out=fresh)  # importance x change rate / (rate + change rate) ** 2 = fresh ** 2 x change / weight
        np.multiply(fresh, change, out=fresh)
        np.divide(fresh, weight, out=fresh)
        np.multiply(fresh, 1 / multiplier, out=fresh)
        np.subtract(fresh, 1.0, out=fresh)
        np.multiply(fresh, rate > 0, out=fresh)
        if some_static or float(weight.min()) == 0.0:
            fresh[~np.isfinite(fresh)] = 0.0
        residual = max(residual, float(fresh.max()), -float(fresh.min()))
    return objective, residual
