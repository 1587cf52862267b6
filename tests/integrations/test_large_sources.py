"""A source that is large keeps the crawl neither from starting requests nor from reading small ones."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from announcing_site import AnnouncingSite
from crawler import crawler
from leased import handed_out
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response

from optimal_frontier.integrations.scrapy import sources as module
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.integrations.scrapy.sources import ANNOUNCES, Sources, without_body
from optimal_frontier.integrations.scrapy.spider_middleware import FrontierSpiderMiddleware
from optimal_frontier.settings import FrontierSettings

SPIDER = """
from optimal_frontier.integrations.scrapy import AnnouncedPages

class Tester(AnnouncedPages, Base):
    def source_filter(self, entries):
        note(active=self.crawler.engine.scraper.slot.active_size)
        yield from entries

    def parse(self, response):
        pass
"""


def test_the_body_of_a_source_holds_up_no_request_while_its_entries_come(redis_socket: str, namespace: str, tmp_path: Path) -> None:
    with AnnouncingSite() as site:
        start = crawler(tmp_path, site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        with start(SPIDER, of_SOURCES=[site.url("/long.xml")], of_CRAWL_RATE=50) as running:
            running.until(lambda: site.times("/long/99"))
            running.stop()
        assert len(site._body("/long.xml")) > 5000
    # What Scrapy counts for a response of any size.
    assert running.record[0]["active"] == 1024


def test_a_response_without_a_body_says_the_rest() -> None:
    request = Request("http://a.org/")
    before = HtmlResponse("http://a.org/x", 203, {"A": "b"}, b"\xe4\xf6", ["partial"], request, encoding="latin-1")
    after = without_body(before)
    assert (type(after), after.url, after.status, after.headers, after.body) == (HtmlResponse, before.url, 203, before.headers, b"")
    assert (after.flags, after.request) == (["partial"], request)
    assert type(without_body(Response("http://a.org/x"))) is Response


def test_a_response_that_cannot_be_made_without_a_body_stays() -> None:
    class Mine(Response):
        def __init__(self, url: str, raw: object) -> None:
            super().__init__(url)

    response = Mine("http://a.org/x", object())
    assert without_body(response) is response


def test_the_crawl_has_time_while_entries_of_a_source_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rests = []

    async def pause(seconds: float) -> None:
        rests.append(seconds)

    async def entries() -> Any:
        for number in range(20):
            yield number

    async def passed_on(**meta: Any) -> list[int]:
        response = Response("http://a.org/x", request=Request("http://a.org/x", meta=meta))
        return [element async for element in middleware.process_spider_output_async(response, entries())]

    monkeypatch.setattr(module, "pause", pause)
    middleware = FrontierSpiderMiddleware(SimpleNamespace(engine=None))
    assert asyncio.run(passed_on()) == list(range(20))
    assert rests == []
    assert asyncio.run(passed_on(**{ANNOUNCES: True})) == list(range(20))
    assert len(rests) == 2
    assert min(rests) > 0


def test_small_sources_do_not_wait_for_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    is_free = threading.Event()

    def read(body: bytes, *_: Any) -> None:
        if len(body) > module._SMALL:
            assert is_free.wait(10)

    async def in_thread(threads: Any, function: Any) -> Any:
        return await asyncio.wrap_future(threads.submit(function))

    monkeypatch.setattr(module, "read_source", read)
    monkeypatch.setattr(module, "in_thread", in_thread)
    sources = Sources(Spider("pages"), FrontierSettings.parse({}), lambda *_: None)

    async def both() -> list[str]:
        done = []

        async def one(name: str, body: bytes) -> None:
            request = Request(f"http://a.org/{name}", meta={ANNOUNCES: True})
            lease = request.meta[LEASE] = Lease(handed_out(request.url), None, request)
            await sources.read(lease, request, Response(request.url, body=body))
            done.append(name)
            is_free.set()

        await asyncio.gather(one("large", b" " * (module._SMALL + 1)), one("small", b" "))
        return done

    monkeypatch.setattr(Spider, "parse", lambda *_: None)
    assert asyncio.run(both()) == ["small", "large"]
    sources.close()
