"""One simulated crawl: a world and a policy -> the visits that are made.

There is a slot for a visit every 1/budget, from time 0 on, and nobody waits: each slot goes to the page with the earliest deadline, due
or not (of equal ones to the first page). First visits come before all others, the most important pages first; pages that arrive later
come first with the next plan, or at once where there are no plans.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimal_frontier.scheduling.credit import LEAST_CARRY, MOST_CARRY, credit_at, deadline
from optimal_frontier.simulation.bandwidth import BandwidthChange, slot_times
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


def first_visits(world: Realised, slots: Floats) -> Visits:
    """Return the visits that every policy begins with, in the first slots: to pages that are there from the start."""
    order = np.argsort(-world.importance, kind="stable")
    order = order[world.arrival[order] <= 0.0][: len(slots)]
    return Visits(order, slots[: len(order)])


class Dispatch(Protocol):
    """What makes visits of plans."""

    def plan(self, planner: Planner, what: Knowledge, known: Ints, last: Floats) -> None:
        """Let a policy plan pages that were visited, with the time of each one's last visit (of all pages)."""

    def visits(self, times: Floats) -> tuple[Ints, Floats]:
        """Return the pages that are visited in slots under the plan, and the slots that were used."""


def planned_visits(
    world: Realised,
    planner: Planner,
    learner: Learner,
    horizon: float,
    replan: float,
    rng: np.random.Generator,
    bandwidth: BandwidthChange | None = None,
) -> Visits:
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
    bandwidth : BandwidthChange, optional
        When the real budget is not the one that plans count with.

    Returns
    -------
    Visits
    """
    return visits_of_plans(EarliestDeadline(len(world)), world, planner, learner, horizon, replan, rng, bandwidth)


def visits_of_plans(
    dispatch: Dispatch,
    world: Realised,
    planner: Planner,
    learner: Learner,
    horizon: float,
    replan: float,
    rng: np.random.Generator,
    bandwidth: BandwidthChange | None,
) -> Visits:
    """Return the visits that a dispatcher makes of the plans of a policy; see `planned_visits`."""
    slot_at = slot_times(world.budget, horizon, bandwidth)
    slots = len(slot_at)
    begun = first_visits(world, slot_at)
    made = [begun]
    last = np.zeros(len(world))
    last[begun.pages] = begun.times
    slot = len(begun.pages)
    known = np.flatnonzero(world.arrival <= 0.0)
    coming = np.argsort(world.arrival, kind="stable")[len(known) :]
    while slot < slots:
        # Pages that have come since the last plan.
        come = int(np.searchsorted(world.arrival[coming], slot_at[slot], side="right"))
        new, coming = coming[:come][: slots - slot], coming[come:]
        made.append(Visits(new, slot_at[slot : slot + len(new)]))
        last[new], known, slot = made[-1].times, np.concatenate([known, new]), slot + len(new)
        if slot >= slots:
            break
        now = float(slot_at[slot])
        dispatch.plan(planner, _knowledge(now, horizon, world, learner, known, rng), known, last)
        end = max(slot + 1, int(np.searchsorted(slot_at, (now + replan) * (1.0 - 1e-12))))
        pages, times = dispatch.visits(slot_at[slot:end])
        learn_in_turn(world, learner, pages, times, last)
        last[pages] = times  # of several visits the last
        made.append(Visits(pages, times))
        slot = end
    return Visits(np.concatenate([v.pages for v in made]), np.concatenate([v.times for v in made]))


def _knowledge(now: float, horizon: float, world: Realised, learner: Learner, known: Ints, rng: np.random.Generator) -> Knowledge:
    """What is known of pages that were visited; those that came later stand after those that were there."""
    importance, shape, time = world.importance[known], learner.shape[known], learner.time[known]
    return Knowledge(now, horizon, importance, world.budget, shape, time, rng, lambda at: world.known_rates(at)[known])


class EarliestDeadline:
    """Dispatch by credit: the page with the earliest deadline, due or not.

    Parameters
    ----------
    pages : int
        How many there are.
    """

    def __init__(self, pages: int) -> None:
        self._carry, self._rate, self._base_time, self._base_credit, self._due = (np.zeros(pages) for _ in range(5))
        self._now = 0.0

    def plan(self, planner: Planner, what: Knowledge, known: Ints, last: Floats) -> None:
        """Take new rates over; credit stays."""
        planned = np.zeros(len(last))
        planned[known] = planner(what)
        self._now = what.now
        # A page's first plan counts from its first visit, as in a live crawl.
        earned = credit_at(what.now, self._carry, last, self._rate, self._base_time, self._base_credit)
        first = self._carry + planned * (what.now - last)
        self._base_credit = np.maximum(np.where(self._base_time > 0, earned, first), LEAST_CARRY)
        self._rate, self._base_time[known] = planned, what.now
        self._due = deadline(self._carry, last, self._rate, self._base_time, self._base_credit, last, 0.0)

    def visits(self, times: Floats) -> tuple[Ints, Floats]:
        """Return visits in slots."""
        return _earliest_first(self._due, self._base_credit, self._rate, self._now, times, self._carry)


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


def ruled_visits(world: Realised, rule: IntervalRule, horizon: float, bandwidth: BandwidthChange | None = None) -> Visits:
    """Return the visits of a scheduler that keeps an interval per page.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    rule : IntervalRule
        The scheduler; its times are in days.
    horizon : float
        Length of the crawl.
    bandwidth : BandwidthChange, optional
        When the budget is another one.

    Returns
    -------
    Visits
    """
    slots, day = slot_times(world.budget, horizon, bandwidth), world.day
    begun = first_visits(world, slots)
    state: dict[int, tuple[float, float]] = {}
    last: dict[int, float] = {}
    queue = []
    for page, at in zip(begun.pages.tolist(), begun.times.tolist(), strict=True):
        due, state[page] = rule.first(at / day)
        last[page] = at
        queue.append((due * day, page))
    heapq.heapify(queue)
    order = np.argsort(world.arrival, kind="stable")
    coming = deque(order[world.arrival[order] > 0.0].tolist())
    changes, starts = world.drawn.changes.times.tolist(), world.drawn.changes.starts.tolist()
    pages, times = begun.pages.tolist(), begun.times.tolist()
    for at in slots[len(begun.pages) :].tolist():
        if coming and world.arrival[coming[0]] <= at:
            page = coming.popleft()
            due, state[page] = rule.first(at / day)
            last[page] = at
            heapq.heappush(queue, (due * day, page))
            pages.append(page)
            times.append(at)
            continue
        if not queue:
            continue
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
