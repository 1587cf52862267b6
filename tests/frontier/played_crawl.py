"""A crawl played with dispatcher, judge and planner on a clock that the test sets; fetches take no time.

Everything is the live one but the downloader, the response and the clock: pages come from `new_page`, a visit is built of what the site
says, `judge` makes the observation, and the planner plans when its thread would.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from timed_namespace import START, TimedNamespace

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.dispatching import ask_terms, exchange
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease
from optimal_frontier.frontier.dispatching.found_links import with_links
from optimal_frontier.frontier.dispatching.work import Ended
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import judge
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.planning import planner
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state import partition
from optimal_frontier.state.messages import PAGE_BYTES, Handout, NewPage, Observation
from optimal_frontier.state.rows import HEAD_BYTES, LAYOUT

#: Tag of fingerprints.
_TAG = 1
#: Shape of posteriors that stand for known change rates.
_KNOWN = 1e6
#: Least seconds from a handout to its observation.
_SOON_S = 1e-4
Floats = np.ndarray
#: Number of a page and time (s after START) -> number of its edition, or None where nothing is to be learned.
Site = Callable[[int, float], int | None]


def parse(**values: object) -> FrontierSettings:
    """Settings given without their prefix."""
    values = {"MIN_INTERVAL": 1e-3, "MAX_INTERVAL": 1e9, "RESOLVE_INTERVAL": 60} | values
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


def identity(name: str) -> bytes:
    """The fingerprint of the request of a page, host and path."""
    return hashlib.sha1(name.encode()).digest()


def silent(page: int, at: float) -> None:
    """A site whose pages teach nothing: posteriors stay what they are."""


def stale_s(visits: Iterable[float], events: Floats, since: float, until: float) -> float:
    """Seconds between two times in which a copy was not current: from each event to the first visit after it; all seconds after START."""
    at = np.sort(np.array(list(visits))) - START
    events = events[events < until]
    ends = np.minimum(np.append(at, until)[np.searchsorted(at, events)], until)
    lost, last = 0.0, since
    for begin, end in zip(events, ends, strict=True):
        lost += max(end - max(begin, last), 0.0)
        last = max(last, end)
    return lost


class Play:
    """A crawl of a site, whose fetches take no time.

    Attributes
    ----------
    visits : dict of int to list of float
        Number of a page -> times at which it was handed out, seconds since the epoch.
    handouts : list of float
        All of these in order.
    want : int
        Requests that are asked for at once.
    period : float
        Least seconds between two round trips.
    delay : float
        Seconds by which a round trip comes late.
    is_prompt : bool
        Whether each fetch has a round trip of its own that tells of it; otherwise that of the next fetch does.
    """

    def __init__(self, store: TimedNamespace, settings: FrontierSettings, site: Site = silent, want: int = 50) -> None:
        self.store, self.site, self.want = store, site, want
        self.visits: dict[int, list[float]] = defaultdict(list)
        self.handouts: list[float] = []
        self.names: list[str] = []
        self.numbers: dict[bytes, int] = {}
        self.added: list[NewPage] = []
        self._new: list[NewPage] = []
        self._ended: list[Ended] = []
        self._plan_at = 0.0
        self._is_planned = False
        self._exchange_at = 0.0
        self.period = self.delay = 0.0
        self.is_prompt = False
        self.look_s = exchange.LOOK_S
        self.now = store.now()
        self.run_by(settings)

    def run_by(self, settings: FrontierSettings) -> None:
        """Go on as another process that has these settings."""
        self.settings = settings
        self.planner, self.dispatcher = Planner(self.store, settings), Dispatcher(self.store, settings)
        self._plan_at = 0.0

    def dispatch_by(self, settings: FrontierSettings) -> None:
        """Dispatch with other settings than plans are made with."""
        self.dispatcher = Dispatcher(self.store, settings)

    # Pages.

    def add_page(self, name: str, shape: float = 0.0, time: float = 0.0, **values: Any) -> int:
        """Add a page, host and path, with what is believed of it; return its number."""
        url = f"http://{name}"
        new = new_page(self.settings, identity(name), url, {"url": url}, **values)
        if shape:
            new = replace(new, row=new.row._replace(shape=shape, time=time))
        self.numbers[new.page] = len(self.names)
        self.names.append(name)
        self.added.append(new)
        self._new.append(new)
        return len(self.names) - 1

    def add(self, n: int, hosts: int = 3, name: str = "h{host}/{page}", seed: int | None = None, **values: Any) -> list[int]:
        """Add pages with random posteriors and importance."""
        rng = np.random.default_rng(n if seed is None else seed)
        return [
            self.add_page(
                name.format(host=i % hosts, page=i),
                *(float(rng.uniform(2, 9)), float(rng.uniform(5, 50))),
                **({"importance": float(rng.uniform(0.5, 2))} | values),
            )
            for i in range(n)
        ]

    def add_known(self, importance: Iterable[float], change_rate: Iterable[float], hosts: int = 10, name: str = "h{host}/{page}") -> None:
        """Add pages whose change rates are known."""
        for i, (weight, rate) in enumerate(zip(importance, change_rate, strict=True)):
            self.add_page(name.format(host=i % hosts, page=i), _KNOWN, _KNOWN / float(rate), importance=float(weight))

    # Time.

    def monotonic(self) -> float:
        """The clock of the process."""
        return self.now

    def set_time(self, at: float) -> None:
        self.now = round(at * 1e6) / 1e6
        self.store.set_time_of_calls(at)

    def until(self, seconds: float, settings: FrontierSettings | None = None) -> None:
        """Go on until so many seconds after START."""
        if settings is not None:
            self.run_by(settings)
        end = START + seconds
        with ExitStack() as clocks:
            # The planner's too: the seconds that a plan takes here are none of this crawl's.
            for module in (exchange, ask_terms, partition, planner):
                clocks.enter_context(patch.object(module, "time", self))
            clocks.enter_context(patch.object(exchange, "LOOK_S", self.look_s))
            self.now = self.store.now()
            self._exchange_at = self.now
            while self.now < end:
                self._plan()
                # The planner wakes the courier when it has planned, or moved deadlines; else that waits for its time.
                if self._is_planned or self.now >= self._exchange_at:
                    self._exchange_at = self.now + self._exchange()
                self.set_time(min(max(self.now + 1e-5, min(self._exchange_at, self._plan_at)), end + 1e-5))

    def _plan(self) -> None:
        """Plan when the planner's thread would."""
        if self.now < self._plan_at:
            return
        due, look = self.planner.due_in(), self.planner.look_in()
        if due is not None and due <= 0:
            self.planner.plan(if_due=True)
            self._is_planned = True
            due = self.planner.due_in()
        elif look is not None and look <= 0:
            self._is_planned = self.planner.look() > 0
            look = self.planner.look_in()
        interval = self.settings.resolve_interval
        wait = min(interval, 1.0) if due is None else min(max(due, 0.02), max(1.0, 0.1 * interval))
        self._plan_at = self.now + (wait if look is None else min(wait, max(look, 0.02)))

    def _exchange(self) -> float:
        """Make one round trip; return the seconds until the next."""
        # As the courier does.
        ended, held = with_links(self._ended, self._new, self.dispatcher.published, self.settings)
        flags = [observation.flag for observation, _ in ended if observation.flag]
        work = Exchange(pages=self._new, ended=ended, flags=flags, want=self.want, looks_again=self._is_planned)
        self._new, self._ended, self._is_planned = [], list(held), False
        outcome = self.dispatcher.exchange(work)
        for handout in outcome.handouts:
            self.visits[self.numbers[handout.page]].append(self.now)
            self.handouts.append(self.now)
            self._ended.append((self.judged(handout), Lease.of(handout)))
        wait, rate = float(outcome.wait or 0.0), self.dispatcher.settings.crawl_rate
        if held or (outcome.handouts and (rate is None or self.is_prompt)):
            wait = _SOON_S
        elif outcome.handouts and rate is not None:
            # The budget has no other fetch before.
            wait = max(min(wait, 1.0 / rate), _SOON_S)
        else:
            wait += self.delay
        return max(wait, self.period)

    def judged(self, handout: Handout) -> Observation:
        """Fetch and judge."""
        number = self.numbers[handout.page]
        return judge(handout, self.fetched(number, handout), self.dispatcher.context(handout))

    def fetched(self, number: int, handout: Handout) -> Visit:
        edition = self.site(number, self.now - START)
        visit = Visit(handout.received)
        if edition is not None:
            visit.fingerprint = Fingerprint(hashlib.md5(b"%d %d" % (number, edition)).digest(), _TAG)
        return visit

    # What came of it.

    def gaps(self, number: int, since: float = 0.0) -> Floats:
        return np.diff([at for at in self.visits[number] if at >= START + since])

    def count(self, begin: float, end: float = np.inf) -> int:
        """Handouts between two times, seconds after START."""
        at = np.array(self.handouts)
        return int(((at >= START + begin) & (at < START + end)).sum())

    def rows(self) -> np.ndarray:
        """The heads of all pages as records, by number."""
        heads: list[bytes] = []
        for new in self.added:
            k = self.store.partition_of(new.host)
            heads.append(self.store.command("HGET", self.store.key("pages", k), new.page, partition=k)[:HEAD_BYTES])
        return np.frombuffer(b"".join(heads), LAYOUT)

    def rates(self) -> Floats:
        """Planned revisit rates, by number; nan of pages that are not planned."""
        crawl = self.planner.crawl
        ids = np.concatenate([crawl.tables[k].pages["id"] for k in crawl.partitions])[crawl.planned]
        rates = np.full(len(self.names), np.nan)
        rates[[self.numbers[page.tobytes()[:PAGE_BYTES]] for page in ids]] = self.planner.rates
        return rates

    def known(self) -> tuple[Floats, Floats]:
        """Importance and believed change rates of the pages as they were added."""
        shape, time = np.array([(new.row.shape, new.row.time) for new in self.added]).T
        return np.array([new.row.importance for new in self.added]), posterior_median(shape, time)

    def freshness(self, begin: float, end: float, change_rate: Floats | None = None) -> float:
        """Sum of importance x expected freshness between two times, seconds after START."""
        rates = self.known()[1] if change_rate is None else change_rate
        importance = [new.row.importance for new in self.added]
        total, begin, end = 0.0, START + begin, START + end
        for number, visits in self.visits.items():
            at = np.array([visit for visit in visits if visit < end])
            fresh, until = np.maximum(at, begin), np.append(at[1:], end)
            seen = until > fresh
            rate = rates[number]
            lost = np.exp(-rate * (fresh - at)) * -np.expm1(-rate * (until - fresh)) / rate
            total += importance[number] * lost[seen].sum()
        return total / (end - begin)
