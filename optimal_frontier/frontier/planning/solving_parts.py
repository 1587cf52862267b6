"""The plan of a large crawl: `solving.solve` in parts, so that no array is as long as the crawl.

At a price the rate of a page depends on nothing but the page, its host and a few factors. So every sum over the crawl is one over parts,
which are made anew from the table at each sweep, on all cores; the price is where the sum of rates is the budget. A search that begins at
the price of the last plan takes two or three sweeps.

A host at its limit has the price at which its own pages spend that, as in `optimization.hosts`. These prices are found once the price of
the crawl is known, for as many hosts at a time as have `_TOGETHER` pages; of one that has more, as that of the crawl is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.planning.host_prices import LEAST_EXTRA
from optimal_frontier.frontier.planning.solving import (
    Problem,
    Solved,
    Sums,
    asked_beside,
    freshness_of,
    held_pages,
    known_pages,
    low_price,
    most_beside,
    own_bounds,
    solve,
)
from optimal_frontier.optimization.discovering import Discovering, Limits, PricedResponse, discovery_values, prices_of_full_hosts
from optimal_frontier.optimization.objectives import marginal_values
from optimal_frontier.optimization.priced_pages import PricedPages
from optimal_frontier.optimization.sweeps import in_order
from optimal_frontier.scheduling.numbers import MOST_SLOPE

#: Accepted miss of the budget, relative: what it costs of the objective is the square of that.
_TOLERANCE: Final = 2e-6
#: A step of the log price that is no longer needs no other sweep to be right to `_TOLERANCE`.
_SHORT: Final = 3e-4
#: Between prices so near, in logarithms, the chord is better than the slope, which the few pages next to the price dominate.
_NEARBY: Final = 0.1
_STEPS: Final = 200
#: Logarithms of prices at which pages are visited as often, and as seldom, as their bounds allow.
_FREE: Final = -600.0
_DEAR: Final = 600.0
#: Budgets that differ by less from what minima need leave nothing to plan.
_EXACT: Final = 1e-12
#: Added to the log price at which a page is just worth no visit.
_HAIR: Final = 1e-9
#: Share of its limit that minima may miss and still take all of it.
_AT_LIMIT: Final = 1e-9
#: Pages of hosts at their limits of which the prices are found together.
_TOGETHER: Final = 500_000
#: Pages of a part, about, of which the marginal value is asked where the budget serves all.
_SAMPLED: Final = 1024

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class ProblemParts:
    """A crawl in parts.

    Attributes
    ----------
    partitions : sequence of int
        The partition of each part.
    part : callable
        Number of a part -> its problem, as if there were no other pages. Several threads call it.
    sample : callable
        Returns some of the pages, and which share of all they are.
    limit : ndarray (hosts,) or None
        Most revisits per second of each host.
    """

    partitions: Sequence[int]
    part: Callable[[int], Problem]
    sample: Callable[[], tuple[Problem, float]]
    limit: Floats | None


def solve_parts(parts: ProblemParts, budget: float, start: float = 0.0, each: Callable[[], None] = lambda: None) -> Solved:
    """Return the plan of a budget for revisits; its ``rates`` and ``response`` are left empty.

    Parameters
    ----------
    parts : ProblemParts
        The pages.
    budget, start : float
        As in `solve`.
    each : callable
        Called between two parts, on the thread of the caller.

    Notes
    -----
    The budget is met to 2e-6, the limit of a host to rounding; pages with update times whose visits are worth just the price may leave
    some of it. Objective and price are those of `solve` to that accuracy.
    """
    return _Search(parts, budget, each).solved(start)


class _Fit(NamedTuple):
    """Factors that make minima, and what exploration asks for beside them, fit the limits of hosts (hosts,) and the budget."""

    minima: Floats
    minima_of_all: float
    asked: Floats
    asked_of_all: float


class _Bounded(NamedTuple):
    """Pages of a part, and the bounds on their rates: those that hold, and those of the crawl alone."""

    problem: Problem
    pages: Discovering
    low: Floats
    high: Floats
    own_low: Floats
    own_high: Floats
    pinned: NDArray[np.bool_]

    def at(self, log_price: Floats | float) -> tuple[Floats, Floats]:
        """Return rates at a log price, or at one of each page, and their derivatives by it; 0 at a bound."""
        pages, low, high, timed = self.pages, self.low, self.high, self.problem.timed
        if self.problem.discovery is not None or pages.policy == "poisson" or isinstance(log_price, np.ndarray):
            rates, bend = PricedResponse(pages, Limits(low, high)).at(log_price)
        else:  # what that does for most crawls, with fewer sweeps
            rates, bend = np.empty(len(low)), np.empty(len(low))
            plain = PricedPages(pages.importance, pages.change_rate, pages.objective == "freshness", None, low, high)
            plain.spend(math.exp(min(max(log_price, _FREE), _DEAR)), None, rates, bend, tiny=True)
        if timed is not None:
            price = np.broadcast_to(np.exp(log_price), rates.shape)[timed.rows]
            rates[timed.rows], bend[timed.rows] = timed.rates(price), 0.0
        return rates, bend

    def values(self, rates: Floats) -> Floats:
        """Return what one more visit a second is worth to each page at given rates."""
        pages = self.pages
        values = marginal_values(pages.importance, pages.change_rate, rates, pages.objective, pages.policy)
        return values if self.problem.discovery is None else values + discovery_values(pages, rates)

    def highest(self) -> Floats:
        """Return the rates at a price of nothing."""
        rates = np.where((self.pages.change_rate > 0) | (self.pages.discovery > 0), self.high, self.low)
        timed = self.problem.timed
        if timed is not None:
            rates[timed.rows] = timed.rates(np.zeros(len(timed.rows)))
        return rates


class _Look(NamedTuple):
    """Sums by host, (hosts,): rates at a price and their derivatives by its logarithm, the highest rates; pages; the least rates of the
    crawl, and what exploration asks for beside them."""

    visits: Floats
    slope: Floats
    highest: Floats
    pages: Floats
    least: Floats
    asked: Floats


class _End(NamedTuple):
    """Sums over a part of what a plan tells, and the derivative of its visits by the log price."""

    sums: Sums
    freshness: float
    held: int
    slope: float

    def moved(self, log_price: float, step: float) -> _End:
        """Return the same after a short step from a log price: at the optimum a visit is worth its price."""
        more = self.slope * step
        return self._replace(sums=self.sums._replace(rate=self.sums.rate + more), freshness=self.freshness + math.exp(log_price) * more)


class _Search:
    """The search for the price of one budget."""

    def __init__(self, parts: ProblemParts, budget: float, each: Callable[[], None]) -> None:
        self.parts, self.budget, self.each = parts, budget, each
        self.most = np.array([np.inf]) if parts.limit is None else parts.limit
        ones = np.ones(len(self.most))
        self.fit = _Fit(ones, 1.0, ones, 1.0)
        self.least, self.feasible = 0.0, True
        #: What the plan at a log price tells, each part after its partition, if the last look was next to the price that is sought.
        self.told: tuple[float, list[tuple[int, _End]]] = math.inf, []

    def solved(self, start: float) -> Solved:
        none, hosts = np.zeros(0), 0 if self.parts.limit is None else len(self.most)
        if self.budget <= 0:
            sums = {k: Sums(0, 0.0, 0.0) for k in self.parts.partitions}
            return Solved(none, 0.0, 0.0, np.zeros(hosts), none, 0.0, 0.0, 1.0, True, 0, by_partition=sums)
        guess = math.log(start) if start > 0 else self._guess()
        look, least = self._fitted(guess, is_near=start > 0)
        can = float(np.minimum(look.highest, self.most).sum())
        at, multiplier = guess, 0.0
        if can <= self.budget:
            at = _FREE
        # Pages with update times do not take what minima and exploration ask for them.
        elif least >= self.budget * (1 - _EXACT) and self._spent(self._look(_DEAR)) >= self.budget * (1 - _AT_LIMIT):
            at, multiplier = _DEAR, self._best_marginal()
        else:
            at, look = self._clearing(guess, look)
        for is_last in (False, True):
            own = self._own_prices(at, look)
            log_price = at
            if at in (_FREE, _DEAR):
                log_price = math.log(multiplier) if multiplier > 0 else self._low_price(at, own)
            else:
                multiplier = math.exp(at)
            with np.errstate(invalid="ignore"):
                extra = np.maximum(own - log_price, 0.0)
            extra[extra < LEAST_EXTRA] = 0.0
            ends = self._ends(at, own, extra)
            spent = sum(end.sums.rate for _, end in ends)
            # Where the last look was at this price, as next to a jump, another search would end there too.
            miss = min(abs(spent - self.budget), abs(spent - self._spent(look)))
            if is_last or at in (_FREE, _DEAR) or miss <= 10 * _TOLERANCE * self.budget:
                break
            at, look = self._clearing(at, self._look(at), is_short=False)
        sums = {k: Sums(0, 0.0, 0.0) for k in self.parts.partitions}
        for k, end in ends:
            pages, rate, response = sums[k]
            sums[k] = Sums(pages + end.sums.pages, rate + end.sums.rate, response + end.sums.response)
        stretch = max(1.0, self.least / self.budget)
        unused = max(0.0, self.budget - spent) if at == _FREE else 0.0
        totals = (sum(end.freshness for _, end in ends), unused, stretch, self.feasible, sum(end.held for _, end in ends))
        return Solved(none, multiplier, log_price, extra[:hosts], none, *totals, self.least, sums)

    def _over(self, work: Callable[[Problem], T]) -> Iterator[tuple[int, T]]:
        """Do something with all parts, and yield what it returns, after their partitions."""

        def done(number: int) -> T:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
                return work(self.parts.part(number))

        partitions = self.parts.partitions
        return zip(partitions, in_order(done, range(len(partitions)), self.each), strict=True)

    def _by_host(self, problem: Problem, values: Floats) -> Floats:
        if self.parts.limit is None:
            return np.array([values.sum()])
        return np.bincount(problem.host, values, len(self.most)).astype(np.float64, copy=False)

    def _factor(self, problem: Problem, by_host: Floats, of_all: float) -> Floats | float:
        return of_all if self.parts.limit is None else by_host[problem.host] * of_all

    def _bounded(self, problem: Problem) -> _Bounded:
        fit = self.fit
        minima = np.minimum(problem.min_rate, problem.max_rate) * self._factor(problem, fit.minima, fit.minima_of_all)
        own_low, own_high, pinned = own_bounds(problem, minima)
        more = asked_beside(problem, own_low, own_high) - own_low
        low = own_low + more * self._factor(problem, fit.asked, fit.asked_of_all)
        return _Bounded(problem, known_pages(problem), low, most_beside(problem, low, own_high, pinned), own_low, own_high, pinned)

    def _fitted(self, at: float, *, is_near: bool) -> tuple[_Look, float]:
        """Find the factors of `_Fit`; return sums at a log price, and what the least rates spend. See `scheduling.planning`.

        One look, where minima and what exploration asks for fit as they are.
        """
        look, ones = self._look(at, is_near=is_near), np.ones(len(self.most))
        self.least = float(look.least.sum())
        minima = np.minimum(1.0, np.divide(self.most, look.least, out=ones.copy(), where=look.least > self.most))
        needed = float((look.least * minima).sum())
        self.feasible = not (look.least > self.most * (1 + 1e-9)).any() and needed <= self.budget * (1 + 1e-9)
        of_all = min(1.0, self.budget / needed) if needed > 0 else 1.0
        if of_all < 1.0 or (minima < 1.0).any():
            self.fit = _Fit(minima, of_all, ones, 1.0)
            look = self._look(at, is_near=is_near)  # what is asked for beside them is another then
        low = look.least * minima * of_all
        room = np.maximum(self.most - low, 0.0)
        asked = np.divide(room, look.asked, out=ones.copy(), where=look.asked > room)
        total, left = float((look.asked * asked).sum()), max(0.0, self.budget - float(low.sum()))
        if total > left or (asked < 1.0).any():
            self.fit = _Fit(minima, of_all, asked, left / total if total > left else 1.0)
            look = self._look(at, is_near=is_near)
        return look, float(low.sum()) + min(total, left)

    def _guess(self) -> float:
        """Return about the log price: that of a sample, with its share of the budget and no limits of hosts."""
        problem, share = self.parts.sample()
        found = solve(replace(problem, limit=None), self.budget * share)
        return math.log(found.multiplier) if found.multiplier > 0 else found.log_price

    def _look(self, at: float, *, is_near: bool = False) -> _Look:
        """Return sums at a log price; next to the one that is sought, note what the plan tells, where that can be moved to another price:
        no host has one of its own, and it is freshness that visits buy.
        """

        def look(problem: Problem) -> tuple[_Look, _End | None]:
            bounded = self._bounded(problem)
            rates, bend = bounded.at(at)
            least = np.minimum(problem.min_rate, problem.max_rate)
            columns = (rates, bend, bounded.highest(), np.ones(len(rates)), least, bounded.low - bounded.own_low)
            sums = _Look(*(self._by_host(problem, values) for values in columns))
            tells = is_near and self.parts.limit is None and problem.objective == "freshness"
            return sums, _end(bounded, rates, bend) if tells else None

        total, ends = np.zeros((len(_Look._fields), len(self.most))), []
        for k, (found, end) in self._over(look):
            for into, values in zip(total, found, strict=True):
                into += values
            if end is not None:
                ends.append((k, end))
        self.told = at, ends
        return _Look(*total)

    def _clearing(self, guess: float, look: _Look, *, is_short: bool = True) -> tuple[float, _Look]:
        """Return the log price at which the budget is spent, and sums at one that is next to it.

        Newton on logarithms inside a bracket. Where spending jumps over the budget, the price is that of its lower end. Without limits of
        hosts the last step, if it is short, needs no other look.
        """
        low, high, at, reach = -math.inf, math.inf, guess, 1.0
        last: tuple[float, float] | None = None
        for _ in range(_STEPS):
            total = self._spent(look)
            if abs(total - self.budget) <= _TOLERANCE * self.budget:
                return at, look
            if total > self.budget:
                low = at
            else:
                high = at
            slope = float(look.slope[look.visits < self.most].sum())
            if last is not None and 0 < abs(at - last[0]) < _NEARBY and total != last[1]:
                slope = min(0.0, (total - last[1]) / (at - last[0])) or slope
            last = (at, total)
            step = at - math.log(total / self.budget) * total / slope if slope < 0 and total > 0 else math.nan
            if low < step < high and abs(step - at) <= 30.0:
                if is_short and self.parts.limit is None and abs(step - at) <= _SHORT:
                    return step, look
                at = step
            elif math.isinf(low) or math.isinf(high):
                at, reach = (high - reach if math.isinf(low) else low + reach), 2.0 * reach
            else:
                at = 0.5 * (low + high)
            if not low < at < high or high - low <= _EXACT * max(1.0, abs(at)):
                return high, self._look(high)
            look = self._look(at, is_near=abs(at - last[0]) <= _NEARBY)
        return at, look

    def _spent(self, look: _Look) -> float:
        return float(np.minimum(look.visits, self.most).sum())

    def _own_prices(self, at: float, look: _Look) -> Floats:
        """Return the log prices of hosts at their limits; -inf of all others."""
        own = np.full(len(self.most), -np.inf)
        visits = look.highest if at == _FREE else look.visits
        full = np.flatnonzero(visits > self.most)
        if at == _DEAR or not len(full):
            return own
        is_large = look.pages[full] > _TOGETHER
        for host in full[is_large].tolist():
            own[host] = self._price_of(host, max(at, -100.0))
        full = full[~is_large]
        groups = np.searchsorted(np.cumsum(look.pages[full]), np.arange(0.0, look.pages[full].sum(), _TOGETHER))
        for hosts in np.split(full, np.unique(groups)[1:]) if len(full) else ():
            is_one = np.zeros(len(own), bool)
            is_one[hosts] = True
            bounded = self._bounded(Problem.joined([some for _, some in self._over(partial(_of_hosts, is_one)) if len(some.importance)]))
            every, number = np.ones(len(hosts), bool), np.cumsum(is_one) - 1
            host, most = number[bounded.problem.host], self.most[hosts]
            prices = prices_of_full_hosts(bounded, host, most, every, max(at, -100.0))[0]
            # Minima that take the whole limit are there at any price: that of the best visit that is not made counts.
            is_taken = np.bincount(host, bounded.at(np.full(len(host), _DEAR))[0], len(hosts)) >= most * (1 - _AT_LIMIT)
            best = np.zeros(len(hosts))
            np.maximum.at(best, host, np.where(bounded.low < bounded.high, bounded.values(bounded.low), 0.0))
            with np.errstate(divide="ignore"):
                own[hosts] = np.where(is_taken, np.log(best) + _HAIR, prices)
            self.each()
        return own

    def _price_of(self, host: int, guess: float) -> float:
        """Return the log price of a host at its limit: that of a crawl of its pages, which has the limit as its budget."""
        is_one = np.arange(len(self.most)) == host
        parts = replace(self.parts, part=lambda number: _of_hosts(is_one, self.parts.part(number)), limit=None)
        search, ones, fit = _Search(parts, float(self.most[host]), self.each), np.ones(1), self.fit
        search.fit = _Fit(ones, fit.minima[host] * fit.minima_of_all, ones, fit.asked[host] * fit.asked_of_all)
        if search._spent(search._look(_DEAR)) < search.budget * (1 - _AT_LIMIT):
            return search._clearing(guess, search._look(guess), is_short=False)[0]
        best = search._best_marginal()
        return math.log(best) + _HAIR if best > 0 else -math.inf

    def _ends(self, at: float, own: Floats, extra: Floats) -> list[tuple[int, _End]]:
        """Return what the plan tells, of each part."""
        near, told = self.told
        if told and abs(at - near) <= _SHORT:
            return [(k, end.moved(near, at - near)) for k, end in told]

        def end(problem: Problem) -> _End:
            bounded = self._bounded(problem)
            rates, bend = bounded.at(self._paid(problem, at, own))
            if self.parts.limit is None:
                return _end(bounded, rates, bend)
            # Pages of hosts at their limits do not answer to the price of the crawl.
            more = extra[problem.host]
            return _end(bounded, rates, np.where(more > 0, 0.0, bend))

        return list(self._over(end))

    def _paid(self, problem: Problem, at: float, own: Floats) -> Floats | float:
        return at if self.parts.limit is None else np.maximum(at, own)[problem.host]

    def _values(self, problem: Problem, at: float, own: Floats) -> tuple[Floats, Floats, _Bounded]:
        bounded = self._bounded(problem)
        rates = bounded.at(self._paid(problem, at, own))[0]
        return rates, bounded.values(rates), bounded

    def _low_price(self, at: float, own: Floats) -> float:
        def logs(problem: Problem) -> Floats:
            rates, values, _ = self._values(problem, at, own)
            found = np.log(values[(rates > 0) & (values > 0)])
            some = found[:: max(1, len(found) // _SAMPLED)].copy()
            some[:1] = found.min(initial=some[0]) if len(found) > len(some) else some[:1]
            return some

        return low_price(np.concatenate([some for _, some in self._over(logs)]))

    def _best_marginal(self) -> float:
        """Return the highest worth of one more visit a second where the minima take the budget."""

        def best(problem: Problem) -> float:
            rates, values, bounded = self._values(problem, _DEAR, np.full(len(self.most), -np.inf))
            return float(values[np.isfinite(values) & (bounded.high > rates)].max(initial=0.0))

        return max(found for _, found in self._over(best))


def _end(bounded: _Bounded, rates: Floats, bend: Floats) -> _End:
    """Return what a plan tells of a part, by rates and their derivatives by the log price."""
    problem, pages = bounded.problem, bounded.pages
    # Slope over wait: a wait is 1 over a rate.
    answers = np.minimum(np.divide(-bend, rates, out=np.zeros(len(rates)), where=rates > 0), MOST_SLOPE)
    held = held_pages(rates, (bounded.low, bounded.high), (bounded.own_low, bounded.own_high))
    sums = Sums(len(rates), float(rates.sum()), float(answers.sum()))
    return _End(sums, freshness_of(problem, pages, rates, bounded.pinned), held, float(bend.sum()))


def _of_hosts(is_one: NDArray[np.bool_], problem: Problem) -> Problem:
    """Return the pages of some hosts."""
    pick = is_one[problem.host]
    names = ("importance", "change_rate", "min_rate", "max_rate", "asked", "host")
    columns: dict[str, Any] = {name: getattr(problem, name)[pick] for name in names}
    timed = problem.timed
    if timed is not None:
        some = pick[timed.rows]
        rows = (np.cumsum(pick) - 1)[timed.rows[some]]
        own = {name: getattr(timed, name)[some] for name in ("period", "worth", "fresh", "least", "most")}
        timed = replace(timed, rows=rows, **own) if len(rows) else None
    return replace(problem, **columns, timed=timed, discovery=None if problem.discovery is None else problem.discovery[pick])
