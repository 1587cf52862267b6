"""Downloader middleware: fingerprints what came, judges whether it changed, and tells the callback."""

from __future__ import annotations

import time
from typing import Any, Final

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured
from twisted.python.failure import Failure

from optimal_frontier.frontier.judging.callback_errors import after_callback_error, described
from optimal_frontier.frontier.judging.fetched_once import is_page
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint, Fingerprinting
from optimal_frontier.frontier.judging.judge import NOTHING_KNOWN, conditions_of, is_last_content, is_news, told
from optimal_frontier.frontier.judging.outcomes import CALLBACK, ITEM, REDIRECTS, error_of_dropped, error_of_exception, error_of_response
from optimal_frontier.frontier.judging.retry_after import SLOW_DOWN, hold_s, is_back_later
from optimal_frontier.frontier.judging.safely import judged_safely
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, Validators
from optimal_frontier.frontier.judging.visits import NOT_MODIFIED, Visit, is_cut_off, not_modified_visit, visit_of
from optimal_frontier.integrations.frontera.canonical_links import other_page
from optimal_frontier.integrations.frontera.requests import FAILED_AT
from optimal_frontier.integrations.scrapy.compatibility import is_taken, look_after_fetches
from optimal_frontier.integrations.scrapy.conditional import ConditionalRequests
from optimal_frontier.integrations.scrapy.lease import LEASE, LOCAL, META, Lease, forget_copies
from optimal_frontier.integrations.scrapy.local_requests import CALLBACK_FAILED, Local
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.integrations.scrapy.sources import ANNOUNCES, without_body

#: Bytes of what should be a source and is none, from which on nobody looks at its content.
_LARGE: Final = 2**20
#: Content-Encoding of what may have been cut off unnoticed: Scrapy unpacks as much as there is.
_GZIP: Final = frozenset({b"gzip", b"x-gzip"})


class ChangeDetectionMiddleware:
    """Sees each response as the engine will, and every way in which a request ends on its way there.

    It builds the `Visit`, has it judged, and carries out what the observation says. The observation is only counted when the callback's
    output has been taken (see `OptimalScheduler`).
    """

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self._scheduler: OptimalScheduler | None = None
        self._conditional: ConditionalRequests | None = None
        self._fingerprinting: Fingerprinting | None = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> ChangeDetectionMiddleware:
        if not OptimalScheduler.is_set(crawler):
            raise NotConfigured("ChangeDetectionMiddleware needs optimal_frontier's scheduler")
        middleware = cls(crawler)
        crawler.signals.connect(middleware.opened, signals.spider_opened)
        crawler.signals.connect(middleware.reached_downloader, signals.request_reached_downloader)
        crawler.signals.connect(middleware.response_downloaded, signals.response_downloaded)
        crawler.signals.connect(middleware.callback_failed, signals.spider_error)
        crawler.signals.connect(middleware.item_failed, signals.item_error)
        return middleware

    @property
    def scheduler(self) -> OptimalScheduler | None:
        """Ours, once it is open."""
        if self._scheduler is None:
            self._scheduler = OptimalScheduler.of(self.crawler)
        return self._scheduler

    @property
    def conditional(self) -> ConditionalRequests:
        """What asks whether pages have changed; the scheduler is open."""
        if self._conditional is None:
            assert self._scheduler is not None  # the callers looked
            self._conditional = ConditionalRequests(self.crawler, self._scheduler.settings)
        return self._conditional

    @property
    def fingerprinting(self) -> Fingerprinting:
        """What counts as the content of each page; the scheduler is open."""
        if self._fingerprinting is None:
            assert self._scheduler is not None  # the callers looked
            self._fingerprinting = self._scheduler.backend.fingerprinting
        return self._fingerprinting

    def process_request(self, request: Any, spider: Any = None) -> None:
        """Ask whether a page has changed, where that can be asked; send nothing under a lease that is lost."""
        forget_copies(request.meta)
        lease: Lease | None = request.meta.get(LEASE)
        if self.scheduler is None or lease is None or lease.request is not request:
            return
        if lease.is_lost and not lease.reached:
            raise IgnoreRequest("its lease was lost")
        if request.meta.get(ANNOUNCES):
            # What the server zips on the way is unzipped before anybody can look at it.
            request.meta.setdefault("download_maxsize", self.scheduler.sources.most_bytes)
        self.conditional.ask(lease, request, lambda: self._conditions(lease))

    def _conditions(self, lease: Lease) -> Validators | None:
        assert self._scheduler is not None  # the caller looked
        handout = lease.handout
        if not any((handout.memory.etag, handout.memory.last_modified)):
            return None  # most first visits: nothing to ask with
        return conditions_of(handout, self.fingerprinting.way(handout.record["url"]).tag, self._scheduler.context(handout))

    def reached_downloader(self, request: Any) -> None:
        """Pay for fetches that were not dispatched: redirects, retries, robots.txt, bypasses."""
        lease = request.meta.get(LEASE)
        if lease is not None and lease.request is request and not lease.reached:
            lease.reached = True
        elif self.scheduler is not None:
            self.scheduler.pay(request)

    def response_downloaded(self, request: Any, response: Any) -> None:
        """Take the time of the response; leave a host alone that asks for it."""
        headers = response.headers
        hold = hold_s(response.status, headers.get("Retry-After"), headers.get("Date")) if response.status in SLOW_DOWN else None
        if hold is not None and self.scheduler is not None:
            self.scheduler.hold(request.url, hold)
        lease: Lease | None = request.meta.get(LEASE)
        if lease is None or lease.request is not request:
            return
        lease.responded = time.monotonic()
        lease.status, lease.size = response.status, len(response.body)
        lease.packed = response.body if (headers.get("Content-Encoding") or b"").lower() in _GZIP else b""
        if hold is not None and is_back_later(lease.handout.row, response.status, hold):
            lease.leave_to_plans()

    # The spider argument is needed up to Scrapy 2.13.
    def process_response(self, request: Any, response: Any, spider: Any = None) -> Any:
        """Have the response judged that the engine gets; a source is read on a thread before."""
        lease: Lease | None = request.meta.get(LEASE)
        is_source = self.scheduler is not None and request.meta.get(ANNOUNCES) and not error_of_response(response.status, response.flags)
        if lease is not None and lease.request is request and is_source:
            return self._read_source(lease, request, response)
        return self._respond(request, response)

    async def _read_source(self, lease: Lease, request: Any, response: Any) -> Any:
        assert self._scheduler is not None  # process_response looked
        lease.source = await self._scheduler.sources.read(lease, request, response)
        return self._respond(request, response)

    def _respond(self, request: Any, response: Any) -> Any:
        lease: Lease | None = request.meta.get(LEASE)
        local: Local | None = request.meta.get(LOCAL)
        if self.scheduler is None:  # `scrapy parse`, `check` and `shell` have Scrapy's own, and callbacks that read this run there, too
            request.meta[META] = dict(NOTHING_KNOWN)
            return response
        self.scheduler.collections.note_body(len(response.body))
        if local is not None and local.request is request:
            if local.is_repeated:
                self._not_counted(request)
            local.answer(error_of_response(response.status, response.flags))
            local.response = response
        if lease is None:
            request.meta[META] = dict(NOTHING_KNOWN)
            return response
        if lease.request is not request:  # a spider's own download with a copy of the page's meta
            return response
        if lease.is_given_back or lease.error:
            self._not_counted(request)
        context = self.scheduler.context(lease.handout)
        lease.response = response
        sent = self.conditional.forget(lease, request)
        lease.visit = visit = self._visit(lease, request, response, sent)
        lease.observation = observation = judged_safely(lease.handout, visit, context)
        request.meta[META] = told(lease.handout, observation, context)
        if observation.moved:
            self.scheduler.backend.note_move(observation)
        if visit.is_not_modified:
            return self._not_modified(lease, request)
        if visit.error:
            return response
        if observation.outcome == "ok" and any(visit.validators):
            self.conditional.keep(request, response, lease)
        if request.meta.get(ANNOUNCES):
            request.callback = self.scheduler.sources.announce
            lease.response = response = without_body(response)
        if self.scheduler.settings.callback_on == "change" and not is_news(observation):
            request.callback = _unchanged
            self.crawler.stats.inc_value("optimal_frontier/callbacks_spared")
        return response

    @staticmethod
    def _not_counted(request: Any) -> None:
        """Keep a response of an ended session from the spider."""
        request.errback = _unchanged
        raise IgnoreRequest("the session has ended")

    def _visit(self, lease: Lease, request: Any, response: Any, sent: Validators | None) -> Visit:
        """Return what came: what the response says, and what only Scrapy knows."""
        assert self._scheduler is not None  # process_response looked
        handout, responded = lease.handout, lease.responded or time.monotonic()
        error = error_of_response(response.status, response.flags)
        if sent is not None and response.status == NOT_MODIFIED:
            visit = not_modified_visit(response.headers, sent, responded, time.time())
        elif error:
            visit = Visit(responded, error, response.status)
            visit.is_taken = is_taken(self.crawler, request, response.status)
        else:
            if not is_page(handout, self._scheduler.settings):
                return Visit(responded, status=response.status)
            visit = self._visit_of_page(lease, request, response, responded)
        visit.asked, visit.lateness = sent, lease.lateness
        return visit

    def _visit_of_page(self, lease: Lease, request: Any, response: Any, responded: float) -> Visit:
        assert self._scheduler is not None  # process_response looked
        url = lease.handout.record["url"]
        source, taken = lease.source, None
        if source is not None:
            taken = Fingerprint(source.fingerprint, self.fingerprinting.way(url).tag)
        elif request.meta.get(ANNOUNCES) and len(response.body) > _LARGE:
            taken = Fingerprint(None, self.fingerprinting.way(url).tag)
        visit = visit_of(response, url, self.fingerprinting, responded, time.time(), taken, lease.handout.row.content)
        if source is not None:
            visit.sections = None
            visit.source = "whole" if source.is_whole else "damaged"
        elif request.meta.get(ANNOUNCES):
            visit.sections, visit.source = None, "unreadable"
        visit.is_downloaded = lease.responded > 0
        if lease.packed and not visit.is_cached and "Content-Encoding" not in response.headers:  # Scrapy has unpacked it
            visit.is_partial |= is_cut_off(lease.packed, len(response.body))
        lease.packed = b""
        if not visit.is_cached:
            visit.size = lease.size
        elif lease.status == NOT_MODIFIED:
            visit.status = NOT_MODIFIED
        if request.url != lease.asked_url:
            visit.found = request.url
        if not self.conditional.is_on or visit.found:
            visit.validators = NO_VALIDATORS  # after a redirect they are those of another address
        # What the spider's own meta had of an earlier redirect is no news.
        stored = lease.frontier_request.meta.get(b"scrapy_meta") or {}
        visit.hops = request.meta.get("redirect_reasons", [])[len(stored.get("redirect_reasons", ())) :]
        if self._scheduler.settings.canonical_links and not visit.found and not request.meta.get(ANNOUNCES):
            fingerprint = self.crawler.request_fingerprinter.fingerprint
            visit.canonical = other_page(response, lambda named: fingerprint(Request(named)) == fingerprint(Request(request.url)))
        return visit

    def _not_modified(self, lease: Lease, request: Any) -> Any:
        """Take a 304 to our question; it reaches the spider only as the last response that is known, and where it wants every fetch."""
        assert self._scheduler is not None  # process_response looked
        if self._scheduler.settings.callback_on == "fetch":
            known = self.conditional.last_known(request, lambda known: self._is_last_judged(lease, known))
            if known is not None:
                lease.response = known
                return known
        self.crawler.stats.inc_value("optimal_frontier/callbacks_spared")
        request.errback = _unchanged
        raise IgnoreRequest("not modified")

    def _is_last_judged(self, lease: Lease, response: Any) -> bool:
        """Tell whether a response has the content that was last judged."""
        assert self._scheduler is not None  # process_response looked
        handout = lease.handout
        visit = visit_of(response, handout.record["url"], self.fingerprinting, 0.0, 0.0, known=handout.row.content)
        return is_last_content(handout, visit, self._scheduler.context(handout))

    def process_exception(self, request: Any, exception: Exception, spider: Any = None) -> None:
        """Note why the request failed; its lease ends when the engine is done with it."""
        lease: Lease | None = request.meta.get(LEASE)
        local: Local | None = request.meta.get(LOCAL)
        if local is not None and local.request is request:
            local.answer(error_of_exception(exception))
        if lease is not None and lease.request is request:  # or a spider's own download with a copy of the page's meta
            if self.scheduler is not None:
                self.conditional.forget(lease, request)
            lease.error = error_of_exception(exception)
            if request.meta.get("redirect_urls"):
                lease.frontier_request.meta[FAILED_AT] = request.url

    def opened(self) -> None:
        """Look at what the engine gets, also where a middleware nearer to the site keeps it from this one."""
        look_after_fetches(self.crawler.engine.downloader, self.fetched)

    def fetched(self, request: Any, result: Any) -> None:
        """Take note of what a middleware asks for instead of a request, and of what one raises at a response."""
        lease: Lease | None = request.meta.get(LEASE)
        local: Local | None = request.meta.get(LOCAL)
        companion = lease if local is None else local
        if companion is not None and companion.request is request:
            is_raised = isinstance(result, Failure) and companion.response is not None and request.errback is not _unchanged
            if is_raised or isinstance(result, Request):
                companion.forget_answer()  # a middleware nearer to the engine keeps from it what was judged
        if isinstance(result, Failure):
            is_known = lease.is_judged if lease is not None else local is not None and local.is_answered
            # Scrapy's redirects raise the same when they give up.
            is_redirected = error_of_dropped(request.meta, self.crawler.settings.getint("REDIRECT_MAX_TIMES")) == REDIRECTS
            if isinstance(result.value, Exception) and not is_known and not is_redirected:
                self.process_exception(request, result.value)
        elif self.scheduler is not None and isinstance(result, Request):
            self.scheduler.incoming.note_instead(request, result)
            is_copy = result.meta.get(LEASE) is lease
            if lease is not None and lease.request is request and is_copy:
                lease.next_copy = result

    def callback_failed(self, failure: Any, response: Any) -> None:
        """Have a page fetched again whose callback raised, or a middleware on what it yielded: its items may be lost."""
        self._failed_after(response, CALLBACK, failure)

    def item_failed(self, failure: Any, response: Any) -> None:
        """Have a page fetched again of which an item pipeline raised (other than `DropItem`)."""
        self._failed_after(response, ITEM, failure)

    def _failed_after(self, response: Any, cause: str, failure: Any) -> None:
        meta = response.request.meta if getattr(response, "request", None) is not None else {}
        local: Local | None = meta.get(LOCAL)
        lease: Lease | None = meta.get(LEASE) if local is None else local.parent
        if local is not None:
            local.answer(CALLBACK_FAILED)
            if lease is not None and self._scheduler is not None:
                # The page that it was found on is owed another visit, and that has to yield it again.
                self._scheduler.local.forget(local)
        if lease is not None and lease.observation is not None:
            lease.observation = after_callback_error(lease.observation, cause, described(failure.value))


def _unchanged(response: Any, **_: Any) -> None:
    """Take the callback's place where CALLBACK_ON is "change" and nothing changed, and the errback's where a 304 has nothing to show."""
