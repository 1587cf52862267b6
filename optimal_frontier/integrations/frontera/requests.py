"""Frontera requests as stored records, and back."""

from __future__ import annotations

from typing import Any, Final

from frontera.core.models import Request as FrontierRequest
from scrapy.http import Headers
from scrapy.http import Request as ScrapyRequest
from scrapy.responsetypes import responsetypes
from scrapy.utils.request import fingerprint as scrapy_fingerprint
from w3lib.util import to_bytes, to_unicode

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
#: There where it is to be fetched now, whatever is known of the page.
IS_WANTED: Final = b"optimal_frontier_is_wanted"

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
    IS_WANTED,
    b"state",
    b"content_hash",
    b"origin_is_frontier",
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
