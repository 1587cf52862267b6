"""The identity of requests: a fingerprinter that folds URLs, opt-in, and what a namespace notes of the one that its pages came by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.utils.request import RequestFingerprinter, fingerprint

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.admitting.claimed_identity import SCRAPYS
from optimal_frontier.frontier.admitting.url_folding import UrlFolding
from optimal_frontier.integrations.scrapy.request_classes import name_of
from optimal_frontier.settings import PREFIX
from optimal_frontier.settings.urls import IGNORED, parse_folds, parse_names

_IGNORED: Final = PREFIX + "IGNORED_PARAMETERS"
_FOLDS: Final = PREFIX + "FOLD_URLS"


class CanonicalFingerprinter:
    """Scrapy's fingerprint of the URL without what does not count for the identity of a page.

    ``REQUEST_FINGERPRINTER_CLASS = "optimal_frontier.integrations.scrapy.CanonicalFingerprinter"``; what does not count say the settings
    IGNORED_PARAMETERS and FOLD_URLS. Requests are fetched as they are: it is only asked whether two are one. As Scrapy uses one
    fingerprinter for everything, its HTTP cache holds one response for all URLs of a page.

    Parameters
    ----------
    folding : UrlFolding
        What does not count.

    Examples
    --------
    >>> fingerprinter = CanonicalFingerprinter(UrlFolding(("utm_*",)))
    >>> one, other = Request("http://a.example/?utm_source=x"), Request("http://a.example/")
    >>> fingerprinter.fingerprint(one) == fingerprinter.fingerprint(other) == fingerprint(other)
    True
    """

    def __init__(self, folding: UrlFolding) -> None:
        self.folding = folding
        self._known: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Any) -> CanonicalFingerprinter:
        return cls(folding_of(crawler.settings))

    def fingerprint(self, request: Request) -> bytes:
        """Return the identity of a request, 20 bytes."""
        known = self._known.get(request)
        if known is None:
            known = self._known[request] = fingerprint(self._folded(request))
        return known

    def _folded(self, request: Request) -> Request:
        if request.meta.get("verbatim_url"):
            return request
        try:
            url = self.folding.apply(request.url)
            return request if url == request.url else Request(url, method=request.method, body=request.body)
        except ValueError:
            return request  # Scrapy takes URLs that are none: each of them is a page of its own, and its download fails


def folding_of(settings: Mapping[str, Any] | Any) -> UrlFolding:
    """Return what ``settings`` (anything with ``get``) say does not count; nothing counts out where they are unusable.

    A crawl with such settings is refused by the scheduler, in one line; here an error would end it in a traceback before that.
    """
    try:
        ignored = parse_names(_IGNORED, settings.get(_IGNORED, list(IGNORED)))
        return UrlFolding(ignored, parse_folds(_FOLDS, settings.get(_FOLDS, [])))
    except ConfigurationError:
        return UrlFolding()


def describe(fingerprinter: Any) -> str:
    """Return what ``P.meta identity`` holds of pages that came by this fingerprinter: its class, and for ours what it folds."""
    path = name_of(type(fingerprinter))
    return f"{path} {fingerprinter.folding.text}" if isinstance(fingerprinter, CanonicalFingerprinter) else path


def described(text: str) -> CanonicalFingerprinter | RequestFingerprinter | None:
    """Return the fingerprinter that `describe` told of, if it is Scrapy's or ours; None for one of the user's."""
    path, _, folding = text.partition(" ")
    if path == SCRAPYS:
        return RequestFingerprinter()
    return CanonicalFingerprinter(UrlFolding.of(folding)) if path == name_of(CanonicalFingerprinter) else None
