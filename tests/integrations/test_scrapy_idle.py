"""Scrapy's habits around the crawl: spider_idle, several spiders in a process, what is said and what a command exits with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from crawler import Crawler
from crawls import PATIENCE_S, State
from forked_programs import run_forked
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main

IDLE = """
    import time

    class Tester(Base):
        paths = ["/slow/0.3"]

        @classmethod
        def from_crawler(cls, crawler, *arguments, **keywords):
            spider = super().from_crawler(crawler, *arguments, **keywords)
            crawler.signals.connect(spider.fed, signals.spider_idle)
            return spider

        def fed(self, spider):
            known = len(self.crawler.engine.downloader.active)
            note(idle=time.monotonic(), active=known)
            fed = self.crawler.stats.get_value("idle", 0)
            if fed < self.crawler.settings.getint("FED"):
                self.crawler.engine.crawl(Request(SITE + f"/static/{fed}"))
            self.crawler.stats.inc_value("idle")
"""


def test_handlers_of_spider_idle_feed_the_crawl(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """It is sent whenever nothing is due and nothing under way, once a second at most, and does not close the spider."""
    with crawl(IDLE, of_MIN_INTERVAL=600, FED=100) as running:
        running.until(lambda: site.count("/static/2"))
        running.stop()
    times = [line["idle"] for line in running.record if "idle" in line]
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.99
    assert times[0] >= site.of("/slow/0.3")[0].at + 0.3
    assert {line["active"] for line in running.record if "idle" in line} == {0}
    assert state.counts["pages"] >= 4


def test_crawl_that_is_complete_closes_when_it_is_idle(crawl: Crawler, site: MisbehavingSite) -> None:
    """CLOSE_AFTER closes the spider by spider_idle as Scrapy does, so a handler may still feed it."""
    with crawl(IDLE, of_CLOSE_AFTER=1, of_MIN_INTERVAL=600, FED=2) as running:
        assert running.wait() == 0
    assert sorted(site.paths()) == ["/slow/0.3", "/static/0", "/static/1"]
    assert running.stats["reason"] == "finished"


def test_crawl_that_is_complete_ends_though_its_pages_go_on_yielding_links_that_are_known(crawl: Crawler, site: MisbehavingSite) -> None:
    """Pages that are due at all times, whose links say something to the store each time: when they changed."""
    spider = """
        class Tester(Base):
            paths = [f"/slow/0.{n}" for n in (1, 2, 3)]
            def parse(self, response):
                for path in self.paths:
                    yield Request(SITE + path, meta={"lastmod": "2020-01-01"})
    """
    with crawl(spider, of_CLOSE_AFTER=3, of_MIN_INTERVAL=0.01, of_MAX_INTERVAL=0.02) as running:
        assert running.wait() == 0
    assert running.stats["reason"] == "finished"
    assert all(len(site.of(f"/slow/0.{n}")) >= 3 for n in (1, 2, 3))


def test_crawl_that_is_complete_ends_though_each_visit_asks_for_more_than_fits_between_two(crawl: Crawler, site: MisbehavingSite) -> None:
    """What was asked for at the visits that the end waits for is fetched before; what comes later holds its page, and not the end."""
    spider = """
        class Tester(Base):
            paths = ["/counter/0"]
            def parse(self, response):
                yield Request(SITE + "/slow/0.7", callback=self.then, dont_filter=True)
            def then(self, response):
                yield Request(SITE + "/slow/0.3", callback=self.last, dont_filter=True)
            def last(self, response):
                note(last=response.url)
    """
    with crawl(spider, of_CLOSE_AFTER=2, of_MIN_INTERVAL=0.1, of_MAX_INTERVAL=0.2) as running:
        assert running.wait() == 0
    assert running.stats["reason"] == "finished"
    assert site.count("/slow/0.7") == site.count("/slow/0.3") == len(running.record) >= 2


NOTHING = "has yielded no request that became a page, and namespace"


@pytest.mark.parametrize("first", ["", "mailto:someone@a.example"], ids=["no-start-request", "one-that-is-refused"])
def test_spider_that_yields_nothing_says_so_and_stays_open(
    crawl: Crawler, site: MisbehavingSite, state: State, redis_socket: str, first: str
) -> None:
    """Others may add pages: it takes them up, and says nothing more."""
    spider = f"""
        class Tester(Base):
            def first(self):
                yield from (Request(url) for url in {[first] if first else []})
    """
    with crawl(spider, of_MIN_INTERVAL=600, of_LEASE_SECONDS=60) as running:
        running.until(lambda: NOTHING in running.log)
        assert "WARNING" in next(line for line in running.log.splitlines() if NOTHING in line)
        assert "it stays open for pages that others add" in running.log
        assert "OPTIMAL_FRONTIER_LEASE_SECONDS = 60 counts as 15" in running.log
        options = ["--redis-url", f"unix://{redis_socket}", "--namespace", state.namespace.name]
        done = CliRunner().invoke(main, [*options, "import", "-"], input=site.url("/static/0"))
        assert done.exit_code == 0, done.output
        running.until(lambda: site.count("/static/0"))
        running.stop()
    assert running.log.count(NOTHING) == 1


@pytest.mark.parametrize(
    ("more", "then"), [({"of_CLOSE_AFTER": 1}, "the spider closes"), ({"of_URL_KEYS": ["a:urls"]}, "waits for URLs in a:urls")]
)
def test_spider_that_yields_nothing_says_what_comes_of_it(crawl: Crawler, more: dict[str, Any], then: str) -> None:
    """With CLOSE_AFTER it ends as Scrapy's would; with URL_KEYS all is as it should be."""
    with crawl("class Tester(Base): pass", **more) as running:
        if "of_CLOSE_AFTER" in more:
            assert running.wait() == 0
        else:
            running.until(lambda: NOTHING in running.log)
        (line,) = [line for line in running.log.splitlines() if NOTHING in line]
        assert then in line
        assert "INFO" in line
        if "of_CLOSE_AFTER" not in more:
            running.stop()


def test_crawl_that_goes_on_with_known_pages_says_nothing_of_it(crawl: Crawler, site: MisbehavingSite) -> None:
    with crawl(IDLE, of_MIN_INTERVAL=600, FED=0) as running:
        running.until(lambda: any("idle" in line for line in running.record))
        running.stop()
    idle = IDLE.replace('["/slow/0.3"]', "[]")
    with crawl(idle, of_MIN_INTERVAL=600, FED=0) as running:
        known = len(running.record)
        running.until(lambda: len(running.record) > known)
        running.stop()
    assert NOTHING not in running.log_path.read_text()


TWO = """
import json, os, sys
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

class One(Spider):
    name = "one"
    custom_settings = {"OPTIMAL_FRONTIER_NAMESPACE": "one"}
    async def start(self):
        yield Request(os.environ["SITE"] + "/static/" + self.name)
    def parse(self, response):
        print("seen", self.name, response.url, flush=True)

class Two(One):
    name = "two"
    custom_settings = {"OPTIMAL_FRONTIER_NAMESPACE": "two"}

settings = json.loads(os.environ["SETTINGS"])
process = CrawlerProcess(settings)
for spider in (One, Two):
    process.crawl(spider)
process.start()
sys.exit(process.bootstrap_failed)
"""


def _run(folder: Path, site: MisbehavingSite, redis_socket: str, command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    given = {
        "ADDONS": {"optimal_frontier.Addon": 500},
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "OPTIMAL_FRONTIER_REDIS_URL": f"unix://{redis_socket}",
        **settings,
    }
    environment = {**os.environ, "SITE": site.url(""), "SETTINGS": json.dumps(given)}
    if "crawl" not in command:
        return run_forked(command, folder, environment, PATIENCE_S)
    # The usual command once as it is, from the start of the interpreter.
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_two_spiders_in_a_process(tmp_path: Path, site: MisbehavingSite, redis_socket: str) -> None:
    """Each has a namespace of its own; one embedded server serves both."""
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    ended = _run(
        tmp_path,
        site,
        redis_socket,
        ["two.py"],
        OPTIMAL_FRONTIER_REDIS_URL="embedded",
        OPTIMAL_FRONTIER_CLOSE_AFTER=2,
        OPTIMAL_FRONTIER_MIN_INTERVAL=0.2,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    for name in ("one", "two"):
        assert ended.stdout.count(f"seen {name}") == site.count(f"/static/{name}") >= 2


SCRIPT = TWO.replace("(One, Two)", "(One,)")
SPIDER_FILE = SCRIPT[: SCRIPT.index("class Two")] + "    custom_settings = json.loads(os.environ['SETTINGS'])\n"


@pytest.mark.parametrize("command", ["script", "runspider", "crawl"])
def test_refused_spider_is_a_failed_command(command: str, tmp_path: Path, site: MisbehavingSite, redis_socket: str) -> None:
    """scrapy crawl, scrapy runspider, and a script that asks its CrawlerProcess; one line says why."""
    (tmp_path / "one.py").write_text(SCRIPT if command == "script" else SPIDER_FILE.replace('class Two(One):\n    name = "two"\n\n', ""))
    (tmp_path / "settings_of_it.py").write_text('SPIDER_MODULES = ["one"]\n')
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings_of_it\n" if command == "crawl" else "[settings]\n")
    arguments = {"script": ["one.py"], "runspider": ["-m", "scrapy", "runspider", "one.py"], "crawl": ["-m", "scrapy", "crawl", "one"]}
    ended = _run(tmp_path, site, redis_socket, arguments[command], OPTIMAL_FRONTIER_CRAWL_RATE="fast")
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("OPTIMAL_FRONTIER_CRAWL_RATE = 'fast'") >= 1
    assert "Traceback" not in ended.stderr
    assert not site.fetches


def test_dupefilter_that_is_ignored_is_said_so(crawl: Crawler, site: MisbehavingSite) -> None:
    """In one line."""
    spider = """
        class Tester(Base):
            paths = ["/static/0"]
    """
    with crawl(spider, of_CLOSE_AFTER=1, DUPEFILTER_CLASS="scrapy.dupefilters.BaseDupeFilter") as running:
        assert running.wait() == 0
    assert running.log.count("DUPEFILTER_CLASS = 'scrapy.dupefilters.BaseDupeFilter' is not used") == 1
