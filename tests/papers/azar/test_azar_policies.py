"""The policies of figure 1 are what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.optimization import freshness_periodic, freshness_poisson
from optimal_frontier.papers.azar.azar_policies import POLICIES
from optimal_frontier.simulation import Pages, azar_pages


@pytest.fixture
def pages() -> Pages:
    return azar_pages(300, "uniform", seed=9)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("bandwidth", [3.0, 300.0, 3000.0])
def test_every_policy_spends_the_bandwidth(name, bandwidth, pages):
    rates = POLICIES[name](pages, bandwidth)
    assert rates.sum() == pytest.approx(bandwidth, rel=1e-9)
    assert rates.min() >= 0


@pytest.mark.parametrize(("name", "objective"), [("algorithm-2", freshness_poisson), ("eq-6", freshness_periodic)])
def test_each_solver_is_the_best_at_its_own_objective(name, objective, pages):
    reached = {policy: objective(pages.importance, pages.change_rate, rates(pages, 100.0)) for policy, rates in POLICIES.items()}
    assert all(reached[name] > value for policy, value in reached.items() if policy != name)


def test_change_rate_directed_is_the_best_for_pages_of_equal_importance(pages):
    """And takes no notice of their importance."""
    equal = Pages(np.full(300, 2.0), pages.change_rate)
    directed = POLICIES["change-rate"](pages, 100.0)
    assert directed == pytest.approx(POLICIES["change-rate"](equal, 100.0))
    reached = {policy: freshness_periodic(equal.importance, equal.change_rate, rates(equal, 100.0)) for policy, rates in POLICIES.items()}
    assert reached["change-rate"] == pytest.approx(max(reached.values()), rel=1e-12)
    at_little = POLICIES["change-rate"](pages, 10.0)
    assert pages.change_rate[at_little == 0].min() > pages.change_rate[at_little > 0].max()


def test_utility_is_in_proportion_to_importance_and_uniform_to_nothing(pages):
    assert np.ptp(POLICIES["utility"](pages, 100.0) / pages.importance) == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(POLICIES["uniform"](pages, 100.0)) == 0.0
