"""Plain Frontera in tests: its manager with our backend, and a look at what that leaves in Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from crawls import State
from frontera.core.manager import FrontierManager
from frontera.core.models import Response
from scrapy import Request as ScrapyRequest

from optimal_frontier.integrations.frontera.url_identity import UrlIdentity

#: Starts a manager: start(NAME=value ...), with Frontera's settings and ours by their full names.
Start = Callable[..., FrontierManager]

BACKEND = "optimal_frontier.integrations.frontera.OptimalBackend"
FINGERPRINTS = "frontera.contrib.middlewares.fingerprint.UrlFingerprintMiddleware"
CONTENT_HASHES = "optimal_frontier.integrations.frontera.ContentHashMiddleware"


class PlainState(State):
    """What a namespace holds, by URL, where pages are known by a function of Frontera's."""

    function = "frontera.utils.fingerprint.sha1"

    def identity(self, request: str | ScrapyRequest) -> bytes:
        return UrlIdentity(self.function).of_url(request if isinstance(request, str) else request.url)


def urls(requests: Iterable[Any]) -> set[str]:
    """URLs of requests."""
    return {request.url for request in requests}


def page(text: str) -> bytes:
    """An HTML page with a text."""
    return f"<html><body>{text}</body></html>".encode()


def crawled(manager: FrontierManager, request: Any, body: bytes, status: int = 200, **headers: str) -> None:
    """Give a response to a request back."""
    given = {b"Content-Type": [b"text/html"]} | {name.replace("_", "-").encode(): [value.encode()] for name, value in headers.items()}
    manager.page_crawled(Response(request.url, status_code=status, headers=given, body=body, request=request))


def next_requests(manager: FrontierManager, wanted: int = 1, **keywords: Any) -> list[Any]:
    """Ask until something is due."""
    for _ in range(200):
        requests: list[Any] = manager.get_next_requests(wanted, **keywords)
        if requests:
            return requests
    raise AssertionError("nothing fell due")
