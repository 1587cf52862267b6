"""``forget`` and ``force``."""

from __future__ import annotations

import pytest

from optimal_frontier.state.rows import ONCE, UNCONDITIONAL

from .stored_crawl import HOT, UNSEEN, WORTHLESS


def test_force_makes_a_page_due_now(run, ask, crawl):
    result = run("force", WORTHLESS)
    assert (result.exit_code, result.stdout) == (0, f"due now: {WORTHLESS}\n")
    assert ask("page", WORTHLESS)["queued"] is True
    assert ask("page", WORTHLESS)["due_in_seconds"] <= 0
    assert "It is wanted now." in ask("page", WORTHLESS)["why"]
    assert crawl.row(WORTHLESS).flags & UNCONDITIONAL
    assert WORTHLESS in [handout.record["url"] for handout in crawl.dispatch(10)]


def test_force_of_what_waits_anyway_is_no_error(run, crawl):
    assert "already waiting for its first visit" in run("force", UNSEEN).stdout
    crawl.dispatch(10)
    result = run("force", UNSEEN)
    assert result.exit_code == 0
    assert "already in flight" in result.stdout


def test_force_of_a_request_that_is_done_says_what_to_do(run, crawl):
    crawl.add("http://c.example/once", state=ONCE, method="POST")
    crawl.see_all()
    result = run("force", "http://c.example/once")
    assert result.exit_code == 1
    assert "forget it" in result.stderr


def test_force_brings_a_retired_page_back(run, ask, crawl):
    for _ in range(2):
        crawl.fail_at(HOT, "410")
    assert ask("page", HOT)["state"] == "retired"
    assert run("force", HOT).stdout == f"due now: {HOT}\n"
    assert ask("page", HOT)["state"] == "active"
    assert ask("status")["retired"] == 0
    assert ask("check")["ok"] is True


def test_forget_leaves_nothing(run, ask, crawl):
    result = run("forget", HOT)
    assert (result.exit_code, result.stdout) == (0, f"forgotten: {HOT}\n")
    assert run("page", HOT).exit_code == 1
    assert ask("status")["pages"] == 3
    assert ask("check")["ok"] is True


@pytest.mark.parametrize("command", ["forget", "force"])
def test_an_unknown_page_is_a_bad_answer(run, crawl, command):
    result = run(command, "http://a.example/unknown")
    assert result.exit_code == 1
    assert result.stderr == f"optimal-frontier: http://a.example/unknown is not known in namespace {crawl.namespace.name!r}\n"
