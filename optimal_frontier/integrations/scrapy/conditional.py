"""Conditional requests in Scrapy: headers that are there for one fetch only, and what HTTP's cache knows of a page that answers 304."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.judging.validators import Validators
from optimal_frontier.integrations.frontera.requests import CONDITIONS
from optimal_frontier.integrations.scrapy.compatibility import dummy_cache, http_cache
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.settings import FrontierSettings

logger = logging.getLogger(__name__)


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

    def ask(self, lease: Lease, request: Any, conditions: Callable[[], Validators | None]) -> None:
        """Put conditions on a leased request, or take them from a copy that goes elsewhere; a retried copy keeps them.

        ``conditions`` tells which, for the first copy.
        """
        if not lease.asked_url:
            lease.asked_url = request.url
            asked = conditions() if self.is_on else None
            if asked is not None and not any(name in request.headers for name in CONDITIONS):
                lease.asked = asked
                for name, value in zip(CONDITIONS, asked, strict=False):
                    if value:
                        request.headers[name] = value
        elif request.url != lease.asked_url:
            self.forget(lease, request)

    @staticmethod
    def forget(lease: Lease, request: Any) -> Validators | None:
        """Take our conditions off a request, and return them; None if it had none. No spider sees them, nor passes them on."""
        if lease.asked is None:
            return None
        found = [request.headers.pop(name, None) for name, value in zip(CONDITIONS, lease.asked, strict=False) if value]
        return lease.asked if any(found) else None

    def last_known(self, request: Any, is_last_judged: Callable[[Any], bool]) -> Any:
        """Return the last response from Scrapy's HTTP cache, or None if that has none, or another one than was last judged."""
        if self._cache is None:
            return None
        try:
            response = self._cache.storage.retrieve_response(self._spider, request)
        except Exception:  # of a storage of the user's, or a file that was cut short
            logger.warning("Could not read the cache entry of %s", shown(request.url), exc_info=True)
            return None
        if response is None or not is_last_judged(response):
            return None
        response.flags.append("cached")
        return response

    def keep(self, request: Any, response: Any, lease: Lease) -> None:
        """Store what revisits, which pass the cache by, bring: decoded, as the spider gets it."""
        if self._cache is None or (request.meta.get("dont_cache") and "dont_cache" not in lease.added):
            return
        try:
            if self._cache.policy.should_cache_request(request) and self._cache.policy.should_cache_response(response, request):
                self._cache.storage.store_response(self._spider, request, response)
        except Exception:  # of a storage of the user's, or a disk that is full: the page is here all the same
            logger.warning("Could not write the cache entry of %s", shown(request.url), exc_info=True)
