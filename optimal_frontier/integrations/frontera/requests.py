"""Frontera requests as stored records, and back."""

from __future__ import annotations

from typing import Any, Final

from frontera.core.models import Request as FrontierRequest
from scrapy.http import Request as ScrapyRequest
from scrapy.utils.request import fingerprint as scrapy_fingerprint
from w3lib.util import to_bytes, to_unicode

from optimal_frontier.state.records import encode_record

#: Runtime companion of a handed-out request in its meta; never stored.
HANDOUT: Final = b"optimal_frontier_handout"
#: Observation that was judged already when the response came; never stored.
OBSERVATION: Final = b"optimal_frontier_observation"
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

_TRANSIENT_META: Final = {
    HANDOUT,
    OBSERVATION,
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


def _plain_headers(headers: Any) -> dict[bytes, list[bytes]]:
    plain: dict[bytes, list[bytes]] = {}
    for name, value in (headers or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        plain[to_bytes(name)] = [to_bytes(v) for v in values]
    return plain


def encode_request(request: Any) -> bytes:
    """Encode what a later fetch of ``request`` needs.

    Raises
    ------
    TypeError, OverflowError, ValueError
        Its meta, headers or cookies hold something that is not plain data.
    """
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
    return encode_record(record)


def decode_request(record: dict[Any, Any]) -> Any:
    """Return the Frontera request of a decoded record."""
    return FrontierRequest(
        record["url"],
        method=record.get("method", b"GET"),
        headers=record.get("headers"),
        cookies=record.get("cookies"),
        meta=dict(record.get("meta", {})),
        body=record.get("body", b""),
    )


def identity_of(request: Any) -> bytes:
    """Return the identity of a Frontera request: Scrapy's request fingerprint, 20 bytes."""
    known = request.meta.get(FINGERPRINT)
    if known is not None:
        return bytes(known)
    return scrapy_fingerprint(ScrapyRequest(request.url, method=to_unicode(request.method), body=to_bytes(request.body or b"")))


def depth_of(request: Any) -> int:
    """Return how many links a Frontera request is away from a start request, as far as Scrapy's DepthMiddleware or Frontera says so."""
    return int((request.meta.get(b"scrapy_meta") or {}).get("depth", request.meta.get(b"depth", 0)))
