"""The figures of "Learning to crawl": estimates, bounds and regrets against other ways of working them out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.estimation import moment_rate
from optimal_frontier.papers.upadhyay.upadhyay_figure_2 import upadhyay_figure_2
from optimal_frontier.papers.upadhyay.upadhyay_regret import (
    LOWER,
    REGRET_POLICIES,
    UPPER,
    Regret,
    even_estimate,
    growths,
    memoryless_estimate,
    regrets,
)


@pytest.fixture(scope="module")
def figure():
    return list(upadhyay_figure_2(300, seed=1, visits=(20, 80, 320)))


@pytest.fixture(scope="module")
def measured():
    return list(regrets(100, seeds=range(4), horizons=[1e3, 1e4, 1e5]))


def test_every_panel_has_every_point(figure):
    assert len({(one.change_rate, one.visit_rate, one.visits) for one in figure}) == len(figure) == 2 * 3 * 3


def test_the_bound_covers_and_errors_fall_like_a_root(figure):
    """Four times the visits, half the error; the bound is the same to a few per cent in every simulation."""
    for first, last in zip(figure[::3], figure[2::3], strict=True):
        assert first.covered >= 0.9
        assert last.covered >= 0.9
        assert last.bound[1] == pytest.approx(first.bound[1] / 4, rel=0.1)
        assert last.moment[1] < 0.5 * first.moment[1]
        assert last.likelihood[1] < 0.5 * first.likelihood[1]
        assert last.moment[0] < last.moment[1] < last.moment[2] < last.bound[0]


def test_moment_matching_is_close_to_likelihood(figure):
    """As the paper says of its own figure; at many visits, to a fifth."""
    for one in figure[2::3]:
        assert one.moment[1] == pytest.approx(one.likelihood[1], rel=0.2)


def test_figure_2_is_the_same_for_the_same_seed():
    assert list(upadhyay_figure_2(5, 3, visits=[10])) == list(upadhyay_figure_2(5, 3, visits=[10]))


def test_estimate_of_even_visits_is_moment_rate():
    """Never changed and always changed too."""
    for changes in (0, 1, 17, 39, 40):
        changed = np.arange(40) < changes
        expected = moment_rate(np.ones(40), changed, LOWER, UPPER)
        assert even_estimate(np.array([float(changes)]), 40)[0] == pytest.approx(expected, rel=1e-12)


def test_estimate_of_memoryless_visits_solves_its_equation_and_is_consistent():
    rng = np.random.default_rng(2)
    truth = np.array([0.6, 0.9, 1.7, 3.0])
    rates = rng.random((5, 4)) * 2 + 0.05
    visits = np.full((5, 4), 400_000)
    unchanged = rng.binomial(visits, rates / (rates + truth))
    found = memoryless_estimate(rates, visits.astype(float), unchanged.astype(float))
    assert found[:3] == pytest.approx(truth[:3], rel=0.01)
    assert found[3] == pytest.approx(UPPER)
    assert (visits * rates / (rates + found)).sum(axis=0)[:3] == pytest.approx(unchanged.sum(axis=0)[:3], rel=1e-9)


def test_regret_is_positive_and_within_its_bound(measured):
    assert {one.policy for one in measured} == set(REGRET_POLICIES)
    assert all(one.regret > 0 for one in measured)
    assert all(one.regret < one.bound for one in measured if one.policy == "theorem-1")
    assert all(math.isnan(one.bound) for one in measured if one.policy != "theorem-1")


def test_explore_then_commit_grows_like_the_square_root(measured):
    """With a known horizon; without one, somewhat rougher as it is cut anywhere in a stretch."""
    grown = {one.policy: one for one in growths(measured)}
    assert grown["theorem-1"].exponent == pytest.approx(0.5, abs=0.005)
    assert grown["square-root"].exponent == pytest.approx(0.5, abs=0.05)
    assert grown["doubling"].exponent == pytest.approx(0.5, abs=0.1)
    assert grown["theorem-1"].error < 0.01


def test_growth_is_the_slope_of_the_mean():
    made = [Regret("p", horizon, seed, (1 + seed) * horizon**0.7, math.nan) for seed in range(3) for horizon in (10.0, 100.0, 1e4)]
    (growth,) = growths(made)
    assert growth.exponent == pytest.approx(0.7)
    assert growth.error == pytest.approx(0.0, abs=1e-9)
    (lone,) = growths(made[:3])
    assert math.isnan(lone.error)
