"""What the command says of dispatch by price: live, and in simulated crawls."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from optimal_frontier.cli import main
from optimal_frontier.scheduling.index import value_reached_after, visit_value
from optimal_frontier.simulation import INDEXED_POLICIES, POLICY_NAMES

from .stored_crawl import HOT, WORTHLESS


@pytest.fixture
def simulate(nowhere: Path) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, ["simulate", *arguments, "--no-picture"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


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


def test_simulated_policies_under_both_dispatchers(simulate, nowhere):
    """One line each in the table; rates without values stay with edf."""
    options = ("policies", "--world", "A", "--pages", "30", "--days", "60", "--seeds", "2", "--dispatch", "both")
    result = simulate(*options, "--csv", "runs.csv", "--json")
    assert result.exit_code == 0
    found = [(one["policy"], one["dispatch"]) for one in json.loads(result.stdout)["standings"]]
    assert sorted(found) == sorted([(name, "edf") for name in POLICY_NAMES] + [(name, "index") for name in INDEXED_POLICIES])
    with (nowhere / "runs.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 2 * len(found)
    assert {row["dispatch"] for row in rows} == {"edf", "index"}
    table = simulate(*options, "--policy", "median").stdout
    assert [line.split("  ")[-1].strip() for line in table.splitlines() if "median" in line and "." in line] in (
        ["median", "median, index"],
        ["median, index", "median"],
    )
    assert max(map(len, table.splitlines())) <= 100


def test_a_trace_by_price(simulate, nowhere):
    lines = [f"p{page},{day * 86_400}" for page in range(20) for day in range(0, 400, 3 + 10 * page)]
    (nowhere / "trace.csv").write_text("page,time\n" + "\n".join(lines) + "\n")
    result = simulate("trace", "trace.csv", "--every", "20", "--policy", "median", "--policy", "uniform", "--dispatch", "index", "--json")
    assert [(one["policy"], one["dispatch"]) for one in json.loads(result.stdout)["standings"]] == [("median", "index"), ("uniform", "edf")]


def test_a_dispatcher_that_none_of_the_policies_can_have_is_refused(simulate):
    result = simulate("policies", "--policy", "uniform", "--policy", "nutch", "--dispatch", "index")
    assert result.exit_code == 2
    assert "--dispatch index: expected a policy that it can serve, of median" in result.stderr
