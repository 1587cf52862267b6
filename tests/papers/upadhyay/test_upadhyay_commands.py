"""``simulate upadhyay-figure-2`` and ``upadhyay-regret``: tables, files, pictures, exit codes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from measured_once import patch_measures

from optimal_frontier.cli import main
from optimal_frontier.papers.upadhyay import upadhyay_commands as module
from optimal_frontier.papers.upadhyay.upadhyay_figure_2 import upadhyay_figure_2

FIGURE = ("upadhyay-figure-2", "--simulations", "40")
REGRET = ("upadhyay-regret", "--seeds", "2")


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    """What the commands show is measured once: a table, JSON, a file and a picture are of the same runs."""
    yield from patch_measures(module, "upadhyay_figure_2", "regrets")


@pytest.fixture
def simulate(nowhere: Path) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        if "--out" not in arguments:
            arguments = (*arguments, "--no-picture")
        result = CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def test_figure_2_holds_and_says_so(simulate, nowhere):
    result = simulate(*FIGURE, "--csv", "points.csv")
    assert (result.exit_code, result.stderr) == (0, "written: points.csv\n")
    assert "Lemma 3  holds: covers at least 0.9 of the estimates everywhere" in result.stdout
    answer = json.loads(simulate(*FIGURE, "--json").stdout)
    assert answer["holds"]
    assert len(answer["points"]) == 2 * 3 * 7
    with (nowhere / "points.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["moment_50"]) for row in rows] == [point["moment"][1] for point in answer["points"]]
    assert f" {answer['points'][0]['bound'][1]:.4f} " in result.stdout
    assert [point["moment"][1] for point in answer["points"]] == [again.moment[1] for again in upadhyay_figure_2(40, 0)]


def test_a_bound_that_fails_is_said(simulate, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "DELTA", -1.0)
    result = simulate(*FIGURE)
    assert result.exit_code == 1
    assert "DOES NOT HOLD" in result.stdout


def test_regret_shows_means_bounds_and_exponents(simulate, nowhere):
    result = simulate(*REGRET, "--csv", "runs.csv")
    assert (result.exit_code, result.stderr) == (0, "written: runs.csv\n")
    answer = json.loads(simulate(*REGRET, "--json").stdout)
    assert answer["bound_broken"] == 0
    exponents = {one["policy"]: one["exponent"] for one in answer["growth"]}
    assert exponents["theorem-1"] == pytest.approx(0.5, abs=0.01)
    for mean in answer["means"]:
        assert f"{mean['regret']:,.1f}" in result.stdout
    with (nowhere / "runs.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 7 * len(exponents)
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize("arguments", [FIGURE, REGRET])
def test_learning_pictures_are_drawn(simulate, nowhere, arguments):
    pytest.importorskip("matplotlib")
    assert simulate(*arguments, "--out", "picture.png").stderr == "written: picture.png\n"
    assert (nowhere / "picture.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_one_seed_is_too_few_for_an_error(simulate):
    assert simulate("upadhyay-regret", "--seeds", "1").exit_code == 2
