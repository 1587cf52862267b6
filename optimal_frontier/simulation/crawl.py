"""One simulated crawl: a world and a policy -> the visits that are made.

There is a slot for a visit every 1/budget, from time 0 on, and nobody waits: each slot goes to the page with the earliest deadline, due
or not (of equal ones to the first page). First visits come before all others, the most important pages first.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from optimal_frontier.scheduling.credit import LEAST_CARRY, MOST_CARRY, credit_at, deadline
from optimal_frontier.simulation.interval_rules import IntervalRule
from optimal_frontier.simulation.learning import Learner, learn_in_turn
from optimal_frontier.simulation.policies import Knowledge, Planner
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised


@dataclass(frozen=True)
class Visits:
    """Visits in the order in which they were made.

    Attributes
    ----------
    pages : ndarray of int (m,)
        Which page.
    times : ndarray (m,)
        When.
    """

    pages: Ints
    times: Floats


def first_visits(world: Realised, slots: int) -> Visits:
    """Return the visits that every policy begins with."""
    order = np.argsort(-world.importance, kind="stable")[:slots]
    return Visits(order, np.arange(len(order)) / world.budget)


def planned_visits(world: Realised, planner: Planner, learner: Learner, horizon: float, replan: float, rng: np.random.Generator) -> Visits:
    """Return the visits of a policy that plans every so often, by credit and earliest deadline.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    planner : callable
        The policy.
    learner : Learner
        What it goes by; it takes in all visits.
    horizon : float
        Length of the crawl.
    replan : float
        Time between two plans.
    rng : numpy.random.Generator
        For policies that draw.

    Returns
    -------
    Visits
    """
    n, slots = len(world), slots_until(horizon, world.budget)
    begun = first_visits(world, slots)
    made = [begun]
    last = np.zeros(n)
    last[begun.pages] = begun.times
    carry, rate, base_time, base_credit = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    slot = len(begun.pages)
    while slot < slots:
        now = slot / world.budget
        planned = planner(Knowledge(now, horizon, world.importance, world.budget, learner.shape, learner.time, rng, world.known_rates))
        # A page's first plan counts from its first visit, as in a live crawl.
        earned = credit_at(now, carry, last, rate, base_time, base_credit)
        base_credit = np.maximum(np.where(base_time > 0, earned, carry + planned * (now - last)), LEAST_CARRY)
        rate, base_time = planned, np.full(n, now)
        due = deadline(carry, last, rate, base_time, base_credit, last, 0.0)
        end = min(slots, max(slot + 1, slots_until(now + replan, world.budget)))
        pages, times = _earliest_first(due, base_credit, rate, now, np.arange(slot, end) / world.budget, carry)
        learn_in_turn(world, learner, pages, times, last)
        last[pages] = times  # of several visits the last
        made.append(Visits(pages, times))
        slot = end
    return Visits(np.concatenate([v.pages for v in made]), np.concatenate([v.times for v in made]))


def credit_after(credit: float) -> float:
    """Return what a visit leaves of credit: `carry_after_visit` of one page in plain floats, a test holds them equal."""
    return min(max(credit - 1.0, LEAST_CARRY), MOST_CARRY)


def deadline_after(carry: float, now: float, rate: float) -> float:
    """Return when a page is due that was visited now: `deadline` of one page in plain floats, a test holds them equal."""
    return now + (1.0 - carry) / rate


def _earliest_first(due: Floats, credit: Floats, rate: Floats, now: float, times: Floats, carry: Floats) -> tuple[Ints, Floats]:
    """Visits in slots under one plan, made at `now`; `carry` of visited pages is written."""
    queue = [(at, page) for page, at in enumerate(due.tolist()) if at < math.inf]
    heapq.heapify(queue)
    rates, credits_, since = rate.tolist(), credit.tolist(), [now] * len(rate)
    pages, taken = [], []
    for at in times.tolist():
        if not queue:
            break
        page = queue[0][1]
        speed = rates[page]
        left = credit_after(credits_[page] + speed * (at - since[page]))
        credits_[page], since[page] = left, at
        pages.append(page)
        taken.append(at)
        if speed > 0.0:
            heapq.heapreplace(queue, (deadline_after(left, at, speed), page))
        else:
            heapq.heappop(queue)
    visited = np.array(pages, dtype=np.int64)
    carry[visited] = np.array(credits_)[visited]
    return visited, np.array(taken)


def ruled_visits(world: Realised, rule: IntervalRule, horizon: float) -> Visits:
    """Return the visits of a scheduler that keeps an interval per page.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    rule : IntervalRule
        The scheduler; its times are in days.
    horizon : float
        Length of the crawl.

    Returns
    -------
    Visits
    """
    slots, day = slots_until(horizon, world.budget), world.day
    begun = first_visits(world, slots)
    state: dict[int, tuple[float, float]] = {}
    last: dict[int, float] = {}
    queue = []
    for page, at in zip(begun.pages.tolist(), begun.times.tolist(), strict=True):
        due, state[page] = rule.first(at / day)
        last[page] = at
        queue.append((due * day, page))
    heapq.heapify(queue)
    changes, starts = world.drawn.changes.times.tolist(), world.drawn.changes.starts.tolist()
    pages, times = begun.pages.tolist(), begun.times.tolist()
    for slot in range(len(begun.pages), slots):
        at = slot / world.budget
        due, page = queue[0]
        if rule.waits and due > at + 1e-9 / world.budget:
            continue
        seen = bisect_right(changes, last[page], starts[page], starts[page + 1])
        changed = seen < starts[page + 1] and changes[seen] <= at
        due, state[page] = rule.next(at / day, changed, state[page])
        last[page] = at
        heapq.heapreplace(queue, (due * day, page))
        pages.append(page)
        times.append(at)
    return Visits(np.array(pages, dtype=np.int64), np.array(times))


def slots_until(time: float, budget: float) -> int:
    """Return how many slots begin before a time."""
    return math.ceil(time * budget * (1.0 - 1e-12))
