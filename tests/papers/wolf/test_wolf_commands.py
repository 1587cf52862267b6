"""``simulate wolf-figure-7`` to ``wolf-figure-10``: tables, files, pictures, exit codes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from measured_once import patch_measures

from optimal_frontier.cli import main
from optimal_frontier.papers.wolf import wolf_commands as module
from optimal_frontier.papers.wolf.wolf_figure_9 import wolf_figure_9

FIGURES = ("wolf-figure-7", "wolf-figure-8", "wolf-figure-9", "wolf-figure-10")
FEW = ("--pages", "4000")


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    """What the commands show is measured once: a table, JSON, a file and a picture are of the same points."""
    yield from patch_measures(module, *(figure.replace("-", "_") for figure in FIGURES))


@pytest.fixture
def simulate(nowhere: Path) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        if "--out" not in arguments:
            arguments = (*arguments, "--no-picture")
        result = CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.mark.parametrize("figure", FIGURES[:3])
def test_curves_hold_and_say_what_was_chosen(simulate, nowhere, figure):
    """The table, the JSON and the CSV have the same points; what the paper leaves open is stated."""
    result = simulate(figure, *FEW, "--csv", "points.csv")
    assert (result.exit_code, result.stderr) == (0, "written: points.csv\n")
    assert "4,000 pages, 1.5 updates a day on average" in result.stdout
    assert "DOES NOT HOLD" not in result.stdout
    answer = json.loads(simulate(figure, *FEW, "--json").stdout)
    assert (answer["figure"], answer["pages"], answer["seed"]) == (figure, 4000, 0)
    assert all(check["holds"] for check in answer["checks"])
    for check in answer["checks"]:
        assert check["promise"] in result.stdout
    for name, value in (answer["chosen"] | answer["notes"]).items():
        assert name in result.stdout
        assert value in result.stdout
    with (nowhere / "points.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [point["value"] for point in answer["points"]]
    for point in answer["points"]:
        assert f" {100 * point['value']:.3f}" in result.stdout


def test_what_was_chosen_names_the_numbers(simulate):
    chosen = json.loads(simulate("wolf-figure-7", "--pages", "100", "--json").stdout)["chosen"]
    assert chosen["Pareto pages"].startswith("shape 1.5")
    assert chosen["potential updates"].startswith("1 to 5 a day")
    assert chosen["positions of a page"] == "standard deviation 5"


def test_figure_9_states_the_trend(simulate):
    notes = json.loads(simulate("wolf-figure-9", *FEW, "--json").stdout)["notes"]
    assert notes["trend"].startswith("optimal staleness rises with the shape: ")


def test_another_seed_gives_other_pages(simulate):
    one, other = (json.loads(simulate("wolf-figure-9", "--pages", "500", "--seed", seed, "--json").stdout)["points"] for seed in "12")
    assert [point["at"] for point in one] == [point["at"] for point in other]
    assert [point["value"] for point in one] != [point["value"] for point in other]
    assert [point["value"] for point in one] == [again.value for again in wolf_figure_9(500, 1)]


@pytest.mark.parametrize("figure", FIGURES[:3])
def test_a_curve_that_does_not_hold_ends_in_1(simulate, monkeypatch: pytest.MonkeyPatch, figure):
    """Uniform twice as stale as it is."""
    name = figure.replace("-", "_")
    measure = getattr(module, name)
    monkeypatch.setattr(
        module, name, lambda *given: (replace(one, value=one.value * (2 if one.scheme == "uniform" else 1)) for one in measure(*given))
    )
    result = simulate(figure, *FEW)
    assert result.exit_code == 1
    assert "DOES NOT HOLD" in result.stdout
    answer = simulate(figure, *FEW, "--json")
    assert answer.exit_code == 1
    assert not all(check["holds"] for check in json.loads(answer.stdout)["checks"])


def test_figure_10_shows_times_and_deviations(simulate, nowhere):
    result = simulate("wolf-figure-10", *FEW, "--csv", "slots.csv")
    assert (result.exit_code, result.stderr) == (0, "written: slots.csv\n")
    assert "10,000 crawls" in result.stdout
    assert "two minutes" in result.stdout
    answer = json.loads(simulate("wolf-figure-10", *FEW, "--json").stdout)
    full, free = answer["assignments"]
    assert (full["free"], full["slots"], full["early"]) == (0, 1000, 0)
    assert free["slots"] == 1011
    assert full["seconds"] > 0
    assert f"{full['within']:.3%}" in result.stdout
    with (nowhere / "slots.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["crawls"]) for row in rows) == 2 * 10_000
    assert sum(int(row["quasi_deterministic"]) for row in rows) == full["quasi_deterministic"] + free["quasi_deterministic"]
    assert [int(row["crawls"]) for row in rows] == full["counts"] + free["counts"]


def test_crawls_that_are_early_end_in_1(simulate, monkeypatch: pytest.MonkeyPatch):
    measure = module.wolf_figure_10
    monkeypatch.setattr(module, "wolf_figure_10", lambda *given: (replace(one, early=3) for one in measure(*given)))
    result = simulate("wolf-figure-10", *FEW)
    assert result.exit_code == 1
    assert "DOES NOT HOLD: 3 early" in result.stdout


@pytest.mark.parametrize("figure", FIGURES)
def test_wolf_pictures_are_drawn(simulate, nowhere, figure):
    pytest.importorskip("matplotlib")
    assert simulate(figure, *FEW, "--out", "picture.png").stderr == "written: picture.png\n"
    head = (nowhere / "picture.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(head[16:20]) > 900
    assert int.from_bytes(head[20:24]) > 700


@pytest.mark.parametrize("figure", FIGURES)
def test_too_few_pages_are_refused(simulate, figure):
    assert simulate(figure, "--pages", "10").exit_code == 2


def test_wolf_figures_are_listed(simulate):
    result = simulate("wolf-figure-6")
    assert result.exit_code == 2
    assert all(figure in result.stderr for figure in FIGURES)
