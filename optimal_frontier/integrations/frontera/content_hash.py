"""Frontera middleware that fingerprints what was fetched, for use without Scrapy's middlewares."""

from __future__ import annotations

from typing import Any, Final

from frontera.core.components import Middleware

from optimal_frontier.detection import fingerprint
from optimal_frontier.integrations.frontera.configuration import settings_of

#: Where the fingerprint (16 bytes) stands in the meta of a Frontera request.
CONTENT_HASH: Final = b"content_hash"


class ContentHashMiddleware(Middleware):  # type: ignore[misc]  # frontera is untyped
    """Puts the fingerprint of every successful response into ``response.meta[b"content_hash"]``, by the setting FINGERPRINT.

    A fingerprint that is there already stays.
    """

    component_name = "Content Hash Middleware"

    def __init__(self, kind: str = "text") -> None:
        self.kind = kind

    @classmethod
    def from_manager(cls, manager: Any) -> ContentHashMiddleware:
        return cls(settings_of(manager.settings).fingerprint)

    def add_seeds(self, seeds: Any) -> Any:
        return seeds

    def page_crawled(self, response: Any) -> Any:
        if CONTENT_HASH not in response.meta and 200 <= int(response.status_code) < 300:
            response.meta[CONTENT_HASH] = fingerprint(response, kind=self.kind)
        return response

    def links_extracted(self, request: Any, links: Any) -> Any:
        return request

    def request_error(self, page: Any, error: Any) -> Any:
        return page
