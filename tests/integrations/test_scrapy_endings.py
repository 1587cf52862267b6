"""Every way in which a request can end, ends its lease."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from crawler import Crawler, crawler
from crawls import State
from misbehaving_site import MisbehavingSite
from scrapy import version_info as scrapy_version

from optimal_frontier.frontier.judging.outcomes import CAUSES

#: Name of an ending, what is fetched, and whether it counts as a visit.
ENDINGS: dict[str, tuple[str, bool]] = {
    "200": ("/static/ok", True),
    "304": ("/status/304", False),
    "404": ("/status/404", False),
    "410": ("/status/410", False),
    "5xx after retries": ("/status/503", False),
    "redirect": ("/redirect/static/target", True),
    "redirect loop": ("/loop/a", False),
    "redirect offsite": ("/away", False),
    "timeout": ("/hang", False),
    "connection lost": ("/drop", False),
    "connection refused": ("http://127.0.0.1:1/", False),
    "DNS error": ("http://nowhere.invalid/", False),
    "denied by robots.txt": ("/private/a", False),
    "IgnoreRequest in process_request": ("/static/ignored-request", False),
    "IgnoreRequest in process_response": ("/static/ignored-response", False),
    "exception in process_request": ("/static/broken-request", False),
    "exception in process_response": ("/static/broken-response", False),
    "wrong type from process_request": ("/static/wrong-type", False),
    "response from process_request": ("/static/made-up", True),
    "another request from process_request": ("/static/replaced", False),
    "IgnoreRequest in process_spider_input": ("/static/ignored-input", True),
    "exception in process_spider_input": ("/static/broken-input", True),
    "exception in process_spider_output": ("/static/broken-output", True),
    "exception in the callback": ("/static/broken-callback", True),
    "exception in a generator callback": ("/static/broken-generator", True),
    "exception in an async generator callback": ("/static/broken-async-generator", True),
    "async callback": ("/static/async-callback", True),
    "async generator callback": ("/static/async-generator", True),
    "slow async callback": ("/static/slow-callback", True),
    "errback without output": ("/status/500/silent", False),
    "errback that yields": ("/status/500/yielding", False),
    "errback that raises": ("/status/500/raising", False),
    "errback of a download error": ("/drop/errback", False),
    "errback that yields a copy": ("/drop/again", False),
    "errback that yields another page with its meta": ("/drop/steal", False),
}

SPIDER = """
    import asyncio

    class Middleware:
        def process_request(self, request, spider=None):
            if request.url.endswith("/hang"):
                request.meta["download_timeout"] = 1
            if request.url.endswith("ignored-request"):
                raise IgnoreRequest("not wanted")
            if request.url.endswith("broken-request"):
                raise ValueError("broken middleware")
            if request.url.endswith("wrong-type"):
                return "a string"
            if request.url.endswith("made-up"):
                return scrapy.http.TextResponse(request.url, body=b"made up")
            if request.url.endswith("replaced"):
                return Request(SITE + "/static/replacement")

        def process_response(self, request, response, spider=None):
            if request.url.endswith("ignored-response"):
                raise IgnoreRequest("not wanted")
            if request.url.endswith("broken-response"):
                raise ValueError("broken middleware")
            return response

    class SpiderMiddleware:
        def process_spider_input(self, response, spider=None):
            if response.url.endswith("ignored-input"):
                raise IgnoreRequest("not wanted")
            if response.url.endswith("broken-input"):
                raise ValueError("broken spider middleware")

        async def process_spider_output(self, response, result, spider=None):
            async for element in result:
                if response.url.endswith("broken-output"):
                    raise ValueError("broken spider middleware")
                yield element

    class Tester(Base):
        allowed_domains = ["127.0.0.1", "nowhere.invalid"]

        def first(self):
            with open("urls.txt") as urls:
                for url in urls.read().split():
                    errback = None
                    for ending in ("silent", "yielding", "raising", "drop/errback", "drop/again", "drop/steal"):
                        if url.endswith(ending):
                            errback = getattr(self, "errback_" + ending.rpartition("/")[2])
                    callback = self.parse
                    for ending in ("broken-callback", "broken-generator", "broken-async-generator", "async-callback", "async-generator",
                                   "slow-callback"):
                        if url.endswith("/" + ending):
                            callback = getattr(self, ending.replace("-", "_"))
                    yield Request(url, callback, errback=errback, meta={"handle_httpstatus_list": [304] if "304" in url else []})

        def parse(self, response):
            note(url=response.url, status=response.status, changed=response.meta["optimal_frontier"]["changed"])
            yield {"url": response.url}

        def broken_callback(self, response):
            raise ValueError("broken callback")

        def broken_generator(self, response):
            yield Request(SITE + "/static/found-before-the-break")
            raise ValueError("broken callback")

        async def broken_async_generator(self, response):
            yield {"url": response.url}
            raise ValueError("broken callback")

        async def async_callback(self, response):
            return [Request(SITE + "/static/found-by-async")]

        async def async_generator(self, response):
            yield Request(SITE + "/static/found-by-async-generator")

        async def slow_callback(self, response):
            await asyncio.sleep(0.5)
            yield {"url": response.url}

        def errback_silent(self, failure):
            note(errback=failure.request.url)

        def errback_yielding(self, failure):
            yield Request(SITE + "/static/found-by-errback")

        def errback_raising(self, failure):
            raise ValueError("broken errback")

        def errback_errback(self, failure):
            note(errback=failure.request.url)

        def errback_again(self, failure):
            yield failure.request.replace(url=failure.request.url, dont_filter=True, errback=None)

        def errback_steal(self, failure):
            yield Request(SITE + "/static/stolen", meta=failure.request.meta)
"""

#: Only /hang times out: while many tests run at once a robots.txt may take a second, and what it forbids is fetched without it.
QUIET = {"of_MIN_INTERVAL": 600, "RETRY_TIMES": 1}


@dataclass
class Outcome:
    """What one crawl through all endings left behind."""

    site: MisbehavingSite
    state: State
    pages: dict[str, dict[str, Any]]
    leased: dict[str, bool]
    in_flight: int
    stats: dict[str, Any]
    record: list[dict[str, Any]]
    log: str


def _url(site: MisbehavingSite, path: str) -> str:
    return path if path.startswith("http") else site.url(path)


#: Endings of good visits whose items may be lost: they are fetched again.
RAISING = {
    "IgnoreRequest in process_spider_input",
    "exception in process_spider_input",
    "exception in process_spider_output",
    "exception in the callback",
    "exception in a generator callback",
    "exception in an async generator callback",
}


@pytest.fixture(scope="module")
def outcome(redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """One crawl through all endings; what Redis held is read while the spider still runs."""
    namespace, folder = f"test-{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("endings")
    state = State(f"unix://{redis_socket}", namespace)
    with MisbehavingSite() as site:
        urls = {name: _url(site, path) for name, (path, _) in ENDINGS.items()}
        (folder / "urls.txt").write_text("\n".join(urls.values()))
        middlewares = {
            "DOWNLOADER_MIDDLEWARES": {"Middleware": 543},
            "SPIDER_MIDDLEWARES": {"SpiderMiddleware": 543},
            "ROBOTSTXT_OBEY": True,
        }
        with crawler(folder, site, redis_socket, namespace)(SPIDER, **middlewares, **QUIET) as running:
            running.until(lambda: all(state.at(url).get("attempts") for url in urls.values()))
            stolen = site.url("/static/stolen")
            running.until(lambda: site.count("/drop/again") >= 3)
            running.until(lambda: state.at(stolen).get("attempts") and not state.in_flight and state.counts["pending"] == 0)
            in_flight = state.in_flight
            leased = {name: state.is_leased(url) for name, url in urls.items()}
            running.stop()
            pages = {name: state.at(url) for name, url in urls.items()}
            yield Outcome(site, state, pages, leased, in_flight, running.stats, running.record, running.log)
    state.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_lease_ends_with(ending: str, outcome: Outcome) -> None:
    """The page was fetched once, its lease is over, and it was counted as what it was."""
    page = outcome.pages[ending]
    assert not outcome.leased[ending]
    assert page["attempts"] == 1
    assert page["visits"] == ENDINGS[ending][1]
    is_taken = page["visits"] == 1 and ending not in RAISING
    assert page["failures"] == (not is_taken)
    assert (CAUSES[page["cause"]] == "callback") == (ending in RAISING)
    assert page["observations"] == 0


def test_what_a_middleware_raises_is_why(outcome: Outcome) -> None:
    """Also where it looks at a response, which Scrapy passes no `process_exception`: a page that is refused is not asked for at once."""
    for where in ("process_request", "process_response"):
        assert CAUSES[outcome.pages[f"IgnoreRequest in {where}"]["cause"]] == "refused"
    assert outcome.stats["optimal_frontier/failed/ValueError"] == 2


def test_a_redirect_out_of_the_allowed_domains_is_refused(outcome: Outcome) -> None:
    """Scrapy leaves such a redirect out without a word: its page is not asked for again at once, only to be sent away again."""
    assert CAUSES[outcome.pages["redirect offsite"]["cause"]] == "refused"
    # "another request from process_request" ends without a word.
    assert outcome.stats["optimal_frontier/failed/dropped"] == 1


def test_no_lease_had_to_expire(outcome: Outcome) -> None:
    """in_flight returned to 0 while the spider ran, by what was reported and not by a timeout."""
    assert outcome.in_flight == 0
    assert "leases_expired" not in outcome.state.counts
    assert "observations_refused" not in outcome.state.counts


def test_what_callbacks_found_is_not_lost(outcome: Outcome) -> None:
    """Requests of every kind of callback and errback are in the frontier, those before an exception included."""
    for found in ("found-before-the-break", "found-by-async", "found-by-async-generator", "found-by-errback", "replacement"):
        assert outcome.state.at(outcome.site.url(f"/static/{found}"))["visits"] == 1, found


def test_errback_gives_no_lease_away(outcome: Outcome) -> None:
    """A request that an errback makes with the failed request's meta is a page of its own, judged by its own content."""
    assert outcome.state.at(outcome.site.url("/static/stolen"))["visits"] == 1
    assert outcome.site.count("/static/stolen") == 1
    # The failed request with its retry, and the errback's copy; Twisted may send any of them twice.
    assert outcome.site.count("/drop/again") >= 3


def test_first_visit_is_retried(outcome: Outcome) -> None:
    """RETRY_TIMES holds for first visits, and the retries belong to one lease."""
    assert outcome.site.count("/status/503") == 2
    assert outcome.site.count("/status/404") == 1
    assert outcome.site.count("/private/a") == 0


def test_callbacks_see_the_kind_of_visit(outcome: Outcome) -> None:
    """meta["optimal_frontier"] is there in every callback, failed visits included."""
    assert {line["changed"] for line in outcome.record if "changed" in line} == {None}
    assert any(line.get("status") == 304 for line in outcome.record)


@pytest.mark.skipif(scrapy_version < (2, 18), reason="allowed_domains is read once, when the spider opens")
def test_page_that_went_offsite_ends_its_lease(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A page that a changed allowed_domains excludes is not fetched, as with Scrapy's own scheduler."""
    spider = """
        class Shrink:
            def process_request(self, request, spider=None):
                Tester.allowed_domains = ["127.0.0.1"]

        class Tester(Base):
            allowed_domains = ["127.0.0.1", "localhost"]
            def first(self):
                yield Request(SITE.replace("127.0.0.1", "localhost") + "/static/0")
    """
    url = site.url("/static/0", "localhost")
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Shrink": 10}, **QUIET) as running:
        running.until(lambda: state.at(url).get("attempts"))
        assert state.in_flight == 0
    assert site.paths() == []
    assert state.at(url)["visits"] == 0


def test_http_cache_hit_ends_its_lease_and_gives_no_bit(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A page out of the cache is a visit, but says nothing about changes; a revisit goes past DummyPolicy's cache."""
    spider = """
        class Tester(Base):
            paths = ["/counter/0"]
    """
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "cache"}
    with crawl(spider, of_NAMESPACE=f"{state.namespace.name}-filler", **cached, **QUIET) as running:
        running.until(lambda: running.record)
        running.stop()
    assert site.count("/counter/0") == 1
    with crawl(spider, **cached, **(QUIET | {"of_MIN_INTERVAL": 1})) as running:
        running.until(lambda: state.at(site.url("/counter/0")).get("visits", 0) == 1 and state.in_flight == 0)
        assert site.count("/counter/0") == 1
        running.until(lambda: state.at(site.url("/counter/0"))["visits"] >= 3)
        running.stop()
    assert site.count("/counter/0") >= 3
    assert "leases_expired" not in state.counts
    assert running.stats["optimal_frontier/observations"] == state.counts["observations"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_clean_stop_finishes_what_is_under_way(number: int, crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Requests in flight are finished and counted, those not yet started are given back, none fails or expires."""
    spider = """
        class Tester(Base):
            paths = [f"/slow/0.5/{n}" for n in range(20)]
    """
    with crawl(spider, CONCURRENT_REQUESTS=5, **QUIET) as running:
        running.until(lambda: len(site.fetches) >= 3)
        running.signal(number)
        assert running.wait() == 0
    assert state.in_flight == 0
    assert not {"leases_expired", "failures", "observations_refused"} & state.counts.keys()
    visits = sum(state.at(site.url(f"/slow/0.5/{n}")).get("visits", 0) for n in range(20))
    assert visits == len(site.fetches) == state.counts["visits"]
    assert running.stats["reason"] == "shutdown"
    assert "Traceback" not in running.log


def test_stop_between_two_redirects_counts_as_no_attempt(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A redirect that was not followed because the spider closed has told nothing about the page."""
    spider = """
        class Close:
            @classmethod
            def from_crawler(cls, crawler):
                self = cls()
                self.crawler = crawler
                return self
            def process_response(self, request, response, spider=None):
                if response.status == 302:
                    os.kill(os.getpid(), 15)
                    import time; time.sleep(0.1)
                return response

        class Tester(Base):
            paths = ["/redirect/static/target"]
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Close": 950}, **QUIET) as running:
        assert running.wait() == 0
    assert state.in_flight == 0
    page = state.at(site.url("/redirect/static/target"))
    assert (page["visits"], page["failures"]) in {(0, 0), (1, 0)}


def test_double_interrupt_loses_nothing(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A forced stop leaves leases behind; they come back to the next crawl, which fetches the pages again."""
    spider = """
        class Tester(Base):
            paths = ["/hang", "/slow/0.2/a"]
    """
    with crawl(spider, of_CRAWL_RATE="auto", DOWNLOAD_TIMEOUT=60, **QUIET) as running:
        running.until(lambda: site.count("/hang") and state.at(site.url("/slow/0.2/a")).get("visits"))
        running.signal(signal.SIGINT)
        running.until(lambda: "SIGINT" in running.log or "shutdown" in running.log.lower())
        running.signal(signal.SIGINT)
        running.wait()
        assert "Exception in thread" not in running.log
    assert state.in_flight <= 1  # 0 where the engine still closed the scheduler
    # Instead of waiting for the owner's silence and the page's minimum interval.
    state.advance(20)
    with crawl(spider, of_CRAWL_RATE="auto", DOWNLOAD_TIMEOUT=1, **QUIET) as running:
        running.until(lambda: site.count("/hang") == 2)
        running.until(lambda: state.in_flight == 0)
        running.stop()
    assert site.count("/slow/0.2/a") == 1
    assert state.at(site.url("/hang"))["failures"] == 1
