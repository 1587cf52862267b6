"""The add-on wires what is missing, and never overrides what the user set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from crawler import Crawler
from crawls import State
from forked_programs import run_forked
from misbehaving_site import MisbehavingSite
from plain_frontera import FINGERPRINTS
from scrapy import Spider
from scrapy.settings import Settings

from optimal_frontier import Addon
from optimal_frontier.integrations.scrapy import ChangeDetectionMiddleware, FrontierSpiderMiddleware, OptimalScheduler
from optimal_frontier.integrations.scrapy.foreign_settings import FronteraSettings
from optimal_frontier.integrations.scrapy.meta_refresh import PatientMetaRefreshMiddleware
from optimal_frontier.integrations.scrapy.robots_txt import PatientRobotsTxtMiddleware

DOWNLOADER = "optimal_frontier.integrations.scrapy.ChangeDetectionMiddleware"
SPIDER = "optimal_frontier.integrations.scrapy.FrontierSpiderMiddleware"
#: What the add-on changes of Scrapy's own middlewares.
CHANGED = {
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    PatientMetaRefreshMiddleware: 580,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    PatientRobotsTxtMiddleware: 100,
}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, []),
        ({"MIDDLEWARES": ["my.Middleware"]}, ["my.Middleware"]),
        ({"CANONICAL_SOLVER": "my.Solver"}, [FINGERPRINTS]),
    ],
    ids=["neither", "MIDDLEWARES", "CANONICAL_SOLVER"],
)
def test_frontera_makes_no_fingerprints_that_nobody_reads(given: dict[str, Any], used: list[str]) -> None:
    """Its default MIDDLEWARES hold where something of the user's may read what they make."""
    assert FronteraSettings(Settings(given)).get("MIDDLEWARES") == used


def _wired(**given: Any) -> Settings:
    settings = Settings(given, priority="project")
    Addon().update_settings(settings)
    return settings


def test_addon_wires_everything() -> None:
    """Scheduler and both middlewares, nothing else of the user's settings touched."""
    settings = _wired(DOWNLOADER_MIDDLEWARES={"a.B": 100})
    assert settings["SCHEDULER"] is OptimalScheduler
    assert settings["DOWNLOADER_MIDDLEWARES"].get(ChangeDetectionMiddleware) == 25
    assert settings["DOWNLOADER_MIDDLEWARES"].get("a.B") == 100
    assert settings["SPIDER_MIDDLEWARES"].get(FrontierSpiderMiddleware) == 25


@pytest.mark.parametrize("order", [900, None, 0])
@pytest.mark.parametrize("key", [DOWNLOADER, ChangeDetectionMiddleware])
def test_order_of_the_users_stays(order: int | None, key: Any) -> None:
    """By name or by class; None leaves the middleware out."""
    settings = _wired(DOWNLOADER_MIDDLEWARES={key: order}, SPIDER_MIDDLEWARES={SPIDER: order})
    assert dict(settings["DOWNLOADER_MIDDLEWARES"]) == {key: order} | CHANGED
    assert dict(settings["SPIDER_MIDDLEWARES"]) == {SPIDER: order}


def test_middleware_that_is_off_need_not_be_there() -> None:
    """Scrapy imports nothing that is set to None, so neither does the add-on."""
    settings = _wired(DOWNLOADER_MIDDLEWARES={"gone.Middleware": None}, SPIDER_MIDDLEWARES={"scrapy.gone.Middleware": None})
    assert settings["DOWNLOADER_MIDDLEWARES"].get(ChangeDetectionMiddleware) == 25


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_scheduler_of_the_users_stays(priority: str) -> None:
    """And our middlewares then stand aside, as they need ours."""
    settings = Settings()
    settings.set("SCHEDULER", "scrapy.core.scheduler.Scheduler", priority)
    Addon().update_settings(settings)
    assert settings["SCHEDULER"] == "scrapy.core.scheduler.Scheduler"


def test_custom_settings_of_a_spider_stay() -> None:
    """custom_settings go before the add-on."""

    class Mine(Spider):
        name = "mine"
        custom_settings = {  # noqa: RUF012  as users write it
            "SCHEDULER": "scrapy.core.scheduler.Scheduler",
            "DOWNLOADER_MIDDLEWARES": {DOWNLOADER: 7},
        }

    settings = Settings()
    Mine.update_settings(settings)
    Addon().update_settings(settings)
    assert settings["SCHEDULER"] == "scrapy.core.scheduler.Scheduler"
    assert dict(settings["DOWNLOADER_MIDDLEWARES"]) == {DOWNLOADER: 7}


def test_spider_with_scrapys_scheduler_crawls_as_ever(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """In a project with the add-on, a spider that sets another scheduler is none of ours."""
    spider = """
        class Tester(Base):
            custom_settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler"}
            paths = ["/links/static/a"]
            def parse(self, response):
                note(seen=response.meta.get("optimal_frontier"))
                for link in response.css("a"):
                    yield response.follow(link, lambda response: None)
    """
    with crawl(spider) as running:
        assert running.wait() == 0
    assert site.paths() == ["/links/static/a", "/static/a"]
    assert state.counts == {}
    assert running.record == [{"seen": None}]
    assert "ERROR" not in running.log


def test_what_the_scheduler_lacks_is_named(crawl: Crawler, state: State) -> None:
    """As where SCHEDULER alone is set, which without a word has every page fail."""
    spider = """
        class Tester(Base):
            custom_settings = {
                "DOWNLOADER_MIDDLEWARES": {"optimal_frontier.integrations.scrapy.ChangeDetectionMiddleware": None},
                "SPIDER_MIDDLEWARES": {"optimal_frontier.integrations.scrapy.FrontierSpiderMiddleware": None},
            }
    """
    with crawl(spider) as running:
        running.until(lambda: "Frontier open" in running.log)
        running.stop()
    for needed in ("DOWNLOADER_MIDDLEWARES has no ChangeDetectionMiddleware", "SPIDER_MIDDLEWARES has no FrontierSpiderMiddleware"):
        assert running.log.count(needed) == 1


def test_middlewares_of_the_projects_own_making_are_not_missed(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """One that is derived from ours, and a class of another kind that makes ours."""
    spider = """
        from optimal_frontier.integrations.scrapy import ChangeDetectionMiddleware, FrontierSpiderMiddleware

        class Maker:
            from_crawler = ChangeDetectionMiddleware.from_crawler

        class Derived(FrontierSpiderMiddleware):
            pass

        class Tester(Base):
            paths = ["/static/a"]
            custom_settings = {
                "DOWNLOADER_MIDDLEWARES": {"optimal_frontier.integrations.scrapy.ChangeDetectionMiddleware": None, Maker: 25},
                "SPIDER_MIDDLEWARES": {"optimal_frontier.integrations.scrapy.FrontierSpiderMiddleware": None, Derived: 25},
            }
    """
    with crawl(spider) as running:
        running.until(lambda: state.counts.get("visits", 0) >= 1)
        running.stop()
    assert "MIDDLEWARES has no" not in running.log


def test_no_deprecation_warning_is_ours(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """With Scrapy's deprecation warnings made errors a whole crawl goes through: pages, links, revisits, a failure, a clean stop."""
    spider = """
        import warnings
        warnings.simplefilter("error", ScrapyDeprecationWarning)

        class Tester(Base):
            paths = ["/links/counter/0,redirect/static/b", "/status/404", "/loop/a"]
            def parse(self, response):
                for link in response.css("a"):
                    yield response.follow(link)
    """
    with crawl(spider, LOG_LEVEL="DEBUG") as running:
        running.until(lambda: state.at(site.url("/counter/0")).get("visits", 0) >= 3)
        running.until(lambda: state.at(site.url("/redirect/static/b")).get("visits", 0) >= 2)
        assert running.stop() == 0
    assert "Deprecat" not in running.log
    assert "Traceback" not in running.log


@pytest.mark.parametrize("command", ["fetch", "parse", "shell"])
def test_commands_that_look_at_one_page_do_not_crawl(command: str, site: MisbehavingSite, tmp_path: Path) -> None:
    """``scrapy fetch``, ``parse`` and ``shell`` show the page and end; they neither join the crawl nor touch its state.

    A callback finds there what it finds in a crawl for a request that is no page.
    """
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (tmp_path / "settings.py").write_text(
        'BOT_NAME = "b"\nSPIDER_MODULES = ["spiders"]\nADDONS = {"optimal_frontier.Addon": 500}\nTELNETCONSOLE_ENABLED = False\n'
    )
    (tmp_path / "spiders.py").write_text(
        "import scrapy\nclass One(scrapy.Spider):\n    name = 'one'\n    allowed_domains = ['127.0.0.1']\n"
        f"    start_urls = ['{site.url('/static/start')}']\n    def parse(self, response):\n"
        "        yield {'url': response.url, 'known': response.meta['optimal_frontier']}\n"
    )
    more = {"fetch": [], "parse": ["--spider", "one"], "shell": ["-c", "response.meta['optimal_frontier']"]}[command]
    done = run_forked(["-m", "scrapy", command, *more, site.url("/static/looked-at")], tmp_path, os.environ, 20)
    assert done.returncode == 0, done.stderr
    assert ("<p>static</p>" if command == "fetch" else "'visits': 1") in done.stdout
    assert "Traceback" not in done.stderr
    assert set(site.paths()) == {"/static/looked-at"}
    assert not (tmp_path / ".scrapy" / "optimal_frontier").exists()


def test_a_crawl_with_a_redis_of_its_own_writes_nothing_into_the_project(crawl: Crawler, site: MisbehavingSite) -> None:
    """The project may lie where nobody can write, as in an image: Scrapy makes ``.scrapy`` only when something is to be kept there."""
    with crawl("class Tester(Base):\n    paths = ['/static/0']") as running:
        running.until(lambda: site.fetches)
        assert running.stop() == 0
    assert not (running.folder / ".scrapy").exists()
