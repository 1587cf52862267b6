"""The planner's work on clocks of neighbourhoods: with each plan, and at looks between plans.

A judge does not know these clocks: its numbers count time by the calendar, and so do posteriors. Here the deadline of a page comes nearer
by as much as its neighbourhood's clock has run ahead since its last visit, or moves away; what is late by that is put in the order of
worth (`clocked`). Bounds stay in calendar time.

A look is due every 32nd of a round, a second or RESOLVE_INTERVAL at the soonest. It takes in the visits since the last one, and asks the
clocks of pages in whose directory or pattern a change was seen; at every second look, and in a small crawl, of all. It writes what moved,
if it is due soon.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.judging.waits import Terms, goes_by_price
from optimal_frontier.frontier.planning.crawl_pages import BLOCK, CrawlPages
from optimal_frontier.frontier.planning.neighbourhood_clocks import NeighbourhoodClocks
from optimal_frontier.frontier.planning.rewriting import GOES_BY, Moved, shifted_pages
from optimal_frontier.frontier.planning.youth import FirstLooks
from optimal_frontier.scheduling.clocked import SPREAD_ROUNDS
from optimal_frontier.state.clocks import VisitsRead, read_visits
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import HUB

#: Looks in a round, and least seconds between two.
LOOKS_A_ROUND: Final = 32
LEAST_LOOK_S: Final = 1.0
#: So many looks that find no visit are as long apart as any.
_QUIET: Final = 2
#: Seconds after which visits are taken in at the latest, without a look: the stream keeps no more than about 4,000 calls.
CATCH_UP_S: Final = 10.0
#: At one look of so many the clocks of all pages are asked; in a table of up to so many pages at each.
_ALL_AT: Final = 2
_FEW_PAGES: Final = 2000
#: Looks ahead of which a deadline is written.
_AHEAD: Final = 1.5
#: A look writes at most so many deadlines a visit, those that are due first, as each costs the server about half of a visit; but so many at
#: the least.
_MOST_WRITTEN: Final = 0.2
_FEW_WRITTEN: Final = 64

Ints = NDArray[np.int64]


class ClockKeeper:
    """Keeps the clocks of all partitions while this planner makes the plans.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    crawl : CrawlPages
        The planner's.

    Attributes
    ----------
    clocks : dict of int to NeighbourhoodClocks
        By partition.
    youth : dict of int to FirstLooks
        By partition.
    terms : dict of int to Terms
        By partition, of the last plan, at the price of the last look.
    """

    def __init__(self, namespace: Namespace, crawl: CrawlPages) -> None:
        self.namespace = namespace
        self.crawl = crawl
        self.clocks: dict[int, NeighbourhoodClocks] = {}
        self.youth: dict[int, FirstLooks] = {}
        self.terms: dict[int, Terms] = {}
        self._looks = 0
        # Looks in a row that found no visit.
        self._quiet = 0
        # Visits that were taken in since the last look: most by plans where these are made more often than looks.
        self._unlooked: dict[int, int] = {}

    @property
    def look_s(self) -> float:
        """Seconds between two looks; more and more of them where nothing is visited."""
        shortest = min(LEAST_LOOK_S, self.crawl.settings.resolve_interval)
        usual = max(shortest, self.crawl.priors.default_time / LOOKS_A_ROUND)
        return min(usual * 2.0 ** max(self._quiet - _QUIET, 0), max(usual, CATCH_UP_S))

    def take_in(self, k: int, now: float, *, takes_over: bool) -> VisitsRead:
        """Take in the visits to a partition since the last time, and return them; first what another planner stored, if this takes over.

        The crawl has a problem to plan, hence pages and priors, and its pages were just read.
        """
        pages, priors = self.crawl.tables[k].pages, self.crawl.priors
        if k not in self.clocks or takes_over:
            stored = NeighbourhoodClocks(self.namespace, k)
            stored.load(priors.default_time)
            youth = FirstLooks(self.namespace.command("GET", self.namespace.key("youth", k), partition=k))
            self.clocks[k], self.youth[k] = stored, youth
        self.clocks[k].count(pages, self.crawl.tables[k].turnover)
        return self._read([k], now)[k]

    def catch_up(self, now: float) -> None:
        """Take in the visits since the last time, and leave what follows from them to the next look."""
        self._read_all(now)

    def _read_all(self, now: float) -> dict[int, VisitsRead]:
        """Take in the visits to all partitions; return those of partitions that could be reached: of others they stay in the stream."""
        found = {}
        # Of nodes of a cluster each may be away.
        for partitions in [[k] for k in self.clocks] if self.namespace.connection.spec.cluster else [list(self.clocks)]:
            with contextlib.suppress(StateUnavailableError):
                found.update(self._read(partitions, now))
        return found

    def _read(self, partitions: list[int], now: float) -> dict[int, VisitsRead]:
        priors = self.crawl.priors
        found = read_visits(self.namespace, {k: self.clocks[k].last for k in partitions}, now)
        for k, read in found.items():
            self.clocks[k].learn(read, priors, priors.default_time, now)
            # A plan reads only a part of a large table.
            self.crawl.tables[k].note(read.visits, read.log_price)
            self.youth[k].count(read.visits)
            self._unlooked[k] = self._unlooked.get(k, 0) + len(read.visits)
            if len(read.visits):
                self._quiet = 0
        return found

    def running(self, k: int) -> float:
        """Return the share of the pages of a partition whose clocks are another than the calendar."""
        return self.clocks[k].running(self.crawl.tables[k].pages) if k in self.clocks else 0.0

    def place(self, k: int, at: Ints | slice, now: float) -> None:
        """Note of these pages how far their clocks are ahead."""
        pages, clocks = self.crawl.tables[k].pages, self.clocks[k]
        pages["shift"][at] = 0.0
        if not clocks.is_open or self.crawl.settings.policy == "poisson":
            return
        some = pages.some(at, GOES_BY)
        moves = np.flatnonzero(goes_by_price(some) & (some["flags"] & HUB == 0))
        at = moves + at.start if isinstance(at, slice) else at[moves]
        pages["shift"][at] = clocks.shifts(pages, at, now)

    def settle(self, k: int, at: Ints) -> None:
        """Note that the numbers of these pages are what their clocks say."""
        pages = self.crawl.tables[k].pages
        pages["written"][at] = pages["shift"][at]

    def look(self, now: float) -> dict[int, Moved]:
        """Take in the visits since the last look; return what is to be written, by partition. `settle` what was."""
        self._looks += 1
        self._quiet = min(self._quiet + 1, 2 * _QUIET)
        moved = {}
        for k, read in self._read_all(now).items():
            some = self._look(k, read.log_price, now)
            if some is not None and len(some.at):
                moved[k] = some
        return moved

    def _look(self, k: int, log_price: float, now: float) -> Moved | None:
        pages, clocks = self.crawl.tables[k].pages, self.clocks[k]
        is_all = pages.count <= _FEW_PAGES or self._looks % _ALL_AT == 0
        # Where clocks count no more, all that is in the numbers is taken back, also what no look wrote at once.
        stirs = clocks.is_open or bool(pages["shift"].any() or pages["written"].any())
        if stirs:
            stirred = None if is_all else clocks.stirred(pages)
            for start in range(0, pages.count, BLOCK):
                block = slice(start, start + BLOCK)
                self.place(k, block if stirred is None else start + np.flatnonzero(stirred[block]), now)
        clocks.calm()
        seen = self._unlooked.pop(k, 0)
        if not stirs or k not in self.terms:
            return None
        most = max(_FEW_WRITTEN, int(_MOST_WRITTEN * seen))
        terms = self.terms[k] = self.terms[k]._replace(log_price=log_price)
        return shifted_pages(pages, terms, now, _AHEAD * self.look_s, SPREAD_ROUNDS * self.crawl.priors.default_time, most)

    def store(self, k: int, fence: int) -> bool:
        """Store what was learned since the last plan; False if another planner has taken over."""
        return self.clocks[k].store(fence)

    def fields(self, k: int) -> dict[str, Any]:
        """Return what a plan publishes of a partition."""
        return self.clocks[k].fields() | {"young_patterns": self.youth[k].believed}


def forget_clocks(namespace: Namespace, each: Callable[[], None] = lambda: None) -> None:
    """Remove what is stored of clocks, where NEIGHBOURHOODS was turned off."""
    for k in range(namespace.partitions):
        namespace.command("UNLINK", namespace.key("visited", k), namespace.key("clocks", k), partition=k)
        each()
