"""Downloader middleware: fingerprints what came, judges whether it changed, and tells the callback."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from typing import Any, Final

from scrapy import signals
from scrapy.exceptions import IgnoreRequest, NotConfigured

from optimal_frontier.detection import fingerprint, modified_age, settings_tag
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.judgement import judge_visit, prior_of
from optimal_frontier.frontier.pacing import hold_s
from optimal_frontier.frontier.validators import Validators
from optimal_frontier.integrations.scrapy.conditional import ConditionalRequests
from optimal_frontier.integrations.scrapy.lease import LEASE, META, Lease
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.records import Observation, Published

logger = logging.getLogger(__name__)

#: What callbacks read of requests that are no pages.
_NOTHING_KNOWN: Final = {"changed": None, "change_rate": None, "interval": None, "visits": 1}


class ChangeDetectionMiddleware:
    """Sees each response as the engine will, and every way in which a request ends on its way there.

    The observation is only counted when the callback's output has been taken (see `OptimalScheduler`).
    """

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self._scheduler: OptimalScheduler | None = None
        self._conditional: ConditionalRequests | None = None
        self._tag = 0

    @classmethod
    def from_crawler(cls, crawler: Any) -> ChangeDetectionMiddleware:
        if not OptimalScheduler.is_set(crawler):
            raise NotConfigured("ChangeDetectionMiddleware needs optimal_frontier's scheduler")
        middleware = cls(crawler)
        crawler.signals.connect(middleware.reached_downloader, signals.request_reached_downloader)
        crawler.signals.connect(middleware.response_downloaded, signals.response_downloaded)
        return middleware

    @property
    def scheduler(self) -> OptimalScheduler | None:
        """Ours, once it is open."""
        if self._scheduler is None:
            self._scheduler = OptimalScheduler.of(self.crawler)
            if self._scheduler is not None:
                self._tag = settings_tag(self._scheduler.settings.fingerprint)
        return self._scheduler

    @property
    def conditional(self) -> ConditionalRequests:
        """What asks whether pages have changed; the scheduler is open."""
        if self._conditional is None:
            assert self._scheduler is not None  # the callers looked
            self._conditional = ConditionalRequests(self.crawler, self._scheduler.settings)
        return self._conditional

    def process_request(self, request: Any, spider: Any = None) -> None:
        """Ask whether a page has changed, where that can be asked."""
        lease: Lease | None = request.meta.get(LEASE)
        if self.scheduler is not None and lease is not None and lease.request is request:
            self.conditional.ask(lease, request, self._tag)

    def reached_downloader(self, request: Any) -> None:
        """Pay for fetches that were not dispatched: redirects, retries, robots.txt, bypasses."""
        lease = request.meta.get(LEASE)
        if lease is not None and lease.request is request and not lease.reached:
            lease.reached = True
        elif self.scheduler is not None:
            self.scheduler.pay(request)

    def response_downloaded(self, request: Any, response: Any) -> None:
        """Take the time of the response, and of the start of its download; leave a host alone that asks for it."""
        hold = hold_s(response.status, response.headers.get("Retry-After"))
        if hold is not None and self.scheduler is not None:
            self.scheduler.hold(request.url, hold)
        lease: Lease | None = request.meta.get(LEASE)
        if lease is None or lease.request is not request:
            return
        first = lease.responded == 0.0
        lease.responded = time.monotonic()
        lease.status, lease.size = response.status, len(response.body)
        if first and lease.handout.lateness is not None:
            started = lease.responded - float(request.meta.get("download_latency", 0.0))
            lease.lateness = lease.handout.lateness + max(0.0, started - lease.handout.received)

    # The spider argument is needed up to Scrapy 2.13.
    def process_response(self, request: Any, response: Any, spider: Any = None) -> Any:
        """Judge the response that the engine gets."""
        lease: Lease | None = request.meta.get(LEASE)
        if self.scheduler is None:
            return response
        if lease is None:
            request.meta[META] = dict(_NOTHING_KNOWN)
            return response
        if lease.request is not request:  # a spider's own download with a copy of the page's meta
            return response
        lease.response = response
        sent = self.conditional.forget(lease, request)
        if response.status == 304 and sent is not None:
            return self._not_modified(lease, request, response, sent)
        is_good = 200 <= response.status < 300
        lease.error = "" if is_good else str(response.status)
        published = self.scheduler.published
        if is_good and lease.handout.kind == ACTIVE:
            lease.observation = self.conditional.full_answer(self._judged(lease, response, published), lease, request, response, sent)
            self._count_not_modified(lease.observation)
        request.meta[META] = _told(lease, published)
        if lease.observation is not None and lease.observation.bit == 0 and self.scheduler.settings.callback_on == "change":
            request.callback = _unchanged
            self.crawler.stats.inc_value("optimal_frontier/callbacks_spared")
        return response

    def _judged(self, lease: Lease, response: Any, published: Published) -> Observation:
        assert self._scheduler is not None  # process_response looked
        settings, handout, now = self._scheduler.settings, lease.handout, time.monotonic()
        # What a cache answers has the headers of an earlier visit, also where it asked whether they still hold.
        is_cached = "cached" in response.flags
        observation = judge_visit(
            handout,
            fingerprint(response, kind=settings.fingerprint),
            self._tag,
            lease.responded or now,
            published,
            objective=settings.objective,
            policy=settings.policy,
            lateness=lease.lateness,
            age=None if is_cached else modified_age(response.headers, time.time()),
            half_life=settings.half_life,
        )
        if lease.responded or not is_cached:
            return observation
        # It never passed the downloader and shows nothing new: no bit now, nor from the content, and last seen when it was before.
        seen = handout.received - handout.elapsed if handout.visits else now
        return replace(observation, responded=seen, bit=-1, shape=handout.shape, time=handout.time, content=b"", words="", watch=None)

    def _not_modified(self, lease: Lease, request: Any, response: Any, sent: Validators) -> Any:
        """Judge a 304 to our question; it reaches the spider only as the last response that is known, and where it wants every fetch."""
        assert self._scheduler is not None  # process_response looked
        settings, handout, published = self._scheduler.settings, lease.handout, self._scheduler.published
        observation = judge_visit(
            handout,
            handout.content,
            self._tag,
            lease.responded,
            published,
            objective=settings.objective,
            policy=settings.policy,
            lateness=lease.lateness,
            age=modified_age(response.headers, time.time()),
            half_life=settings.half_life,
        )
        lease.observation = self.conditional.not_modified(observation, lease, response, sent)
        self._count_not_modified(lease.observation)
        request.meta[META] = _told(lease, published)
        if settings.callback_on == "fetch":
            known = self.conditional.last_known(request, lease, partial(fingerprint, kind=settings.fingerprint))
            if known is not None:
                lease.response = known
                return known
        self.crawler.stats.inc_value("optimal_frontier/callbacks_spared")
        request.errback = _unchanged
        raise IgnoreRequest("not modified")

    def _count_not_modified(self, observation: Observation) -> None:
        for name in ("not_modified", "bytes_saved"):
            if name in observation.counters:
                self.crawler.stats.inc_value(f"optimal_frontier/{name}", observation.counters[name])

    def process_exception(self, request: Any, exception: Exception, spider: Any = None) -> None:
        """Note why the request failed; its lease ends when the engine is done with it."""
        lease: Lease | None = request.meta.get(LEASE)
        if lease is not None:
            if self.scheduler is not None:
                self.conditional.forget(lease, request)
            lease.error = "IgnoreRequest" if isinstance(exception, IgnoreRequest) else type(exception).__name__


def _told(lease: Lease, published: Published) -> dict[str, Any]:
    """What the callback reads; after a failed visit, what was known before it."""
    observation, handout = lease.observation, lease.handout
    if handout.kind != ACTIVE:
        return dict(_NOTHING_KNOWN)
    known = observation if observation is not None else handout
    estimate = (known.shape, known.time) if known.shape > 0 else prior_of(handout, published)
    rate = handout.rate if handout.planned else known.rate
    return {
        "changed": None if observation is None or observation.bit < 0 else bool(observation.bit),
        "change_rate": RatePosterior(*estimate).median if estimate is not None else None,
        "interval": 1 / rate if rate > 0 else None,
        "visits": handout.visits + (observation is not None),
    }


def _unchanged(response: Any, **_: Any) -> None:
    """Take the callback's place where CALLBACK_ON is "change" and the page has not changed, the errback's where a 304 reaches no callback."""
