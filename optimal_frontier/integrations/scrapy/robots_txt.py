"""Obeys robots.txt as it is now, in a crawl that does not end, and for requests that wait while it is fetched.

Scrapy reads it once in the life of a process, or takes all pages for allowed for as long if it cannot be read. Scrapy since 2.14 (2.19 is
the last one that was looked at) also tells only the first request that waits for it what it says, and all others that there is none, so
that they are sent whatever it says. A crawl without a frontier has few of them; one that begins with what Redis holds has many.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

#: Seconds for which a host's robots.txt is known, the most that RFC 9309 allows, and until it is tried again where it could not be read.
KNOWN_S: Final = 86_400.0
AGAIN_S: Final = 3600.0
#: Statuses of answers that are none, by RFC 9309: this one, and all from here on.
TOO_MANY: Final = 429
SERVER_ERRORS: Final = 500


class PatientRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's own, in whose place the add-on puts it."""

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._said: dict[str, Any] = {}
        self._until: dict[str, float] = {}

    # The spider argument is needed up to Scrapy 2.13.
    def process_request(self, request: Any, spider: Any = None) -> Any:
        """Have robots.txt of the request's host read, unless it is known."""
        netloc = urlparse_cached(request).netloc
        if time.monotonic() >= self._until.get(netloc, math.inf):
            del self._until[netloc]
            said = self._parsers.pop(netloc, None)
            if said is not None:
                self._said[netloc] = said
        return super().process_request(request) if spider is None else super().process_request(request, spider)

    def process_request_2(self, rp: Any, request: Any, *spider: Any) -> None:
        """Refuse the request if robots.txt does, or did when it could last be read."""
        netloc = urlparse_cached(request).netloc
        if rp is None:
            known = self._parsers.get(netloc)
            rp = None if isinstance(known, Deferred) else known
        self._until.setdefault(netloc, time.monotonic() + (AGAIN_S if rp is None else KNOWN_S))
        super().process_request_2(self._said.get(netloc) if rp is None else rp, request, *spider)

    def _parse_robots(self, response: Any, *more: Any) -> Any:
        # Scrapy takes what a server says that is out of order for a robots.txt that allows everything.
        if response.status == TOO_MANY or response.status >= SERVER_ERRORS:
            for name in ("response_count", f"response_status_count/{response.status}"):
                self.crawler.stats.inc_value(f"robotstxt/{name}")
            raise IgnoreRequest(f"robots.txt could not be read: {response.status}")
        return super()._parse_robots(response, *more)
