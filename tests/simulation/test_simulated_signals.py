"""Crawls that listen to sources, in small worlds; `benchmarks/signals.py` has larger ones and more of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation.signal_crawl import compare_signals, simulate_signals
from optimal_frontier.simulation.signal_worlds import SignalWorld

SMALL = SignalWorld(pages=120, sources=3)
DAYS = 80.0
SEEDS = range(2)


def means(world, policies, seeds=SEEDS):
    found = {policy: [] for policy in policies}
    for report in compare_signals(world, policies, seeds, DAYS):
        found[report.policy].append(report)
    return {
        policy: {name: np.mean([getattr(one, name) for one in some]) for name in ("freshness", "optimum", "recall")}
        for policy, some in found.items()
    }


def test_who_listens_comes_near_the_optimum_and_the_greedy_policy_of_the_paper() -> None:
    found = means(SMALL, ("without", "known", "learned", "greedy-ncis"))
    optimum = found["known"]["optimum"]
    assert found["known"]["freshness"] == pytest.approx(optimum, rel=0.03)
    assert found["greedy-ncis"]["freshness"] == pytest.approx(optimum, rel=0.03)
    assert found["learned"]["freshness"] > 0.96 * optimum
    assert found["without"]["freshness"] < 0.95 * optimum
    assert found["learned"]["recall"] == pytest.approx(0.6, abs=0.15)


def test_sources_that_tell_of_nearly_all_changes_do_not_drive_up_the_price() -> None:
    """Most visits answer a signal there. What it says comes in one moment: such a page is not late, and the price was not too low."""
    found = means(SignalWorld(pages=120, sources=3, recall=0.9, false=0.1), ("known", "learned", "greedy-ncis"))
    assert found["known"]["freshness"] > 0.97 * found["greedy-ncis"]["freshness"]
    assert found["learned"]["freshness"] > 0.96 * found["greedy-ncis"]["freshness"]


@pytest.mark.parametrize("false", [{}, {"false": 12.0, "false_by": "readings"}])
def test_sources_that_lie_or_always_say_now_cost_next_to_nothing(false) -> None:
    # They cost a thousandth at most, in one seed or in another.
    found = means(SignalWorld(pages=120, sources=3, recall=0.0, **false), ("without", "learned"), range(1))
    assert found["learned"]["freshness"] > found["without"]["freshness"] - 0.015


def test_where_rates_are_learned_as_well_signals_are_worth_as_much() -> None:
    # 0.051, and between seeds 0.004 more or less.
    found = means(SMALL, ("rates", "rates learned"), range(1))
    assert found["rates learned"]["freshness"] > found["rates"]["freshness"] + 0.02


def test_a_world_signals_as_it_was_asked_to() -> None:
    for by in ("changes", "pages", "readings"):
        realised = SignalWorld(pages=300, recall=0.5, false=2.0, false_by=by, delay=0.25, repeats=2).realise(400.0, 1)
        changes = realised.world.drawn.changes
        assert (np.diff(realised.times) >= 0).all()
        # Half of the changes twice, and false ones as many as twice the half.
        assert len(realised.times) == pytest.approx(2.0 * len(changes.times), rel=0.05)
        assert realised.false_rate.mean() == pytest.approx(realised.world.known_rates(0.0).mean(), rel=1e-9)
    late = SignalWorld(pages=5, recall=1.0, false=0.0, delay=0.25).realise(100.0, 1)
    page = int(late.pages[0])
    first = late.world.drawn.changes.times[late.world.drawn.changes.starts[page]]
    assert late.times[0] == pytest.approx(first + 0.25)


def test_the_same_seed_is_the_same_crawl() -> None:
    first, second, other = (simulate_signals(SMALL, "learned", 30.0, seed) for seed in (1, 1, 2))
    assert first == second
    assert first.freshness != other.freshness
    assert math.isnan(simulate_signals(SMALL, "known", 30.0, 1).recall)


@pytest.mark.parametrize(("policy", "days"), [("optimal", 1.0), ("known", 0.0), ("known", math.inf)])
def test_bad_arguments_are_named(policy, days) -> None:
    with pytest.raises(InvalidProblemError, match=r"policy must be|days must be"):
        simulate_signals(SMALL, policy, days, 0)


@pytest.mark.parametrize("wrong", [{"recall": 1.5}, {"false": -1.0}, {"pages": 0}, {"false_by": "moon"}, {"delay": math.nan}])
def test_a_world_that_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(InvalidProblemError, match=r"recall|world of signals|false_by"):
        SignalWorld(**wrong)
