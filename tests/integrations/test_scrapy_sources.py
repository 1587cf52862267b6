"""Sitemaps and feeds as sources, in one real crawl: what they tell is fetched soon, and one that lies learns to be worth nothing.

The budget is spent on many pages that never change, so that no page is visited soon by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from statistics import median
from typing import Any

import pytest
from announcing_site import AnnouncingSite
from crawler import crawler
from crawls import Crawl, State

from optimal_frontier.cli.ping_commands import describe
from optimal_frontier.state.source_records import all_sources

SPIDER = """
from optimal_frontier.integrations.scrapy import AnnouncedPages

class Tester(AnnouncedPages, Base):
    source_urls = [SITE + "/feed"]
    source_rules = [("/news/", "parse_news"), ("/(page|static)/", "parse")]

    def first(self):
        for at in range(200):
            yield Request(SITE + f"/still?{at}", priority=-1, callback=self.ignore)

        for at in range(4):
            yield Request(SITE.replace("127.0.0.1", "localhost") + f"/quiet/{at}", callback=self.ignore)

    def ignore(self, response):
        pass

    def parse(self, response):
        note(url=response.url, by="parse", lastmod=response.meta.get("lastmod"), depth=response.meta["depth"])

    def parse_news(self, response):
        note(url=response.url, by="parse_news", lastmod=response.meta.get("lastmod"))
"""
#: One of these tests holds the crawl to the clock; the others look at the same crawl, so that there is one.
pytestmark = pytest.mark.timing
PINNED = [
    {"pattern": r"sitemap|feed|always_now|robots", "interval": 0.5},
]


@dataclass
class Found:
    """What was seen of the crawl."""

    site: AnnouncingSite
    state: State
    record: list[dict[str, Any]] = field(default_factory=list)
    delays: dict[str, float] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    log: str = ""


def announce(running: Crawl, found: Found, source: str, paths: Iterable[str]) -> None:
    """Change one page, and note how long after the source's next visit it is fetched.

    A page may be visited by itself in between, which tells nothing: then the next of ``paths`` is changed, for the rate of a page that was
    caught changing rises.
    """
    for path in paths:
        pages = found.site.news if path.startswith("/news") else found.site.pages
        changed = time.monotonic()
        pages[path] = (f"version {changed}", time.time())
        running.until(lambda path=path, since=changed: found.site.times(path, since) and found.site.times(source, since))
        found.delays[path] = found.site.times(path, changed)[0] - found.site.times(source, changed)[0]
        if found.delays[path] > 0.0:
            return
        del found.delays[path]


@pytest.fixture(scope="module")
def found(redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    namespace = "test-sources"
    with AnnouncingSite() as site:
        state = State(f"unix://{redis_socket}", namespace)
        found = Found(site, state)
        start = crawler(tmp_path_factory.mktemp("sources"), site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        sources = [site.url("/robots.txt"), site.url("/always_now.xml", "localhost")]
        with start(SPIDER, of_SOURCES=sources, of_RULES=PINNED, of_CRAWL_RATE=60, of_MIN_INTERVAL=0.1) as running:
            running.until(lambda: state.counts.get("fetched", 0) >= 6 + 3 + 4 + 100, 60.0)
            running.until(lambda: state.counts.get("fetched", 0) >= 6 + 3 + 4 + 4 + 200 + 5 and state.plan, 60.0)
            pages, news = cycle(f"/page/{at}" for at in range(6)), cycle(f"/news/{at}" for at in range(3))
            for _ in range(3):
                announce(running, found, "/sitemap-1.xml.gz", islice(pages, 6))
            for _ in range(2):
                announce(running, found, "/feed", islice(news, 6))
            announce(running, found, "/feed", ["/news/new"])
            running.until(lambda: state.counts.get("signals", 0) >= 70, 60.0)
            site.damaged = True
            running.until(lambda: state.counts.get("sources_damaged", 0) >= 2)
            running.until(lambda: state.counts.get("signals_true", 0) >= 2)
            visited = len(site.times("/feed"))
            running.until(lambda: len(site.times("/feed")) >= visited + 3)
            running.stop()
            found.record, found.stats, found.log = running.record, running.stats, running.log
        yield found
        state.close()


def test_every_entry_is_a_page(found: Found) -> None:
    """Through robots.txt, an index and a zipped sitemap; each with the callback of its rule, and its lastmod."""
    seen = {(line["url"].partition(str(found.site.port))[2], line["by"]) for line in found.record}
    pages = {(f"/page/{at}", "parse") for at in range(6)} | {(f"/static/{at}", "parse") for at in range(4)}
    assert seen == pages | {(f"/news/{at}", "parse_news") for at in (0, 1, 2, "new")}
    assert all(line["lastmod"] for line in found.record)


def test_an_entry_that_is_no_address_takes_no_other_with_it(found: Found) -> None:
    """The sitemap begins with one; `test_every_entry_is_a_page` sees the others."""
    assert "Traceback" not in found.log


def test_what_is_told_is_fetched_soon_after_the_source(found: Found) -> None:
    """Changed pages of a sitemap, some of a feed, and one that is new. By themselves they would be visited in 4 s and more."""
    assert sum(path.startswith("/page/") for path in found.delays) >= 2
    assert len(found.delays) >= 4
    assert "/news/new" in found.delays
    assert median(found.delays.values()) < 2.0


def test_a_truthful_source_is_worth_much_and_a_lying_one_nothing(found: Found) -> None:
    known = {name: describe(name, record) for name, record in all_sources(found.state.namespace).items()}
    honest = f"127.0.0.1:{found.site.port}"
    liar = known[f"localhost:{found.site.port} sitemap"]
    assert known[f"{honest} sitemap"]["precision"] > 10 * liar["precision"]
    assert liar["signals"] > 10
    assert liar["precision"] < 0.1


def test_now_in_every_entry_costs_nothing(found: Found) -> None:
    """But for a few visits to find that out, its pages are visited like others of that host of which nobody tells."""
    told, quiet = (sum(len(found.site.times(f"/{kind}/{at}")) for at in range(4)) / 4 for kind in ("static", "quiet"))
    assert told <= 1.3 * quiet + 6


def test_a_source_is_a_page_with_a_memory_of_its_entries(found: Found) -> None:
    """Its fingerprint is that of its entries: a feed with another build date every second has not changed."""
    feed = found.state.at(found.site.url("/feed"))
    assert feed["observations"] >= 5
    assert feed["changes"] <= feed["observations"] - 2
    assert found.state.memory(found.site.url("/sitemap-1.xml.gz")).entries


def test_a_damaged_feed_is_named_once_and_read_as_far_as_it_goes(found: Found) -> None:
    warnings = [line for line in found.log.splitlines() if "damaged" in line]
    assert len(warnings) == 1
    assert "/feed" in warnings[0]
    assert "Traceback" not in found.log
