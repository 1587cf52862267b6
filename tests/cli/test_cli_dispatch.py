"""What the command says of dispatch by price."""

from __future__ import annotations

import re

import pytest

from optimal_frontier.scheduling.index import value_reached_after, visit_value

from .stored_crawl import HOT, WORTHLESS


def test_status_says_by_what_pages_are_dispatched(ask, run, crawl):
    assert (ask("status")["dispatch"], ask("status")["live_price"]) == ("edf", None)
    assert re.search("^dispatch +edf: the earliest deadline first$", run("status").stdout, re.MULTILINE)
    crawl.replan(DISPATCH="index")
    answer = ask("status")
    assert answer["dispatch"] == "index"
    assert answer["live_price"] == answer["multiplier"] > 0
    assert "index: what a visit is worth, live price" in run("status").stdout


def test_a_page_says_what_a_visit_is_worth_now_and_when_it_is_enough(ask, run, crawl):
    """The value by its formula, at the change rate and from the visit that the plan knew."""
    assert ask("page", HOT)["visit_value"] is None
    crawl.replan(DISPATCH="index")
    answer = ask("page", HOT)
    importance, rate = answer["importance"], answer["planned_change_rate"]
    assert answer["visit_value"] == pytest.approx(visit_value(importance, rate, answer["last_seen_seconds_ago"]), rel=1e-9)
    assert answer["live_price"] == ask("status")["live_price"]
    after = value_reached_after(importance, rate, answer["live_price"], most_rate=1.0)
    assert answer["due_in_seconds"] == pytest.approx(after - answer["last_seen_seconds_ago"], abs=1e-3)
    assert "the live price" in answer["why"]
    text = run("page", HOT).stdout
    assert "visit value" in text
    assert "credit" not in text


def test_a_page_that_is_not_worth_it_waits_for_its_longest_interval(ask, crawl):
    crawl.replan(DISPATCH="index")
    answer = ask("page", WORTHLESS)
    assert answer["visit_value"] < answer["live_price"]
    assert answer["due_in_seconds"] > 60
    assert "or its longest interval ends, in" in answer["why"]


def test_pages_and_check_go_by_the_price_too(ask, crawl):
    crawl.replan(DISPATCH="index")
    due = {row["url"]: row["due_in_seconds"] for row in ask("pages")}
    assert due[HOT] == pytest.approx(ask("page", HOT)["due_in_seconds"], abs=1e-6)
    assert ask("check")["violations"] == []
