"""``plan``: one plan, or a planner of its own."""

from __future__ import annotations

import json
import signal
import time

import pytest

from optimal_frontier.state.namespace import Call

from .running_command import running
from .test_cli_project import make_project


def test_once_plans_reports_and_gives_the_lock_back(run, crawl, tmp_path):
    project = str(make_project(tmp_path / "p", "OPTIMAL_FRONTIER_CRAWL_RATE = 1.0\n"))
    result = run("--project", project, "plan", "--once", "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["pages"] == 3
    assert report["planned_rate"] == pytest.approx(report["revisit_budget"])
    assert float(crawl.namespace.hash("plan")["time"]) == pytest.approx(report["time"])
    assert crawl.namespace.command("GET", crawl.key("planner")) is None


def test_a_lock_that_another_holds_is_a_bad_answer(run, crawl):
    crawl.namespace.run([Call(0, "take_planner_lock", ["another", 60_000])])
    result = run("plan")
    assert result.exit_code == 1
    assert "another process holds the planner's lock" in result.stderr
    crawl.namespace.run([Call(0, "take_planner_lock", ["another", 0])])
    result = run("plan")
    assert result.exit_code == 0
    assert "multiplier" in result.stdout


def test_rows_that_were_read_are_no_part_of_the_planned_pages(run, crawl):
    """The page that waits for its first visit is read, but not planned."""
    result = run("plan")
    assert "pages       3 planned; 4 rows read;" in result.stdout


@pytest.mark.parametrize("arguments", [["--once", "--every", "1"], ["--every", "0"], ["--every", "nan"], ["--every", "soon"]])
def test_wrong_usage(run, crawl, arguments):
    assert run("plan", *arguments).exit_code == 2


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_every_goes_on_until_it_is_stopped(crawl, target, nowhere, stop):
    """Stopped by Ctrl-C or SIGTERM it exits with 0 and leaves no lock behind."""
    # The real clock: the stored one stands in the future, and then nothing is ever due again.
    crawl.set_time(time.time() - 1.0)
    namespace = crawl.namespace
    namespace.command("HSET", crawl.key("plan"), "time", f"{time.time():.6f}", "first_time", f"{time.time() - 10:.6f}")
    with running(*target, "plan", "--every", "0.2", "--json") as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(stop)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert lines[1]["time"] - lines[0]["time"] >= 0.19
    assert namespace.command("GET", crawl.key("planner")) is None
