"""Pages that tell browsers to load them again (``<meta http-equiv="refresh" content="30; url=...">`` with their own URL) are read.

Scrapy takes that for a redirect. Its dupefilter drops the second request, and with it the page. A frontier has none in between, so that a
visit was as many fetches as REDIRECT_MAX_TIMES allows, and failed.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware

#: What Scrapy notes of such a redirect.
_REASON = "meta refresh"


class PatientMetaRefreshMiddleware(MetaRefreshMiddleware):
    """Scrapy's own, in whose place the add-on puts it."""

    _fingerprint: Any

    @classmethod
    def from_crawler(cls, crawler: Any) -> PatientMetaRefreshMiddleware:
        """Make it, with the identity of pages."""
        made: PatientMetaRefreshMiddleware = super().from_crawler(crawler)
        made._fingerprint = crawler.request_fingerprinter.fingerprint
        return made

    # The spider argument is needed up to Scrapy 2.13.
    def process_response(self, request: Any, response: Any, spider: Any = None) -> Any:
        """Follow a refresh that leads to the page itself only where it sets a cookie, and once: the page may be there for that alone."""
        result = super().process_response(request, response, *([] if spider is None else [spider]))
        if not isinstance(result, Request) or self._fingerprint(result) != self._fingerprint(request):
            return result
        is_to_set_it = "Set-Cookie" in response.headers and _REASON not in request.meta.get("redirect_reasons", ())
        return result if is_to_set_it else response
