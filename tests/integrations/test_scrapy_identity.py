"""One crawl of a site with session ids, duplicates and traps: what is a page, what is told of it, and what is not followed."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from crawls import Crawl, State, crawling

from optimal_frontier.frontier.admitting.url_folding import UrlFolding
from optimal_frontier.integrations.scrapy import CanonicalFingerprinter
from optimal_frontier.integrations.scrapy.fingerprinter import describe
from optimal_frontier.settings.urls import IGNORED

FINGERPRINTER = CanonicalFingerprinter(UrlFolding(IGNORED, ("slash",)))


class TrapSite(ThreadingHTTPServer):
    """``/`` links to everything; ``/moving`` changes at each request; ``/calendar/N`` links to the next one; ``/deep/...`` and
    ``/a/b/...`` to longer paths, ``/copy?v=N`` names ``/copy`` as canonical."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: Counter[str] = Counter()

    def page(self, path: str) -> str:
        self.asked[path] += 1
        parts = urlsplit(path)
        first, _, rest = parts.path[1:].partition("/")
        head, text, links = "", first, []
        if first == "":
            sessions = [f"/still?PHPSESSID={self.asked[path]}", "/still/?utm_source=home", "/moving"]
            links = [*sessions, "/calendar/1", "/deep/", "/a/b/", "/copy?v=1", "/copy?v=2", "/away"]
        elif first == "moving":
            text = f"version {self.asked[path]}"
        elif first == "calendar":
            links = [f"/calendar/{int(rest) + 1}"]
        elif first == "deep":
            links = [f"{parts.path}{chr(ord('a') + parts.path.count('/'))}/"]
        elif first == "a":
            links = [f"{parts.path}a/b/"]
        elif first == "copy":
            head = '<link rel="canonical" href="/copy">'
            text = f"copy {parse_qs(parts.query)}"
        elif first == "away":
            head = '<link rel="canonical" href="http://other.example/">'
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
        return f"<html><head>{head}</head><body><p>{text}</p>{anchors}</body></html>"


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, TrapSite)
        body = self.server.page(self.path).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


SPIDER = """
class Tester(Base):
    paths = ["/", "/a/b/a/b/a/b/start"]

    async def parse(self, response):
        yield {"path": response.url[len(SITE):]}
        for link in response.css("a"):
            yield response.follow(link)
"""
SETTINGS = {
    "REQUEST_FINGERPRINTER_CLASS": "optimal_frontier.integrations.scrapy.CanonicalFingerprinter",
    "FEEDS": {"items.jl": {"format": "jsonlines"}},
    "OPTIMAL_FRONTIER_FOLD_URLS": "slash",
    "OPTIMAL_FRONTIER_ITEM_FIELD": "_change",
    "OPTIMAL_FRONTIER_CANONICAL_LINKS": True,
    "OPTIMAL_FRONTIER_MAX_DEPTH": 3,
    "OPTIMAL_FRONTIER_PATTERN_MAX_PAGES": 2,
}


class Crawled:
    """What is left of the crawl."""

    def __init__(self, site: TrapSite, crawl: Crawl, state: State) -> None:
        self.site, self.crawl, self.state = site, crawl, state
        self.items = [json.loads(line) for line in (crawl.folder / "items.jl").read_text().splitlines()]

    def marks(self, path: str) -> list[str | None]:
        return [item["_change"] for item in self.items if item["path"] == path]

    def asked(self, prefix: str) -> list[str]:
        return sorted(path for path in self.site.asked if path.startswith(prefix))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, redis_socket: str) -> Iterator[Crawled]:
    """Until the moving page was seen four times."""
    folder = tmp_path_factory.mktemp("identity")
    url, namespace = f"unix://{redis_socket}", folder.name
    settings = SETTINGS | {"OPTIMAL_FRONTIER_REDIS_URL": url, "OPTIMAL_FRONTIER_NAMESPACE": namespace}
    with TrapSite() as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{site.server_address[1]}"
        with crawling(folder, address, SPIDER, settings) as crawl:
            crawl.until(lambda: site.asked["/moving"] >= 4 and site.asked["/copy"] >= 2 and site.asked["/"] >= 4)
            crawl.stop()
        state = State(url, namespace)
        yield Crawled(site, crawl, state)
        state.close()
        site.shutdown()


def test_urls_that_differ_in_what_does_not_count_are_one_page(crawled):
    """Each visit of the front page brings another session id."""
    assert crawled.asked("/still") == ["/still?PHPSESSID=1"]
    assert crawled.state.namespace.hash("meta")["identity"] == describe(FINGERPRINTER)


def test_items_say_what_became_of_their_page(crawled):
    """In the feed, from an async callback."""
    moving = crawled.marks("/moving")
    assert moving[:1] == ["new"]
    assert set(moving[1:]) == {"changed"}
    assert crawled.marks("/still?PHPSESSID=1")[:2] == ["new", "unchanged"]


def test_duplicates_become_aliases_of_what_they_name(crawled):
    """Asked for once each, then never again; the word about another host does not count."""
    assert (crawled.site.asked["/copy?v=1"], crawled.site.asked["/copy?v=2"]) == (1, 1)
    counts = crawled.state.counts
    assert counts["canonical_followed"] == 2
    assert counts["canonical_offhost"] == crawled.site.asked["/away"] >= 1
    assert crawled.crawl.stats["optimal_frontier/moves"] == 2


def test_traps_end_and_each_is_counted_and_said_once(crawled):
    """A start request is taken as it is."""
    assert crawled.asked("/calendar") == ["/calendar/1", "/calendar/2"]
    assert crawled.asked("/deep") == ["/deep/", "/deep/c/", "/deep/c/d/"]
    assert "/a/b/a/b/a/b/" not in crawled.site.asked
    assert crawled.site.asked["/a/b/a/b/a/b/start"] >= 1
    counts, stats, log = crawled.state.counts, crawled.crawl.stats, crawled.crawl.log
    for reason in ("pattern", "url", "depth"):
        assert counts[f"trapped_{reason}"] >= stats[f"optimal_frontier/trapped_{reason}"] >= 1
        assert log.count(f"counted as trapped_{reason}") == 1
    assert "Traceback" not in log


def test_another_fingerprinter_is_refused(crawled, redis_socket):
    """In a line; before that it is said that a setting counts for nothing without the fingerprinter."""
    settings = {name: value for name, value in SETTINGS.items() if name.startswith("OPTIMAL_FRONTIER_")}
    crawl = crawled.crawl
    settings |= {"OPTIMAL_FRONTIER_REDIS_URL": f"unix://{redis_socket}", "OPTIMAL_FRONTIER_NAMESPACE": crawled.state.namespace.name}
    with crawling(crawl.folder, "http://127.0.0.1:9", SPIDER, settings) as again:
        again.wait()
        assert again.stats["reason"] == "optimal_frontier_error"
        assert "OPTIMAL_FRONTIER_FOLD_URLS counts with REQUEST_FINGERPRINTER_CLASS =" in again.log
        assert "are known by optimal_frontier.integrations.scrapy.fingerprinter.CanonicalFingerprinter" in again.log
        assert "Traceback" not in again.log
