"""Items that say whether their page is new, changed or unchanged, whatever they are made of."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import attrs
import pytest
from leased import handed_out
from scrapy import Field, Item, Request
from scrapy.http import Response
from scrapy.statscollectors import DummyStatsCollector, MemoryStatsCollector
from scrapy.utils.test import get_crawler

from optimal_frontier.integrations.scrapy.item_marks import ItemMarks, change_of
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.state.memory import MISSED_CHANGE, MISSED_FIRST, Lost, Memory
from optimal_frontier.state.messages import KEEP, Observation
from optimal_frontier.state.rows import ONCE


def response(visits: int, bit: int | None, **values: Any) -> Response:
    """What came of a page's visit after so many; bit None: the visit failed, -1: no bit. ``values`` are of its row."""
    request = Request("http://a.example/")
    handout = handed_out(request.url, visits=visits, **values)
    observation = Observation(handout, KEEP, handout.row, bit=-1 if bit is None else bit, outcome="failed" if bit is None else "ok")
    request.meta[LEASE] = Lease(handout, None, request, observation=observation)
    return Response(request.url, request=request)


@pytest.mark.parametrize(
    ("visits", "bit", "word"),
    [(0, -1, "new"), (3, 1, "changed"), (3, 0, "unchanged"), (3, -1, None), (0, None, None), (3, None, None)],
)
def test_what_a_visit_showed(visits, bit, word):
    """A failed visit, and one without a bit, show nothing."""
    assert change_of(response(visits, bit)) == word


@pytest.mark.parametrize(("missed", "bit", "word"), [(MISSED_FIRST, 0, "new"), (MISSED_CHANGE, 0, "changed"), (0, 0, "unchanged")])
def test_what_a_callback_could_not_take_is_shown_again(missed, bit, word):
    assert change_of(response(3, bit, memory=Memory(lost=Lost("callback", "", missed)))) == word


def test_a_request_that_is_no_page_shows_nothing():
    assert change_of(Response("http://a.example/", request=Request("http://a.example/"))) is None
    assert change_of(Response("http://a.example/")) is None
    assert change_of(response(0, -1, state=ONCE)) is None


class Declared(Item):
    name = Field()
    _change = Field()


@dataclasses.dataclass
class Data:
    name: str = ""
    _change: str | None = None


@attrs.define
class Attrs:
    name: str = ""
    _change: str | None = None


@pytest.mark.parametrize("item", [{"name": "x"}, Declared(name="x"), Data("x"), Attrs("x")], ids=lambda item: type(item).__name__)
def test_every_kind_of_item_takes_a_mark(item):
    ItemMarks("_change", DummyStatsCollector(get_crawler())).mark(item, response(3, 1))
    assert (item["_change"] if isinstance(item, dict | Item) else item._change) == "changed"


class Undeclared(Item):
    name = Field()


@dataclasses.dataclass
class Bare:
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str = ""
    _change: str | None = None


def test_what_takes_no_mark_goes_on_as_it_was_with_one_warning(caplog):
    stats = MemoryStatsCollector(get_crawler())
    marks = ItemMarks("_change", stats)
    items = [Undeclared(name="x"), Bare("x"), Frozen("x"), "no item"]
    with caplog.at_level(logging.WARNING):
        for item in items:
            marks.mark(item, response(0, -1))
    assert items == [Undeclared(name="x"), Bare("x"), Frozen("x"), "no item"]
    assert stats.get_value("optimal_frontier/items_unmarked") == 3
    (message,) = [text for text in caplog.messages if "_change" in text]
    assert "Undeclared" in message
