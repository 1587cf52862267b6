"""Obeys robots.txt for requests that wait while it is fetched, too.

Scrapy since 2.14 (2.19 is the last one that was looked at) tells the first of them what robots.txt says, and all others that there is none,
so that they are sent whatever it says. A crawl without a frontier has few of them; one that begins with what Redis holds has many.
"""

from __future__ import annotations

import inspect
from typing import Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

#: Older ones tell everybody.
IS_NEEDED = inspect.iscoroutinefunction(RobotsTxtMiddleware.robot_parser)


class PatientRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's own, in whose place the add-on puts it."""

    async def robot_parser(self, request: Any) -> Any:
        """Return what robots.txt of the request's host says; None where there is none."""
        parser = await super().robot_parser(request)
        if parser is None:
            known = self._parsers.get(urlparse_cached(request).netloc)
            parser = None if isinstance(known, Deferred) else known
        return parser
