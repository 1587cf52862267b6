"""One simulated crawl by price: plans now and then, dispatch and learning at every visit, as in a live crawl.

There is a slot for a fetch every 1/budget, from time 0 on. First visits come before all others, the most important pages first, those of
pages that arrive later as soon as they do. A page that a visit finds gone is not visited any more.
A plan finds the one log price at which the budget is spent, and what hosts at their limit
add to it. The price itself is set by the first plan only; from then on it follows what is visited. A plan writes new numbers to those pages
only whose deadline it moves; all others have those of their last visit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.estimation.sibling_priors import sibling_priors
from optimal_frontier.optimization import solve_periodic
from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling.numbers import waits_at_price, waits_that_last
from optimal_frontier.scheduling.planning import fit_minima
from optimal_frontier.scheduling.price_law import is_as_planned, lasting_log_price, log_price_towards, price_step
from optimal_frontier.simulation import believing, crawling
from optimal_frontier.simulation.bandwidth import BandwidthChange, slot_times
from optimal_frontier.simulation.crawl import Visits, first_visits
from optimal_frontier.simulation.learners import Bits, Learner, Seen
from optimal_frontier.simulation.policies import Knowledge, Planner, Pricing
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.shared_clocks import SharedClocks
from optimal_frontier.simulation.worlds import Realised

#: A plan leaves the numbers of a page alone where its deadline would move by less than this share of its interval.
NEGLIGIBLE: Final = 0.05
#: Pages of a host at its limit that come up for each of its turns; the best of them goes.
LANES: Final = 4
#: Of a visit that nothing is to be paid for: bounds leave a part of the budget.
_LEAST_PRICE: Final = 1e-200
#: A host is at its limit from this share of it on.
_AT_LIMIT: Final = 1.0 - 1e-9


@dataclass(frozen=True)
class Conditions:
    """What a crawl has to keep to, beside its budget.

    Attributes
    ----------
    least, most : ndarray (n,) or float
        Bounds on revisit rates; equal ones pin a page.
    host : ndarray of int (n,), optional
        Host of each page, from 0.
    host_rate : ndarray (hosts,), optional
        Most fetches per unit of time, each host.
    batch : int
        Fetches that are handed out at once.
    flight : int
        Slots from the start of a fetch until it is judged. 1: before the next one starts.
    bandwidth : BandwidthChange, optional
        When the real budget is not the one that plans count with.
    """

    least: Floats | float = 0.0
    most: Floats | float = math.inf
    host: Ints | None = None
    host_rate: Floats | None = None
    batch: int = 1
    flight: int = 1
    bandwidth: BandwidthChange | None = None

    def __post_init__(self) -> None:
        if self.batch < 1 or self.flight < 1:
            raise InvalidProblemError(f"batch and flight must be 1 or more, got {self.batch!r} and {self.flight!r}")
        if (self.host is None) != (self.host_rate is None):
            raise InvalidProblemError("host and host_rate: expected both or neither")


NO_CONDITIONS: Final = Conditions()


def planned_visits(
    world: Realised,
    planner: Planner | Pricing,
    learner: Bits | Learner,
    horizon: float,
    replan: float,
    rng: np.random.Generator,
    conditions: Conditions = NO_CONDITIONS,
) -> Visits:
    """Return the visits of a policy that plans every so often.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    planner : Pricing or callable
        The policy: change rates that pages are priced by, or revisit rates, by which the earliest deadline goes first.
    learner : Bits or Learner
        What is made of bits.
    horizon : float
        Length of the crawl.
    replan : float
        Time between two plans.
    rng : numpy.random.Generator
        For policies that draw.
    conditions : Conditions
        Bounds, hosts, batches, fetches in flight, the real budget.

    Returns
    -------
    Visits
    """
    return PlannedCrawl(world, planner, learner, horizon, rng, conditions).run(replan)


class PlannedCrawl:
    """A crawl while it runs.

    Parameters
    ----------
    world, planner, learner, horizon, rng, conditions
        As in `planned_visits`.

    Attributes
    ----------
    rewritten : int
        Numbers that plans wrote.
    """

    def __init__(
        self,
        world: Realised,
        planner: Planner | Pricing,
        learner: Bits | Learner,
        horizon: float,
        rng: np.random.Generator,
        conditions: Conditions = NO_CONDITIONS,
    ) -> None:
        n = len(world)
        self.world, self.planner, self.learner, self.conditions, self.rng = world, planner, learner, conditions, rng
        self.horizon, self.rewritten, self._has_price, self._left = horizon, 0, False, -math.inf
        # When the last plan was made, and visits until then.
        self._planned = (0.0, 0)
        slots = slot_times(world.budget, horizon, conditions.bandwidth, world.phase)
        host = np.zeros(n, np.int64) if conditions.host is None else np.asarray(conditions.host, np.int64)
        pause = np.zeros(1) if conditions.host_rate is None else 1.0 / np.asarray(conditions.host_rate, np.float64)
        changes = world.drawn.changes
        ring = conditions.batch + conditions.flight + 1
        # Found once: to ask it of a protocol takes as long as several visits.
        self._pricing = pricing = planner if isinstance(planner, Pricing) else None
        estimate = believing.GIVEN if pricing is None else pricing.estimate
        bits = learner if isinstance(learner, Bits) else Bits()
        learns = isinstance(learner, Bits) and (estimate != believing.GIVEN or not getattr(planner, "knows", False))
        # What was committed, or is known, needs no second look.
        looks = pricing is not None and estimate != believing.GIVEN
        self.belief = believing.new_belief(n, learns, bits.watches, estimate)
        self.belief.prior_shape[:], self.belief.prior_time[:] = 1.0, world.round(horizon)
        self.crawl = crawling.Crawl(
            slots=slots,
            score=np.full(n, np.inf),
            **{name: np.zeros(n) for name in ("b", "a", "s", "e", "l", "shortest", "longest", "fetched")},
            importance=np.array(world.importance, np.float64),
            host=host,
            **{name: np.zeros(len(pause)) for name in ("host_price", "opens", "turn")},
            pause=pause,
            changes=np.array(changes.times, np.float64),
            starts=np.array(changes.starts, np.int64),
            gone=np.array(world.gone, np.float64),
            pages=np.zeros(len(slots), np.int64),
            times=np.zeros(len(slots)),
            away=np.zeros(ring, np.int64),
            until=np.zeros(ring, np.int64),
            price=np.array([0.0, 1.0, 1.0, np.inf]),
            checked=np.zeros(n, np.int64),
            count=np.array([0, 0, 0, 0, conditions.batch, conditions.flight, LANES, pricing is None, looks], np.int64),
        )
        self.crawl.a[:] = np.nan
        self._plain, self._beliefs = crawling.plain(self.crawl), crawling.plain(self.belief)
        self.clocks: SharedClocks | None = None
        if bits.has_neighbourhoods and learns and pricing is not None:
            self.clocks = SharedClocks(self.crawl, self.belief, world.sites, n / world.budget, world.day)

    def run(self, replan: float) -> Visits:
        """Return the visits of the whole crawl."""
        crawl, world, slots = self.crawl, self.world, self.crawl.slots
        begun = first_visits(world, slots)
        self._visit_first(begun.pages)
        known = np.flatnonzero(world.arrival <= 0.0)
        coming = np.argsort(world.arrival, kind="stable")[len(known) :]
        planned_until = 0
        while (slot := int(crawl.count[crawling.SLOT])) < len(slots):
            come = int(np.searchsorted(world.arrival[coming], slots[slot], side="right"))
            new, coming = coming[:come][: len(slots) - slot], coming[come:]
            self._visit_first(new)
            known, slot = np.concatenate([known, new]), slot + len(new)
            if slot >= len(slots):
                break
            if slot >= planned_until:
                now = float(slots[slot])
                known = known[crawl.b[known] < world.gone[known]]
                if len(known):
                    self.plan(now, known)
                planned_until = int(np.searchsorted(slots, (now + replan) * (1.0 - 1e-12)))
            elif len(new):
                self._number(new, float(slots[slot]))
            end = planned_until if not len(coming) else min(planned_until, int(np.searchsorted(slots, world.arrival[coming[0]])))
            self._run_slots(max(slot + 1, end))
        made = int(crawl.count[crawling.MADE])
        return Visits(crawl.pages[:made].copy(), crawl.times[:made].copy())

    def _run_slots(self, end: int) -> None:
        """Make the visits of all slots before number ``end``; look at the clocks in between."""
        crawl, belief, clocks = self._plain, self._beliefs, self.clocks
        if clocks is None:
            crawling.crawl_until(crawl, belief, believing.learn_bit if isinstance(self.learner, Bits) else self._learn_elsewhere, end)
            return
        queue = crawling.queue_of(crawl.score)
        while (slot := crawl.count[crawling.SLOT]) < end:
            now = crawl.slots[slot]
            if now >= clocks.next_look and clocks.look(now):
                queue = crawling.queue_of(crawl.score)
            stop = max(slot + 1, bisect_left(crawl.slots, clocks.next_look, slot))
            crawling.crawl_until(crawl, belief, clocks.learn, min(stop, end), queue)

    def _visit_first(self, pages: Ints) -> None:
        crawl = self.crawl
        slot, made = int(crawl.count[crawling.SLOT]), int(crawl.count[crawling.MADE])
        times = crawl.slots[slot : slot + len(pages)]
        crawl.pages[made : made + len(pages)], crawl.times[made : made + len(pages)] = pages, times
        crawl.b[pages] = times
        crawl.count[[crawling.SLOT, crawling.MADE]] += len(pages)

    def _number(self, pages: Ints, now: float) -> None:
        """Give pages that came since the last plan numbers by what is believed of their kind; the next plan sees to the rest."""
        if self._pricing is None or not self._has_price:
            return
        crawl, belief, knows = self.crawl, self.belief, getattr(self.planner, "knows", False)
        crawl.longest[pages] = np.inf
        known = self.world.known_rates(now) if knows else None
        for page in pages[crawl.b[pages] < self.world.gone[pages]].tolist():
            prior = float(belief.prior_shape[page]), float(belief.prior_time[page])
            belief.rate[page] = median_one(*prior) if known is None else known[page]
            crawling.renumber(crawl, page, float(belief.rate[page]))
            crawl.score[page] = crawling.due(crawl, page)

    def plan(self, now: float, known: Ints) -> None:
        """Plan for the pages that were visited."""
        crawl, belief, budget = self.crawl, self.belief, self.world.budget
        fresh_prior = self._fit_priors()
        shape, time = self.posteriors
        what = Knowledge(
            now,
            self.horizon,
            known,
            crawl.importance[known],
            budget,
            shape[known],
            time[known],
            self.rng,
            lambda at: self.world.known_rates(at)[known],
        )
        if self._pricing is None:
            belief.rate[known] = cast(Planner, self.planner)(what)
            crawl.shortest[known], crawl.longest[known] = 0.0, np.inf
            with np.errstate(divide="ignore"):
                self._rewrite(now, known, 1.0 / belief.rate[known], np.zeros(len(known)), np.ones(len(known), bool))
            return
        choice = self._pricing.choose(what)
        belief.rate[known] = choice.change_rate
        low, high = (
            np.broadcast_to(np.asarray(v, np.float64), len(self.world))[known] for v in (self.conditions.least, self.conditions.most)
        )
        least = np.clip(choice.least_rate, low, high)
        most = np.maximum(least, np.minimum(high, choice.most_rate))
        with np.errstate(divide="ignore"):
            crawl.shortest[known], crawl.longest[known] = 1.0 / most, 1.0 / least
        crawl.price[crawling.STRETCH] = stretch = max(1.0, float(least.sum()) / budget)
        found = self._solve(known, choice.change_rate, least / stretch, np.maximum(most / stretch, least / stretch))
        if not self._has_price:
            crawl.price[crawling.LOG_PRICE] = found
        elif self._spends(now, budget):
            moved = 0.0 if self.clocks is None else self.clocks.running(known)
            crawl.price[crawling.LOG_PRICE] = log_price_towards(crawl.price[crawling.LOG_PRICE], found, moved)
        log_price, extra, importance = crawl.price[crawling.LOG_PRICE], crawl.host_price[crawl.host[known]], crawl.importance[known]
        crawl.price[crawling.LASTING] = lasting = lasting_log_price(found, self._left)
        self._left = log_price
        waits = waits_at_price(log_price + extra, importance, choice.change_rate)
        wait, slope = waits_that_last(waits, (log_price + extra, lasting + extra), importance, choice.change_rate)
        longest = crawl.longest[known] * stretch
        free = (wait > crawl.shortest[known]) & (wait < longest) & (slope > 0.0)
        self._has_price = bool(free.any())  # else nothing moves the price, and the next plan sets it
        crawl.price[crawling.STEP] = price_step(len(known), float((slope[free] / wait[free]).sum()))
        self._rewrite(now, known, wait, slope, fresh_prior[known])

    def _spends(self, now: float, budget: float) -> bool:
        """Tell whether visits came at the planned rate since the last plan: then the price of plans is the better one."""
        (since, before), made = self._planned, int(self.crawl.count[crawling.MADE])
        self._planned = (now, made)
        return now > since and is_as_planned((made - before) / (now - since), budget)

    def _rewrite(self, now: float, known: Ints, wait: Floats, slope: Floats, needed: np.ndarray) -> None:
        """Write the numbers of pages whose deadline moves; none of them comes to lie in the past."""
        crawl, log_price = self.crawl, float(self.crawl.price[crawling.LOG_PRICE])
        stretch = crawl.price[crawling.STRETCH]
        shortest, longest = crawl.shortest[known], crawl.longest[known] * stretch
        pinned = crawl.shortest[known] >= crawl.longest[known]
        shortest = np.where(pinned, longest, np.minimum(shortest, longest))
        shift = np.zeros(len(known)) if self.clocks is None else self.clocks.shift[known]
        b = crawl.b[known]
        with np.errstate(invalid="ignore"):
            old = np.minimum(np.maximum(crawl.a[known] + crawl.s[known] * log_price, crawl.e[known]), crawl.l[known])
            new = np.minimum(np.maximum(wait - shift, shortest), longest)
            moved = ~(np.abs(new - old) <= NEGLIGIBLE * new) & ~((new == old) & np.isinf(new))
        # What the clocks have made late is for looks to put in order.
        moved &= (shift == 0.0) | (b + np.maximum(old, new) > now)
        out = self.crawl.away[np.arange(crawl.count[crawling.HEAD], crawl.count[crawling.TAIL]) % len(crawl.away)]
        moved = (moved | needed) & ~np.isin(known, out) & (crawl.checked[known] == 0)
        self.rewritten += int(np.count_nonzero(moved))
        rows = known[moved]
        later = np.where(pinned, wait, np.maximum(wait - shift, now - b)) if self._pricing is not None else wait - shift
        with np.errstate(invalid="ignore"):
            new_a = np.where(np.isinf(wait), np.inf, later - slope * log_price)
        crawl.a[rows] = np.where(pinned, longest, new_a)[moved]
        crawl.s[rows] = np.where(pinned, 0.0, slope)[moved]
        crawl.e[rows], crawl.l[rows] = shortest[moved], longest[moved]
        at = crawl.b[rows] + np.minimum(np.maximum(crawl.a[rows] + crawl.s[rows] * log_price, crawl.e[rows]), crawl.l[rows])
        crawl.score[rows] = at

    def _solve(self, known: Ints, change_rate: Floats, least: Floats, most: Floats) -> float:
        """Return the log price of the crawl; write those of hosts."""
        crawl, budget = self.crawl, self.world.budget
        importance, host = crawl.importance[known], crawl.host[known]
        crawl.host_price[:] = 0.0
        if self.conditions.host_rate is None:
            solution = solve_periodic(importance, change_rate, budget, min_rate=least, max_rate=most)
            return math.log(max(solution.multiplier, _LEAST_PRICE))
        limits = np.asarray(self.conditions.host_rate, np.float64)
        least, _ = fit_minima(least, most, budget, host, limits)
        solution = solve_periodic(importance, change_rate, budget, min_rate=least, max_rate=most, host=host, host_max_rate=limits)
        log_price = math.log(max(solution.multiplier, _LEAST_PRICE))
        rates = solution.rates
        full = np.bincount(host, weights=rates, minlength=len(limits)) >= limits * _AT_LIMIT
        inside = np.flatnonzero((rates > least) & (rates < most) & full[host])
        worth = np.log(importance[inside] / change_rate[inside] * marginal_share(change_rate[inside] / rates[inside]))
        sums = np.bincount(host[inside], weights=worth, minlength=len(limits))
        counts = np.bincount(host[inside], minlength=len(limits))
        crawl.host_price[:] = np.where(counts > 0, np.maximum(sums / np.maximum(counts, 1) - log_price, 0.0), 0.0)
        return log_price

    def _fit_priors(self) -> np.ndarray:
        """Fit the priors of siblings; return which pages go by a prior that changed."""
        belief = self.belief
        if not (isinstance(self.learner, Bits) and self.learner.has_siblings and belief.how[believing.LEARNS]):
            return np.zeros(len(self.world), bool)
        pattern = self.world.sites.pattern + 1  # 0 stands for none
        priors = sibling_priors(belief.shape, belief.time, self.world.sites.host, pattern, self.world.round(self.horizon))
        shape, time = priors.shape[pattern], priors.time[pattern]
        changed: np.ndarray = (belief.shape <= 0.0) & ((shape != belief.prior_shape) | (time != belief.prior_time))
        belief.prior_shape[:], belief.prior_time[:] = shape, time
        return changed

    @property
    def posteriors(self) -> tuple[Floats, Floats]:
        """Shapes and times that plans are made from; shape 0 where there is no bit yet, of learners that go by more than bits."""
        if isinstance(self.learner, Bits):
            belief = self.belief
            unknown = belief.shape <= 0.0
            shape = np.asarray(np.where(unknown, belief.prior_shape, belief.shape), np.float64)
            return shape, np.asarray(np.where(unknown, belief.prior_time, belief.time), np.float64)
        return self.learner.shape, self.learner.time

    def _learn_elsewhere(self, belief: believing.Belief, page: int, interval: float, changed: bool) -> float:
        """Let a learner that is not compiled take in a bit."""
        assert not isinstance(self.learner, Bits)  # as `run` looked
        at = float(self.crawl.fetched[page])
        self.learner.learn(Seen(page, interval, at, changed, self.world.age(page, at)))
        estimate = int(belief.how[believing.ESTIMATE])
        if estimate == believing.MEDIAN:
            return float(median_one(float(self.learner.shape[page]), float(self.learner.time[page])))
        if estimate == believing.MEAN:
            return float(self.learner.shape[page] / self.learner.time[page])
        return float(belief.rate[page])
