"""What another budget would buy a crawl: the planner's own arithmetic, asked about budgets that the crawl does not have.

Nothing is written: neither a plan nor the planner's lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.frontier.exploring import Progress
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.frontier.siblings import learned_priors, with_prior
from optimal_frontier.frontier.solving import Known, default_prior_time
from optimal_frontier.scheduling import LOAD, RatePlan
from optimal_frontier.scheduling.budget_curve import BudgetCurve, CurvePoint
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import ACTIVE, ONCE, TRANSIENT
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import read_update_times

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
    present : float
        The budget of the crawl, fetches per second.
    page, seen : ndarray, shape (n,)
        Columns of the pages that would be planned.
    published : dict of str
        The last plan.
    prior_time : float
        Time of the default prior of pages without a bit, seconds: that of a plan at the present budget. What is believed of a page does not
        change with the budget that is asked about.
    progress : Progress
        Exploration at the last plan, under the present EXPLORATION: its draw, its phase, what it has committed to.
    active, waiting : int
        Pages that are revisited or will be; pages that wait for their first visit.
    """

    def __init__(
        self,
        planner: Planner,
        columns: Sequence[np.ndarray],
        waiting: np.ndarray,
        published: dict[str, str],
        present: float,
        revisit_budget: Callable[[float], float],
    ) -> None:
        page, seen = all_pages, all_seen = columns[0], columns[1]
        active = page["state"] == ACTIVE
        self._slots = np.flatnonzero(active & (seen["visits"] > 0))
        self.active, self._total = int(np.count_nonzero(active)), float(page["importance"][active].sum())
        page, seen, plan, bursts = (column[self._slots] for column in columns)
        self.progress: Progress = planner.progress(published)
        self.page, self.published, self.present, self.waiting = page, published, present, len(waiting)
        self.prior_time = default_prior_time(planner.settings, all_pages["host"][active], waiting, revisit_budget(present))
        self.seen = with_prior(page, seen, learned_priors(all_pages, all_seen, self.prior_time))
        self._planner = planner
        committed, times = planner.committed(self.progress, self._slots), read_update_times(planner.store)
        self._known = Known(self._slots, page, self.seen, bursts, plan["rate"], waiting, published, self.progress, committed, times)
        self.revisit_budget = revisit_budget
        maxima = float(page["max_rate"].sum())
        # Twice as much, so that something is left over for certain.
        most = 2 * maxima / LOAD if maxima < 1e299 else math.inf
        self._curve = BudgetCurve(self._solve, most, of_freshness=planner.settings.objective == "freshness")

    def at(self, budget: float) -> Outlook:
        """Return what a budget above 0 would buy."""
        return self._outlook(budget, self._curve.at(self.revisit_budget(budget)))

    def plan(self, budget: float) -> RatePlan:
        """Return the plan that the next one would be with this budget."""
        return self._solve(self.revisit_budget(budget))

    def changes(self, budget: float) -> float:
        """Return the importance-weighted changes seen per second, which OBJECTIVE "changes" maximises."""
        solved = self._planner.solve(self._known, self.revisit_budget(budget))
        return solved.changes(self.page["importance"].copy())

    def budget_for(self, freshness: float) -> Outlook | None:
        """Return the least budget that would buy a freshness; None if none would."""
        revisits = self._curve.budget_for(freshness * self._total, self.revisit_budget(self.present))
        if revisits is None:
            return None
        return self._outlook(self._whole(revisits), self._curve.at(revisits))

    def limit(self) -> Limit:
        """Return the best that any budget can buy, and why it is not everything."""
        end = self._curve.end()
        fetched = float(self.page["importance"].sum())
        settings = self._planner.settings
        without_hosts = end.value
        if settings.host_period > 0:
            free = Planner(self._planner.store, replace(settings, host_period=0.0))
            without_hosts = max(end.value, self._most(free, self.seen))
        without_failures = without_hosts
        if self.seen["failures"].any():
            calm = self.seen.copy()
            calm["failures"] = 0
            without_failures = max(without_hosts, self._most(Planner(self._planner.store, replace(settings, host_period=0.0)), calm))
        return Limit(
            freshness=end.value / self._total,
            budget=self._whole(end.budget),
            not_fetched=max(0.0, 1 - fetched / self._total),
            bounds=max(0.0, fetched - without_failures) / self._total,
            hosts=(without_hosts - end.value) / self._total,
            failures=(without_failures - without_hosts) / self._total,
        )

    def _solve(self, revisit_budget: float) -> RatePlan:
        return self._solve_by(self._planner, self.seen, revisit_budget)

    def _solve_by(self, planner: Planner, seen: np.ndarray, revisit_budget: float) -> RatePlan:
        return planner.solve(replace(self._known, seen=seen), revisit_budget).plan

    def _most(self, planner: Planner, seen: np.ndarray) -> float:
        maxima = float(self.page["max_rate"].sum())
        # Pages without a shortest interval come as near to always fresh as one likes.
        if maxima >= 1e299:
            return float(self.page["importance"].sum())
        return self._solve_by(planner, seen, 2 * maxima / LOAD).freshness

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


def read_crawl_curve(store: Store, settings: FrontierSettings) -> CrawlCurve:
    """Read the columns of a crawl, and return its curve. Redis is only read.

    Parameters
    ----------
    store : Store
        Opened.
    settings : FrontierSettings
        Those of the crawl.

    Raises
    ------
    StateError
        There is no plan yet, or no page to plan.
    """
    published = store.hash("published")
    if "budget" not in published:
        raise StateError("there is no plan yet, so nothing is known of this crawl's budget: run a crawl, or `optimal-frontier plan --once`")
    columns = store.columns("page", "seen", "plan", "bursts")
    page, seen = columns[0], columns[1]
    counts, now = store.counts(), store.now()
    if not ((page["state"] == ACTIVE) & (seen["visits"] > 0)).any():
        raise StateError("no page was fetched yet that is to be revisited, so there is nothing to plan")
    waiting = page["host"][np.isin(page["state"], (ACTIVE, ONCE, TRANSIENT)) & (seen["attempts"] == 0)]
    present = settings.crawl_rate if settings.crawl_rate is not None else float(published["budget"])
    planner = Planner(store, settings)

    def revisit_budget(budget: float) -> float:
        # Redirects, retries and robots.txt come with fetches: of twice the budget they take twice as much.
        extra = int(published.get("extra_fetches", 0))
        scaled = {**counts, "extra_fetches": extra + (counts.get("extra_fetches", 0) - extra) * budget / present}
        return planner._revisit_budget(budget, scaled, published, now)  # type: ignore[arg-type]  # a count need not be whole

    return CrawlCurve(planner, columns, waiting, published, present, revisit_budget)
