"""`solve_periodic`: the optimum, proved by certificates that do not come from the solver."""

import numpy as np
import pytest
from certificates import dual_bound, random_problem, rate_at, utility, worth
from each_value import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from optimal_frontier.errors import InfeasibleBudgetError, InvalidProblemError
from optimal_frontier.optimization import changes_periodic, freshness_periodic, periodic_rates_at, solve_periodic

OBJECTIVES = ("freshness", "changes")
VALUE = {"freshness": freshness_periodic, "changes": changes_periodic}


def assert_optimal(importance, change_rate, budget, objective, solution, tolerance=1e-9, **constraints):
    bound = dual_bound(importance, change_rate, budget, objective, solution.multiplier, rates=solution.rates, **constraints)
    value = VALUE[objective](importance, change_rate, solution.rates)
    assert solution.objective == pytest.approx(value, rel=1e-10, abs=1e-300)
    assert value >= bound * (1 - tolerance)
    assert value <= bound * (1 + 1e-9)


@each("seed", range(200))
def test_optimum_on_random_instances(seed):
    """Objective within 1e-9 of the duality bound, rates sum to the budget, KKT residual under 1e-6; ties, zeros, twelve decades."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 10, 100, 700, 2000]))
    importance, change_rate = random_problem(rng, n)
    budget = float(change_rate.sum() * 10.0 ** rng.uniform(-6, 3))
    objective = OBJECTIVES[seed % 2]
    solution = solve_periodic(importance, change_rate, budget, objective)
    assert solution.rates.min() >= 0
    assert solution.unused == 0
    assert solution.rates.sum() == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    assert_optimal(importance, change_rate, budget, objective, solution)


@each("seed", range(40))
def test_agrees_with_a_root_finder_over_scipys_quantile(seed):
    """brentq over scipy's Gamma(2) quantile finds the same multiplier and objective."""
    rng = np.random.default_rng(1000 + seed)
    n = int(rng.integers(2, 400))
    importance, change_rate = rng.lognormal(0, 2, n), rng.lognormal(0, 2, n)
    objective = OBJECTIVES[seed % 2]
    w = worth(importance, change_rate, objective)
    budget = float(change_rate.sum() * 10.0 ** rng.uniform(-2, 2))
    log_price = brentq(lambda x: rate_at(w, change_rate, np.exp(x)).sum() - budget, np.log(w.max()) - 60, np.log(w.max()), xtol=1e-14)
    rates = rate_at(w, change_rate, np.exp(log_price))
    reference = utility(importance, change_rate, rates * (budget / rates.sum()), objective).sum()
    solution = solve_periodic(importance, change_rate, budget, objective)
    assert solution.objective == pytest.approx(reference, rel=1e-9)
    assert solution.multiplier == pytest.approx(np.exp(log_price), rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_no_worse_than_slsqp(objective, seed):
    """A general-purpose optimiser that knows nothing of the dual does not find anything better, and comes close."""
    rng = np.random.default_rng(seed)
    n = 8
    importance, change_rate = rng.random(n) + 0.1, rng.random(n) + 0.1
    budget = 0.5 * n
    found = minimize(
        lambda f: -utility(importance, change_rate, np.maximum(f, 1e-12), objective).sum(),
        np.full(n, budget / n),
        method="SLSQP",
        bounds=[(1e-9, budget)] * n,
        constraints={"type": "eq", "fun": lambda f: f.sum() - budget},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    solution = solve_periodic(importance, change_rate, budget, objective)
    assert solution.objective >= -found.fun * (1 - 1e-9)
    assert solution.objective == pytest.approx(-found.fun, rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_brute_force_on_two_pages(objective):
    """No division of the budget between two pages is better."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        importance, change_rate = 10 ** rng.uniform(-2, 2, 2), 10 ** rng.uniform(-2, 2, 2)
        budget = 10 ** rng.uniform(-2, 2)
        share = np.linspace(0, 1, 20001)
        values = sum(utility(importance[k], change_rate[k], budget * (share if k == 0 else 1 - share), objective) for k in range(2))
        assert solve_periodic(importance, change_rate, budget, objective).objective >= values.max() * (1 - 1e-12)


def test_crawlfrontiers_two_pages():
    """w = 1, 5 and lambda = 5, 1: the first page is not refreshed at a low budget, and more often than the other at a high one."""
    low = solve_periodic([1.0, 5.0], [5.0, 1.0], 0.5, "changes").rates
    high = solve_periodic([1.0, 5.0], [5.0, 1.0], 9.0, "changes").rates
    assert low[0] == 0 < low[1]
    assert high[0] > high[1] > 0


def test_multiplier_is_the_slope_of_the_objective():
    rng = np.random.default_rng(3)
    importance, change_rate = rng.random(50), rng.random(50)
    for budget in (0.5, 5.0, 50.0):
        h = 1e-5 * budget
        above, below = (solve_periodic(importance, change_rate, b).objective for b in (budget + h, budget - h))
        assert (above - below) / (2 * h) == pytest.approx(solve_periodic(importance, change_rate, budget).multiplier, rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_order_of_pages_does_not_matter(objective):
    rng = np.random.default_rng(4)
    importance, change_rate = random_problem(rng, 500)
    order = rng.permutation(500)
    budget = float(change_rate.sum())
    straight = solve_periodic(importance, change_rate, budget, objective).rates
    shuffled = solve_periodic(importance[order], change_rate[order], budget, objective).rates
    np.testing.assert_allclose(shuffled, straight[order], rtol=1e-6, atol=1e-12 * budget)


@given(st.floats(-90, 90), st.floats(-90, 90))
@settings(max_examples=40, deadline=None)
def test_units_do_not_matter(weight_exponent, time_exponent):
    """Scaling the importance changes nothing; scaling time scales the rates; over 180 decades."""
    rng = np.random.default_rng(8)
    importance, change_rate = rng.lognormal(0, 1, 40), rng.lognormal(0, 1, 40)
    base = solve_periodic(importance, change_rate, 10.0)
    scale, speed = 10.0**weight_exponent, 10.0**time_exponent
    scaled = solve_periodic(importance * scale, change_rate * speed, 10.0 * speed)
    np.testing.assert_allclose(scaled.rates, base.rates * speed, rtol=1e-6)
    assert scaled.objective == pytest.approx(base.objective * scale, rel=1e-9)


def test_large_problem_goes_through_the_bins_and_blocks():
    """Above 20,000 pages the first guess comes from bins (without bounds) or a sample (with): the result is as exact."""
    rng = np.random.default_rng(9)
    n = 50_001
    importance, change_rate = rng.pareto(1.2, n) + 0.1, rng.lognormal(0, 1.5, n)
    for objective in OBJECTIVES:
        solution = solve_periodic(importance, change_rate, 0.1 * n, objective)
        assert solution.kkt_residual < 1e-6
        assert solution.rates.sum() == pytest.approx(0.1 * n, rel=1e-9)
        assert_optimal(importance, change_rate, 0.1 * n, objective, solution)
        bounds = {"min_rate": 1e-3 * rng.random(n), "max_rate": 1e-3 + rng.random(n)}
        solution = solve_periodic(importance, change_rate, 0.1 * n, objective, **bounds)
        assert solution.rates.sum() == pytest.approx(0.1 * n, rel=1e-9)
        assert_optimal(importance, change_rate, 0.1 * n, objective, solution, low=bounds["min_rate"], high=bounds["max_rate"])


def test_large_problem_of_equal_pages():
    solution = solve_periodic(np.ones(30_000), np.ones(30_000), 3_000.0)
    np.testing.assert_allclose(solution.rates, 0.1, rtol=1e-9)


@each("seed", range(60))
def test_bounds_and_costs(seed):
    """Minimum, maximum and pinned rates with costs: feasible, within 1e-9 of the duality bound."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 3, 30, 300, 2000]))
    importance, change_rate = random_problem(rng, n, 6.0)
    objective = OBJECTIVES[seed % 2]
    cost = 10.0 ** rng.uniform(-2, 2, n) if seed % 3 else np.ones(n)
    budget = float(change_rate @ cost) * 10.0 ** rng.uniform(-2, 1)
    low = rng.random(n) * budget / cost / n * 0.5
    high = low + rng.random(n) * budget / cost * 3 / n
    pinned = rng.random(n) < 0.1
    high[pinned] = low[pinned]
    solution = solve_periodic(importance, change_rate, budget, objective, min_rate=low, max_rate=high, cost=cost)
    assert (solution.rates >= low).all()
    assert (solution.rates <= high).all()
    assert solution.rates @ cost + solution.unused == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    if solution.unused == 0:
        assert_optimal(importance, change_rate, budget, objective, solution, low=low, high=high, cost=cost)


def test_scalar_bounds_and_cost_mean_the_same_for_every_page():
    rng = np.random.default_rng(2)
    importance, change_rate = rng.random(20), rng.random(20)
    scalar = solve_periodic(importance, change_rate, 12.0, min_rate=0.1, max_rate=0.5, cost=2.0)
    each = np.ones(20)
    full = solve_periodic(importance, change_rate, 12.0, min_rate=0.1 * each, max_rate=0.5 * each, cost=2.0 * each)
    np.testing.assert_allclose(scalar.rates, full.rates, rtol=1e-8)
    assert scalar.multiplier == pytest.approx(full.multiplier, rel=1e-8)


def test_pinned_pages_keep_their_rate():
    solution = solve_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], 3.0, min_rate=[0.5, 0, 0], max_rate=[0.5, np.inf, np.inf])
    np.testing.assert_allclose(solution.rates, [0.5, 1.25, 1.25], rtol=1e-9)


def test_pages_that_never_change_or_do_not_matter_get_their_minimum():
    solution = solve_periodic([1.0, 0.0, 2.0], [0.0, 1.0, 1.0], 3.0, min_rate=[0.1, 0.2, 0.0])
    np.testing.assert_allclose(solution.rates, [0.1, 0.2, 2.7], rtol=1e-9)
    assert solution.objective == pytest.approx(1.0 + freshness_periodic([2.0], [1.0], [2.7]))
    assert solve_periodic([1.0, 2.0], [0.0, 0.0], 1.0).unused == 1.0


def test_budget_that_the_maxima_cannot_use_is_reported():
    solution = solve_periodic([1.0, 1.0], [1.0, 2.0], 10.0, max_rate=[1.0, 2.0])
    np.testing.assert_array_equal(solution.rates, [1.0, 2.0])
    assert solution.unused == pytest.approx(7.0)
    assert solution.multiplier == 0.0


def test_minima_that_do_not_fit_say_by_how_much():
    with pytest.raises(InfeasibleBudgetError, match=r"need 3 of a bandwidth of 2: 1 too much"):
        solve_periodic([1.0, 1.0], [1.0, 2.0], 2.0, min_rate=[1.0, 2.0])
    exact = solve_periodic([1.0, 1.0], [1.0, 2.0], 3.0, min_rate=[1.0, 2.0])
    np.testing.assert_array_equal(exact.rates, [1.0, 2.0])


def test_zero_budget_and_no_pages():
    solution = solve_periodic([1.0, 4.0], [1.0, 2.0], 0.0)
    np.testing.assert_array_equal(solution.rates, [0.0, 0.0])
    assert solution.multiplier == 2.0
    empty = solve_periodic([], [], 3.0)
    assert empty.rates.shape == (0,)
    assert empty.unused == 3.0


def test_tiny_budget_among_ties_and_fast_pages():
    """A budget so small that the price is the top value to the last bit still adds up."""
    solution = solve_periodic(np.full(5, 1e6), np.full(5, 1e6), 1e-6)
    assert solution.rates.sum() == pytest.approx(1e-6, rel=1e-9)
    assert solution.objective == pytest.approx(1e-6, rel=1e-9)
    solution = solve_periodic([1.0, 3.0, 2.0], [1.0, 1.0, 1.0], 1e-9)
    np.testing.assert_allclose(solution.rates, [0, 1e-9, 0], rtol=1e-9)


def test_inputs_may_be_lists_integers_strided_or_read_only():
    rng = np.random.default_rng(1)
    importance, change_rate = rng.random(20), rng.random(20)
    expected = solve_periodic(importance, change_rate, 5.0).rates
    wide = np.zeros((20, 3))
    wide[:, 1] = importance
    frozen = change_rate.copy()
    frozen.flags.writeable = False
    np.testing.assert_allclose(solve_periodic(wide[:, 1], frozen, 5).rates, expected, rtol=1e-12)
    np.testing.assert_allclose(solve_periodic(importance[::-1], change_rate[::-1], 5.0).rates[::-1], expected, rtol=1e-9)
    np.testing.assert_allclose(solve_periodic(importance.tolist(), change_rate.tolist(), 5).rates, expected, rtol=1e-12)
    assert solve_periodic([1, 2], [1, 1], 1).rates.dtype == np.float64
    assert solve_periodic(importance.astype(np.float32), change_rate, 5.0).kkt_residual < 1e-6


BAD = [
    (([1.0, np.nan], [1.0, 1.0], 1.0), {}, r"importance\[1\]"),
    (([1.0, 1.0], [-1.0, 1.0], 1.0), {}, r"change_rate\[0\]"),
    (([1.0, 1.0], [1.0, np.inf], 1.0), {}, r"change_rate\[1\]"),
    (([1.0, 1.0], [1.0], 1.0), {}, r"change_rate has 1 entries for 2 pages; index 1"),
    ((["a", "b"], [1.0, 1.0], 1.0), {}, "importance"),
    (([1.0, None], [1.0, 1.0], 1.0), {}, r"importance\[1\]"),
    (([[1.0, 1.0]], [1.0, 1.0], 1.0), {}, "importance.*shape"),
    (([1.0, 1.0], [1.0, 1.0], -1.0), {}, "bandwidth"),
    (([1.0, 1.0], [1.0, 1.0], np.nan), {}, "bandwidth"),
    (([1.0, 1.0], [1.0, 1.0], np.inf), {}, "bandwidth"),
    (([1.0, 1.0], [1.0, 1.0], "many"), {}, "bandwidth"),
    (([1.0, 1.0], [1.0, 1.0], 1.0, "speed"), {}, "objective"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"cost": [1.0, 0.0]}, r"cost\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"min_rate": [0.0, np.nan]}, r"min_rate\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"min_rate": 0.3, "max_rate": [0.4, 0.2]}, r"min_rate\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"host_max_rate": 1.0}, "host"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"host": [0, -1], "host_max_rate": 1.0}, r"host\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"host": [0, 0.5], "host_max_rate": 1.0}, r"host\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"host": [0, 2], "host_max_rate": [1.0, 1.0]}, r"host\[1\]"),
    (([1.0, 1.0], [1.0, 1.0], 1.0), {"host": [0, 1], "host_max_rate": [1.0, np.nan]}, r"host_max_rate\[1\]"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), BAD)
def test_bad_input_names_argument_and_index(args, kwargs, message):
    with pytest.raises(InvalidProblemError, match=message):
        solve_periodic(*args, **kwargs)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rates_at_a_multiplier_are_those_of_the_plan(objective):
    """A page asked about alone, at the plan's price, gets what the plan would have given it."""
    rng = np.random.default_rng(6)
    importance, change_rate = rng.lognormal(0, 2, 300), rng.lognormal(0, 2, 300)
    plan = solve_periodic(importance, change_rate, 30.0, objective, min_rate=1e-3, max_rate=2.0)
    again = periodic_rates_at(importance, change_rate, plan.multiplier, objective, min_rate=1e-3, max_rate=2.0)
    np.testing.assert_allclose(again, plan.rates, rtol=1e-5)
    alone = periodic_rates_at(importance[7], change_rate[7], plan.multiplier, objective, min_rate=1e-3, max_rate=2.0)
    np.testing.assert_allclose(alone, plan.rates[7:8], rtol=1e-5)


def test_rates_at_the_ends_of_the_price_scale():
    np.testing.assert_array_equal(periodic_rates_at([1.0, 0.0], [1.0, 1.0], 0.0, max_rate=3.0), [3.0, 0.0])
    np.testing.assert_array_equal(periodic_rates_at([1.0, 0.0], [1.0, 1.0], np.inf, min_rate=0.5), [0.5, 0.5])
    with pytest.raises(InvalidProblemError, match="multiplier"):
        periodic_rates_at([1.0], [1.0], 0.0)
