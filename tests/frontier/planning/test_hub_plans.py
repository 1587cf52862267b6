"""Hubs in a plan: what they yield is read once per visit, counts in rates and numbers, and is said."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from crawled import parse

from optimal_frontier.frontier.planning.curve import read_crawl_curve
from optimal_frontier.frontier.planning.hub_pages import HubPages
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.scheduling.discovery import wait_with_discovery
from optimal_frontier.state.memory import Memory, Yielded
from optimal_frontier.state.rows import HEAD_BYTES, HUB, Row

HUBS = 5


def with_hubs(crawl, rate: float = 0.02, pages: int = 100) -> list[bytes]:
    """Pages, the first of which yield new ones and change faster than anyone can follow; return these."""
    crawl.crawled(pages)
    key, found = crawl.namespace.key, []
    for number, page in enumerate(sorted(crawl.rows())[:HUBS]):
        value = crawl.namespace.command("HGET", key("pages"), page)
        row = Row.unpack(value)._replace(flags=HUB, shape=900.0, time=9.0)
        crawl.namespace.command("HSET", key("pages"), page, row.pack() + value[HEAD_BYTES:])
        yielded = Yielded(rate * 1000 * (number + 1), rate * 1000 * (number + 1), 1000.0, row.b / 1e6)
        crawl.namespace.command("HSET", key("memory"), page, Memory(yielded=yielded).pack())
        found.append(page)
    return found


def planner_of(crawl, **values) -> Planner:
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=5, **values))
    assert planner.plan() is not None
    return planner


def rates_of(planner: Planner, pages: list[bytes]) -> np.ndarray:
    ids = [one.tobytes() for one in planner.crawl.tables[0].pages["id"][planner.crawl.planned]]
    return np.array([planner.rates[ids.index(page)] for page in pages])


@pytest.mark.parametrize("settings", [{}, {"OBJECTIVE": "changes"}, {"POLICY": "poisson"}, {"HOST_MAX_RATE": 0.5}])
def test_hubs_are_visited_for_what_they_yield(crawl, settings):
    """All of the budget is planned; without the setting they get nothing."""
    hubs = with_hubs(crawl)
    planner = planner_of(crawl, **settings)
    rates = rates_of(planner, hubs)
    assert np.all(rates > 0)
    plan = crawl.plan()
    assert plan["hubs"] == str(HUBS)
    assert float(plan["planned_rate"]) + float(plan["unused"]) == pytest.approx(5.0, rel=1e-6)
    if not settings:
        assert np.all(np.diff(rates) > 0)
    off = planner_of(crawl, DISCOVERY_VALUE=False, **settings)
    if settings.get("OBJECTIVE") != "changes":
        assert np.all(rates_of(off, hubs) < 1e-8)
    assert crawl.plan()["hubs"] == "0"


def test_the_stored_numbers_are_those_of_the_plan(crawl):
    hubs = with_hubs(crawl)
    planner = planner_of(crawl)
    log_price = crawl.log_price()
    for number, (page, rate) in enumerate(zip(hubs, rates_of(planner, hubs), strict=True)):
        row = Row(*crawl.rows()[page].tolist())
        wait, slope = wait_with_discovery(log_price, row.importance, 100.0, 0.02 * (number + 1))
        assert (row.a + row.s * log_price, row.s) == pytest.approx((wait, slope), rel=1e-3)
        assert 1 / rate == pytest.approx(wait, rel=1e-3)
    planner.plan()
    assert [Row(*crawl.rows()[page].tolist()).flags for page in hubs] == [HUB] * HUBS


def test_what_they_yield_is_read_once_per_visit(crawl, monkeypatch):
    with_hubs(crawl)
    planner = planner_of(crawl)
    asked: list[str] = []
    command = crawl.namespace.command
    monkeypatch.setattr(crawl.namespace, "command", lambda *args, **values: asked.append(args[0]) or command(*args, **values))
    planner.plan()
    assert "HMGET" not in asked
    assert planner.crawl.hubs[0].count == HUBS


def test_a_memory_that_cannot_be_read_is_worth_nothing(crawl):
    hubs = with_hubs(crawl)
    crawl.namespace.command("HSET", crawl.namespace.key("memory"), hubs[0], b"\xc1rubbish")
    planner = planner_of(crawl)
    assert rates_of(planner, hubs[:1])[0] < 1e-8


def test_a_crawl_without_hubs_is_planned_as_ever(crawl):
    crawl.crawled(100)
    planner = planner_of(crawl)
    assert planner.crawl.problem(crawl.plan(), crawl.at).discovery is None
    assert crawl.plan()["hubs"] == "0"


def test_pages_that_are_given_up_are_said_once(crawl, caplog):
    hubs = with_hubs(crawl)
    with caplog.at_level(logging.INFO):
        planner = planner_of(crawl, DISCOVERY_VALUE=False)
        planner.plan()
    said = [record.getMessage() for record in caplog.records if "change too fast" in record.getMessage()]
    assert len(said) == 1
    given_up = int(crawl.plan()["given_up"])
    assert given_up >= HUBS
    assert said[0].startswith(f"{given_up} of 100 pages change too fast")
    rows = crawl.rows()
    assert all(math.isinf(rows[page]["a"]) for page in hubs)
    assert given_up == sum(math.isinf(row["a"]) for row in rows.values())


def test_whatif_says_how_soon_new_pages_are_found(crawl):
    with_hubs(crawl)
    planner_of(crawl)
    curve = read_crawl_curve(crawl.namespace, parse(CRAWL_RATE=5))
    now, more = curve.found_after(5.0), curve.found_after(20.0)
    assert 0 < more < now
    best = curve.at(5.0)
    assert curve.at(20.0).freshness > best.freshness
    assert best.slope == pytest.approx((curve.at(5.01).freshness - best.freshness) / 0.01, rel=0.05)
    crawl_without = read_crawl_curve(crawl.namespace, parse(CRAWL_RATE=5, DISCOVERY_VALUE=False))
    assert crawl_without.found_after(5.0) is None


def test_pages_read_from_the_table_keep_their_place():
    """`among` answers for any chosen rows in rising order."""
    hubs = HubPages(None, 0, parse())
    hubs._at, hubs._yielded = np.array([2, 5, 9]), np.array([0.1, 0.2, 0.3])
    assert hubs.among(np.arange(4, 8)).tolist() == [0.0, 0.2, 0.0, 0.0]
    assert hubs.among(np.array([0, 2, 9])).tolist() == [0.0, 0.1, 0.3]
    assert hubs.among(np.array([10, 11])).tolist() == [0.0, 0.0]
    assert hubs.among(np.zeros(0, np.int64)) is None
