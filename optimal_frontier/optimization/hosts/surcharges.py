"""Host limits together with costs per page: each limit is enforced by a surcharge of its own, which depends on the multiplier.

A page on a host with surcharge ``s`` faces the price ``multiplier x cost + s``. A host below its limit has no surcharge; one at its limit
has the surcharge at which its pages spend just that. Hosts do not see each other, only the multiplier, so all surcharges are found
together: one sweep over the pages is one step for every host, and hosts that have settled drop out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.optimization.initial_price import initial_price
from optimal_frontier.optimization.price_search import clearing_price
from optimal_frontier.optimization.priced_pages import PricedPages, Spending, odds_are_tiny
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import BLOCK

#: Accepted miss of a limit, relative to what the host's pages spend above their minima, and as a step of log(price); the rest is made up
#: by scaling the rates.
TOLERANCE = 1e-8
#: Relative width of a price bracket at which the rates at its two ends are mixed: a page that changes often is dropped so fast as its price
#: rises that no float between may meet the limit.
_NARROW = 5e-8
_SWEEPS = 300
#: A price so far below all values that every page would be visited as often as anything allows.
_NEXT_TO_NOTHING = 2.0**-110


@dataclass(slots=True)
class _Search:
    """Hosts whose surcharge is still unknown, their pages, and what is known about them."""

    pages: PricedPages
    index: NDArray[np.int64] | None  #: pages of the whole problem; None: all of them
    ids: NDArray[np.int64]  #: hosts of the whole problem
    room: Floats  #: limit - minimum
    least: Floats
    ceiling: Floats  #: surcharge at which no page is worth more than its minimum
    shift: Floats  #: price that a typical page pays without a surcharge
    surcharge: Floats
    low: Floats  #: highest surcharge known to be too low; -1: none
    high: Floats  #: lowest surcharge known to be high enough
    rates: Floats
    bend: Floats
    steps: int = 0
    settled: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  #: after the last step
    narrow: NDArray[np.bool_] = field(
        default_factory=lambda: np.zeros(0, bool)
    )  #: to be met by mixing the rates at both ends of the bracket

    def narrowed(self, active: NDArray[np.bool_]) -> _Search:
        """The same, for some of the hosts."""
        if self.pages.host is None:
            raise TypeError("pages without hosts")
        pick = np.flatnonzero(active[self.pages.host])
        number = np.cumsum(active) - 1
        pages = self.pages.part(pick)
        pages.host = number[self.pages.host[pick]]
        index = pick if self.index is None else self.index[pick]
        floats = (self.room, self.least, self.ceiling, self.shift, self.surcharge, self.low, self.high)
        room, least, ceiling, shift, surcharge, low, high = (values[active] for values in floats)
        rates, bend = np.empty((2, pick.size))
        return _Search(pages, index, self.ids[active], room, least, ceiling, shift, surcharge, low, high, rates, bend, self.steps)


class HostSurcharges:
    """Pages, host limits, and the surcharges of the hosts.

    Parameters
    ----------
    pages : PricedPages
        With `host`.
    limits : ndarray (hosts,)
        Maximum visits per unit of time of each host; inf for none.

    Attributes
    ----------
    rates, bend : ndarray (n,)
        Rates at the last settled prices, within all limits, and their derivatives by log(price).
    surcharge : ndarray (hosts,)
        The last settled ones.
    """

    def __init__(self, pages: PricedPages, limits: Floats) -> None:
        if pages.host is None or pages.cost is None:
            raise TypeError("pages without hosts or costs")
        self.pages = pages
        self.cost = pages.cost
        self.host = pages.host
        self.limits = limits
        self.rates, self.bend = np.zeros(pages.size), np.empty(pages.size)
        self.least = np.zeros(limits.size)
        if pages.low is not None:
            self.least = self.sums(np.broadcast_to(np.asarray(pages.low), pages.size))
        self.top = self._highest_value(0.0)
        self.surcharge = np.zeros(limits.size)
        self._mean_cost = self.sums(self.cost) / np.maximum(self.sums(np.ones(pages.size)), 1)

    def _highest_value(self, multiplier: float) -> Floats:
        """Highest ``value - multiplier x cost`` of the pages of each host, at least 0."""
        highest = np.zeros(self.limits.size)
        buffer = np.empty(min(self.pages.size, BLOCK))
        for block in self.pages.blocks():
            value = self.pages.value(block, buffer[: block.stop - block.start])
            if multiplier:
                value = value - multiplier * self.cost[block]
            np.maximum.at(highest, self.host[block], value)
        return highest

    def sums(self, values: Floats) -> Floats:
        """Of per-page values, by host."""
        totals: Floats = np.bincount(self.host, weights=values, minlength=self.limits.size).astype(np.float64, copy=False)
        return totals

    def settle(self, multiplier: float) -> Spending:
        """Find the surcharges that keep every host within its limit at this multiplier, starting from the last ones.

        Notes
        -----
        Newton on log(visits - minimum) as a function of the logit of (surcharge + usual price), inside a bracket. Five sweeps or so, of
        which all but the first concern only the hosts at their limits; those with a fast-changing page near the price take about 25.
        """
        search = self._start(multiplier)
        self.surcharge = search.surcharge.copy()
        everything = True
        for _ in range(_SWEEPS):
            active = self._step(search, multiplier, everything)
            left = np.count_nonzero(active)
            if not everything and left < 0.7 * active.size:
                self._write_back(search, search.settled)
                if search.narrow.any():
                    self._mix(search, search.narrow, multiplier)
            if left == 0:
                break
            if everything or left < 0.7 * active.size:
                search = search.narrowed(active)
                everything = False
        else:
            raise ConvergenceError("the host prices did not settle")
        self.scale_to_limits()
        pages = self.pages
        total = pages.bandwidth(slice(None), self.rates)
        free = self._free_riders()
        return Spending(total, free, self._total_slope(multiplier))

    def _start(self, multiplier: float) -> _Search:
        ceiling = self._highest_value(multiplier)
        ceiling = np.where(ceiling > 0, ceiling + 1e-15 * self.top, 0.0)  # no page is worth a visit there, rounding included
        hosts = self.limits.size
        shift = np.broadcast_to(np.asarray(multiplier * self._mean_cost), hosts)
        room = self.limits - self.least
        return _Search(
            self.pages,
            None,
            np.arange(hosts),
            room,
            self.least,
            ceiling,
            shift,
            np.minimum(self.surcharge, ceiling),
            np.full(hosts, -1.0),
            ceiling.copy(),
            self.rates,
            self.bend,
        )

    def _step(self, search: _Search, multiplier: float, everything: bool) -> NDArray[np.bool_]:
        """One sweep: settle the hosts that can be, move the surcharges of the others; returns which are not settled."""
        pages, surcharge = search.pages, search.surcharge
        hosts = search.ids.size
        tiny = odds_are_tiny(multiplier, float(self.top.max()))
        visits, by_surcharge = np.zeros(hosts), np.zeros(hosts)
        if pages.host is None:
            raise TypeError("pages without hosts")
        for answer in pages.answers(multiplier, surcharge, search.rates, search.bend, tiny=tiny):
            ids = pages.host[answer.block]
            np.add.at(visits, ids, answer.rates)
            np.add.at(by_surcharge, ids, answer.bend / answer.price)
        excess = np.maximum(visits - search.least, 0.0)
        room = search.room
        over = excess > room
        search.low = np.where(over, np.maximum(search.low, surcharge), search.low)
        search.high = np.where(over, search.high, np.minimum(search.high, surcharge))
        price = surcharge + search.shift
        miss = np.abs(excess - room)
        tight = (miss <= TOLERANCE * np.minimum(room, -by_surcharge * price)) | (miss <= 1e-14 * room)
        settled = tight | (~over & (surcharge == 0))
        narrow = ~settled & (search.high - search.low <= _NARROW * (search.high + search.shift)) & (search.low >= 0)
        done = settled | narrow
        if everything and narrow.any():
            done = settled  # one more step, among the few
        search.settled, search.narrow = settled, narrow
        active: NDArray[np.bool_] = ~done
        if active.any():
            search.surcharge = np.where(active, self._next(search, price, excess, by_surcharge), surcharge)
        if everything:
            self.surcharge = np.where(settled, surcharge, search.surcharge)
        return active

    @staticmethod
    def _next(search: _Search, price: Floats, excess: Floats, by_surcharge: Floats) -> Floats:
        """Next surcharges to try."""
        ceiling = search.ceiling + search.shift
        share = np.minimum(price / ceiling, 1.0)
        distance = np.maximum(1 - share, 0.0)
        slope = by_surcharge * price * distance  # d visits / d logit
        step = np.clip((np.log(excess) - np.log(search.room)) * excess / slope, -30.0, 30.0)
        logit = np.log(share) - np.log(distance) - step
        proposal = ceiling / (1 + np.exp(-logit)) - search.shift
        floor = np.maximum(search.low, 0.0)
        low, high = floor + search.shift, search.high + search.shift
        middle = np.where(high > 4 * low, np.sqrt(low) * np.sqrt(high), 0.5 * (low + high)) - search.shift
        middle = np.where((middle > floor) & (middle < search.high), middle, 0.5 * (floor + search.high))
        good = (proposal > floor) & (proposal < search.high)
        search.steps += 1
        if search.steps > 6 and search.steps % 4:  # Newton creeps along one end of the bracket
            good[:] = False
        fresh = np.where(good, proposal, middle)
        # below the limit and heading for no surcharge at all: try that
        return np.where((search.low < 0) & ~good, 0.0, fresh)

    def _write_back(self, search: _Search, settled: NDArray[np.bool_]) -> None:
        if search.index is None or search.pages.host is None or not settled.any():
            return
        pick = settled[search.pages.host]
        self.rates[search.index[pick]] = search.rates[pick]
        self.bend[search.index[pick]] = search.bend[pick]
        self.surcharge[search.ids[settled]] = search.surcharge[settled]

    def _mix(self, search: _Search, narrow: NDArray[np.bool_], multiplier: float) -> None:
        """Meet the limits of hosts whose visits jump over them between two prices next to each other, by mixing the rates at both."""
        few = search.narrowed(narrow)
        if few.pages.host is None or few.index is None:
            raise TypeError("pages without hosts")
        cheap, dear = few.rates, np.empty(few.rates.size)
        few.pages.spend(multiplier, few.low, cheap, few.bend)
        few.pages.spend(multiplier, few.high, dear, few.bend)
        hosts = few.ids.size
        visits_cheap = np.bincount(few.pages.host, weights=cheap, minlength=hosts)
        visits_dear = np.bincount(few.pages.host, weights=dear, minlength=hosts)
        between = visits_cheap - visits_dear
        share = np.where(between > 0, (few.room + few.least - visits_dear) / between, 0.0)
        share = np.clip(share, 0.0, 1.0)
        mixture = dear + share[few.pages.host] * (cheap - dear)
        self.rates[few.index] = mixture
        self.bend[few.index] = few.bend
        self.surcharge[few.ids] = few.high

    def _free_riders(self) -> float:
        """Bandwidth spent by pages between their bounds on hosts below their limits."""
        total = 0.0
        for block in self.pages.blocks():
            rates = self.rates[block] * (self.surcharge[self.host[block]] == 0)
            if self.pages.bounded:
                rates *= self.bend[block] != 0
            total += self.pages.bandwidth(block, rates)
        return total

    def _total_slope(self, multiplier: float) -> float:
        """d spending / d log(multiplier), with the surcharges of capped hosts following."""
        cost = self.cost
        per_price = self.bend / (multiplier * cost + self.surcharge[self.host])
        by_surcharge = self.sums(per_price)
        by_multiplier = self.sums(per_price * cost)
        direct = self.sums(per_price * cost * cost)
        capped = self.surcharge > 0
        following = np.divide(by_multiplier**2, by_surcharge, out=direct.copy(), where=capped & (by_surcharge < 0))
        return multiplier * float(np.sum(np.where(capped, direct - following, direct)))

    def scale_to_limits(self) -> None:
        """Bring the hosts with a surcharge to exactly their limits by scaling the rates of their pages between bounds."""
        free = self.pages.free(slice(None), self.rates).astype(np.float64)
        visits = self.sums(self.rates)
        scalable = self.sums(self.rates * free)
        miss = self.limits - visits
        capped = (self.surcharge > 0) & (scalable > 0) & (np.abs(miss) <= 10 * TOLERANCE * self.limits)
        factor = np.where(capped, miss / np.where(capped, scalable, 1.0), 0.0)
        free *= factor[self.host]
        free *= self.rates
        self.rates += free
        self.pages.clip(slice(None), self.rates)


def solve_with_surcharges(pages: PricedPages, limits: Floats, budget: float, top: float) -> Solution:
    """The optimum under host limits and costs, for a budget above what the minima need.

    Parameters
    ----------
    pages : PricedPages
        With `host` and `cost`.
    limits : ndarray (hosts,)
        Not below the minima.
    budget : float
        In the unit of the costs.
    top : float
        Highest price at which any page is worth more than its minimum.
    """
    hosts = HostSurcharges(pages, limits)
    cheapest = float(hosts.top.max()) * _NEXT_TO_NOTHING
    if hosts.settle(cheapest).total <= budget * (1 + 1e-12):
        return _all_limits_met(hosts, cheapest, budget)
    least = pages.minimum_spending()
    guess, _ = initial_price(pages, budget, least)
    hosts.surcharge[:] = 0.0
    multiplier = _clear(hosts, budget, least, top, guess)
    return _finish(hosts, multiplier, budget)


def _all_limits_met(hosts: HostSurcharges, price: float, budget: float) -> Solution:
    """More bandwidth than limits and maxima can use: each host is a problem of its own."""
    pages, rates = hosts.pages, hosts.rates
    hosts.settle(price)
    hosts.scale_to_limits()
    if pages.high is not None:
        maxima = np.empty(pages.size)
        pages.fill_bounds(maxima, maximum=True)
        np.copyto(rates, maxima, where=(hosts.surcharge == 0)[hosts.host])
    quality = pages.settle(rates, price, surcharge=hosts.surcharge)
    return Solution(rates, quality.objective, 0.0, max(0.0, budget - quality.total), quality.residual)


def _clear(hosts: HostSurcharges, budget: float, least: float, top: float, guess: float) -> float:
    """Multiplier, by a search in which the surcharges are settled for every trial."""
    dear = (np.zeros(0), hosts.surcharge, least)
    cheap = (np.zeros(0), 0.0)

    def trial(price: float) -> Spending:
        nonlocal dear, cheap
        now = hosts.settle(price)
        if now.total > budget:
            cheap = (hosts.rates.copy(), now.total)
        else:
            dear = (hosts.rates.copy(), hosts.surcharge.copy(), now.total)
        return now

    clearing = clearing_price(trial, budget, least, top, guess or 0.5 * top, 1e-8)
    if clearing.cheaper is not None:  # spending jumps over the budget between two neighbouring prices
        rates, hosts.surcharge, spent = dear
        if not rates.size:
            rates = np.zeros(hosts.pages.size)
            hosts.pages.fill_bounds(rates, maximum=False)
            hosts.surcharge = np.zeros(hosts.limits.size)
        more, spent_more = cheap
        hosts.rates[:] = rates + (budget - spent) / (spent_more - spent) * (more - rates)
    return clearing.price


def _finish(hosts: HostSurcharges, multiplier: float, budget: float) -> Solution:
    """Make the sums exact and judge the result."""
    pages, rates = hosts.pages, hosts.rates
    riding = pages.free(slice(None), rates).astype(np.float64)
    riding *= (hosts.surcharge == 0)[hosts.host]
    miss = budget - pages.bandwidth(slice(None), rates)
    scalable = pages.bandwidth(slice(None), rates * riding)
    if scalable > 0:
        riding *= miss / scalable
        riding *= rates
        rates += riding
        pages.clip(slice(None), rates)
    quality = pages.settle(rates, multiplier, surcharge=hosts.surcharge)
    return Solution(rates, quality.objective, multiplier, 0.0, quality.residual)
