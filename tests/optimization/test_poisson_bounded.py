"""Memoryless visits under bounds and host limits: against scipy's optimiser, a duality bound, and brute facts."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import random_problem
from scipy.optimize import brentq, minimize

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization import freshness_poisson, solve_poisson
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded


def bounded_problem(rng: np.random.Generator, n: int, decades: float, hosts: int):
    """Importance, change rates, budget, and keywords that can all bind."""
    importance, change_rate = random_problem(rng, n, decades)
    budget = float(change_rate.sum()) * 10.0 ** rng.uniform(-2, 1) or 1.0
    low = np.where(rng.random(n) < 0.5, rng.random(n) * budget / n * 0.3, 0.0)
    high = np.where(rng.random(n) < 0.7, low + rng.random(n) * budget * 5 / n, np.inf)
    pinned = rng.random(n) < 0.1
    high[pinned] = low[pinned]
    host = rng.integers(0, hosts, n)
    limits = np.bincount(host, weights=low, minlength=hosts) + rng.random(hosts) * budget / hosts * 3
    limits[rng.random(hosts) < 0.2] = np.inf
    return importance, change_rate, budget, {"min_rate": low, "max_rate": high, "host": host, "host_max_rate": limits}


def rate_at(importance, change_rate, price, low, high):
    """From the formula, page by page."""
    with np.errstate(all="ignore"):
        best = np.where((importance > 0) & (change_rate > 0), np.sqrt(importance * change_rate / price) - change_rate, 0.0)
    return np.clip(best, low, high)


def bound_by_duality(importance, change_rate, budget, multiplier, low, high, host, limits) -> float:
    """No plan is worth more, whatever the prices: each host's surcharge is searched for by brentq."""
    price = np.full(importance.size, multiplier)
    bound = multiplier * budget
    for number, limit in enumerate(limits):
        mine = host == number

        def excess(log_price, mine=mine, limit=limit):
            return rate_at(importance[mine], change_rate[mine], np.exp(log_price), low[mine], high[mine]).sum() - limit

        start = np.log(max(multiplier, 1e-300))
        if mine.any() and np.isfinite(limit) and excess(start) > 0:
            end = start + 1
            while excess(end) > 1e-12 * limit and end < 700:
                end += 5
            own = np.exp(brentq(excess, start, end, xtol=1e-13) if excess(end) < 0 else end)
            bound += (own - multiplier) * limit
            price[mine] = own
    best = rate_at(importance, change_rate, price, low, high)
    with np.errstate(all="ignore"):
        fresh = np.where(change_rate > 0, best / (best + change_rate), 1.0)
    return bound + float(np.sum(importance * fresh - price * best))


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_is_worth_more(seed):
    """Rates sum to the budget, keep bounds and limits, and reach the duality bound, over up to eight decades of weights and rates."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 5, 30, 300, 2000]))
    importance, change_rate, budget, keywords = bounded_problem(rng, n, float(rng.choice([2.0, 8.0])), int(rng.integers(1, min(n, 40) + 1)))
    low, high, host, limits = keywords.values()
    solution = solve_poisson_bounded(importance, change_rate, budget, **keywords)
    assert (solution.rates >= low).all()
    assert (solution.rates <= high).all()
    assert (np.bincount(host, weights=solution.rates, minlength=limits.size) <= limits * (1 + 1e-9)).all()
    assert solution.rates.sum() + solution.unused == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    assert solution.objective == pytest.approx(freshness_poisson(importance, change_rate, solution.rates), rel=1e-12)
    if solution.multiplier > 0:
        bound = bound_by_duality(importance, change_rate, budget, solution.multiplier, low, high, host, limits)
        assert solution.objective >= bound * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_worse_than_slsqp(seed):
    """An optimiser that knows nothing of prices."""
    rng = np.random.default_rng(seed)
    n, host = 8, np.array([0, 0, 0, 1, 1, 1, 2, 2])
    importance, change_rate = rng.random(n) + 0.1, rng.random(n) + 0.1
    limits, budget, low, high = rng.uniform(0.3, 2.0, 3), 1.8, np.where(rng.random(n) < 0.3, 0.05, 1e-9), rng.uniform(0.2, 3.0, n)
    limits[2] = 9.0
    rules = [{"type": "ineq", "fun": lambda f: budget - f.sum()}]
    rules += [{"type": "ineq", "fun": lambda f, h=h: limits[h] - f[host == h].sum()} for h in range(3)]
    found = minimize(
        lambda f: -freshness_poisson(importance, change_rate, np.maximum(f, 0)), np.full(n, 0.1), method="SLSQP",
        bounds=list(zip(low, high, strict=True)), constraints=rules, options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    solution = solve_poisson_bounded(importance, change_rate, budget, low, high, host, limits)
    assert solution.objective >= -found.fun * (1 - 1e-9)
    assert solution.objective == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_without_bounds_it_is_algorithm_2(seed):
    """Bounds that do not bind, and limits that no host reaches, change nothing."""
    rng = np.random.default_rng(seed)
    importance, change_rate = random_problem(rng, 500, 6.0)
    budget = float(change_rate.sum()) * 10.0 ** rng.uniform(-6, 1)
    printed = solve_poisson(importance, change_rate, budget, method="sort")
    loose = {"max_rate": 10 * budget, "host": rng.integers(0, 9, 500), "host_max_rate": np.full(9, 2 * budget)}
    for keywords in ({}, loose):
        solution = solve_poisson_bounded(importance, change_rate, budget, **keywords)
        np.testing.assert_allclose(solution.rates, printed.rates, rtol=1e-8, atol=1e-12 * budget)
        assert solution.multiplier == pytest.approx(printed.multiplier, rel=1e-9)
        assert solution.objective == pytest.approx(printed.objective, rel=1e-12)


def test_a_large_problem_starts_from_a_sample_and_ends_exactly():
    rng = np.random.default_rng(1)
    n, hosts = 150_000, 15_000
    importance, change_rate = rng.pareto(1.2, n) + 0.1, np.exp(rng.normal(-2, 1.5, n))
    host, limits = rng.integers(0, hosts, n), 10.0 ** rng.uniform(-1, 1, hosts)
    solution = solve_poisson_bounded(importance, change_rate, 0.1 * n, np.full(n, 1e-6), np.full(n, 1.0), host, limits)
    assert solution.rates.sum() == pytest.approx(0.1 * n, rel=1e-12)
    used = np.bincount(host, weights=solution.rates, minlength=hosts)
    assert (used <= limits * (1 + 1e-12)).all()
    assert 500 < (used >= limits * (1 - 1e-12)).sum() < hosts
    assert solution.kkt_residual < 1e-9


def test_the_unused_share_of_a_full_host_goes_to_the_others():
    solution = solve_poisson_bounded(np.ones(3), np.ones(3), 3.0, host=np.array([0, 1, 1]), host_max_rate=np.array([0.4, np.inf]))
    np.testing.assert_allclose(solution.rates, [0.4, 1.3, 1.3], rtol=1e-12)
    assert solution.multiplier == pytest.approx(1 / 2.3**2)


def test_what_maxima_and_limits_leave_is_reported():
    solution = solve_poisson_bounded(np.ones(4), np.ones(4), 5.0, None, 0.5, np.array([0, 0, 0, 1]), np.array([1.0, 9.0]))
    np.testing.assert_allclose(solution.rates, [1 / 3, 1 / 3, 1 / 3, 0.5], rtol=1e-12)
    assert solution.unused == pytest.approx(3.5)
    assert solution.multiplier == 0.0


@pytest.mark.parametrize(
    ("importance", "change_rate"), [([0.0, 0.0], [1.0, 2.0]), ([1.0, 2.0], [0.0, 0.0]), ([0.0, 1.0], [1.0, 0.0]), ([], [])]
)
def test_worlds_without_anything_worth_a_visit_get_their_minima(importance, change_rate):
    """And pages that never change count fully."""
    n = len(importance)
    solution = solve_poisson_bounded(np.array(importance), np.array(change_rate), 3.0, np.full(n, 0.5), np.full(n, 2.0))
    assert solution.rates.tolist() == [0.5] * n
    assert solution.unused == pytest.approx(3.0 - 0.5 * n)
    assert solution.objective == pytest.approx(freshness_poisson(importance, change_rate, solution.rates))


def test_minima_that_take_the_whole_budget_leave_the_price_of_the_best():
    solution = solve_poisson_bounded(np.array([1.0, 4.0]), np.ones(2), 1.0, 0.5, np.inf)
    assert solution.rates.tolist() == [0.5, 0.5]
    assert solution.multiplier == pytest.approx(4 / 1.5**2)


@pytest.mark.parametrize("budget", [0.0, 1e-300, 1e-12])
def test_tiny_budgets_go_to_the_most_valuable_page(budget):
    solution = solve_poisson_bounded(np.array([1.0, 4.0, 0.0]), np.array([1e9, 1e9, 1.0]), budget)
    np.testing.assert_allclose(solution.rates, [0.0, budget, 0.0], rtol=1e-9)
    assert solution.multiplier == pytest.approx(4e-9, rel=1e-6)


def test_minima_that_do_not_fit_are_refused_with_the_gap():
    with pytest.raises(InfeasibleBudgetError, match=r"need 4 of a bandwidth of 3: 1 too much"):
        solve_poisson_bounded(np.ones(2), np.ones(2), 3.0, 2.0)
    with pytest.raises(InfeasibleBudgetError, match=r"host_max_rate\[1\] is 1\.5.*need 2: 0\.5 too much"):
        solve_poisson_bounded(np.ones(2), np.ones(2), 9.0, 2.0, None, np.array([0, 1]), np.array([9.0, 1.5]))


def test_nothing_is_written_to_the_arguments():
    values = [np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.zeros(2), np.full(2, 0.7)]
    for array in values:
        array.flags.writeable = False
    importance, change_rate, low, high = values
    limits = np.array([0.9])
    limits.flags.writeable = False
    solution = solve_poisson_bounded(importance, change_rate, 5.0, low, high, np.zeros(2, np.int64), limits)
    assert solution.rates.sum() == pytest.approx(0.9)
    assert solution.rates.flags.writeable


def test_the_order_of_pages_does_not_matter():
    rng = np.random.default_rng(3)
    importance, change_rate, budget, keywords = bounded_problem(rng, 400, 4.0, 30)
    order = rng.permutation(400)
    one = solve_poisson_bounded(importance, change_rate, budget, **keywords)
    low, high, host, limits = keywords.values()
    other = solve_poisson_bounded(importance[order], change_rate[order], budget, low[order], high[order], host[order], limits)
    np.testing.assert_allclose(other.rates, one.rates[order], rtol=1e-9, atol=1e-12)
