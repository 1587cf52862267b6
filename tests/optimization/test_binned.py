"""The mergeable summary: right price, mergeable, updatable."""

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import BinnedDual, freshness_periodic, periodic_rates_at, solve_periodic

WORLDS = {
    "uniform": lambda rng, n: (rng.random(n) + 1e-9, rng.random(n) + 1e-9),
    "heavy": lambda rng, n: (rng.pareto(1.2, n) + 0.1, rng.lognormal(0, 1.5, n)),
    "wide": lambda rng, n: (10.0 ** rng.uniform(-6, 6, n), 10.0 ** rng.uniform(-6, 6, n)),
    "ties": lambda rng, n: (rng.integers(1, 4, n).astype(float), np.ones(n)),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("load", [0.01, 0.3, 10.0])
def test_error_bound(world, load):
    """Rates at the binned price, scaled to the budget, lose less than 1e-6 of the objective (the documented bound)."""
    rng = np.random.default_rng(1)
    importance, change_rate = WORLDS[world](rng, 5000)
    budget = load * change_rate.sum()
    summary = BinnedDual()
    summary.add(importance, change_rate)
    rates = periodic_rates_at(importance, change_rate, summary.multiplier(budget))
    rates *= budget / rates.sum()
    best = solve_periodic(importance, change_rate, budget).objective
    assert best * (1 - 1e-6) <= freshness_periodic(importance, change_rate, rates) <= best * (1 + 1e-9)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
def test_multiplier_and_spending_agree_with_the_exact_solver(objective):
    rng = np.random.default_rng(2)
    importance, change_rate, cost = rng.lognormal(0, 1, 5000), rng.lognormal(0, 1, 5000), rng.lognormal(0, 1, 5000)
    exact = solve_periodic(importance, change_rate, 800.0, objective, cost=cost)
    summary = BinnedDual(objective)
    summary.add(importance, change_rate, cost)
    assert summary.multiplier(800.0) == pytest.approx(exact.multiplier, rel=3e-3)
    assert summary.multiplier(800.0, start=exact.multiplier) == pytest.approx(summary.multiplier(800.0), rel=1e-7)
    assert summary.spending(exact.multiplier) == pytest.approx(800.0, rel=3e-3)


def test_shards_add_up():
    rng = np.random.default_rng(3)
    importance, change_rate = rng.random(1000), rng.random(1000)
    whole, left, right = BinnedDual(), BinnedDual(), BinnedDual()
    whole.add(importance, change_rate)
    left.add(importance[:300], change_rate[:300])
    right.add(importance[300:], change_rate[300:])
    left.merge(right)
    assert left.pages == whole.pages
    assert left.multiplier(50.0) == pytest.approx(whole.multiplier(50.0), rel=1e-9)
    with pytest.raises(InvalidProblemError, match="other"):
        left.merge(BinnedDual("changes"))


def test_one_page_at_a_time_equals_all_at_once_and_removal_undoes_it():
    rng = np.random.default_rng(4)
    importance, change_rate = 10.0 ** rng.uniform(-3, 3, 500), 10.0 ** rng.uniform(-3, 3, 500)
    bulk, single = BinnedDual(), BinnedDual()
    bulk.add(importance, change_rate)
    for weight, change in zip(importance.tolist(), change_rate.tolist(), strict=True):
        single.add(weight, change)
    assert single.multiplier(5.0) == pytest.approx(bulk.multiplier(5.0), rel=1e-9)
    for weight, change in zip(importance[100:].tolist(), change_rate[100:].tolist(), strict=True):
        single.remove(weight, change)
    bulk.remove(importance[100:], change_rate[100:])
    few = BinnedDual()
    few.add(importance[:100], change_rate[:100])
    for summary in (single, bulk):
        assert summary.pages == 100
        assert summary.multiplier(5.0) == pytest.approx(few.multiplier(5.0), rel=1e-6)


def test_removing_what_was_never_added_is_refused():
    summary = BinnedDual()
    summary.add(1.0, 1.0)
    with pytest.raises(InvalidProblemError, match="not added"):
        summary.remove(1.0, 100.0)
    with pytest.raises(InvalidProblemError, match="not added"):
        summary.remove(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    assert summary.pages == 1


def test_nothing_worth_a_visit():
    summary = BinnedDual()
    assert summary.multiplier(1.0) == 0.0
    summary.add([0.0, 1.0], [1.0, 0.0])
    summary.add(0.0, 1.0)
    assert summary.pages == 0
    assert summary.multiplier(1.0) == 0.0
    summary.add(3.0, 1.0)
    assert summary.multiplier(0.0) == pytest.approx(3.0)


def test_values_beyond_the_bins_share_the_end_bins():
    summary = BinnedDual()
    summary.add([1e-60, 1.0, 1e60], [1.0, 1.0, 1.0])
    assert summary.pages == 3
    assert summary.multiplier(1.0) > 0
