"""The Scrapy scheduler: the other face of the dispatcher, through Frontera's manager.

Requests that Scrapy gives go to the manager (`add_seeds`, `links_extracted`); what the frontier hands out comes from its
`get_next_requests`; a lease ends, with `page_crawled` or `request_error`, when the engine has finished with the request, whichever way
it ended. No call waits for Redis: a `Session` carries everything on threads of its own and wakes the engine.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.utils.misc import load_object

from optimal_frontier.errors import OptimalFrontierError
from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.dispatching.progress_line import ProgressLog
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.frontier.judging.judge import Context
from optimal_frontier.frontier.judging.outcomes import CAUSES, DROPPED, REFUSED, RELEASED, error_of_dropped
from optimal_frontier.frontier.judging.safely import aside
from optimal_frontier.integrations.frontera.backend import OptimalBackend
from optimal_frontier.integrations.frontera.configuration import manager_of, settings_of
from optimal_frontier.integrations.frontera.content_hash import CONTENT_HASH
from optimal_frontier.integrations.frontera.guarded_manager import start_passing_by
from optimal_frontier.integrations.frontera.requests import HANDOUT, OBSERVATION
from optimal_frontier.integrations.scrapy.asking import Asking, room_of
from optimal_frontier.integrations.scrapy.callbacks import Callbacks
from optimal_frontier.integrations.scrapy.compatibility import (
    close_spider,
    engine_slot,
    fail_crawl,
    forget_tree,
    in_progress,
    look_before_downloads,
    looks_at_one_page,
    project_dir,
    schedule_next_call,
    thread_safe_caller,
)
from optimal_frontier.integrations.scrapy.converters import (
    MissingNeedError,
    OptimalRequestConverter,
    OptimalResponseConverter,
    UnstorableRequestError,
    forget_runtime,
)
from optimal_frontier.integrations.scrapy.fingerprinter import describe
from optimal_frontier.integrations.scrapy.foreign_settings import FronteraSettings, check_settings, is_cached_blindly, quieten_frontera
from optimal_frontier.integrations.scrapy.garbage import Collections
from optimal_frontier.integrations.scrapy.gate import Gate
from optimal_frontier.integrations.scrapy.held import HeldPages
from optimal_frontier.integrations.scrapy.idling import Idling
from optimal_frontier.integrations.scrapy.incoming import IncomingRequests
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease, forget_copies
from optimal_frontier.integrations.scrapy.local_requests import LocalRequests
from optimal_frontier.integrations.scrapy.log_in import LogIn
from optimal_frontier.integrations.scrapy.paced_starts import PacedStarts
from optimal_frontier.integrations.scrapy.pinged_pages import PingedPages
from optimal_frontier.integrations.scrapy.pushed_requests import PushedRequests
from optimal_frontier.integrations.scrapy.slot_limits import SlotLimits
from optimal_frontier.integrations.scrapy.sources import Sources
from optimal_frontier.integrations.scrapy.start_again import StartAgain
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import Handout, Observation

logger = logging.getLogger(__name__)

#: Counters of observations that are Scrapy's stats too.
_COUNTED: Final = (
    "ages",
    "ages_distrusted",
    "bytes_saved",
    "contents_flagged",
    "template_events",
    "template_changes",
    "fingerprints_failed",
    "includes_missed",
    "moves_held",
    "not_modified",
)


class OptimalScheduler(BaseScheduler):
    """Scheduler that keeps the spider open and hands it the request that is due.

    Parameters
    ----------
    crawler : Crawler
        Its settings are parsed here; bad ones close the spider with one line of explanation.
    """

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self.stats = crawler.stats
        self.settings: FrontierSettings
        self._refusal = ""
        self._leases: set[Lease] = set()
        self._pending: deque[Any] = deque()
        self._asking: Asking
        self._slots: SlotLimits
        self.local: LocalRequests
        self.gate: Gate
        self._log_in: LogIn
        self.incoming: IncomingRequests
        self._session: Session | None = None
        self._manager: Any = None
        self._call: Callable[[Callable[[], Any]], Any] | None = None
        self.collections = Collections()
        self._woken = self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Any) -> BaseScheduler:  # type: ignore[override]  # as documented
        """Return a scheduler for ``crawler``.

        The commands that look at one page (``scrapy fetch``, ``view``, ``parse``, ``check``, ``shell``) get Scrapy's own: they neither take
        part in the crawl nor touch its state.
        """
        return Scheduler.from_crawler(crawler) if looks_at_one_page(crawler) else cls(crawler)

    @staticmethod
    def of(crawler: Any) -> OptimalScheduler | None:
        """Return the open scheduler of ``crawler``, or None."""
        slot = engine_slot(crawler.engine) if crawler.engine is not None else None
        scheduler = getattr(slot, "scheduler", None)
        # Not isinstance: Scrapy's metaclass calls everything that has a scheduler's methods an instance.
        if scheduler is None or OptimalScheduler not in type(scheduler).__mro__:
            return None
        return scheduler if scheduler._session is not None else None

    @classmethod
    def is_set(cls, crawler: Any) -> bool:
        """Tell whether the setting SCHEDULER of ``crawler`` is this class or one derived from it."""
        return cls in load_object(crawler.settings["SCHEDULER"]).__mro__

    def context(self, handout: Handout) -> Context:
        """Return what a visit of a handout is judged by; only while it is open."""
        assert self._session is not None  # the caller looked
        return self._session.courier.context(handout)

    def progress_log(self, interval_s: float) -> ProgressLog:
        """Return what logs a line of progress every so many seconds; only while it is open."""
        assert self._session is not None  # the caller looked
        return ProgressLog(self._session.namespace, self.settings.close_after, interval_s, {"spider": self.crawler.spider})

    # Opening and closing.

    def open(self, spider: Any) -> None:
        """Connect and start; what prevents it is logged in one line, and the spider is closed."""
        self._call = thread_safe_caller()
        try:
            adapter = FronteraSettings(self.crawler.settings)
            self.settings = settings_of(adapter, spider.name)
            self._asking = Asking(adapter, self._look)
            self._slots = SlotLimits(self.settings)
            self.local = LocalRequests(self.settings.crawl_rate, self.settings.host_delay, self._look)
            self.gate = Gate(self.local, self._look)
            self._log_in = LogIn(self.crawler, self.gate, self.local, self._leases, self._look)
            self.sources = Sources(spider, self.settings, lambda *of: self.backend.session.courier.trap(*of))
            self._http_cache = is_cached_blindly(self.crawler.settings)
            identity = describe(self.crawler.request_fingerprinter)
            # before the session: it refuses what counts as content, if that cannot be imported
            quieten_frontera()
            self._manager = manager_of(adapter)
            self.backend: OptimalBackend = self._manager.backend
            callbacks = Callbacks(spider, self.settings.callbacks)
            check_settings(self.crawler, self.settings.schemes, callbacks)
            self._requests = OptimalRequestConverter(spider, self.crawler.request_fingerprinter.fingerprint, callbacks)
            self._held = HeldPages(self.stats, self.settings.callbacks)
            self._session = Session(self.settings, project_dir(), spider.name, self._wake, identity, self._requests.has)
            self.incoming = IncomingRequests(self.crawler, self._manager, self._requests, self.local, self._http_cache)
            self._idling = Idling(self.crawler, self._session.courier, self.incoming, self._manager)
            self._responses = OptimalResponseConverter(spider, self._requests)
            self.backend.attach(self._session, self.incoming.keep_in_memory, self._identify)
            look_before_downloads(self.crawler.engine.downloader, PacedStarts(self.crawler, self._session.courier, self.pay).before)
            self._start_again = StartAgain(self.crawler, self.incoming.note_start_again)
            start_passing_by(self._manager)
            self.gate.begin_start()
            pushed = PushedRequests(self.crawler, self._requests, self.backend)
            self._session.take_in(pushed, PingedPages(self.crawler), self._call)
        except OptimalFrontierError as error:
            self._refuse(str(error))
            return
        self.collections.begin()
        logger.info(
            "Frontier open: namespace %s on %s, budget %s",
            self.settings.namespace,
            self._session.connection.spec.display,
            "auto" if self.settings.crawl_rate is None else f"{self.settings.crawl_rate:g}/s",
        )

    def close(self, reason: str) -> None:
        """Settle what ended, give back every lease, and disconnect."""
        if self._session is None:
            return
        self._closing = True
        self._log_in.stop()
        self._start_again.stop()
        self.collections.end()
        self.incoming.pass_on()
        self._reap()
        for lease in list(self._leases):
            self._end(lease)
        while self._session.courier.ready:
            handout = self._session.courier.ready.popleft()
            logger.debug("given back unfetched: %s", handout.record["url"])
        self.sources.close()
        if self._manager is not None:
            self._manager.stop()
        if not self._session.close():
            logger.warning("Redis did not answer in time; what was under way will be handed out again")
        self._count_traps()
        self._held.tell(is_last=True)
        self._session = None

    def _identify(self, frontier_request: Any) -> bytes:
        """Return the identity of a stored request, as it would be if it had just been yielded."""
        identity: bytes = self.crawler.request_fingerprinter.fingerprint(self._requests.from_frontier(frontier_request))
        return identity

    def _refuse(self, message: str) -> None:
        self._refusal = message
        logger.critical("optimal_frontier: %s", message)
        self.stats.set_value("optimal_frontier/refused", message)
        assert self._call is not None  # set first thing in open
        fail_crawl(self.crawler)
        self._call(lambda: close_spider(self.crawler.engine, self.crawler.spider, "optimal_frontier_error"))

    def log_in_again(self, of: Any) -> None:
        """Have the spider log in again, as ``of``, a response or its request, shows that it is logged out.

        What this process has of the ended session counts as not visited; then ``start()`` is asked anew for its requests with
        ``meta["frontier_gate"]``, and the crawl goes on after them.
        """
        if self._session is not None and not self._closing:
            self._log_in.again(of)

    # Requests come in.

    def enqueue_request(self, request: Any) -> bool:
        """Take a request of the engine's: redirect and retry copies go straight on, everything else to the frontier."""
        if self._refusal or self._session is None:
            return False
        forget_copies(request.meta)
        if self.incoming.strays(request):
            return False
        if self.local.follow(request):
            return True
        lease: Lease | None = request.meta.get(LEASE)
        if lease is not None:
            if lease in self._leases and not lease.is_judged:
                lease.request, lease.handed = request, False
                self._pending.append(request)
                return True
            # An errback's, which passes no spider middleware: its lease stays with the request that failed.
            forget_runtime(request.meta)
            self.incoming.note_copy(request, lease)
        if request.meta.get("frontier_bypass"):
            self._pending.append(request)
            return True
        try:
            return self.incoming.add(request)
        except UnstorableRequestError as error:
            return self.incoming.keep_in_memory(request, error)

    # Requests go out.

    def next_request(self) -> Any:
        """Return the request to fetch now, or None; the engine is woken when there is one."""
        if self._session is None:
            return None
        # Links before the page they are on: what a page links to is safe before the page is done.
        self.incoming.pass_on()
        self._reap()
        self._drop_lost()
        self._log_in.look()
        self._start_again.look(self._session.courier.beginnings)
        self._held.tell()
        if self._session.courier.failure is not None:
            if not self._refusal:
                self._refuse(str(self._session.courier.failure))
            return None
        request = self._take()
        self._ask()
        return request

    def _take(self) -> Any:
        assert self._session is not None  # next_request looked
        if self._pending:
            request = self._pending.popleft()
            lease = request.meta.get(LEASE)
            if lease is not None:
                lease.handed = True
            return request
        is_shut = self.gate.is_shut
        local = self.local.take(is_shut=is_shut)
        if local is not None:
            return local
        if is_shut:
            self.backend.give_back()
            return None
        # What was handed out before the crawl was complete goes back when the spider closes.
        while self._session.courier.ready and not self._idling.is_ending:
            given = self._manager.get_next_requests(1, key_type="domain", overused_keys=[])
            if not given:  # Frontera's MAX_REQUESTS is reached
                break
            for frontier_request in given:
                if (request := self._handed_out(frontier_request)) is not None:
                    return request
        return None

    def _handed_out(self, frontier_request: Any) -> Any:
        handout: Handout = frontier_request.meta[HANDOUT]
        try:
            request = self._requests.from_frontier(frontier_request)
        except MissingNeedError as error:
            frontier_request.meta[OBSERVATION] = self._held.hold(handout, error.name)
            self._leave_out(frontier_request)
            return None
        except Exception as error:  # whatever is stored there
            frontier_request.meta[OBSERVATION] = aside(handout, f"no request can be made of its record: {error}")
            self._leave_out(frontier_request)
            return None
        self.incoming.note_handed_out(request)
        added: set[str] = set()
        visits = handout.row.visits
        if visits > 0 or handout.row.failures > 0:
            # A page that fails is back on its own schedule soon enough.
            added = {"dont_retry", "dont_cache"} if self._http_cache and visits > 0 else {"dont_retry"}
            added -= request.meta.keys()
            request.meta.update(dict.fromkeys(added, True))
        lease = Lease(handout, frontier_request, request, handed=True, added=frozenset(added))
        lease.session = self._log_in.session
        request.meta[LEASE] = lease
        self._leases.add(lease)
        self.stats.inc_value("optimal_frontier/dispatched")
        return request

    def _leave_out(self, frontier_request: Any) -> None:
        """End the lease of a request that is not fetched, whatever Frontera's middlewares do."""
        try:
            self._manager.request_error(frontier_request, REFUSED)
        except Exception:  # of a Frontera middleware of the user's
            logger.error("Frontera's manager could not take in %s", shown(frontier_request.url), exc_info=True)
        if HANDOUT in frontier_request.meta:  # or a middleware kept it from the backend
            self.backend.request_error(frontier_request, REFUSED)

    def _ask(self) -> None:
        """Tell the courier how much the downloader can take."""
        assert self._session is not None  # next_request looked
        courier, downloader = self._session.courier, self.crawler.engine.downloader
        going = [lease for lease in self._leases if not lease.is_judged]
        slow, waiting = self._slots.slow((lease.slot, lease.look_s()) for lease in going), [one.slot for one in going if one.is_waiting]
        room = room_of(downloader, courier.ahead, lambda key: [*self._slots.hosts_of(key), *self.backend.hosts_of(key)], slow, waiting)
        if (limits := self._slots.news(downloader)) is not None:
            courier.tell_limits(limits)
        done = self._closing or self.gate.is_shut or self._idling.is_ending
        free = max(0, room.free - len(courier.ready) - len(self._pending))
        wanted, ahead = self._asking.bounded(free, room.ahead, courier.idle_exchanges)
        courier.ask(0 if done else wanted, room.slots, room.per_host, ahead)

    def pay(self, request: Any) -> None:
        """Draw the budget for a fetch that was not dispatched."""
        if self._session is not None:
            self._session.courier.draw(1, host_of(request.url))
            self.stats.inc_value("optimal_frontier/extra_fetches")

    def hold(self, url: str, seconds: float) -> None:
        """Leave the host of ``url`` alone for a while, in every crawler of the namespace."""
        if self._session is not None:
            self._session.courier.hold(host_of(url), seconds)
            self.local.hold(host_of(url), seconds)
            self.stats.inc_value("optimal_frontier/host_holds")

    # Leases end.

    def _reap(self) -> None:
        """End the leases of requests that the engine has finished with."""
        alive = in_progress(self.crawler.engine)
        for local in self.local.reap(alive):
            self._log_in.note_end(local)
        if not self._leases:
            return
        waiting = self._pending
        ended = [lease for lease in self._leases if lease.request not in alive and not (waiting and lease.request in waiting)]
        for lease in ended:
            # The engine takes a request over right after next_request returned it.
            if lease.children:  # its callback is done, which alone has use for the tree
                forget_tree(lease.response)
            elif lease.handed:
                self._end(lease)

    def _drop_lost(self) -> None:
        """Give up requests whose lease is held no more, if they were not sent yet: the page is somebody else's by now."""
        assert self._session is not None  # next_request looked
        lost, ready = self._session.courier.lost, self._session.courier.ready
        while lost:
            handout = lost.popleft()
            for _ in range(len(ready)):  # only this thread takes from it
                waiting = ready.popleft()
                if waiting is not handout:
                    ready.append(waiting)
            for lease in [lease for lease in self._leases if lease.handout is handout]:
                lease.is_lost = True
                if lease.request in self._pending and not lease.reached:
                    self._pending.remove(lease.request)
                    self._end(lease)

    def _end(self, lease: Lease) -> None:
        self._leases.discard(lease)
        request, response, observation = lease.frontier_request, lease.response, lease.observation
        if lease.is_given_back or lease.children:  # children are left at the end of the crawl
            lease.error, observation = RELEASED, None
        if lease.reached:
            self._slots.note(lease, self.crawler.engine.downloader)
        error = lease.error or self._error_of(lease)
        if lease.is_lost and not lease.reached:
            request.meta.pop(HANDOUT)  # it ends no lease
        elif observation is not None and not lease.error:
            request.meta[OBSERVATION] = observation
        if lease.visit is not None and lease.visit.fingerprint is not None:
            request.meta[CONTENT_HASH] = lease.visit.fingerprint.digest or b""
        moves = self.backend.moves
        try:
            if response is not None and not error:
                self._manager.page_crawled(self._responses.to_frontier(response, request))
                self._log_in.note_good(lease)
                self.stats.inc_value("optimal_frontier/crawled")
                if observation is not None and observation.bit >= 0:
                    self.stats.inc_value("optimal_frontier/observations")
                    self.stats.inc_value("optimal_frontier/changes", observation.bit)
            else:
                self._manager.request_error(request, error)
                self.stats.inc_value(f"optimal_frontier/failed/{error}")
        except Exception:  # of a Frontera middleware of the user's
            logger.error("Frontera's manager could not take in %s", shown(request.url), exc_info=True)
        if HANDOUT in request.meta:  # or a middleware kept it from the backend
            self.backend.request_error(request, error or DROPPED)
        self._count(observation)
        if self.backend.moves > moves:
            self.stats.inc_value("optimal_frontier/moves")
        # The request's meta leads to the lease: without these loops a page's memory is free at once, not at some later collection.
        forget_tree(response)
        lease.request = lease.next_copy = lease.response = lease.frontier_request = lease.visit = None

    def _error_of(self, lease: Lease) -> str:
        """Return what is wrong with a fetch that reached its end; empty for a good one."""
        observation = lease.observation
        if observation is not None and lease.visit is not None:
            return "" if observation.outcome == "ok" else lease.visit.error or CAUSES[observation.row.cause]
        if (self._closing and not (lease.reached and lease.handed)) or lease.is_lost:
            return RELEASED
        return REFUSED if lease.is_turned_away else error_of_dropped(lease.request.meta, self.crawler.settings.getint("REDIRECT_MAX_TIMES"))

    def _count(self, observation: Observation | None) -> None:
        if observation is not None:
            for name in _COUNTED:
                if name in observation.counters:
                    self.stats.inc_value(f"optimal_frontier/{name}", observation.counters[name])

    # Staying open.

    def has_pending_requests(self) -> bool:
        """Tell whether something is under way or due; if nothing is, handlers of ``spider_idle`` have their turn: see `Idling`."""
        if self._refusal:
            return True  # it is being closed, for a reason other than "finished"
        if self._session is None:
            return False
        is_busy = self._pending or self.local or self._leases or self.incoming or self.gate.is_shut
        return bool(is_busy) or not self._idling.is_idle

    def _wake(self) -> None:
        """Called from the courier's thread."""
        if not self._woken and self._call is not None:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is being ended by force
                self._call(self._look)

    def _count_traps(self) -> None:
        if self._session is not None:
            for reason, links in self._session.courier.traps.counts.items():
                if links:
                    self.stats.set_value(f"optimal_frontier/trapped_{reason}", links)

    def _look(self) -> None:
        self._woken = False
        self._count_traps()
        if self._session is not None and self.crawler.engine is not None:
            schedule_next_call(self.crawler.engine)
