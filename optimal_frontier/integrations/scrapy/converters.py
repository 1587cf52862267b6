"""Frontera's converters, completed: priority, cb_kwargs, flags, encoding and dont_filter survive, and so does our identity."""

from __future__ import annotations

from typing import Any, Final

from frontera.contrib.scrapy.converters import RequestConverter, ResponseConverter
from frontera.core.models import Request as FrontierRequest
from frontera.core.models import Response as FrontierResponse
from scrapy import Request
from w3lib.util import to_bytes, to_unicode

from optimal_frontier.frontier.admitting.hosts import names_of
from optimal_frontier.integrations.frontera.requests import ANNOUNCEMENT, FINGERPRINT, IMPORTANCE, KIND, LASTMOD
from optimal_frontier.integrations.scrapy.callbacks import Callbacks
from optimal_frontier.integrations.scrapy.crawl_rules import RULE, is_of_rules, key_of_request, rule_now
from optimal_frontier.integrations.scrapy.lease import ANNOUNCED, GATE, LEASE, LOCAL, META, forget_copies
from optimal_frontier.integrations.scrapy.request_classes import build_request, class_parts, find_class
from optimal_frontier.state.records import REQUEST, REQUEST_CLASS, is_class

#: What is of one process in meta.
_OF_THIS_PROCESS: Final = frozenset({LEASE, LOCAL, META, ANNOUNCED, GATE})
#: Runtime companions that Scrapy and we put into meta; they say nothing about the next fetch.
RUNTIME_META = frozenset({LEASE, LOCAL, META, "download_latency", "download_slot", b"frontier_request"})
_NOT_STORED: Final = RUNTIME_META | {ANNOUNCED, GATE}
#: Attributes of a request that name methods of the spider, and where Frontera's meta has them.
_FUNCTIONS: Final = (("callback", b"scrapy_callback"), ("errback", b"scrapy_errback"))


def forget_runtime(meta: dict[Any, Any]) -> None:
    """Take out of a copied ``meta`` what belongs to the fetch that it was copied from."""
    if RUNTIME_META.isdisjoint(meta):
        return  # most links
    forget_copies(meta)
    companion, slot = meta.get(LEASE) or meta.get(LOCAL), meta.get("download_slot")
    added = (companion.added for companion in (meta.get(LEASE), meta.get(LOCAL)) if companion is not None)
    for name in RUNTIME_META.union(*added):
        meta.pop(name, None)
    # One that is not that of the fetch was asked for.
    if slot is not None and (companion is None or companion.request is None or slot != companion.request.meta.get("download_slot")):
        meta["download_slot"] = slot


class UnstorableRequestError(ValueError):
    """The request holds something that cannot be stored; the message says what."""


class MissingNeedError(ValueError):
    """There is not what a stored request needs: ``name`` is one of `needs_of` its record."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class OptimalRequestConverter(RequestConverter):  # type: ignore[misc]  # frontera is untyped
    """Scrapy request to Frontera request and back.

    Parameters
    ----------
    spider : Spider
        Callbacks and errbacks must be its methods.
    fingerprint : callable
        Request -> 20 bytes: Scrapy's fingerprinter.
    callbacks : Callbacks, optional
        Which methods stored requests may name.
    """

    def __init__(self, spider: Any, fingerprint: Any, callbacks: Callbacks | None = None) -> None:
        super().__init__(spider)
        self._fingerprint = fingerprint
        self.callbacks = callbacks if callbacks is not None else Callbacks(spider)

    def to_frontier(self, scrapy_request: Any, kind: int | None = None) -> Any:
        """Return the Frontera request.

        Raises
        ------
        UnstorableRequestError
            A callback or errback is not a method that the spider has by a name.
        """
        meta: dict[Any, Any] = {}
        for name, key in _FUNCTIONS:
            function = getattr(scrapy_request, name)
            if function is not None:
                meta[key] = self._name_of(function, name)
        given = scrapy_request.meta
        plain = {k: v for k, v in given.items() if k not in _NOT_STORED}
        # Scrapy writes the slot into every request that it fetches. One that is not the host's own was asked for.
        slot = given.get("download_slot")
        if slot is not None and slot != names_of(scrapy_request.url)[0]:
            plain["download_slot"] = slot
        if plain:
            meta[b"scrapy_meta"] = plain
        rest: dict[str, Any] = {}
        if scrapy_request.cb_kwargs:
            rest["cb_kwargs"] = scrapy_request.cb_kwargs
        if scrapy_request.priority:
            rest["priority"] = scrapy_request.priority
        if scrapy_request.flags:
            rest["flags"] = scrapy_request.flags
        if scrapy_request.dont_filter:
            rest["dont_filter"] = True
        if scrapy_request.encoding != "utf-8":
            rest["encoding"] = scrapy_request.encoding
        if (rule := key_of_request(self.spider, scrapy_request)) is not None:
            rest[RULE] = rule
        rest |= class_parts(scrapy_request)
        if rest:
            meta[REQUEST] = rest
        meta[b"origin_is_frontier"] = True
        meta[FINGERPRINT] = self._fingerprint(scrapy_request)
        if kind is not None:
            meta[KIND] = kind
        if "importance" in given:
            meta[IMPORTANCE] = given["importance"]
        if "lastmod" in given:
            meta[LASTMOD] = given["lastmod"]
        if ANNOUNCED in given:
            meta[ANNOUNCEMENT] = given[ANNOUNCED]
        return FrontierRequest(
            url=scrapy_request.url,
            method=to_bytes(scrapy_request.method),
            headers=scrapy_request.headers,
            cookies=scrapy_request.cookies,
            meta=meta,
            body=scrapy_request.body,
        )

    def from_frontier(self, frontier_request: Any) -> Any:
        """Return the Scrapy request.

        Raises
        ------
        MissingNeedError
            The spider no longer has the callback or errback, or the class of the request is not loaded.
        ValueError
            What is stored makes no request.
        """
        meta = frontier_request.meta
        functions = {}
        for name, key in _FUNCTIONS:
            stored = meta.get(key)
            functions[name] = self._method(to_unicode(stored)) if stored else None
        rest = meta.get(REQUEST) or {}
        # What is of this process is never stored: somebody else has written it.
        plain = {k: v for k, v in (meta.get(b"scrapy_meta") or {}).items() if k not in _OF_THIS_PROCESS}
        if is_of_rules(self.spider, plain, functions["callback"]):
            plain["rule"] = rule_now(self.spider, frontier_request.url, plain["rule"], rest.get(RULE))
            if plain["rule"] is None:
                del plain["rule"]
                functions = dict.fromkeys(functions)
        arguments = {
            "url": frontier_request.url,
            **functions,
            "method": to_unicode(frontier_request.method),
            "headers": frontier_request.headers,
            "body": frontier_request.body,
            "cookies": frontier_request.cookies,
            "meta": plain,
            "encoding": rest.get("encoding", "utf-8"),
            "priority": rest.get("priority", 0),
            "flags": rest.get("flags"),
            "cb_kwargs": dict(rest.get("cb_kwargs") or {}),
            # Nothing filters what the frontier hands out, but OffsiteMiddleware lets pass what has it.
            "dont_filter": bool(rest.get("dont_filter", False)),
        }
        if not (class_name := rest.get(REQUEST_CLASS)):
            return Request(**arguments)
        if (kind := find_class(class_name)) is None:
            raise MissingNeedError(f"no class {class_name!r} of requests is loaded", class_name)
        return build_request(kind, rest.get("state") or {}, arguments)

    def has(self, need: str) -> bool:
        """Tell whether there is what a stored request needs, one of `needs_of` its record."""
        return find_class(need) is not None if is_class(need) else self.has_method(need)

    def has_method(self, name: str) -> bool:
        """Tell whether the spider has a callback of that name, as `Callbacks` has it."""
        return self.callbacks.has(name)

    def _method(self, name: str) -> Any:
        if not self.has_method(name):
            raise MissingNeedError(f"the spider {self.spider.name!r} has no method {name!r} any more", name)
        return getattr(self.spider, name)

    def _name_of(self, function: Any, role: str) -> bytes:
        name = self.callbacks.name_of(function)
        if name is None:
            raise UnstorableRequestError(f"its {role} {function!r} is not a method that the spider {self.spider.name!r} has by a name")
        return to_bytes(name)


class OptimalResponseConverter(ResponseConverter):  # type: ignore[misc]  # frontera is untyped
    """Scrapy response to Frontera response, for the request that the frontier handed out."""

    def to_frontier(self, scrapy_response: Any, frontier_request: Any = None) -> Any:
        return FrontierResponse(
            url=scrapy_response.url,
            status_code=scrapy_response.status,
            headers=scrapy_response.headers,
            body=scrapy_response.body,
            request=frontier_request,
        )
