"""What of a request that is yielded again is another word about its page, and what only says where it was found."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import JsonRequest
from scrapy.utils.request import fingerprint

from optimal_frontier.integrations.frontera.requests import importance_of, record_of, request_of, said_by
from optimal_frontier.integrations.scrapy.converters import MissingNeedError, OptimalRequestConverter
from optimal_frontier.integrations.scrapy.request_classes import build_request, copy_request
from optimal_frontier.state.records import decode_record, encode_record, is_class, needs_of


class Shop(Spider):
    name = "shop"

    def item(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


SHOP = Shop()
CONVERTER = OptimalRequestConverter(SHOP, fingerprint)


def said_of(request: Request) -> int:
    made = CONVERTER.to_frontier(request)
    return said_by(made, importance_of(made))


def said(**values: Any) -> int:
    return said_of(Request("http://a.example/", **values))


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


class Slotted(Request):
    """Has slots of its own, as Scrapy's classes have."""

    __slots__ = ("__hidden", "slot")

    def __init__(self, *arguments: Any, **values: Any) -> None:
        self.slot, self.__hidden = ("slot", 1), b"hidden"
        super().__init__(*arguments, **values)

    @property
    def hidden(self) -> bytes:
        return self.__hidden


class Rendered(Slotted):
    """As many packages have it: its constructor wants more, and `attributes` does not say so."""

    def __init__(self, *arguments: Any, script: str, **values: Any) -> None:
        self.script = script
        super().__init__(*arguments, **values)


class Posted(JsonRequest):
    """Has nothing of its own."""


def again(request: Request) -> Any:
    """As it comes back from the store."""
    return CONVERTER.from_frontier(request_of(decode_record(encode_record(record_of(CONVERTER.to_frontier(request))))))


def rendered() -> Rendered:
    return Rendered("http://a.example/", script="open()", callback=SHOP.item, priority=3, headers={"A": "b"}, meta={"a": (1,)})


@pytest.mark.parametrize("back", [again, copy_request])
def test_a_request_is_of_its_own_class_again(back: Any) -> None:
    request = back(rendered())
    assert type(request) is Rendered
    assert (request.script, request.slot, request.hidden) == ("open()", ("slot", 1), b"hidden")
    assert {name: getattr(request, name) for name in Request.attributes} == {name: getattr(rendered(), name) for name in Request.attributes}
    assert request.meta is not rendered().meta
    posted = back(Posted("http://a.example/", data={"a": 1}, dumps_kwargs={"indent": 1}))
    assert (type(posted), posted.dumps_kwargs, posted.body) == (Posted, {"sort_keys": True, "indent": 1}, b'{\n "a": 1\n}')


def test_requests_of_scrapys_classes_are_plain_ones() -> None:
    assert type(again(JsonRequest("http://a.example/", data={"a": 1}))) is Request


def test_another_class_or_state_is_news() -> None:
    values = [said_of(request) for request in (rendered(), Request(rendered().url, callback=SHOP.item))]
    other = rendered()
    other.script = "close()"
    assert len({*values, said_of(other)}) == 3


def test_state_from_a_stranger_replaces_nothing_that_every_request_has() -> None:
    """Nor does it fail where the class has no such slot any more."""
    state = {"_url": "http://b.example/", "url": "http://b.example/", "callback": "close", "__class__": "x", "gone": 1, "slot": 2}
    request = build_request(Slotted, state, {"url": "http://a.example/"})
    assert isinstance(request, Slotted)
    assert (request.url, request.callback, request.slot) == ("http://a.example/", None, 2)


def test_a_class_that_is_not_loaded_is_named() -> None:
    stored = CONVERTER.to_frontier(rendered())
    (name,) = (need for need in needs_of(record_of(stored)) if is_class(need))
    assert CONVERTER.has(name)
    stored.meta[b"scrapy_request"]["class"] = "os.PathLike"
    with pytest.raises(MissingNeedError) as raised:
        CONVERTER.from_frontier(stored)
    assert raised.value.name == "os.PathLike"
    assert not CONVERTER.has("os.PathLike")


def test_a_missing_callback_is_named():
    stored = CONVERTER.to_frontier(Request("http://a.example/", callback=SHOP.item))
    stored.meta[b"scrapy_callback"] = b"gone"
    with pytest.raises(MissingNeedError) as raised:
        CONVERTER.from_frontier(stored)
    assert raised.value.name == "gone"
    assert not CONVERTER.has_method("name"), "an attribute that is no method"
