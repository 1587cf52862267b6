"""What a user's callable makes of a response, in one canonical form: bytes, text, or scraped items."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

#: Written as they print.
_PRINTED: Final = (Decimal, UUID, date, datetime, time, timedelta)
_MOST_NESTED: Final = 100


def canonical_bytes(value: object) -> bytes:
    """Write what a callable returned such that equal contents are equal bytes.

    Parameters
    ----------
    value : bytes, str, item, or iterable of these
        An item is a dict or another mapping, a dataclass, or what itemadapter knows (Scrapy's Item, attrs, pydantic). Its values may be
        None, bool, numbers, str, bytes, dates and times, Decimal, UUID, Enum, items, and lists, tuples, generators or sets of these.

    Returns
    -------
    bytes
        Bytes as they are; all else as JSON with names sorted, sets sorted, text in Unicode normal form C, and 1.0 as 1. Fields that an
        item lacks are missing, so a field that is added, or empty instead of missing, is a change.

    Raises
    ------
    TypeError
        There is something else in it, such as a Request or None alone.

    Examples
    --------
    >>> canonical_bytes([{"price": 2.0, "name": "x"}])
    b'[{"name":"x","price":2}]'
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if value is None:
        raise TypeError("it returned None: expected bytes, text, or scraped items")
    return _written(_plain(value, 0)).encode("utf-8", "surrogatepass")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _plain(value: Any, depth: int) -> Any:
    if depth > _MOST_NESTED:
        raise TypeError(f"items are nested more than {_MOST_NESTED} deep")
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, int):
        # not as digits: Python refuses to write more than 4,300 of them
        return int(value) if abs(value) < 2**63 else hex(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, _PRINTED):
        return str(value)
    fields_of = _fields(value)
    if fields_of is not None:
        return {_plain_name(name): _plain(inner, depth + 1) for name, inner in fields_of.items()}
    if isinstance(value, Iterable):
        plain = [_plain(inner, depth + 1) for inner in value]
        return sorted(plain, key=_written) if isinstance(value, Set) else plain
    raise TypeError(f"it returned a {type(value).__name__}: expected bytes, text, or scraped items")


def _plain_name(name: object) -> str:
    if not isinstance(name, str | int | float | bytes) and name is not None:
        raise TypeError(f"an item has a name of type {type(name).__name__}: expected text")
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else repr(name)


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """The fields of an item; None for what is no item."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    # here, as it imports scrapy where that is installed
    from itemadapter import ItemAdapter

    return dict(ItemAdapter(value)) if not isinstance(value, type) and ItemAdapter.is_item(value) else None
