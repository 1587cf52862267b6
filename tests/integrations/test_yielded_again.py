"""What of a request that is yielded again is another word about its page, and what only says where it was found."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.utils.request import fingerprint

from optimal_frontier.integrations.frontera.requests import said_by
from optimal_frontier.integrations.scrapy.converters import MissingCallbackError, OptimalRequestConverter


class Shop(Spider):
    name = "shop"

    def item(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


SHOP = Shop()
CONVERTER = OptimalRequestConverter(SHOP, fingerprint)


def said(**values: Any) -> int:
    return said_by(CONVERTER.to_frontier(Request("http://a.example/", **values)))


@pytest.mark.parametrize(
    "values",
    [
        {"callback": SHOP.item},
        {"errback": SHOP.failed},
        {"headers": {"X-Token": "1"}},
        {"cookies": {"a": "b"}},
        {"cb_kwargs": {"page": 1}},
        {"meta": {"category": "shoes"}},
        {"meta": {"cookiejar": 1}},
        {"meta": {"importance": 5.0}},
        {"body": b"x"},
        {"encoding": "latin-1"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_what_a_fetch_and_its_callback_need_is_news(values):
    assert said(**values) != said()
    assert said(**values) == said(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"meta": {"depth": 3}},
        {"meta": {"link_text": "more", "depth": 1}},
        {"meta": {"download_timeout": 180.0, "download_slot": "a.example", "download_latency": 0.1}},
        {"meta": {"redirect_times": 1, "redirect_urls": ["http://b.example/"], "redirect_reasons": [301], "redirect_ttl": 19}},
        {"headers": {"Referer": "http://a.example/list"}},
        {"priority": 7},
        {"flags": ["x"]},
    ],
    ids=str,
)
def test_where_a_link_was_found_is_none(values):
    assert said(**values) == said()


def test_what_cannot_be_stored_is_said_so():
    with pytest.raises(TypeError):
        said(meta={"driver": object()})


def test_a_missing_callback_is_named():
    stored = CONVERTER.to_frontier(Request("http://a.example/", callback=SHOP.item))
    stored.meta[b"scrapy_callback"] = b"gone"
    with pytest.raises(MissingCallbackError) as raised:
        CONVERTER.from_frontier(stored)
    assert raised.value.name == "gone"
    assert not CONVERTER.has_method("name"), "an attribute that is no method"
