"""Entries of URL_KEYS as Scrapy requests, and as the pages that these would be if the spider had yielded them at its start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from scrapy import FormRequest, Request

from optimal_frontier.frontier.admitting.addresses import CREDENTIALS, refusal_of, without_passwords
from optimal_frontier.frontier.admitting.pushed import PushedUrl, read_entry
from optimal_frontier.frontier.dispatching.url_taking import Converted
from optimal_frontier.integrations.frontera.backend import OptimalBackend
from optimal_frontier.integrations.scrapy.converters import OptimalRequestConverter
from optimal_frontier.integrations.scrapy.incoming import kind_of
from optimal_frontier.settings.trust_settings import NO_PLACES
from optimal_frontier.state.url_keys import Entry

logger = logging.getLogger(__name__)

#: Fields of an entry that are arguments of a request as they are.
_ARGUMENTS: Final = ("body", "cb_kwargs", "cookies", "dont_filter", "headers", "method")


class PushedRequests:
    """Makes pages of entries; to be called on the thread of the reactor.

    Parameters
    ----------
    crawler : Crawler
        Its spider's methods may be named as callback and errback.
    converter : OptimalRequestConverter
    backend : OptimalBackend
    """

    def __init__(self, crawler: Any, converter: OptimalRequestConverter, backend: OptimalBackend) -> None:
        self._spider, self._stats = crawler.spider, crawler.stats
        self._requests, self._backend = converter, backend

    def __call__(self, entries: Sequence[Entry]) -> Converted:
        """Return the pages, and why other entries are none."""
        converted = Converted()
        for at, entry in enumerate(entries):
            try:
                request = self.request_of(read_entry(entry))
                frontier_request = self._requests.to_frontier(request, kind_of(request))
                converted.pages.append(self._backend.page_of(frontier_request))
            except Exception as error:  # whatever a stranger has written, or a fingerprinter of the user's makes of it
                logger.debug("%s is put aside: %s", without_passwords(repr(entry)), without_passwords(repr(error)))
                converted.refused[at] = " ".join(str(error).split()) or type(error).__name__
        self._stats.inc_value("optimal_frontier/pushed", len(converted.pages))
        self._stats.inc_value("optimal_frontier/pushed_refused", len(converted.refused))
        return converted

    def request_of(self, pushed: PushedUrl) -> Request:
        """Return the request of an entry that was understood.

        Raises
        ------
        ValueError, TypeError
            Something in it is no part of a request.
        """
        if (scheme := pushed.url.partition(":")[0].lower()) in NO_PLACES:
            raise ValueError(f"a {scheme}: URL names no place, and is no page; expected http://host/path or https://host/path")
        arguments = {name: pushed.fields[name] for name in _ARGUMENTS if name in pushed.fields}
        arguments["method"] = arguments.get("method", "GET").upper()
        meta = dict(pushed.fields.get("meta", {}))
        if "importance" in pushed.fields:
            meta["importance"] = pushed.fields["importance"]
        functions = {name: self._method(name, pushed.fields[name]) for name in ("callback", "errback") if name in pushed.fields}
        if pushed.form_data:
            form = {
                name: [str(one) for one in value] if isinstance(value, list) else str(value) for name, value in pushed.form_data.items()
            }
            request: Request = FormRequest(pushed.url, formdata=form, meta=meta, priority=pushed.priority, **functions, **arguments)
        else:
            request = Request(pushed.url, meta=meta, priority=pushed.priority, **functions, **arguments)
        refused = refusal_of(request.url, self._backend.settings.schemes)
        if refused == CREDENTIALS:
            raise ValueError("expected a URL without a user name and a password")
        if refused:
            raise ValueError("expected a URL, http://host/path or https://host/path")
        return request

    def _method(self, role: str, name: str) -> Any:
        if name.startswith("_") or not self._requests.has_method(name):
            raise ValueError(f"the {role} {name!r} is not a method of the spider {self._spider.name!r} that may be named")
        return getattr(self._spider, name)
