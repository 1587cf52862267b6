"""The planner in the background."""

from __future__ import annotations

import threading
import time

from crawled import Crawl, parse

from optimal_frontier.errors import StateUnavailableError
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
