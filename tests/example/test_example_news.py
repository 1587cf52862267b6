"""The news world: pages change together, each as a Poisson process of its rate, and feeds tell of most changes."""

import asyncio
import io
import json
import re

import numpy as np
import pytest
import run as example
from demo.news import ARTICLES, FETCHES_PER_CHANGE, TOLD_SHARE, WORLDS, make_news
from demo.report import measure, optimum
from demo.site import FEED, FEED_ENTRIES, Site, feed_urls, page_url
from demo.world import BUDGET
from example_client import periodic_visits, record_of
from scrapy.http import HtmlResponse

from optimal_frontier.detection.source_documents import read_source

LONG = 600.0


@pytest.fixture(scope="module")
def world():
    return make_news(1, LONG)


def test_the_budget_is_one_fetch_a_change(world):
    assert world.change_rate.sum() == pytest.approx(BUDGET / FETCHES_PER_CHANGE, rel=0.01)
    assert (world.pages, world.hosts) == (3 * (1 + 4 + 4 * 3 * ARTICLES), 3)
    assert set(WORLDS) == {"independent", "news"}


def test_pages_change_at_their_rates(world):
    counts = np.array([len(times) for times in world.changes])
    expected = world.change_rate * (LONG + 120.0)
    deviation = (counts - expected) / np.sqrt(expected)
    # siblings deviate together
    assert abs(deviation.mean()) < 0.6
    assert 0.7 < deviation.std() < 1.3
    assert all((np.diff(times) > 0).all() for times in world.changes)


def test_articles_of_a_topic_change_together_and_those_of_others_do_not(world):
    """Most changes of an article fall on the moment of a change of its neighbour."""

    def together(one: int, other: int) -> float:
        return float(np.isin(world.changes[one], world.changes[other]).mean())

    topics: dict[tuple[int, str], list[int]] = {}
    for page in range(world.pages):
        if world.path(page).endswith(".html"):
            topics.setdefault((world.host(page), world.path(page).rpartition("/")[0]), []).append(page)
    groups = [pages for pages in topics.values() if len(world.changes[pages[0]]) > 20]
    assert len(topics) == 36
    assert np.mean([together(pages[0], pages[1]) for pages in groups]) == pytest.approx(0.8 / 1.1, abs=0.05)
    assert max(together(one[0], other[0]) for one in groups for other in groups if one is not other) == 0.0


def test_every_page_is_reached(world):
    reached, border = {0}, [0]
    while border:
        new = set(world.links[border.pop()]) - reached
        reached |= new
        border += new
    assert reached == set(range(world.pages))


def test_feeds_tell_of_most_changes_of_articles_and_of_some_that_are_none(world):
    told, changed = 0, {page: set(times.tolist()) for page, times in enumerate(world.changes)}
    for at, page in world.notices:
        assert world.path(page).endswith(".html")
        told += at in changed[page]
    articles = [page for page in range(world.pages) if world.path(page).endswith(".html")]
    assert told / sum(len(changed[page]) for page in articles) == pytest.approx(TOLD_SHARE, abs=0.02)
    assert 1 - told / len(world.notices) == pytest.approx(0.05 / 1.05, abs=0.02)


def test_site_serves_pages_under_their_paths_and_feeds(monkeypatch):
    world, log = make_news(1, 20.0), io.StringIO()
    site = Site(world, log)

    async def start():
        epoch, ports = await site.listen()
        await site.close()
        return epoch, ports

    epoch, ports = asyncio.run(start())
    monkeypatch.setattr("demo.site.time.monotonic", lambda: epoch + 20.0)
    front = site.respond(1, "/")
    assert (front.status, site.respond(1, "/page/1").status, site.respond(1, "/sport/").status) == (200, 404, 200)
    named = HtmlResponse(page_url(1, ports, world), body=front.body).css("a[data-importance]::attr(href)").getall()
    assert named == [page_url(page, ports, world) for page in world.links[1]]
    article = next(page for page in range(world.pages) if world.path(page) == "/sport/today/0.html" and world.host(page) == 2)
    body = site.respond(2, "/sport/today/0.html").body.decode()
    assert int(re.search(r'id="version">(\d+)', body)[1]) == world.version(article, 20.0)

    feed = site.respond(0, FEED)
    read = read_source(feed.body, feed_urls(world, ports)[0])
    newest = dict.fromkeys(page for at, page in reversed(world.notices) if world.host(page) == 0 and at <= 20.0)
    assert [entry.url for entry in read.entries] == [page_url(page, ports, world) for page in list(newest)[:FEED_ENTRIES]]
    etag = re.search(r"ETag: (.*)\r\n", feed.headers)[1]
    assert site.respond(0, FEED, etag).status == 304
    assert [json.loads(line)[1:4] for line in log.getvalue().splitlines()][-2:] == [[-1, 0, 200], [-1, 0, 304]]


def test_the_clairvoyant_closes_the_gap_and_a_feed_is_a_fetch(world):
    """Of mean rates: in this world that is not the best that can be done."""
    _, rates, _ = optimum(world.importance, world.change_rate, BUDGET)
    record = record_of(world, *periodic_visits(rates, 0.0, LONG, np.random.default_rng(1)))
    report = measure(world, record, LONG / 2, LONG)
    assert report.gap_closed == pytest.approx(1.0, abs=0.1)
    assert report.fetch_rate == pytest.approx(BUDGET, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "feeds"), [([], True), (["--alone"], False), (["--world", "independent"], False), (["-s", "LOG_LEVEL=INFO"], True)]
)
def test_what_tells_of_other_pages_is_on_unless_it_is_switched_off(arguments, feeds):
    options = example._parse(["--world", "news", *arguments])
    world = WORLDS[options.world](1, 20.0)
    given = example._settings(options, feed_urls(world, [81, 82, 83]))
    sources = [value for value in given if value.startswith("OPTIMAL_FRONTIER_SOURCES=")]
    named = " ".join(f"http://127.0.0.1:{port}/feed.xml" for port in (81, 82, 83))
    assert sources == ([f"OPTIMAL_FRONTIER_SOURCES={named}"] if feeds else [])
    assert [value for value in given if not value.startswith("OPTIMAL_FRONTIER_")] == options.settings
