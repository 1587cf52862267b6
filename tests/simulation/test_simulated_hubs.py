"""A world of hubs and articles: time to discovery beside freshness."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation.hub_worlds import HUB_POLICIES, HubWorld, compare_hubs, simulate_hubs

SMALL = HubWorld(hubs=8, articles=400, new_per_day=20.0)


@pytest.fixture(scope="module")
def reports():
    runs = list(compare_hubs(SMALL, HUB_POLICIES, range(2), 6.0))
    return {policy: [one for one in runs if one.policy == policy] for policy in HUB_POLICIES}


def mean(runs, name):
    return np.mean([getattr(one, name) for one in runs])


def test_new_articles_are_found_much_sooner_and_copies_are_as_fresh(reports):
    """In a small world; benchmarks/hubs.py has 20 hubs, 3,000 articles and 8 seeds."""
    found, without, uniform = (reports[name] for name in ("discovery", "without discovery", "uniform"))
    assert mean(found, "time_to_discovery") < 0.5 * mean(uniform, "time_to_discovery")
    assert mean(found, "time_to_discovery") < 0.6 * mean(without, "time_to_discovery")
    assert mean(found, "freshness") > mean(without, "freshness") - 0.02
    assert mean(found, "hub_interval") < 0.6 * mean(uniform, "hub_interval")


def test_who_knows_rates_and_yields_does_better(reports):
    assert mean(reports["clairvoyant"], "freshness") > mean(reports["discovery"], "freshness")
    assert mean(reports["clairvoyant"], "time_to_discovery") < 0.5 * mean(reports["uniform"], "time_to_discovery")


def test_uniform_visits_find_after_half_a_round(reports):
    for one in reports["uniform"]:
        assert one.time_to_discovery == pytest.approx(one.hub_interval / 2, rel=0.2)
        assert 0 < one.freshness < one.of_known < 1


def test_the_same_seed_is_the_same_crawl():
    first, second, other = (simulate_hubs(SMALL, "discovery", 2.0, seed) for seed in (1, 1, 2))
    assert first == second
    assert first.time_to_discovery != other.time_to_discovery


def test_a_world_has_the_yields_and_the_budget_that_were_asked_for():
    realised = SMALL.realise(50.0, 3)
    assert realised.yields.sum() == pytest.approx(20.0)
    assert (realised.born > 0).sum() == pytest.approx(1000, abs=130)
    assert realised.budget == pytest.approx(0.1 * realised.change_rate[:408].sum())
    counts = np.bincount(realised.hub[408:], minlength=8)
    assert counts / counts.sum() == pytest.approx(realised.yields / 20.0, abs=0.05)


@pytest.mark.parametrize(("policy", "days"), [("greedy", 1.0), ("uniform", 0.0), ("uniform", float("inf"))])
def test_bad_arguments_are_named(policy, days):
    with pytest.raises(InvalidProblemError, match=r"policy must be|days must be"):
        simulate_hubs(SMALL, policy, days, 0)


def test_a_world_without_hubs_is_none():
    with pytest.raises(InvalidProblemError, match="hubs"):
        HubWorld(hubs=0)
