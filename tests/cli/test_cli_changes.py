"""``changes``: the feed as people and pipes read it."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest

from optimal_frontier.cli import changes_command
from optimal_frontier.errors import StateUnavailableError

from .stored_crawl import HOT, WARM


def rows(result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def visit(crawl, url: str, bit: int) -> str:
    """Fetch a page; the fingerprint of its content since, in hexadecimal."""
    crawl.advance(10.0)
    crawl.visit(url, bit=bit)
    return crawl.row(url).content.hex()


def test_the_latest_come_last_with_what_they_were_before(run, crawl):
    before = crawl.row(HOT).content.hex()
    first = visit(crawl, HOT, 1)
    visit(crawl, WARM, 0)
    second = visit(crawl, HOT, 1)
    told = rows(run("changes", "--json", "--limit", "2"))
    assert [(change["url"], change["previous"], change["fingerprint"]) for change in told] == [
        (HOT, before, first),
        (HOT, first, second),
    ]
    assert told[0]["time"] <= told[1]["time"]
    lines = run("changes", "--limit", "1").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(f"{first[:8]} -> {second[:8]}  {HOT}")


def test_all_that_changed_so_far_is_there(run, crawl):
    assert len(rows(run("changes", "--json", "--limit", "1000"))) == 4
    assert run("changes", "--limit", "0").stdout == ""


@pytest.mark.parametrize("arguments", [("--limit", "-1"), ("--limit", "x"), ("surplus",)])
def test_wrong_usage(run, crawl, arguments):
    assert run("changes", *arguments).exit_code == 2


def test_a_limit_beyond_all_counting_is_refused_by_its_name(run, crawl):
    result = run("changes", "--limit", "9" * 23)
    assert result.exit_code == 2
    assert "Invalid value for '--limit'" in result.stderr


def test_following_tells_what_comes_until_it_is_stopped(run, crawl):
    """As ``tail -f``: those so far, then each new one."""

    def go_on() -> None:
        time.sleep(0.3)
        visit(crawl, WARM, 1)
        time.sleep(1.2)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=go_on)
    thread.start()
    told = rows(run("changes", "--follow", "--json", "--limit", "1"))
    thread.join()
    assert [change["url"] for change in told][1:] == [WARM]


def test_following_waits_for_an_outage_to_end_and_tells_what_changed_meanwhile(run, crawl, monkeypatch):
    asked, ask = 0, changes_command.changes_after

    def changes_after(*arguments):
        nonlocal asked
        asked += 1
        if asked in (1, 2):
            raise StateUnavailableError("cannot reach Redis")
        visit(crawl, WARM, 1)
        signal.raise_signal(signal.SIGINT)
        return ask(*arguments)

    monkeypatch.setattr(changes_command, "changes_after", changes_after)
    monkeypatch.setattr(changes_command, "_RETRY_S", 0.01)
    result = run("changes", "--follow", "--json", "--limit", "0")
    assert [change["url"] for change in rows(result)] == [WARM]
    assert result.stderr.splitlines()[0] == "optimal-frontier: cannot reach Redis; trying again"
    assert "Redis answers again" in result.stderr
