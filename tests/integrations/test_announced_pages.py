"""What the mixin says of sources, without a crawl: rules, filter, priorities; what is remembered of a source and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from leased import handed_out
from scrapy import Spider
from scrapy.http import Response
from scrapy.http.request import Request

from optimal_frontier.detection.source_documents import read_source
from optimal_frontier.detection.source_entries import Entry
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.integrations.scrapy import AnnouncedPages
from optimal_frontier.integrations.scrapy.lease import ANNOUNCED, LEASE, Lease
from optimal_frontier.integrations.scrapy.sources import ANNOUNCES, Sources
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, Announcement, Observation

URL = "http://a.org/sitemap.xml"
BODY = b"""<urlset><url><loc>http://a.org/news/1</loc><lastmod>2024-03-05</lastmod><priority>0.3</priority></url>
<url><loc>http://a.org/shop/2</loc></url><url><loc>http://a.org/other/3</loc></url></urlset>"""


class Pages(AnnouncedPages, Spider):
    name = "pages"
    source_rules = (("/news/", "parse_news"), ("/shop/", "parse"))

    def parse_news(self, response: Any) -> None:
        pass


def sources_of(spider: Spider, **settings: Any) -> Sources:
    return Sources(spider, FrontierSettings.parse({f"OPTIMAL_FRONTIER_{name}": value for name, value in settings.items()}), lambda *_: None)


def visit(sources: Sources, body: bytes = BODY, memory: Memory = Memory(), visits: int = 0) -> tuple[Lease, list[Request], Any]:  # noqa: B008  # frozen
    """A good response to a source, as the middleware handles it; return the requests that it yields, and what it raised."""
    request = Request(URL, meta={ANNOUNCES: True})
    handout = handed_out(URL, memory=memory, visits=visits, importance=7.0)
    lease = Lease(handout, None, request)
    request.meta[LEASE] = lease
    response = Response(URL, body=body, request=request)
    source = read_source(body, URL)
    lease.source = None if source is None else source.since(memory.entries)
    lease.observation = Observation(handout, KEEP, handout.row, Memory(etag=b'"1"'))
    found: list[Request] = []
    try:
        found.extend(sources.announce(response))
    except ZeroDivisionError as error:
        return lease, found, error
    return lease, found, None


def test_entries_go_by_the_rules_and_carry_what_was_said() -> None:
    spider = Pages()
    lease, found, _ = visit(sources_of(spider))
    assert [(request.url, request.callback) for request in found] == [
        ("http://a.org/news/1", spider.parse_news),
        ("http://a.org/shop/2", spider.parse),
    ]
    assert found[0].meta == {"lastmod": "2024-03-05", ANNOUNCED: Announcement("a.org sitemap", -1.0)}
    assert found[1].meta == {}
    assert [request.priority for request in found] == [0, 0]
    assert lease.observation is not None
    assert lease.observation.memory is not None
    assert lease.observation.memory.etag == b'"1"'
    assert len(lease.observation.memory.entries) == 3 * 8


def test_only_news_are_passed_on_and_go_first() -> None:
    source = read_source(BODY)
    assert source is not None
    memory = Memory(entries=source.remembered)
    assert visit(sources_of(Pages()), memory=memory, visits=2)[1] == []
    _, (moved,), _ = visit(sources_of(Pages()), BODY.replace(b"03-05", b"03-06"), memory, visits=2)
    assert moved.meta["lastmod"] == "2024-03-06"
    assert moved.meta[ANNOUNCED].unread == pytest.approx(50.0, abs=5.0)
    assert moved.priority == 10


def test_a_spider_without_the_mixin_gets_everything_in_parse() -> None:
    class Plain(Spider):
        name = "plain"

        def parse(self, response: Any) -> None:
            pass

    spider = Plain()
    assert [request.callback for request in visit(sources_of(spider))[1]] == [spider.parse] * 3


def test_priorities_are_importance_where_that_is_wanted() -> None:
    spider = Pages()
    spider.source_priorities = True
    assert [request.meta.get("importance") for request in visit(sources_of(spider))[1]] == [0.3, None]


def test_what_a_filter_does_not_finish_is_news_again() -> None:
    """And no 304 may hide it."""

    class Failing(Pages):
        def source_filter(self, entries: Iterable[Entry]) -> Iterable[Entry]:
            for at, entry in enumerate(entries):
                yield entry._replace(url=entry.url + f"?{1 / (1 - at)}")

    lease, found, error = visit(sources_of(Failing()))
    assert [request.url for request in found] == ["http://a.org/news/1?1.0"]
    assert error is not None
    assert lease.observation is not None
    assert lease.observation.memory == Memory()


def test_an_unreadable_source_announces_nothing() -> None:
    """Nor does it change what is remembered of its entries."""
    lease, found, _ = visit(sources_of(Pages()), b"<html><body>Be right back</body></html>", Memory(entries=b"12345678"), visits=3)
    assert (lease.source, found) == (None, [])
    assert lease.observation is not None
    assert lease.observation.memory == Memory(etag=b'"1"')


def test_sources_of_an_index_inherit_its_importance() -> None:
    body = b"<sitemapindex><sitemap><loc>http://a.org/1.xml</loc><lastmod>2024-03-05</lastmod></sitemap></sitemapindex>"
    _, (request,), _ = visit(sources_of(Pages()), body)
    assert (request.meta[ANNOUNCES], request.meta["importance"]) == (True, 7.0)
    assert request.meta[ANNOUNCED].source == "a.org index"


def test_start_requests_of_the_setting_and_of_the_spider() -> None:
    """RULES go before the importance that a source has otherwise."""
    spider = Pages()
    spider.source_urls = ["http://b.org/feed"]
    sources = sources_of(spider, SOURCES=[URL], RULES=[{"host": "b.org", "importance": 2.0}])
    assert [(request.url, request.meta) for request in sources.start()] == [
        (URL, {ANNOUNCES: True, "importance": 1.0}),
        ("http://b.org/feed", {ANNOUNCES: True}),
    ]


@pytest.mark.parametrize("rule", [("/news/", "parse_nothing"), ("/news/", None), ("(", "parse"), (None, "parse")])
def test_a_rule_that_cannot_be_kept_is_named(rule: Any) -> None:
    spider = Pages()
    spider.source_rules = [rule]
    with pytest.raises(ConfigurationError, match="source_rules of spider 'pages'"):
        sources_of(spider)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("source_urls", ["http://a.org/feed", "feed"], r"source_urls of spider 'pages'\[1\] = 'feed': expected a URL"),
        ("source_urls", None, "source_urls of spider 'pages' = None: expected a list"),
        ("source_importance", "high", "source_importance of spider 'pages' = 'high': expected a number above 0"),
        ("source_rules", ("/news/", "parse"), r"source_rules of spider 'pages' = \('/news/', 'parse'\): expected a list of pairs"),
    ],
)
def test_what_a_spider_says_and_cannot_be_used_is_named(name: str, value: Any, said: str) -> None:
    """In one line: a URL that is none ended `start()` with all the requests behind it, the others were tracebacks."""
    spider = Pages()
    setattr(spider, name, value)
    with pytest.raises(ConfigurationError, match=said):
        sources_of(spider)


def test_one_url_is_a_source_too() -> None:
    spider = Pages()
    spider.source_urls = URL
    assert [request.url for request in sources_of(spider).start()] == [URL]
