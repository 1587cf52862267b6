"""From columns to revisit rates: all pages of a plan, whatever their update models, in one optimum.

The planner solves with it for the crawl, and `frontier.budget_curve` for budgets that the crawl does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optimal_frontier.estimation.bursts import are_bursty, sure_correlation
from optimal_frontier.frontier.exploring import Pages, Progress, choice_of, host_shares
from optimal_frontier.frontier.timed_pages import plan_beside, timed_pages
from optimal_frontier.optimization import changes_periodic
from optimal_frontier.scheduling import LOAD, CarriedPrice, RatePlan, backoff, believed_rates, plan_rates
from optimal_frontier.scheduling.bursty_pages import BurstyPages, StandIns
from optimal_frontier.scheduling.mixing import TimedPages
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.update_times import StoredTimes


@dataclass(frozen=True)
class Known:
    """What a plan is made from, beside the settings.

    Attributes
    ----------
    slots : ndarray of int (n,)
        Of its pages, rising.
    page, seen, bursts : ndarray (n,)
        Their columns; `seen` with the prior where there is no bit.
    rates : ndarray (n,)
        Of the last plan, visits per second, 0 for none: where to start from.
    waiting : ndarray of int
        Host of each page that waits for its first visit.
    published : mapping of str
        The last plan.
    progress : Progress
        Of exploration, at this plan.
    committed : ndarray (n,) or None
        What exploration has committed to.
    times : StoredTimes
        Pages with update times.
    """

    slots: np.ndarray
    page: np.ndarray
    seen: np.ndarray
    bursts: np.ndarray
    rates: np.ndarray
    waiting: np.ndarray
    published: Mapping[str, str]
    progress: Progress
    committed: np.ndarray | None
    times: StoredTimes


@dataclass(frozen=True)
class Solved:
    """A plan, and its pages that are no Poisson processes; None where there are none."""

    plan: RatePlan
    timed: TimedPages | None
    bursty: BurstyPages | None

    def changes(self, importance: np.ndarray) -> float:
        """Return the importance-weighted changes seen per second, (n,) weights given."""
        total = changes_periodic(importance, self.plan.change_rate, self.plan.rates)
        if self.bursty is not None:
            rows = self.bursty.rows
            rates, weight = self.plan.rates[rows], importance[rows]
            # The plan has the change rates of the pages that stand in.
            total += float(weight @ self.bursty.changes(rates)) - changes_periodic(weight, self.plan.change_rate[rows], rates)
        return total


def solve_plan(known: Known, settings: FrontierSettings, budget: float, price: CarriedPrice | None) -> Solved:
    """Return the plan of a budget for revisits, fetches per second.

    ``price`` is where to start from, and learns from the plan; see `plan_rates`.
    """
    page, seen, objective = known.page, known.seen, settings.objective
    max_rate = np.where(page["max_rate"] < 1e299, page["max_rate"], np.inf)
    failures = seen["failures"].astype(np.float64)
    # What a failing page cannot use for its backoff is worth more elsewhere.
    slowed = failures > 0
    max_rate[slowed] = np.minimum(max_rate[slowed], 1.0 / backoff(failures[slowed], known.slots[slowed]))
    hosts, host_max_rate = host_limits(settings, page["host"], known.waiting)
    min_rate = np.minimum(page["min_rate"], max_rate)
    pages = Pages(known.slots, page["generation"], min_rate, max_rate, seen["shape"], seen["time"], known.committed)
    choice = choice_of(known.progress, pages, budget, host_shares(hosts, host_max_rate))
    importance, shape, time = page["importance"].copy(), seen["shape"].copy(), seen["time"].copy()

    median = believed_rates(shape, time, budget)

    def solve_steady(weight: np.ndarray, change_rate: np.ndarray | None, least: np.ndarray, most: np.ndarray) -> RatePlan:
        return plan_rates(
            weight,
            shape,
            time,
            budget,
            least,
            most,
            objective=objective,
            policy=settings.policy,
            host=hosts,
            host_max_rate=host_max_rate,
            price=price,
            slots=known.slots,
            change_rate=change_rate,
            least_rate=choice.least_rate,
            most_rate=choice.most_rate,
            median=median,
        )

    used = choice.change_rate
    bursty = stand_ins = None
    rows = bursty_rows(known, settings)
    if len(rows):
        used = median if used is None else used
        # One that is believed never to change (its rate is too small for a number) has no model to fit.
        rows = rows[used[rows] > 0]
    if len(rows):
        bursty = bursty_pages(rows, seen, known.bursts, used[rows])
        stand_ins = StandIns(bursty, importance, used, objective, known.rates[rows])

    def solve(least: np.ndarray, most: np.ndarray) -> RatePlan:
        if stand_ins is None:
            return solve_steady(importance, used, least, most)
        return stand_ins.plan(lambda weight, change_rate: solve_steady(weight, change_rate, least, most))

    timed = timed_pages(known.times, known.slots, importance, min_rate, max_rate, objective)
    if timed is None:
        return Solved(solve(min_rate, max_rate), None, bursty)
    start = float(known.published.get("multiplier", 0.0))
    plan = plan_beside(timed, solve, importance, min_rate, max_rate, LOAD * budget, start, hosts, host_max_rate)
    return Solved(plan, timed, bursty)


def bursty_rows(known: Known, settings: FrontierSettings) -> np.ndarray:
    """Return which pages of a plan have a heavy-tailed model: none with memoryless visits, nor while ``explore-then-commit`` explores.

    Memoryless visits are optimal for no such model (Azar's Problem 2 is about Poisson pages), and an exploration at even intervals asks
    for no model. Update times go before what bits say.
    """
    if settings.policy == "poisson" or known.progress.is_exploring:
        return np.zeros(0, np.int64)
    is_bursty = are_bursty(known.bursts["score"], known.bursts["variance"]) & (known.seen["observations"] > 0)
    return np.flatnonzero(is_bursty & ~np.isin(known.slots, known.times.slots))


def bursty_pages(rows: np.ndarray, seen: np.ndarray, bursts: np.ndarray, change_rate: np.ndarray) -> BurstyPages:
    """Fit heavy-tailed models to the pages at `rows` of these columns; ``change_rate`` (k,) are their Poisson rates, per second."""
    few, kept = seen[rows], bursts[rows]
    correlation = sure_correlation(kept["score"], kept["variance"], kept["spread"])
    return BurstyPages.of_bits(rows, few["changes"], few["observations"], correlation, change_rate)


def host_limits(settings: FrontierSettings, host: np.ndarray, waiting: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | float]:
    """Number the hosts of pages from 0, and say what HOST_DELAY and HOST_MAX_RATE leave each for revisits, less first visits.

    ``waiting`` has the host of each page that waits for its first visit.
    """
    if settings.host_period <= 0:
        return None, np.inf
    hosts, numbered = np.unique(host, return_inverse=True)
    capacity = 1.0 / settings.host_period
    counts = np.bincount(waiting, minlength=int(host.max(initial=0)) + 1)[hosts]
    kept = np.minimum(settings.first_visit_share * capacity, counts / settings.resolve_interval)
    return numbered, LOAD * np.maximum(capacity - kept, 0.05 * capacity)


def default_prior_time(settings: FrontierSettings, host: np.ndarray, waiting: np.ndarray, revisit_budget: float) -> float:
    """Return the time (s) of the prior of pages of which nothing is known: the time in which all pages can be visited once.

    Parameters
    ----------
    settings : FrontierSettings
        Limits of hosts.
    host : ndarray of int (n,)
        Host of each active page, whether it was visited or not: in the first seconds of a crawl few were.
    waiting : ndarray of int
        Host of each page that waits for its first visit.
    revisit_budget : float
        Fetches per second for revisits; hosts may admit fewer.
    """
    _, most = host_limits(settings, host, waiting)
    return max(len(host), 1) / min(revisit_budget, float(np.sum(most)) / LOAD)
