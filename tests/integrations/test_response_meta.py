"""What spiders may do with ``response.meta``, where a companion of the request is."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import pytest
from crawler import Crawler
from crawls import State
from leased import handed_out
from misbehaving_site import MisbehavingSite
from scrapy import Request
from scrapy.exporters import CsvItemExporter, JsonItemExporter, JsonLinesItemExporter, PickleItemExporter, XmlItemExporter
from scrapy.http import HtmlResponse

from optimal_frontier.integrations.scrapy.converters import forget_runtime
from optimal_frontier.integrations.scrapy.lease import LEASE, LOCAL, Lease
from optimal_frontier.integrations.scrapy.local_requests import Local


@pytest.mark.parametrize("name", [LEASE, LOCAL])
def test_meta_of_a_response_can_be_copied_in_depth(name: str) -> None:
    """`copy.deepcopy(response.meta)` for a link: what it had of the fetch is known, and left out, as in a plain copy."""
    request = Request("http://a.example/", meta={"mine": [1]})
    response = HtmlResponse(request.url, body=b"<p>read by the callback", request=request)
    response.css("p")
    handout = handed_out(request.url)
    companion = Local(request) if name == LOCAL else Lease(handout, None, request, added=frozenset({"dont_retry"}))
    companion.response = response
    request.meta.update({name: companion, "dont_retry": True, "download_slot": "a.example"})
    meta = copy.deepcopy(response.meta)
    forget_runtime(meta)
    assert meta == {"mine": [1]} | ({"dont_retry": True} if name == LOCAL else {})
    assert meta["mine"] is not request.meta["mine"]


@pytest.mark.parametrize("exporter", [JsonItemExporter, JsonLinesItemExporter, CsvItemExporter, XmlItemExporter, PickleItemExporter])
@pytest.mark.parametrize("name", [LEASE, LOCAL])
def test_meta_of_a_response_can_be_exported(name: str, exporter: Any) -> None:
    """An item that is ``dict(response.meta)``, or has it in a field: ours is empty there."""
    request = Request("http://a.example/", errback=lambda _: None)
    companion = Local(request) if name == LOCAL else Lease(handed_out(request.url), request, request)
    request.meta.update({name: companion, "depth": 1})
    file = io.BytesIO()
    to = exporter(file)
    to.start_exporting()
    to.export_item(dict(request.meta))
    to.export_item({"meta": request.meta, "depth": 1})
    to.finish_exporting()
    exported = file.getvalue()
    assert b"depth" in exported
    assert b"handout" not in exported
    if exporter is JsonItemExporter:
        ours = {name: {}, "depth": 1}
        assert json.loads(exported) == [ours, {"meta": ours, "depth": 1}]
        assert json.loads(json.dumps(request.meta)) == ours


def test_companions_are_told_apart() -> None:
    """Though all are empty to others."""
    one, other = (Lease(handed_out("http://a.example/"), None, None) for _ in range(2))
    assert (one == one, one == other, one != other, len({one, other}), bool(one)) == (True, False, True, 2, True)


def test_items_made_of_meta_are_in_feeds(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
            def parse(self, response):
                yield dict(response.meta)
    """
    with crawl(spider, FEEDS={"items.jsonl": {"format": "jsonlines"}}) as running:
        running.until(lambda: state.at(site.url("/static/0")).get("visits"))
        running.stop()
    item = json.loads((running.folder / "items.jsonl").read_text().splitlines()[0])
    assert item[LEASE] == {}
    assert item["optimal_frontier"]["visits"] == 1


def test_meta_of_a_response_that_was_stored_can_be_used(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """In ``cb_kwargs`` of a stored request, or in a file: what is left of ours there is no companion of anything."""
    spider = """
        class Tester(Base):
            def first(self):
                stored = {"_optimal_frontier_lease": {}, "_optimal_frontier_local": {}, "depth": 1}
                yield Request(SITE + "/static/0", meta=stored)
                yield Request(SITE + "/static/1", self.bypassing, meta=stored | {"frontier_bypass": True})

            def bypassing(self, response):
                note(by="bypassing")

            def parse(self, response):
                yield Request(SITE + "/static/2", self.second, cb_kwargs={"of": response.meta})

            def second(self, response, of):
                yield Request(SITE + "/static/3", self.third, meta=of)

            def third(self, response):
                pass
    """
    with crawl(spider) as running:
        for path in "/static/0", "/static/3":
            running.until(lambda path=path: state.at(site.url(path)).get("visits"))
        running.until(lambda: running.record)
        running.stop()
    assert "Traceback" not in running.log
