"""Requests become pages: what start pages keep, and how deep pages are; without Redis."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from frontera.core.models import Request
from scrapy import Request as ScrapyRequest
from scrapy.utils.test import get_crawler

from optimal_frontier.frontier.admitting import start_pages
from optimal_frontier.frontier.admitting.hosts import SeenHosts
from optimal_frontier.integrations.frontera.request_pages import RequestPages
from optimal_frontier.integrations.frontera.requests import FINGERPRINT, IS_LINK, KIND
from optimal_frontier.integrations.frontera.url_identity import UrlIdentity
from optimal_frontier.integrations.scrapy import CanonicalFingerprinter
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import NewPage, page_of
from optimal_frontier.state.records import callbacks_of, unpack_record
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT

FOLDED = CanonicalFingerprinter.from_crawler(get_crawler(settings_dict={"OPTIMAL_FRONTIER_FOLD_URLS": "www"}))
PARENT = b"p" * 20


@pytest.fixture
def pages() -> RequestPages:
    """Of a crawl that takes a host and its www for one."""
    made = RequestPages(FrontierSettings.parse({}, "tester"), UrlIdentity("frontera.utils.fingerprint.sha1"), SeenHosts(), lambda *_: None)
    made.attach(lambda request: identity_of(request.url))
    return made


def identity_of(url: str) -> bytes:
    return FOLDED.fingerprint(ScrapyRequest(url))


def request(url: str, callback: bytes = b"parse", depth: int = 0) -> Request:
    """A start request, or a link where ``depth`` is above 0."""
    made = Request(url)
    made.meta.update({FINGERPRINT: identity_of(url), b"scrapy_callback": callback, b"scrapy_meta": {"depth": depth}})
    if depth:
        made.meta[IS_LINK] = True
    return made


def stored(page: NewPage | None) -> dict[Any, Any]:
    assert page is not None
    return unpack_record(page.record, page.host)


def moved(pages: RequestPages, before: str, after: str) -> None:
    handout: Any = SimpleNamespace(record=stored(pages.page_of(request(before))), page=page_of(identity_of(before)))
    move: Any = SimpleNamespace(target=SimpleNamespace(page=page_of(identity_of(after))), observation=SimpleNamespace(moved=after))
    pages.note_move(handout, move)


def test_start_page_under_its_other_host_is_stored_as_asked_for(pages: RequestPages) -> None:
    """Where two hosts are one page, its record has the host that it was found by."""
    pages.new_page(request("http://www.a.example/"), b"")
    link = pages.new_page(request("http://a.example/", b"page", 1), PARENT)
    assert link is not None
    assert link.host == "a.example"
    assert stored(link)["url"] == "http://a.example/"
    assert callbacks_of(stored(link)) == ("parse",)


@pytest.mark.parametrize(("after", "callback"), [("https://b.example/front", "parse"), ("http://a.example/other", "page")])
def test_start_page_keeps_its_callback_where_only_its_origin_has_moved(pages: RequestPages, after: str, callback: str) -> None:
    moved(pages, "http://a.example/front/", after)
    assert callbacks_of(stored(pages.new_page(request(after, b"page", 1), PARENT))) == (callback,)


def test_moved_page_is_as_deep_as_it_was(pages: RequestPages) -> None:
    moved(pages, "http://a.example/front", "http://a.example/other")
    assert stored(pages.new_page(request("http://a.example/other", depth=2), PARENT))["meta"][b"scrapy_meta"]["depth"] == 0


def test_shorter_way_to_a_page_is_news(pages: RequestPages) -> None:
    url = "http://a.example/page"
    for depth, news in ((3, 3), (3, None), (1, 1), (2, None)):
        page = pages.new_page(request(url, depth=depth), PARENT)
        assert (None if page is None else stored(page)["meta"][b"scrapy_meta"]["depth"]) == news


def test_start_pages_that_are_remembered_are_bounded(pages: RequestPages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one moves on and on."""
    monkeypatch.setattr(start_pages, "MOST_STARTS", 3)
    for at in range(9):
        moved(pages, f"http://a{at}.example/front", f"http://a{at + 1}.example/front")
    assert len(pages._starts) == 3


@pytest.mark.parametrize("depth", [-1, None])
def test_depth_that_is_none_counts_as_that_of_a_start_page(pages: RequestPages, depth: Any) -> None:
    start = request("http://a.example/")
    start.meta[b"scrapy_meta"]["depth"] = depth
    assert pages.new_page(start, b"") is not None
    assert stored(pages.new_page(request("http://a.example/", b"page", 2), PARENT))
    assert pages.known.depth(page_of(identity_of("http://a.example/")), 2) == 0


@pytest.mark.parametrize("value", [0, -3, True, "5", float("inf"), float("nan"), [1]])
@pytest.mark.parametrize("name", ["importance", b"importance"])
def test_importance_that_is_none_is_ignored_with_a_warning(
    pages: RequestPages, caplog: pytest.LogCaptureFixture, name: str | bytes, value: Any
) -> None:
    """Once a run, in plain Frontera as in Scrapy; the page is one like any other."""
    for n in range(2):
        new = pages.new_page(Request(f"http://a.example/{n}", meta={name: value}), b"")
        assert new is not None
        assert (new.stated, new.row.importance) == (0.0, 1.0)
    (line,) = caplog.messages
    assert line.startswith("meta['importance'] = ")
    assert "http://a.example/0: " in line
    assert "expected a number above 0; it is ignored" in line


@pytest.mark.parametrize("kind", [ACTIVE, ONCE, TRANSIENT])
@pytest.mark.parametrize("name", ["importance", "lastmod"])
@pytest.mark.parametrize("value", [Decimal(2), datetime(2024, 3, 5, tzinfo=UTC), object()])
def test_what_is_no_value_keeps_no_page_from_being_stored(pages: RequestPages, name: str, value: Any, kind: int) -> None:
    """It is left out of what is stored, also where it could not be stored."""
    given = Request(
        "http://a.example/", meta={KIND: kind, b"optimal_frontier_" + name.encode(): value, b"scrapy_meta": {name: value, "a": 1}}
    )
    new = pages.new_page(given, b"")
    assert new is not None
    assert unpack_record(new.record, new.host)["meta"][b"scrapy_meta"] == {"a": 1}
