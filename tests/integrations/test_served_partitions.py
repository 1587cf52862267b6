"""Crawlers that serve some partitions each: a page is fetched by one that serves its host, whoever has found it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from crawler import crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main

HOSTS = [f"127.0.0.{n}" for n in range(1, 21)]
SPIDER = """
    class Tester(Base):
        paths = ["/links/"]

        def first(self):
            if settings["USER_AGENT"] == "one":
                for n in range(1, 21):
                    yield Request(SITE.replace("127.0.0.1", f"127.0.0.{n}") + "/pages/5")

        def parse(self, response):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)
"""


@pytest.fixture
def site() -> Iterator[MisbehavingSite]:
    with MisbehavingSite(*HOSTS[1:]) as running:
        yield running


def status(redis_socket: str, namespace: str) -> str:
    words = ["--redis-url", f"unix://{redis_socket}", "--namespace", namespace, "status"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_two_crawlers_share_the_partitions(tmp_path: Path, site: MisbehavingSite, redis_socket: str, namespace: str, state: State) -> None:
    ours = {"of_PARTITIONS": 4, "of_MIN_INTERVAL": 600, "of_CRAWL_RATE": 200}
    with crawler(tmp_path / "one", site, redis_socket, namespace)(SPIDER, USER_AGENT="one", of_SERVE_PARTITIONS="0, 2-3", **ours) as one:
        one.until(lambda: "slots" in str(state.namespace.command("KEYS", state.key("slots"))))
        state.namespace.open(create=False)
        served = {host for host in HOSTS if state.namespace.partition_of(f"{host}:{site.port}") != 1}
        one.until(lambda: state.counts.get("fetched") == 6 * len(served))
        said = status(redis_socket, namespace)
        waiting = len(HOSTS) - len(served)
        with crawler(tmp_path / "two", site, redis_socket, namespace)(SPIDER, USER_AGENT="two", of_SERVE_PARTITIONS=[1], **ours) as two:
            two.until(lambda: state.counts.get("fetched") == 6 * len(HOSTS))
            two.until(lambda: state.namespace.command("HLEN", state.key("slots")) == 2)
            assert "not served" not in status(redis_socket, namespace)
            two.stop()
        one.stop()
    assert re.search(r"^not served +partitions 1: no crawler fetches their pages \(SERVE_PARTITIONS\)$", said, re.MULTILINE)
    assert f"{waiting} wait for their first visit" in said
    for name, hosts in (("one", served), ("two", set(HOSTS) - served)):
        asked = {fetch.headers["host"].partition(":")[0] for fetch in site.fetches if fetch.headers["user-agent"] == name}
        assert asked == hosts
    assert "Traceback" not in one.log + two.log


def test_an_unknown_partition_is_refused_in_one_line(tmp_path: Path, site: MisbehavingSite, redis_socket: str, namespace: str) -> None:
    start = crawler(tmp_path, site, redis_socket, namespace)
    with start(SPIDER, USER_AGENT="one", of_PARTITIONS=4, of_SERVE_PARTITIONS=[0, 4]) as refused:
        assert refused.wait() == 0  # of a script; `scrapy crawl` ends with 1
    (line,) = [line for line in refused.log.splitlines() if "CRITICAL" in line]
    assert "OPTIMAL_FRONTIER_SERVE_PARTITIONS names partition 4: expected 0 to 3, as there are 4 (OPTIMAL_FRONTIER_PARTITIONS)" in line
    assert "Traceback" not in refused.log
