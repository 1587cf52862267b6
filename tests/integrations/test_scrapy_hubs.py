"""A listing page and a feed that yield new articles, in one real crawl of a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from crawler import crawler
from crawls import State

from optimal_frontier.state.rows import APPEARED, HUB

#: Seconds between two new articles, on the listing page and in the feed.
LISTED_S, FED_S = 0.4, 0.8
OLD = 30
SPIDER = """
from optimal_frontier.integrations.scrapy import AnnouncedPages

class Tester(AnnouncedPages, Base):
    source_urls = [SITE + "/feed"]
    paths = ["/list"]

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
"""


class NewsSite:
    """Context manager; serves while it is open. Articles are below ``/listed`` and ``/fed``, by the order in which they appear."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.fetched: dict[str, float] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                at = time.monotonic() - site.began
                site.fetched.setdefault(self.path, at)
                body = site._body(self.path, at).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/rss+xml" if self.path == "/feed" else "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> NewsSite:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def _body(self, path: str, at: float) -> str:
        if path == "/list":
            names = [f"/old/{i}" for i in range(OLD)] + [f"/listed/{i}" for i in range(int(at / LISTED_S))]
            return f"<html><body><p>{at}</p>{''.join(f'<a href={name}>read</a>' for name in names)}</body></html>"
        if path == "/feed":
            now = time.time()
            items = "".join(
                f"<item><link>{self.url(f'/fed/{i}')}</link><pubDate>{formatdate(now - at + i * FED_S, usegmt=True)}</pubDate></item>"
                for i in range(int(at / FED_S) + 1)
            )
            return f'<?xml version="1.0"?><rss version="2.0"><channel><title>news</title>{items}</channel></rss>'
        return f"<html><body>{path}</body></html>"


@pytest.fixture
def state(redis_socket: str, namespace: str) -> Iterator[State]:
    held = State(f"unix://{redis_socket}", namespace)
    yield held
    held.close()


def test_a_listing_page_and_a_feed_are_visited_for_what_they_yield(tmp_path, redis_socket, namespace, state):
    """Both are known as hubs with about the rates at which articles appear, and these are fetched soon after."""
    with NewsSite() as site:
        start = crawler(tmp_path, site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        with start(SPIDER, of_CRAWL_RATE=25, of_RULES=[{"pattern": "/feed$", "importance": 1.0}]) as running:
            running.until(lambda: "/list" in site.fetched and "/feed" in site.fetched)
            first = site.fetched["/list"]
            last = first + 7.0
            running.until(lambda: f"/listed/{int(last / LISTED_S)}" in site.fetched and f"/fed/{int(last / FED_S)}" in site.fetched)
            running.stop()
            log = running.log
        born = {i: (i + 1) * LISTED_S for i in range(int(last / LISTED_S))}
        listed = [site.fetched[f"/listed/{i}"] - at for i, at in born.items() if at > first + 2.0]
        for path, every in (("/list", LISTED_S), ("/feed", FED_S)):
            yielded = state.memory(site.url(path)).yielded
            assert state.at(site.url(path))["flags"] & HUB, path
            assert yielded.pages / yielded.seconds == pytest.approx(1 / every, rel=0.5)
            assert yielded.importance == pytest.approx(yielded.pages)
        assert not state.at(site.url("/old/3"))["flags"] & (HUB | APPEARED)
        # What the first visit of the list showed was there before; the last that it showed has appeared.
        newest = [site.url(path) for path in site.fetched if path.startswith(("/listed/", "/fed/"))][-4:]
        young = [url for url in newest if state.at(url)["flags"] & APPEARED]
        assert young
        assert all(state.memory(url).birth is not None for url in young if state.at(url)["visits"])
        assert len(listed) >= 10
        assert sorted(listed)[len(listed) // 2] < 2.0
        assert state.counts["discovered"] >= 10
        assert int(state.plan["hubs"]) == 2
        assert "Traceback" not in log
