"""Who says that a page is fetched once: its request, for good, or RULES, for as long as they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import DONE, ONCE, TRANSIENT


def asks_for_one_visit(record: Mapping[Any, Any]) -> bool:
    """Tell whether a request is to be fetched once by its own word: it is no GET, or its meta has ``revisit`` False.

    In plain Frontera that stands in the meta itself, where Scrapy's meta has a place of its own in there.

    Examples
    --------
    >>> asks_for_one_visit({"url": "http://a.example/"}), asks_for_one_visit({"url": "http://a.example/", "method": "POST"})
    (False, True)
    >>> asks_for_one_visit({"url": "http://a.example/", "meta": {b"scrapy_meta": {"revisit": False}}})
    True
    >>> asks_for_one_visit({"url": "http://a.example/", "meta": {b"revisit": False}})
    True
    """
    if record.get("method", "GET") not in ("GET", b"GET"):
        return True
    meta = record.get("meta")
    if not isinstance(meta, Mapping):
        return False
    of_scrapy = meta.get(b"scrapy_meta")
    # Without Scrapy it stands in Frontera's own meta.
    return meta.get(b"revisit", meta.get("revisit")) is False or (
        isinstance(of_scrapy, Mapping) and of_scrapy.get("revisit", True) is False
    )


def is_page(handout: Handout, settings: FrontierSettings) -> bool:
    """Tell whether a visit is one to a page that is revisited, at least from now on: then its content counts."""
    if handout.row.state == ONCE:
        return is_page_again(handout.record, settings)
    return handout.row.state not in (TRANSIENT, DONE)


def is_page_again(record: Mapping[Any, Any], settings: FrontierSettings) -> bool:
    """Tell whether what was to be fetched once is a page that is revisited: a rule said so that is gone."""
    return not asks_for_one_visit(record) and settings.rules.of(str(record["url"])).revisit
