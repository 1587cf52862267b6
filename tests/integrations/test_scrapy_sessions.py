"""A spider that logs in does so at every start, in every process, and again when its session has ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from crawler import Crawler, crawler
from crawls import Crawl, State
from member_site import MemberSite
from misbehaving_site import MisbehavingSite

PAGES = [f"/page/{n}" for n in range(6)]

SPIDER = """
    import asyncio
    from scrapy import FormRequest
    from scrapy.exceptions import DontCloseSpider
    from optimal_frontier.errors import LoggedOut
    from optimal_frontier.integrations.scrapy import OptimalScheduler, log_in

    log_in.PAUSES_S = (0.1, 0.1)

    class Tester(Base):
        user = "me"

        async def start(self):
            await asyncio.sleep(0.3)
            yield Request(SITE + "/login", self.fill_in, meta={"frontier_gate": True})
            for n in range(6):
                yield Request(SITE + f"/page/{n}")

        def fill_in(self, response):
            token = response.css("[name=token]::attr(value)").get()
            yield FormRequest(SITE + "/login", formdata={"user": self.user, "token": token}, callback=self.logged_in)

        def logged_in(self, response):
            if "welcome" not in response.text:
                raise LoggedOut

        def parse(self, response):
            if "for members" not in response.text:
                raise LoggedOut
            note(page=response.url, changed=response.meta["optimal_frontier"]["changed"], pid=os.getpid())
"""

#: What finds the end of a session by the status, and says so in a call.
MIDDLEWARE = """
    class Guard:
        @classmethod
        def from_crawler(cls, crawler):
            guard = cls()
            guard.crawler = crawler
            return guard

        def process_response(self, request, response, spider=None):
            if response.status == 403:
                OptimalScheduler.of(self.crawler).log_in_again(request)
            return response
"""


@pytest.fixture
def site() -> Iterator[MemberSite]:
    """A site of the test's own, in place of the usual one."""
    with MemberSite() as running:
        yield running


def _visits(state: State, site: MemberSite) -> list[int]:
    return [state.at(site.url(page)).get("visits", 0) for page in PAGES]


def _shows_no_trace(running: Crawl, state: State) -> None:
    assert "Traceback" not in running.log, running.log
    assert " ERROR: " not in running.log, running.log
    assert state.counts.get("changes", 0) == 0, "the log-in form passed for the page"
    assert "leases_expired" not in state.counts


def test_nothing_stored_is_fetched_before_the_log_in(crawl: Crawler, site: MemberSite, state: State) -> None:
    """Neither at the first start, nor at one that finds stored pages due; after kill -9 too. A cache answers no log-in."""
    for start in (1, 2, 3):
        with crawl(SPIDER, HTTPCACHE_ENABLED=True) as running:
            running.until(lambda least=2 * start: min(_visits(state, site)) >= least)
            assert site.sessions == start
            running.kill() if start == 1 else running.stop()
    assert site.refused == []
    assert site.count("/login") == 6
    assert state.place(site.url("/login")) is None
    assert state.counts["pages"] == state.namespace.command("HLEN", state.key("pages")) == len(PAGES)


def test_session_that_ends_is_begun_again(crawl: Crawler, site: MemberSite, state: State) -> None:
    """No page loses a visit or gains a change by it, and answers that come at once cause one log-in."""
    site.pages_a_session = 20
    with crawl(SPIDER, of_MIN_INTERVAL=0.5) as running:
        running.until(lambda: site.sessions >= 4 and min(_visits(state, site)) >= 10)
        running.stop()
    assert {line["changed"] for line in running.record} == {None, False}
    # Good ones that were under way when the session ended are made again.
    assert 0 <= len(running.record) - sum(_visits(state, site)) <= len(PAGES) * site.sessions
    # The first 20 pages of each session were served, and one round of requests refused.
    assert all(served == 20 for session, served in site.served.items() if int(session) < site.sessions)
    assert len(site.refused) <= len(PAGES) * site.sessions
    assert running.stats["optimal_frontier/log_ins"] in (site.sessions - 1, site.sessions)
    _shows_no_trace(running, state)


def test_each_process_logs_in_itself(tmp_path: Path, site: MemberSite, redis_socket: str, namespace: str, state: State) -> None:
    """Two of one namespace: each gets pages by a cookie of its own, and each goes on when its session ends."""
    site.pages_a_session = 25
    first, second = (crawler(tmp_path / name, site, redis_socket, namespace) for name in "ab")
    with first(SPIDER) as one, second(SPIDER) as other:
        one.until(lambda: len(one.record) >= 40 and len(other.record) >= 40)
        assert other.process.poll() is None
        one.stop()
        other.stop()
    assert site.sessions >= 4
    for running in (one, other):
        assert running.stats["optimal_frontier/log_ins"] >= 1
        _shows_no_trace(running, state)


def test_middleware_finds_the_end_of_a_session(crawl: Crawler, site: MemberSite, state: State) -> None:
    """By the status, with a call; a page that stays forbidden counts as a failure, and does not stop the others."""
    site.refusal, site.pages_a_session, site.forbidden = 403, 30, "/page/3"
    settings = {"DOWNLOADER_MIDDLEWARES": {"Guard": 543}}
    with crawl(SPIDER + MIDDLEWARE, **settings) as running:
        running.until(lambda: site.sessions >= 3 and all(n >= 8 for n in _visits(state, site)[:3]))
        running.stop()
    assert state.at(site.url("/page/3"))["failed"] >= 1
    assert state.at(site.url("/page/3"))["visits"] == 0
    assert len(site.refused) <= 4 * len(PAGES) * site.sessions
    _shows_no_trace(running, state)


def test_log_in_that_fails_again_and_again_closes_the_spider(crawl: Crawler, site: MemberSite, state: State) -> None:
    """With a reason that says so, and without a visit."""
    site.knows = "somebody else"
    with crawl(SPIDER) as running:
        assert running.wait() == 0
    assert running.stats["reason"] == "optimal_frontier_log_in_failed"
    assert "the log-in failed after 3 log-ins in a row; the spider is closed" in running.log
    assert running.record == []
    assert "Traceback" not in running.log


LOST = """
    import asyncio

    class Lost:
        def process_request(self, request, spider=None):
            if "lost" in request.url:
                raise IgnoreRequest("lost")

    class Tester(Base):
        allowed_domains = ["127.0.0.1"]

        async def start(self):
            path = os.environ["GATED"]
            yield Request(path if path.startswith("http") else SITE + path, meta={"frontier_gate": True})
            yield Request(SITE + "/page/1")
            while True:
                await asyncio.sleep(0.05)
"""


@pytest.mark.parametrize("path", ["/lost", "http://offsite.invalid/", "/refused"])
def test_gate_opens_when_its_request_is_lost(path: str, crawl: Crawler, site: MemberSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped by a middleware, offsite, refused: the crawl goes on; a start() that never ends holds up nothing."""
    site.refusal = 403
    monkeypatch.setenv("GATED", path)
    with crawl(LOST, DOWNLOADER_MIDDLEWARES={"Lost": 500}) as running:
        running.until(lambda: "/page/1" in site.paths())
        running.stop()
    if not path.startswith("http"):  # Scrapy drops what is offsite before it gets to us
        assert running.log.count("has meta frontier_gate, and failed") == 1, running.log


SEARCHES = """
    class Tester(Base):
        def first(self):
            yield Request(SITE + "/counter/form")

        def parse(self, response):
            note(form=response.text)
            for query in "abc":
                url = SITE + "/slow/" + (os.environ["SECONDS"] if query == "c" else "0.1") + "/" + query
                yield {
                    "post": lambda: Request(url, self.found, method="POST"),
                    "function": lambda: Request(url, lambda response: self.found(response)),
                    "object": lambda: Request(url, self.found, meta={"object": object()}),
                }[os.environ["KIND"]]()

        def found(self, response):
            note(found=response.url[-1])
"""


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("kind", ["post", "function", "object"])
def test_what_is_in_memory_and_was_found_on_a_page_is_not_lost(
    kind: str, end: str, tmp_path: Path, redis_socket: str, namespace: str, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is done when it is: a crawl that ends before has to visit the page again, and finds the request again."""
    with MisbehavingSite() as site:
        crawl = crawler(tmp_path, site, redis_socket, namespace)
        form = site.url("/counter/form")
        monkeypatch.setenv("KIND", kind)
        monkeypatch.setenv("SECONDS", "30")
        with crawl(SEARCHES, of_MIN_INTERVAL=600, of_CRAWL_RATE=2 if end == "kill" else 0.2) as running:
            if end == "kill":
                running.until(lambda: site.count("/slow/30/c"))
                running.kill()
            else:  # the second one waits for the budget
                running.until(lambda: site.count("/slow/0.1/a"))
                running.stop()
        assert state.at(form)["visits"] == 0
        state.advance(20.0)  # its lease expires
        monkeypatch.setenv("SECONDS", "0.2")
        with crawl(SEARCHES, of_MIN_INTERVAL=600, of_CLOSE_AFTER=1) as running:
            assert running.wait() == 0
    assert state.at(form)["visits"] == 1
    found = [line["found"] for line in running.record if "found" in line]
    assert found.count("a") == found.count("b") == 2
    assert found.count("c") == 1


def test_start_that_yields_nothing_stops_no_crawl(crawl: Crawler, state: State) -> None:
    """Stored pages wait for its first request, and not for ever; what is fetched from memory keeps HOST_DELAY."""
    with MisbehavingSite() as site:
        first = f"""
            class Tester(Base):
                def first(self):
                    yield Request("{site.url("/static/0")}")
        """
        silent = f"""
            import asyncio
            from optimal_frontier.integrations.scrapy import gate
            gate.FIRST_S = 2.0

            class Tester(Base):
                async def start(self):
                    note(began=True)
                    await asyncio.sleep(3600)
                    yield

                def parse(self, response):
                    for n in range(3):
                        yield Request("{site.url("/static/")}" + str(n), method="POST", callback=self.ended)

                def ended(self, response):
                    pass
        """
        with crawl(first) as running:
            running.until(lambda: site.fetches)
            running.stop()
        known = len(site.fetches)
        with crawl(silent, of_HOST_DELAY=0.4, of_MIN_INTERVAL=600) as running:
            running.until(lambda: any("began" in line for line in running.record))
            assert len(site.fetches) == known
            running.until(lambda: len(site.fetches) == known + 4)
            running.stop()
    assert "start() has yielded nothing for 2 s; stored pages are fetched meanwhile" in running.log
    posts = [fetch.at for fetch in site.fetches[known:] if fetch.method == "POST"]
    assert min(later - earlier for earlier, later in pairwise(posts)) >= 0.35
