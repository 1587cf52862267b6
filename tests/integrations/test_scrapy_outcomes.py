"""What a fetch shows that is no bit: moves, pages that are gone, block pages, failures; one crawl for all of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from crawler import Crawler, crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.rows import ACTIVE, DONE, RETIRED, split_tail

#: Failures, and the counter of each.
FAILURES = {
    "/hang": "timeout",
    "http://nowhere.invalid/": "dns",
    "http://127.0.0.1:1/": "connection",
    "/status/500": "server",
    "/status/403": "client",
    "/status/429": "throttled",
    "/private/a": "robots",
    "/cut/a": "truncated",
    "/loop/a": "redirects",
}
#: Hosts of pages whose host misbehaves as a whole.
DELETED, BLOCKED, BUSY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
COUNT = 6
HELD_S = 3
#: No page waits longer, failing or not.
MAX_INTERVAL_S = 1

SPIDER = """
    class Tester(Base):
        def first(self):
            with open("urls.txt") as urls:
                for url in urls.read().split():
                    yield Request(url, meta={"download_timeout": 0.5 if "hang" in url else 10})
"""


@dataclass
class Left:
    """What the crawl left behind."""

    site: MisbehavingSite
    state: State
    stats: dict[str, Any]
    #: When hosts began to misbehave, and when the crawl was stopped, by the monotonic clock.
    turned: float
    ended: float

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return path if path.startswith("http") else self.site.url(path, host)

    def page(self, path: str, host: str = "127.0.0.1") -> dict[str, Any]:
        return self.state.at(self.url(path, host))


@pytest.fixture(scope="module")
def left(redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """A crawl during which hosts begin to misbehave."""
    namespace, folder = f"test-{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("outcomes")
    state = State(f"unix://{redis_socket}", namespace)
    with MisbehavingSite(DELETED, BLOCKED, BUSY) as site:
        alone = ["/moved/static/target", "/redirect/static/elsewhere", "/static/gone", "/static/kept"]
        many = [site.url(f"/counter/{n}", host) for host in (DELETED, BLOCKED) for n in range(COUNT)]
        many += [site.url("/counter/a", BUSY), site.url("/counter/b", BUSY)]
        urls = [url if url.startswith("http") else site.url(url) for url in [*alone, *FAILURES, *many]]
        site.answers["/status/429"] = (429, "later", {"Retry-After": "0"})  # or the pages beside it would have to wait
        (folder / "urls.txt").write_text("\n".join(urls))
        settings = {
            "ROBOTSTXT_OBEY": True,
            "RETRY_TIMES": 0,
            "REDIRECT_MAX_TIMES": 2,
            "of_MIN_INTERVAL": 0.5,
            "of_MAX_INTERVAL": MAX_INTERVAL_S,
        }
        with crawler(folder, site, redis_socket, namespace)(SPIDER, **settings) as running:
            running.until(lambda: all(state.at(url).get("attempts") for url in urls))
            running.until(lambda: all(state.at(url).get("observations", 0) >= 2 for url in many))
            turned = time.monotonic()
            for n in range(COUNT):
                site.answers[f"{DELETED}/counter/{n}"] = (404, "gone", {})
                site.answers[f"{BLOCKED}/counter/{n}"] = (200, "<p>Are you human?</p>", {})
            site.answers["/static/gone"] = (410, "gone", {})
            for n in "ab":
                site.answers[f"{BUSY}/counter/{n}"] = (503, "later", {"Retry-After": str(HELD_S)})
            running.until(lambda: state.counts.get("gone_held", 0) >= COUNT and state.counts.get("blocked_pages", 0) >= COUNT)
            running.until(lambda: state.at(site.url("/static/gone"))["state"] == RETIRED)
            busy = [site.url(f"/counter/{n}", BUSY) for n in "ab"]
            running.until(lambda: any(state.at(url)["failures"] for url in busy) and time.monotonic() > turned + 2.5)
            ended = time.monotonic()
            running.stop()
            yield Left(site, state, running.stats, turned, ended)
    state.close()


def test_a_page_that_moved_for_good_is_fetched_where_it_is(left: Left) -> None:
    """Its record goes with it; its old name leads there, and no token is spent on the redirect again."""
    asked = left.site.paths()
    assert asked.count("/moved/static/target") == 1
    assert asked.count("/static/target") >= 2
    assert left.state.place(left.url("/moved/static/target")) == left.state.place(left.url("/static/target"))
    assert left.page("/moved/static/target")["visits"] == asked.count("/static/target")
    place = left.state.place(left.url("/moved/static/target"))
    assert place is not None
    assert url_of_record(split_tail(place.value)[1], host_of(left.url("/"))) == left.url("/static/target")
    assert left.state.counts["moved"] == 1


def test_a_page_that_is_elsewhere_for_now_is_asked_for_where_it_was(left: Left) -> None:
    """A 302 is no move."""
    assert left.site.count("/redirect/static/elsewhere") == left.site.count("/static/elsewhere") >= 2
    assert left.state.place(left.url("/static/elsewhere")) is None
    assert left.page("/redirect/static/elsewhere")["visits"] >= 2


@pytest.mark.parametrize(("path", "cause"), FAILURES.items())
def test_failure_gives_no_bit_and_is_counted_by_its_cause(path: str, cause: str, left: Left) -> None:
    """The page stays, unseen; what it waits for is known; it is asked again after its backoff only."""
    page = left.page(path)
    assert (page["state"], page["visits"], page["observations"]) == (ACTIVE, 0, 0)
    assert page["failures"] == page["attempts"]
    assert left.state.counts[f"failures_{cause}"] >= 1
    assert CAUSES[page["cause"]] == cause


def test_no_page_is_asked_for_more_often_than_its_backoff_allows(left: Left) -> None:
    """Waits between two fetches of a page that fails, which are no longer than MAX_INTERVAL either."""
    page = left.state.identity(left.url("/status/500"))[:PAGE_BYTES]
    at = [fetch.at for fetch in left.site.of("/status/500")]
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert all(wait >= min(backoff_s(page, n), MAX_INTERVAL_S) - 0.1 for n, wait in enumerate(waits, 1))


def test_a_page_that_is_gone_twice_is_retired(left: Left) -> None:
    """Once more asked for, not at once; its bits stay."""
    page = left.page("/static/gone")
    assert (page["state"], page["gone"]) == (RETIRED, 2)
    assert page["observations"] == page["visits"] - 1
    assert left.page("/static/kept")["state"] == ACTIVE


def test_pages_of_a_host_that_loses_all_of_them_are_held(left: Left) -> None:
    """Not one is retired, and all are asked for again some minutes later."""
    pages = [left.page(f"/counter/{n}", DELETED) for n in range(COUNT)]
    assert {page["state"] for page in pages} == {ACTIVE}
    # The first three failed alone.
    assert sum(page["failures"] >= 9 for page in pages) >= COUNT - 3
    assert left.state.counts["retired"] == 1


def test_block_pages_give_no_bits(left: Left) -> None:
    """But the two that it takes to know them for what they are; the others keep their content."""
    assert left.state.counts["blocked_pages"] >= COUNT
    pages = [left.page(f"/counter/{n}", BLOCKED) for n in range(COUNT)]
    contents = {left.page(f"/counter/{n}", BLOCKED)["content"] for n in range(COUNT)}
    assert len(contents) >= COUNT - 1
    assert all(page["state"] == ACTIVE and page["failures"] > 0 for page in pages)
    # A counter changes at every visit.
    assert all(page["observations"] == page["changes"] for page in pages)


def test_a_host_is_left_alone_for_as_long_as_it_asks(left: Left) -> None:
    """For all of its pages, but for those that were asked for at the same moment."""
    at = [fetch.at for fetch in left.site.fetches if fetch.headers["host"].startswith(BUSY) and fetch.at > left.turned]
    assert left.ended - at[0] > 1.0
    since_first = [each - at[0] for each in at]
    assert all(since < 0.5 or since > HELD_S - 0.3 for since in since_first)
    assert left.stats["optimal_frontier/host_holds"] >= 2  # the 429 is one


def test_a_host_that_redirects_to_one_that_is_away_is_no_silent_one(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Retried or not, as it answers: its pages fail, and the other ones of it are not left alone."""
    spider = """
        class Tester(Base):
            paths = [f"/away/{n}" for n in range(8)]

            def closed(self, reason):
                courier = self.crawler.engine._slot.scheduler.backend.session.courier
                note(silent=courier.dispatcher.recent.silent_hosts.hosts())
    """
    for n in range(8):
        site.answers[f"/away/{n}"] = (302, "", {"Location": "http://127.0.0.1:1/"})
    with crawl(spider, RETRY_TIMES=1, of_MIN_INTERVAL=600) as running:
        running.until(lambda: state.counts.get("failures_connection", 0) >= 8)
        running.stop()
        assert [seen["silent"] for seen in running.record] == [[]]


def test_a_page_whose_host_asks_for_fewer_requests_comes_again_when_it_may_and_not_at_once(crawl: Crawler, site: MisbehavingSite) -> None:
    """Scrapy would send it again twice in the same moment. What is to end waits for it, as nobody has seen it."""
    site.answers["/static/0"] = (429, "later", {"Retry-After": "2"})
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
    """
    with crawl(spider, RETRY_TIMES=2, of_CLOSE_AFTER=1, of_MIN_INTERVAL=600) as running:
        running.until(lambda: site.count("/static/0") > 0)
        site.answers.pop("/static/0")
        assert running.wait() == 0
    first, second, *_ = site.of("/static/0")
    assert second.at - first.at > 1.8
    assert "retry/count" not in running.stats


def test_what_is_fetched_once_is_tried_again_where_it_fails(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A link that is found again leads nobody there."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/document", meta={"revisit": False})
                yield Request(SITE + "/static/forbidden", meta={"revisit": False})
                yield Request(SITE + "/static/checked", meta={"revisit": False, "handle_httpstatus_list": [500]})
    """
    site.answers["/static/forbidden"] = (403, "", {})
    site.answers["/static/document"] = site.answers["/static/checked"] = (500, "", {})
    with crawl(spider, RETRY_TIMES=0, of_MIN_INTERVAL=0.1) as running:
        running.until(lambda: site.count("/static/document") == 2)
        site.answers.pop("/static/document")
        running.until(lambda: state.at(site.url("/static/document"))["state"] == DONE)
        running.stop()
    assert sorted(line["url"] for line in running.record if "url" in line) == [site.url("/static/checked"), site.url("/static/document")]
    assert [site.count(f"/static/{name}") for name in ("document", "forbidden", "checked")] == [3, 1, 1]
