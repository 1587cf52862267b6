"""Memoryless visits under bounds on the rates and limits of hosts: Azar's Problem 2 as a crawl meets it.

At a price ``p`` of a visit the best rate of a page is ``clip(sqrt(importance x change_rate / p) - change_rate, low, high)``, which is a
straight line in the *level* ``1 / sqrt(p)`` between its bounds. The price of a page is the multiplier, or, on a host at its limit, the
higher price at which that host's pages spend just the limit. Without a cost per page the latter does not depend on the multiplier, so the
two are found one after the other: first the level at which each host would be full, which is one more maximum for each of its pages;
then one level for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import ConvergenceError, InfeasibleBudgetError
from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import inner

#: Accepted miss of a budget or limit, relative.
_TOLERANCE = 1e-13
_STEPS = 300
#: Problems from this size on are first solved for a sample of their pages, to start near the answer.
_LARGE = 100_000
_SAMPLE = 10_000


def solve_poisson_bounded(
    importance: Floats,
    change_rate: Floats,
    bandwidth: float,
    min_rate: Floats | float | None = None,
    max_rate: Floats | float | None = None,
    host: Integers | None = None,
    host_max_rate: Floats | None = None,
) -> Solution:
    """Best rates of memoryless visits within a budget, bounds and limits of hosts, of arguments that are known to be valid.

    Maximises ``sum importance x rate / (rate + change_rate)`` subject to ``sum rate <= bandwidth``, ``min_rate <= rate <= max_rate`` and
    the sum over each host's pages being at most its limit.

    Parameters
    ----------
    importance, change_rate : ndarray (n,)
        Weight of each page (>= 0), and its changes per unit of time (>= 0). A page of importance 0, or one that never changes, gets its
        minimum rate; one that never changes counts fully.
    bandwidth : float
        Visits per unit of time, >= 0.
    min_rate, max_rate : ndarray (n,), float or None
        Bounds, ``min_rate <= max_rate``; None: 0 and inf.
    host : ndarray (n,) of int or None
        Host of each page, an index into `host_max_rate`.
    host_max_rate : ndarray (hosts,) or None
        Most visits per unit of time to each host, summed over its pages; inf for none.

    Returns
    -------
    Solution
        `kkt_residual` is of the pages strictly between their bounds, those on full hosts against the price of their host.

    Raises
    ------
    InfeasibleBudgetError
        The minimum rates need more than the bandwidth, or than the limit of their host; the message says by how much.

    Notes
    -----
    Spending is piecewise linear in the level, so that safeguarded Newton ends on the answer itself, up to rounding. A sweep over the
    pages is one step; the levels of all hosts are moved together, and hosts that are settled drop out. O(n) a sweep, 5 to 30 of them.
    Levels are measured from the most valuable page (of the host), so that budgets far below every change rate lose no digits.

    References
    ----------
    Azar, Horvitz, Lubetzky, Peres, Shahaf 2018, *Tractable near-optimal policies for crawling*, Problem 2, eq. 11.

    Examples
    --------
    >>> pages = np.array([4.0, 4.0, 1.0]), np.ones(3)
    >>> solve_poisson_bounded(*pages, 4.0).rates.round(3)
    array([1.8, 1.8, 0.4])
    >>> solve_poisson_bounded(*pages, 4.0, max_rate=1.5).rates.round(3)
    array([1.5, 1.5, 1. ])
    >>> solve_poisson_bounded(*pages, 4.0, host=np.array([0, 0, 1]), host_max_rate=np.array([1.0, np.inf])).rates.round(3)
    array([0.5, 0.5, 3. ])
    """
    n = importance.size
    low = _each(min_rate, 0.0, n)
    high = _each(max_rate, np.inf, n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        live = (importance > 0) & (change_rate > 0)
        # A page that is worth no visit has no maximum to be filled.
        high = np.where(live, high, low)
        depth = np.where(live, np.sqrt(change_rate / importance), np.inf)
        slope = np.where(live, depth * importance, 0.0)
        least = float(low.sum())
        if least > bandwidth * (1 + 1e-12):
            raise InfeasibleBudgetError(
                f"the minimum rates need {least:.6g} of a bandwidth of {bandwidth:.6g}: {least - bandwidth:.6g} too much"
            )
        roof, full_level = high, None
        if host is not None and host_max_rate is not None and n:
            roof, full_level = _fill_hosts(slope, depth, low, high, host, host_max_rate)
        most = float(roof.sum())
        if most <= bandwidth:
            rates, level = roof.copy(), np.inf
        elif bandwidth - least <= 1e-15 * bandwidth:
            rates, level = low.copy(), _level_of_best(slope, depth, low, roof)
        else:
            shallowest = float(depth.min())
            depth -= shallowest
            depth[~live] = 0.0
            filled = _level_of_all(slope, depth, low, roof, bandwidth)
            rates, level = _rates(slope, depth, low, roof, filled), filled + shallowest
            _meet(rates, slope, low, roof, bandwidth)
        spent = float(rates.sum())
        if spent > bandwidth * (1 + 1e-9):
            rates = low + (rates - low) * ((bandwidth - least) / (spent - least))
            spent = bandwidth
        # Where rates are differences of numbers that agree in all digits, no level spends the budget to the last.
        unused = bandwidth - spent if bandwidth - spent > 1e-9 * bandwidth else max(0.0, bandwidth - most)
        # A level that no page of a world without value ever reaches, and one beyond all maxima, leave the price at 0.
        multiplier = level**-2 if 0 < level < np.inf else 0.0
        paid: Floats | float = multiplier
        if full_level is not None and host is not None:
            paid = np.maximum(multiplier, full_level**-2.0)[host]
        objective, residual = _judge(importance, change_rate, rates, low, high, paid)
    return Solution(rates, objective, multiplier, unused, residual)


def _each(values: Floats | float | None, default: float, n: int) -> Floats:
    return np.broadcast_to(np.asarray(default if values is None else values, dtype=np.float64), n)


def _rates(slope: Floats, depth: Floats, low: Floats, high: Floats, level: Floats | float) -> Floats:
    rates: Floats = np.subtract(level, depth)
    rates *= slope
    np.maximum(rates, low, out=rates)
    np.minimum(rates, high, out=rates)
    return rates


def _fill_hosts(slope: Floats, depth: Floats, low: Floats, high: Floats, host: Integers, limits: Floats) -> tuple[Floats, Floats]:
    """Most that each page may get once its host is full, and the level of each host then; inf for a host that cannot be filled."""
    hosts = limits.size
    needed = np.bincount(host, weights=low, minlength=hosts)
    crowded = np.flatnonzero(needed > limits * (1 + 1e-12))
    if crowded.size:
        which = int(crowded[0])
        raise InfeasibleBudgetError(
            f"host_max_rate[{which}] is {limits[which]:.6g}, but the minimum rates of its pages need {needed[which]:.6g}: "
            f"{needed[which] - limits[which]:.6g} too much"
        )
    levels = np.full(hosts, np.inf)
    roof = high.copy()
    fillable = np.isfinite(limits) & (np.bincount(host, weights=high, minlength=hosts) > limits)
    index = np.flatnonzero(fillable[host])
    if not index.size:
        return roof, levels
    ids = np.flatnonzero(fillable)
    number = np.cumsum(fillable) - 1
    at = number[host[index]]
    target = limits[ids]
    own_slope, own_depth, own_low, own_high = (values[index] for values in (slope, depth, low, high))
    shallowest = np.full(ids.size, np.inf)
    np.minimum.at(shallowest, at, own_depth)
    own_depth -= shallowest[at]
    own_depth[own_slope == 0] = 0.0
    filled = _levels(own_slope, own_depth, own_low, own_high, at, target)
    rates = _rates(own_slope, own_depth, own_low, own_high, filled[at])
    # To the limit exactly: one last step in the level, of the pages between their bounds.
    free = own_slope * ((rates > own_low) & (rates < own_high))
    miss = target - np.bincount(at, weights=rates, minlength=ids.size)
    bend = np.bincount(at, weights=free, minlength=ids.size)
    rates += free * np.divide(miss, bend, out=np.zeros(ids.size), where=bend > 0)[at]
    np.clip(rates, own_low, own_high, out=rates)
    sums, minima = np.bincount(at, weights=rates, minlength=ids.size), needed[ids]
    share = np.where(sums > target * (1 + 1e-12), (target - minima) / (sums - minima), 1.0)
    roof[index] = own_low + (rates - own_low) * share[at]
    levels[ids] = filled + shallowest
    return roof, levels


def _levels(slope: Floats, depth: Floats, low: Floats, high: Floats, host: NDArray[np.int64], target: Floats) -> Floats:
    """The level of each host at which its pages get its target; every target lies between the sums of their minima and maxima."""
    count = target.size
    result = np.zeros(count)
    level = (target + np.bincount(host, weights=slope * depth, minlength=count)) / np.bincount(host, weights=slope, minlength=count)
    floor, ceiling = np.zeros(count), np.full(count, np.inf)
    width = np.full(count, np.inf)
    ids = np.arange(count)
    for step in range(_STEPS):
        rates = _rates(slope, depth, low, high, level[host])
        total = np.bincount(host, weights=rates, minlength=ids.size)
        free = (rates > low) & (rates < high)
        miss = target - total
        floor = np.where(miss > 0, np.maximum(floor, level), floor)
        ceiling = np.where(miss < 0, np.minimum(ceiling, level), ceiling)
        done = (np.abs(miss) <= _TOLERANCE * target) | (ceiling <= np.nextafter(floor, np.inf))
        result[ids[done]] = level[done]
        if done.all():
            return result
        wet = slope * free
        area = np.bincount(host, weights=wet, minlength=ids.size)
        proposal = level + miss / area
        good = (proposal > floor) & (proposal < ceiling)
        if not (good | done).all():
            # The same point not as a step from the level, which has lost it if it is far below.
            held, weighted = (np.bincount(host, weights=values, minlength=ids.size) for values in (rates * ~free, wet * depth))
            proposal = np.where(good, proposal, (target - held + weighted) / area)
            good = (proposal > floor) & (proposal < ceiling)
        middle = np.where(np.isinf(ceiling), 4 * level, _between(floor, ceiling))
        if step % 3 == 2:  # Newton that creeps along one end of the bracket
            good &= ceiling - floor <= 0.5 * width
            width = ceiling - floor
        level = np.where(good, proposal, middle)
        if np.count_nonzero(done) > 0.3 * done.size:
            stay = ~done
            pick = stay[host]
            host = (np.cumsum(stay) - 1)[host[pick]]
            slope, depth, low, high = slope[pick], depth[pick], low[pick], high[pick]
            ids = ids[stay]
            target, level, floor, ceiling, width = (values[stay] for values in (target, level, floor, ceiling, width))
    raise ConvergenceError("the levels of the hosts did not settle")


def _between(floor: Floats, ceiling: Floats) -> Floats:
    middle: Floats = np.where((floor > 0) & (ceiling > 4 * floor), np.sqrt(floor) * np.sqrt(ceiling), 0.5 * floor + 0.5 * ceiling)
    return middle


def _level_of_all(slope: Floats, depth: Floats, low: Floats, high: Floats, bandwidth: float) -> float:
    """The level at which all pages get the bandwidth."""
    if slope.size > _LARGE:
        part = slice(None, None, slope.size // _SAMPLE)
        some = (slope[part], depth[part], low[part], high[part])
        share = bandwidth * some[0].size / slope.size
        inside = float(some[2].sum()) < share < float(some[3].sum())
        start = _level_of_all(*some, share) if inside and some[0].any() else 0.0
    else:
        start = 0.0
    level = start if start > 0 else (bandwidth + inner(slope, depth)) / float(slope.sum())
    floor, ceiling, width = 0.0, np.inf, np.inf
    for step in range(_STEPS):
        rates = _rates(slope, depth, low, high, level)
        miss = bandwidth - float(rates.sum())
        if abs(miss) <= _TOLERANCE * bandwidth or ceiling <= np.nextafter(floor, np.inf):
            return level
        if miss > 0:
            floor = max(floor, level)
        else:
            ceiling = min(ceiling, level)
        free = (rates > low) & (rates < high)
        wet = slope * free
        area = float(wet.sum())
        proposal = level + miss / area if area > 0 else np.inf
        if area > 0 and not floor < proposal < ceiling:
            # The same point not as a step from the level, which has lost it if it is far below.
            proposal = (bandwidth - inner(rates, ~free) + inner(wet, depth)) / area
        stalled = step % 3 == 2 and ceiling - floor > 0.5 * width
        if step % 3 == 2:
            width = ceiling - floor
        if floor < proposal < ceiling and not stalled:
            level = proposal
        elif ceiling == np.inf:
            level *= 4
        else:
            level = float(_between(np.array(floor), np.array(ceiling)))
    raise ConvergenceError(f"the price did not settle: the level is still between {floor!r} and {ceiling!r}")


def _meet(rates: Floats, slope: Floats, low: Floats, high: Floats, bandwidth: float) -> None:
    """Make the rates sum to the bandwidth, up to rounding: one last step in the level, of the pages between their bounds."""
    free = slope * ((rates > low) & (rates < high))
    bend = float(free.sum())
    if bend > 0:
        rates += free * ((bandwidth - float(rates.sum())) / bend)
        np.clip(rates, low, high, out=rates)


def _level_of_best(slope: Floats, depth: Floats, low: Floats, high: Floats) -> float:
    """Level at which the first page would get more than its minimum; 0 if there is no such page."""
    room = (slope > 0) & (high > low)
    return float((low[room] / slope[room] + depth[room]).min()) if room.any() else 0.0


def _judge(importance: Floats, change_rate: Floats, rates: Floats, low: Floats, high: Floats, price: Floats | float) -> tuple[float, float]:
    """Objective and KKT residual from their definitions; `price` is that of a visit, for all pages or of each."""
    sums = rates + change_rate
    objective = inner(importance, np.where(change_rate > 0, rates / sums, 1.0))
    free = (rates > low) & (rates < high) & (np.asarray(price) > 0)
    if not free.any():
        return objective, 0.0
    marginal = importance * (change_rate / sums) / sums
    return objective, float(np.abs(marginal[free] / np.broadcast_to(price, free.shape)[free] - 1).max())
