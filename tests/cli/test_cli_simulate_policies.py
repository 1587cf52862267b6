"""``simulate policies`` and ``simulate trace``: tables, files and pictures that say the same."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from optimal_frontier.cli import main
from optimal_frontier.simulation import ORACLE_NAMES, POLICY_NAMES

SMALL = ("policies", "--world", "A", "--pages", "30", "--days", "30", "--seeds", "3")


@pytest.fixture
def simulate(nowhere: Path) -> Callable[..., Result]:
    """Run ``simulate`` outside of any project, with a Redis that is not there."""

    def invoke(*arguments: str) -> Result:
        if "--out" not in arguments:
            arguments = (*arguments, "--no-picture")
        result = CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture
def trace_file(nowhere: Path) -> Path:
    """20 pages over 400 days, the first ones often."""
    lines = [f"p{page},{day * 86_400}" for page in range(20) for day in range(0, 400, 3 + 10 * page)]
    (nowhere / "trace.csv").write_text("page,time\n" + "\n".join(lines) + "\n")
    return nowhere / "trace.csv"


def one_line(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_table_has_every_policy_best_first(simulate):
    result = simulate(*SMALL, "--seeds", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "world A: 30 pages, 6 visits a day for 30 days, 2 seeds" in result.stdout
    names = [line.split()[-1] for line in result.stdout.splitlines() if line and line.split()[-1] in POLICY_NAMES]
    assert sorted(names) == sorted(POLICY_NAMES)
    assert names[0] == "clairvoyant"
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_json_and_csv_say_what_the_table_does(simulate, nowhere):
    result = simulate(*SMALL, "--csv", "runs.csv", "--json", "--policy", "median", "--policy", "uniform", "--policy", "clairvoyant")
    assert result.stderr == "written: runs.csv\n"
    standings = {one["policy"]: one for one in json.loads(result.stdout)["standings"]}
    assert list(standings) == ["median", "uniform", "clairvoyant"]
    with (nowhere / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    for policy, one in standings.items():
        fresh = {row["seed"]: float(row["freshness"]) for row in rows if row["policy"] == policy}
        known = {row["seed"]: float(row["freshness"]) for row in rows if row["policy"] == "clairvoyant"}
        assert one["freshness"]["mean"] == pytest.approx(sum(fresh.values()) / 3)
        assert one["of_clairvoyant"]["mean"] == pytest.approx(sum(fresh[seed] / known[seed] for seed in fresh) / 3)
        assert len(one["by_time"]) == len(one["edges"]) - 1 == 40
    assert standings["clairvoyant"]["of_clairvoyant"] == {"mean": 1.0, "error": 0.0}
    assert standings["uniform"]["behind_default"]["mean"] > 0


def test_worlds_without_an_optimum_show_none(simulate):
    result = simulate(*SMALL, "--process", "weibull", "--policy", "uniform", "--policy", "clairvoyant", "--seeds", "1")
    (line,) = [line for line in result.stdout.splitlines() if line.endswith(" uniform")]
    assert line.split()[2] == "–"
    assert "±" not in line


def test_trace_shows_staleness_as_a_share_of_uniform(simulate, trace_file):
    result = simulate("trace", str(trace_file), "--every", "20", "--seeds", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    names = {*POLICY_NAMES, *ORACLE_NAMES}
    shown = {line.split()[-1]: line.split() for line in result.stdout.splitlines() if line and line.split()[-1] in names}
    assert {"uniform", "nutch-tuned", "median", "clairvoyant", *ORACLE_NAMES} <= shown.keys()
    assert shown["uniform"][2:4] == ["1.000", "±0.000"]
    assert float(shown["all-times"][2]) < float(shown["hindsight"][2]) < 1
    assert "changes   251 in 399 days" in result.stdout  # the first ones create the pages
    answer = json.loads(simulate("trace", str(trace_file), "--every", "20", "--json", "--policy", "uniform", "--seeds", "2").stdout)
    assert f"{100 - 100 * answer['standings'][0]['freshness']['mean']:.2f}" == shown["uniform"][0]


def test_budgets_in_fetches_per_change_and_means_over_traces(simulate, trace_file, nowhere):
    """5 unless told; each budget of each trace is a world of its own."""
    (nowhere / "other.csv").write_text(trace_file.read_text().replace("p1,", "q/p1,"))
    one = ("--policy", "uniform", "--policy", "hindsight", "--seeds", "1", "--json")
    (crawl,) = json.loads(simulate("trace", str(trace_file), *one).stdout)["crawls"]
    assert crawl["visits_per_day"] == pytest.approx(5 * 251 / 399)
    answer = json.loads(
        simulate("trace", str(trace_file), "other.csv", "--fetches-per-change", "1", "--fetches-per-change", "2", *one).stdout
    )
    assert [crawl["world"] for crawl in answer["crawls"]] == [
        f"{name}, {budget} a change" for name in ("trace", "other") for budget in ("1 fetch", "2 fetches")
    ]
    share = {(one["world"], one["policy"]): one["of_uniform"]["mean"] for one in answer["standings"]}
    mean = {(one["budget"], one["policy"]): one["of_uniform"] for one in answer["means"]}
    for budget in ("1 fetch a change", "2 fetches a change"):
        both = share[f"trace, {budget}", "hindsight"] * share[f"other, {budget}", "hindsight"]
        assert mean[budget, "hindsight"] == pytest.approx(both**0.5)
        assert mean[budget, "uniform"] == 1.0
    several = ("--every", "20", "--policy", "uniform", "--policy", "hindsight", "--seeds", "1")
    assert "geometric means, a visit to a page in 20 days" in simulate("trace", str(trace_file), "other.csv", *several).stdout


def test_a_window_has_the_pages_that_exist_in_it(simulate, nowhere):
    day = 86_400
    rows = [
        f"old,0,created\nold,{10 * day},gone",
        f"kept,0,created\nkept,{95 * day},changed",
        f"new,{90 * day},created\nnew,{100 * day},changed",
    ]
    (nowhere / "events.csv").write_text("page,time,event\n" + "\n".join(rows) + "\n")
    answer = json.loads(simulate("trace", "events.csv", "--last", "20", "--policy", "uniform", "--json").stdout)
    assert (answer["crawls"][0]["pages"], answer["crawls"][0]["changes"], answer["crawls"][0]["days"]) == (2, 2, 20)
    answer = json.loads(simulate("trace", "events.csv", "--last", "20", "--existing", "--policy", "uniform", "--json").stdout)
    assert (answer["crawls"][0]["pages"], answer["crawls"][0]["changes"]) == (1, 1)
    assert one_line(simulate("trace", "events.csv", "--last", "4", "--existing", "--max-pages", "1")).endswith(
        "events.csv: no page changes in that time"
    )


def test_two_processes_say_what_one_does(simulate, trace_file):
    arguments = ("trace", str(trace_file), "--policy", "uniform", "--policy", "told-siblings", "--seeds", "2", "--json")
    assert simulate(*arguments, "--jobs", "2").stdout == simulate(*arguments).stdout


def test_fewer_pages_of_a_trace(simulate, trace_file):
    few = ("--max-pages", "5", "--policy", "uniform", "--seeds", "1", "--json")
    answer = json.loads(simulate("trace", str(trace_file), *few).stdout)
    assert answer["crawls"][0]["pages"] == 5


@pytest.mark.parametrize("command", ["policies", "trace"])
def test_pictures_are_drawn(simulate, trace_file, nowhere, command):
    pytest.importorskip("matplotlib")
    arguments = (
        (*SMALL, "--world", "B", "--policy", "nutch", "--policy", "epsilon")
        if command == "policies"
        else ("trace", str(trace_file), "--every", "20", "--seeds", "2", "--policy", "median", "--policy", "uniform")
    )
    result = simulate(*arguments, "--out", "picture.png")
    assert result.stderr == "written: picture.png\n"
    assert (nowhere / "picture.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_bad_input_is_one_line(simulate, nowhere):
    (nowhere / "bad.csv").write_text("a,1\nb,x\n")
    (nowhere / "latin.csv").write_bytes(b"\xff,1\n")
    assert one_line(simulate("trace", "missing.csv")) == "optimal-frontier: missing.csv: cannot be read (No such file or directory)"
    assert "bad.csv, line 2: expected a number of seconds as the time, got 'x'" in one_line(simulate("trace", "bad.csv"))
    assert "latin.csv: cannot be read" in one_line(simulate("trace", "latin.csv"))
    assert "--days: expected a finite number" in one_line(simulate("policies", "--days", "inf"))
    assert "there is no directory missing" in one_line(simulate(*SMALL, "--csv", "missing/runs.csv"))


@pytest.mark.parametrize("arguments", [["--world", "D"], ["--policy", "best"], ["--process", "poison"], ["--seeds", "0"], ["--days", "0"]])
def test_wrong_usage_of_policies(simulate, arguments):
    assert simulate("policies", *arguments).exit_code == 2
