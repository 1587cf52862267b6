"""The planner in the background."""

from __future__ import annotations

import threading
import time

import pytest
from crawled import Crawl, parse

from optimal_frontier.errors import StateError, StateUnavailableError
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.frontier.planning.thread import PlannerThread


def test_it_plans_when_a_plan_is_due_and_tells_of_it(crawl: Crawl) -> None:
    """Once, though two threads find it due; whoever waits for it is told by both."""
    crawl.crawled(20)
    told = [threading.Event(), threading.Event()]
    threads = [PlannerThread(Planner(crawl.namespace, parse(CRAWL_RATE=5)), event.set) for event in told]
    for thread in threads:
        thread.start()
    try:
        assert all(event.wait(10) for event in told)
    finally:
        for thread in threads:
            thread.stop()
    assert crawl.plan()["number"] == "1"


def test_a_plan_that_fails_does_not_end_it(crawl: Crawl, monkeypatch) -> None:
    """An outage is waited for, and the plan is made after it."""
    crawl.crawled(20)
    planner, told, failures = Planner(crawl.namespace, parse(CRAWL_RATE=5)), threading.Event(), [StateUnavailableError("gone")]
    plan = planner.plan

    def fail_once(**options):
        if failures:
            raise failures.pop()
        report = plan(**options)
        told.set()
        return report

    monkeypatch.setattr(planner, "plan", fail_once)
    thread = PlannerThread(planner)
    thread.start()
    try:
        assert told.wait(10)
    finally:
        thread.stop()
    assert crawl.plan()["number"] == "1"


def test_a_thread_that_was_not_started_can_be_stopped(crawl: Crawl) -> None:
    PlannerThread(Planner(crawl.namespace, parse())).stop()


@pytest.mark.parametrize("damage", [{"multiplier": "abc"}, {"fetched": "many"}, {"time": "nan"}, {"time": "9" * 23}])
def test_a_damaged_plan_is_mended_and_the_next_one_made(crawl: Crawl, damage: dict[str, str]) -> None:
    """Whatever stands there: it does not end the planner, which no crawl is without."""
    crawl.crawled(20)
    settings = parse(CRAWL_RATE=5, RESOLVE_INTERVAL=0.2)
    Planner(crawl.namespace, settings).plan()
    crawl.set_plan(**damage)
    planner, told = Planner(crawl.namespace, settings), threading.Event()
    plan = planner.plan
    planner.plan = lambda **options: (plan(**options), told.set())[0]  # type: ignore[method-assign]
    thread = PlannerThread(planner)
    crawl.advance(100)
    thread.start()
    try:
        assert told.wait(10)
    finally:
        thread.stop()
    assert crawl.plan()["number"] > "1"
    assert float(crawl.plan()["time"]) >= crawl.at


def test_an_outage_while_a_damaged_value_is_mended_does_not_end_it(crawl: Crawl, monkeypatch) -> None:
    crawl.crawled(20)
    planner, told, failures = (
        Planner(crawl.namespace, parse(CRAWL_RATE=5, RESOLVE_INTERVAL=0.2)),
        threading.Event(),
        [StateError("WRONGTYPE")],
    )
    plan = planner.plan

    def fail_once(**options):
        if failures:
            raise failures.pop()
        report = plan(**options)
        told.set()
        return report

    def away(*_: object) -> bool:
        raise StateUnavailableError("gone")

    monkeypatch.setattr(planner, "plan", fail_once)
    monkeypatch.setattr("optimal_frontier.frontier.planning.thread.can_go_on", away)
    thread = PlannerThread(planner)
    thread.start()
    try:
        assert told.wait(10)
    finally:
        thread.stop()


def test_a_long_plan_does_not_outlive_its_crawler(crawl: Crawl, monkeypatch, caplog) -> None:
    """It is left where it is, and whoever closes the connection then hears of no error."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.crawl_solving.WHOLE", 0)
    crawl.crawled(200)
    planner, begun = Planner(crawl.namespace, parse(CRAWL_RATE=5)), threading.Event()
    spans, part = planner.crawl.spans, planner.crawl.part
    monkeypatch.setattr(planner.crawl, "spans", lambda size=0: spans(5))
    monkeypatch.setattr(planner.crawl, "part", lambda span: (begun.set(), time.sleep(0.2), part(span))[2])
    thread = PlannerThread(planner)
    thread.start()
    assert begun.wait(10)
    thread.stop(1.0)
    assert not thread._thread.is_alive()
    assert crawl.plan() == {}
    assert not caplog.records
