"""``simulate policies`` and ``simulate trace``: tables, files and pictures that say the same."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from optimal_frontier.cli import main
from optimal_frontier.simulation import POLICY_NAMES

SMALL = ("policies", "--world", "A", "--pages", "30", "--days", "60", "--seeds", "3")


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
    result = simulate(*SMALL)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "world A: 30 pages, 6 visits a day for 60 days, 3 seeds" in result.stdout
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
    shown = {line.split()[-1]: line.split()[:4] for line in result.stdout.splitlines() if line and line.split()[-1] in POLICY_NAMES}
    assert shown.keys() == set(POLICY_NAMES)
    assert shown["uniform"][1] == "1.000"
    assert float(shown["clairvoyant"][1]) < 1
    assert "changes   271 in 399 days" in result.stdout
    answer = json.loads(simulate("trace", str(trace_file), "--every", "20", "--json", "--policy", "uniform").stdout)
    assert f"{100 - 100 * answer['standings'][0]['freshness']['mean']:.3f}" == shown["uniform"][0]


def test_fewer_pages_of_a_trace(simulate, trace_file):
    answer = json.loads(simulate("trace", str(trace_file), "--max-pages", "5", "--policy", "uniform", "--json").stdout)
    assert answer["pages"] == 5


@pytest.mark.parametrize("command", ["policies", "trace"])
def test_pictures_are_drawn(simulate, trace_file, nowhere, command):
    pytest.importorskip("matplotlib")
    arguments = (
        (*SMALL, "--world", "B", "--policy", "nutch", "--policy", "epsilon")
        if command == "policies"
        else ("trace", str(trace_file), "--policy", "median", "--policy", "uniform")
    )
    result = simulate(*arguments, "--out", "picture.png")
    assert result.stderr == "written: picture.png\n"
    assert (nowhere / "picture.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_bad_input_is_one_line(simulate, nowhere):
    (nowhere / "bad.csv").write_text("a,1\nb,x\n")
    (nowhere / "latin.csv").write_bytes(b"\xff,1\n")
    assert one_line(simulate("trace", "missing.csv")) == "optimal-frontier: missing.csv: cannot be read (No such file or directory)"
    assert "bad.csv, line 2: expected page,time (seconds), got 'x' as the time" in one_line(simulate("trace", "bad.csv"))
    assert "latin.csv: cannot be read" in one_line(simulate("trace", "latin.csv"))
    assert "--days: expected a finite number" in one_line(simulate("policies", "--days", "inf"))
    assert "there is no directory missing" in one_line(simulate(*SMALL, "--csv", "missing/runs.csv"))


@pytest.mark.parametrize("arguments", [["--world", "D"], ["--policy", "best"], ["--process", "poison"], ["--seeds", "0"], ["--days", "0"]])
def test_wrong_usage_of_policies(simulate, arguments):
    assert simulate("policies", *arguments).exit_code == 2
