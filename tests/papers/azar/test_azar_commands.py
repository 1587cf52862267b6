"""``simulate``: the papers' figures as tables, files and pictures, with neither project nor Redis."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from measured_once import patch_measures

from optimal_frontier.cli import main
from optimal_frontier.papers.azar import azar_commands
from optimal_frontier.papers.azar.azar_figure_1 import measurements

#: A figure 1 that is made in no time: too few slots per unit of time for the bars to hold.
SMALL = ("azar-figure-1", "--pages", "40", "--seeds", "3", "--bandwidth", "4", "--bandwidth", "20")
POLICIES = {"optimum", "algorithm-2", "eq-6", "change-rate", "utility", "uniform"}


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    """What the commands show of figure 1 is measured once: a table, JSON, a file and a picture are of the same measurements."""
    yield from patch_measures(azar_commands, "measurements")


@pytest.fixture
def simulate(nowhere: Path) -> Callable[..., Result]:
    """Run ``simulate`` outside of any project, with a Redis that is not there; without a picture unless asked for."""

    def invoke(*arguments: str, picture: bool = False) -> Result:
        if not picture and "--out" not in arguments:
            arguments = (*arguments, "--no-picture")
        result = CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def one_line(result: Result) -> str:
    """The error message of a command that said nothing else and had exit code 2."""
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height in the header of a PNG."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])


def test_figure_1_of_the_papers_pages_holds_its_bars(simulate):
    """Exit code 0; the answer is whole."""
    result = simulate("azar-figure-1", "--seeds", "1", "--utilities", "uniform", "--bandwidth", "1000", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert (answer["figure"], answer["pages"], answer["seeds"]) == ("azar-figure-1", 1000, 1)
    points = {point["policy"]: point for point in answer["points"]}
    assert points.keys() == POLICIES
    assert points["optimum"]["ratio"] == 1
    assert points["uniform"]["ratio_spread"] is None
    assert 0.8 < points["eq-6"]["freshness"] < 0.9
    assert {bar["policy"]: (bar["at_least"], bar["holds"]) for bar in answer["bars"]} == {
        "algorithm-2": (0.985, True),
        "eq-6": (0.999, True),
    }
    assert answer["bars"][1]["lowest"]["ratio"] == points["eq-6"]["lowest_ratio"] >= 0.999


def test_figure_1_prints_a_table_for_each_kind_of_utilities(simulate):
    """Mean and spread of every policy at every bandwidth; a bar that is missed is said, and exit code 1."""
    result = simulate(*SMALL)
    assert result.exit_code == 1
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert sum(line.startswith(("zipf utilities", "uniform utilities")) for line in lines) == 2
    assert sum("optimum" in line and "alg. 2" in line and "eq. 6" in line for line in lines) == 2
    assert sum(line.count("±") == 6 for line in lines) == 4
    (verdict,) = [line for line in lines if line.startswith("eq. 6 + EDF")]
    assert "DOES NOT HOLD: at least 0.999 of the optimum everywhere; lowest 0.9" in verdict


def test_figure_1_tables_fit_a_terminal_of_80_columns(simulate):
    """All but the last lines, which are folded there."""
    lines = simulate(*SMALL).stdout.splitlines()
    assert max(len(line) for line in lines if "at least" not in line) <= 80


def test_figure_1_table_shows_what_json_has(simulate):
    table = simulate(*SMALL).stdout
    for point in json.loads(simulate(*SMALL, "--json").stdout)["points"]:
        mean, spread = ("freshness", "freshness_spread") if point["policy"] == "optimum" else ("ratio", "ratio_spread")
        digits = 3 if point["policy"] in ("algorithm-2", "eq-6") else 2
        assert f" {100 * point[mean]:.{digits}f}" in table
        assert f" ±{100 * point[spread]:.{digits}f}" in table


def test_figure_1_csv_has_every_measurement(simulate, nowhere):
    result = simulate(*SMALL, "--csv", "all.csv", "--json")
    assert "written: all.csv" in result.stderr
    points = json.loads(result.stdout)["points"]
    with (nowhere / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3 * len(POLICIES)
    for point in points:
        group = [row for row in rows if all(row[name] == str(point[name]) for name in ("utilities", "bandwidth", "policy"))]
        assert {row["seed"] for row in group} == {"0", "1", "2"}
        assert sum(float(row["ratio"]) for row in group) / 3 == pytest.approx(point["ratio"], rel=1e-12)
    again = measurements(40, range(3), [4.0, 20.0])
    assert [float(row["ratio"]) for row in rows] == [one.ratio for one in again]


def test_figure_2_prints_threshold_and_bands(simulate, nowhere):
    result = simulate("azar-figure-2", "--seeds", "4", "--csv", "pages.csv")
    assert result.exit_code == 0
    assert "threshold  holds: a page is visited if and only if" in result.stdout
    assert "0.8 to 1" in result.stdout
    with (nowhere / "pages.csv").open(newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 4 * 200
    assert all((row["rate"] > 0) == (row["importance"] / row["change_probability"] > row["threshold"]) for row in rows)


def test_figure_2_as_json(simulate):
    """Rates grow with importance; where pages change very often they are 0."""
    answer = json.loads(simulate("azar-figure-2", "--seeds", "4", "--json").stdout)
    assert answer["misplaced"] == 0
    assert [one["seed"] for one in answer["sets"]] == [0, 1, 2, 3]
    assert all(one["threshold"] > 1 and 0 < one["visited"] < 200 for one in answer["sets"])
    first, last = answer["bands"][0], answer["bands"][-1]
    assert (first["importance"], last["importance"]) == ([0.8, 1.0], [0.0, 0.2])
    assert first["rates"][1] > last["rates"][1]
    assert first["rates"][-1] == 0


@pytest.mark.parametrize("arguments", [SMALL, (*SMALL, "--utilities", "zipf", "--seeds", "1"), ("azar-figure-2", "--seeds", "1")])
def test_pictures_are_drawn(simulate, nowhere, arguments):
    pytest.importorskip("matplotlib")
    result = simulate(*arguments, "--out", "figure.png")
    assert result.stderr == "written: figure.png\n"
    width, height = picture_size(nowhere / "figure.png")
    assert width > 700
    assert height > 700


def test_a_picture_is_drawn_unless_told_not_to(simulate, nowhere):
    pytest.importorskip("matplotlib")
    assert simulate("azar-figure-2", "--seeds", "1").stderr == ""
    assert not list(nowhere.glob("*.png"))
    assert simulate("azar-figure-2", "--seeds", "1", picture=True).stderr == "written: azar-figure-2.png\n"
    assert picture_size(nowhere / "azar-figure-2.png")[0] > 700


def test_the_kind_of_picture_is_told_by_its_name(simulate, nowhere):
    pytest.importorskip("matplotlib")
    simulate("azar-figure-2", "--seeds", "1", "--out", "figure.svg")
    assert "<svg" in (nowhere / "figure.svg").read_text()


def test_without_matplotlib_the_table_is_there_and_a_picture_is_one_clear_line(simulate, nowhere, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = simulate("azar-figure-2", "--seeds", "1", picture=True)
    assert result.exit_code == 0
    assert "threshold  holds" in result.stdout
    assert result.stderr.startswith("no picture: azar-figure-2.png: a picture needs Matplotlib")
    line = one_line(simulate("azar-figure-2", "--seeds", "1", "--out", "figure.png"))
    assert "pip install 'optimal-frontier[plot]'" in line
    assert not (nowhere / "figure.png").exists()


@pytest.mark.parametrize(
    ("option", "target", "said"),
    [
        ("--out", "missing/figure.png", "there is no directory missing"),
        ("--out", "figure.txt", "expected a name that ends in .png, .svg or .pdf"),
        ("--csv", "missing/all.csv", "there is no directory missing"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work_is_done(simulate, option, target, said, monkeypatch: pytest.MonkeyPatch):
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr("optimal_frontier.papers.azar.azar_commands.measurements", never)
    monkeypatch.setattr("optimal_frontier.papers.azar.azar_commands.azar_figure_2", never)
    for name in ("azar-figure-1", "azar-figure-2"):
        assert said in one_line(simulate(name, option, target))


def test_a_file_that_cannot_be_written_after_all_is_one_line(simulate, nowhere):
    target = nowhere / "taken.csv"
    target.symlink_to(nowhere / "missing" / "all.csv")
    assert "cannot be written (No such file or directory)" in one_line(simulate("azar-figure-2", "--csv", "taken.csv"))


def test_unknown_names_are_answered_with_the_known_ones(simulate):
    names = (
        "azar-figure-1, azar-figure-2, hubs, policies, signals, trace, upadhyay-figure-2, upadhyay-regret, "
        "wolf-figure-10, wolf-figure-7, wolf-figure-8, wolf-figure-9"
    )
    assert one_line(simulate("azar-figure-3")) == f"optimal-frontier: simulate azar-figure-3: unknown; known are {names}"


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--bandwidth", "0"], ["--bandwidth", "inf"], ["--utilities", "normal"]])
def test_wrong_usage(simulate, arguments):
    assert simulate("azar-figure-1", *arguments).exit_code == 2
