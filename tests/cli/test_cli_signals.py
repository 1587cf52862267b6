"""``simulate signals``."""

from __future__ import annotations

import csv
import json

from click.testing import CliRunner

from optimal_frontier.cli import main

SMALL = ("--pages", "30", "--days", "20", "--seeds", "2", "--policy", "without", "--policy", "learned")


def simulate(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", "signals", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_it_shows_a_row_for_each_policy(tmp_path) -> None:
    file = tmp_path / "runs.csv"
    lines = simulate(*SMALL, "--recall", "0.8", "--csv", str(file)).splitlines()
    assert lines[0] == "world A: 30 pages of 10 sources; recall 0.8, 1 false signals for each true one; 20 days"
    assert [line.split()[-1] for line in lines[4:6]] == ["without", "learned"]
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert [(row["policy"], row["seed"]) for row in rows] == [("without", "0"), ("learned", "0"), ("without", "1"), ("learned", "1")]
    assert all(0.0 < float(row["freshness"]) < float(row["optimum"]) + 0.2 for row in rows)


def test_it_tells_all_digits_as_json() -> None:
    answer = json.loads(simulate(*SMALL, "--false-by", "readings", "--json"))
    assert answer["world"]["false_by"] == "readings"
    assert len(answer["runs"]) == 4
    assert answer["runs"][0]["recall"] is None
    assert 0.0 < answer["runs"][1]["recall"] < 1.0
