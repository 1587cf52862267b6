"""No item is lost: pages whose callback or pipeline raised are fetched again, in full and with a callback, until it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawler import Crawler, crawler
from validating_site import ValidatingSite

from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.checking import check_state

PAGES = 12
#: Pages of which the first parser makes no item.
BROKEN = 8

PARSER = """
class Tester(Base):
    def first(self):
        for n in range(12):
            yield Request(f"{SITE}/page/{n}")

    def parse(self, response):
        n = int(response.url.rpartition("/")[2])
        note(seen=n, changed=response.meta["optimal_frontier"]["changed"])
        %s
        note(item=n, changed=response.meta["optimal_frontier"]["changed"])
"""
BUG = "if n < 8: raise KeyError('price')"

KINDS = """
from scrapy.exceptions import DropItem

class Pipeline:
    def process_item(self, item, *_):
        if item["kind"] == "dropped":
            raise DropItem("not wanted")
        if item["kind"] == "item" and item["seen"] == 1:
            raise OSError("no space left")
        return item

class AsyncPipeline:
    async def process_item(self, item, *_):
        if item["kind"] == "async-item" and item["seen"] == 1:
            raise RuntimeError("no such table")
        return item

class Tester(Base):
    custom_settings = {"ITEM_PIPELINES": {Pipeline: 1, AsyncPipeline: 2}}
    seen = {}

    def first(self):
        for n, name in enumerate(["plain", "dropped", "item", "async-item"]):
            yield Request(f"{SITE}/page/{n}?{name}")
        yield Request(f"{SITE}/page/4?generator", callback=self.generator)
        yield Request(f"{SITE}/page/5?coroutine", callback=self.coroutine)
        yield Request(f"{SITE}/page/6?async-generator", callback=self.async_generator)
        yield Request(f"{SITE}/page/7?once", callback=self.coroutine, meta={"revisit": False})
        yield Request(f"{SITE}/status/404/errback", errback=self.errback)

    def item(self, response):
        kind = response.url.partition("?")[2]
        self.seen[kind] = self.seen.get(kind, 0) + 1
        note(kind=kind, changed=response.meta["optimal_frontier"]["changed"])
        return {"kind": kind, "seen": self.seen[kind]}

    def parse(self, response):
        yield self.item(response)

    def generator(self, response):
        item = self.item(response)
        yield item
        if item["seen"] == 1:
            raise ValueError("in the middle")
        yield item

    async def coroutine(self, response):
        if self.item(response)["seen"] == 1:
            raise ValueError("awaited")

    async def async_generator(self, response):
        item = self.item(response)
        yield item
        if item["seen"] == 1:
            raise ValueError("in the middle")

    def errback(self, failure):
        note(kind="errback")
        raise ValueError("in the errback")
"""


@pytest.fixture
def site() -> Iterator[ValidatingSite]:
    """Pages that never change, and that answer 304 to whoever asks."""
    with ValidatingSite("honest", [1e9] * PAGES) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, site: ValidatingSite, redis_socket: str, namespace: str) -> Crawler:
    return crawler(tmp_path, site, redis_socket, namespace)


@pytest.mark.parametrize("callback_on", ["fetch", "change"])
def test_every_page_has_an_item_once_the_parser_is_fixed(start, site, state, callback_on):
    """A bug in the parser, a restart without it: 12 of 12, and what the site answers 304 to was asked for in full."""
    given = {"of_CALLBACK_ON": callback_on, "LOG_LEVEL": "CRITICAL"}
    with start(PARSER % BUG, **given) as running:
        running.until(lambda: state.counts.get("visits", 0) >= 2 * PAGES and (304 in dict(site.statuses).values()))
        counts = state.counts
        running.stop()
    assert len({line["item"] for line in running.record if "item" in line}) == PAGES - BROKEN
    assert counts["lost_callback"] == BROKEN
    assert CAUSES[state.at(site.url("/page/0"))["cause"]] == "callback"
    assert state.memory(site.url("/page/0")).lost.error == "KeyError: 'price'"
    before = len(running.record)
    with start(PARSER % "pass", **given) as running:
        running.until(lambda: {line.get("item") for line in running.record} >= set(range(PAGES)))
        running.until(lambda: state.counts["lost_callback"] == 0)
        running.stop()
    again = {line["item"]: line["changed"] for line in reversed(running.record[before:]) if "item" in line}
    assert [again[n] for n in range(BROKEN)] == [None] * BROKEN, "what no callback has taken is new"
    assert check_state(state.namespace).violations == []


def test_whatever_raises_is_tried_again(start, site, state):
    """Callbacks of all kinds, partial output, pipelines; `DropItem` is no error. Unchanged pages have no callback otherwise."""
    twice = {"item", "async-item", "generator", "coroutine", "async-generator", "once"}
    with start(KINDS, of_CALLBACK_ON="change", LOG_LEVEL="CRITICAL") as running:

        def calls() -> Counter[str]:
            return Counter(line["kind"] for line in running.record)

        running.until(lambda: all(calls()[kind] >= 2 for kind in twice) and site.count("/page/0?plain") > 5 and calls()["errback"] >= 2)
        running.until(lambda: not {name for name, n in state.counts.items() if name.startswith("lost_") and n} or calls()["errback"] > 3)
        running.stop()
    found = calls()
    assert {kind for kind, n in found.items() if n > 1} == twice | {"errback"}
    assert {found[kind] for kind in twice} == {2}
    assert (found["plain"], found["dropped"]) == (1, 1)
    assert (state.counts["failures_item"], state.counts["failures_callback"]) == (2, 5)
    assert state.counts.get("lost_item") == 0
    assert check_state(state.namespace).violations == []


FROM_MEMORY = """
class Tester(Base):
    def first(self):
        yield Request(SITE + "/page/0")

    def parse(self, response):
        yield Request(SITE + "/page/1", callback=lambda response: self.item(response))

    def item(self, response):
        note(seen=1)
        if len(open("record.jsonl").readlines()) == 1:
            raise ValueError("the first time")
"""


def test_a_page_whose_child_in_memory_raised_yields_it_again(start, state):
    """Once more, and no more than that."""
    with start(FROM_MEMORY, LOG_LEVEL="CRITICAL") as running:
        running.until(lambda: len(running.record) == 2)
        visits = state.counts["visits"]
        running.until(lambda: state.counts["visits"] >= visits + 3)
        running.stop()
    assert len(running.record) == 2
    assert state.counts["failures_callback"] == 1


HELD = """
class Tester(Base):
    def first(self):
        if %r:
            for n in range(12):
                yield Request(f"{SITE}/page/{n}", callback=self.item)

    def %s(self, response):
        note(item=response.url)
"""


def test_pages_whose_callback_is_missing_are_held_and_come_back(start, site, state):
    """They are not fetched and do not fail; one line says how many. A spider that has the method again fetches them."""
    given = {"of_CONDITIONAL_GET": False}
    with start(HELD % (True, "item"), **given) as running:
        running.until(lambda: state.counts.get("visits", 0) >= PAGES)
        running.stop()
    fetched, failures = Counter(site.paths()), state.counts.get("failures", 0)
    with start(HELD % (False, "renamed"), **given) as running:
        running.until(lambda: state.counts.get("held") == PAGES)
        running.stop()
    assert Counter(site.paths()) == fetched
    assert state.counts.get("failures", 0) == failures
    lines = [line for line in running.log.splitlines() if " held" in line]
    assert len(lines) == 1
    assert "12 pages are held, as the spider has no method 'item'" in lines[0]
    assert check_state(state.namespace).violations == []
    with start(HELD % (False, "item"), **given) as running:
        running.until(lambda: state.counts.get("held") == 0)
        running.until(lambda: all(site.count(path) > before for path, before in fetched.items()))
        running.stop()
    assert "12 held pages come back" in running.log


RENDERED = """
class Rendered(Request):
    def __init__(self, *arguments, script=None, **values):
        self.script = script
        super().__init__(*arguments, **values)

if %r:
    class Rendered2(Rendered):
        pass

class Renderer:
    def process_request(self, request, spider=None):
        if isinstance(request, Rendered):
            request.headers["X-Script"] = request.script

class Tester(Base):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Renderer: 800}}

    def first(self):
        if not os.path.exists("record.jsonl"):
            yield Rendered(SITE + "/page/0", script="one")
            yield Rendered2(SITE + "/page/1", script="two")
            yield Rendered(SITE + "/page/2", script=lambda: None)

    def parse(self, response):
        note(seen=response.url[-1], kind=type(response.request).__name__, script=response.request.headers["X-Script"].decode())
"""


def test_requests_are_of_their_own_class_again(start, site, state):
    """Middlewares tell by it what to do. Where it is not loaded their pages are held, and what cannot be stored stays in memory."""
    of_first, of_second = ("0", "Rendered", "one"), ("1", "Rendered2", "two")

    def seen(since=0):
        return [(line["seen"], line["kind"], line["script"]) for line in running.record[since:]]

    with start(RENDERED % True, of_CONDITIONAL_GET=False) as running:
        running.until(lambda: set(seen()) >= {of_first, of_second} and len(running.record) > 6)
        running.stop()
    assert set(seen()) == {of_first, of_second}
    assert "TypeError" in running.log
    with start(RENDERED % False, of_CONDITIONAL_GET=False) as running:
        before = len(running.record)
        running.until(lambda: state.counts.get("held") == 1 and len(running.record) > before + 3)
        running.stop()
    assert set(seen(before)) == {of_first}
    assert "1 page is held, as no class '__main__.Rendered2' of requests is loaded" in running.log
    with start(RENDERED % True, of_CONDITIONAL_GET=False) as running:
        before = len(running.record)
        running.until(lambda: set(seen(before)) == {of_first, of_second})
        running.stop()
    assert state.counts["held"] == 0
    assert check_state(state.namespace).violations == []


SWALLOWING = """
import sys
from frontera.core.components import Middleware

class Swallow(Middleware):
    component_name = "swallow"
    def frontier_start(self): pass
    def frontier_stop(self): pass
    def add_seeds(self, seeds): return seeds
    def links_extracted(self, request, links): return request
    def page_crawled(self, response): return response
    def request_error(self, page, error):
        if page.url.endswith("0"):
            raise ValueError("broken Frontera middleware")

sys.modules["swallowing"] = sys.modules["__main__"]
"""


def test_held_pages_are_in_no_hands_whatever_frontera_middlewares_do(start, site, state):
    """One that raises at an error, or keeps it to itself."""
    given = {"of_CONDITIONAL_GET": False}
    with start(HELD % (True, "item"), **given) as running:
        running.until(lambda: state.counts.get("visits", 0) >= PAGES)
        running.stop()
    with start(SWALLOWING + HELD % (False, "renamed"), MIDDLEWARES=["swallowing.Swallow"], **given) as running:
        running.until(lambda: state.counts.get("held") == PAGES)
        running.until(lambda: state.in_flight == 0)
        running.stop()


AGAIN = """
class Tester(Base):
    def first(self):
        yield Request(f"{SITE}/page/0", callback=self.listing)

    def listing(self, response):
        name = "item" if os.path.exists("again") else "old"
        yield Request(f"{SITE}/page/1", callback=getattr(self, name), cb_kwargs={"name": name}, headers={"X-Name": name})

    def old(self, response, name):
        note(by="old", name=name, sent=response.request.headers["X-Name"].decode())
        open("again", "w").close()

    def item(self, response, name):
        note(by="item", name=name, sent=response.request.headers["X-Name"].decode())
"""


def test_a_known_page_takes_the_request_that_is_yielded_now(start, site, state):
    """Another callback, cb_kwargs and headers, in the process that has yielded the page before."""
    with start(AGAIN, of_CONDITIONAL_GET=False) as running:
        running.until(lambda: any(line["by"] == "item" for line in running.record))
        running.stop()
    assert {tuple(line.values()) for line in running.record} == {("old",) * 3, ("item",) * 3}
