"""Host limits inside the optimum, alone and with everything else."""

import numpy as np
import pytest
from certificates import dual_bound, random_problem
from scipy.optimize import minimize

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization import freshness_periodic, solve_periodic


@pytest.mark.parametrize("seed", range(80))
def test_all_constraints_at_once(seed):
    """Bounds, costs and host limits together: feasible, and within 1e-7 of the duality bound."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 5, 30, 300, 1000]))
    hosts = int(rng.integers(1, n + 1))
    host = rng.integers(0, hosts, n)
    importance, change_rate = random_problem(rng, n, float(rng.choice([2.0, 8.0])))
    objective = ("freshness", "changes")[seed % 2]
    cost = 10.0 ** rng.uniform(-1, 1, n) if seed % 4 > 1 else np.ones(n)
    budget = float(change_rate @ cost) * 10.0 ** rng.uniform(-2, 1)
    low = rng.random(n) * budget / cost / n * 0.3 if seed % 3 else np.zeros(n)
    high = low + rng.random(n) * budget / cost * 5 / n if seed % 3 else np.full(n, np.inf)
    limits = np.bincount(host, weights=low, minlength=hosts) + rng.random(hosts) * budget / cost.mean() / hosts * 3
    kwargs = {"min_rate": low, "max_rate": high, "host": host, "host_max_rate": limits} | ({"cost": cost} if seed % 4 > 1 else {})
    solution = solve_periodic(importance, change_rate, budget, objective, **kwargs)
    assert (solution.rates >= low).all()
    assert (solution.rates <= high).all()
    assert (np.bincount(host, weights=solution.rates, minlength=hosts) <= limits * (1 + 1e-9)).all()
    assert solution.rates @ cost + solution.unused == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    bound = dual_bound(
        importance, change_rate, budget, objective, solution.multiplier, low=low, high=high, cost=cost, host=host, limits=limits,
        rates=solution.rates,
    )  # fmt: skip
    assert solution.objective >= bound * (1 - 1e-7)


def test_no_worse_than_slsqp():
    rng = np.random.default_rng(0)
    n, host = 8, np.array([0, 0, 0, 1, 1, 1, 2, 2])
    importance, change_rate, cost = rng.random(n) + 0.1, rng.random(n) + 0.1, rng.random(n) + 0.5
    limits, budget = np.array([0.3, 0.5, 5.0]), 3.0
    rules = [{"type": "eq", "fun": lambda f: f @ cost - budget}]
    rules += [{"type": "ineq", "fun": lambda f, h=h: limits[h] - f[host == h].sum()} for h in range(3)]
    found = minimize(
        lambda f: -freshness_periodic(importance, change_rate, np.maximum(f, 0)), np.full(n, 0.1), method="SLSQP",
        bounds=[(1e-6, 2.0)] * n, constraints=rules, options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    solution = solve_periodic(importance, change_rate, budget, max_rate=2.0, cost=cost, host=host, host_max_rate=limits)
    assert solution.objective >= -found.fun * (1 - 1e-8)
    assert solution.objective == pytest.approx(-found.fun, rel=1e-5)


def test_unused_share_of_a_capped_host_goes_to_the_others():
    free = solve_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], 3.0)
    capped = solve_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], 3.0, host=[0, 1, 1], host_max_rate=[0.4, np.inf])
    np.testing.assert_allclose(free.rates, 1.0)
    np.testing.assert_allclose(capped.rates, [0.4, 1.3, 1.3], rtol=1e-9)
    assert capped.kkt_residual < 1e-9


def test_fast_page_behind_a_slow_host():
    """A page that changes a thousand times between the visits its host allows: its price is its value to the last bit."""
    solution = solve_periodic([1.0, 1.0], [1000.0, 1e-3], 5.0, host=[0, 1], host_max_rate=[0.1, 2.0])
    np.testing.assert_allclose(solution.rates, [0.1, 2.0], rtol=1e-9)
    assert solution.unused == pytest.approx(2.9)
    mixed = solve_periodic([1000.0, 1.0], [1000.0, 0.01], 5.0, host=[0, 0], host_max_rate=0.2)
    assert mixed.rates.sum() == pytest.approx(0.2, rel=1e-9)


def test_limits_nobody_reaches_change_nothing():
    rng = np.random.default_rng(1)
    importance, change_rate, host = rng.random(100), rng.random(100), rng.integers(0, 10, 100)
    plain = solve_periodic(importance, change_rate, 10.0)
    limited = solve_periodic(importance, change_rate, 10.0, host=host, host_max_rate=100.0)
    np.testing.assert_allclose(limited.rates, plain.rates, rtol=1e-3)
    assert limited.objective == pytest.approx(plain.objective, rel=1e-12)


def test_host_ids_may_be_hashes():
    ids = np.array([2**40, 2**40, 7])
    solution = solve_periodic([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], 3.0, host=ids, host_max_rate=1.0)
    np.testing.assert_allclose(solution.rates, [0.5, 0.5, 1.0], rtol=1e-9)
    assert solution.unused == pytest.approx(1.0)


def test_minima_above_a_host_limit_name_the_host():
    with pytest.raises(InfeasibleBudgetError, match=r"host_max_rate\[1\].*0\.5 too much"):
        solve_periodic([1.0, 1.0], [1.0, 1.0], 5.0, min_rate=[0.0, 1.0], host=[0, 1], host_max_rate=0.5)


def test_many_pages_and_hosts():
    """Through several blocks: 60,000 pages on 6,000 hosts with bounds."""
    rng = np.random.default_rng(2)
    n, hosts = 60_000, 6_000
    importance, change_rate, host = rng.pareto(1.2, n) + 0.1, rng.lognormal(0, 1.5, n), rng.integers(0, hosts, n)
    limits = rng.lognormal(0, 1, hosts)
    solution = solve_periodic(importance, change_rate, 0.1 * n, max_rate=2.0, host=host, host_max_rate=limits)
    assert (np.bincount(host, weights=solution.rates, minlength=hosts) <= limits * (1 + 1e-9)).all()
    assert solution.rates.sum() == pytest.approx(0.1 * n, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    bound = dual_bound(
        importance, change_rate, 0.1 * n, "freshness", solution.multiplier, high=2.0, host=host, limits=limits, rates=solution.rates
    )
    assert solution.objective >= bound * (1 - 1e-7)
