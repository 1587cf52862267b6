"""Frontera middleware that fingerprints what was fetched, for use without Scrapy's middlewares."""

from __future__ import annotations

from typing import Any, Final

from frontera.core.components import Middleware

from optimal_frontier.frontier.judging.fingerprinting import Fingerprinting
from optimal_frontier.integrations.frontera.configuration import settings_of
from optimal_frontier.integrations.frontera.requests import TAKEN, scrapy_response
from optimal_frontier.settings import FrontierSettings

#: Where the fingerprint (16 bytes) stands in the meta of a Frontera request; empty where the user's callable failed.
CONTENT_HASH: Final = b"content_hash"


class ContentHashMiddleware(Middleware):  # type: ignore[misc]  # frontera is untyped
    """Puts the fingerprint of every successful response into ``response.meta[b"content_hash"]``, as FINGERPRINT, its options and RULES say.

    A fingerprint that is there already stays.
    """

    component_name = "Content Hash Middleware"

    def __init__(self, settings: FrontierSettings) -> None:
        self.fingerprinting = Fingerprinting(settings)

    @classmethod
    def from_manager(cls, manager: Any) -> ContentHashMiddleware:
        return cls(settings_of(manager.settings))

    def add_seeds(self, seeds: Any) -> Any:
        return seeds

    def page_crawled(self, response: Any) -> Any:
        if CONTENT_HASH not in response.meta and 200 <= int(response.status_code) < 300:
            # RULES go by the URL of the page, whatever its fetch was redirected to.
            response.meta[TAKEN] = taken = self.fingerprinting.take(scrapy_response(response), response.request.url)
            response.meta[CONTENT_HASH] = taken.digest or b""
        return response

    def links_extracted(self, request: Any, links: Any) -> Any:
        return request

    def request_error(self, page: Any, error: Any) -> Any:
        return page
