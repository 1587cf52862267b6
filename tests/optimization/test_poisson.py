"""Azar's Algorithm 2: memoryless visits."""

import numpy as np
import pytest
from certificates import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import freshness_poisson, solve_discrete, solve_poisson


def poisson_reference(importance, change_rate, budget):
    """Objective of eq. 11 with the multiplier from a root finder."""
    live = (importance > 0) & (change_rate > 0)
    mu, delta = importance[live], change_rate[live]
    depth = np.sqrt(delta / mu)
    shallow = depth.min()
    gap = depth - shallow

    def spent(level):
        return float((np.sqrt(mu * delta) * np.maximum(level - gap, 0)).sum())

    high = budget / np.sqrt(mu * delta)[gap == 0].sum()
    level = brentq(lambda x: spent(x) - budget, 0.0, high * (1 + 1e-12), xtol=1e-300, rtol=1e-15)
    rates = np.zeros(importance.size)
    rates[live] = np.sqrt(mu * delta) * np.maximum(level - gap, 0)
    return freshness_poisson(importance, change_rate, rates)


@pytest.mark.parametrize("seed", range(100))
def test_optimum_on_random_instances(seed):
    """Both methods: within 1e-9 of a root finder's objective, rates sum to the budget, KKT residual under 1e-6, and equal to each other."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 10, 300, 2000]))
    importance, change_rate = random_problem(rng, n)
    budget = float(change_rate.sum() * 10.0 ** rng.uniform(-8, 3))
    fast = solve_poisson(importance, change_rate, budget)
    printed = solve_poisson(importance, change_rate, budget, method="sort")
    np.testing.assert_allclose(fast.rates, printed.rates, rtol=1e-6, atol=1e-9 * budget)
    for solution in (fast, printed):
        assert solution.rates.min() >= 0
        assert solution.rates.sum() == pytest.approx(budget, rel=1e-9)
        assert solution.kkt_residual < 1e-6
        assert solution.objective == pytest.approx(freshness_poisson(importance, change_rate, solution.rates), rel=1e-9)
        assert solution.objective >= poisson_reference(importance, change_rate, budget) * (1 - 1e-9)


def test_algorithm_2_by_hand():
    """Two pages of importance 1, change rates 1 and 9, R = 1: the second is dropped (1/9 <= multiplier 1/4)."""
    solution = solve_poisson([1.0, 1.0], [1.0, 9.0], 1.0)
    np.testing.assert_allclose(solution.rates, [1.0, 0.0])
    assert solution.multiplier == pytest.approx(0.25)
    assert solution.objective == pytest.approx(0.5)


def test_remark_4_exponentially_decaying_freshness_has_the_same_optimum():
    """In discrete time E exp(-change rate x age) = p / (p + d - p d) with d = 1 - exp(-change rate), so Algorithm 1 at d is its optimum."""
    rng = np.random.default_rng(0)
    importance, change_rate = rng.random(6) + 0.1, rng.random(6) + 0.1

    def decayed(p):
        ages = np.arange(4000)  # age a with probability p (1 - p) ** a
        return sum(w * (q * (1 - q) ** ages * np.exp(-c * ages)).sum() for w, c, q in zip(importance, change_rate, p, strict=True))

    solution = solve_discrete(importance, -np.expm1(-change_rate))
    assert decayed(solution.rates) == pytest.approx(solution.objective, rel=1e-9)
    for _ in range(200):
        other = rng.dirichlet(np.ones(6) * rng.choice([0.5, 5.0]))
        assert decayed(other) <= solution.objective * (1 + 1e-9)


@given(st.floats(-100, 100), st.floats(-100, 100))
@settings(max_examples=40, deadline=None)
def test_units_do_not_matter(weight_exponent, time_exponent):
    rng = np.random.default_rng(3)
    importance, change_rate = rng.lognormal(0, 1, 30), rng.lognormal(0, 1, 30)
    base = solve_poisson(importance, change_rate, 5.0)
    scaled = solve_poisson(importance * 10.0**weight_exponent, change_rate * 10.0**time_exponent, 5.0 * 10.0**time_exponent)
    np.testing.assert_allclose(scaled.rates, base.rates * 10.0**time_exponent, rtol=1e-7)


def test_large_problem_starts_from_a_sample():
    rng = np.random.default_rng(4)
    importance, change_rate = rng.pareto(1.2, 200_000), rng.lognormal(0, 1.5, 200_000)
    fast, printed = (solve_poisson(importance, change_rate, 20_000.0, method=m) for m in ("sort-free", "sort"))
    assert fast.objective == pytest.approx(printed.objective, rel=1e-12)
    assert fast.kkt_residual < 1e-6


def test_degenerate_inputs():
    assert solve_poisson([], [], 1.0).unused == 1.0
    assert solve_poisson([0.0, 0.0], [1.0, 1.0], 1.0).unused == 1.0
    still = solve_poisson([2.0, 1.0], [0.0, 1.0], 1.0)
    np.testing.assert_array_equal(still.rates, [0.0, 1.0])
    assert still.objective == pytest.approx(2.5)
    assert solve_poisson([1.0, 8.0], [1.0, 2.0], 0.0).multiplier == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve_poisson([1.0, np.nan], [1.0, 1.0], 1.0), r"importance\[1\]"),
        (lambda: solve_poisson([1.0], [1.0, 1.0], 1.0), "change_rate has 2 entries"),
        (lambda: solve_poisson([1.0], [1.0], "x"), "bandwidth"),
        (lambda: solve_poisson([1.0], [1.0], 1.0, method="magic"), "method"),
        (lambda: freshness_poisson([1.0], [1.0], [-1.0]), r"rates\[0\]"),
    ],
)
def test_bad_input_names_argument_and_index(call, message):
    with pytest.raises(InvalidProblemError, match=message):
        call()
