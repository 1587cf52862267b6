"""``check``: what people and programs read of it; the invariants themselves are in tests/state."""

from __future__ import annotations

import threading

import pytest
from judged_crawl import JudgedCrawl

from optimal_frontier.cli import check_command
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state import checking
from optimal_frontier.state.messages import RELEASE, Observation
from optimal_frontier.state.rows import ACTIVE, TRANSIENT

from .stored_crawl import HOT


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(checking, "PAUSE_S", 0.0)


def test_a_whole_state_passes(run, ask, crawl):
    result = run("check")
    assert (result.exit_code, result.stdout) == (0, "ok, 4 pages\n")
    assert ask("check") == {"ok": True, "pages": 4, "violations": [], "repaired": []}


def test_people_get_a_line_each_and_are_told_of_repairs(run, ask, crawl):
    crawl.namespace.command("ZREM", crawl.key("q"), crawl.page(HOT))
    crawl.rewrite(HOT, changes=1000)
    result = run("check")
    assert result.exit_code == 1
    page = f"page {crawl.page(HOT).hex()}"
    assert f"{page} is in no queue" in result.stdout
    assert "2 violations, 4 pages" in result.stdout
    assert "1 of them can be repaired; --repair puts them right while no crawl is running" in result.stdout
    found = {finding["invariant"]: finding for finding in ask("check", code=1)["violations"]}
    repairable = {"partition": 0, "invariant": "places", "subject": page, "message": "is in no queue", "repairable": True}
    assert found["places"] == repairable
    result = run("check", "--repair")
    assert result.exit_code == 1
    assert f"repaired: {page} is in no queue" in result.stdout
    assert "1 repaired; check again" in result.stdout
    crawl.rewrite(HOT, changes=0)
    assert run("check").exit_code == 0
    crawl.advance(10.0)
    assert HOT in [handout.record["url"] for handout in crawl.dispatch()]


def test_one_run_repairs_all_however_much_that_is(ask, crawl, monkeypatch):
    """Of a queue that was lost each round puts back a part."""
    monkeypatch.setattr(checking, "MOST_REPAIRS", 1)
    crawl.namespace.command("DEL", crawl.key("q"))
    monkeypatch.setattr(check_command, "_ROUNDS", 1)
    answer = ask("check", "--repair")
    assert (answer["ok"], len(answer["repaired"])) == (True, 3)


def test_a_repair_is_told_as_json(ask, crawl):
    crawl.namespace.command("HINCRBY", crawl.key("stats"), "pages", 2)
    answer = ask("check", "--repair")
    assert (answer["ok"], answer["violations"]) == (True, [])
    assert [finding["subject"] for finding in answer["repaired"]] == ["pages"]
    assert ask("status")["pages"] == 4


@pytest.mark.parametrize("name", ["q", "stats", "plan", "priors", "pages", "d", "hosts", "hosts:names", "sources"])
def test_a_key_of_another_type_is_set_aside_and_all_is_well_again(run, crawl, name):
    """Commands that only read refuse in one line."""
    key = crawl.key(name)
    crawl.namespace.commands([["DEL", key], ["XADD", key, "*", "mine", "1"]])
    assert (run("status").exit_code, run("pages").exit_code) == (1, 1)
    assert f"{name} is a stream, expected a" in run("check").stdout
    result = run("check", "--repair")
    assert f"repaired: {name} is a stream" in result.stdout
    assert crawl.namespace.command("TYPE", f"{key}:damaged") == b"stream"
    if name not in ("hosts:names", "pages"):  # of these something is lost that nothing else tells
        assert (result.exit_code, run("check").exit_code, run("status").exit_code) == (0, 0, 0)


@pytest.mark.parametrize("value", [b"\x00", b"\xff\xfe", b"nan", b"-1", b"", b"9" * 400])
@pytest.mark.parametrize("field", ["partitions", "run", "opened"])
def test_a_damaged_field_of_meta_is_put_right(run, crawl, field, value):
    crawl.namespace.command("HSET", crawl.key("meta"), field, value)
    assert f"meta {field}" in run("check").stdout
    assert run("status").exit_code == 0
    assert run("check", "--repair").exit_code == 0
    assert run("check").stdout == "ok, 4 pages\n"


def test_many_findings_are_cut_short_for_people(run, ask, crawl):
    crawl.namespace.command("HSET", crawl.key("memory"), *(value for at in range(150) for value in (at.to_bytes(12, "big"), b"\x80")))
    assert "and 50 more; --json lists all" in run("check").stdout
    assert len(ask("check", code=1)["violations"]) == 150


def test_a_running_crawl_passes(redis_socket, namespace, crawl, ask, monkeypatch):
    """Nothing is locked: what only seemed broken while it was read is not reported."""
    monkeypatch.setattr(checking, "PAUSE_S", 0.05)
    for at in range(400):
        crawl.add(f"http://h{at % 5}.example/{at}", state=(ACTIVE, ACTIVE, ACTIVE, TRANSIENT)[at % 4])
    stop, failed = threading.Event(), []

    def crawl_on() -> None:
        other = JudgedCrawl(redis_socket, namespace)
        other.set_time(crawl.time)
        at = 0
        try:
            while not stop.is_set():
                other.advance(0.01)
                for handout in other.dispatch(20):
                    at += 1
                    if at % 4 == 3:
                        other.end([Observation(handout, RELEASE, handout.row)])
                    else:
                        other.end([other.judged(handout, Visit(handout.received, ("", "", "503")[at % 3]))])
                other.add(f"http://n{at % 7}.example/{at}")
        except Exception as error:  # shown below
            failed.append(error)
        other.close()

    thread = threading.Thread(target=crawl_on)
    thread.start()
    try:
        for _ in range(5):
            assert ask("check")["violations"] == []
    finally:
        stop.set()
        thread.join()
    assert failed == []
