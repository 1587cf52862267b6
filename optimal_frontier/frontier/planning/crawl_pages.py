"""What a planner knows of a crawl: the tables of all partitions, priors, budget, exploration; and the problem that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.planning.bounds import BoundsRevision
from optimal_frontier.frontier.planning.budget import Budget
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.frontier.planning.host_groups import HostGroups, host_groups
from optimal_frontier.frontier.planning.host_prices import host_limits
from optimal_frontier.frontier.planning.hub_pages import HubPages
from optimal_frontier.frontier.planning.page_columns import Pages, find_medians
from optimal_frontier.frontier.planning.page_table import PageTable, share_to_read
from optimal_frontier.frontier.planning.priors import PriorFits, Priors, Taught, Teachers
from optimal_frontier.frontier.planning.republished import RepublishedPages
from optimal_frontier.frontier.planning.solving import Problem
from optimal_frontier.optimization.sweeps import in_order
from optimal_frontier.scheduling.discovery import discovery_rate, waits_with_discovery
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import read_limits
from optimal_frontier.state.namespace import Namespace, number_of
from optimal_frontier.state.rows import ACTIVE, FAR_S, HELD, RETIRED

#: A stretch that differs by more moves longest intervals.
_MOVED_STRETCH: Final = 0.02
#: Pages of which it is asked how a partition answers to a price.
_SAMPLE: Final = 10_000
#: Pages that are looked at together: in so many the arrays of a step stay small. What is summed by pattern takes more at once.
BLOCK: Final = 32_768
_MANY: Final = 8 * BLOCK

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Span(NamedTuple):
    """Pages that stand next to each other in the table of a partition, from ``start`` to before ``stop``."""

    partition: int
    start: int
    stop: int


class Part(NamedTuple):
    """Some pages of a table that are planned.

    Attributes
    ----------
    at : ndarray of int (n,)
        Where they stand in the table, rising.
    problem : Problem
        As if there were no others.
    failing : ndarray of bool (n,)
        Whether they fail.
    calm_max_rate : ndarray (n,)
        Highest rates if they did not, visits per second.
    """

    at: Ints
    problem: Problem
    failing: NDArray[np.bool_]
    calm_max_rate: Floats


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
    counts : dict of str to int
        Counters of all partitions.
    planned_pages : int
        How many pages are planned.
    priors, budget, progress
        Of the last `begin_problem`.
    planned : ndarray of int (n,)
        Pages of the last `problem`, as positions in the tables laid end to end.
    median, failing, calm_max_rate : ndarray (n,)
        Of the same: believed change rates (1/s), whether they fail, and highest rates (1/s) if they did not.
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
        self.counts: dict[str, int] = {}
        self.pending: dict[int, int] = {}
        self.first_visit_rate: dict[int, float] = {}
        self.planned_pages = 0
        self.planned: Ints = np.zeros(0, np.int64)
        self.priors = Priors()
        self.budget = Budget(0.0, 0.0, 0.0, 0, 0)
        self.progress = Progress("median")
        self.active = 0
        self.importance = 0.0
        self.median: Floats = np.zeros(0)
        self.failing: NDArray[np.bool_] = np.zeros(0, bool)
        self.calm_max_rate: Floats = np.zeros(0)
        self.read_rows = 0
        self.priors_moved = self.exploration_moved = True
        self._fits = PriorFits()
        self._touched: dict[int, int] = {}
        self._stretch = 1.0
        self._host_from: dict[int, int] = {}
        self._groups = HostGroups(np.zeros(0, np.int64), None)
        self._limit: Floats | None = None
        self._exploring = self.progress.waits(0.0)
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

    def forget(self) -> None:
        """Forget all pages, which `read` brings back: not all that is known of their numbers is true."""
        for k, table in self.tables.items():
            table.forget()
            self.republished[k] = RepublishedPages(self.namespace, k, self.settings)

    def read(self, k: int, log_price: float, each: Callable[[], None] = lambda: None) -> None:
        """Bring one partition up to date: all of a small one, of a large one as much as was visited, twice over."""
        table, counts = self.tables[k], self.namespace.counts(k)
        touched = counts.get("ended", 0) + counts.get("arrivals", 0)
        share = share_to_read(table.pages.count, touched - self._touched.get(k, 0))
        revision = self._revised.pop(k, None)
        self.read_rows += table.read(1.0 if revision else share, log_price, each, revision.see if revision else None)
        self._touched[k] = touched
        self.republished[k].read(table.pages)
        self.hubs[k].read(table.pages)
        self.pending[k] = counts.get("pending", 0)
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    @property
    def count(self) -> int:
        """Pages in all tables."""
        return sum(self.tables[k].pages.count for k in self.partitions)

    @property
    def limit(self) -> Floats | None:
        """Most revisits per second of each host, (hosts,); None without limits."""
        return self._limit

    def begin_problem(self, previous: Mapping[str, str], now: float, budget: Budget | None = None) -> None:
        """Find what all pages share: budget, priors, limits of hosts, progress of exploration.

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
        hosts = self._number_hosts()
        self._groups = self._grouped(hosts)
        group, capacity = self._groups
        self.active, self.importance, self.planned_pages = 0, 0.0, 0
        pinned, pinned_rate = 0, 0.0
        waiting = {k: np.zeros(hosts, np.int64) for k in self.partitions}
        is_active = np.zeros(hosts, bool)
        for span in self.spans():
            pages = self._of(span)
            host = group[pages["host"] + np.int64(self._host_from[span.partition])]
            active = pages["state"] == ACTIVE
            self.active += int(np.count_nonzero(active))
            self.importance += float(pages["importance"][active].sum(dtype=np.float64))
            self.planned_pages += int(np.count_nonzero(_is_planned(pages)))
            intervals = pages["max_interval"][active & (pages["min_interval"] >= pages["max_interval"])]
            pinned, pinned_rate = pinned + len(intervals), pinned_rate + float((1.0 / intervals.astype(np.float64)).sum())
            waits = (pages["state"] < RETIRED) & (pages["b"] == 0)
            if waits.any():
                waiting[span.partition] += np.bincount(host[waits], minlength=hosts)
            if capacity is not None:
                is_active[host[active]] = True
        self._limit = limit = host_limits(settings, capacity, sum(waiting.values(), np.zeros(hosts, np.int64)))
        self.first_visit_rate = {}
        if capacity is not None:
            self.first_visit_rate = {k: float(capacity[some > 0].sum()) for k, some in waiting.items() if some.any()}
        if budget is None:
            asked = pinned_rate if pinned == self.active else 0.0
            budget = Budget.of(settings, self.counts, previous, self._opened(now), now, asked=asked)
        self.budget = budget
        round_s = max(self.active, 1) / min(self.budget.revisits, np.inf if limit is None else float(limit[is_active].sum()) or np.inf)
        before = self.priors
        self.priors = self._fits.after(Teachers(self._patterns, self._taught), self.active, self.read_rows, round_s)
        self.priors_moved = self.priors is not before
        if self.priors_moved:
            self._forget_medians(self.priors.alike.moved_since(before.alike))
        progress = Progress.of_plan(previous).under(settings.exploration, settings.close_after)
        progress = progress.after(self.counts.get("observations", 0), self.planned_pages)
        moved = (progress.exploration, progress.number, progress.is_exploring)
        self.exploration_moved = moved != (self.progress.exploration, self.progress.number, self.progress.is_exploring)
        self.progress, self._exploring = progress, progress.waits(round_s)

    def problem(self, previous: Mapping[str, str], now: float, budget: Budget | None = None) -> Problem:
        """Return what is to be solved now, of all pages; arguments are those of `begin_problem`."""
        self.begin_problem(previous, now, budget)
        first: dict[int, int] = {}
        for k in self.partitions:
            first[k] = sum(self.tables[j].pages.count for j in first)
        spans = list(self.spans())
        parts = [self.part(span) for span in spans]
        planned = (part.at + first[span.partition] for span, part in zip(spans, parts, strict=True))
        self.planned = np.concatenate([np.zeros(0, np.int64), *planned])
        self.failing = np.concatenate([np.zeros(0, bool), *(part.failing for part in parts)])
        self.calm_max_rate = np.concatenate([np.zeros(0), *(part.calm_max_rate for part in parts)])
        whole = Problem.joined([part.problem for part in parts]) if parts else self._problem(0, Pages.none(), np.zeros(0, np.int64)).problem
        self.median = whole.change_rate
        return whole

    def spans(self, size: int = BLOCK) -> Iterator[Span]:
        """Yield all pages in parts of up to so many."""
        for k in self.partitions:
            count = self.tables[k].pages.count
            for start in range(0, count, size):
                yield Span(k, start, min(start + size, count))

    def part(self, span: Span) -> Part:
        """Return those of some pages that are planned, since `begin_problem`."""
        return self._problem(span.partition, self._of(span), np.arange(span.start, span.stop))

    def sample(self, k: int, size: int) -> Part:
        """Return about so many of the planned pages of a partition, or all."""
        pages = self.tables[k].pages
        rows = np.arange(0, pages.count, max(1, pages.count // max(size, 1)))
        return self._problem(k, pages.some(rows), rows)

    def rows_of(self, k: int) -> Ints:
        """Return which pages of the last `problem` are of partition ``k``."""
        first = sum(self.tables[j].pages.count for j in self.partitions if j < k)
        return np.arange(*np.searchsorted(self.planned, [first, first + self.tables[k].pages.count]))

    def of_partition(self, k: int, values: Floats) -> Floats:
        """Return the part of values by host that is of partition ``k``, by the numbers that hosts have there."""
        if len(values) == len(self._groups.group):
            values = values[self._groups.group]
        first = self._host_from.get(k, 0)
        later = [start for start in self._host_from.values() if start > first]
        return values[first : min(later)] if later else values[first:]

    def answer_at(self, k: int, log_price: float) -> float:
        """Return how many visits' worth of waits in partition ``k`` answer to a change of the price at that price, by a sample."""
        every = max(1, self.tables[k].pages.count // _SAMPLE)
        part, settings = self.sample(k, _SAMPLE), self.settings
        problem, pages = part.problem, self.tables[k].pages.some(part.at, ("min_interval", "max_interval", "failures"))
        yielded = np.zeros(len(part.at)) if problem.discovery is None else problem.discovery
        wait, slope = waits_with_discovery(log_price, problem.importance, problem.change_rate, yielded, settings.objective, settings.policy)
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
            return number_of(self.namespace.hash("meta").get("opened")) or now
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

    def _number_hosts(self) -> int:
        """Number the hosts of all partitions one after the other, and return how many numbers there are."""
        self._host_from, first, hosts = {}, 0, 0
        for k in self.partitions:
            here = self.tables[k].pages["host"]
            self._host_from[k] = first
            first += int(here.max(initial=0)) + 1
            hosts = first if len(here) else hosts
        return hosts

    def _of(self, span: Span) -> Pages:
        return self.tables[span.partition].pages.some(slice(span.start, span.stop))

    def _patterns(self) -> Iterator[NDArray[Any]]:
        """Yield the patterns of the pages that may teach priors, the next ones being sorted meanwhile."""

        def patterns(span: Span) -> NDArray[Any]:
            pages = self._of(span)
            return np.sort(pages["pattern"][pages["state"] == ACTIVE])

        return in_order(patterns, list(self.spans(_MANY)))

    def _taught(self) -> Iterator[Taught]:
        """Yield the pages that may teach priors, the next ones being sorted meanwhile."""

        def taught(span: Span) -> Taught:
            pages = self._of(span)
            active = np.flatnonzero(pages["state"] == ACTIVE)
            active = active[np.argsort(pages["pattern"][active])]
            host = pages["host"][active] + np.int64(self._host_from[span.partition])
            return Taught(pages["pattern"][active], pages["shape"][active], pages["time"][active], host)

        return in_order(taught, list(self.spans(_MANY)))

    def _problem(self, k: int, pages: Pages, rows: Ints) -> Part:
        """Return those of some pages that are planned; ``rows`` say where these pages stand in their table, rising."""
        settings = self.settings
        at = np.flatnonzero(_is_planned(pages))
        everything = len(at) == pages.count
        rows = rows if everything else rows[at]

        def of(name: str) -> NDArray[Any]:
            return pages[name] if everything else pages[name][at]

        host = self._groups.group[of("host") + np.int64(self._host_from.get(k, 0))]
        min_interval, max_interval = of("min_interval").astype(np.float64), of("max_interval").astype(np.float64)
        failing = of("failures") > 0
        with np.errstate(divide="ignore"):
            calm_max_rate = 1.0 / min_interval
            # What a failing page cannot use for its backoff is worth more elsewhere.
            min_interval[failing] = np.maximum(min_interval[failing], of("l")[failing])
            min_rate = np.where(max_interval < FAR_S / 2, 1.0 / max_interval, 0.0)
            max_rate = 1.0 / min_interval
            min_rate = np.minimum(min_rate, max_rate)
            exploring = self._exploring
            even = np.full(len(host), exploring.interval)
            asked = 1.0 / (even if exploring.is_even else exploring.longest_of_many(of("id"), max_interval))
        importance = of("importance").astype(np.float64)
        timed = self.republished[k].of_plan(rows, importance, (min_rate, max_rate)) if k in self.republished else None
        change_rate, discovery = self._medians(k, rows, of), self._discovery(k, rows)
        ways = exploring.is_even, host, self._limit, settings.objective, settings.policy
        return Part(rows, Problem(importance, change_rate, min_rate, max_rate, asked, *ways, timed, discovery), failing, calm_max_rate)

    def _medians(self, k: int, rows: Ints, of: Callable[[str], NDArray[Any]]) -> Floats:
        """Return the believed change rates of pages; those of posteriors are found once for each."""
        table = self.tables[k].pages
        find_medians(table, rows, self.priors.alike)
        median, none = table["median"][rows], np.flatnonzero(of("shape") <= 0)
        if len(none):
            median[none] = self.priors.medians(of("pattern")[none])
        return median

    def _forget_medians(self, patterns: NDArray[Any]) -> None:
        """Forget what is believed of the pages of some patterns, whose siblings say something else now; they count as just read."""
        for k in self.partitions if len(patterns) else ():
            pages = self.tables[k].pages
            moved = np.isin(pages["pattern"], patterns) & (pages["shape"] > 0)
            pages["median"][moved], pages["fresh"][moved] = np.nan, True

    def _discovery(self, k: int, rows: Ints) -> Floats | None:
        """Return what the new pages are worth that each of these pages yields a second; None where no page does."""
        yielded = self.hubs[k].among(rows) if k in self.hubs else None
        if yielded is None:
            return None
        newcomer_rate = 1.0 / self.priors.default_time if self.priors.default_time > 0 else 0.0
        discovery = yielded * discovery_rate(1.0, self.settings.objective, newcomer_rate)
        return discovery if discovery.any() else None


def _is_planned(pages: Pages) -> NDArray[np.bool_]:
    return np.asarray((pages["state"] == ACTIVE) & (pages["visits"] > 0) & (pages["flags"] & HELD == 0))
