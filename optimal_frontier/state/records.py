"""The record: what a fetch needs, as compact as a URL where that is all.

No pickle: whoever can write to Redis must not be able to run code in a spider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgpack

#: msgpack extension types; msgpack itself knows no tuples and sets.
_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3

#: Where Frontera's converter for Scrapy puts the names of callback and errback, in ``meta``.
CALLBACKS: Final = (b"scrapy_callback", b"scrapy_errback")
#: Where our converter puts what Frontera's leaves out, and the name of the request's class in that.
REQUEST: Final = b"scrapy_request"
REQUEST_CLASS: Final = "class"
#: Scrapy's callback of requests that name none.
DEFAULT_CALLBACK: Final = "parse"

#: Types with one of these are more than the plain type below them: namedtuple, struct_time; defaultdict and Counter.
_MORE_THAN_PLAIN: Final = ("_fields", "n_fields", "__missing__")

# First byte of a stored record: what the URL begins with, and whether there is more than a URL.
_ORIGINS: Final = {1: "http://", 2: "https://"}
_MORE: Final = 0x10


def _extend(value: Any) -> Any:
    # A tuple would come back without the names of its fields, a dict without its defaults, and break who uses them.
    if any(hasattr(type(value), name) for name in _MORE_THAN_PLAIN):
        raise TypeError(f"a value of type {type(value).__name__}")
    if isinstance(value, tuple):
        return msgpack.ExtType(_TUPLE, encode_record(list(value)))
    if isinstance(value, set | frozenset):
        return msgpack.ExtType(_SET if isinstance(value, set) else _FROZENSET, encode_record(list(value)))
    # Subclasses of plain types (a parsel string, an OrderedDict) are stored as what they are.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _unextend(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(decode_record(data))
    if code == _SET:
        return set(decode_record(data))
    if code == _FROZENSET:
        return frozenset(decode_record(data))
    return msgpack.ExtType(code, data)


def encode_record(value: Any) -> bytes:
    """Encode plain data (None, bool, numbers, str, bytes, list, tuple, set, dict), that of subclasses as the plain type below them.

    Raises
    ------
    TypeError, OverflowError, ValueError
        Something in it is not plain data; neither is what has named fields (a namedtuple) or defaults (a defaultdict, a Counter).
    """
    try:
        packed: bytes = msgpack.packb(value, default=_extend, strict_types=True, unicode_errors="surrogatepass")
    except RecursionError:
        raise ValueError("tuples or sets are nested too deep, or contain themselves") from None
    return packed


def decode_record(raw: bytes) -> Any:
    """Decode what `encode_record` made."""
    return msgpack.unpackb(raw, ext_hook=_unextend, strict_map_key=False, unicode_errors="surrogatepass")


def pack_record(record: dict[Any, Any], host: str) -> bytes:
    """Return what is stored of a record with at least ``url``; its origin is not, where the page's host says it.

    Raises
    ------
    TypeError, OverflowError, ValueError
        Something in it is not plain data.

    Examples
    --------
    >>> pack_record({"url": "http://example.org/a"}, "example.org"), unpack_record(b"\\x01/a", "example.org")
    (b'\\x01/a', {'url': 'http://example.org/a'})
    """
    url, kind = str(record["url"]), 0
    for number, scheme in _ORIGINS.items():
        origin = scheme + host
        if url.startswith(origin) and url[len(origin) : len(origin) + 1] in ("", "/", "?", "#"):
            kind, url = number, url[len(origin) :]
    if len(record) == 1:
        return bytes((kind,)) + url.encode("utf-8", "surrogatepass")
    return bytes((kind | _MORE,)) + encode_record({**record, "url": url})


def unpack_record(raw: bytes, host: str) -> dict[Any, Any]:
    """Read what `pack_record` made.

    Raises
    ------
    ValueError
        It is something else.
    """
    try:
        kind, rest = raw[0], raw[1:]
        record = decode_record(rest) if kind & _MORE else {"url": rest.decode("utf-8", "surrogatepass")}
        if not isinstance(record, dict) or not isinstance(record["url"], str):
            raise ValueError("it has no URL")
        origin = _ORIGINS[kind & ~_MORE] + host if kind & ~_MORE else ""
        record["url"] = origin + record["url"]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise ValueError(f"the record of a page of {host} cannot be read: {error or type(error).__name__}"[:300]) from error
    return record


def url_of_record(raw: bytes, host: str) -> str:
    """Return the URL of a stored record; empty where it cannot be read."""
    try:
        return str(unpack_record(raw, host)["url"])
    except ValueError:
        return ""


def callbacks_of(record: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the names of the callback and, where there is one, the errback of a record.

    Examples
    --------
    >>> callbacks_of({"url": "http://a.example/"}), callbacks_of({"meta": {b"scrapy_callback": b"item", b"scrapy_errback": b"failed"}})
    (('parse',), ('item', 'failed'))
    """
    meta = record.get("meta") or {}
    names = (meta.get(key) for key in CALLBACKS)
    callback, errback = (name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "") for name in names)
    return (callback or DEFAULT_CALLBACK, errback) if errback else (callback or DEFAULT_CALLBACK,)


def needs_of(record: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the names of what a request of a record needs: its callback, its errback, and its class where that is not one of Scrapy's.

    The name of a class has a module and dots, that of a method has none.

    Examples
    --------
    >>> needs_of({"url": "http://a.example/", "meta": {b"scrapy_request": {"class": "shop.requests.RenderedRequest"}}})
    ('parse', 'shop.requests.RenderedRequest')
    """
    rest = (record.get("meta") or {}).get(REQUEST)
    name = rest.get(REQUEST_CLASS) if isinstance(rest, dict) else None
    return (*callbacks_of(record), name) if isinstance(name, str) and name else callbacks_of(record)


def is_class(need: str) -> bool:
    """Tell whether one of `needs_of` a record is the name of a class."""
    return "." in need


def renamed_callback(record: Mapping[Any, Any], old: str, new: str) -> dict[Any, Any]:
    """Return a record with ``new`` in place of the callback or errback ``old``.

    Examples
    --------
    >>> callbacks_of(renamed_callback({"meta": {b"scrapy_errback": b"parse"}}, "parse", "item"))
    ('item', 'item')
    """
    meta = dict(record.get("meta") or {})
    for key, name in zip(CALLBACKS, callbacks_of(record), strict=False):
        if name == old:
            meta[key] = new.encode()
    return {**record, "meta": meta}
