"""Hubs in ``page``, ``pages``, ``status``, ``whatif`` and ``simulate hubs``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from optimal_frontier.cli import main
from optimal_frontier.frontier.judging.waits import Terms, interval_of
from optimal_frontier.scheduling.discovery import wait_with_discovery
from optimal_frontier.state.memory import Memory, Yielded
from optimal_frontier.state.reading import read_published
from optimal_frontier.state.rows import HUB

from .stored_crawl import LOG_PRICE, WORTHLESS

#: New pages of WORTHLESS, an hour.
AN_HOUR = 3.0


@pytest.fixture
def hub(crawl):
    """WORTHLESS, which no visit is worth the price to for its own changes, yields new pages."""
    yielded = Yielded(AN_HOUR, 2 * AN_HOUR, 3600.0, crawl.row(WORTHLESS).b / 1e6)
    k = crawl.partition(WORTHLESS)
    crawl.namespace.command("HSET", crawl.key("memory", k), crawl.page(WORTHLESS), Memory(yielded=yielded).pack(), partition=k)
    crawl.rewrite(WORTHLESS, flags=HUB)
    return WORTHLESS


def test_page_says_what_comes_of_a_hub(ask, crawl, hub):
    answer = ask("page", hub)
    rate, importance = pytest.approx(AN_HOUR / 3600), pytest.approx(2.0)
    assert answer["hub"] == {"new_pages_per_second": rate, "mean_importance": importance, "is_source": False, "counts": True}
    wait, _ = wait_with_discovery(LOG_PRICE, 0.001, answer["change_rate"], 2 * AN_HOUR / 3600)
    assert answer["interval"] == pytest.approx(wait, rel=1e-6)
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert answer["why"].startswith("Visited every ")
    assert "it yields 3 new pages an hour" in answer["why"]
    row = crawl.row(hub)
    terms = Terms(LOG_PRICE, read_published(crawl.namespace, crawl.partition(hub))[0], crawl.settings)
    assert interval_of(row, terms, 2 * AN_HOUR / 3600) == pytest.approx(wait, rel=1e-6)


def test_pages_lists_it_with_its_interval(ask, hub):
    rows = {row["url"]: row for row in ask("pages")}
    assert rows[hub]["interval"] == pytest.approx(ask("page", hub)["interval"], rel=1e-6)


def test_page_of_what_is_no_hub_says_nothing_of_it(ask, crawl):
    assert ask("page", WORTHLESS)["hub"] is None


def test_status_says_how_many_hubs_and_given_up_pages_there_are(ask, crawl):
    before = ask("status")
    assert (before["hubs"], before["given_up"], before["discovered"]) == (None, None, 0)
    crawl.replan(hubs=2, given_up=7)
    after = ask("status")
    assert (after["hubs"], after["given_up"]) == (2, 7)


@pytest.fixture
def simulate(nowhere: Path):
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "simulate", "hubs", *arguments])

    return invoke


SHORT = ("--days", "0.5", "--seeds", "1", "--policy", "uniform", "--policy", "discovery")


def test_simulate_hubs_shows_a_row_for_each_policy(simulate, nowhere):
    result = simulate(*SHORT, "--csv", "runs.csv")
    assert result.exit_code == 0, result.output
    assert "of uniform's" in result.output
    assert [line.split()[-1] for line in result.output.splitlines()[-3:] if line.strip()][-1:] != []
    with (nowhere / "runs.csv").open(newline="") as lines:
        assert [row["policy"] for row in csv.DictReader(lines)] == ["uniform", "discovery"]


def test_simulate_hubs_tells_all_digits_as_json(simulate):
    runs = json.loads(simulate(*SHORT, "--json").stdout)["runs"]
    assert [run["policy"] for run in runs] == ["uniform", "discovery"]
    assert {"time_to_discovery", "found", "freshness", "of_known", "of_old", "hub_interval"} <= runs[0].keys()


def test_a_file_that_cannot_be_written_is_named_before_the_work(simulate):
    result = simulate("--csv", "/nowhere/at/all.csv")
    assert result.exit_code == 2
    assert "/nowhere/at" in result.output
