"""What another budget would buy a crawl: the planner's own arithmetic, asked about budgets that the crawl does not have.

Nothing is written: neither a plan nor the planner's lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.frontier.planning.budget import Budget, revisit_budget
from optimal_frontier.frontier.planning.crawl_pages import CrawlPages
from optimal_frontier.frontier.planning.solving import Problem, Solved, solve
from optimal_frontier.optimization import changes_periodic
from optimal_frontier.scheduling.budget_curve import BudgetCurve, CurvePoint
from optimal_frontier.scheduling.planning import FAR
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.published import sound_fields
from optimal_frontier.state.rows import RETIRED

#: Relative accuracy of a budget that leaves a given rest for revisits.
_TOLERANCE: Final = 1e-12
_MOST_HALVINGS: Final = 200


@dataclass(frozen=True)
class Outlook:
    """What one budget would buy.

    Attributes
    ----------
    budget, revisit_budget : float
        The whole budget, and what it leaves for revisits now, fetches per second.
    planned_rate, unused : float
        Sum of the planned rates, and what limits of pages and hosts leave of what may be planned, fetches per second.
    freshness : float
        Expected share of time that copies are current, weighted by importance; pages not fetched yet count 0.
    slope : float
        d freshness / d budget: what one more fetch per second would add.
    multiplier : float
        The plan's: d objective / d planned rate, not normalised.
    feasible : bool
        False where intervals asked for would have to be scaled down.
    """

    budget: float
    revisit_budget: float
    planned_rate: float
    unused: float
    freshness: float
    slope: float
    multiplier: float
    feasible: bool


@dataclass(frozen=True)
class Limit:
    """The best that any budget can buy, and where the rest goes.

    Attributes
    ----------
    freshness : float
        Reached from `budget` on.
    budget : float
        The whole budget, fetches per second.
    not_fetched, bounds, hosts, failures : float
        Shares of freshness that are out of reach because of pages without a first visit, shortest intervals (MIN_INTERVAL, RULES),
        limits of hosts, and the backoff of failing pages. With `freshness` they sum to 1.
    """

    freshness: float
    budget: float
    not_fetched: float
    bounds: float
    hosts: float
    failures: float


class CrawlCurve:
    """Freshness against the budget of a stored crawl, as the next plan would see it; see `read_crawl_curve`.

    Attributes
    ----------
    crawl : CrawlPages
        What was read: pages, priors (those of a plan at the present budget: what is believed of a page does not change with the budget
        that is asked about), exploration.
    problem : Problem
        The pages that would be planned.
    published : dict of str
        The last plan.
    present : float
        The budget of the crawl, fetches per second.
    revisit_budget : callable
        Whole budget -> what it leaves for revisits, fetches per second.
    active, waiting : int
        Pages that are revisited or will be; pages that wait for their first visit.
    """

    def __init__(
        self, crawl: CrawlPages, problem: Problem, published: dict[str, str], present: float, revisit_budget: Callable[[float], float]
    ) -> None:
        self.crawl, self.problem, self.published, self.present = crawl, problem, published, present
        self.revisit_budget = revisit_budget
        self.active = crawl.active
        self.waiting = sum(
            int(np.count_nonzero((table.pages["state"] < RETIRED) & (table.pages["b"] == 0))) for table in crawl.tables.values()
        )
        self._total = crawl.importance
        self._start = float(published.get("multiplier", 0.0))
        most = self._most_rate()
        # Hubs are visited for what no freshness shows.
        is_all = problem.objective == "freshness" and problem.discovery is None
        # Twice as much, so that something is left over for certain.
        self._curve = BudgetCurve(self._solve, 2 * most if most < FAR else math.inf, of_freshness=is_all)

    def at(self, budget: float) -> Outlook:
        """Return what a budget above 0 would buy."""
        return self._outlook(budget, self._curve.at(self.revisit_budget(budget)))

    def plan(self, budget: float) -> Solved:
        """Return the plan that the next one would be with this budget."""
        return self._solve(self.revisit_budget(budget))

    def changes(self, budget: float) -> float:
        """Return the importance-weighted changes seen per second, which OBJECTIVE "changes" maximises."""
        return float(changes_periodic(self.problem.importance, self.problem.change_rate, self.plan(budget).rates))

    def found_after(self, budget: float) -> float | None:
        """Return the mean seconds from the appearance of a new page until a visit to a hub finds it; None without hubs."""
        discovery = self.problem.discovery
        if discovery is None:
            return None
        hubs = discovery > 0
        with np.errstate(divide="ignore"):
            delay = (1.0 if self.problem.policy == "poisson" else 0.5) / self.plan(budget).rates[hubs]
        return float(discovery[hubs] @ delay / discovery[hubs].sum())

    def budget_for(self, freshness: float) -> Outlook | None:
        """Return the least budget that would buy a freshness; None if none would."""
        revisits = self._curve.budget_for(freshness * self._total, self.revisit_budget(self.present))
        if revisits is None:
            return None
        return self._outlook(self._whole(revisits), self._curve.at(revisits))

    def limit(self) -> Limit:
        """Return the best that any budget can buy, and why it is not everything."""
        end = self._curve.end()
        fetched = float(self.problem.importance.sum())
        without_hosts = max(end.value, self._most(replace(self.problem, limit=None))) if self.problem.limit is not None else end.value
        without_failures = without_hosts
        failing = self.crawl.failing
        if failing.any():
            calm = np.where(failing, self.crawl.calm_max_rate, self.problem.max_rate)
            without_failures = max(without_hosts, self._most(replace(self.problem, limit=None, max_rate=calm)))
        return Limit(
            freshness=end.value / self._total,
            budget=self._whole(end.budget),
            not_fetched=max(0.0, 1 - fetched / self._total),
            bounds=max(0.0, fetched - without_failures) / self._total,
            hosts=(without_hosts - end.value) / self._total,
            failures=(without_failures - without_hosts) / self._total,
        )

    def _solve(self, revisits: float) -> Solved:
        return solve(self.problem, revisits, self._start)

    def _most_rate(self) -> float:
        return float(self.problem.max_rate.sum())

    def _most(self, problem: Problem) -> float:
        maxima = float(problem.max_rate.sum())
        # Pages without a shortest interval come as near to always fresh as one likes.
        if maxima >= FAR:
            return float(problem.importance.sum())
        return solve(problem, 2 * maxima, self._start).freshness

    def _outlook(self, budget: float, point: CurvePoint) -> Outlook:
        step = 1e-6 * budget
        share = (self.revisit_budget(budget + step) - self.revisit_budget(budget)) / step
        return Outlook(
            budget=budget,
            revisit_budget=point.budget,
            planned_rate=point.planned_rate,
            unused=point.unused,
            freshness=point.value / self._total,
            slope=share * point.slope / self._total,
            multiplier=point.multiplier,
            feasible=point.feasible,
        )

    def _whole(self, revisits: float) -> float:
        """Return the budget that leaves this much for revisits."""
        low, high = revisits, revisits
        while self.revisit_budget(high) < revisits:
            low, high = high, 2 * high
        for _ in range(_MOST_HALVINGS):
            if high - low <= _TOLERANCE * high:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.revisit_budget(middle) < revisits else (low, middle)
        return high


def read_crawl_curve(namespace: Namespace, settings: FrontierSettings) -> CrawlCurve:
    """Read the pages of a crawl, and return its curve. Redis is only read.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Those of the crawl.

    Raises
    ------
    StateError
        There is no plan yet, or no page to plan.
    """
    published = sound_fields(namespace.hash("plan"))
    if "budget" not in published:
        raise StateError("there is no plan yet, so nothing is known of this crawl's budget: run a crawl, or `optimal-frontier plan --once`")
    crawl = CrawlPages(namespace, settings)
    crawl.begin(range(namespace.partitions))
    for k in crawl.partitions:
        crawl.read(k, 0.0)
    now = crawl.now()
    share = float(published.get("share", 1.0))
    present = settings.crawl_rate if settings.crawl_rate is not None else float(published["budget"]) / share

    def left(budget: float) -> float:
        # Redirects, retries and robots.txt come with fetches: of twice the budget they take twice as much.
        extra = int(published.get("extra_fetches", 0))
        scaled = {**crawl.counts, "extra_fetches": extra + (crawl.counts.get("extra_fetches", 0) - extra) * budget / present}
        return revisit_budget(settings, budget, scaled, published, now)

    problem = crawl.problem(published, now, Budget(present, left(present), 0.0, 0, 0))
    if not len(crawl.planned):
        raise StateError("no page was fetched yet that is to be revisited, so there is nothing to plan")
    return CrawlCurve(crawl, problem, published, present, left)
