"""From good guesses of the multiplier and the host prices to the optimum: one exact sweep, and a first-order step for every price.

What a first-order step cannot do is done afresh: pages that bend too much, one by one; hosts that are too far off or do not come out at
their limit, by `settle_prices`.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.hosts.approach import LINEAR, NEAR, Steps, approach, groups, host_steps, take_steps
from optimal_frontier.optimization.hosts.demand import HostDemand, HostedPages, picked
from optimal_frontier.optimization.hosts.guess import Guess
from optimal_frontier.optimization.hosts.prices import meet_limits
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.response import ResponseKernel
from optimal_frontier.optimization.sweeps import inner

#: A host that misses its limit by more than this step of log(price) is solved afresh; less is made up by another such step.
_MISS: Final = 1e-7
#: Distance of a host's log(price) from that of the multiplier from which it is not asked whether it is below its limit.
_APART: Final = 1e-3
#: Step of log(price) in which pages, block by block, make up for what is left of the budget.
_CRUMB: Final = 2e-7
#: Steps past kinks, each of which looks at the pages next to the multiplier only.
_KINK_STEPS: Final = 30
#: Accepted miss of the budget, relative.
_EXACT: Final = 1e-10
_SWEEPS: Final = 6
#: Longest first-order step of log(multiplier): it has no pages next to kinks to fear, which are solved afresh, and may be a little longer.
_RIDE: Final = 6e-4
#: Error of log(multiplier) in the guess from which hosts surely above their limits may not be.
_ASTRAY: Final = 5e-3


class Plan(NamedTuple):
    """Prices at which all constraints hold; the rates are in the `HostedPages`."""

    multiplier: float
    prices: Floats  #: (hosts,) the multiplier for hosts below their limits


def plan_from(crowd: HostedPages, limits: Floats, minima: Floats, budget: float, guess: Guess) -> Plan | None:
    """Find the optimum next to a guess, or give up if it is not near.

    Parameters
    ----------
    crowd : HostedPages
        All pages; its rates are the optimal ones afterwards.
    limits, minima : ndarray (hosts,)
        Maximum visits, and visits at the minimum rates.
    budget : float
        In visits.
    guess : Guess
    """
    here, prices = log(guess.multiplier), guess.prices
    full = minima >= limits * (1 - 1e-12)
    if full.any():  # nothing above the minima
        prices = np.where(full, crowd.pages.top(), prices)
    for _ in range(_SWEEPS):
        demand = crowd.at(prices, near=NEAR)
        logs = np.log(prices)
        steps = host_steps(crowd, demand, logs, limits, (logs > here) & ~full)
        # a price far from the multiplier may point anywhere: its host is above its limit at the multiplier all the same
        apart = full | (guess.capped if abs(here - log(guess.multiplier)) < _ASTRAY else False) | (logs > here + _APART)
        there, riding = _multiplier(demand, logs, np.where(apart, inf, logs + steps.step), limits, here, budget)
        there += _kinks(crowd, demand, logs, riding, there)
        if not abs(there - here) < 1:
            return None
        settled = np.zeros(limits.size, np.bool_)
        if abs(there - here) <= _RIDE:
            wide = ~riding & ~full & ~(np.abs(steps.step) <= LINEAR)
            if wide.any():
                start = np.exp(logs + np.clip(steps.step, -0.5, 0.5))
                logs[wide], visits, slope, rides = _approach(crowd, wide, limits[wide], exp(there), start[wide])
                demand.visits[wide], demand.slope[wide] = visits, slope
                settled[wide] = ~rides
                steps.step[wide] = np.where(rides, -inf, 0.0)
                at_limit = np.where((apart & ~wide) | settled, inf, logs + steps.step)
                there, riding = _multiplier(demand, logs, at_limit, np.where(settled, demand.visits, limits), there, budget)
                there += _kinks(crowd, demand, logs, riding, there)
            if abs(there - here) <= _RIDE:
                break
        here = there
        moved = np.maximum(np.exp(logs + np.clip(steps.step, -NEAR, NEAR)), exp(here))
        prices = np.where(full, prices, np.where(riding, exp(here), moved))
    else:
        return None
    step = np.where(riding, there - logs, steps.step)
    step[full | settled] = 0.0
    return _carry_out(crowd, limits, minima, budget, there, logs, demand, Steps(step, steps.page, steps.rate), riding, settled | full)


def _approach(
    crowd: HostedPages, chosen: NDArray[np.bool_], limits: Floats, multiplier: float, start: Floats
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """`approach` for some hosts: their log prices, visits and slopes, and which of them are below their limits."""
    price, visits, slope = np.empty((3, limits.size))
    riding = np.empty(limits.size, np.bool_)
    for some, group in groups(chosen):
        part, places = crowd.chosen(group)
        price[some], visits[some], riding[some] = approach(part, limits[some], multiplier, start[some])
        slope[some] = part.sums(part.bend)
        crowd.rates[places], crowd.bend[places] = part.rates, part.bend
    return np.log(price), visits, slope, riding


def _carry_out(
    crowd: HostedPages,
    limits: Floats,
    minima: Floats,
    budget: float,
    there: float,
    logs: Floats,
    demand: HostDemand,
    steps: Steps,
    riding: NDArray[np.bool_],
    settled: NDArray[np.bool_],
) -> Plan | None:
    """Take the first-order steps, and put right what they miss."""
    multiplier = exp(there)
    steps = Steps(steps.step, np.where(riding | settled, -1, steps.page), steps.rate)
    prices = np.where(riding, multiplier, np.exp(logs + steps.step))
    visits = take_steps(crowd, prices, steps, demand.near)
    miss = limits - visits
    miss[riding] = np.minimum(miss[riding], 0.0)
    miss[settled] = 0.0
    off = ~(np.abs(miss) <= 1e-12 * limits)
    if off.any():
        part, places = crowd.chosen(off)
        part.rates[:], part.bend[:] = crowd.rates[places], crowd.bend[places]
        close = np.abs(miss[off]) <= -_MISS * part.sums(part.bend)
        meet_limits(part, np.where(close, limits[off], visits[off]), minima[off])
        visits[off] = part.sums(part.rates)
        wide = np.flatnonzero(off)[~close]
        if wide.size:
            found, visits[wide], _, riding[wide] = _approach(part, ~close, limits[wide], multiplier, prices[wide])
            prices[wide] = np.exp(found)
        crowd.rates[places], crowd.bend[places] = part.rates, part.bend
    riding &= visits < limits * (1 - 1e-6)
    left = _spend_crumbs(crowd, riding, budget - float(visits.sum()), budget)
    for _ in range(3):
        if abs(left) <= _EXACT * budget:
            return Plan(multiplier, prices)
        steep = inner(crowd.sums(crowd.bend), riding)  # more than crumbs: another step for all
        step = left / steep if steep < 0 else inf
        if not abs(step) <= LINEAR:
            break
        multiplier *= exp(step)
        prices[riding] = multiplier
        idle = Steps(np.where(riding, step, 0.0), np.full(limits.size, -1), visits)
        visits = take_steps(crowd, prices, idle, demand.near)
        left = _spend_crumbs(crowd, riding, budget - float(visits.sum()), budget)
    return None


def _multiplier(
    demand: HostDemand, logs: Floats, at_limit: Floats, limits: Floats, here: float, budget: float
) -> tuple[float, NDArray[np.bool_]]:
    """Log(multiplier) to first order, and which hosts are below their limits then; inf if none reacts to it."""
    level = demand.visits - demand.slope * logs  # visits at log(price) 0, if it were straight
    there = here
    for _ in range(5):
        riding = at_limit <= there
        steep = inner(demand.slope, riding)
        if not steep < 0:
            return inf, riding
        total = float(np.where(riding, level, limits).sum()) + steep * there
        there -= (total - budget) / steep
        if abs(total - budget) <= -1e-9 * steep:
            break
    return there, at_limit <= there


def _kinks(crowd: HostedPages, demand: HostDemand, logs: Floats, riding: NDArray[np.bool_], there: float) -> float:
    """How much further log(multiplier) has to move for what tangents do not tell about pages next to the price."""
    near = demand.near[riding[crowd.host[demand.near]]]
    if near.size == 0:
        return 0.0
    few = picked(crowd.pages, near)
    straight = float((crowd.rates[near] + crowd.bend[near] * (there - logs[crowd.host[near]])).sum())
    others = inner(demand.slope, riding) - float(crowd.bend[near].sum())
    kernel = ResponseKernel(near.size)
    rates, bent, raw = np.empty((3, near.size))
    move, low, high = 0.0, -NEAR, NEAR
    for _ in range(_KINK_STEPS):
        kernel.visits_per_change(few.importance, exp(there + move), raw, bent)
        raw *= few.change_rate
        np.copyto(rates, raw)
        few.clip(slice(None), rates)
        bent *= few.change_rate
        bent *= rates == raw
        wrong = others * move + float(rates.sum()) - straight
        steep = others + float(bent.sum())
        if not steep < 0 or abs(wrong) <= 1e-8 * min(-steep, -others):
            break
        low, high = (move, high) if wrong > 0 else (low, move)
        move -= wrong / steep
        if not low < move < high:  # one of the kinks lies between
            move = 0.5 * (low + high)
    return move


def _spend_crumbs(crowd: HostedPages, riding: NDArray[np.bool_], left: float, budget: float) -> float:
    """Make up for a small miss of the budget, block by block until it is done; returns what is left of it."""
    pages, host, rates, bend = crowd.pages, crowd.host, crowd.rates, crowd.bend
    for block in pages.blocks():
        if abs(left) <= 1e-13 * budget:
            break
        move = np.take(riding, host[block]) * bend[block]
        slope = float(move.sum())
        if slope == 0:
            continue
        move *= max(-_CRUMB, min(_CRUMB, left / slope))
        rate = rates[block]
        before = float(rate.sum())
        rate += move
        pages.clip(block, rate)
        left -= float(rate.sum()) - before
    return left
