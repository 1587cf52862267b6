"""What `page` says of a stored page under settings of the test's own, without a project."""

from __future__ import annotations

from typing import Any

from judged_crawl import JudgedCrawl

from optimal_frontier.cli.page_facts import page_facts
from optimal_frontier.cli.page_reasons import why
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.reading import read_page


def settings_of(**values: Any) -> FrontierSettings:
    """Settings without their prefix, with those of the stored crawl."""
    given = {"CRAWL_RATE": 1.0, "RESOLVE_INTERVAL": 10.0} | values
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in given.items()})


def explained(crawl: JudgedCrawl, url: str, **values: Any) -> dict[str, Any]:
    """What ``page --json`` shows."""
    settings = settings_of(**values)
    reading = read_page(crawl.namespace, crawl.page(url), host_of(url))
    assert reading is not None, url
    facts = page_facts(reading, crawl.page(url), url, settings)
    return facts | {"why": why(reading, facts, settings)}
