"""A world of hubs and articles: new articles appear on hubs, and nobody knows of one before a visit to its hub has found it.

What a plan without the value of discovery makes of such a world: hubs change faster than the budget can follow, so they are given up, and
nothing new is found. Reports have the time to discovery beside freshness.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.yields import Yield, first_yield, learn_yield
from optimal_frontier.optimization.discovering import Discovering, Limits, solve_discovering
from optimal_frontier.scheduling.discovery import wait_with_discovery, waits_with_discovery
from optimal_frontier.scheduling.exploration import second_look
from optimal_frontier.scheduling.numbers import Numbers, fixed, numbers_at
from optimal_frontier.scheduling.price_law import is_as_planned, log_price_towards, price_step
from optimal_frontier.simulation import believing, crawling
from optimal_frontier.simulation.ragged import Floats, Ints

HubPolicy = Literal["uniform", "without discovery", "discovery", "clairvoyant"]
HUB_POLICIES: Final[tuple[HubPolicy, ...]] = ("uniform", "without discovery", "discovery", "clairvoyant")

#: Longest interval, days: MAX_INTERVAL's default.
_LONGEST: Final = 30.0
#: Plans in the time in which the budget visits every page once.
_PLANS_A_ROUND: Final = 10


@dataclass(frozen=True)
class HubWorld:
    """Hubs, and articles that appear on them. Times in days.

    Attributes
    ----------
    hubs, articles : int
        At the start; all of these are known.
    new_per_day : float
        Articles that appear, on all hubs together.
    budget : float
        As a share of the fetches that would follow every change of the pages that are there at the start.
    churn : float
        Changes a day of a hub of median rate, beside its new articles.
    article_rate : float
        Changes a day of an article of median rate.
    spread : float
        Standard deviation of the logarithms of these.
    """

    hubs: int = 20
    articles: int = 3000
    new_per_day: float = 100.0
    budget: float = 0.1
    churn: float = 500.0
    article_rate: float = 1.0
    spread: float = 1.5

    def __post_init__(self) -> None:
        if (
            self.hubs < 1
            or self.articles < 1
            or not (self.new_per_day > 0 and self.budget > 0 and self.churn > 0 and self.article_rate > 0)
        ):
            raise InvalidProblemError("a world of hubs needs hubs, articles, and numbers above 0")

    def realise(self, horizon: float, seed: int) -> RealisedHubs:
        """Draw the pages of a crawl: hubs first, then articles in the order in which they appear."""
        rng = np.random.default_rng([seed, 20_261])
        yields = rng.lognormal(0.0, 1.0, self.hubs)
        yields *= self.new_per_day / yields.sum()
        count = rng.poisson(self.new_per_day * horizon)
        born = np.concatenate([np.zeros(self.hubs + self.articles), np.sort(rng.uniform(0.0, horizon, count))])
        parents = rng.choice(self.hubs, len(born) - self.hubs, p=yields / self.new_per_day)
        articles = self.articles + count
        rate = np.concatenate(
            [yields + self.churn * rng.lognormal(0.0, 0.5, self.hubs), self.article_rate * rng.lognormal(0.0, self.spread, articles)]
        )
        importance = np.concatenate([np.ones(self.hubs), rng.uniform(0.5, 1.5, articles)])
        known = self.hubs + self.articles
        return RealisedHubs(
            importance, rate, born, np.append(np.full(self.hubs, -1), parents), yields, self.budget * float(rate[:known].sum())
        )


@dataclass(frozen=True)
class RealisedHubs:
    """Pages of a crawl, n of them, hubs first.

    Attributes
    ----------
    importance, change_rate, born : ndarray (n,)
        Weights, changes a day, and when they appear; 0: they are known from the start.
    hub : ndarray of int (n,)
        On which each article appears; -1 for hubs.
    yields : ndarray (hubs,)
        New articles a day of each hub.
    budget : float
        Fetches a day.
    """

    importance: Floats
    change_rate: Floats
    born: Floats
    hub: Ints
    yields: Floats
    budget: float


@dataclass(frozen=True)
class HubReport:
    """How a crawl of such a world went, from the end of the burn-in on.

    Attributes
    ----------
    policy : str
    seed : int
    time_to_discovery : float
        Mean days from the appearance of an article until it is found; of one that is not, until the end.
    found : float
        Share of the articles that are found by the end.
    freshness : float
        Share of time, by importance, in which copies of the pages that exist are current; what is not found has no copy.
    of_known, of_old : float
        The same of the pages that are known, and of those that were there from the start.
    hub_interval : float
        Mean days between two visits of a hub.
    """

    policy: HubPolicy
    seed: int
    time_to_discovery: float
    found: float
    freshness: float
    of_known: float
    of_old: float
    hub_interval: float


def simulate_hubs(world: HubWorld, policy: HubPolicy, days: float, seed: int, burn_in: float | None = None) -> HubReport:
    """Crawl a world of hubs.

    Parameters
    ----------
    world : HubWorld
    policy : {"uniform", "without discovery", "discovery", "clairvoyant"}
        All known pages in turn; by price for their own changes alone; for what they yield too, both learned; the same, both known.
    days : float
        Length of the crawl.
    seed : int
        Of the world. All policies meet the same one.
    burn_in : float, optional
        Days that are not measured; the first half by default. Articles that appear in the last quarter do not count for time to discovery.
    """
    if policy not in HUB_POLICIES:
        raise InvalidProblemError(f"policy must be one of {', '.join(HUB_POLICIES)}, got {policy!r}")
    if not 0.0 < days < math.inf:
        raise InvalidProblemError(f"days must be above 0 and finite, got {days!r}")
    crawl = _HubCrawl(world.realise(days, seed), policy, days, seed)
    crawl.run()
    return crawl.report(days / 2.0 if burn_in is None else burn_in)


def compare_hubs(world: HubWorld, policies: Iterable[HubPolicy], seeds: Iterable[int], days: float) -> Iterator[HubReport]:
    """Yield the reports of several policies, seed by seed."""
    chosen = tuple(policies)
    for seed in seeds:
        for policy in chosen:
            yield simulate_hubs(world, policy, days, seed)


class _HubCrawl:
    """A crawl while it runs: plans now and then, dispatch and learning at every visit, by the functions of a live crawl."""

    def __init__(self, world: RealisedHubs, policy: HubPolicy, days: float, seed: int) -> None:
        n = len(world.born)
        self.world, self.policy, self.days, self.seed = world, policy, days, seed
        self.rng = np.random.default_rng([seed, 7])
        self.round = float(np.count_nonzero(world.born <= 0)) / world.budget
        self.slots = np.arange(1, int(days * world.budget) + 1) / world.budget
        arrays = {name: np.zeros(n) for name in ("b", "a", "s", "e", "l", "shortest", "longest", "fetched", "score")}
        whole = {name: np.zeros(1, np.int64) for name in ("changes", "starts", "gone", "pages", "times", "away", "until")}
        self.crawl = crawling.Crawl(
            slots=self.slots,
            importance=world.importance,
            host=np.zeros(n, np.int64),
            **{name: np.zeros(1) for name in ("host_price", "opens", "turn", "pause")},
            price=np.array([0.0, 1.0, 1.0]),
            checked=np.zeros(n, np.int64),
            count=np.array([0, 0, 0, 0, 1, 1, 1, 0, 0], np.int64),
            **arrays,
            **whole,
        )
        knows = policy == "clairvoyant"
        self.belief = believing.new_belief(n, not knows, True, believing.GIVEN if knows else believing.MEDIAN)
        self.belief.prior_shape[:], self.belief.prior_time[:] = 1.0, self.round
        self.belief.rate[:] = world.change_rate if knows else math.log(2.0) / self.round
        self.plain, self.beliefs = crawling.plain(self.crawl), crawling.plain(self.belief)
        self.rates, self.weights = world.change_rate.tolist(), world.importance.tolist()
        self.yields: dict[int, Yield] = {}
        self.found_at = np.where(world.born <= 0, 0.0, np.inf)
        self.seen = np.zeros(n, bool)
        self.visits: list[tuple[int, float]] = []
        order = np.argsort(-world.importance[: np.count_nonzero(world.born <= 0)], kind="stable")
        self.waiting: deque[int] = deque(order.tolist())
        # Articles that wait to be found, by hub, in the order of their birth.
        self.hidden = [deque(np.flatnonzero((world.hub == hub) & (world.born > 0)).tolist()) for hub in range(len(world.yields))]
        self.queue: crawling.Queue = []
        self.planned: tuple[float, int, int] | None = None
        self.multiplier = 0.0

    def run(self) -> None:
        """Make all visits."""
        next_plan = self.round
        firsts = 0
        for now in self.slots.tolist():
            if self.policy != "uniform" and now >= next_plan:
                self._plan(now, firsts)
                next_plan = now + self.round / _PLANS_A_ROUND
            if self.waiting:
                page = self.waiting.popleft()
                firsts += 1
            else:
                taken = crawling.hand_out(self.plain, self.queue, now, 1)
                if not taken:
                    continue
                page = taken[0]
            self._visit(page, now)
            heapq.heappush(self.queue, (crawling.due(self.plain, page), page))

    def _visit(self, page: int, now: float) -> None:
        crawl = self.plain
        interval, was_seen = now - crawl.b[page], bool(self.seen[page])
        self.visits.append((page, now))
        if was_seen:
            changed = bool(self.rng.random() < -math.expm1(-self.rates[page] * interval))
            believing.learn_bit(self.beliefs, page, interval, changed)
        if page < len(self.hidden):
            self._find(page, now, interval if was_seen else None)
        self.seen[page] = True
        crawl.b[page] = now
        crawl.fetched[page] += 1
        self._number(page, self._numbers(page), interval if was_seen else 0.0)

    def _find(self, hub: int, now: float, interval: float | None) -> None:
        """Find what has appeared on a hub, and learn of it."""
        hidden, found = self.hidden[hub], []
        while hidden and self.world.born[hidden[0]] <= now:
            found.append(hidden.popleft())
        self.found_at[found] = now
        self.waiting.extend(found)
        if interval is None:
            return
        worth = float(self.world.importance[found].sum())
        known = self.yields.get(hub)
        if known is not None:
            self.yields[hub] = learn_yield(known, len(found), worth, interval)
        elif found:
            self.yields[hub] = first_yield(len(found), worth, interval, int(self.crawl.fetched[hub]))

    def _worth(self, page: int) -> float:
        if page >= len(self.hidden) or self.policy not in ("discovery", "clairvoyant"):
            return 0.0
        if self.policy == "clairvoyant":
            return float(self.world.yields[page])  # times a mean importance of 1
        known = self.yields.get(page)
        return 0.0 if known is None else known.worth

    def _numbers(self, page: int) -> Numbers:
        if self.policy == "uniform":
            return fixed(self.round)
        if self.planned is None:
            return Numbers(math.inf, 0.0, 0.0, _LONGEST)
        log_price = self.plain.price[crawling.LOG_PRICE]
        wait, slope = wait_with_discovery(log_price, self.weights[page], self.beliefs.rate[page], self._worth(page))
        return numbers_at(wait, slope, log_price, 0.0, _LONGEST)

    def _number(self, page: int, numbers: Numbers, interval: float) -> None:
        crawl = self.plain
        crawl.checked[page] = 0
        if numbers.a == math.inf and self.planned is not None and self.policy != "clairvoyant":
            wait = second_look(crawl.price[crawling.LOG_PRICE], self.weights[page], self.beliefs.rate[page], interval)
            if wait < numbers.l:
                crawl.checked[page], numbers = 1, fixed(wait)
        crawl.a[page], crawl.s[page], crawl.e[page], crawl.l[page] = numbers

    def _plan(self, now: float, firsts: int) -> None:
        """Find the price, and make the numbers of all pages that were visited anew."""
        crawl, budget = self.crawl, self.world.budget
        known = np.flatnonzero(self.seen)
        discovery = np.zeros(len(known))
        hubs = np.flatnonzero(known < len(self.hidden))
        discovery[hubs] = [self._worth(page) for page in known[hubs].tolist()]
        importance, rate = crawl.importance[known], np.asarray(self.belief.rate)[known]
        revisits = budget
        if self.planned is not None:
            since, before, made = self.planned
            revisits = max(budget - (firsts - before) / (now - since), 0.1 * budget)
        limits = Limits(np.full(len(known), 1.0 / _LONGEST), np.full(len(known), np.inf))
        found = solve_discovering(Discovering(importance, rate, discovery, "freshness", "periodic"), limits, revisits, self.multiplier)
        self.multiplier = found.multiplier
        solved = math.log(max(found.multiplier, 1e-200))
        if self.planned is None:
            crawl.price[crawling.LOG_PRICE] = solved
        elif is_as_planned((len(self.visits) - made - (firsts - before)) / (now - since), revisits):
            crawl.price[crawling.LOG_PRICE] = log_price_towards(float(crawl.price[crawling.LOG_PRICE]), solved)
        self.planned = (now, firsts, len(self.visits))
        log_price = float(crawl.price[crawling.LOG_PRICE])
        wait, slope = waits_with_discovery(log_price, importance, rate, discovery)
        free = (wait < _LONGEST) & (slope > 0.0)
        crawl.price[crawling.STEP] = price_step(len(known), float((slope[free] / wait[free]).sum()))
        # Nothing comes to lie in the past.
        later = np.maximum(wait, now - crawl.b[known])
        with np.errstate(invalid="ignore"):
            a = np.where(np.isinf(wait), np.inf, later - slope * log_price)
        free = np.asarray(crawl.checked)[known] == 0
        crawl.a[known[free]], crawl.s[known[free]], crawl.e[known[free]], crawl.l[known[free]] = a[free], slope[free], 0.0, _LONGEST
        due = crawl.b[known] + np.clip(crawl.a[known] + crawl.s[known] * log_price, crawl.e[known], crawl.l[known])
        self.queue = list(zip(due.tolist(), known.tolist(), strict=True))
        heapq.heapify(self.queue)

    def report(self, burn_in: float) -> HubReport:
        """Return what came of it."""
        world, days = self.world, self.days
        pages, times = (np.array(values) for values in zip(*self.visits, strict=True))
        order = np.lexsort((times, pages))
        pages, times = pages[order].astype(np.int64), times[order]
        last = np.append(pages[1:] != pages[:-1], True)
        until = np.where(last, days, np.append(times[1:], days))
        begin = np.maximum(times, burn_in)
        seen = until > begin
        x = world.change_rate[pages]
        fresh = np.where(seen, np.exp(-x * (begin - times)) * -np.expm1(-x * np.maximum(until - begin, 0.0)) / x, 0.0)
        by_page = np.bincount(pages, weights=fresh, minlength=len(world.born)) * world.importance
        exists = world.importance * (days - np.maximum(world.born, burn_in))
        known = world.importance * np.maximum(days - np.maximum(self.found_at, burn_in), 0.0)
        old = world.born <= 0
        judged = (world.born > burn_in) & (world.born <= 0.75 * days) if burn_in < 0.75 * days else world.born > burn_in
        waited = np.minimum(self.found_at, days) - world.born
        hub = pages < len(self.hidden)
        gaps = (until - times)[hub & ~last & (times >= burn_in)]
        return HubReport(
            self.policy,
            self.seed,
            float(waited[judged].mean()) if judged.any() else math.nan,
            float(np.isfinite(self.found_at[judged]).mean()) if judged.any() else math.nan,
            float(by_page.sum() / exists.sum()),
            float(by_page.sum() / known.sum()),
            float(by_page[old].sum() / exists[old].sum()),
            float(gaps.mean()) if len(gaps) else math.inf,
        )
