"""The planner: reads what may have changed, solves for the one price, publishes it, and rewrites the pages whose deadline moved.

One planner at a time, elected by a lock with a fencing token; another one finds the lock taken and leaves the plan to its holder. A plan
that is lost costs time, not truth: judges make exact numbers at each visit.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.frontier.planning.bounds import BoundsRevision
from optimal_frontier.frontier.planning.budget import is_soon_done
from optimal_frontier.frontier.planning.clock_keeper import ClockKeeper, forget_clocks
from optimal_frontier.frontier.planning.crawl_pages import BLOCK, CrawlPages
from optimal_frontier.frontier.planning.crawl_solving import solve_crawl
from optimal_frontier.frontier.planning.host_prices import packed_prices
from optimal_frontier.frontier.planning.lock import LockLostError, PlannerLock
from optimal_frontier.frontier.planning.publishing import LivePrice, Plan, Ways, plan_fields, shares_of
from optimal_frontier.frontier.planning.rewriting import WRITTEN, calls_at_once, given_up, is_displaced, moved_deadlines, written_rows
from optimal_frontier.frontier.planning.solving import Solved
from optimal_frontier.optimization.sweeps import in_order
from optimal_frontier.scheduling.price_law import is_as_planned, lasting_log_price, log_price_towards, price_step
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Call, Namespace, number_of, texts
from optimal_frontier.state.partition import BATCH
from optimal_frontier.state.published import Published, sound_fields
from optimal_frontier.state.rows import pack_numbers

logger = logging.getLogger(__name__)

#: A crawl that has grown by this factor since the last plan gets one within a tenth of RESOLVE_INTERVAL.
_GROWTH: Final = 1.1
#: No more than this share of the time goes into the plans of a crawl that grows, until RESOLVE_INTERVAL is reached: where the processor is
#: busy, fetches wait for each of them. The first plan counts for nothing in that, as it loads what all of them need.
_PLANNING_SHARE: Final = 0.1
#: After a change of POLICY, OBJECTIVE, EXPLORATION, RULES or interval bounds a plan is made this many seconds after the last one.
_SWITCH_S: Final = 1.0
#: The price of a partition is set anew when no more than this share of the visits that would answer to the plan's price answer to its own.
_LEAST_ANSWER: Final = 0.1
#: That is not asked where the two are nearer than this, in logarithms.
_NEAR: Final = 0.5
#: Log prices of hosts at their limits that moved by more move the deadlines of their pages.
_MOVED_PRICE: Final = 0.02
#: Settings under which a plan is made that leave the price alone.
_OTHER_WAYS: Final = ("bounds", "neighbourhoods")
#: Calls that a look sends at once: nothing else is answered meanwhile.
_AT_ONCE: Final = 4


@dataclass(frozen=True)
class PlanReport:
    """What a plan did. Rates per second; ``budget`` is the whole one, ``revisit_budget`` what is left for revisits.

    Attributes
    ----------
    time, seconds : float
        When it was made, seconds since the epoch by the server's clock, and how long it took.
    pages, read, queued, written : int
        Planned; read from the server; sent with new numbers; of these not visited since.
    """

    time: float
    seconds: float
    pages: int
    read: int
    queued: int
    written: int
    budget: float
    revisit_budget: float
    planned_rate: float
    multiplier: float
    estimated_freshness: float
    feasible: bool
    stretch: float


class Planner:
    """Plans for one namespace, all partitions at one price.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Parsed settings.

    Attributes
    ----------
    crawl : CrawlPages
        The pages as they were last read.
    keeper : ClockKeeper or None
        Of clocks of neighbourhoods; None where NEIGHBOURHOODS is off.
    rates : ndarray
        Of the last plan, visits per second, of `crawl.planned`; empty where the crawl was solved in parts.
    is_incumbent : bool
        It made the last plan, as `due_in` found it.
    """

    def __init__(self, namespace: Namespace, settings: FrontierSettings) -> None:
        self.namespace = namespace
        self.settings = settings
        self.ways = Ways(settings, namespace.name)
        self.lock = PlannerLock(namespace)
        self.crawl = CrawlPages(namespace, settings)
        self.keeper = ClockKeeper(namespace, self.crawl) if settings.has_clocks else None
        self._looked_at = self._asked_at = 0.0
        self._fences: dict[int, int] = {}
        self.rates: NDArray[np.float64] = np.zeros(0)
        self.is_incumbent = False
        self._host_prices: dict[int, NDArray[np.float64]] = {}
        self._warned = self._told = False
        # The tables have numbers that are not written yet.
        self._is_writing = False

    def due_in(self) -> float | None:
        """Return seconds until the next plan is due; None while no page was fetched.

        The first one is due at the first fetch, the next one a second later, and then they come at growing intervals, so that a new crawl
        does not wait RESOLVE_INTERVAL for what it has learned; but none sooner than ten times as long after the last one as that has taken.
        """
        plan, fetched, self._asked_at = self._ask()
        # Of a plan whose time is damaged nobody knows when the next one is due, so nobody is waited for.
        self.is_incumbent = "time" not in plan or plan.get("planner", self.lock.owner) == self.lock.owner
        if "time" not in plan:
            return 0.0 if fetched > 0 else None
        last = float(plan["time"])
        interval, since_first = self.settings.resolve_interval, last - float(plan.get("first_time", last))
        least = max(1.0, float(plan.get("seconds", 0.0)) / _PLANNING_SHARE) if since_first else 1.0
        warm = min(interval, max(least, 0.5 * since_first))
        if fetched > _GROWTH * int(plan.get("fetched", 0)):
            # Pages that no plan has seen live on a guess, on top of a plan that has spent the budget.
            warm = min(warm, max(least, 0.1 * interval))
        if self._fences:
            self.ways.warn_of_others(plan)
        if not self._fences and self.ways.changed(plan):
            # Once: of two crawlers with settings of their own each would plan right after the other, for ever.
            warm = min(warm, _SWITCH_S)
        elif "exploration_turns" in plan:
            # Even intervals cost freshness: not longer than they are meant to last.
            warm = min(warm, max(least, 0.1 * interval, float(plan["exploration_turns"]) - last))
        return last + warm - self._asked_at

    def plan(self, *, if_due: bool = False) -> PlanReport | None:
        """Make one plan; return None if another planner holds the lock, whose plan counts then.

        Parameters
        ----------
        if_due : bool
            Return None too when under the lock none is due: another one has just made it.

        Raises
        ------
        StateUnavailableError
            No partition can be reached.
        """
        if not self.lock.take():
            return None
        try:
            if if_due and (self.due_in() or 0.0) > 0:
                return None
            return self._plan()
        except LockLostError:
            return None
        finally:
            # Between plans nobody holds the lock, so that `plan --once` and other spiders get their turn.
            self.lock.release()

    def _plan(self) -> PlanReport | None:
        began = time.monotonic()
        crawl, settings = self.crawl, self.settings
        previous, _, now = self._ask()
        live = {k: LivePrice.read(self.namespace, k) for k in sorted(self.lock.fences)}
        if self._is_writing:  # the last plan was lost on its way
            crawl.forget()
            self._host_prices.clear()
        crawl.begin(list(live))
        revisions: list[BoundsRevision] = []
        if previous.get("bounds", "") not in ("", self.ways.fields["bounds"]):
            for k, price in live.items():
                revisions.append(BoundsRevision(self.namespace, k, Terms(price.log_price, price.published, settings), now))
                crawl.revise(k, revisions[-1])
        for k, price in live.items():
            crawl.read(k, price.log_price, self.lock.renew)
        crawl.counts |= {"calls": sum(price.calls for price in live.values()), "partitions": len(live)}
        if revisions and not self._fences:  # settings that others have are told in `due_in`
            revised = sum(revision.revised for revision in revisions)
            logger.info("RULES or interval bounds changed: bounds and importance of %d pages follow", revised)
        solved = solve_crawl(crawl, previous, now, self.lock.renew)
        if self.keeper is not None:
            for k in live:
                self.lock.renew()
                self.keeper.take_in(k, now, takes_over=previous.get("planner") != self.lock.owner)
        self.lock.renew()
        self.rates = solved.rates
        self._warn(solved)
        switched = any(previous.get(name) != value for name, value in self.ways.fields.items() if name not in _OTHER_WAYS)
        is_even = crawl.progress.is_exploring
        sets = {k: price.is_unset or switched or previous.get("explores", "0") != str(int(is_even)) for k, price in live.items()}
        # First visits leave the price alone, so that of a crawl that grows is found by nobody else. Where fewer or more visits come than
        # were planned, the price that they have found keeps its distance from the plan's.
        grown = self._has_grown(previous)
        keeps = float(previous.get("multiplier", 0.0)) > 0 and solved.multiplier > 0
        moved = {k: solved.log_price - (p.published.log_price if keeps else p.log_price) for k, p in live.items()} if grown else {}
        made = self._terms(live, (solved, moved), sets, now)
        if self._is_as_planned(previous, now) and crawl.planned_pages:
            # Where it was not set already; what is queued is looked at soon enough.
            made = {k: self._towards(k, terms, solved.log_price) for k, terms in made.items()}
            sets = dict.fromkeys(sets, True)
        for k, terms in made.items():
            # A price in other units, or of even intervals, says nothing of this one.
            left = -math.inf if switched or live[k].is_unset else live[k].published.left
            lasting = lasting_log_price(solved.log_price, left)
            made[k] = terms._replace(published=replace(terms.published, lasting=lasting))
        if self.keeper is not None:
            self.keeper.terms = made
        self._is_writing = True
        work = {k: self._moved(k, terms, now) for k, terms in made.items()}
        queued = sum(len(at) + len(timed) for at, timed in work.values())
        lost = sum(given_up(crawl.tables[k].pages) for k in live)
        self._tell(lost)
        seconds = time.monotonic() - began
        plan = Plan(now, seconds, queued, solved, crawl, dict(previous), self.ways.fields, made, lost)
        if not self._publish(plan, live, {k: made[k].log_price if sets[k] else None for k in work}) or not self._store_clocks(previous):
            return None
        written = 0
        for k, (at, timed) in work.items():
            for rows in (*written_rows(crawl.tables[k].pages, at), timed):
                done = self._write(k, rows)
                if done is None:
                    return None
                written += done
        self._is_writing = False
        crawl.settle(solved.stretch)
        self._fences = dict(self.lock.fences)
        return PlanReport(
            now,
            time.monotonic() - began,
            crawl.planned_pages,
            crawl.read_rows,
            queued,
            written,
            crawl.budget.total,
            crawl.budget.revisits,
            sum(sums.rate for sums in solved.by_partition.values()),
            solved.multiplier,
            plan.estimated_freshness,
            solved.feasible,
            solved.stretch,
        )

    def look_in(self) -> float | None:
        """Return seconds until the next look of the clocks' keeper, `due_in` being just asked; None where another one keeps them."""
        if self.keeper is None or not self.is_incumbent or not self.keeper.clocks:
            return None
        return self._looked_at + self.keeper.look_s - self._asked_at

    def catch_up(self) -> None:
        """Take in the visits since the last look or plan, before the log of them forgets any; `due_in` being just asked."""
        if self.keeper is not None:
            self.keeper.catch_up(self._asked_at)

    def look(self) -> int:
        """Move the deadlines of pages as the clocks of their neighbourhoods have run since; return how many were moved.

        It needs no lock: Redis refuses what is written once another planner has held that since the plan of this one.
        """
        if self.keeper is None:
            return 0
        self._looked_at = now = self.crawl.now(self._reachable()[0])
        moved, written = self.keeper.look(now), 0
        for k in moved.keys() & self._fences.keys():
            rows = moved[k].rows
            calls = [Call(k, "write_plan", [self._fences[k], rows[at : at + BATCH].tobytes()]) for at in range(0, len(rows), BATCH)]
            done = [int(reply) for at in range(0, len(calls), _AT_ONCE) for reply in self.namespace.run(calls[at : at + _AT_ONCE])]
            if min(done) < 0:
                return written
            pages = self.crawl.tables[k].pages
            for name in ("a", "s", "e", "l"):
                pages[name][moved[k].at] = rows[name]
            pages["placed"][moved[k].at] = self.keeper.terms[k].log_price
            self.keeper.settle(k, moved[k].at)
            written += sum(done)
        return written

    def release(self) -> None:
        """Let another planner take over at once."""
        self.lock.release()

    def _towards(self, k: int, terms: Terms, planned: float) -> Terms:
        """Return the terms of a partition at a price that the plan's has drawn."""
        moved = 0.0 if self.keeper is None else self.keeper.running(k)
        return terms._replace(log_price=log_price_towards(terms.log_price, planned, moved))

    def _is_as_planned(self, previous: Mapping[str, str], now: float) -> bool:
        """Tell whether revisits came at the rate that the last plan counted with, see `price_law.is_as_planned`."""
        if "time" not in previous or now <= float(previous["time"]):
            return False
        return is_as_planned(self._fetches_since(previous)[1] / (now - float(previous["time"])), self.crawl.budget.revisits)

    def _has_grown(self, previous: Mapping[str, str]) -> bool:
        """Tell whether pages that are new have moved the price: by many since the last plan, or by a first pass that takes many plans."""
        crawl, (firsts, revisits) = self.crawl, self._fetches_since(previous)
        is_in_pass = not is_soon_done(crawl.counts.get("pending", 0), self.settings, crawl.budget.total)
        return crawl.counts.get("fetched", 0) > _GROWTH * int(previous.get("fetched", 0)) or (is_in_pass and firsts >= max(revisits, 1))

    def _fetches_since(self, previous: Mapping[str, str]) -> tuple[int, int]:
        """Return the first visits and the revisits since the last plan."""
        budget = self.crawl.budget
        firsts = self.crawl.counts.get("fetched", 0) - int(previous.get("fetched", 0))
        extra = budget.extra - int(previous.get("extra_fetches", 0))
        return firsts, budget.fetches - int(previous.get("measured_fetches", 0)) - firsts - extra

    def _terms(
        self, live: dict[int, LivePrice], found: tuple[Solved, dict[int, float]], sets: dict[int, bool], now: float
    ) -> dict[int, Terms]:
        """Return by partition the price that it dispatches by from now on, and the plan as judges will read it.

        ``found`` is the plan, and by how much the prices of partitions move that are not set to its price.
        """
        made = {}
        solved, moved = found
        for k, price in live.items():
            if not sets[k] and abs(price.log_price - solved.log_price) > _NEAR:
                # Where no page answers, as all are at their bounds or given up, no visit will ever move the price.
                here = self.crawl.answer_at(k, price.log_price)
                sets[k] = here <= _LEAST_ANSWER * solved.by_partition[k].response
            is_set = (sets[k] or k in moved) and self.crawl.planned_pages > 0
            step = solved.log_price - price.log_price if sets[k] else moved.get(k, 0.0)
            log_price = price.log_price + (step if is_set else 0.0)
            extra = self.crawl.of_partition(k, solved.extra)
            published = Published(
                number=price.published.number + 1,
                time=now,
                log_price=solved.log_price,
                prior_time=self.crawl.priors.default_time,
                priors=self.crawl.priors.by_pattern(),
                host_prices={int(h): float(extra[h]) for h in np.flatnonzero(extra > 0)},
                stretch=solved.stretch,
                exploration={name: str(value) for name, value in self.crawl.progress.fields().items()},
            )
            made[k] = Terms(log_price, published, self.settings)
            sets[k] = is_set
        self._sets = sets
        return made

    def _moved(self, k: int, terms: Terms, now: float) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Give pages that have moved new numbers; return where they stand, and what to write of those with update times."""
        pages, crawl = self.crawl.tables[k].pages, self.crawl
        asked = np.full(int(pages["host"].max(initial=0)) + 1, -np.inf)
        for host, extra in terms.published.host_prices.items():
            asked[host] = terms.published.log_price + extra
        before = self._host_prices.get(k, np.zeros(0))
        before = np.pad(before, (0, max(0, len(asked) - len(before))), constant_values=-np.inf)[: len(asked)]
        with np.errstate(invalid="ignore"):
            is_repriced = (asked != before) & ~(np.abs(asked - before) <= _MOVED_PRICE)
        self._host_prices[k] = asked
        everything = self._sets[k] or crawl.stretch_moved(terms.published.stretch) or crawl.exploration_moved
        clocks = threading.Lock()

        def moved(start: int) -> NDArray[np.uint32]:
            some = pages.some(slice(start, start + BLOCK))
            displaced = is_displaced(some, terms, now)
            look = some["fresh"] | displaced | everything
            if is_repriced.any():
                look |= is_repriced[some["host"]]
            if crawl.priors_moved:
                look |= (some["shape"] <= 0) & (some["visits"] > 0)
            chosen = start + np.flatnonzero(look)
            if self.keeper is not None:
                with clocks:
                    self.keeper.place(k, chosen, now)
            at, rows = moved_deadlines(pages, chosen, terms, now, displaced[chosen - start], crawl.hubs[k].among(chosen))
            if self.keeper is not None:
                self.keeper.settle(k, at)
            for name in ("a", "s", "e", "l"):
                pages[name][at] = rows[name]
            pages["placed"][at] = terms.log_price
            return at.astype(np.uint32)

        found = [np.zeros(0, np.uint32), *in_order(moved, range(0, pages.count, BLOCK), self.lock.renew)]
        timed = b"".join(page + pack_numbers(b, numbers) for page, b, numbers in crawl.republished[k].moved(pages, terms))
        return np.concatenate(found), np.frombuffer(timed, WRITTEN)

    def _publish(self, plan: Plan, live: dict[int, LivePrice], log_prices: dict[int, float | None]) -> bool:
        """Publish the plan in every partition; False if another planner has taken over."""
        crawl, solved = self.crawl, plan.solved
        shares = shares_of(crawl, solved, list(live))
        for k in live:
            sums = solved.by_partition[k]
            step = price_step(sums.pages, sums.response)
            youth = b"" if self.keeper is None else self.keeper.youth[k].packed(crawl.priors)
            fields = self._fields(plan, k, shares[k])
            log_price = log_prices[k]
            arguments: list[Any] = [
                self.lock.fences[k],
                repr(step),
                "" if log_price is None else repr(log_price),
                crawl.priors.packed(),
                packed_prices(crawl.of_partition(k, solved.extra)),
                youth,
                *(value for pair in fields.items() for value in pair),
            ]
            if self.namespace.run([Call(k, "publish_plan", arguments)])[0] < 0:
                return False
        return True

    def _fields(self, plan: Plan, k: int, share: float) -> dict[str, Any]:
        """Return what is published in a partition, by name."""
        clocks = self.keeper.fields(k) if self.keeper is not None else {}
        return plan_fields(plan, k, share) | clocks | {"planner": self.lock.owner}

    def _store_clocks(self, previous: Mapping[str, str]) -> bool:
        """Store what was learned of clocks, or forget it where they were turned off; False if another planner has taken over."""
        if self.keeper is None:
            if previous.get("neighbourhoods", "0") != "0":
                forget_clocks(self.namespace, self.lock.renew)
            return True
        return all(self.keeper.store(k, fence) for k, fence in self.lock.fences.items())

    def _write(self, k: int, rows: NDArray[Any]) -> int | None:
        """Write numbers, some pages a call, and none before the last ones were answered: dispatch goes in between."""
        written, at, trip_s = 0, 0, 0.0
        while at < len(rows):
            self.lock.renew()
            end = min(len(rows), at + BATCH * calls_at_once(trip_s))
            calls = [Call(k, "write_plan", [self.lock.fences[k], rows[i : min(i + BATCH, end)].tobytes()]) for i in range(at, end, BATCH)]
            began = time.monotonic()
            done = [int(reply) for reply in self.namespace.run(calls)]
            took = time.monotonic() - began
            trip_s, at = min(trip_s or took, took), end
            if min(done) < 0:
                return None
            written += sum(done)
        return written

    def _warn(self, solved: Solved) -> None:
        if not solved.feasible and not self._warned:
            needed, planned = solved.least, self.crawl.budget.revisits
            why = (
                "are more than some hosts bear"
                if needed <= planned
                else f"need {needed:.4g} fetches/s, of which {planned:.4g} can be planned"
            )
            logger.warning("the intervals asked for (RULES, MAX_INTERVAL) %s; they are scaled down", why)
        self._warned = not solved.feasible

    def _tell(self, lost: int) -> None:
        """Say once that pages are given up."""
        if lost and not self._told:
            self._told = True
            logger.info(
                "%d of %d pages change too fast to be kept fresh within the budget: no visit is worth its price, so that they are visited "
                "once in their longest interval (MAX_INTERVAL, RULES); `optimal-frontier status` goes on counting them",
                lost,
                self.crawl.planned_pages,
            )

    def _reachable(self) -> list[int]:
        return sorted(self.lock.fences) or list(range(self.namespace.partitions))

    def _ask(self) -> tuple[dict[str, str], int, float]:
        """Ask for the last plan and the time of the first partition that can be reached, and how many pages all of these have fetched.

        Notes
        -----
        One round trip to a server: a crawler that waits asks this most of the time.
        """
        namespace, reachable = self.namespace, self._reachable()
        first: tuple[dict[str, str], float] | None = None
        fetched, lost = 0, StateUnavailableError("no partition can be reached")
        # Of nodes of a cluster each may be away.
        for at, *others in [[k] for k in reachable] if namespace.connection.spec.cluster else [reachable]:
            asked = [["HGET", namespace.key("stats", k), "fetched"] for k in (at, *others)]
            if first is None:
                asked += [["HGETALL", namespace.key("plan", at)], *namespace.clock_commands(at)]
            try:
                told = namespace.commands(asked, partition=at)
            except StateUnavailableError as error:
                lost = error
                continue
            if first is None:
                *told, plan, clock, state = told
                first = sound_fields(texts(plan)), namespace.time_of(at, clock, state)
            fetched += int(sum(map(number_of, told)))
        if first is None:
            raise lost
        return first[0], fetched, first[1]
