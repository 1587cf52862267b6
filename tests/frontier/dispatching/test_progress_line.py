"""The line that says how a crawl is doing."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest
from clocked_namespace import open_namespace, page_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.dispatching import progress_line as progress_line_module
from optimal_frontier.frontier.dispatching.progress_line import ProgressLog, progress_line
from optimal_frontier.state.progress_reading import ProgressReading, _share_done, read_progress
from optimal_frontier.state.rows import HELD, Row

NOTHING = ProgressReading(0, 0, 0, 0, None, np.zeros(0), None)


def test_a_new_crawl_has_little_to_say():
    assert progress_line(NOTHING, NOTHING, 60.0) == (
        "Frontier: 0 pages known, 0 wait for their first visit; 0.0 fetches/s, 0 changes in 60 s"
    )


def test_a_crawl_under_way():
    before = ProgressReading(1000, 0, 5000, 40, 0.5, np.zeros(0), None)
    now = ProgressReading(1234, 0, 5294, 52, 0.9312, np.array([0.2, 0.2, 240.0]), None)
    assert progress_line(before, now, 60.0) == (
        "Frontier: 1,234 pages known, 0 wait for their first visit; 4.9 fetches/s, 12 changes in 60 s; freshness 93.1% (estimated); "
        "lateness 0.2 s (median), 4 min (99%)"
    )


@pytest.mark.parametrize(
    ("before", "now", "end"),
    [
        ({"waiting": 900}, {"waiting": 600}, "; first pass 40% done, about 2 min left"),
        ({"waiting": 600}, {"waiting": 600}, "; first pass 40% done"),
        ({"waiting": 600}, {"waiting": 900}, "; first pass 10% done"),
        ({"waiting": 5}, {"waiting": 0}, " changes in 60 s"),
        ({"done": 0.2}, {"done": 0.25}, "; CLOSE_AFTER 25% done, about 15 min left"),
        ({"done": 0.2}, {"done": 1.0}, "; CLOSE_AFTER 100% done"),
    ],
)
def test_an_end_that_is_known_is_told(before, now, end):
    pages = replace(NOTHING, pages=1000)
    assert progress_line(replace(pages, **before), replace(pages, **now), 60.0).endswith(end)


def test_what_is_read_of_a_crawl(redis_socket, namespace):
    """In two partitions: counters, attempts for CLOSE_AFTER; what is not there yet is nothing."""
    store = open_namespace(redis_socket, namespace, 2)
    nothing = read_progress(store, 2)
    assert (nothing.pages, nothing.waiting, nothing.freshness, len(nothing.lateness), nothing.done) == (0, 0, None, 0, 0.0)
    store.add(*(page_of(f"h{i}/x") for i in range(20)))
    handouts = [handout for k in range(2) for handout in store.dispatch(20, k, share=1.0)]
    assert len(handouts) == 20
    for handout in handouts[:10]:
        assert store.end(handout, visits=1, counters={"visits": 1, "changes": 1}, lateness=0.5)
    store.command("HSET", store.key("plan", 1), "time", "5", "estimated_freshness", "0.75", "pages", "9")
    reading = read_progress(store, 2)
    assert (reading.pages, reading.fetches, reading.changes, reading.freshness) == (20, 10, 10, 0.75)
    assert reading.lateness.tolist() == [0.5] * 10
    assert reading.done == pytest.approx(0.25)
    assert read_progress(store).done is None
    store.connection.close()


def test_lines_are_logged_off_the_callers_thread(store, caplog):
    """An outage makes none, and ends nothing."""
    caplog.set_level(logging.INFO)
    log = ProgressLog(store, None, 0.05, {"spider": "me"})
    log.start()
    for _ in range(200):
        if caplog.records:
            break
        threading.Event().wait(0.02)
    log.stop()
    record = caplog.records[0]
    assert record.getMessage().startswith("Frontier: 0 pages known")
    assert (record.spider, record.threadName) == ("me", "optimal_frontier-progress")


def test_a_server_that_has_lost_fetches_makes_no_line(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    told, read = iter([5, 15, 3, 9]), threading.Event()

    def reading(*_):
        fetches = next(told, None)
        if fetches is None:
            read.set()
            raise StateUnavailableError("no more")
        return replace(NOTHING, fetches=fetches, changes=fetches)

    monkeypatch.setattr(progress_line_module, "read_progress", reading)
    log = ProgressLog(None, None, 0.01)
    log.start()
    assert read.wait(10)
    log.stop()
    changes = [record.getMessage().split("fetches/s, ")[1].split(" ")[0] for record in caplog.records]
    assert changes == ["10", "6"]


def test_pages_that_lost_their_queue_are_told_of(store, caplog):
    """Once, when two readings in a row say so; those that wait for their first visit, are under way or were visited are in theirs."""
    store.add(*(page_of(f"h/{i}") for i in range(6)))
    for handout in store.dispatch(4, share=1.0)[:3]:
        assert store.end(handout, visits=1)
    assert read_progress(store).lost == 0
    first = (store.key("f"), store.key("f:1"))
    waiting = [store.command("DUMP", key) for key in first]
    store.command("DEL", *first)
    assert read_progress(store).lost == 2
    for key, value in zip(first, waiting, strict=True):
        store.command("RESTORE", key, 0, value)
    store.command("DEL", store.key("q"))
    assert read_progress(store).lost == 3
    log = ProgressLog(store, None, 0.01)
    log.start()
    for _ in range(200):
        if caplog.records:
            break
        threading.Event().wait(0.02)
    threading.Event().wait(0.1)
    log.stop()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["3 pages are known, and are in no queue"]


def test_held_pages_keep_no_crawl_from_its_end():
    rows = [Row(visits=2).pack(), Row(flags=HELD).pack()]
    assert _share_done([b"a", rows[0], b"b", rows[1]], 2) == 1.0
