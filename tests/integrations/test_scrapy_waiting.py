"""A spider with nothing to do costs nothing, and wakes on time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main

pytestmark = pytest.mark.timing


def _cpu_s(pid: int) -> float:
    """Seconds on a processor, of all threads; the clock ticks of ``stat`` would be too coarse."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _takes_next_to_nothing(crawl: Crawler, site: MisbehavingSite, state: State, **more: Any) -> None:
    """With the next deadline 60 s away the spider takes at most 0.5% of a core, though it looks for what others do each second.

    Between two plans, which take 10 to 40 ms each: 16.5 s after the first fetch one is made, and after 24 s the next.
    """
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
    """
    rules = [{"pattern": ".", "interval": 60}]
    with crawl(spider, of_RULES=rules, of_RESOLVE_INTERVAL=60, of_MIN_INTERVAL=1, **more) as running:
        running.until(lambda: site.fetches)
        settled = site.fetches[0].at + 17.6
        running.until(lambda: state.at(site.url("/static/0")).get("visits") and state.plan)
        running.until(lambda: time.monotonic() > settled)
        before, began = _cpu_s(running.process.pid), time.monotonic()
        running.until(lambda: time.monotonic() > began + 6)
        used = (_cpu_s(running.process.pid) - before) / (time.monotonic() - began)
        assert len(site.fetches) == 1
    assert used <= 0.005


def test_waiting_spider_is_idle(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    _takes_next_to_nothing(crawl, site, state)


def test_page_is_fetched_on_time_after_a_wait(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A deadline 3 s away is met within 150 ms; the engine's heartbeat of 5 s has no part in it."""
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
    """
    with crawl(spider, of_RULES=[{"pattern": ".", "interval": 3}], of_RESOLVE_INTERVAL=60, of_MIN_INTERVAL=1) as running:
        running.until(lambda: len(site.fetches) == 3)
        lateness = running.until(lambda: len(found := state.lateness) == 2 and found)
    first, second, third = (fetch.at for fetch in site.fetches)
    assert abs(third - second - 3) < 0.15
    assert 2.5 < second - first < 3.15
    assert max(lateness) < 0.15


def test_link_found_while_waiting_is_fetched_at_once(crawl: Crawler, site: MisbehavingSite) -> None:
    """A new page does not wait for the deadline of an old one."""
    spider = """
        import asyncio
        class Tester(Base):
            paths = ["/static/0"]
            async def start(self):
                yield Request(SITE + "/static/0")
                await asyncio.sleep(1.5)
                yield Request(SITE + "/static/1")
                note(yielded=True)
            if scrapy.version_info < (2, 13):
                async def parse(self, response):
                    await asyncio.sleep(1.5)
                    yield Request(SITE + "/static/1")
    """
    with crawl(spider, of_MIN_INTERVAL=600) as running:
        running.until(lambda: len(site.fetches) == 2)
    assert 1.4 < site.fetches[1].at - site.fetches[0].at < 1.8


def test_what_is_imported_or_forced_while_it_waits_is_fetched_within_about_a_second(
    crawl: Crawler, site: MisbehavingSite, state: State, redis_socket: str
) -> None:
    """No plan has a part in it, nor the engine's heartbeat of 5 s."""
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
    """
    options = ["--redis-url", f"unix://{redis_socket}", "--namespace", state.namespace.name]
    with crawl(spider, of_RULES=[{"pattern": ".", "interval": 600}], of_RESOLVE_INTERVAL=600, of_MIN_INTERVAL=1) as running:
        running.until(lambda: state.at(site.url("/static/0")).get("visits") and state.plan)
        for command, n in ((["import", "-"], 2), (["force", site.url("/static/0")], 3)):
            settled = time.monotonic() + 1.3
            running.until(lambda settled=settled: time.monotonic() > settled)
            done = CliRunner().invoke(main, [*options, *command], input=site.url("/static/1"))
            assert done.exit_code == 0, done.output
            began = time.monotonic()
            running.until(lambda n=n: len(site.fetches) == n)
            assert time.monotonic() - began < 1.5


# The last one here: beside the first one it would be given to the same worker, and both wait for long.
def test_waiting_spider_of_partitions_and_keys_is_idle(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    _takes_next_to_nothing(crawl, site, state, of_PARTITIONS=4, of_URL_KEYS=["no-such-key"])
