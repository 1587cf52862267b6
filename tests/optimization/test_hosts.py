"""Host limits inside the optimum, alone and with everything else."""

import numpy as np
import pytest
from certificates import dual_bound, random_problem, rate_at, utility, worth
from each_value import each
from scipy.optimize import minimize

from optimal_frontier.errors import InfeasibleBudgetError
from optimal_frontier.optimization import freshness_periodic, solve_periodic


@each("seed", range(80))
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
    np.testing.assert_allclose(capped.rates, [0.4, 1.3, 1.3], rtol=6e-8)
    assert capped.kkt_residual < 1e-7


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


def assert_optimal(importance, change_rate, budget, solution, host, limits, objective="freshness", low=0.0, high=np.inf):
    """Feasible, and within 1e-9 of a weak-duality bound; its host prices are read off the rates, those of hosts full of minima too."""
    n, rates = importance.size, solution.rates
    low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    value = worth(importance, change_rate, objective)
    visits = np.bincount(host, weights=rates, minlength=limits.size)
    assert (rates >= low).all()
    assert (rates <= high).all()
    assert (visits <= limits * (1 + 1e-9)).all()
    assert rates.sum() + solution.unused == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    with np.errstate(all="ignore"):
        r = np.where(rates > 0, change_rate / rates, np.inf)
        share = np.where(np.isfinite(r), np.where(r < 1e-4, r * r / 2 - r**3 / 3, -np.expm1(-r) - r * np.exp(-r)), 1.0)
    price, below = np.zeros(limits.size), rates < high
    np.maximum.at(price, host[below], (value * share - solution.multiplier)[below])
    price[visits < limits * (1 - 1e-6)] = 0.0
    bound = solution.multiplier * budget + price @ np.where(np.isfinite(limits), limits, 0.0)
    paid = solution.multiplier + price[host]
    with np.errstate(all="ignore"):
        best = np.where(paid > 0, rate_at(value, change_rate, paid, low, high), np.where(value > 0, high, low))
    bound += np.sum(utility(importance, change_rate, best, objective) - paid * best)
    assert solution.objective >= bound * (1 - 1e-9)


def instance(seed, sizes):
    """Weights and rates over up to 12 decades with ties and zeros; pinned pages, free hosts, hosts that have room for their minima only."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(sizes))
    hosts = int(rng.integers(1, n + 2))
    host = rng.integers(0, hosts, n)
    importance, change_rate = random_problem(rng, n, float(rng.choice([2.0, 8.0, 12.0])))
    budget = float(change_rate.sum()) * 10.0 ** rng.uniform(-2, 1)
    low = rng.random(n) * budget / n * 0.3 if seed % 3 else np.zeros(n)
    high = low + rng.random(n) * budget * 5 / n if seed % 3 else np.full(n, np.inf)
    if seed % 5 == 0:
        pinned = rng.random(n) < 0.2
        high[pinned] = low[pinned]
    minima = np.bincount(host, weights=low, minlength=hosts)
    limits = minima + rng.random(hosts) * budget / hosts * 3
    limits[rng.random(hosts) < 0.1] = np.inf
    full = rng.random(hosts) < 0.1
    limits[full] = minima[full]
    return importance, change_rate, budget, host, limits, ("freshness", "changes")[seed % 2], low, high


@each("seed", range(100))
def test_limits_without_costs_are_exact(seed):
    """The objective is within 1e-9 of a weak-duality bound, over up to 12 decades of weights and rates."""
    importance, change_rate, budget, host, limits, objective, low, high = instance(1000 + seed, [1, 2, 5, 30, 300, 2000])
    solution = solve_periodic(
        importance, change_rate, budget, objective, min_rate=low, max_rate=high, host=host, host_max_rate=limits
    )  # fmt: skip
    assert_optimal(importance, change_rate, budget, solution, host, limits, objective, low, high)


def test_values_that_tie_at_the_multiplier():
    """Spending leaps where all pages of one value wake up at once: their rates are mixed, and the sum is as exact as ever."""
    importance, change_rate, budget, host, limits, objective, low, high = instance(1328, [1, 2, 5, 30, 300, 2000])
    solution = solve_periodic(
        importance, change_rate, budget, objective, min_rate=low, max_rate=high, host=host, host_max_rate=limits
    )  # fmt: skip
    assert solution.rates.sum() == pytest.approx(budget, rel=1e-12)


def large_world(name, n=30_000, hosts=3_000):
    """A world of many pages in several blocks: pages, budget, limits and bounds."""
    rng = np.random.default_rng(3)
    importance, change_rate, host = 1 - rng.random(n), 1 - rng.random(n), rng.integers(0, hosts, n)
    limits, budget, bounds = n / hosts * (0.003 + 0.5 * rng.random(hosts)), 0.2 * n, {"low": 1e-3, "high": 1.0}
    if name == "few at their limits":
        limits[rng.random(hosts) < 0.97] = np.inf
    elif name == "none at its limit":
        limits[:] = np.inf
    elif name == "nearly all at their limits":
        limits, budget, bounds = 0.2 * limits + 0.03, 0.07 * n, {"low": 1e-4, "high": 1.0}
        limits[rng.random(hosts) < 0.02] = np.inf
    elif name == "more budget than limits allow":
        budget = 0.9 * n
    elif name == "one huge host":
        host[rng.random(n) < 0.3] = 7
        limits[7], bounds = 0.05 * n, {"low": 1e-4}
    elif name == "heavy tails":
        importance, change_rate = rng.pareto(1.2, n) + 0.01, rng.lognormal(0, 1.5, n)
        limits, bounds = n / hosts * rng.lognormal(0, 1, hosts), {"high": 2.0}
    elif name == "bounds for each page, pages in the order of their hosts":
        host, low = np.sort(host), 2e-3 * rng.random(n)
        limits, bounds = limits + 0.03, {"low": low, "high": low + rng.random(n)}
    elif name == "ten hosts":
        host, limits, bounds = rng.integers(0, 10, n), n / 10 * (0.05 + 0.3 * rng.random(10)), {}
    elif name == "hosts of very different worth":
        importance *= rng.lognormal(0, 3, hosts)[host]
        bounds = {}
    elif name == "fast pages":
        change_rate = rng.lognormal(3, 2, n)
        importance, budget, bounds = change_rate * rng.lognormal(0, 1, n), 0.05 * n, {}
    elif name == "ties":
        change_rate = np.round(change_rate * 4 + 1) / 5
        importance, bounds = change_rate * rng.integers(1, 4, n), {"high": 1.0}
    elif name == "closed, full and empty hosts":
        importance[::7] = change_rate[::11] = 0.0
        limits[:100], host[host < 20] = 0.0, 25
        limits[100:200] = 1e-3 * np.bincount(host, minlength=hosts)[100:200]
        bounds = {"low": np.where(host < 100, 0.0, 1e-3)}
    return importance, change_rate, budget, host, limits, bounds


@pytest.mark.parametrize(
    "name",
    ["even", "few at their limits", "none at its limit", "nearly all at their limits", "more budget than limits allow", "one huge host",
     "heavy tails", "bounds for each page, pages in the order of their hosts", "ten hosts", "hosts of very different worth", "fast pages",
     "ties", "closed, full and empty hosts"],
)  # fmt: skip
def test_large_worlds(name):
    importance, change_rate, budget, host, limits, bounds = large_world(name)
    rates = {"min_rate": bounds.get("low"), "max_rate": bounds.get("high")}
    solution = solve_periodic(importance, change_rate, budget, host=host, host_max_rate=limits, **rates)
    assert_optimal(importance, change_rate, budget, solution, host, limits, **bounds)
