"""Crawls of worlds of signals, by the functions of a live crawl, and by the greedy policies of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.estimation.sibling_priors import sibling_priors
from optimal_frontier.estimation.signal_sources import LEAST_PRECISION, SignalSource, SignalVisit
from optimal_frontier.estimation.signalled import update_signalled
from optimal_frontier.optimization import solve_signals
from optimal_frontier.optimization.signal_response import many_joined, responses, signals_of
from optimal_frontier.scheduling.exploration import second_look
from optimal_frontier.scheduling.price_law import candidates, log_price_after, log_price_towards, moves_price, price_step, rank
from optimal_frontier.scheduling.signals import evidence, signalled_wait, signalled_waits, unannounced
from optimal_frontier.simulation.crawl import Visits, first_visits
from optimal_frontier.simulation.measuring import freshness_by_time
from optimal_frontier.simulation.signal_worlds import RealisedSignals, SignalWorld

SignalPolicy = Literal["without", "learned", "known", "greedy", "greedy-ncis", "rates", "rates learned"]
SIGNAL_POLICIES: Final[tuple[SignalPolicy, ...]] = get_args(SignalPolicy)
#: Those that learn the worth of sources, those that learn change rates, and those that take always what is worth most.
_LEARNS_SOURCES: Final = ("learned", "rates learned")
_LEARNS_RATES: Final = ("rates", "rates learned")
_GREEDY: Final = ("greedy", "greedy-ncis")
_DEAF: Final = ("without", "rates", "greedy")

#: Longest interval, in rounds (the time in which the budget visits every page once), and plans in a round.
_LONGEST_ROUNDS: Final = 100.0
_PLANS_A_ROUND: Final = 2
#: Table of what visits are worth to greedy policies: up to which doubt, and how many steps.
_MOST_DOUBT: Final = 12.0
_DOUBT_STEPS: Final = 480


@dataclass(frozen=True)
class SignalReport:
    """How a crawl of a world of signals went.

    Attributes
    ----------
    policy : str
    seed : int
    freshness, early : float
        Share of importance x time in which copies were current: after the burn-in, and before it, from the first round on. As it happened;
        the expectation between visits where signals tell nothing, as in `simulate`.
    optimum : float
        What the best thresholds would have, for who knows change rates, recall and false rates.
    recall : float
        As it is believed in the end, mean over the sources; NaN if nothing is learned of it.
    """

    policy: SignalPolicy
    seed: int
    freshness: float
    early: float
    optimum: float
    recall: float


def simulate_signals(world: SignalWorld, policy: SignalPolicy, days: float, seed: int, burn_in: float | None = None) -> SignalReport:
    """Crawl a world of signals.

    Parameters
    ----------
    world : SignalWorld
    policy : str
        "without": the change rates are known, and signals are not listened to. "learned": they are, and the worth of the sources is
        learned. "known": recall and false rates are known. "greedy", "greedy-ncis": the paper's, that always take the page whose visit
        is worth most now, all known, without signals and with them. "rates", "rates learned": as the first two, and the change rates are
        learned.
    days : float
        Length of the crawl.
    seed : int
        Of the world. All policies meet the same one.
    burn_in : float, optional
        Days that are not measured; the first half by default.
    """
    if policy not in SIGNAL_POLICIES:
        raise InvalidProblemError(f"policy must be one of {', '.join(SIGNAL_POLICIES)}, got {policy!r}")
    if not 0.0 < days < math.inf:
        raise InvalidProblemError(f"days must be above 0 and finite, got {days!r}")
    realised = world.realise(days, seed)
    crawl = _GreedyCrawl(realised, policy, days) if policy in _GREEDY else _PricedCrawl(realised, policy, days, world.delay * world.repeats)
    visits = crawl.run()
    start = days / 2.0 if burn_in is None else burn_in
    begun = min(len(realised.source) / realised.world.budget, 0.9 * start)
    # Where visits depend on the changes by way of signals, freshness is counted as it happened.
    counted = realised.world if world.recall == 0.0 else replace(realised.world, drawn=replace(realised.world.drawn, hazard=None))
    _, early, late = freshness_by_time(counted, visits, np.array([0.0, begun, start, days]))
    best = realised.optimum.objective / float(realised.world.importance.sum())
    believed = [source.recall() for source in crawl.sources]
    return SignalReport(policy, seed, float(late), float(early), best, float(np.mean(believed)) if believed else math.nan)


def compare_signals(world: SignalWorld, policies: Iterable[SignalPolicy], seeds: Iterable[int], days: float) -> Iterator[SignalReport]:
    """Yield the reports of several policies, seed by seed."""
    chosen = tuple(policies)
    for seed in seeds:
        for policy in chosen:
            yield simulate_signals(world, policy, days, seed)


class _PricedCrawl:
    """A crawl by the law of dispatch: plans now and then, numbers at every visit; a signal moves its page forward."""

    def __init__(self, world: RealisedSignals, policy: SignalPolicy, days: float, delay: float) -> None:
        n = len(world.source)
        self.world, self.policy, self.days, self.delay = world, policy, days, delay
        self.round = n / world.world.budget
        self.slots = np.arange(math.ceil(days * world.world.budget)) / world.world.budget
        self.importance = world.world.importance.tolist()
        self.source = world.source.tolist()
        self.rate = world.world.known_rates(0.0).tolist()
        self.shape, self.time = [1.0] * n, [self.round] * n
        if policy in _LEARNS_RATES:
            self.rate = [math.log(2.0) / self.round] * n
        learns = policy in _LEARNS_SOURCES
        self.sources = [SignalSource()] * (int(world.source.max()) + 1) if learns else []
        self.believed = [source.believed() for source in self.sources]
        changes = world.world.drawn.changes
        self.changes, self.next_change, self.ends = changes.times.tolist(), changes.starts[:-1].tolist(), changes.starts[1:].tolist()
        # When pages were visited, the signals since then, and by how much these brought the next visit nearer.
        self.b, self.signals, self.nearer = [0.0] * n, [0] * n, [0.0] * n
        self.a, self.s, self.beta = [math.inf] * n, [0.0] * n, [0.0] * n
        self.checked, self.known = [False] * n, [False] * n
        self.longest = _LONGEST_ROUNDS * self.round
        self.score = np.full(n, np.inf)
        self.log_price, self.step, self.multiplier = 0.0, 1.0, 0.0

    def run(self) -> Visits:
        """Make all visits."""
        begun = first_visits(self.world.world, self.slots)
        pages, times = begun.pages.tolist(), begun.times.tolist()
        told, when = self.world.pages.tolist(), self.world.times.tolist()
        place, next_plan = 0, float(self.slots[len(pages)]) if len(pages) < len(self.slots) else math.inf
        for page, now in zip(pages, times, strict=True):
            self.b[page] = now
            self._take_changes(page, now)
        while place < len(when) and when[place] <= next_plan:
            self._count(told[place], when[place])
            place += 1
        for now in self.slots[len(pages) :].tolist():
            while place < len(when) and when[place] <= now:
                self._count(told[place], when[place])
                place += 1
            if now >= next_plan:
                self._plan(now)
                next_plan = now + self.round / _PLANS_A_ROUND
            page = self._choose(now)
            pages.append(page)
            times.append(now)
            self._visit(page, now)
        return Visits(np.array(pages), np.array(times))

    def _count(self, page: int, at: float) -> None:
        """Take in a signal; one that is late tells of what the visit saw."""
        if self.policy in _DEAF or at - self.b[page] <= self.delay:
            return
        self.signals[page] += 1
        # A source that is as good as none brings nothing nearer: in some worlds that is most of what comes.
        if self.beta[page] and self._due(page) > at:
            self.nearer[page] = self._at_once(page, at)
            self.score[page] = self._due(page)

    def _at_once(self, page: int, now: float) -> float:
        """By how much its signals bring the visit of a page nearer, to now at most: what they say in one moment came not late."""
        wait = self.a[page] + self.s[page] * self.log_price
        return min(self._nearer(page, now), max(wait - (now - self.b[page]), 0.0))

    def _nearer(self, page: int, now: float) -> float:
        """By how much the signals of a page bring its visit nearer; those of a source that is learned by what they are in so much time."""
        signals = self.signals[page]
        if not signals or not self.sources or not self.beta[page]:
            return signals * self.beta[page]
        believed, rate = self.believed[self.source[page]], self.rate[page]
        false_rate = believed.false_rate_after(rate, signals, now - self.b[page])
        return signals * evidence(rate, believed.recall, false_rate) / unannounced(rate, [believed.recall])

    def _due(self, page: int) -> float:
        wait = self.a[page] + self.s[page] * self.log_price
        wait = (wait if wait > 0.0 else 0.0) - self.nearer[page]
        return self.b[page] + (wait if wait < self.longest else self.longest)

    def _rank(self, page: int, now: float) -> tuple[float, bool]:
        wait = self.a[page] + self.s[page] * self.log_price
        # On the clock of doubt, which signals put forward.
        ranked = rank(now - self.b[page] + self.nearer[page], wait, self.s[page], 0.0, self.longest + self.nearer[page])
        return ranked, moves_price(ranked, wait, self.s[page], 0.0, self.longest + self.nearer[page])

    def _choose(self, now: float) -> int:
        """The page that ranks first among those at the head of the queue."""
        most = min(candidates(1), len(self.score))
        head = np.argpartition(self.score, most - 1)[:most].tolist()
        found = [self._rank(page, now) for page in head]
        first = max(range(most), key=lambda place: found[place][0])
        page, (ranked, moves) = int(head[first]), found[first]
        if moves:
            self.log_price = log_price_after(self.log_price, ranked, self.step)
        for other in head:
            if other != page:
                self.score[other] = self._due(other)
        return page

    def _take_changes(self, page: int, now: float) -> bool:
        at, end = self.next_change[page], self.ends[page]
        changed = bool(at < end and self.changes[at] <= now)
        while at < end and self.changes[at] <= now:
            at += 1
        self.next_change[page] = at
        return changed

    def _worth(self, page: int) -> tuple[float, float]:
        """Recall and false rate, as they are believed; of a source that is as good as none 0 both."""
        if self.policy in _DEAF:
            return 0.0, 0.0
        if not self.sources:
            return float(self.world.recall[page]), float(self.world.false_rate[page])
        believed, rate = self.believed[self.source[page]], self.rate[page]
        counts = believed.precision(rate) >= LEAST_PRECISION
        return (believed.recall, believed.false_rate(rate)) if counts else (0.0, 0.0)

    def _visit(self, page: int, now: float) -> None:
        interval, changed = now - self.b[page], self._take_changes(page, now)
        recall, false_rate = self._worth(page)
        signals = self.signals[page]
        if self.sources:
            of, rate, shape = self.source[page], self.rate[page], math.inf
            if self.policy in _LEARNS_RATES:
                rate, shape = self.shape[page] / self.time[page], self.shape[page]
            self.sources[of] = self.sources[of].after(SignalVisit(interval, signals, changed, rate, shape))
            self.believed[of] = self.sources[of].believed()
        if self.policy in _LEARNS_RATES:
            self.shape[page], self.time[page] = update_signalled(
                self.shape[page], self.time[page], interval, changed, signals, recall, false_rate
            )
            self.rate[page], self.known[page] = median_one(self.shape[page], self.time[page]), True
        self.b[page], self.signals[page], self.nearer[page] = now, 0, 0.0
        recall, false_rate = self._worth(page)
        rate = self.rate[page]
        wait, slope = signalled_wait(self.log_price, self.importance[page], rate, recall, false_rate)
        self.checked[page] = False
        if wait == math.inf and self.policy in _LEARNS_RATES:
            wait = second_look(self.log_price, self.importance[page], rate, interval)
            self.checked[page] = wait < self.longest
        self.a[page], self.s[page] = wait - slope * self.log_price, slope
        self.beta[page] = evidence(rate, recall, false_rate) / unannounced(rate, [recall])
        self.score[page] = self._due(page)

    def _plan(self, now: float) -> None:
        """Find the price, and make the numbers of all pages anew."""
        if self.policy in _LEARNS_RATES:
            self._fit_priors()
        rate, importance = np.array(self.rate), np.array(self.importance)
        worth = [self._worth(page) for page in range(len(rate))]
        recall, false_rate = (np.array(values) for values in zip(*worth, strict=True))
        found = solve_signals(importance, rate, recall, false_rate, self.world.world.budget, start=self.multiplier or None)
        solved = math.log(found.multiplier)
        self.log_price = log_price_towards(self.log_price, solved) if self.multiplier else solved
        self.multiplier = found.multiplier
        wait, slope = signalled_waits(self.log_price, importance, rate, recall, false_rate)
        free = np.isfinite(wait) & (slope > 0.0)
        self.step = price_step(len(rate), float((slope[free] / wait[free]).sum()))
        signals = signals_of(rate, recall, false_rate)
        self.beta = (signals.evidence / (rate * signals.unannounced)).tolist()
        for page, (at, by) in enumerate(zip(wait.tolist(), slope.tolist(), strict=True)):
            if not self.checked[page]:
                self.a[page], self.s[page] = at - by * self.log_price, by
            self.nearer[page] = self._at_once(page, now)
            self.score[page] = self._due(page)

    def _fit_priors(self) -> None:
        """Let pages without a bit begin with what the others of their source teach, as in a live crawl."""
        known = np.array(self.known)
        priors = sibling_priors(np.where(known, self.shape, 0.0), self.time, self.world.source, self.world.source + 1, self.round)
        for page in np.flatnonzero(~known).tolist():
            pattern = self.source[page] + 1
            self.shape[page], self.time[page] = float(priors.shape[pattern]), float(priors.time[pattern])
            self.rate[page] = median_one(self.shape[page], self.time[page])


class _GreedyCrawl:
    """Always the page whose visit is worth most now: the paper's GREEDY, and GREEDY-NCIS where signals are listened to."""

    def __init__(self, world: RealisedSignals, policy: SignalPolicy, days: float) -> None:
        self.world, self.listens = world, policy not in _DEAF
        self.sources: list[SignalSource] = []
        self.slots = np.arange(math.ceil(days * world.world.budget)) / world.world.budget
        rate = world.world.known_rates(0.0)
        recall, false = (world.recall, world.false_rate) if self.listens else (np.zeros(len(rate)), np.zeros(len(rate)))
        signals = signals_of(rate, recall, false)
        self.pace, self.evidence = rate * signals.unannounced, signals.evidence
        # Where there are no signals none is waited for: not many weak ones either.
        used = many_joined(signals, np.where(signals.evidence > 0.0, 0.1, _MOST_DOUBT))
        doubts = np.linspace(0.0, _MOST_DOUBT, _DOUBT_STEPS + 1)[1:]
        worth = [responses(np.full(len(rate), doubt), used).worth for doubt in doubts.tolist()]
        self.table = np.array([np.zeros(len(rate)), *worth, worth[-1]]) * (world.world.importance / rate)

    def run(self) -> Visits:
        """Make all visits."""
        begun = first_visits(self.world.world, self.slots)
        pages, times = begun.pages.tolist(), begun.times.tolist()
        n = len(self.pace)
        visited, signals, every = np.zeros(n), np.zeros(n), np.arange(n)
        visited[begun.pages] = begun.times
        told, when, place = self.world.pages.tolist(), self.world.times.tolist(), 0
        for now in self.slots[len(pages) :].tolist():
            while place < len(when) and when[place] <= now:
                signals[told[place]] += when[place] > visited[told[place]]
                place += 1
            doubt = self.pace * (now - visited) + (self.evidence * signals if self.listens else 0.0)
            scaled = np.minimum(doubt * (_DOUBT_STEPS / _MOST_DOUBT), _DOUBT_STEPS)
            low = scaled.astype(np.int64)
            below = self.table[low, every]
            page = int(np.argmax(below + (scaled - low) * (self.table[low + 1, every] - below)))
            visited[page], signals[page] = now, 0.0
            pages.append(page)
            times.append(now)
        return Visits(np.array(pages), np.array(times))
