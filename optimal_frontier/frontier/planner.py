"""The planner: reads the columns in bulk, solves for the revisit rates, writes them back, queues what falls due soon.

One planner at a time, elected by a lock with a fencing token: a planner that lost the lock can no longer write.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import OptimalFrontierError
from optimal_frontier.frontier.deadlines import LivePrice, deadlines, with_update_times
from optimal_frontier.frontier.dispatcher import horizon_s
from optimal_frontier.frontier.exploring import Progress
from optimal_frontier.frontier.siblings import learned_priors, prior_column, with_prior
from optimal_frontier.frontier.solving import Known, Solved, default_prior_time, solve_plan
from optimal_frontier.frontier.timed_pages import bought_column
from optimal_frontier.scheduling import LOAD, PRIOR_SHAPE, CarriedPrice, RatePlan, credit_at
from optimal_frontier.scheduling.credit import LEAST_CARRY
from optimal_frontier.scheduling.index import LOOK_ROUNDS
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import ACTIVE, CHUNK, COMMITTED, INDEX, ONCE, PLAN, TRANSIENT
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import StoredTimes, read_update_times

logger = logging.getLogger(__name__)

#: The lock outlives its holder by this much, seconds.
LOCK_S: Final = 30.0
#: Redirects, retries and robots.txt below this share of the budget are left to the 3% that plans keep free.
_EXTRA_SHARE: Final = 0.01
#: Pages per script call, so that no dispatch waits long behind it.
_QUEUE_BATCH: Final = 200
#: A crawl that has grown by this factor since the last plan gets one within a tenth of RESOLVE_INTERVAL.
_GROWTH: Final = 1.1
#: After a change of POLICY, DISPATCH or EXPLORATION a plan is made this many seconds after the last one.
_SWITCH_S: Final = 1.0
#: Stands for "no bound".
_FAR: Final = 1e300
#: Weight of the newest measurement of an ``auto`` budget.
_NEWEST: Final = 0.5


@dataclass(frozen=True)
class PlanReport:
    """What a plan did. Rates per second; ``budget`` is the whole one, ``revisit_budget`` what is left for revisits."""

    time: float
    seconds: float
    pages: int
    queued: int
    budget: float
    revisit_budget: float
    planned_rate: float
    multiplier: float
    estimated_freshness: float
    feasible: bool


class Planner:
    """Plans for one namespace.

    Parameters
    ----------
    store : Store
        Opened.
    settings : FrontierSettings
        Parsed settings.
    """

    def __init__(self, store: Store, settings: FrontierSettings) -> None:
        self.store = store
        self.settings = settings
        self.owner = f"{os.getpid()}:{secrets.token_hex(4)}"
        self._warned = False
        self._price: CarriedPrice | None = None

    def due_in(self) -> float | None:
        """Return seconds until the next plan is due; None while no page was fetched.

        The first plans come quickly, one second after the first fetch and then at growing intervals, so that a new crawl does not
        wait RESOLVE_INTERVAL for what it has learned.
        """
        rows = self.store.commands(
            [
                ["HMGET", self.store.key("published"), "time", "first_time", "fetched", "policy", "exploration", "exploration_turns"],
                ["HGET", self.store.key("published"), "dispatch"],
                ["HGET", self.store.key("stats"), "fetched"],
            ]
        )
        (last, first, known, policy, exploration, turns), dispatch, fetched = rows
        if last is None:
            return 0.0 if fetched and int(fetched) > 0 else None
        interval = self.settings.resolve_interval
        warm = min(interval, max(1.0, 0.5 * (float(last) - float(first or last))))
        if int(fetched or 0) > _GROWTH * int(known or 0):
            # Pages that no plan has seen live on a guess at the old price, on top of a plan that has spent the budget.
            warm = min(warm, max(1.0, 0.1 * interval))
        if (policy or b"periodic").decode() != self.settings.policy:
            warm = min(warm, _SWITCH_S)  # rates of one policy are not worth much to visits of the other
        if (dispatch or b"edf").decode() != self.settings.dispatch:
            warm = min(warm, _SWITCH_S)
        if (exploration or b"median").decode() != self.settings.exploration:
            warm = min(warm, _SWITCH_S)
        elif turns is not None:
            # Even intervals cost freshness: not longer than they are meant to last.
            warm = min(warm, max(1.0, 0.1 * interval, float(turns) - float(last)))
        return float(last) + warm - self.store.now()

    def plan(self) -> PlanReport | None:
        """Make one plan; return None if another planner holds the lock or took over.

        Raises
        ------
        StateUnavailableError
            Redis cannot be reached; what was written is a plan of pages that are planned again next time.
        """
        fence = self.store.run([("take_planner_lock", [self.owner, int(LOCK_S * 1000)])])[0]
        if not fence:
            return None
        try:
            return self._plan_under(fence)
        finally:
            # Between plans nobody holds the lock, so that `plan --once` and other spiders get their turn.
            with contextlib.suppress(OptimalFrontierError):  # it runs out by itself
                self.release()

    def _plan_under(self, fence: int) -> PlanReport | None:
        began = time.monotonic()
        base_time = self.store.now()
        page, seen, old, bursts = self.store.columns("page", "seen", "plan", "bursts")
        counts = self.store.counts()
        previous = self.store.hash("published")
        budget, measured = self._budget(counts, previous, base_time)
        revisit_budget = self._revisit_budget(budget, counts, previous, base_time)

        chosen = np.flatnonzero((page["state"] == ACTIVE) & (seen["visits"] > 0))
        now_page, now_seen = page[chosen], seen[chosen]
        waiting = page["host"][np.isin(page["state"], (ACTIVE, ONCE, TRANSIENT)) & (seen["attempts"] == 0)]
        progress = self.progress(previous).after(counts.get("observations", 0), len(chosen))
        committed = self.committed(progress, chosen)
        prior_time = default_prior_time(self.settings, page["host"][page["state"] == ACTIVE], waiting, revisit_budget)
        priors = learned_priors(page, seen, prior_time)
        believed = with_prior(now_page, now_seen, priors)
        times = read_update_times(self.store)
        known = Known(chosen, now_page, believed, bursts[chosen], old["rate"][chosen], waiting, previous, progress, committed, times)
        solved = self.solve(known, revisit_budget)
        plan = solved.plan
        self._warn(plan, revisit_budget, now_page)

        new = np.zeros(len(page), PLAN)
        new["rate"][chosen] = plan.rates
        new["base_time"][chosen] = base_time
        new["base_credit"][chosen] = self._credit_now(now_seen, old[chosen], plan.rates, base_time)
        if progress.commits and len(chosen):
            progress = replace(progress, committed=progress.number)
            if not self._write(fence, "committed", _commitment(len(page), chosen, now_page, now_seen)):
                return None
        if not self._write(fence, "plan", new) or not self._write(fence, "prior", prior_column(priors)):
            return None
        bought = bought_column(len(page), solved.timed, chosen, plan.rates)
        if len(times.slots) and not self._write(fence, "bought", bought):
            return None
        if not self._set_price(fence, len(page), chosen, plan, revisit_budget):
            return None
        queued = self._queue(fence, chosen, page, seen, old, new, base_time, times, bought["times"][times.slots])
        if queued is None:
            return None
        total = float(page["importance"][page["state"] == ACTIVE].sum())
        report = PlanReport(
            base_time,
            time.monotonic() - began,
            len(chosen),
            queued,
            budget,
            revisit_budget,
            float(plan.rates.sum()),
            plan.multiplier,
            plan.believed / total if total > 0 else 0.0,
            plan.feasible,
        )
        return report if self._publish(fence, report, plan, prior_time, counts, previous, measured, progress) else None

    def progress(self, published: Mapping[str, str]) -> Progress:
        """Return how far exploration was at a plan, under these settings."""
        return Progress.of_plan(published).under(self.settings.exploration, self.settings.close_after)

    def committed(self, progress: Progress, slots: np.ndarray) -> np.ndarray | None:
        """Read what ``explore-then-commit`` has committed to; None if nothing is in force."""
        if progress.exploration != "explore-then-commit" or progress.is_exploring or progress.commits:
            return None
        rows: np.ndarray = self.store.columns("committed")[0][slots]
        return rows

    def release(self) -> None:
        """Let another planner take over at once."""
        self.store.run([("release_planner_lock", [self.owner])])

    def _budget(self, counts: dict[str, int], previous: dict[str, str], now: float) -> tuple[float, float]:
        if self.settings.crawl_rate is not None:
            return self.settings.crawl_rate, 0.0
        done = counts.get("visits", 0) + counts.get("failures", 0) + counts.get("extra_fetches", 0)
        since = float(previous.get("measured_at", 0)) or float(self.store.hash("meta").get("opened", now))
        before = int(previous.get("measured_fetches", 0))
        last = float(previous.get("measured_rate", 0))
        seconds = now - since
        # The dispatcher of an auto budget never idles, so fetches per second are capacity; a gap is downtime and says nothing.
        if seconds <= 0 or (last > 0 and seconds > 3 * self.settings.resolve_interval):
            return max(last, 1e-6), last
        measured = (done - before) / seconds
        rate = measured if last <= 0 else (1 - _NEWEST) * last + _NEWEST * measured
        return max(rate, 1e-6), rate

    def _revisit_budget(self, budget: float, counts: dict[str, int], previous: dict[str, str], now: float) -> float:
        # No more than the waiting first visits can use before the next plan.
        kept = min(self.settings.first_visit_share * budget, counts.get("pending", 0) / self.settings.resolve_interval)
        extra = 0.0
        if "time" in previous and now > float(previous["time"]):
            extra = (counts.get("extra_fetches", 0) - int(previous.get("extra_fetches", 0))) / (now - float(previous["time"]))
        if extra <= _EXTRA_SHARE * budget:
            extra = 0.0
        return max(budget - kept - extra, 0.05 * budget)

    def solve(self, known: Known, budget: float) -> Solved:
        """Return the plan of a budget for revisits, fetches per second; nothing is written."""
        if self._price is None and self.settings.policy == "periodic":
            self._price = CarriedPrice(self.settings.objective, float(known.published.get("multiplier", 0.0)))
        return solve_plan(known, self.settings, budget, self._price)

    def _credit_now(self, seen: np.ndarray, old: np.ndarray, rates: np.ndarray, now: float) -> np.ndarray:
        earned = credit_at(now, seen["carry"], seen["settled"], old["rate"], old["base_time"], old["base_credit"])
        # A page's first plan counts from its first visit.
        first = seen["carry"] + rates * (now - seen["settled"])
        credit: np.ndarray = np.where(old["base_time"] > 0, earned, first)
        # Evenly spaced visits never leave less: it is a long draw of the memoryless visits of an earlier run.
        return np.maximum(credit, LEAST_CARRY) if self.settings.policy == "periodic" else credit

    def _warn(self, plan: RatePlan, budget: float, page: np.ndarray) -> None:
        if not plan.feasible and not self._warned:
            asked = float(page["min_rate"].sum())
            logger.warning(
                "the intervals asked for (RULES, MAX_INTERVAL) need %.4g fetches/s, of which %.4g can be planned (or a host's limit is "
                "below what is asked of it); they are scaled down",
                asked,
                LOAD * budget,
            )
        self._warned = not plan.feasible

    def _set_price(self, fence: int, slots: int, chosen: np.ndarray, plan: RatePlan, budget: float) -> bool:
        """Write what pages are dispatched by under DISPATCH "index"; end dispatch by price under "edf"."""
        if self.settings.dispatch == "index":
            index = np.zeros(slots, INDEX)
            # Lua knows no infinity, and 0 would mean that the page is not planned.
            most = np.clip(plan.most, np.finfo(np.float64).tiny, _FAR)
            for name, values in zip(INDEX.names or (), (plan.weight, plan.change_rate, plan.least, most), strict=True):
                index[name][chosen] = values
            if not self._write(fence, "index", index):
                return False
        look = LOOK_ROUNDS * max(len(chosen), 1) / budget
        start = [fence, self.settings.dispatch, self.settings.objective, repr(plan.multiplier), repr(look)]
        return bool(self.store.run([("set_price", start)])[0])

    def _write(self, fence: int, group: str, new: np.ndarray) -> bool:
        calls = []
        for at in range(0, len(new), 16 * CHUNK):
            arguments: list[Any] = [fence, group]
            for chunk in range(at // CHUNK, -(-min(len(new), at + 16 * CHUNK) // CHUNK)):
                arguments += [chunk, 0, new[chunk * CHUNK : (chunk + 1) * CHUNK].tobytes()]
            calls.append(("write_plan", arguments))
        return all(self.store.run([call])[0] for call in calls)

    def _queue(
        self,
        fence: int,
        chosen: np.ndarray,
        page: np.ndarray,
        seen: np.ndarray,
        old: np.ndarray,
        new: np.ndarray,
        now: float,
        times: StoredTimes,
        bought: np.ndarray,
    ) -> int | None:
        horizon = horizon_s(self.settings)
        limit = now + horizon + self.settings.resolve_interval
        live = LivePrice.read(self.store)
        soon = np.zeros(len(chosen), bool)
        for plan, plans_times in ((old, times.bought), (new, bought)):
            # By the old plan too: what it queued may have to move back.
            due = deadlines(page[chosen], seen[chosen], plan[chosen], slots=chosen)
            soon |= with_update_times(due, times, chosen, page[chosen], seen[chosen], plan[chosen], plans_times) <= limit
        if live is not None:
            # What is looked at again before the horizon is on the queue whatever its deadline.
            index = self.store.columns("index")[0][chosen]
            soon |= np.minimum(deadlines(page[chosen], seen[chosen], new[chosen], index, live, chosen), now + live.look_s) <= limit
        slots = chosen[soon]
        pairs = np.stack([slots.astype("<u4"), page["generation"][slots].astype("<u4")], axis=1)
        queued = 0
        for at in range(0, len(pairs), _QUEUE_BATCH):
            result = self.store.run([("queue_due", [fence, repr(horizon), pairs[at : at + _QUEUE_BATCH].tobytes()])])[0]
            if result < 0:
                return None
            queued += int(result)
        return queued

    def _publish(
        self,
        fence: int,
        report: PlanReport,
        plan: RatePlan,
        prior_time: float,
        counts: dict[str, int],
        previous: dict[str, str],
        measured: float,
        progress: Progress,
    ) -> bool:
        low, middle, high = np.percentile(plan.median, [10, 50, 90]) if report.pages else (0.0, 0.0, 0.0)
        fetches = counts.get("visits", 0) + counts.get("failures", 0) + counts.get("extra_fetches", 0)
        turns = report.time + progress.rounds_left * report.pages / (LOAD * report.revisit_budget) if report.pages else math.inf
        fields: dict[str, Any] = {
            "time": f"{report.time:.6f}",
            "first_time": previous.get("first_time", f"{report.time:.6f}"),
            "seconds": f"{report.seconds:.6f}",
            "policy": self.settings.policy,
            "dispatch": self.settings.dispatch,
            "pages": report.pages,
            "fetched": counts.get("fetched", 0),
            "queued": report.queued,
            "budget": repr(report.budget),
            "revisit_budget": repr(report.revisit_budget),
            "planned_rate": repr(report.planned_rate),
            "unused": repr(plan.unused),
            "multiplier": repr(plan.multiplier),
            "prior_shape": repr(PRIOR_SHAPE),
            "prior_time": repr(prior_time),
            "estimated_freshness": repr(report.estimated_freshness),
            "feasible": int(report.feasible),
            "change_rate_p10": repr(float(low)),
            "change_rate_p50": repr(float(middle)),
            "change_rate_p90": repr(float(high)),
            "extra_fetches": counts.get("extra_fetches", 0),
            "measured_rate": repr(measured),
            "measured_at": f"{report.time:.6f}",
            "measured_fetches": fetches,
            "exploration_held": plan.held,
            "exploration_turns": repr(turns),
        } | progress.fields()
        arguments = [fence, *(value for pair in fields.items() for value in pair)]
        return bool(self.store.run([("publish_plan", arguments)])[0])


def _commitment(size: int, chosen: np.ndarray, page: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the column group *committed*: posteriors as they are; what has no bit yet is not committed to."""
    rows = np.zeros(size, COMMITTED)
    for name, values in (("shape", seen["shape"]), ("time", seen["time"]), ("generation", page["generation"])):
        rows[name][chosen] = values
    return rows
