"""What is a page, what comes back on every visit, and what a callback is told."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite
from plain_frontera import FINGERPRINTS
from scrapy import Request

from optimal_frontier.state.rows import ACTIVE

DOCS = Path(__file__).parents[2] / "docs"


def _visits(state: State, url: str | Request) -> int:
    visits: int = state.at(url).get("visits", 0)
    return visits


def test_start_requests_and_links_are_pages(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Both are fetched again and again, and a link to a known page is not another page."""
    spider = """
        class Tester(Base):
            paths = ["/links/static/a,counter/b"]
            def parse(self, response):
                for link in response.css("a"):
                    yield response.follow(link)
    """
    paths = ["/links/static/a,counter/b", "/static/a", "/counter/b"]
    with crawl(spider) as running:
        running.until(lambda: all(_visits(state, site.url(path)) >= 4 for path in paths))
        running.stop()
    assert state.counts["pages"] == 3
    for path in paths:
        assert site.count(path) == _visits(state, site.url(path))
        assert state.at(site.url(path))["observations"] == site.count(path) - 1
    assert state.at(site.url("/counter/b"))["changes"] == site.count("/counter/b") - 1
    assert state.at(site.url("/static/a"))["changes"] == 0


def test_of_two_links_of_a_page_to_one_page_the_first_counts(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """As with Scrapy's filter: spiders yield the links that they know, then all links."""
    spider = """
        class Tester(Base):
            paths = ["/links/counter/a,static/b,static/c"]
            def parse(self, response):
                note(parsed=response.url)
                yield response.follow("/counter/a", self.item)
                yield response.follow("/static/b", lambda response: note(item=response.url))
                for link in response.css("a"):
                    yield response.follow(link)
            def item(self, response):
                note(item=response.url)
    """
    with crawl(spider) as running:
        running.until(lambda: all(_visits(state, site.url(path)) >= 3 for path in ("/counter/a", "/static/c")))
        running.stop()
    assert {line["item"] for line in running.record if "item" in line} == {site.url("/counter/a"), site.url("/static/b")}
    parsed = {site.url("/links/counter/a,static/b,static/c"), site.url("/static/c")}
    assert {line["parsed"] for line in running.record if "parsed" in line} == parsed
    assert site.count("/static/b") == 1  # from memory, as it cannot be stored


def test_links_of_a_request_that_is_yielded_again_count_at_each_of_its_fetches(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """As of an API that is asked again and again by one and the same request, from memory."""
    spider = """
        class Tester(Base):
            paths = ["/static/a"]
            polls = 0
            def parse(self, response):
                yield scrapy.Request(response.urljoin("/static/b"), self.poll, method="POST", dont_filter=True)
            def poll(self, response):
                self.polls += 1
                yield scrapy.Request(response.urljoin("/counter/c"), self.item, cb_kwargs={"poll": self.polls})
                if self.polls < 2:
                    yield response.request
            def item(self, response, poll):
                note(item=poll)
    """
    rules = [{"pattern": "/static/a", "interval": 3600}]
    with crawl(spider, of_RULES=rules) as running:
        running.until(lambda: _visits(state, site.url("/counter/c")) >= 4)
        running.stop()
    assert [line["item"] for line in running.record if "item" in line][-1] == 2


ONCE = """
    class Tester(Base):
        def first(self):
            yield Request(SITE + "/counter/clock", self.clock)
            yield Request(SITE + "/static/not-revisited", meta={"revisit": False})
            yield Request(SITE + "/static/bypass", meta={"frontier_bypass": True})
            yield Request(SITE + "/static/post", method="POST", body=b"asked")
            yield Request(SITE + "/static/lambda", lambda response: note(url=response.url, status=200))
            yield Request(SITE + "/static/object", meta={"object": object()})
            yield Request(SITE + "/redirect/static/lambda-target", lambda response: note(url=response.url, status=200))

        def clock(self, response):
            seen = response.meta["optimal_frontier"]
            if seen["visits"] == 1:
                yield Request(SITE + "/static/unfiltered", dont_filter=True)
            if seen["visits"] > 1:  # by then first() has said that it is not
                yield Request(SITE + "/static/not-revisited")
            yield Request(SITE + "/static/post", method="POST", body=b"asked")
            yield Request(SITE + "/static/closure", lambda response: note(url=response.url, status=200, by=seen))
            note(clock=seen["visits"])
"""


def test_what_is_fetched_once(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """revisit False, other methods, bypasses, unfiltered links and what cannot be stored are fetched, and never again."""
    with crawl(ONCE, CONCURRENT_REQUESTS=4) as running:
        running.until(lambda: _visits(state, site.url("/counter/clock")) >= 6 and len(site.paths()) >= 14)
        running.stop()
    once = ["not-revisited", "bypass", "post", "lambda", "object", "lambda-target", "unfiltered", "closure"]
    assert {name: site.count(f"/static/{name}") for name in once} == dict.fromkeys(once, 1)
    assert site.of("/static/post")[0].body == b"asked"
    assert {line["url"] for line in running.record if "url" in line} == {site.url(f"/static/{name}") for name in once}
    assert state.counts["pages"] == 1
    for forgotten in ("bypass", "unfiltered", "lambda", "closure", "object", "post"):
        assert state.place(site.url(f"/static/{forgotten}")) is None
    assert running.log.count("cannot be stored") == 1
    assert running.stats["optimal_frontier/unstorable"] == 4
    assert "leases_expired" not in state.counts
    assert "Traceback" not in running.log


def test_once_means_once_after_a_restart_too(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """revisit False is known to the next crawl; another method, and dont_filter of start(), are for once in every crawl."""
    spider = """
        class Tester(Base):
            def first(self):
                for path in ("/static/not-revisited", "/static/once-a-crawl"):
                    yield Request(SITE + path, meta={"revisit": False}, dont_filter=path.endswith("crawl"))
                for _ in range(2):
                    yield Request(SITE + "/static/post", method="POST")
                    yield Request(SITE + "/static/unfiltered-post", method="POST", dont_filter=True)
                yield Request(SITE + "/static/" + os.path.basename(os.getcwd()) + str(os.getpid()))
    """
    for fetches in (5, 9):
        with crawl(spider, of_MIN_INTERVAL=600) as running:
            running.until(lambda wanted=fetches: len(site.fetches) == wanted and not state.counts.get("pending"))
            running.until(lambda: state.in_flight == 0)
            running.stop()
    assert site.count("/static/not-revisited") == 1
    assert [site.count(f"/static/{name}") for name in ("post", "unfiltered-post", "once-a-crawl")] == [2, 2, 2]
    assert state.namespace.command("HLEN", state.key("pages")) == 3, "requests that are no page pile up"


def test_the_first_visit_to_a_page_that_no_rule_has_fetched_once_any_more_counts(
    crawl: Crawler, site: MisbehavingSite, state: State
) -> None:
    """The rule is gone before the page is fetched: what it holds then is what the next visit compares with."""
    spider = """
        class Tester(Base):
            paths = ["/static/0", "/static/1"]
    """
    once = {"of_RULES": [{"pattern": "/static/", "revisit": False}], "of_CRAWL_RATE": 0.01}
    with crawl(spider, **once) as running:
        running.until(lambda: sum(_visits(state, site.url(f"/static/{n}")) for n in range(2)) == 1)
        running.stop()
    (waiting,) = (site.url(f"/static/{n}") for n in range(2) if not _visits(state, site.url(f"/static/{n}")))
    with crawl(spider, of_MIN_INTERVAL=600) as running:
        running.until(lambda: _visits(state, waiting) == 1)
        running.stop()
    row = state.at(waiting)
    assert (row["state"], bool(row["tag"]), bool(row["content"].strip(b"\0"))) == (ACTIVE, True, True)


def test_start_request_with_dont_filter_is_fetched_at_every_start(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Once a crawl, in full and with its callback, whatever is known of the page; the visit counts as any other."""
    site.answers["/static/0"] = 200, "<p>always the same</p>", {"ETag": '"same"'}
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/0", dont_filter=True)
                yield Request(SITE + "/static/0", dont_filter=True)
                yield Request(SITE + "/static/lambda", lambda response: None, dont_filter=True)
                yield Request(SITE + "/static/lambda", lambda response: None, dont_filter=True)

            def parse(self, response):
                note(url=response.url)
                if response.url.endswith("/0"):
                    yield Request(SITE + "/static/0", meta=response.meta)
                    yield Request(SITE + "/static/1", meta=response.meta, dont_filter=True)
    """
    for crawls in (1, 2):
        with crawl(spider, of_MIN_INTERVAL=600) as running:
            running.until(lambda wanted=crawls: [_visits(state, site.url("/static/0")), site.count("/static/lambda")] == [wanted] * 2)
            running.until(lambda wanted=crawls: site.count("/static/1") == wanted)
            running.until(lambda: state.in_flight == 0 and not state.counts["pending"])
            running.stop()
    assert site.count("/static/0") == site.count("/static/lambda") == 2
    assert not any("if-none-match" in fetch.headers for fetch in site.of("/static/0"))
    row = state.at(site.url("/static/0"))
    assert (row["observations"], row["changes"]) == (1, 0)
    assert state.place(site.url("/static/1")) is None


def test_start_requests_for_one_address_that_differ_are_all_fetched(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """One through each proxy, or for each cookiejar: the first is the page, the others are fetched once a crawl beside it."""
    spider = """
        class Tester(Base):
            def first(self):
                for number in (0, 1, 2, 1):
                    differing = {"meta": {"cookiejar": number}, "cookies": {"who": str(number)}, "cb_kwargs": {"number": number}}
                    yield Request(SITE + "/static/0", dont_filter=True, **differing)

            def parse(self, response, number):
                note(number=number)
    """
    for crawls in (1, 2):
        with crawl(spider, of_MIN_INTERVAL=600) as running:
            running.until(lambda wanted=crawls: site.count("/static/0") == 3 * wanted)
            running.until(lambda: state.in_flight == 0 and not state.counts["pending"])
            running.stop()
        assert sorted(one["number"] for one in running.record) == sorted([0, 1, 2] * crawls)
    assert sorted(fetch.headers["cookie"] for fetch in site.of("/static/0")) == sorted(["who=0", "who=1", "who=2"] * 2)
    assert state.at(site.url("/static/0"))["visits"] == 2


def test_complete_crawl_fetches_what_start_wants(crawl: Crawler, site: MisbehavingSite) -> None:
    """CLOSE_AFTER is reached when the second crawl begins; it closes after the start request all the same."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/counter/0", dont_filter=True)
                yield Request(SITE + "/counter/1")
    """
    for _ in range(2):
        with crawl(spider, of_CLOSE_AFTER=1, of_MIN_INTERVAL=600) as running:
            assert running.wait() == 0
    assert (site.count("/counter/0"), site.count("/counter/1")) == (2, 1)


def test_everything_of_a_request_comes_back_on_every_visit(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Callback, cb_kwargs, headers, cookies, priority and meta, with tuples, bytes and nesting, as first yielded."""
    spider = """
        class Tester(Base):
            def first(self):
                meta = {"nested": {"t": (1, [2, {"k": (3,)}]), 5: None}, "bytes": b"\\xff", "text": "\\u00fc"}
                yield Request(SITE + "/counter/0?a=1#f", self.special, meta=meta, cookies={"c": "1"}, headers={"X-Test": ["a", "b"]},
                              priority=-3, cb_kwargs={"one": 1, "pair": (1, (2, 3)), "plain": frozenset([1])}, flags=["flag"])

            def special(self, response, one, pair, plain):
                request = response.request
                mine = {k: request.meta[k] for k in ("nested", "bytes", "text", "is_start_request") if k in request.meta}
                mine["nested"]["t"][1].append("a callback may do what it likes with its copy")
                note(saw=repr((mine, one, pair, plain, request.priority, request.cookies, request.flags, request.dont_filter)),
                     retry=request.meta.get("dont_retry"))
                request.cb_kwargs["one"] = 2
    """
    with crawl(spider) as running:
        running.until(lambda: len(running.record) >= 3)
        running.stop()
    saw = [line["saw"] for line in running.record]
    assert len(set(saw)) == 1, saw
    assert "'t': (1, [2, {'k': (3,)}, 'a callback may" in saw[0]
    assert "1, (1, (2, 3)), frozenset({1}), -3, {'c': '1'}, ['flag'], False" in saw[0]
    assert [line["retry"] for line in running.record][:2] == [None, True]
    for fetch in site.of("/counter/0?a=1"):
        assert fetch.headers["x-test"] in ("a", "b")
        assert fetch.headers["cookie"] == "c=1"


def test_revisit_that_fails_is_not_retried_and_its_errback_is_called(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """dont_retry goes with revisits, and the errback comes back with them."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/fails-after/2", errback=self.failed)

            def failed(self, failure):
                note(failed=failure.value.response.status, visits=failure.value.response.meta["optimal_frontier"]["visits"])
    """
    url = site.url("/fails-after/2")
    with crawl(spider, RETRY_TIMES=3) as running:
        running.until(lambda: state.at(url).get("failures", 0) >= 1)
        running.until(lambda: any("failed" in line for line in running.record))
        running.stop()
    page = state.at(url)
    assert page["visits"] == 2
    assert page["observations"] == 1
    assert site.count("/fails-after/2") == page["attempts"]
    assert next(line for line in running.record if "failed" in line) == {"failed": 503, "visits": 2}


def test_first_visits_go_by_priority_then_importance_then_arrival(crawl: Crawler, site: MisbehavingSite) -> None:
    """With a budget that leaves time to queue all of them."""
    spider = """
        class Tester(Base):
            paths = ["/static/start"]
            def parse(self, response):
                if response.url.endswith("start"):
                    yield Request(SITE + "/static/e")
                    yield Request(SITE + "/static/f")
                    yield Request(SITE + "/static/d", meta={"importance": 2.5})
                    yield Request(SITE + "/static/g", priority=-1, meta={"importance": 100})
                    yield Request(SITE + "/static/b", priority=7)
                    yield Request(SITE + "/static/a", priority=7, meta={"importance": 3})
                    yield Request(SITE + "/static/c", priority=1)
    """
    with crawl(spider, of_CRAWL_RATE=4, of_MIN_INTERVAL=600) as running:
        running.until(lambda: len(site.fetches) == 8)
    assert [path[-1] for path in site.paths()[1:]] == list("abcdefg")


def test_importance_from_meta_updates_a_known_page(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A known page yielded again only updates its importance; without one nothing changes; a bad one is refused in one line."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/0", meta={"importance": 3})
                yield Request(SITE + "/counter/clock", self.clock)

            def clock(self, response):
                visits = response.meta["optimal_frontier"]["visits"]
                yield Request(SITE + "/static/0", meta={"importance": 7.5} if visits == 3 else {})
                yield Request(SITE + "/static/bad", meta={"importance": -1})
    """
    with crawl(spider) as running:
        running.until(lambda: state.at(site.url("/static/0")).get("importance") == 3)
        running.until(lambda: state.at(site.url("/static/0"))["importance"] == 7.5)
        running.until(lambda: _visits(state, site.url("/counter/clock")) > 5)
        running.stop()
    assert state.at(site.url("/static/0"))["importance"] == 7.5
    assert state.at(site.url("/static/bad"))["importance"] == 1
    assert running.log.count("expected a number above 0") == 1


def test_copies_of_response_meta_steal_no_lease(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Links and own downloads made with meta=response.meta are what they are, also if they fail; the page's observations go on."""
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
            async def parse(self, response):
                seen = response.meta["optimal_frontier"]
                note(url=response.url, changed=seen["changed"], retry=response.meta.get("dont_retry"))
                if response.url.endswith("/0") and seen["visits"] in (2, 4):
                    yield Request(SITE + "/links/x", meta=response.meta, callback=self.parse)
                    for own in (SITE + "/counter/own", "http://127.0.0.1:1/"):
                        try:
                            await self.own(Request(own, meta=response.meta))
                        except Exception:
                            note(failed=own, url=own)

            async def own(self, request):
                engine = self.crawler.engine
                if hasattr(engine, "download_async"):
                    await engine.download_async(request)
                else:
                    from scrapy.utils.defer import maybe_deferred_to_future
                    await maybe_deferred_to_future(engine.download(request))
    """
    first, second = site.url("/static/0"), site.url("/links/x")
    with crawl(spider) as running:
        running.until(lambda: _visits(state, first) >= 6 and _visits(state, second) >= 3)
        running.stop()
    assert "leases_expired" not in state.counts
    assert "observations_refused" not in state.counts
    for url in (first, second):
        page = state.at(url)
        assert page["attempts"] == page["visits"] == page["observations"] + 1
        assert page["changes"] == 0
        mine = [(line["changed"], line["retry"]) for line in running.record if line["url"] == url]
        assert mine[:2] == [(None, None), (False, True)]
    assert any("failed" in line for line in running.record)


def test_callback_is_told_whether_the_page_changed(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """None on the first visit, then True or False; change rate, interval and visits beside it."""
    spider = """
        class Tester(Base):
            paths = ["/static/0", "/counter/0"]
    """
    with crawl(spider) as running:
        running.until(lambda: min(_visits(state, site.url(path)) for path in ("/static/0", "/counter/0")) >= 4)
        running.stop()
    for path, changed in (("/static/0", False), ("/counter/0", True)):
        seen = [line["seen"] for line in running.record if line["url"] == site.url(path)]
        assert [s["changed"] for s in seen] == [None] + [changed] * (len(seen) - 1)
        assert [s["visits"] for s in seen] == list(range(1, len(seen) + 1))
        assert seen[-1]["change_rate"] > 0
        assert seen[-1]["interval"] >= 0.2 - 1e-9


def test_callback_on_change_spares_unchanged_pages(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """With CALLBACK_ON "change" the callback sees first visits and changes only."""
    spider = """
        class Tester(Base):
            paths = ["/static/0", "/counter/0"]
    """
    with crawl(spider, of_CALLBACK_ON="change") as running:
        running.until(lambda: min(_visits(state, site.url(path)) for path in ("/static/0", "/counter/0")) >= 4)
        running.stop()
    called = [line["url"] for line in running.record]
    assert called.count(site.url("/static/0")) == 1
    assert called.count(site.url("/counter/0")) == site.count("/counter/0")
    assert running.stats["optimal_frontier/callbacks_spared"] == site.count("/static/0") - 1


def test_callback_on_change_misses_nothing(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """What nobody can say is taken for a change: here the fingerprint settings are new. Failures reach the errback as ever."""
    spider = """
        class Tester(Base):
            def first(self):
                for path in ("/static/0", "/status/404"):
                    yield Request(SITE + path, errback=self.failed)

            def failed(self, failure):
                note(failed=failure.value.response.status)
    """
    for kind, more in (("text", 2), ("body", 1)):
        visits = _visits(state, site.url("/static/0")) + more
        with crawl(spider, of_CALLBACK_ON="change", of_FINGERPRINT=kind) as running:
            running.until(lambda visits=visits: _visits(state, site.url("/static/0")) >= visits)
            running.stop()
    told = [line["seen"] for line in running.record if "seen" in line]
    assert [seen["changed"] for seen in told] == [None, None]
    assert told[0]["visits"] == 1 < told[1]["visits"]
    assert 404 in [line.get("failed") for line in running.record]


def test_requests_from_memory_keep_to_the_budget_and_on_time(crawl: Crawler, site: MisbehavingSite) -> None:
    """What cannot be stored waits for its turn, not for the engine's heartbeat."""
    spider = """
        class Tester(Base):
            def first(self):
                for n in range(8):
                    yield Request(SITE + f"/static/{n}", lambda response: None)
    """
    with crawl(spider, of_CRAWL_RATE=4) as running:
        running.until(lambda: len(site.fetches) == 8)
    assert 1.4 < site.fetches[-1].at - site.fetches[0].at < 3


def test_requests_in_memory_that_never_end_do_not_pile_up(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Their page is not visited again before they end; other pages are."""
    spider = """
        class Tester(Base):
            paths = ["/static/0", *(f"/counter/{n}" for n in range(4))]

            def parse(self, response):
                if "counter" in response.url:
                    made = len(open("record.jsonl").readlines()) if os.path.exists("record.jsonl") else 0
                    note(made=made)
                    yield Request(SITE + f"/hang/{made}", lambda response: None)
    """
    with crawl(spider) as running:
        running.until(lambda: _visits(state, site.url("/static/0")) >= 6)
    assert sorted(path for path in site.paths() if "static" not in path) == [
        *(f"/counter/{n}" for n in range(4)),
        *(f"/hang/{n}" for n in range(4)),
    ]


def test_frontera_middleware_that_filters_does_not_hold_the_lease(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Frontera's settings are in force; a page that one of its middlewares takes out is over all the same, as is one that it breaks on."""
    middleware = """
        from frontera.core.components import Middleware
        import sys

        class Filter(Middleware):
            component_name = "filter"
            def frontier_start(self): pass
            def frontier_stop(self): pass
            def add_seeds(self, seeds): return seeds
            def links_extracted(self, request, links): return request
            def request_error(self, page, error): return page
            def page_crawled(self, response):
                if response.url.endswith("filtered"):
                    return None
                if response.url.endswith("broken"):
                    raise ValueError("broken Frontera middleware")
                return response
        sys.modules["filters"] = sys.modules["__main__"]

        class Tester(Base):
            paths = ["/static/filtered", "/static/broken", "/static/ok"]
    """
    with crawl(middleware, MIDDLEWARES=["filters.Filter"], of_MIN_INTERVAL=600) as running:
        running.until(lambda: all(state.at(site.url(f"/static/{name}")).get("attempts") for name in ("filtered", "broken", "ok")))
        running.until(lambda: state.in_flight == 0)
        running.stop()
    assert _visits(state, site.url("/static/ok")) == 1
    assert state.at(site.url("/static/filtered"))["failures"] > 0


def test_frontera_max_requests_ends_the_crawl(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """MAX_REQUESTS is Frontera's, and holds, also as text of the command line; MAX_NEXT_REQUESTS and another BACKEND do not hurt."""
    spider = """
        class Tester(Base):
            paths = [f"/static/{n}" for n in range(10)]
    """
    given = {"BACKEND": "frontera.contrib.backends.memory.FIFO", "MIDDLEWARES": [FINGERPRINTS]}
    with crawl(spider, MAX_REQUESTS="4", MAX_NEXT_REQUESTS="2", **given) as running:
        assert running.wait() == 0
    assert len(site.fetches) == 4
    assert "BACKEND = 'frontera.contrib.backends.memory.FIFO' is not used" in running.log
    place = state.place(site.url("/static/0"))
    assert place is not None
    assert b"fingerprint" not in place.value  # Frontera's middleware makes it again


@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "epollreactor.EPollReactor"])
def test_close_after_closes_the_spider(reactor: str, crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """The spider closes by itself when every page was fetched, on either reactor."""
    spider = """
        class Tester(Base):
            paths = ["/pages/30", "/status/404"]
            def parse(self, response):
                for link in response.css("a"):
                    yield response.follow(link)
    """
    with crawl(spider, of_CLOSE_AFTER=1, TWISTED_REACTOR=f"twisted.internet.{reactor}") as running:
        assert running.wait() == 0
    assert running.stats["reason"] == "finished"
    assert set(site.paths()) == {"/pages/30", "/status/404"} | {f"/static/{n}" for n in range(30)}
    assert state.in_flight == 0


def test_files_of_items_are_fetched_again_by_the_pipeline_of_the_docs(crawl: Crawler, site: MisbehavingSite) -> None:
    """One that failed at first, too: Scrapy's own pipeline remembers both for as long as the spider runs."""
    recipe = re.search(r"```python\n(from scrapy.pipelines.files .+?)```", (DOCS / "endless_feeds.md").read_text(), re.DOTALL)
    assert recipe is not None
    spider = """
        class Tester(Base):
            paths = ["/static/page"]
            custom_settings = {"ITEM_PIPELINES": {FreshFiles: 1}, "FILES_STORE": "files", "FILES_EXPIRES": 0}
            async def parse(self, response):
                yield {"file_urls": [SITE + "/counter/file", SITE + "/late"]}
    """
    site.answers["/late"] = (404, "", {})
    with crawl(recipe.group(1) + textwrap.dedent(spider)) as running:
        running.until(lambda: site.count("/counter/file") >= 3 and site.count("/late") >= 3)
        del site.answers["/late"]
        running.until(lambda: len(list(running.folder.glob("files/full/*"))) == 2)
        running.stop()
