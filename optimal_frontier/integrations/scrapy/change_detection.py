"""Downloader middleware: fingerprints what came, judges whether it changed, and tells the callback."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any, Final

from scrapy import signals
from scrapy.exceptions import IgnoreRequest, NotConfigured

from optimal_frontier.detection import modified_age, sections
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.fingerprinting import Fingerprint, Fingerprinting
from optimal_frontier.frontier.judgement import change_bit, judge_visit, prior_of
from optimal_frontier.frontier.noisy_pages import Noticed, notice
from optimal_frontier.frontier.pacing import hold_s
from optimal_frontier.frontier.validators import Validators
from optimal_frontier.integrations.scrapy.canonical_links import follow_canonical
from optimal_frontier.integrations.scrapy.conditional import ConditionalRequests
from optimal_frontier.integrations.scrapy.endings import Verdicts, error_of_exception, error_of_response
from optimal_frontier.integrations.scrapy.lease import LEASE, META, Lease
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.integrations.scrapy.sources import ANNOUNCES
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
        self._verdicts: Verdicts | None = None
        self._fingerprinting: Fingerprinting | None = None

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

    @property
    def verdicts(self) -> Verdicts:
        """What tells good responses from those that only look it; the scheduler is open."""
        if self._verdicts is None:
            assert self._scheduler is not None  # the callers looked
            self._verdicts = self._scheduler.verdicts()
        return self._verdicts

    def process_request(self, request: Any, spider: Any = None) -> None:
        """Ask whether a page has changed, where that can be asked."""
        lease: Lease | None = request.meta.get(LEASE)
        if self.scheduler is None or lease is None or lease.request is not request:
            return
        handout = lease.handout
        # Of a block page nobody wants to know whether it is still the same; what comes in its place leaves validators.
        tag = self.fingerprinting.way(handout.record["url"]).recipe.tag if self.verdicts.has_own_content(handout) else 0
        self.conditional.ask(lease, request, tag)

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
        lease.error = error_of_response(response)
        is_good = not lease.error
        published = self.scheduler.published
        if is_good:
            lease.source = self.scheduler.sources.read(lease, request, response)
        if is_good and lease.handout.kind == ACTIVE:
            lease.observation = self._judged(lease, request, response, sent)
        if lease.observation is not None:
            lease.moved = self.verdicts.moved(lease, request)
            if self.scheduler.settings.canonical_links:
                follow_canonical(lease, response, self.crawler.request_fingerprinter.fingerprint, self.scheduler.settings.url_limits)
            self._count_not_modified(lease.observation)
        request.meta[META] = _told(lease, published)
        if is_good and request.meta.get(ANNOUNCES):
            self.scheduler.sources.take_over(request, lease)
        is_no_news = lease.observation is not None and lease.observation.bit == 0
        if (is_no_news or (is_good and lease.error)) and self.scheduler.settings.callback_on == "change":
            request.callback = _unchanged
            self.crawler.stats.inc_value("optimal_frontier/callbacks_spared")
        return response

    def _judged(self, lease: Lease, request: Any, response: Any, sent: Validators | None) -> Observation | None:
        handout, now = lease.handout, time.monotonic()
        # What a cache answers has the headers of an earlier visit, also where it asked whether they still hold.
        is_cached = "cached" in response.flags
        age = None if is_cached else modified_age(response.headers, time.time())
        content = self._fingerprint(lease, response)
        is_changed = change_bit(handout, content.digest, content.tag, content.distance) == 1
        lease.error = self.verdicts.error_of(lease, response, content, is_changed=is_changed)
        if lease.error:
            return None
        noticed = self._noticed(lease, response, content) if lease.responded or not is_cached else None
        observation = self._judged_by(lease, content, lease.responded or now, age, noticed)
        if content.counters:
            observation = replace(observation, counters={**observation.counters, **content.counters})
        if content.digest is not None:  # validators are kept of what a fingerprint is stored of
            observation = self.conditional.full_answer(observation, lease, request, response, sent)
        if lease.responded or not is_cached:
            return observation
        # It never passed the downloader and shows nothing new: no bit now, nor from the content, and last seen when it was before.
        seen = handout.received - handout.elapsed if handout.visits else now
        return replace(observation, responded=seen, bit=-1, shape=handout.shape, time=handout.time, content=b"", words="", watch=None)

    def _noticed(self, lease: Lease, response: Any, content: Fingerprint) -> Noticed | None:
        """Tell what changes on every fetch from what changes; None where content is not judged by its fingerprint."""
        handout = lease.handout
        if lease.source is not None or not self.verdicts.has_own_content(handout):
            return None
        bit = change_bit(handout, content.digest, content.tag, content.distance)
        interval = handout.elapsed + ((lease.responded or time.monotonic()) - handout.received)
        assert self._scheduler is not None  # process_response looked
        round_s = self._scheduler.published.prior_time
        return notice(handout, bit, interval, lambda: sections(response, self.fingerprinting.way(handout.record["url"]).recipe), round_s)

    def _judged_by(
        self, lease: Lease, content: Fingerprint, responded: float, age: float | None, noticed: Noticed | None = None
    ) -> Observation:
        assert self._scheduler is not None  # process_response looked
        settings, published = self._scheduler.settings, self._scheduler.published
        handout = lease.handout
        # A page that comes back from behind a block page shows no change.
        known = handout if self.verdicts.has_own_content(handout) else replace(handout, content_tag=0)
        observation = judge_visit(
            known if noticed is None else noticed.shown(known, content.digest),
            content.digest,
            content.tag,
            responded,
            published,
            objective=settings.objective,
            policy=settings.policy,
            lateness=lease.lateness,
            age=age,
            half_life=settings.half_life,
            distance=content.distance,
        )
        return observation if noticed is None else noticed.applied(handout, observation)

    def _fingerprint(self, lease: Lease, response: Any) -> Fingerprint:
        """Fingerprint a response as its page's options ask for; counted."""
        url = lease.handout.record["url"]
        if lease.source is not None:
            return Fingerprint(lease.source.fingerprint, self.fingerprinting.way(url).recipe.tag, 0, {})
        found = self.fingerprinting.take(response, url)
        for name, by in found.counters.items():
            self.crawler.stats.inc_value(f"optimal_frontier/{name}", by)
        return found

    def _is_last_judged(self, lease: Lease, response: Any) -> bool:
        """Tell whether a response has the content that was last judged."""
        digest, tag, distance, _ = self._fingerprint(lease, response)
        return change_bit(lease.handout, digest, tag, distance) == 0

    def _not_modified(self, lease: Lease, request: Any, response: Any, sent: Validators) -> Any:
        """Judge a 304 to our question; it reaches the spider only as the last response that is known, and where it wants every fetch."""
        assert self._scheduler is not None  # process_response looked
        same = Fingerprint(lease.handout.content, lease.handout.content_tag, 0, {})  # only asked under the same tag
        observation = self._judged_by(lease, same, lease.responded, modified_age(response.headers, time.time()))
        lease.observation = self.conditional.not_modified(observation, lease, response, sent)
        self._count_not_modified(lease.observation)
        request.meta[META] = _told(lease, self._scheduler.published)
        if self._scheduler.settings.callback_on == "fetch":
            known = self.conditional.last_known(request, lambda known: self._is_last_judged(lease, known))
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
            lease.error = error_of_exception(exception)


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
    """Take the callback's place where CALLBACK_ON is "change" and nothing changed, and the errback's where a 304 has nothing to show."""
