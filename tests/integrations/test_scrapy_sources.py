"""Sitemaps and feeds as sources, in one real crawl: what they announce is fetched at once, and one that lies loses its say.

The budget is spent on pages that are pinned to a short interval, so that no other page is visited soon by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from announcing_site import AnnouncingSite
from crawler import crawler
from crawls import Crawl, State
from optimal_frontier.estimation.announcers import Announcer

SPIDER = """
from optimal_frontier.integrations.scrapy import AnnouncedPages

class Tester(AnnouncedPages, Base):
    source_urls = [SITE + "/feed"]
    source_rules = [("/news/", "parse_news"), ("/(page|static)/", "parse")]

    def first(self):
        for at in range(40):
            yield Request(SITE + f"/sink?{at}", priority=-1, callback=self.ignore, meta={"importance": 1e7})

    def ignore(self, response):
        pass

    def parse(self, response):
        note(url=response.url, by="parse", lastmod=response.meta.get("lastmod"), depth=response.meta["depth"])

    def parse_news(self, response):
        note(url=response.url, by="parse_news", lastmod=response.meta.get("lastmod"))
"""
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


def announce(running: Crawl, found: Found, source: str, path: str) -> None:
    """Change a page, and note how long after the source's next visit it is fetched."""
    pages = found.site.news if path.startswith("/news") else found.site.pages
    for version in range(5):
        changed = time.monotonic()
        pages[path] = (f"version {version}", time.time())
        running.until(lambda since=changed: found.site.times(path, since) and found.site.times(source, since))
        found.delays[path] = found.site.times(path, changed)[0] - found.site.times(source, changed)[0]
        if found.delays[path] > 0:
            return  # or it was visited by itself in between


@pytest.fixture(scope="module")
def found(redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    namespace = "test-sources"
    with AnnouncingSite() as site:
        state = State(f"unix://{redis_socket}", namespace)
        found = Found(site, state)
        start = crawler(tmp_path_factory.mktemp("sources"), site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        sources = [site.url("/robots.txt"), site.url("/always_now.xml", "localhost")]
        with start(SPIDER, of_SOURCES=sources, of_RULES=PINNED, of_CRAWL_RATE=60, of_MIN_INTERVAL=0.1) as running:
            running.until(lambda: state.counts.get("fetched", 0) >= 6 + 3 + 4 + 40 + 5 and state.plan)
            announce(running, found, "/sitemap-1.xml.gz", "/page/0")
            announce(running, found, "/feed", "/news/0")
            announce(running, found, "/feed", "/news/new")
            running.until(lambda: state.counts.get("announcements_distrusted", 0) >= 4)
            site.damaged = True
            running.until(lambda: state.counts.get("sources_damaged", 0) >= 2)
            running.until(lambda: state.counts.get("announcements_right", 0) >= 2)
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


def test_what_is_announced_is_fetched_within_a_second_of_the_source(found: Found) -> None:
    """A changed page of a sitemap, one of a feed, and one that is new."""
    assert found.delays.keys() == {"/page/0", "/news/0", "/news/new"}
    assert min(found.delays.values()) > 0.0
    assert max(found.delays.values()) < 1.0


def test_an_honest_announcer_keeps_its_say_and_a_noisy_one_loses_it(found: Found) -> None:
    kept = {name: Announcer.parse(text) for name, text in found.state.namespace.hash("announcers").items()}
    honest = f"127.0.0.1:{found.site.port}"
    assert kept[f"{honest} sitemap"].right >= 1
    assert kept[f"{honest} feed"].right >= 1
    assert not kept[f"{honest} sitemap"].is_silenced
    liar = kept[f"localhost:{found.site.port} sitemap"]
    assert liar.is_silenced
    assert liar.right == 0
    counts = found.state.counts
    assert counts["put_forward"] >= counts["announcements_wrong"] + counts["announcements_right"]
    assert counts["announcements_wrong"] < counts["announcements_distrusted"] + 32


def test_pages_that_nobody_announced_were_left_alone(found: Found) -> None:
    """Nothing was yielded for entries that had not changed."""
    assert all(len(found.site.times(f"/page/{at}")) <= 3 for at in range(1, 6))
    assert found.stats["optimal_frontier/enqueued"] < 40 + 50 + found.state.counts["announced"]  # sinks, and what is read once


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
