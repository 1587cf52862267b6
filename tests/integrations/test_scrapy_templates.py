"""A banner that changes on all pages of a site at once, in a real crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawler import crawler
from crawls import State
from misbehaving_site import MisbehavingSite

PAGES = 24
#: Pages that may count as changed before the template is known to have: three, and those that were under way when it changed.
MOST_COUNTED = 8
SPIDER = f"class Tester(Base):\n    paths = ['/page/%d' % n for n in range({PAGES})]"


class BannerSite(MisbehavingSite):
    """Pages with a text of their own and a banner that all have in common."""

    banner = "Welcome"
    news = ""

    async def _answer(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        if not path.startswith("/page/"):
            return await super()._answer(path, headers, writer)
        news = self.news if path == "/page/0" else ""
        text = f"<div class=banner>{self.banner}</div><main><h1>{path}</h1><p>About {path} {news}</p></main><footer>2026</footer>".encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        await writer.drain()
        return True


@pytest.fixture
def banners() -> Iterator[BannerSite]:
    with BannerSite() as site:
        yield site


@pytest.mark.parametrize("wanted", ["ignore", "count"])
def test_a_banner_is_one_event_of_the_template(
    wanted, tmp_path: Path, banners: BannerSite, redis_socket: str, namespace: str, state: State
):
    """Its pages are unchanged, and their items are not made again; a page that has news as well has changed."""

    def visits(n: int) -> int:
        return int(state.at(banners.url(f"/page/{n}")).get("visits", 0))

    start = crawler(tmp_path, banners, redis_socket, namespace)
    with start(SPIDER, of_CALLBACK_ON="change", of_TEMPLATE_CHANGES=wanted) as crawl:
        crawl.until(lambda: all(visits(n) >= 3 for n in range(PAGES)))
        before = [visits(n) for n in range(PAGES)]
        banners.news, banners.banner = "and more", "Goodbye"
        # one visit may have been under way
        crawl.until(lambda: all(visits(n) >= before[n] + 2 for n in range(PAGES)))
        assert crawl.stop() == 0, crawl.log
        changed = [state.at(banners.url(f"/page/{n}"))["changes"] for n in range(PAGES)]
        told = [line["url"] for line in crawl.record]
        assert changed[0] == 1
        assert len(told) == PAGES + sum(changed)
        if wanted == "count":
            assert changed == [1] * PAGES
            assert "template_events" not in state.counts
            return
        assert sum(changed) <= MOST_COUNTED
        assert state.counts["template_events"] == 1
        assert state.counts["template_changes"] == PAGES - sum(changed) == crawl.stats["optimal_frontier/template_changes"]
        assert crawl.log.count("its template changed") == 1
