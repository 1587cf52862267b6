"""The price of a budget where some pages yield new ones."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.optimization.discovering import (
    Discovering,
    Limits,
    PricedResponse,
    discovery_values,
    prices_of_full_hosts,
    solve_discovering,
)
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded
from optimal_frontier.optimization.response import marginal_share

KINDS = [("freshness", "periodic"), ("changes", "periodic"), ("freshness", "poisson")]
HOSTS = 8


def pages(n: int, hubs: int, kind: tuple[str, str], seed: int = 3) -> tuple[Discovering, np.ndarray]:
    rng = np.random.default_rng(seed)
    discovery = np.zeros(n)
    discovery[rng.choice(n, hubs, replace=False)] = rng.lognormal(0, 2, hubs)
    return Discovering(rng.pareto(1.5, n) + 0.1, rng.lognormal(-2, 1.5, n), discovery, *kind), rng.integers(0, HOSTS, n)


def objective(world: Discovering, rates: np.ndarray) -> float:
    """What rates are worth: freshness or changes, less what waits to be found."""
    x, f = world.change_rate, rates
    if world.policy == "poisson":
        own, waits = world.importance * f / (f + x), world.discovery / f
    else:
        seen = f * -np.expm1(-x / f)
        own, waits = world.importance * (seen / x if world.objective == "freshness" else seen), world.discovery / (2 * f)
    return float(own.sum() - waits.sum())


def marginals(world: Discovering, rates: np.ndarray) -> np.ndarray:
    x = world.change_rate
    if world.policy == "poisson":
        own = world.importance * x / (x + rates) ** 2
    else:
        own = (world.importance / x if world.objective == "freshness" else world.importance) * marginal_share(x / rates)
    return own + discovery_values(world, rates)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_without_such_pages_it_is_the_optimum_of_the_other_solvers(kind, limited):
    world, host = pages(300, 0, kind)
    low, high, budget = np.full(300, 1e-3), np.full(300, 4.0), 30.0
    most = np.full(HOSTS, 1.02 * budget / HOSTS) if limited else None
    found = solve_discovering(world, Limits(low, high, host, most), budget)
    if kind[1] == "poisson":
        best = solve_poisson_bounded(world.importance, world.change_rate, budget, low, high, host if limited else None, most)
    else:
        best = solve_periodic(
            world.importance,
            world.change_rate,
            budget,
            kind[0],
            min_rate=low,
            max_rate=high,
            host=host if limited else None,
            host_max_rate=most,
        )
    assert found.rates == pytest.approx(best.rates, rel=1e-5, abs=1e-7)
    assert found.multiplier == pytest.approx(best.multiplier, rel=1e-6)
    assert found.unused == pytest.approx(best.unused, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_all_pages_between_their_bounds_are_worth_the_price(kind):
    """And the budget is spent to the last."""
    world, _ = pages(400, 30, kind)
    low, high = np.full(400, 1e-4), np.full(400, 5.0)
    found = solve_discovering(world, Limits(low, high), 25.0)
    assert found.rates.sum() == pytest.approx(25.0, rel=1e-12)
    free = (found.rates > low) & (found.rates < high)
    assert marginals(world, found.rates)[free] == pytest.approx(found.multiplier, rel=1e-6)
    assert found.rates[world.discovery > 0].min() > 1e-3
    again = solve_discovering(world, Limits(low, high), 25.0, start=found.multiplier)
    assert again.rates == pytest.approx(found.rates, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_near_it_is_better(kind):
    """Budget moved between any two pages costs."""
    world, _ = pages(12, 4, kind, seed=5)
    low, high = np.full(12, 1e-3), np.full(12, 3.0)
    rates = solve_discovering(world, Limits(low, high), 2.0).rates
    best = objective(world, rates)
    for giver in range(12):
        for taker in range(12):
            moved = rates.copy()
            by = min(1e-3, rates[giver] - low[giver], high[taker] - rates[taker])
            moved[giver] -= by
            moved[taker] += by
            assert objective(world, moved) <= best + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_hubs_of_a_host_at_its_limit_pay_the_price_of_the_host(kind):
    world, host = pages(400, 40, kind)
    low, high, budget = np.full(400, 1e-5), np.full(400, 5.0), 25.0
    most = np.full(HOSTS, np.inf)
    most[:3] = 0.35 * budget / HOSTS
    found = solve_discovering(world, Limits(low, high, host, most), budget)
    spent = np.bincount(host, weights=found.rates, minlength=HOSTS)
    assert found.rates.sum() == pytest.approx(budget, rel=1e-9)
    assert np.all(spent <= most * (1 + 1e-9))
    value = marginals(world, found.rates)
    free = (found.rates > low * 1.01) & (found.rates < high)
    for number in range(HOSTS):
        here = value[free & (host == number)]
        assert here == pytest.approx(here.mean(), rel=1e-4)
        is_full = spent[number] >= most[number] * (1 - 1e-9)
        assert here.mean() >= found.multiplier * (1 - 1e-6) if is_full else here.mean() == pytest.approx(found.multiplier, rel=1e-4)
    assert (spent >= most * (1 - 1e-9)).sum() >= 2


def test_what_maxima_leave_is_unused():
    world = Discovering(np.ones(5), np.ones(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0]), "freshness", "periodic")
    found = solve_discovering(world, Limits(np.zeros(5), np.ones(5)), 100.0)
    assert (found.rates.tolist(), found.multiplier, found.unused) == ([1.0] * 5, 0.0, 95.0)
    hosted = solve_discovering(world, Limits(np.zeros(5), np.ones(5), np.array([0, 0, 0, 0, 1]), np.array([2.0, 0.5])), 100.0)
    assert hosted.rates.tolist() == pytest.approx([0.5] * 5)
    assert hosted.unused == pytest.approx(97.5)


def test_pages_that_are_all_alike_share_what_is_left():
    """Their spending jumps at the price that is their value."""
    world = Discovering(np.ones(50), np.ones(50), np.append(np.zeros(49), 0.01), "freshness", "periodic")
    found = solve_discovering(world, Limits(np.zeros(50), np.full(50, np.inf)), 1.0)
    assert found.rates.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.ptp(found.rates[:49]) < 1e-12
    assert found.rates[49] > 0.2


def test_minima_that_take_all_leave_a_price():
    world, _ = pages(30, 5, KINDS[0])
    found = solve_discovering(world, Limits(np.full(30, 0.1), np.full(30, 1.0)), 3.0)
    assert found.rates.tolist() == [0.1] * 30
    assert found.multiplier == pytest.approx(marginals(world, found.rates).max())


@pytest.mark.parametrize("guess", [-100.0, 0.0, 40.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_price_of_a_full_host_is_that_at_which_its_pages_spend_the_limit(kind, guess):
    """From whichever side the search comes near it."""
    world, host = pages(4000, 20, kind)
    response = PricedResponse(world, Limits(np.full(4000, 1e-6), np.full(4000, 3.0)))
    most = np.linspace(5.0, 60.0, HOSTS)
    prices, rates = prices_of_full_hosts(response, host, most, np.ones(HOSTS, bool), guess)
    assert np.bincount(host, rates) == pytest.approx(most, rel=1e-9)
    assert np.bincount(host, response.at(prices[host])[0]) == pytest.approx(most, rel=3e-3)
