"""A crawl in which each page counts by other options."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawler import crawler
from crawls import State
from misbehaving_site import MisbehavingSite

#: The user's module; on pages without an item it fails.
CONTENTS = """
import scrapy

class Page(scrapy.Item):
    kind = scrapy.Field()

def items(response):
    yield Page(kind=response.css("html").xpath("name()").get())

def broken(response):
    raise ValueError("no content here")
"""

#: Options of the pages, all of which are different at every request; and the bit that every revisit should give (None: none).
PAGES: dict[str, tuple[dict[str, Any], int | None]] = {
    "/counter/plain": ({}, 1),
    "/counter/body": ({"fingerprint": "body"}, 1),
    "/counter/ignored": ({"ignore": [r"\d+"]}, 0),
    "/counter/excluded": ({"exclude": ["body"]}, 0),
    "/counter/missed": ({"include": ["main"]}, 1),
    "/counter/near": ({"fingerprint": "near", "distance": 64, "ignore": []}, 0),
    "/counter/items": ({"fingerprint": "contents.items"}, 0),
    "/counter/broken": ({"fingerprint": "contents.broken"}, None),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, redis_socket: str) -> Iterator[tuple[State, MisbehavingSite, dict[str, Any], str]]:
    """State, site, stats and log of a crawl that saw each page four times."""
    folder: Path = tmp_path_factory.mktemp("contents")
    (folder / "contents.py").write_text(CONTENTS)
    rules = [{"pattern": path + "$", **options} for path, (options, _) in PAGES.items() if options]
    namespace = f"t{uuid.uuid4().hex[:12]}"
    spider = f"class Tester(Base):\n    paths = {list(PAGES)!r}"
    with MisbehavingSite() as site:
        state = State(f"unix://{redis_socket}", namespace)
        with crawler(folder, site, redis_socket, namespace)(spider, of_RULES=rules) as crawl:
            crawl.until(lambda: all(state.at(site.url(path)).get("visits", 0) >= 4 for path in PAGES))
            assert crawl.stop() == 0, crawl.log
            yield state, site, crawl.stats, crawl.log
        state.close()


@pytest.mark.parametrize("path", PAGES)
def test_bits_are_by_the_options_of_the_page(crawled, path):
    state, site, _, _ = crawled
    seen, bit = state.at(site.url(path)), PAGES[path][1]
    observations = 0 if bit is None else seen["visits"] - 1
    assert (seen["observations"], seen["changes"]) == (observations, observations * (bit or 0))


def test_what_could_not_be_made_or_found_is_counted_and_told_once(crawled):
    state, site, stats, log = crawled
    visits = {path: state.at(site.url(path))["visits"] for path in PAGES}
    for name, path in (("fingerprints_failed", "/counter/broken"), ("includes_missed", "/counter/missed")):
        assert stats[f"optimal_frontier/{name}"] >= visits[path] == state.counts[name]
    assert log.count("contents.broken failed on") == log.count("ValueError: no content here") == 1
    assert log.count("is what is to be included, main") == 1


def test_pages_without_a_bit_keep_their_pace(crawled):
    """No faster than others, though the time of which the next bit will speak goes back to the first visit."""
    state, site, _, _ = crawled
    assert state.at(site.url("/counter/broken"))["attempts"] <= 1.5 * state.at(site.url("/counter/plain"))["attempts"] + 2


def test_a_page_that_gzip_packed_is_seen_whole_before_it_has_changed(crawl, site, state):
    """Scrapy unpacks what there is of one that was cut off on its way to the server, whose length is right."""
    cut, whole, zipped = "/static/cut", "/static/whole", {"Content-Encoding": "gzip"}
    old, new = (gzip.compress(b"<html><body><p>" + b"%d " * 500 % (*range(at, at + 500),)) for at in (0, 1000))
    site.answers[cut] = site.answers[whole] = (200, old, zipped)
    with crawl(f"class Tester(Base):\n    paths = [{cut!r}, {whole!r}]") as running:
        running.until(lambda: all(state.at(site.url(path)).get("visits", 0) >= 3 for path in (cut, whole)))
        site.answers[cut], site.answers[whole] = (200, old[:-200], zipped), (200, new, zipped)
        running.until(lambda: state.counts.get("failures_truncated") and state.at(site.url(whole))["changes"])
        assert running.stop() == 0, running.log
    assert state.at(site.url(whole))["attempts"] == state.at(site.url(whole))["visits"]
    assert state.at(site.url(cut))["attempts"] > state.at(site.url(cut))["visits"]
