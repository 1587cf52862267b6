"""``status``: the fields that the contract names, right in numbers, null where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START

from optimal_frontier.cli.status import describe
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.reading import read_status

from .stored_crawl import HOT


def test_every_figure_of_a_crawl_is_right(ask, crawl):
    answer = ask("status")
    report = crawl.report
    assert answer["namespace"] == crawl.store.namespace
    assert answer["spider"] == "test"
    assert answer["pages"] == 4
    assert answer["fetched"] == 3
    assert answer["pending_first_visit"] == 1
    assert answer["retired"] == 0
    assert answer["hosts"] == 2
    assert answer["visits"] == 9
    assert answer["observations"] == 6
    assert answer["changes"] == 4
    assert answer["in_flight"] == 0
    assert answer["budget"] == 1.0
    assert answer["revisit_budget"] == report.revisit_budget
    assert answer["planned_rate"] == pytest.approx(0.97)
    assert answer["feasible"] is True
    assert answer["estimated_freshness"] == report.estimated_freshness
    assert answer["multiplier"] == report.multiplier
    assert answer["last_plan"] == {"time": report.time, "seconds": pytest.approx(report.seconds, abs=1e-6), "pages": 3}
    assert answer["plan_overdue"] is False
    assert 0 < answer["change_rate"]["p10"] < answer["change_rate"]["p50"] < answer["change_rate"]["p90"]
    late = [0.1] * 3 + [0.2] * 2 + [0.3]
    assert answer["lateness_seconds"] == {"p50": pytest.approx(np.percentile(late, 50)), "p99": pytest.approx(np.percentile(late, 99))}


def test_what_304s_saved_is_shown(ask, run, crawl):
    assert "not modified  0 answers 304, 0 B saved" in run("status").stdout
    crawl.store.command("HSET", crawl.store.key("stats"), "not_modified", 1200, "bytes_saved", 34_567_890, "validator_lies", 2)
    answer = ask("status")
    assert (answer["not_modified"], answer["bytes_saved"], answer["validator_lies"]) == (1200, 34_567_890, 2)
    assert "1,200 answers 304, 34.6 MB saved; 2 found to be lies" in run("status").stdout


def test_due_counts_what_is_past_its_deadline_and_not_leased(ask, crawl):
    crawl.store.advance(1e6)
    assert ask("status")["due"] == 2  # the third has rate 0
    crawl.lease(HOT)
    answer = ask("status")
    assert (answer["due"], answer["in_flight"], answer["crawlers"]) == (1, 1, 1)


def test_a_plan_that_is_three_intervals_old_is_overdue(crawl):
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10.0})
    crawl.store.set_time(crawl.report.time + 29.9)
    assert describe(read_status(crawl.store), settings)["plan_overdue"] is False
    crawl.store.set_time(crawl.report.time + 30.1)
    assert describe(read_status(crawl.store), settings)["plan_overdue"] is True


def test_what_is_not_known_yet_is_null(ask, store):
    answer = ask("status")
    nulls = ("budget", "revisit_budget", "planned_rate", "feasible", "estimated_freshness", "multiplier", "last_plan")
    assert {answer[name] for name in nulls} == {None}
    assert answer["lateness_seconds"] == {"p50": None, "p99": None}
    assert answer["change_rate"] == {"p10": None, "p50": None, "p90": None}
    assert (answer["pages"], answer["fetched"], answer["due"], answer["observations"], answer["changes"]) == (0, 0, 0, 0, 0)
    assert answer["plan_overdue"] is False
    assert answer["time"] == START


def test_people_get_the_same_in_words(run, crawl):
    result = run("status")
    assert result.exit_code == 0
    assert "4 on 2 hosts" in result.stdout
    assert "4 in 6 observations" in result.stdout
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]


def test_an_empty_namespace_is_said_to_be_empty(run, namespace):
    """Nothing is made by looking."""
    result = run("status")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"nothing is stored yet under namespace {namespace!r}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("check").exit_code == 1


def test_traps_and_canonical_links_are_there_once_there_were_any(run, ask, crawl):
    """Links that were not followed by the reason, and pages that named another one."""
    assert "traps" not in run("status").stdout
    assert set(ask("status")["trapped"].values()) == {0}
    counts = {"trapped_url": 3, "trapped_host": 2, "canonical_followed": 5, "canonical_offhost": 1}
    crawl.store.run([("count", [value for counted in counts.items() for value in counted])])
    answer = ask("status")
    assert answer["trapped"] == {"depth": 0, "url": 3, "host": 2, "pattern": 0}
    assert answer["canonical"] == {"followed": 5, "refused": 0, "offhost": 1}
    shown = run("status").stdout
    assert "links not followed: 3 by url, 2 by host" in shown
    assert "5 pages became aliases; 0 times refused, 1 times of another host" in shown
