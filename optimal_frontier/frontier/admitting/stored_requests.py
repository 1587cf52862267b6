"""What a stored record may be: whoever can write to Redis is a stranger until what was written has been looked at."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from optimal_frontier.frontier.admitting.addresses import refusal_of
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state.records import REQUEST, REQUEST_CLASS, is_class

_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z-]{0,19}")
_TEXT: Final = (str, bytes)
_NOTHING: Final = type(None)
_LONGEST_URL: Final = 65_536
_LONGEST_NAME: Final = 1000
#: Names in Scrapy's meta with which our code, or a middleware of Scrapy's, counts.
_META: Final[Mapping[str, tuple[type, ...]]] = {
    "depth": (int, _NOTHING),
    "download_latency": (int, float, _NOTHING),
    "download_slot": (str, _NOTHING),
    "redirect_reasons": (list, tuple),
    "redirect_times": (int,),
    "redirect_ttl": (int, _NOTHING),
    "redirect_urls": (list, tuple),
    "retry_times": (int,),
    "source_for": (list, tuple),
    "source_nesting": (int,),
}
#: What the converter for Scrapy puts beside it.
_REQUEST: Final[Mapping[str, tuple[type, ...]]] = {
    "cb_kwargs": (dict,),
    "priority": (int, float),
    "flags": (list, tuple, _NOTHING),
    "dont_filter": (bool,),
    "encoding": (str,),
    "rule": (int,),
    REQUEST_CLASS: (str,),
    "state": (dict,),
}
#: Names of the parts of a record, and their types.
_PARTS: Final[Mapping[str, tuple[type, ...]]] = {
    "method": _TEXT,
    "headers": (dict,),
    "cookies": (dict, list, tuple),
    "body": _TEXT,
    "meta": (dict,),
}


def fault_of_record(record: Mapping[Any, Any], host: str, schemes: Collection[str]) -> str:
    """Return what is wrong with a decoded record, for people; empty: a request can be made of it.

    Parameters
    ----------
    record : mapping
        With ``url``, as `unpack_record` returns it.
    host : str
        Of the page, by its row: budget and pacing go by it.
    schemes : collection of str
        SCHEMES.

    Examples
    --------
    >>> fault_of_record({"url": "http://a.example/"}, "a.example", ("http", "https"))
    ''
    >>> fault_of_record({"url": "file:///etc/passwd"}, "a.example", ("http", "https"))
    "its URL is refused: scheme 'file'"
    """
    url = record["url"]
    if len(url) == 0 or len(url) > _LONGEST_URL:
        return f"its URL has {len(url)} characters"
    refused = refusal_of(url, schemes)
    if refused:
        said = f"{refused} {url.partition(':')[0][:40]!r}" if refused == "scheme" else refused
        return f"its URL is refused: {said}"
    if host_of(url) != host:
        return f"its URL is not of the host {host!r}"
    return _wrong_type(record, _PARTS, "") or _fault_of_parts(record) or _fault_of_meta(record.get("meta") or {})


def is_method(text: str) -> bool:
    """Tell whether a text is the name of an HTTP method.

    Examples
    --------
    >>> is_method("PURGE"), is_method("FOO BAR")
    (True, False)
    """
    return _METHOD.fullmatch(text) is not None


def _fault_of_parts(record: Mapping[Any, Any]) -> str:
    method = record.get("method", "GET")
    if method != "GET" and not is_method(method.decode("latin-1") if isinstance(method, bytes) else method):
        return "its method is no HTTP method"
    for name, value in (record.get("headers") or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        if not isinstance(name, _TEXT) or not all(one is None or isinstance(one, (*_TEXT, int)) for one in values):
            return "its headers are no headers"
    cookies = record.get("cookies") or {}
    if not isinstance(cookies, dict) and not all(isinstance(cookie, dict) for cookie in cookies):
        return "its cookies are no cookies"
    return ""


def _fault_of_meta(meta: Mapping[Any, Any]) -> str:
    for name in (b"scrapy_callback", b"scrapy_errback"):
        if name in meta and not _is_name(meta[name]):
            return f"its {name.decode()} is no name"
    for name, types in ((b"scrapy_meta", _META), (REQUEST, _REQUEST)):
        part = meta.get(name)
        if part is None:
            continue
        if not isinstance(part, dict):
            return f"its {name.decode()} is no mapping"
        wrong = _wrong_type(part, types, f"{name.decode()} ")
        if wrong:
            return wrong
    rest = meta.get(REQUEST)
    if not rest:
        return ""
    if not all(isinstance(name, str) for name in rest.get("cb_kwargs") or {}):
        return "the names of its cb_kwargs are no texts"
    name = rest.get(REQUEST_CLASS)
    if name and not (is_class(name) and name.isprintable() and len(name) <= _LONGEST_NAME):
        return "its class has no name of a class"
    if not all(isinstance(name, str) for name in rest.get("state") or {}):
        return "the state of its class is none"
    if not math.isfinite(rest.get("priority") or 0):
        return "its priority is no number"
    try:
        codecs.lookup(rest.get("encoding") or "utf-8")
    except (LookupError, ValueError):
        return "its encoding is unknown"
    return ""


def _is_name(value: object) -> bool:
    try:
        text = value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return False
    return isinstance(text, str) and (text == "" or text.isidentifier())


def _wrong_type(part: Mapping[Any, Any], types: Mapping[str, tuple[type, ...]], where: str) -> str:
    for name, value in part.items():
        expected = types.get(name)
        if expected is None:
            continue
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            return f"its {where}{name} is of type {type(value).__name__}"
    return ""
