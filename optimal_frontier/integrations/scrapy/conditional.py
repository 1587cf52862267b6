"""Conditional requests in Scrapy: headers that are there for one fetch only, and what HTTP's cache knows of a page that answers 304."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from optimal_frontier.frontier.validators import NO_VALIDATORS, Validators, after_full_answer, after_not_modified, conditions_of
from optimal_frontier.integrations.scrapy.compatibility import dummy_cache, http_cache
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import Observation

logger = logging.getLogger(__name__)

#: Headers with which a request states conditions or asks for a part; who sets one of them is left alone.
_CONDITIONS: Final = (b"If-None-Match", b"If-Modified-Since", b"If-Match", b"If-Unmodified-Since", b"If-Range", b"Range")
#: Statuses of full answers whose validators are kept: those of a part, or of none, are not of what was judged.
_FULL: Final = frozenset({200, 203})


class ConditionalRequests:
    """Asks whether pages have changed, and knows which answers are to that.

    Where Scrapy's HttpCacheMiddleware validates what it holds (RFC2616Policy), that is left to it.

    Parameters
    ----------
    crawler : Crawler
        With its engine.
    settings : FrontierSettings
        CONDITIONAL_GET.
    """

    def __init__(self, crawler: Any, settings: FrontierSettings) -> None:
        self._spider = crawler.spider
        self._cache = dummy_cache(crawler)
        self.is_on = settings.conditional_get and (self._cache is not None or http_cache(crawler) is None)

    def ask(self, lease: Lease, request: Any, tag: int) -> None:
        """Put conditions on a leased request, or take them from a copy that goes elsewhere; a retried copy keeps them.

        ``tag`` is that of the fingerprint settings.
        """
        if not lease.asked_url:
            lease.asked_url = request.url
            if self.is_on and not any(name in request.headers for name in _CONDITIONS):
                lease.asked = conditions_of(lease.handout, tag)
                for name, value in zip(_CONDITIONS, lease.asked or (), strict=False):
                    if value:
                        request.headers[name] = value
        elif request.url != lease.asked_url:
            self.forget(lease, request)

    @staticmethod
    def forget(lease: Lease, request: Any) -> Validators | None:
        """Take our conditions off a request, and return them; None if it had none. No spider sees them, nor passes them on."""
        if lease.asked is None:
            return None
        found = [request.headers.pop(name, None) for name, value in zip(_CONDITIONS, lease.asked, strict=False) if value]
        return lease.asked if any(found) else None

    def full_answer(self, observation: Observation, lease: Lease, request: Any, response: Any, sent: Validators | None) -> Observation:
        """Return the observation with what a good response to ``request`` leaves for the next fetch."""
        if "cached" in response.flags:
            if lease.status == 304:
                return _counted(observation, len(response.body))
            return observation
        found = NO_VALIDATORS
        # After a redirect they are those of another address.
        if self.is_on and response.status in _FULL and request.url == lease.asked_url:
            found = Validators.of(response.headers.get(b"ETag"), response.headers.get(b"Last-Modified"))
        if any(found):
            self._keep(request, response, lease)
        return after_full_answer(observation, lease.handout, sent, found, lease.size)

    @staticmethod
    def not_modified(observation: Observation, lease: Lease, response: Any, sent: Validators) -> Observation:
        """Return the observation with what a 304 leaves for the next fetch."""
        found = Validators.of(response.headers.get(b"ETag"), response.headers.get(b"Last-Modified"))
        return after_not_modified(observation, lease.handout, sent, found)

    def last_known(self, request: Any, is_last_judged: Callable[[Any], bool]) -> Any:
        """Return the last response from Scrapy's HTTP cache, or None if that has none, or another one than was last judged."""
        if self._cache is None:
            return None
        try:
            response = self._cache.storage.retrieve_response(self._spider, request)
        except Exception:  # of a storage of the user's, or a file that was cut short
            logger.warning("Could not read the cache entry of %s", request.url, exc_info=True)
            return None
        if response is None or not is_last_judged(response):
            return None
        response.flags.append("cached")
        return response

    def _keep(self, request: Any, response: Any, lease: Lease) -> None:
        """Store what revisits, which pass the cache by, bring: decoded, as the spider gets it."""
        if self._cache is None or (request.meta.get("dont_cache") and "dont_cache" not in lease.added):
            return
        try:
            if self._cache.policy.should_cache_request(request) and self._cache.policy.should_cache_response(response, request):
                self._cache.storage.store_response(self._spider, request, response)
        except Exception:  # of a storage of the user's, or a disk that is full: the page is here all the same
            logger.warning("Could not write the cache entry of %s", request.url, exc_info=True)


def _counted(observation: Observation, size: int) -> Observation:
    return replace(observation, counters={**observation.counters, "not_modified": 1, "bytes_saved": size})
