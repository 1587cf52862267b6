"""Last-Modified and lastmod in real crawls, of hosts that tell the truth and hosts that do not.

An interval of 100 s or more is needed for an age to count, so the test moves the clock in Redis on, and the site's Date with it.
"""

from __future__ import annotations

import time

import pytest
from crawler import Crawler
from crawls import Crawl, State
from misbehaving_site import MisbehavingSite

from optimal_frontier.estimation.trust import Trust
from optimal_frontier.state.memory import Memory

#: Seconds by which the clock jumps while a page waits.
JUMP_S = 1000.0


def jump(state: State) -> None:
    """Move the clock of the stored crawl on; nothing is in flight."""
    state.advance(JUMP_S)


def trust_of(state: State, site: MisbehavingSite, host: str) -> Trust:
    return Trust(*state.words(f"{host}:{site.port}").header)


SPIDER = """
class Tester(Base):
    def first(self):
        for host in ("127.0.0.1", "localhost"):
            for at in range(4):
                yield Request(SITE.replace("127.0.0.1", host) + f"/modified/{host}/{at}")
"""


def crawl_in_jumps(running: Crawl, state: State, rounds: int) -> None:
    """Let every page be visited once between two jumps."""
    running.until(lambda: state.counts.get("fetched", 0) >= 8)
    for _ in range(rounds):
        before = state.counts.get("observations", 0)
        jump(state)
        running.until(lambda seen=before: state.counts.get("observations", 0) >= seen + 8)


def test_honest_hosts_are_trusted_and_liars_are_not(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """127.0.0.1 says when its pages changed, localhost that they all did just now."""
    site.ages = {"127.0.0.1": 400.0, "localhost": 0.0}
    timing = {"of_MIN_INTERVAL": 500.0, "of_MAX_INTERVAL": 600.0, "of_RESOLVE_INTERVAL": 0.2}
    # Whoever asks this site whether a page has changed is told no.
    with crawl(SPIDER, of_CRAWL_RATE=400, of_CONDITIONAL_GET=False, **timing) as running:
        crawl_in_jumps(running, state, 7)
        running.stop()
    honest, liar = trust_of(state, site, "127.0.0.1"), trust_of(state, site, "localhost")
    assert honest.is_earned
    assert honest.wrong == 0.0
    assert not liar.is_earned
    assert liar.wrong == pytest.approx(liar.changed)
    assert state.counts["ages"] > 0
    assert state.counts["ages_distrusted"] >= 12


@pytest.mark.parametrize(("max_age", "fetches"), [(3600, 1), (0, 3)])
def test_a_cached_answer_teaches_no_age(crawl: Crawler, site: MisbehavingSite, state: State, max_age: int, fetches: int) -> None:
    """HttpCache under RFC2616 answers what is fresh from its cache, and asks whether the rest still holds; the headers are old in both."""
    site.ages, site.max_age = {"127.0.0.1": 400.0}, max_age
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy"}
    spider = "class Tester(Base):\n    paths = ['/modified/127.0.0.1/0']"
    with crawl(spider, of_MIN_INTERVAL=500.0, of_MAX_INTERVAL=600.0, **cached) as running:
        running.until(lambda: state.counts.get("fetched", 0) == 1)
        for visits in (2, 3):
            jump(state)
            running.until(lambda wanted=visits: state.counts["visits"] >= wanted)
        running.stop()
    assert site.count("/modified/127.0.0.1/0") >= fetches
    assert (site.count("/modified/127.0.0.1/0") == 1) == (fetches == 1)
    assert trust_of(state, site, "127.0.0.1") == Trust()
    # The cache asked, not we; its 304s are counted all the same.
    assert state.counts.get("not_modified", 0) == (0 if fetches == 1 else 2)
    assert (state.counts.get("bytes_saved", 0) > 0) == (fetches > 1)
    assert state.memory(site.url("/modified/127.0.0.1/0")) == Memory()


def test_lastmod_of_a_request_is_noted_and_nonsense_is_named_once(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A page that is yielded again tells its latest word, and has the meta that it was yielded with last."""
    modified = time.time() - 50_000
    spider = f"""
    class Tester(Base):
        paths = ["/static/0"]

        def parse(self, response):
            super().parse(response)
            if response.url.endswith("/static/0"):
                # Once: what was said last counts, and the page itself is to have the last word.
                if not hasattr(self, "has_told"):
                    self.has_told = True
                    yield Request(SITE + "/static/1", meta={{"lastmod": "2020-01-01", "mine": 1}})
                yield Request(SITE + "/static/2", meta={{"lastmod": "last week"}})
                yield Request(SITE + "/static/3", meta={{"lastmod": ["next week"]}})
            if response.url.endswith("/static/1"):
                note(meta=[response.meta["lastmod"], response.meta.get("mine")])
                yield Request(SITE + "/static/1", meta={{"lastmod": {modified}}})
    """
    with crawl(spider) as running:
        running.until(lambda: [site.count(f"/static/{at}") > 2 for at in range(4)] == [True] * 4)
        running.until(lambda: {line["meta"][1] for line in running.record if "meta" in line} == {1, None})
        # What is said of a page under way is said again when its visit has ended.
        running.until(lambda: (said := state.memory(site.url("/static/1")).lastmod) is not None and said.modified > modified - 1)
        running.stop()
    assert [at for at in range(4) if state.memory(site.url(f"/static/{at}")).lastmod] == [1]
    noted = state.memory(site.url("/static/1")).lastmod
    assert noted is not None
    assert noted.modified == pytest.approx(modified)
    assert {tuple(line["meta"]) for line in running.record if "meta" in line} == {("2020-01-01", 1), (modified, None)}
    warnings = [line for line in running.log.splitlines() if "lastmod" in line]
    assert len(warnings) == 1
    assert "'last week'" in warnings[0]
    assert site.url("/static/2") in warnings[0]


def test_a_sitemap_spider_passes_lastmod_on(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """As docs/settings.md shows it."""
    site.sitemap = [("/static/1", "2024-03-05"), ("/static/2", None)]
    spider = """
    from scrapy.spiders import SitemapSpider

    class Tester(SitemapSpider):
        name = "tester"
        sitemap_urls = [SITE + "/sitemap.xml"]

        lastmod = {}

        def sitemap_filter(self, entries):
            for entry in entries:
                self.lastmod[entry["loc"]] = entry.get("lastmod")
                yield entry

        def _parse_sitemap(self, response):
            for request in super()._parse_sitemap(response):
                if self.lastmod.get(request.url):
                    request.meta["lastmod"] = self.lastmod[request.url]
                yield request

        def parse(self, response):
            note(url=response.url, lastmod=response.meta.get("lastmod"))
    """
    with crawl(spider) as running:
        running.until(lambda: site.count("/static/1") > 1 and site.count("/static/2") > 1)
        running.stop()
    found = {(line["url"].rpartition("/")[2], line["lastmod"]) for line in running.record}
    assert found == {("1", "2024-03-05"), ("2", None)}
    assert state.memory(site.url("/static/1")).lastmod
    assert not state.memory(site.url("/static/2")).lastmod
