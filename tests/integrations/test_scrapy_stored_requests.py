"""A stored request is the one that was yielded: its method, its values, and its identity by the user's own fingerprinter."""

from __future__ import annotations

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

METHODS = """
    def unnamed(function):
        def wrapper(self, *arguments):
            return function(self, *arguments)
        return wrapper

    def misnamed(function):
        def parse(self, *arguments):
            return function(self, *arguments)
        return parse

    class Shop(Base):
        def item(self, response):
            note(by="item of Shop", of=response.url.rpartition("/")[2])

        def failed(self, failure):
            note(by="failed of Shop", of=failure.value.response.url.rpartition("/")[2])

    class Tester(Shop):
        def first(self):
            if os.path.exists("record.jsonl"):
                return
            yield Request(SITE + "/static/overridden", super().item)
            yield Request(SITE + "/static/overriding", self.item)
            yield Request(SITE + "/static/unnamed", self.decorated)
            yield Request(SITE + "/static/misnamed", self.also_decorated)
            yield Request(SITE + "/static/private", self.__private)
            yield Request(SITE + "/status/404/overridden", errback=super().failed)
            yield Request(SITE + "/status/404/unnamed", errback=self.decorated_errback)

        def item(self, response):
            note(by="item", of=response.url.rpartition("/")[2])

        def failed(self, failure):
            note(by="failed", of=failure.value.response.url.rpartition("/")[2])

        @unnamed
        def decorated(self, response):
            note(by="decorated", of=response.url.rpartition("/")[2])

        @misnamed
        def also_decorated(self, response):
            note(by="also_decorated", of=response.url.rpartition("/")[2])

        def __private(self, response):
            note(by="private", of=response.url.rpartition("/")[2])

        @unnamed
        def decorated_errback(self, failure):
            note(by="decorated_errback", of=failure.value.response.url.rpartition("/")[2])
"""


def test_the_method_is_called_that_was_named(crawl: Crawler, state: State) -> None:
    """Its ``__name__`` may be that of another one. No name leads to one that is overridden: it is called once, from memory."""

    def called() -> list[tuple[str, str]]:
        return [(line["by"], line["of"]) for line in running.record if "by" in line]

    stored = {
        ("item", "overriding"),
        ("decorated", "unnamed"),
        ("also_decorated", "misnamed"),
        ("private", "private"),
        ("decorated_errback", "unnamed"),
    }
    once = {("item of Shop", "overridden"), ("failed of Shop", "overridden")}
    with crawl(METHODS) as running:
        running.until(lambda: set(called()) >= stored | once)
        running.stop()
    with crawl(METHODS) as running:
        before = len(called())
        running.until(lambda: set(called()[before:]) >= stored)
        running.stop()
    assert set(called()) == stored | once
    assert running.log.count(" held") == 0
    assert state.counts["pages"] == len(stored)


def test_a_callback_gets_its_named_fields_and_defaults(crawl: Crawler, state: State) -> None:
    """Values that would come back without them stay in memory, in meta as in cb_kwargs."""
    spider = """
        from collections import Counter, defaultdict, namedtuple

        Price = namedtuple("Price", "amount unit")

        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/0", self.named, cb_kwargs={"price": Price(9, "EUR")})
                yield Request(SITE + "/static/1", self.default, meta={"found": [defaultdict(list)]})
                yield Request(SITE + "/static/2", self.counted, meta={"words": Counter("abba")})

            def named(self, response, price):
                note(got=[price.amount, price.unit])

            def default(self, response):
                response.meta["found"][0]["a"].append(1)
                note(got=response.meta["found"])

            def counted(self, response):
                note(got=response.meta["words"]["missing"])
    """
    with crawl(spider) as running:
        running.until(lambda: len(running.record) == 3)
        running.stop()
    assert sorted((line["got"] for line in running.record), key=str) == [0, [9, "EUR"], [{"a": [1]}]]
    assert running.log.count("cannot be stored (a value of type") == 1
    assert running.stats["optimal_frontier/unstorable"] == 3
    assert "Traceback" not in running.log


def test_what_would_be_put_aside_as_damaged_stays_in_memory(crawl: Crawler, state: State) -> None:
    """A name of Scrapy's meta with a value of another type than Scrapy's, and a priority that is True: Scrapy fetches them."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/0", priority=True)
                yield Request(SITE + "/static/1", meta={"redirect_urls": "none"})
                yield Request(SITE + "/static/2", meta={"retry_times": 1.0})
                yield Request(SITE + "/static/3", cookies=[])
                yield Request(SITE + "/static/4", meta={"redirect_times": None})
                yield Request(SITE + "/static/5", meta={"download_slot": None})
    """
    with crawl(spider) as running:
        running.until(lambda: len({line["url"] for line in running.record}) == 6)
        running.stop()
    assert running.log.count("cannot be stored (its scrapy_request priority is of type bool)") == 1
    assert "is put aside" not in running.log
    assert running.stats["optimal_frontier/unstorable"] == 4
    assert state.counts["pages"] == 2


@pytest.mark.parametrize("made", ["str(crc32(request.url.encode())).encode()[-4:]", "b'fingerprint of ' + request.url.encode()"])
def test_a_fingerprinter_may_return_anything(crawl: Crawler, site: MisbehavingSite, state: State, made: str) -> None:
    """A few bytes, or a text whose first bytes say nothing: no request is lost, and none is fetched twice."""
    spider = f"""
        from zlib import crc32

        class Fingerprinter:
            def fingerprint(self, request):
                return {made}

        class Tester(Base):
            paths = [f"/static/{{n}}" for n in range(8)] * 2
    """
    with crawl(spider, REQUEST_FINGERPRINTER_CLASS="__main__.Fingerprinter", of_MIN_INTERVAL=600, of_CLOSE_AFTER=1) as running:
        assert running.wait() == 0
    assert sorted(site.paths()) == [f"/static/{n}" for n in range(8)]
    assert state.counts["pages"] == 8
    assert "Traceback" not in running.log
