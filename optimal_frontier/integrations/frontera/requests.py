"""Frontera requests as stored records, and back."""

from __future__ import annotations

from typing import Any, Final

from frontera.core.models import Request as FrontierRequest
from scrapy.http import Headers
from scrapy.http import Request as ScrapyRequest
from scrapy.responsetypes import responsetypes
from scrapy.utils.request import fingerprint as scrapy_fingerprint
from w3lib.util import to_bytes, to_unicode

from optimal_frontier.state.records import encode_record

#: Runtime companion of a handed-out request in its meta; never stored.
HANDOUT: Final = b"optimal_frontier_handout"
#: Observation that was judged already when the response came; never stored.
OBSERVATION: Final = b"optimal_frontier_observation"
#: The `Validators` that it was asked with; never stored.
ASKED: Final = b"optimal_frontier_asked"
#: The `Fingerprint` that `ContentHashMiddleware` took of its response; never stored.
TAKEN: Final = b"optimal_frontier_fingerprint"
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

#: Headers with which a request states conditions or asks for a part; who sets one of them is left alone.
CONDITIONS: Final = (b"If-None-Match", b"If-Modified-Since", b"If-Match", b"If-Unmodified-Since", b"If-Range", b"Range")

_TRANSIENT_META: Final = {
    HANDOUT,
    OBSERVATION,
    ASKED,
    TAKEN,
    SOURCE,
    FINGERPRINT,
    KIND,
    IMPORTANCE,
    LASTMOD,
    ANNOUNCEMENT,
    IS_LINK,
    b"state",
    b"content_hash",
    b"origin_is_frontier",
}


#: Hashed apart.
_PLAIN: Final = {b"scrapy_callback", b"scrapy_errback", b"depth", b"importance", "importance", b"lastmod", "lastmod"}
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


def _plain_headers(headers: Any) -> dict[bytes, list[bytes]]:
    plain: dict[bytes, list[bytes]] = {}
    for name, value in (headers or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        plain[to_bytes(name)] = [to_bytes(v) for v in values]
    return plain


def record_of(request: Any) -> dict[Any, Any]:
    """Return what a later fetch of ``request`` needs; its meta, headers and cookies may hold what cannot be stored."""
    record: dict[str, Any] = {"url": request.url}
    method = to_bytes(request.method)
    if method != b"GET":
        record["method"] = method
    if request.headers:
        record["headers"] = _plain_headers(request.headers)
    if request.cookies:
        record["cookies"] = request.cookies
    if request.body:
        record["body"] = to_bytes(request.body)
    meta = {k: v for k, v in request.meta.items() if k not in _TRANSIENT_META and v not in (None, {}, [])}
    if meta:
        record["meta"] = meta
    return record


def said_by(request: Any) -> int:
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
        more += sorted((name, value) for name, value in _plain_headers(headers).items() if name.lower() != b"referer")
    if request.cookies:
        more += b"cookies", request.cookies
    names = (meta.get(b"scrapy_callback"), meta.get(b"scrapy_errback"))
    return hash((names, importance_of(request), to_bytes(request.method), request.body, encode_record(more) if more else b""))


def importance_of(request: Any) -> Any:
    """Return the importance that a request states, as it states it; None where it states none."""
    return request.meta.get(IMPORTANCE, request.meta.get(b"importance", request.meta.get("importance")))


def request_of(record: dict[Any, Any]) -> Any:
    """Return the Frontera request of a record."""
    return FrontierRequest(
        record["url"],
        method=record.get("method", b"GET"),
        headers=record.get("headers"),
        cookies=record.get("cookies"),
        meta=dict(record.get("meta", {})),
        body=record.get("body", b""),
    )


def scrapy_response(response: Any) -> Any:
    """Return a Frontera response as Scrapy's downloader would have given it: of the class that headers, URL and body ask for."""
    headers, body = Headers(response.headers or {}), to_bytes(response.body or b"", "utf-8", "surrogatepass")
    kind = responsetypes.from_args(headers=headers, url=response.url, body=body)
    return kind(response.url, status=int(response.status_code), headers=headers, body=body)


def identity_of(request: Any) -> bytes:
    """Return the identity of a Frontera request: Scrapy's request fingerprint, 20 bytes."""
    known = request.meta.get(FINGERPRINT)
    if known is not None:
        return bytes(known)
    return scrapy_fingerprint(ScrapyRequest(request.url, method=to_unicode(request.method), body=to_bytes(request.body or b"")))


def depth_of(request: Any) -> int:
    """Return how many links a Frontera request is away from a start request, as far as Scrapy's DepthMiddleware or Frontera says so."""
    return int((request.meta.get(b"scrapy_meta") or {}).get("depth", request.meta.get(b"depth", 0)))
