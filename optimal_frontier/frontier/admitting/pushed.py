"""Entries that other programs push into the keys of URL_KEYS: URLs, or JSON objects with a URL and what goes with its request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from optimal_frontier.frontier.admitting.pages import stated_importance
from optimal_frontier.frontier.admitting.stored_requests import is_method
from optimal_frontier.state.url_keys import Entry

#: Longest entry, bytes.
MOST_BYTES: Final = 1 << 20
#: Priorities beyond this are all the same for the order of first visits (see `partition.rank_of`).
_MOST_PRIORITY: Final = 32_767
#: Names that an object may have besides ``url``, and the types of their values. All others are form data, as scrapy-redis has it.
_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "body": (str,),
    "callback": (str,),
    "cb_kwargs": (dict,),
    "cookies": (dict, list),
    "dont_filter": (bool,),
    "errback": (str,),
    "headers": (dict,),
    "importance": (int, float),
    "meta": (dict,),
    "method": (str,),
    "priority": (int, float),
}
_FORM_DATA: Final = (str, int, float, list)


@dataclass(frozen=True)
class PushedUrl:
    """An entry that was understood.

    Attributes
    ----------
    url : str
        As it was written.
    priority : int
        Of the first visit: the one that is stated, else the score.
    fields : dict
        What the object has besides, by name; see `_FIELDS`.
    form_data : dict
        The values of all other names.
    """

    url: str
    priority: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    form_data: dict[str, Any] = field(default_factory=dict)


def read_entry(entry: Entry) -> PushedUrl:
    """Read an entry.

    Raises
    ------
    ValueError
        What is wrong with it, in one line.

    Examples
    --------
    >>> read_entry(Entry(b"http://a.org/", 2.0))
    PushedUrl(url='http://a.org/', priority=2, fields={}, form_data={})
    >>> read_entry(Entry(b'{"url": "http://a.org/", "meta": {"shop": 5}, "q": "x"}'))
    PushedUrl(url='http://a.org/', priority=0, fields={'meta': {'shop': 5}}, form_data={'q': 'x'})
    """
    if len(entry.raw) > MOST_BYTES:
        raise ValueError(f"it has {len(entry.raw):,} bytes; expected at most {MOST_BYTES:,}")
    try:
        text = entry.raw.decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8 text ({error.reason} at byte {error.start})") from None
    if not text.startswith("{"):
        return PushedUrl(text, _priority(entry.score))
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a URL, or a JSON object ({error})") from None
    url = values.pop("url", None)
    if not isinstance(url, str):
        raise ValueError('expected a "url" in the JSON object')
    fields: dict[str, Any] = {}
    form_data: dict[str, Any] = {}
    for name, value in values.items():
        types = _FIELDS.get(name, _FORM_DATA)
        if (isinstance(value, bool) and bool not in types) or not isinstance(value, types):
            raise ValueError(f"{name!r} is {_short(value)}: expected {' or '.join(kind.__name__ for kind in types)}")
        (fields if name in _FIELDS else form_data)[name] = value
    if "importance" in fields:
        try:
            stated_importance(fields["importance"])
        except ValueError:
            raise ValueError(f"'importance' is {_short(fields['importance'])}: expected a number above 0") from None
    if not is_method(fields.get("method", "GET")):
        raise ValueError(f"'method' is {_short(fields['method'])}: expected the name of one, as POST")
    return PushedUrl(url.strip(), _priority(fields.pop("priority", entry.score)), fields, form_data)


def _priority(number: float) -> int:
    return round(min(max(number, -_MOST_PRIORITY), _MOST_PRIORITY)) if number == number else 0


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
