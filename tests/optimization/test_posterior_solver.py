"""Expected freshness under a Gamma posterior."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaincinv

from optimal_frontier.errors import InfeasibleBudgetError, InvalidProblemError
from optimal_frontier.optimization import solve_periodic, solve_posterior
from optimal_frontier.optimization.posterior_solver import expected_freshness, marginal_time


@pytest.mark.parametrize("shape", [0.3, 1.0, 1.0000001, 2.5, 40.0])
@pytest.mark.parametrize("age", [1e-6, 1e-2, 0.3, 5.0, 1e4])
def test_marginal_time_is_the_integral(shape, age):
    value, _ = quad(
        lambda t: shape * t * (1 + t) ** (-shape - 1), 0, age, epsabs=0, epsrel=1e-11, limit=500, points=None if age < 10 else [1, 10, 100]
    )
    assert marginal_time(np.array([shape]), np.array([age]))[0] == pytest.approx(value, rel=1e-8)


def test_objective_is_the_mean_over_the_posterior():
    rng = np.random.default_rng(0)
    shape, time, rate = np.array([2.0]), np.array([3.0]), np.array([0.7])
    draws = rng.gamma(2.0, 1 / 3.0, 200_000)
    sampled = np.mean(-np.expm1(-draws / 0.7) * 0.7 / draws)
    assert expected_freshness(np.ones(1), shape, time, rate) == pytest.approx(sampled, rel=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_optimum(seed):
    """Sums to the budget, KKT residual under 1e-6, and no worse than moving budget between any two pages."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 20, 300]))
    importance, shape, time = rng.lognormal(0, 2, n), rng.lognormal(0, 1, n), rng.lognormal(0, 2, n)
    cost = rng.random(n) + 0.5
    low = np.where(rng.random(n) < 0.3, 0.01 / n, 0.0)
    budget = float(10.0 ** rng.uniform(-1, 3))
    solution = solve_posterior(importance, shape, time, budget, cost=cost, min_rate=low, max_rate=10 * budget)
    assert solution.rates @ cost == pytest.approx(budget, rel=1e-9)
    assert (solution.rates >= low).all()
    assert solution.kkt_residual < 1e-6
    for _ in range(50):
        i, j = rng.integers(0, n, 2)
        rates = solution.rates.copy()
        move = 0.1 * (rates[i] - low[i]) * cost[i]
        rates[i] -= move / cost[i]
        rates[j] += move / cost[j]
        assert expected_freshness(importance, shape, time, rates) <= solution.objective * (1 + 1e-9)


def test_no_worse_than_slsqp():
    importance, shape, time = np.array([1.0, 2.0, 0.5, 1.0]), np.array([0.8, 1.0, 3.0, 10.0]), np.array([1.0, 0.2, 5.0, 1.0])
    found = minimize(
        lambda f: -expected_freshness(importance, shape, time, np.maximum(f, 1e-9)), np.full(4, 0.5), method="SLSQP",
        bounds=[(1e-6, 2)] * 4,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 2}, options={"ftol": 1e-14},
    )  # fmt: skip
    solution = solve_posterior(importance, shape, time, 2.0)
    assert solution.objective >= -found.fun * (1 - 1e-9)
    assert solution.objective == pytest.approx(-found.fun, rel=1e-6)


def test_a_sure_posterior_is_a_point():
    rng = np.random.default_rng(1)
    importance, rate = rng.random(30) + 0.1, rng.random(30) + 0.1
    sure = solve_posterior(importance, np.full(30, 1e8), 1e8 / rate, 6.0)
    point = solve_periodic(importance, rate, 6.0)
    assert sure.objective == pytest.approx(point.objective, rel=1e-6)
    np.testing.assert_allclose(sure.rates, point.rates, rtol=1e-3, atol=1e-4)


def test_it_beats_the_median_plug_in_in_expectation():
    rng = np.random.default_rng(2)
    importance, shape, time = rng.random(200) + 0.1, rng.uniform(0.5, 3, 200), rng.lognormal(0, 1, 200)
    best = solve_posterior(importance, shape, time, 40.0)
    median = gammaincinv(shape, 0.5) / time
    plug_in = solve_periodic(importance, median, 40.0).rates
    assert expected_freshness(importance, shape, time, plug_in) < best.objective


def test_limits_of_the_problem():
    assert solve_posterior([1.0], [2.0], [1.0], 5.0, max_rate=3.0).unused == pytest.approx(2.0)
    np.testing.assert_array_equal(solve_posterior([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 1.0).rates, [0.0, 0.0])
    np.testing.assert_array_equal(solve_posterior([1.0], [3.0], [1.0], 0.0).rates, [0.0])
    assert solve_posterior([], [], [], 1.0).unused == 1.0
    with pytest.raises(InfeasibleBudgetError, match="1 too much"):
        solve_posterior([1.0], [1.0], [1.0], 1.0, min_rate=2.0)
    with pytest.raises(InvalidProblemError, match=r"shape\[1\]"):
        solve_posterior([1.0, 1.0], [1.0, 0.0], [1.0, 1.0], 1.0)
    with pytest.raises(InvalidProblemError, match=r"min_rate\[0\]"):
        solve_posterior([1.0], [1.0], [1.0], 1.0, min_rate=0.5, max_rate=0.2)
