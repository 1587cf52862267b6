"""What a planner knows of a crawl: the tables of all partitions, priors, budget, exploration; and the problem that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.bounds import BoundsRevision
from optimal_frontier.frontier.planning.budget import Budget
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.frontier.planning.host_groups import HostGroups, host_groups
from optimal_frontier.frontier.planning.host_prices import host_limits
from optimal_frontier.frontier.planning.hub_pages import HubPages
from optimal_frontier.frontier.planning.page_table import Pages, PageTable, share_to_read
from optimal_frontier.frontier.planning.priors import PriorFits, Priors
from optimal_frontier.frontier.planning.republished import RepublishedPages
from optimal_frontier.frontier.planning.solving import Problem
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.scheduling.discovery import discovery_rate, waits_with_discovery
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import read_limits
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ACTIVE, FAR_S, HELD, RETIRED

#: A stretch that differs by more moves longest intervals.
_MOVED_STRETCH: Final = 0.02
#: Pages of which it is asked how a partition answers to a price.
_SAMPLE: Final = 10_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CrawlPages:
    """The pages of a crawl, as a planner last read them.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Parsed settings.

    Attributes
    ----------
    partitions : list of int
        That can be reached.
    tables : dict of int to PageTable
        By partition.
    fresh : dict of int to ndarray of int
        Which rows of each table the last `read` brought.
    counts : dict of str to int
        Counters of all partitions.
    planned : ndarray of int (n,)
        Pages that are planned, as positions in the tables laid end to end.
    priors, budget, progress
        Of the last `problem`.
    median, failing, calm_max_rate : ndarray (n,)
        Of the planned pages: believed change rates (1/s), whether they fail, and highest rates (1/s) if they did not.
    discovery : ndarray (n,) or None
        Of the planned pages: what the new pages are worth that each yields a second; None where no page does.
    active, importance : int, float
        Number of pages that are revisited or will be, and the sum of their importance.
    pending : dict of int to int
        Pages that wait for their first visit, by partition.
    first_visit_rate : dict of int to float
        Fetches per second that the hosts of these pages bear together, by partition, where hosts have limits.
    read_rows : int
        Pages that the last reads brought.
    priors_moved, exploration_moved : bool
        Whether the first and the last of these differ from those of the plan before.
    """

    def __init__(self, namespace: Namespace, settings: FrontierSettings) -> None:
        self.namespace = namespace
        self.settings = settings
        self.partitions: list[int] = []
        self.tables: dict[int, PageTable] = {}
        self.republished: dict[int, RepublishedPages] = {}
        self.hubs: dict[int, HubPages] = {}
        self.fresh: dict[int, Ints] = {}
        self.counts: dict[str, int] = {}
        self.pending: dict[int, int] = {}
        self.first_visit_rate: dict[int, float] = {}
        self.planned: Ints = np.zeros(0, np.int64)
        self.priors = Priors()
        self.budget = Budget(0.0, 0.0, 0.0, 0, 0)
        self.progress = Progress("median")
        self.active = 0
        self.importance = 0.0
        self.median: Floats = np.zeros(0)
        self.discovery: Floats | None = None
        self.failing: NDArray[np.bool_] = np.zeros(0, bool)
        self.calm_max_rate: Floats = np.zeros(0)
        self.read_rows = 0
        self.priors_moved = self.exploration_moved = True
        self._fits = PriorFits()
        self._touched: dict[int, int] = {}
        self._partition: Ints = np.zeros(0, np.int64)
        self._stretch = 1.0
        self._host_from: dict[int, int] = {}
        self._groups = HostGroups(np.zeros(0, np.int64), None)
        self._revised: dict[int, BoundsRevision] = {}

    def now(self, partition: int = 0) -> float:
        """Return the time of a partition's server, which never runs back, seconds since the epoch."""
        return self.namespace.now(partition)

    def revise(self, k: int, revision: BoundsRevision) -> None:
        """Bring the bounds of a partition in line with changed settings at the next `read`, which is of all pages."""
        self._revised[k] = revision

    def begin(self, partitions: Sequence[int]) -> None:
        """Begin a plan of these partitions, which can be reached."""
        self.partitions = list(partitions)
        self.read_rows, self.counts, self.pending = 0, {}, {}
        for k in self.partitions:
            if k not in self.tables:
                self.tables[k] = PageTable(self.namespace, k)
                self.republished[k] = RepublishedPages(self.namespace, k, self.settings)
                self.hubs[k] = HubPages(self.namespace, k, self.settings)

    def read(self, k: int, log_price: float, each: Callable[[], None] = lambda: None) -> None:
        """Bring one partition up to date: all of a small one, of a large one as much as was visited, twice over."""
        table, counts = self.tables[k], self.namespace.counts(k)
        touched = counts.get("ended", 0) + counts.get("arrivals", 0)
        share = share_to_read(table.pages.count, touched - self._touched.get(k, 0))
        self._touched[k] = touched
        revision = self._revised.pop(k, None)
        self.fresh[k] = table.read(1.0 if revision else share, log_price, each, revision.see if revision else None)
        self.republished[k].read(table.pages)
        self.hubs[k].read(table.pages)
        self.read_rows += len(self.fresh[k])
        self.pending[k] = counts.get("pending", 0)
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    def problem(self, previous: Mapping[str, str], now: float, budget: Budget | None = None) -> Problem:
        """Return what is to be solved now.

        Parameters
        ----------
        previous : mapping of str to str
            What the last plan published.
        now : float
            Server's time, seconds since the epoch.
        budget : Budget, optional
            In place of that of the settings.
        """
        settings = self.settings
        pages = self._together()
        is_active = pages["state"] == ACTIVE
        self.active, self.importance = int(np.count_nonzero(is_active)), float(pages["importance"][is_active].sum(dtype=np.float64))
        self.planned = np.flatnonzero(is_active & (pages["visits"] > 0) & (pages["flags"] & HELD == 0))
        hosts = self._hosts(pages)
        self._groups = self._grouped(int(hosts.max(initial=-1)) + 1)
        grouped, capacity = self._groups.group[hosts], self._groups.capacity
        is_waiting = (pages["state"] < RETIRED) & (pages["b"] == 0)
        limit = host_limits(settings, capacity, grouped[is_waiting])
        self.first_visit_rate = {}
        if capacity is not None:
            here = {k: np.unique(grouped[is_waiting & (self._partition == k)]) for k in self.partitions}
            self.first_visit_rate = {k: float(capacity[some].sum()) for k, some in here.items() if len(some)}
        self.budget = budget if budget is not None else Budget.of(settings, self.counts, previous, self._opened(now), now)
        revisits = self.budget.revisits
        round_s = max(self.active, 1) / min(
            revisits, np.inf if limit is None else float(limit[np.unique(grouped[is_active])].sum()) or np.inf
        )
        before = self.priors
        active = np.flatnonzero(is_active)
        self.priors = self._fits.after(pages, active, hosts, self.read_rows, round_s)
        self.priors_moved = self.priors is not before
        progress = Progress.of_plan(previous).under(settings.exploration, settings.close_after)
        progress = progress.after(self.counts.get("observations", 0), len(self.planned))
        moved = (progress.exploration, progress.number, progress.is_exploring)
        self.exploration_moved = moved != (self.progress.exploration, self.progress.number, self.progress.is_exploring)
        self.progress = progress
        everything = len(self.planned) == pages.count

        def of(name: str) -> NDArray[Any]:
            return pages[name] if everything else pages[name][self.planned]

        host = grouped if everything else grouped[self.planned]
        min_interval, max_interval = of("min_interval").astype(np.float64), of("max_interval").astype(np.float64)
        failing = np.flatnonzero(of("failures") > 0)
        # What a failing page cannot use for its backoff is worth more elsewhere.
        self.failing = np.zeros(len(host), bool)
        self.failing[failing] = True
        with np.errstate(divide="ignore"):
            self.calm_max_rate = 1.0 / min_interval
        min_interval[failing] = np.maximum(min_interval[failing], of("l")[failing])
        with np.errstate(divide="ignore"):
            min_rate = np.where(max_interval < FAR_S / 2, 1.0 / max_interval, 0.0)
            max_rate = 1.0 / min_interval
        min_rate = np.minimum(min_rate, max_rate)
        exploring = progress.waits(round_s)
        with np.errstate(divide="ignore"):
            even = np.full(len(host), exploring.interval)
            asked = 1.0 / (even if exploring.is_even else exploring.longest_of_many(of("id"), max_interval))
        self.median = self._medians(of)
        importance = of("importance").astype(np.float64)
        timed = self._timed(importance, min_rate, max_rate)
        self.discovery = self._discovery()
        return Problem(
            importance,
            self.median,
            min_rate,
            max_rate,
            asked,
            exploring.is_even,
            host,
            limit,
            settings.objective,
            settings.policy,
            timed,
            self.discovery,
        )

    def _discovery(self) -> Floats | None:
        """Return what the new pages are worth that each planned page yields a second; None where no page does."""
        if not any(self.hubs[k].count for k in self.partitions):
            return None
        yielded = np.concatenate([self.hubs[k].of_all(self.tables[k].pages.count) for k in self.partitions])[self.planned]
        newcomer_rate = 1.0 / self.priors.default_time if self.priors.default_time > 0 else 0.0
        discovery = yielded * discovery_rate(1.0, self.settings.objective, newcomer_rate)
        return discovery if discovery.any() else None

    def rows_of(self, k: int) -> Ints:
        """Return which pages of the plan are of partition ``k``."""
        return np.flatnonzero(self._partition[self.planned] == k)

    def of_partition(self, k: int, values: Floats) -> Floats:
        """Return the part of values by host that is of partition ``k``, by the numbers that hosts have there."""
        if len(values) == len(self._groups.group):
            values = values[self._groups.group]
        first = self._host_from.get(k, 0)
        later = [start for start in self._host_from.values() if start > first]
        return values[first : min(later)] if later else values[first:]

    def answer_at(self, k: int, log_price: float) -> float:
        """Return how many visits' worth of waits in partition ``k`` answer to a change of the price at that price, by a sample."""
        rows = self.rows_of(k)
        every = max(1, len(rows) // _SAMPLE)
        some, first = rows[::every], sum(self.tables[j].pages.count for j in self.partitions if j < k)
        pages = self.tables[k].pages.take(self.planned[some] - first)
        settings = self.settings
        yielded = np.zeros(len(some)) if self.discovery is None else self.discovery[some]
        wait, slope = waits_with_discovery(
            log_price, pages["importance"].astype(np.float64), self.median[some], yielded, settings.objective, settings.policy
        )
        free = (slope > 0) & (wait > pages["min_interval"]) & (wait < pages["max_interval"]) & (pages["failures"] == 0)
        return float((slope[free] / wait[free]).sum()) * every

    def stretch_moved(self, stretch: float) -> bool:
        """Tell whether longest intervals are others than by the plan before."""
        return abs(stretch / self._stretch - 1.0) > _MOVED_STRETCH

    def settle(self, stretch: float) -> None:
        """Note the stretch of the plan that was written."""
        self._stretch = stretch

    def _opened(self, now: float) -> float:
        try:
            return float(self.namespace.hash("meta").get("opened", now))
        except StateUnavailableError:
            return now

    def _grouped(self, hosts: int) -> HostGroups:
        """Return what hosts bear, by what crawlers tell of their downloaders."""
        try:
            told = read_limits(self.namespace)
        except StateUnavailableError:  # of the first partition; the others go on
            told = []
        names = sorted({host for limits in told for slot in limits.slots for host in slot.hosts})
        numbers = {}
        for k in self.partitions:
            here = [name for name in names if self.namespace.partition_of(name) == k]
            found = self.namespace.command("HMGET", self.namespace.key("hosts", k), *here, partition=k) if here else []
            for name, number in zip(here, found, strict=True):
                if number is not None and self._host_from[k] + int(number) < hosts:
                    numbers[name] = self._host_from[k] + int(number)
        firsts = np.array([self._host_from[k] for k in self.partitions])
        of_hosts = np.array(self.partitions)[np.searchsorted(firsts, np.arange(hosts), side="right") - 1] if hosts else None
        return host_groups(self.settings, told, numbers, hosts, of_hosts)

    def _together(self) -> Pages:
        parts = [self.tables[k].pages for k in self.partitions]
        self._partition = np.repeat(self.partitions, [part.count for part in parts])
        return Pages.joined(parts)

    def _hosts(self, pages: Pages) -> Ints:
        hosts = pages["host"].astype(np.int64)
        first = 0
        for k in self.partitions:
            self._host_from[k] = first
            mine = self._partition == k
            size = int(hosts[mine].max(initial=0)) + 1
            hosts[mine] += first
            first += size
        return hosts

    def _medians(self, of: Callable[[str], NDArray[Any]]) -> Floats:
        """Return the believed change rates of pages; those of posteriors are found once for each."""
        median, shape = of("median").copy(), of("shape")
        bits = np.flatnonzero(np.isnan(median) & (shape > 0))
        if len(bits):
            median[bits] = posterior_median(shape[bits].astype(np.float64), of("time")[bits].astype(np.float64))
            self._keep_medians(median, bits)
        none = np.flatnonzero(shape <= 0)
        median[none] = self.priors.medians(of("pattern")[none])
        return median

    def _keep_medians(self, median: Floats, found: Ints) -> None:
        start, rows = 0, self.planned[found]
        for k in self.partitions:
            pages = self.tables[k].pages
            inside = (rows >= start) & (rows < start + pages.count)
            pages["median"][rows[inside] - start] = median[found[inside]]
            start += pages.count

    def _timed(self, importance: Floats, min_rate: Floats, max_rate: Floats) -> TimedPages | None:
        parts, start = [], 0
        places = np.full(len(self._partition), -1, np.int64)
        places[self.planned] = np.arange(len(self.planned))
        for k in self.partitions:
            size = self.tables[k].pages.count
            part = self.republished[k].of_plan(places[start : start + size], importance, (min_rate, max_rate))
            if part is not None:
                parts.append(part)
            start += size
        return TimedPages.together(parts) if parts else None
