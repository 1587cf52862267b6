"""A spider with nothing to do costs nothing, and wakes on time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from crawler import Crawler, crawler
from crawls import Crawl, State
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main

pytestmark = pytest.mark.timing

#: Seconds after the first fetch until plans are rare; seconds between two readings of what was used, how many are made, and how many
#: of these a span has.
SETTLED_S, STEP_S, READINGS, SPAN = 17.6, 1.0, 16, 6


def _cpu_s(pid: int) -> float:
    """Seconds on a processor, of all threads; the clock ticks of ``stat`` would be too coarse."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in Path(f"/proc/{pid}/task").iterdir()) / 1e9


#: What a slow machine is told by: a process that asks a server ten times a second for nothing takes 0.5 to 0.7% of a core here, a spider
#: 0.65 to 0.75 of that, one of four partitions 0.75 to 0.97.
_PEER = """
import sys, time, redis
client = redis.Redis(unix_socket_path=sys.argv[1])
while True:
    client.get("no-such-key")
    time.sleep(0.1)
"""


@contextmanager
def _peer(redis_socket: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", _PEER, redis_socket])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _cpu_at(crawls: list[Crawl], peer: int, moment: float) -> list[float]:
    """Wait for a moment; return what each crawl and the peer have used by then."""
    for crawl in crawls:
        crawl.until(lambda: time.monotonic() > moment, 60.0)
    return [*(_cpu_s(crawl.process.pid) for crawl in crawls), _cpu_s(peer)]


def test_waiting_spiders_are_idle(tmp_path: Path, site: MisbehavingSite, redis_socket: str, namespace: str) -> None:
    """With the next deadline 60 s away a spider takes at most 0.5% of a core, though it looks for what others do each second.

    Or, on a slow machine, as much as twelve bare round trips a second. So does one of four partitions that listens for keys. Between plans,
    which take 10 to 40 ms each: of a quarter of a minute those six seconds in a row count in which it used least. What else the machine
    does only adds.
    """
    spider = """
        class Tester(Base):
            paths = ["/static/%d"]
    """
    common: dict[str, Any] = {"of_RULES": [{"pattern": ".", "interval": 60}], "of_RESOLVE_INTERVAL": 60, "of_MIN_INTERVAL": 1}
    with ExitStack() as stack:
        crawls, states = [], []
        for number, more in enumerate(({}, {"of_PARTITIONS": 4, "of_URL_KEYS": ["no-such-key"]})):
            name = f"{namespace}-{number}"
            crawls.append(stack.enter_context(crawler(tmp_path / name, site, redis_socket, name)(spider % number, **common, **more)))
            states.append(State(f"unix://{redis_socket}", name))
            stack.callback(states[-1].close)
        for number, (crawl, state) in enumerate(zip(crawls, states, strict=True)):
            path = f"/static/{number}"
            settled = crawl.until(lambda path=path: site.of(path))[0].at + SETTLED_S
            crawl.until(lambda state=state, path=path: state.at(site.url(path)).get("visits") and state.plan)
        peer = stack.enter_context(_peer(redis_socket))
        used = np.array([_cpu_at(crawls, peer, settled + number * STEP_S) for number in range(READINGS)])
        assert sorted(fetch.path for fetch in site.fetches) == ["/static/0", "/static/1"]
    shares = (used[SPAN:] - used[:-SPAN]).min(axis=0) / (SPAN * STEP_S)
    *spiders, peer_share = shares.tolist()
    assert max(spiders) <= max(0.005, 1.2 * peer_share), shares


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


def test_how_long_a_download_takes_is_no_lateness(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """It is told to the start of the download, however slowly the page comes."""
    spider = """
        class Tester(Base):
            paths = ["/drip/1"]
    """
    with crawl(spider, of_RULES=[{"pattern": ".", "interval": 3}], of_RESOLVE_INTERVAL=60, of_MIN_INTERVAL=1) as running:
        (lateness,) = running.until(lambda: len(found := state.lateness) == 1 and found)
    assert lateness < 0.5


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
