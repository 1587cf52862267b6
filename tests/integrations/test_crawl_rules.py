"""Stored requests of a CrawlSpider follow the rules that it has now."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from optimal_frontier.integrations.scrapy.converters import OptimalRequestConverter

ITEMS, LISTS, ALL = (Rule(LinkExtractor(allow=allow), name) for allow, name in ((r"/item/", "item"), (r"/list/", "list"), (r"/", "other")))
OTHER_ITEMS = Rule(LinkExtractor(allow=r"/item/|/thing/"), "item")


class Shop(CrawlSpider):
    name = "shop"

    def item(self, response: Any) -> None: ...

    def list(self, response: Any) -> None: ...

    def other(self, response: Any) -> None: ...


def spider_of(*rules: Rule) -> Shop:
    return type("Ruled", (Shop,), {"rules": rules})()


def converter_of(spider: Shop) -> OptimalRequestConverter:
    return OptimalRequestConverter(spider, lambda request: b"f" * 20)


def stored(spider: Shop, number: int, url: str) -> Any:
    request = Request(url, callback=spider._callback, errback=spider._errback, meta={"rule": number, "link_text": "x"})
    return converter_of(spider).to_frontier(request)


@pytest.mark.parametrize(
    ("before", "number", "url", "now", "expected"),
    [
        ((ITEMS, LISTS), 1, "http://a/list/1", (ITEMS, LISTS), 1),
        ((ITEMS, LISTS), 1, "http://a/list/1", (ALL, ITEMS, LISTS), 2),  # moved
        ((ITEMS, LISTS), 1, "http://a/list/1", (LISTS,), 0),
        ((ITEMS, LISTS), 0, "http://a/made/by/process_links", (LISTS, ITEMS), 1),  # which its pattern does not match
        ((ITEMS, LISTS), 0, "http://a/item/1", (LISTS, OTHER_ITEMS), 1),  # changed: the first that matches
        ((ITEMS, LISTS), 0, "http://a/item/1", (LISTS, ALL), 1),
        ((ITEMS, LISTS), 0, "http://a/item/1", (LISTS,), None),  # gone
        ((ITEMS, LISTS), 1, "http://a/list/1", (), None),
    ],
)
def test_a_stored_request_goes_by_its_rule_wherever_that_stands_now(before, number, url, now, expected):
    """Where it is gone, by the first that matches its URL; else the page is read for its links, as a start URL is."""
    spider = spider_of(*now)
    request = converter_of(spider).from_frontier(stored(spider_of(*before), number, url))
    assert request.meta.get("rule") == expected
    if expected is None:
        assert (request.callback, request.errback) == (None, None)
    else:
        assert (request.callback, request.errback) == (spider._callback, spider._errback)
    assert request.meta["link_text"] == "x"


def test_what_an_earlier_build_stored_keeps_its_number():
    spider = spider_of(ITEMS, LISTS)
    request = stored(spider, 1, "http://a/list/1")
    del request.meta[b"scrapy_request"]
    assert converter_of(spider_of(LISTS, ITEMS)).from_frontier(request).meta["rule"] == 1
    assert converter_of(spider_of(LISTS)).from_frontier(request).meta["rule"] == 0


def test_a_rule_in_meta_of_other_requests_is_theirs():
    spider = spider_of(ITEMS)
    request = converter_of(spider).to_frontier(Request("http://a/item/1", callback=spider.item, meta={"rule": "mine"}))
    assert converter_of(spider_of(LISTS)).from_frontier(request).meta["rule"] == "mine"
