"""Frontera requests as stored records, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from frontera.core.models import Request as FrontierRequest
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes
from w3lib.util import to_bytes, to_unicode

from optimal_frontier.state.records import encode_record

#: Runtime companion of a handed-out request in its meta, where a session is attached; never stored.
HANDOUT: Final = b"optimal_frontier_handout"
#: In the meta of a handed-out request of plain Frontera: the name of its page (12 bytes), as plain data. Never stored.
PAGE: Final = b"optimal_frontier_page"
#: There where its headers have conditions of ours.
ASKED: Final = b"optimal_frontier_asked"
#: Observation that was judged already when the response came; never stored.
OBSERVATION: Final = b"optimal_frontier_observation"
#: The `Fingerprint` that `ContentHashMiddleware` took of its response; never stored.
TAKEN: Final = b"optimal_frontier_fingerprint"
#: URL that a redirect led to, where the fetch failed; never stored.
FAILED_AT: Final = b"optimal_frontier_failed_at"
#: The Scrapy request that it was made of; never stored.
SOURCE: Final = b"optimal_frontier_source"
#: Scrapy's request fingerprint (20 bytes) and kind, put there by the Scrapy converter; stored elsewhere.
FINGERPRINT: Final = b"scrapy_fingerprint"
KIND: Final = b"optimal_frontier_kind"
IMPORTANCE: Final = b"optimal_frontier_importance"
LASTMOD: Final = b"optimal_frontier_lastmod"
#: The `Announcement` of a source that says so.
ANNOUNCEMENT: Final = b"optimal_frontier_announcement"
#: There where it was found on a page.
IS_LINK: Final = b"optimal_frontier_is_link"
#: In the meta of a response, by whoever fetched it: why each redirect was made (301, 302 ...), oldest first, and the URLs before the last.
REDIRECT_REASONS: Final = b"redirect_reasons"
REDIRECT_URLS: Final = b"redirect_urls"
#: There where it is to be fetched now, whatever is known of the page.
IS_WANTED: Final = b"optimal_frontier_is_wanted"

#: Headers with which a request states conditions or asks for a part; who sets one of them is left alone.
CONDITIONS: Final = (b"If-None-Match", b"If-Modified-Since", b"If-Match", b"If-Unmodified-Since", b"If-Range", b"Range")

#: What Frontera's model puts into the meta of a request that is given none.
_SCRAPY_META: Final = b"scrapy_meta"

#: What belongs to one fetch, or is stored elsewhere.
_TRANSIENT_META: Final = {
    HANDOUT,
    PAGE,
    ASKED,
    OBSERVATION,
    TAKEN,
    FAILED_AT,
    SOURCE,
    FINGERPRINT,
    KIND,
    IMPORTANCE,
    LASTMOD,
    ANNOUNCEMENT,
    IS_LINK,
    REDIRECT_REASONS,
    REDIRECT_URLS,
    b"redirect_fingerprints",
    b"redirect_domains",
    IS_WANTED,
    b"state",
    b"content_hash",
    b"origin_is_frontier",
}


#: Hashed apart, or made of the URL.
_PLAIN: Final = {
    b"scrapy_callback",
    b"scrapy_errback",
    b"fingerprint",
    b"domain",
    b"depth",
    b"importance",
    "importance",
    b"lastmod",
    "lastmod",
}
#: In meta, and of what is stored beside it: what says where a link was found, or how the page that has it was fetched.
_VOLATILE: Final = {
    "depth",
    "download_latency",
    "download_slot",
    "download_timeout",
    "flags",
    "importance",
    "is_start_request",
    "lastmod",
    "link_text",
    "priority",
    "redirect_reasons",
    "redirect_times",
    "redirect_ttl",
    "redirect_urls",
    "retry_times",
}


def record_of(request: Any, *, without: Collection[bytes] = ()) -> dict[Any, Any]:
    """Return what a later fetch of ``request`` needs, as it was given; its meta, headers and cookies may hold what cannot be stored.

    Parameters
    ----------
    request : frontera Request
    without : collection of bytes
        Names in its meta that can be had without being stored.
    """
    record: dict[str, Any] = {"url": request.url}
    method = to_bytes(request.method)
    if method != b"GET":
        record["method"] = method
    if request.headers:
        record["headers"] = dict(request.headers)
    if request.cookies:
        record["cookies"] = request.cookies
    if request.body:
        record["body"] = request.body
    meta = {
        name: value
        for name, value in request.meta.items()
        if name not in _TRANSIENT_META and name not in without and not (name == _SCRAPY_META and not value)
    }
    if meta:
        record["meta"] = meta
    return record


def said_by(request: Any, importance: float | None) -> int:
    """Return a hash of what a request says of its page: callback, errback, method, headers, cookies, body, cb_kwargs, meta, importance.

    Not counted is what depends on the page that it was found on, or on the fetch of that: see `_VOLATILE`, the priority, the Referer.

    Raises
    ------
    TypeError, OverflowError, ValueError
        Something in it cannot be stored.
    """
    meta = request.meta
    more: list[Any] = []
    for key, value in meta.items():
        if key in _TRANSIENT_META or key in _PLAIN or value in (None, {}, []):
            continue
        if isinstance(value, dict):
            value = {name: part for name, part in value.items() if name not in _VOLATILE}
            if not value:
                continue
        more += key, value
    headers = request.headers
    if headers and not (len(headers) == 1 and b"Referer" in headers):  # most links: Scrapy gives them one
        more += sorted(([name, value] for name, value in headers.items() if to_unicode(name).lower() != "referer"), key=repr)
    if request.cookies:
        more += b"cookies", request.cookies
    names = (meta.get(b"scrapy_callback"), meta.get(b"scrapy_errback"))
    return hash((names, importance, to_bytes(request.method), request.body, encode_record(more) if more else b""))


def lastmod_of(request: Any) -> Any:
    """Return when a page was last modified by the request for it, as that states it; None where it states nothing."""
    return request.meta.get(LASTMOD, request.meta.get(b"lastmod", request.meta.get("lastmod")))


def importance_of(request: Any) -> Any:
    """Return the importance that a request states, as it states it; None where it states none."""
    return request.meta.get(IMPORTANCE, request.meta.get(b"importance", request.meta.get("importance")))


def forget_stated(request: Any, name: str) -> None:
    """Take a value that is none out of what a request states of its page: as it is, it might not even be stored."""
    scrapys = request.meta.get(_SCRAPY_META)
    for stated in (request.meta, scrapys) if isinstance(scrapys, dict) else (request.meta,):
        for key in (name, name.encode("ascii"), {"importance": IMPORTANCE, "lastmod": LASTMOD}[name]):
            stated.pop(key, None)


def request_of(record: dict[Any, Any], model: type[Any] = FrontierRequest) -> Any:
    """Return the Frontera request of a record, of the class that REQUEST_MODEL names."""
    return model(
        record["url"],
        method=record.get("method", b"GET"),
        headers=record.get("headers"),
        cookies=record.get("cookies"),
        meta=dict(record.get("meta", {})),
        body=record.get("body", ""),
    )


def conditional_headers(given: Mapping[Any, Any] | None, conditions: Collection[bytes | None]) -> dict[Any, Any]:
    """Return the headers of a request with our conditions, in the shape that the others were given in: text or bytes, single or listed."""
    headers = dict(given or {})
    is_text = bool(headers) and all(isinstance(name, str) for name in headers)
    is_listed = any(isinstance(value, list | tuple) for value in headers.values())
    for name, value in zip(CONDITIONS, conditions, strict=False):
        if value:
            shaped: Any = value.decode("latin-1") if is_text else value
            headers[name.decode("ascii") if is_text else name] = [shaped] if is_listed else shaped
    return headers


def forget_conditions(request: Any) -> None:
    """Take our conditions off a request that was handed out: they are those of one fetch, and whoever asks for it again states none."""
    if request.meta.pop(ASKED, False):
        for name in [name for name in request.headers if to_bytes(name).title() in CONDITIONS]:
            del request.headers[name]


def scrapy_response(response: Any) -> Any:
    """Return a Frontera response as Scrapy's downloader would have given it: of the class that headers, URL and body ask for."""
    headers, body = Headers(response.headers or {}), to_bytes(response.body or b"", "utf-8", "surrogatepass")
    kind = responsetypes.from_args(headers=headers, url=response.url, body=body)
    return kind(response.url, status=int(response.status_code), headers=headers, body=body)


def depth_of(meta: Mapping[Any, Any]) -> int:
    """Return how many links a Frontera request with ``meta`` is away from a start request, by Scrapy's DepthMiddleware or by Frontera."""
    depth = (meta.get(_SCRAPY_META) or {}).get("depth", meta.get(b"depth", 0))
    return max(depth, 0) if isinstance(depth, int) else 0


def at_depth(record: dict[Any, Any], depth: int) -> dict[Any, Any]:
    """Return a record with another depth in it; ``depth_of`` its meta is above 0."""
    meta = dict(record["meta"])
    if "depth" in (meta.get(_SCRAPY_META) or {}):
        meta[_SCRAPY_META] = {**meta[_SCRAPY_META], "depth": depth}
    else:
        meta[b"depth"] = depth
    return {**record, "meta": meta}
