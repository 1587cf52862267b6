"""Rows that nothing that runs can have stored: plans pass them over, and go on with all others."""

from __future__ import annotations

import pytest
from crawled import Crawl, page_of, parse

from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.state.rows import HEAD_BYTES, Row


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": -1.0},
        {"time": -1.0},
        {"shape": 2.0, "time": 0.0},
        {"host": 4_000_000_000},  # as many columns of hosts take all memory
    ],
)
def test_a_plan_passes_over_a_row_that_is_damaged(crawl: Crawl, fields: dict[str, float]) -> None:
    crawl.crawled(40)
    key, page = crawl.namespace.key("pages"), page_of("h1/1")
    stored = crawl.namespace.command("HGET", key, page)
    crawl.namespace.command("HSET", key, page, Row.unpack(stored)._replace(**fields).pack() + stored[HEAD_BYTES:])
    report = Planner(crawl.namespace, parse(CRAWL_RATE=5, HOST_MAX_RATE=1.0)).plan()
    assert report is not None
    assert report.pages == 39
