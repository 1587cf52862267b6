"""Real crawls whose server loses everything, whose host is slow to be asked, and that sleep for longer than a lease."""

from __future__ import annotations

import signal
import time
from itertools import pairwise

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.state.namespace import SCHEMA

LINKED = """
    class Tester(Base):
        paths = ["/pages/12"]

        def parse(self, response):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)
"""


#: The same with the start of Scrapy's own spiders: their requests have dont_filter.
UNFILTERED = (
    LINKED
    + """
        async def start(self):
            for path in self.paths:
                yield Request(SITE + path, dont_filter=True)
    """
)


@pytest.mark.parametrize("how", [("DEL",), ("PEXPIRE", 900)], ids=["deleted", "run out"])
@pytest.mark.parametrize("spider", [LINKED, UNFILTERED], ids=["filtered", "dont_filter"])
def test_a_crawl_goes_on_from_its_start_when_the_server_has_lost_everything(
    crawl: Crawler, site: MisbehavingSite, state: State, spider: str, how: tuple[str | int, ...]
) -> None:
    """All pages are found again, one line says so, and a second crawler may join."""
    with crawl(spider, of_MIN_INTERVAL=5) as running:
        running.until(lambda: state.counts.get("fetched") == 13)
        keys = state.namespace.command("KEYS", state.key("")[: -len("{0}:")] + "*")
        assert keys
        name, *more = how
        state.namespace.commands([[name, key, *more] for key in keys])
        running.until(lambda: "is not where it was" in running.log)
        running.until(lambda: state.counts.get("fetched") == 13)
        with crawl(LINKED, of_MIN_INTERVAL=5) as other:
            other.until(lambda: "Frontier open" in other.log)
            other.stop()
        running.stop()
    assert running.log.count("is not where it was: it is empty, and the namespace was made anew") == 1
    assert "Traceback" not in running.log
    assert state.namespace.hash("meta")["spider"] == "tester"


def test_what_a_loss_left_damaged_ends_no_crawl(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Nor does it keep a new one from joining: the schema says that the namespace is ours."""
    with crawl(LINKED, of_MIN_INTERVAL=0.5) as running:
        running.until(lambda: state.counts.get("fetched") == 13)
        state.namespace.command("HSET", state.key("meta"), "schema", b"\x81\xff", "run", b"nan")
        state.namespace.command("DEL", state.key("d"))
        # The next damage comes once the crawl goes on, not while it joins.
        running.until(lambda: state.namespace.hash("meta")["schema"] == SCHEMA and state.namespace.command("EXISTS", state.key("d")))
        state.namespace.commands([["DEL", state.key("sources")], ["SET", state.key("sources"), "mine"]])
        state.namespace.command("HSET", state.key("meta"), "partitions", b"\x00")
        visits = state.counts.get("visits", 0)
        with crawl(LINKED, of_MIN_INTERVAL=0.5) as other:
            other.until(lambda: "Frontier open" in other.log)
            other.until(lambda: state.counts.get("visits", 0) > visits + 13)
            other.stop()
        running.stop()
    assert state.namespace.hash("meta")["partitions"] == "1"
    assert "Traceback" not in running.log + other.log


def test_pages_that_damage_took_away_are_found_again(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    with crawl(LINKED, of_MIN_INTERVAL=0.5) as running:
        running.until(lambda: state.counts.get("fetched") == 13)
        state.namespace.commands([["DEL", state.key("pages")], ["XADD", state.key("pages"), "*", "mine", "1"]])
        running.until(lambda: state.namespace.command("TYPE", state.key("pages")) == b"hash")
        running.until(lambda: state.namespace.command("HLEN", state.key("pages")) == 13)
        running.stop()
    assert state.namespace.command("TYPE", state.key("pages:damaged")) == b"stream"
    assert "Traceback" not in running.log


def test_a_crawl_that_is_complete_is_not_so_on_an_empty_server(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    with crawl(LINKED.replace("/pages/12", "/links/slow/3,pages/4"), of_CLOSE_AFTER=1) as running:
        running.until(lambda: site.count("/slow/3"))
        state.namespace.command("DEL", *state.namespace.command("KEYS", state.key("")[: -len("{0}:")] + "*"))
        assert running.wait() == 0
    assert state.counts["fetched"] >= 6


@pytest.mark.timing
def test_redirects_and_retries_keep_the_delay_of_a_host(crawl: Crawler, site: MisbehavingSite) -> None:
    spider = """
        class Tester(Base):
            paths = ["/redirect/static/1", "/status/500", "/redirect/static/2", "/static/3"]
    """
    with crawl(spider, of_HOST_DELAY=0.3, of_MIN_INTERVAL=600, RETRY_TIMES=2) as running:
        running.until(lambda: len(site.fetches) >= 8)
        running.stop()
    gaps = [after.at - before.at for before, after in pairwise(site.fetches)]
    assert min(gaps) >= 0.28, (gaps, site.paths())


def test_a_crawler_that_slept_for_longer_than_a_lease_sends_nothing_under_it(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """The request waited for its slot while the process stood still: it is dropped, and its page fetched by the other crawler, once."""
    spider = """
        class Tester(Base):
            paths = [f"/static/{n}" for n in range(4)]
    """
    slow = {"DOWNLOAD_DELAY": 1.5, "RANDOMIZE_DOWNLOAD_DELAY": False, "of_LEASE_SECONDS": 1, "of_MIN_INTERVAL": 600, "of_HOST_DELAY": 0}
    with crawl(spider, CONCURRENT_REQUESTS_PER_DOMAIN=4, **slow) as sleeper:
        sleeper.until(lambda: state.counts.get("fetched") == 1)  # the next request waits for its slot
        sleeper.signal(signal.SIGSTOP)
        with crawl(spider, of_LEASE_SECONDS=1, of_MIN_INTERVAL=600, of_HOST_DELAY=0) as other:
            other.until(lambda: state.counts.get("fetched") == 4)
            woken = time.monotonic()
            sleeper.signal(signal.SIGCONT)
            other.until(lambda: time.monotonic() > woken + 3.5)
            other.stop()
        sleeper.stop()
    assert {path: site.count(path) for path in site.paths()} == {f"/static/{n}": 1 for n in range(4)}
