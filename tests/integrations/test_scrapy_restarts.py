"""A crawl that was stopped, killed, or lost its server goes on from where it was."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite


def test_restart_fetches_no_page_early(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """What is not due is not fetched because start() yields it; what is new is."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/pages/10")
                if os.path.exists("again"):
                    yield Request(SITE + "/static/new")
                open("again", "w").close()
            def parse(self, response):
                for link in response.css("a"):
                    yield response.follow(link)
    """
    with crawl(spider, of_MIN_INTERVAL=600) as running:
        running.until(lambda: state.counts.get("visits") == 11)
        running.stop()
    with crawl(spider, of_MIN_INTERVAL=600) as running:
        running.until(lambda: state.counts["visits"] == 12)
        running.stop()
    assert sorted(site.paths()) == sorted(["/pages/10", "/static/new"] + [f"/static/{n}" for n in range(10)])


def test_restart_keeps_estimates(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Bits, posterior and rate of a page go on from where the last crawl left them."""
    spider = """
        class Tester(Base):
            paths = ["/counter/0", "/static/0"]
    """
    url = site.url("/counter/0")
    for wanted in (3, 6):
        before = state.at(url)
        with crawl(spider) as running:
            running.until(lambda wanted=wanted: state.at(url).get("observations", 0) >= wanted)
            running.stop()
        page = state.at(url)
        assert page["observations"] == page["changes"] == site.count("/counter/0") - 1
        if before:
            assert page["shape"] > before["shape"]
            assert page["bits"] >> (page["observations"] - before["observations"]) == before["bits"]
    changed = [line["seen"]["changed"] for line in running.record if line["url"] == url]
    assert changed == [None] + [True] * (len(changed) - 1)


def test_killed_spider_loses_no_page_and_counts_nothing_twice(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Leases of a dead owner come back after its silence, and each fetch is counted at most once."""
    spider = """
        class Tester(Base):
            paths = ["/pages/20"] + [f"/slow/0.3/{n}" for n in range(20)]
            def parse(self, response):
                for link in response.css("a"):
                    yield response.follow(link)
    """
    settings = {"of_CRAWL_RATE": "auto", "of_MIN_INTERVAL": 0.5, "CONCURRENT_REQUESTS": 8}
    paths = ["/pages/20"] + [f"/static/{n}" for n in range(20)] + [f"/slow/0.3/{n}" for n in range(20)]
    with crawl(spider, **settings) as running:
        running.until(lambda: state.counts.get("visits", 0) >= 12 and state.counts.get("observations", 0) >= 1 and state.in_flight >= 2)
        running.kill()
    left = state.in_flight
    assert left >= 1
    # Instead of waiting for 15 s of silence.
    state.advance(16)
    with crawl(spider, **settings) as running:
        running.until(lambda: state.counts.get("leases_expired") == left)
        state.advance(-16)
        running.until(lambda: all(state.at(site.url(path)).get("visits", 0) >= 1 for path in paths))
        running.stop()
    assert state.in_flight == 0
    pages = {path: state.at(site.url(path)) for path in paths}
    for path, page in pages.items():
        assert page["visits"] <= site.count(path), path
        assert page["observations"] == page["visits"] - 1, path
        assert page["changes"] == 0, path
    assert state.counts["observations"] == sum(page["observations"] for page in pages.values())
    assert state.counts["visits"] == sum(page["visits"] for page in pages.values())
    # All that was fetched and not counted was under way when the spider was killed.
    assert len(site.fetches) - state.counts["visits"] <= left
    assert state.counts["pages"] == len(paths)


def test_killed_server_is_started_again_and_the_crawl_goes_on(crawl: Crawler, site: MisbehavingSite, tmp_path: Path) -> None:
    """The spider that finds its embedded server dead restarts it within 10 s; no page is missing, nothing is counted twice."""
    spider = """
        class Tester(Base):
            paths = [f"/counter/{n}" for n in range(30)]
    """
    data = tmp_path / "data"
    with crawl(spider, of_REDIS_URL=f"embedded://{data}", of_CRAWL_RATE=60) as running:
        running.until(lambda: len(site.fetches) >= 80)
        os.kill(json.loads((data / "server.json").read_text())["pid"], signal.SIGKILL)
        killed, killed_at, before = time.monotonic(), time.time(), len(site.fetches)
        running.until(lambda: len(site.fetches) >= before + 60, 15)
        assert min(f.at for f in site.fetches[before + 20 :]) - killed < 10
        with_server = State(f"embedded://{data}", running_namespace(running.folder))
        try:
            running.until(lambda: all(site.count(f"/counter/{n}") >= 3 for n in range(30)))
            assert running.stop() == 0
            counts = with_server.counts
            pages = [with_server.at(site.url(f"/counter/{n}")) for n in range(30)]
            # Only leases whose reply died with the server are left, and run out: it had handed them out before.
            assert with_server.in_flight == len(with_server.lease_ends)
            assert all(end <= killed_at + 15 for end in with_server.lease_ends)
        finally:
            with_server.close()
    assert counts["pages"] == 30
    assert "Traceback" not in running.log
    for n, page in enumerate(pages):
        assert page["visits"] <= site.count(f"/counter/{n}")
        assert page["observations"] == page["visits"] - 1
    # The server may have lost one second of its log.
    assert sum(page["visits"] for page in pages) >= len(site.fetches) - 60


def running_namespace(folder: Path) -> str:
    """Return the namespace that a crawl in ``folder`` was given."""
    namespace: str = json.loads((folder / "settings.json").read_text())["OPTIMAL_FRONTIER_NAMESPACE"]
    return namespace


def test_stop_without_a_server_ends_in_time(crawl: Crawler, site: MisbehavingSite, tmp_path: Path) -> None:
    """A spider whose Redis went away says so and closes when it is told to, without a traceback."""
    import subprocess

    from optimal_frontier.state.embedded import _server_program

    socket_path = tmp_path / "s"
    server = subprocess.Popen([_server_program(), "--port", "0", "--unixsocket", str(socket_path), "--save", ""], stdout=subprocess.DEVNULL)
    try:
        while not socket_path.exists():
            time.sleep(0.01)
        spider = """
            class Tester(Base):
                paths = ["/counter/0"]
        """
        with crawl(spider, of_REDIS_URL=f"unix://{socket_path}") as running:
            running.until(lambda: len(site.fetches) >= 3)
            server.kill()
            running.until(lambda: "trying again" in running.log)
            running.signal(signal.SIGTERM)
            assert running.wait(12) == 0
    finally:
        server.kill()
        server.wait()
    assert "stopping without Redis" in running.log
    assert "Traceback" not in running.log
