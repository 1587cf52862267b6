"""``page`` and ``pages`` of a page with update times: its model, what was learned, when it is due, and why."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START

from optimal_frontier.estimation.bursts import REJECTED, fit_weibull
from optimal_frontier.frontier.session import apply_bounds
from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import Surprises, UpdateTimes

from .stored_crawl import HOT, WARM

DAY = 86_400.0
RULES = [{"pattern": "/hot", "update_times": [21_600, (64_800, 0.25)]}]


def rule(crawl, *rules):
    """Change the rules of the stored crawl, and plan."""
    for given in ([], rules):
        apply_bounds(crawl.store, FrontierSettings.parse({"OPTIMAL_FRONTIER_RULES": list(given), "OPTIMAL_FRONTIER_CRAWL_RATE": 1.0}))
    crawl.store.advance(1.0)
    crawl.replan()


def test_the_model_is_told_with_its_times_and_the_next_visit_is_at_one(ask, run, crawl):
    rule(crawl, *RULES)
    answer = ask("page", HOT)
    assert answer["model"] == {
        "name": "quasi-deterministic",
        "period": DAY,
        "is_learned": False,
        "update_times": [
            {"seconds": 21_600.0, "probability": pytest.approx(0.99), "stated": 1.0, "bought": True},
            {"seconds": 64_800.0, "probability": 0.25, "stated": 0.25, "bought": True},
        ],
    }
    assert answer["rate"] == pytest.approx(2 / DAY)
    phase = START % DAY
    upcoming = min((at - phase) % DAY for at in (21_600, 64_800))
    assert answer["deadline"] == pytest.approx(START + upcoming + 0.1)
    assert answer["marginal"] is None
    text = run("page", HOT).output
    assert "quasi-deterministic, by RULES: changes at 06:00 UTC (99%), 18:00 UTC (25%) of every 1 d; probabilities stated" in text
    assert "Visited at or soon after 06:00 UTC, 18:00 UTC, never shortly before" in text
    (row,) = [row for row in ask("pages") if row["url"] == HOT]
    assert row["deadline"] == pytest.approx(answer["deadline"])


def test_what_was_learned_and_what_is_not_worth_a_visit_is_told(ask, run, crawl):
    crawl.store.add(crawl.page(HOT, importance=1e-4))
    rule(crawl, *RULES)
    crawl.visit(HOT, bit=1, shape=3.0, time=10.0, learned=UpdateTimes(1, ((1.0, 99.0), (30.0, 10.0))))
    crawl.store.advance(1.0)
    crawl.replan()
    answer = ask("page", HOT)
    assert answer["model"]["is_learned"]
    assert [row["probability"] for row in answer["model"]["update_times"]] == pytest.approx([0.01, 0.75])
    assert [row["bought"] for row in answer["model"]["update_times"]] == [False, True]
    assert "06:00 UTC (1%), 18:00 UTC (75%)" in run("page", HOT).output
    crawl.store.add(crawl.page(HOT, importance=1e-9))
    rule(crawl, {**RULES[0], "max_interval": 3 * DAY})
    assert "No visit at an update time is worth the threshold" in ask("page", HOT)["why"]
    assert "once in 3 d" in ask("page", HOT)["why"]


def test_a_page_without_a_rule_is_poisson(ask, run, crawl):
    assert ask("page", WARM)["model"] == {"name": "poisson", "statistic": 0.0, "rejected_from": REJECTED, "has_enough_bits": False}
    assert "Poisson: its bits do not speak against it" in run("page", WARM).output


def test_a_page_whose_changes_come_in_bursts_is_told_with_its_shape(ask, run, crawl):
    crawl.visit(WARM, bit=1, shape=3.0, time=10.0, surprises=Surprises(0.5, 18.0, 4.0, 40.0))
    crawl.replan()
    answer = ask("page", WARM)
    model = answer["model"]
    assert (model["name"], model["statistic"], model["is_planned"]) == ("weibull", 9.0, True)
    assert 0.25 < model["shape"] < 0.5
    correlation = 18.0 / 40.0 * (1 - (REJECTED / 9.0) ** 2)
    shape, interval = fit_weibull([2 / 3], [correlation])
    assert model["shape"] == pytest.approx(shape[0], abs=1e-3)
    assert model["mean"] == pytest.approx(np.log(3) / answer["change_rate"] / interval[0], rel=1e-6)
    assert "heavy-tailed, Weibull of shape" in run("page", WARM).output


def test_a_bursty_page_is_worth_the_threshold_by_its_own_model(ask, run, crawl):
    """And says so; not where plans do not go by it."""
    crawl.visit(WARM, bit=1, shape=3.0, time=10.0, surprises=Surprises(0.5, 18.0, 4.0, 40.0))
    crawl.replan(CRAWL_RATE=0.3)
    answer = ask("page", WARM)
    assert 0 < answer["rate"] < 1.0
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-4)
    model = Weibull.from_mean(answer["model"]["mean"], answer["model"]["shape"])
    assert answer["marginal"] == pytest.approx(float(model.crawl_worth(answer["interval"])), rel=1e-6)
    assert "as much as anywhere else" in answer["why"]
    assert "so a visit is worth what a Weibull model of shape" in answer["why"]
    crawl.replan(POLICY="poisson")
    answer = ask("page", WARM)
    assert (answer["model"]["name"], answer["model"]["is_planned"]) == ("weibull", False)
    assert "planned as Poisson: POLICY" in answer["why"]
    assert "planned as Poisson" in run("page", WARM).output


def test_check_finds_nothing_wrong_with_update_times_and_what_is(run, crawl):
    rule(crawl, *RULES)
    assert run("check").exit_code == 0
    slot = crawl.slot_of(HOT)
    crawl.store.command("HSET", crawl.store.key("timed"), slot, UpdateTimes(1, ((1.0, 2.0),)).pack())
    result = run("check")
    assert result.exit_code == 1
    assert f"slot {slot} has learned of other update times" in result.output
