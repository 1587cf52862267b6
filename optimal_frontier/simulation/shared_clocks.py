"""Clocks of neighbourhoods in a simulated crawl: every so often the visits since then are learned from, and deadlines move.

A visit makes the numbers of its page by the calendar. Every `LOOK_ROUNDS` the planner looks: with X the time since a page's last visit on
the clock of its neighbourhood, its deadline comes nearer by ``shift = X - (now - b)``, so it is due when X is the wait at the price. Bounds
stay on the calendar. Only pages are written that may be due before the look after the next one, and whose deadline moves noticeably.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimal_frontier.estimation.neighbourhoods import Neighbourhoods, VisitBatch, bin_length
from optimal_frontier.scheduling.clocked import SPREAD_ROUNDS, is_noticeable, on_clock
from optimal_frontier.scheduling.numbers import waits_at_price, waits_that_last
from optimal_frontier.simulation import believing, crawling
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.sites import Sites

#: Time between two looks, in rounds (the time in which the budget visits every page once) ...
LOOK_ROUNDS: Final = 1.0 / 64.0
#: ... and fewest visits between them: a look costs as much as some visits.
FEWEST_VISITS: Final = 4
#: Looks ahead of which a deadline is written.
AHEAD: Final = 2.0


class SharedClocks:
    """The clocks of one crawl.

    Parameters
    ----------
    crawl, belief
        What dispatch and learning keep.
    sites : Sites
        Groups of the pages.
    even : float
        A round.
    day : float
        Length of a day.

    Attributes
    ----------
    neighbourhoods : Neighbourhoods
        What visits told.
    shift : ndarray (n,)
        By how much the deadline of each page is nearer than its numbers by the calendar say.
    every : float
        Time between two looks.
    next_look : float
        When the next one is due.
    rewritten : int
        Numbers that looks wrote.
    """

    def __init__(self, crawl: crawling.Crawl, belief: believing.Belief, sites: Sites, even: float, day: float) -> None:
        self.crawl, self.belief, self.host = crawl, belief, sites.host
        # Columns are numbered through from 0 each: the groups of all levels need numbers of their own.
        counts = sites.groups.max(axis=0) + 1
        self.groups = sites.groups + np.append(0, np.cumsum(counts[:-1]))
        self.neighbourhoods = Neighbourhoods(bin_length(even / day * 86_400.0) * day / 86_400.0, day, sites.groups.shape[1])
        self.neighbourhoods.grow(int(counts.sum()), int(self.host.max()) + 1)
        self.shift: Floats = np.zeros(len(self.host))
        self.even = even
        self.every, self.rewritten = max(LOOK_ROUNDS, FEWEST_VISITS / len(self.host)) * even, 0
        self.next_look = 0.0
        self._visits: list[tuple[int, float, float, bool, float, float]] = []
        # Read and written as plain numbers.
        shift: Any = self.shift
        self._fetched: Any = memoryview(crawl.fetched)
        self._shift: Any = memoryview(shift)

    def learn(self, belief: Any, page: int, interval: float, changed: bool) -> float:
        """Take in one bit as `believing.learn_bit` does, and keep it for the next look."""
        shape, time = belief.shape[page], belief.time[page]
        if shape <= 0.0:
            shape, time = belief.prior_shape[page], belief.prior_time[page]
        self._visits.append((page, self._fetched[page], interval, changed, shape, time))
        self._shift[page] = 0.0
        return believing.learn_bit(belief, page, interval, changed)

    def running(self, pages: Ints) -> float:
        """Return the share of some pages whose clocks are not the calendar."""
        return float(np.mean(self.neighbourhoods.runs[self.host[pages]]))

    def look(self, now: float) -> bool:
        """Learn from the visits since the last look, and move deadlines; return whether any has moved."""
        self.next_look = (now + self.every) * (1.0 - 1e-12)
        if self._visits:
            pages, until, interval, changed, shape, time = (np.array(column) for column in zip(*self._visits, strict=True))
            self._visits.clear()
            batch = VisitBatch(
                self.groups[pages], self.host[pages], until - interval, until, changed, shape, time, np.ones(len(pages), np.bool_)
            )
            self.neighbourhoods.fold(batch)
        self.neighbourhoods.advance(now)
        runs = self.neighbourhoods.runs
        if not (runs.any() or self.shift.any()):
            return False
        crawl, log_price = self.crawl, float(self.crawl.price[crawling.LOG_PRICE])
        rows = np.flatnonzero((crawl.s > 0.0) & np.isfinite(crawl.score) & (crawl.checked == 0))
        rows = rows[runs[self.host[rows]] | (self.shift[rows] != 0.0)]
        b, e, longest = crawl.b[rows], crawl.e[rows], crawl.l[rows]
        shift = self.neighbourhoods.elapsed(self.groups[rows], self.host[rows], b, now) - (now - b)
        rate = self.belief.rate[rows]
        own = log_price + crawl.host_price[crawl.host[rows]]
        prices = (own, own - log_price + min(log_price, float(crawl.price[crawling.LASTING])))
        wait, slope = waits_that_last(waits_at_price(own, crawl.importance[rows], rate), prices, crawl.importance[rows], rate)
        spread = SPREAD_ROUNDS * self.even
        due, slope = on_clock(wait, slope, rate, now - b, shift, e, spread)
        old = np.minimum(np.maximum(crawl.a[rows] + crawl.s[rows] * log_price, e), longest)
        new = np.minimum(np.maximum(due, e), longest)
        needed = (b + np.minimum(old, new) <= now + AHEAD * self.every) & is_noticeable(new - old, crawl.s[rows], slope, spread)
        rows = rows[needed]
        crawl.a[rows], crawl.s[rows] = (due - slope * log_price)[needed], slope[needed]
        self.shift[rows] = shift[needed]
        crawl.score[rows] = (b + new)[needed]
        self.rewritten += len(rows)
        return len(rows) > 0
