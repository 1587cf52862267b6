"""Pings in a real crawl: a page is fetched at once, hostile entries are counted and dropped, and a killed process loses none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from announcing_site import AnnouncingSite
from click.testing import CliRunner
from crawler import crawler
from crawls import State
from scrapy.utils.test import get_crawler

from optimal_frontier.cli.application import main
from optimal_frontier.integrations.scrapy.pinged_pages import PingedPages
from optimal_frontier.state.pings import RawPing

SPIDER = """
class Tester(Base):
    paths = [f"/still?{at}" for at in range(118)] + ["/page/0", "/page/1"]
"""
#: Visits a second: a page comes up by itself once in twelve seconds. In the first pass all may be fetched sooner.
RATE, RATE_AT_FIRST = 10, 40
#: Ten pages, where nothing depends on how many others there are.
SMALL_SPIDER = SPIDER.replace("118", "8")


@pytest.fixture
def crawl(redis_socket: str, tmp_path: Any) -> Iterator[tuple[AnnouncingSite, State, Any]]:
    with AnnouncingSite() as site:
        namespace = f"test-pings-{site.port}"
        state = State(f"unix://{redis_socket}", namespace)
        yield site, state, crawler(tmp_path, site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        state.close()


def ping(socket: str, state: State, *arguments: str) -> str:
    """Run the command; return what it says."""
    result = CliRunner().invoke(main, ["--redis-url", f"unix://{socket}", "--namespace", state.namespace.name, "ping", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_pings_are_taken_in(redis_socket: str, crawl: Any) -> None:
    site, state, start = crawl
    stream = state.namespace.name + ":{0}:pings"
    with start(SPIDER, of_CRAWL_RATE=RATE_AT_FIRST) as running:
        running.until(lambda: state.counts.get("fetched", 0) >= 120 and state.plan, 60.0)
        running.stop()
    url, other = site.url("/page/0"), site.url("/page/1")
    entries: list[dict[bytes | str, bytes | str]] = [
        {"url": "file:///etc/passwd"},
        {"url": b"http://\xff\xfe/"},
        {"url": "http://a.org/" + "x" * 100_000},
        {"link": other},
        {"url": other, "source": "no name"},
        {"url": other, "at": "yesterday"},
        {"url": "http://[::1"},
        {"url": site.url("/unknown")},
        {"url": "http://nowhere.example/"},
        {"url": other, "source": "hub", "at": str(time.time() + 1e6)},
    ]
    for entry in entries:
        state.namespace.command("XADD", stream, "*", *[part for pair in entry.items() for part in pair])
    assert ping(redis_socket, state, url) == "1 ping sent\n"
    with start(SPIDER, of_CRAWL_RATE=RATE) as running:
        # Taken while it was down; and once more while it runs.
        running.until(lambda: state.counts.get("pings_taken", 0) >= 2, 60.0)
        assert state.counts["pings_refused"] == 7
        assert state.counts["pings_unknown"] == 2
        assert state.counts["signals"] == 1
        running.until(lambda: not any(told.n for told in state.memory(url).signals), 60.0)
        since = time.monotonic()
        before = len(site.times("/page/0"))
        ping(redis_socket, state, url, "--source", "shop")
        running.until(lambda: len(site.times("/page/0")) > before, 60.0)
        # All 118 others would come first, if it had to wait for its turn.
        assert sum(len(site.times(f"/still?{at}", since)) for at in range(118)) <= 40
        running.until(lambda: state.namespace.command("XLEN", stream) == 0)
        assert "Traceback" not in running.log
        running.stop()
    assert {told.source for told in state.memory(url).signals} == {"ping", "ping shop"}
    assert state.memory(other).signals == ()


def test_what_is_taken_in_twice_counts_once(redis_socket: str, crawl: Any) -> None:
    """As after a kill between taking in and removing: the same entry is no news."""
    site, state, start = crawl
    with start(SMALL_SPIDER, of_CRAWL_RATE=RATE) as running:
        running.until(lambda: state.counts.get("fetched", 0) >= 10 and state.plan, 60.0)
        running.stop()
    url = site.url("/page/1")
    for _ in range(2):
        fields = ["url", url, "source", "hub", "at", f"{time.time() - 0.5:.0f}"]
        for _ in range(2):
            state.namespace.command("XADD", state.namespace.key("pings"), "*", *fields)
    with start(SMALL_SPIDER, of_CRAWL_RATE=RATE) as running:
        running.until(lambda: state.counts.get("pings_taken", 0) >= 4, 60.0)
        running.stop()
    assert state.counts.get("signals", 0) <= 2


def test_a_ping_that_waits_for_the_end_of_a_fetch_counts_once() -> None:
    """It stays in the stream and is read again at each look."""
    crawler = get_crawler()
    crawler._apply_settings()
    pinged = PingedPages(crawler)
    first, second = (RawPing(f"{at}-0".encode(), {b"url": b"http://a.example/"}) for at in (1, 2))
    for pings in ([first], [first], [first, second], [second], []):
        pinged(pings)
    assert crawler.stats.get_value("optimal_frontier/pings") == 2


@pytest.mark.parametrize("arguments", [[], ["no-url"], ["ftp://a.org/"], ["http://a.org/", "--source", "a b"]])
def test_the_command_refuses_what_is_no_ping(redis_socket: str, arguments: list[str]) -> None:
    result = CliRunner().invoke(main, ["--redis-url", f"unix://{redis_socket}", "--namespace", "test-pings-none", "ping", *arguments])
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
