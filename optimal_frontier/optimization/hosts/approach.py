"""Newton steps for the prices of many hosts at once that know about the kink next to the price.

The rate of a page bends without end where the price reaches its value: for a host of a dozen pages, one in three prices that meet a limit
is within a percent of such a kink, and a tangent says nothing there. So the page nearest to the price is taken out of the tangent, and its
rate is worked out from what the limit leaves; the others go along to first order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.hosts.demand import HostDemand, HostedPages, picked
from optimal_frontier.optimization.hosts.prices import settle_prices
from optimal_frontier.optimization.pages import block_of
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.response import ResponseKernel
from optimal_frontier.optimization.sweeps import BLOCK, blockwise

#: Largest first-order step of log(price): the error it leaves in the price is a few times its square, 3e-7.
LINEAR: Final = 3e-4
#: Distance of a page's value from the price, relative, within which it may be the one taken out; and the longest step.
NEAR: Final = 0.03
#: A page whose rate changes by more than this share in a first-order step is solved afresh.
_BEND: Final = 1e-3
#: Steps before the hosts left are handed over to `settle_prices`.
_ROUNDS: Final = 12
#: Newton steps for the rate of the page taken out, and the relative move with which they end early: the next would be its square.
_INNER: Final = 20
_CLOSE: Final = 1e-4
#: Relative difference of its rate from what the others leave that is put down to those steps; it is the KKT residual it makes, at most.
_SAME: Final = 1e-7
#: Changes between two visits to it, at least: with fewer, its value is not near its price.
_FEWEST: Final = 0.05
#: Share of all hosts that is worked on at a time.
_GROUP: Final = 0.25
#: Longest step of `approach`, and distance of a page's value from the price within which it may be taken out there.
_LONGEST: Final = 0.7
_NEARBY: Final = 0.1


class Steps(NamedTuple):
    """Where each host's price goes next; every array is (hosts,)."""

    step: Floats  #: of log(price)
    page: NDArray[np.int64]  #: the page taken out; -1: none
    rate: Floats  #: its rate after the step


def host_steps(crowd: HostedPages, demand: HostDemand, logs: Floats, limits: Floats, wanted: NDArray[np.bool_]) -> Steps:
    """Steps that bring hosts to their limits; the page nearest to the price is taken out where `wanted`.

    Parameters
    ----------
    crowd : HostedPages
        Its rates and bends are those at the prices.
    demand : HostDemand
        With the pages near the price.
    logs, limits : ndarray (hosts,)
        Log(price), and maximum visits.
    wanted : ndarray (hosts,) of bool

    Notes
    -----
    With ``r`` changes between two visits to the page taken out, of value ``w`` and change rate ``c``, the price is
    ``w (1 - (1 + r) exp(-r))`` and its rate ``c / r``; Newton's method finds the ``r`` at which it and the tangent of the others add up.
    """
    visits, slope = demand.visits, demand.slope
    step = np.where(slope < 0, (limits - visits) / slope, np.where(visits > limits, np.inf, -np.inf))
    page = np.full(limits.size, -1)
    rate = np.zeros(limits.size)
    few = picked(crowd.pages, demand.near)
    hosts = crowd.host[demand.near]
    distance = np.log(few.importance) - logs[hosts]
    # where the price has to rise, pages below it do not matter
    matters = np.flatnonzero(wanted[hosts] & ((distance > 0) | (visits < limits)[hosts]))
    if matters.size == 0:
        return Steps(step, page, rate)
    distance, hosts = np.abs(distance[matters]), hosts[matters]
    nearest = np.full(limits.size, np.inf)
    np.minimum.at(nearest, hosts, distance)
    first = np.flatnonzero(distance == nearest[hosts])
    page[hosts[first]] = matters[first]
    at = np.flatnonzero(page >= 0)
    taken = page[at]
    page[at] = demand.near[taken]
    value, change_rate = few.importance[taken], few.change_rate[taken]
    low = _bound(few.low, taken, 0.0)
    high = _bound(few.high, taken, np.inf)
    kink = np.log(value) - logs[at]
    others = visits[at] - crowd.rates[page[at]]
    steep = slope[at] - crowd.bend[page[at]]
    room = limits[at] - others  # for the page, at the price as it is
    share = room - steep * kink  # and with the price at its value
    below = share > low  # else the price ends above its value
    # from the left: the page gets less the further the price falls below its value
    changes = np.maximum(change_rate / share, _FEWEST)
    for _ in range(_INNER):
        decay = np.exp(-changes)
        short = (1 + changes) * decay  # the share of its value by which the price is below
        above = 1 - short
        wrong = change_rate / changes - room + steep * (kink + np.log(above))
        following = changes - wrong / (steep * changes * decay / above - change_rate / changes**2)
        following = np.maximum(following, _FEWEST)
        open_still = below & (np.abs(following - changes) > _CLOSE * changes)
        changes = following
        if not open_still.any():
            break
    moved = kink + np.log1p(-(1 + changes) * np.exp(-changes))
    fresh, left = change_rate / changes, room - steep * moved
    fresh = np.where(np.abs(left - fresh) <= _SAME * fresh, left, fresh)  # with what is left, the limit is met to rounding
    inside = below & (fresh < high) & (fresh > low) & np.isfinite(fresh)
    beyond = (room - np.where(below, high, low)) / steep  # the page stays at a bound
    step[at] = np.where(inside, moved, np.where(np.isfinite(beyond), beyond, step[at]))
    rate[at] = fresh
    page[at[~inside]] = -1
    return Steps(step, page, rate)


def _bound(bound: Floats | float | None, pick: NDArray[np.int64], default: float) -> Floats | float:
    chosen = block_of(bound, pick) if bound is not None else default  # type: ignore[arg-type]  # an index array cuts as well as a slice
    return default if chosen is None else chosen


def take_steps(crowd: HostedPages, prices: Floats, steps: Steps, near: NDArray[np.int64]) -> Floats:
    """Move all rates to first order as each host's log(price) moves to `prices`, and return visits by host.

    Bends are brought up to date where they matter: those of pages solved afresh, and of pages taken out, which are to stay.

    Parameters
    ----------
    near : ndarray of int
        Pages whose values are near their prices: one that did not bend, but is worth more than its price now, is solved afresh, too.
    """
    pages, host, rates, bend = crowd.pages, crowd.host, crowd.rates, crowd.bend
    width = min(pages.size, BLOCK)

    def work(blocks: Iterator[slice]) -> Iterator[None]:
        kernel = ResponseKernel(width)
        moves, sizes, slack = np.empty((3, width))
        for block in blocks:
            m = block.stop - block.start
            rate = rates[block]
            move = np.take(steps.step, host[block], out=moves[:m], mode="clip")
            move *= bend[block]
            np.multiply(rate, _BEND, out=slack[:m])
            bent = np.flatnonzero(np.greater(np.abs(move, out=sizes[:m]), slack[:m]))
            rate += move
            if bent.size:
                few = picked(pages, bent + block.start)
                fresh, slope = np.empty((2, bent.size))
                kernel.visits_per_change(few.importance, prices[host[block][bent]], fresh, slope)
                rate[bent] = fresh * few.change_rate
                bend[block][bent] = slope * few.change_rate
            pages.clip(block, rate)
            yield None

    blockwise(pages.size, work, BLOCK)
    _wake(crowd, prices, near[(bend[near] == 0) & (steps.step[host[near]] != 0)])
    out = np.flatnonzero(steps.page >= 0)
    rates[steps.page[out]] = steps.rate[out]
    bend[steps.page[out]] = 0.0  # they are where they belong
    return crowd.sums(rates)


def _wake(crowd: HostedPages, prices: Floats, asleep: NDArray[np.int64]) -> None:
    """Rates of those of some pages that are worth more than the price of their host."""
    few = picked(crowd.pages, asleep)
    paid = prices[crowd.host[asleep]]
    worth = np.flatnonzero(few.importance > paid)
    if worth.size == 0:
        return
    fresh, slope = np.empty((2, worth.size))
    ResponseKernel(worth.size).visits_per_change(few.importance[worth], paid[worth], fresh, slope)
    fresh *= few.change_rate[worth]
    low, high = _bound(few.low, worth, 0.0), _bound(few.high, worth, np.inf)
    crowd.rates[asleep[worth]] = np.clip(fresh, low, high)
    crowd.bend[asleep[worth]] = np.where((fresh > low) & (fresh < high), slope * few.change_rate[worth], 0.0)


def groups(chosen: NDArray[np.bool_]) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Split hosts, so that a group's pages do not take much memory: the places of each group among the chosen, and its mask."""
    which = np.flatnonzero(chosen)
    size = max(1, int(_GROUP * chosen.size))
    for at in range(0, which.size, size):
        group = np.zeros(chosen.size, np.bool_)
        group[which[at : at + size]] = True
        yield slice(at, at + size), group


def approach(crowd: HostedPages, limits: Floats, floor: float, start: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Bring hosts to their limits, exactly, from prices within some percent; those below their limits at `floor` get their rates there.

    Parameters
    ----------
    crowd : HostedPages
        Its rates are set.
    limits : ndarray (hosts,)
    floor : float
        Lowest price that a page may pay.
    start : ndarray (hosts,)
        Prices to start from.

    Returns
    -------
    prices, visits, riding : ndarray (hosts,)
        `riding` tells which hosts are below their limits.
    """
    hosts = crowd.hosts
    price, total, riding = np.full(hosts, floor), np.zeros(hosts), np.zeros(hosts, np.bool_)
    ids, part, places = np.arange(hosts), crowd, np.arange(crowd.rates.size)
    limit, logs, least = limits, np.log(np.maximum(start, floor)), np.log(floor)
    low, high = np.full(hosts, -np.inf), np.full(hosts, np.inf)
    stride = np.full(hosts, np.inf)
    for _ in range(_ROUNDS):
        demand = part.at(np.exp(logs), near=_NEARBY)
        steps = host_steps(part, demand, logs, limit, np.ones(ids.size, np.bool_))
        over = demand.visits > limit
        low, high = np.where(over, np.maximum(low, logs), low), np.where(over, high, np.minimum(high, logs))
        stays = ~over & (logs <= least)
        step = np.where(stays, 0.0, steps.step)
        done = stays | ((np.abs(step) <= LINEAR) & (logs + step >= least))
        step = np.clip(step, -_LONGEST, _LONGEST)
        following = np.maximum(logs + step, least)
        middle = np.where(np.isfinite(low + high), 0.5 * (low + high), following)
        slow = np.abs(following - logs) > 0.7 * stride  # steps that fly from one end of the bracket to the other
        following = np.where((following > low) & (following < high) & ~slow | stays, following, middle)
        stride = np.abs(following - logs)
        steps = Steps(np.where(done, step, 0.0), np.where(done & ~stays, steps.page, -1), steps.rate)
        if done.any():
            now = np.exp(logs + steps.step)
            visits = take_steps(part, now, steps, demand.near)
            settled = done & (stays | (np.abs(visits - limit) <= 1e-10 * limit))
            mine = np.flatnonzero(settled[part.host])
            to = places[mine]
            crowd.rates[to], crowd.bend[to] = part.rates[mine], part.bend[mine]
            price[ids[settled]], total[ids[settled]], riding[ids[settled]] = now[settled], visits[settled], stays[settled]
            left = ~settled
            if not left.any():
                return price, total, riding
            part, pick = part.chosen(left)
            places, ids = places[pick], ids[left]
            limit, logs, low, high, stride = (each[left] for each in (limit, following, low, high, stride))
        else:
            logs = following
    visits = part.at(floor).visits
    rides = visits <= limit
    paid = np.full(ids.size, floor)
    if not rides.all():
        over_limit, inside = part.chosen(~rides)
        paid[~rides] = settle_prices(over_limit, limit[~rides], floor, np.exp(logs[~rides]), tiny=False)
        part.rates[inside], part.bend[inside] = over_limit.rates, over_limit.bend
        visits[~rides] = over_limit.sums(over_limit.rates)
    crowd.rates[places], crowd.bend[places] = part.rates, part.bend
    price[ids], total[ids], riding[ids] = paid, visits, rides
    return price, total, riding
