"""Sweeps over blocks of many pages: what threads may not change, and the answers of the solvers that use them."""

import threading

import numpy as np
import pytest
from certificates import dual_bound

from optimal_frontier.optimization import freshness_poisson, solve_periodic, solve_poisson, sweeps
from optimal_frontier.optimization.poisson_sweeps import solve_in_sweeps
from optimal_frontier.optimization.sweeps import ahead, blockwise, inner

N = 60_000


def world(name, n=N):
    rng = np.random.default_rng(n)
    if name == "uniform":
        return 1 - rng.random(n), 1 - rng.random(n), 0.2 * n
    if name == "heavy tails":
        return rng.pareto(1.2, n) + 0.1, rng.lognormal(np.log(0.1), 1.5, n), 0.1 * n
    if name == "zipf":
        return rng.zipf(2, n).clip(1, 10_000).astype(float), 1 - rng.random(n), 0.2 * n
    if name == "ties":
        return rng.choice([1.0, 2.0, 5.0], n), rng.choice([0.1, 0.3, 1.0], n), 0.2 * n
    if name == "zeros":
        importance, change_rate = rng.random(n), rng.random(n)
        importance[rng.random(n) < 0.2] = 0.0
        change_rate[rng.random(n) < 0.2] = 0.0
        return importance, change_rate, 0.1 * n
    if name == "rich":
        return 1 - rng.random(n), 1 - rng.random(n), 1000.0 * n
    if name == "poor":
        return 1 - rng.random(n), 1 - rng.random(n), 1e-5 * n
    assert name == "decades"
    return 10 ** rng.uniform(-6, 6, n), 10 ** rng.uniform(-6, 6, n), 0.2 * n


WORLDS = ["uniform", "heavy tails", "zipf", "ties", "zeros", "rich", "poor", "decades"]


@pytest.fixture
def many_threads(monkeypatch):
    monkeypatch.setattr(sweeps, "_ALONE", 0)
    monkeypatch.setattr(sweeps, "cores", lambda: 4)


def test_results_come_in_the_order_of_the_pages_and_every_block_once(many_threads):
    def work(blocks):
        yield from blocks

    found = blockwise(100_001, work, 1000)
    assert [block.start for block in found] == list(range(0, 100_001, 1000))
    assert found[-1].stop == 100_001
    assert blockwise(0, work) == []


def test_an_error_in_any_thread_comes_out(many_threads):
    def work(blocks):
        for block in blocks:
            if block.start == 5000:
                raise ZeroDivisionError
            yield block

    with pytest.raises(ZeroDivisionError):
        blockwise(10_000, work, 1000)


def test_threads_keep_numpys_error_state(many_threads):
    def work(blocks):
        for block in blocks:
            yield np.divide(np.ones(3), np.zeros(3)).sum() + block.start

    with np.errstate(divide="ignore"):
        blockwise(10_000, work, 1000)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        blockwise(10_000, work, 1000)


def test_inner_product_of_long_blocks():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 30_000))
    assert inner(a, b) == pytest.approx(float(np.sum(a * b)), rel=1e-13)


@pytest.mark.parametrize("solve", [solve_poisson, solve_periodic])
def test_threads_do_not_change_a_bit(monkeypatch, solve):
    """Sums are made block by block in the order of the pages, whichever thread did them."""
    importance, change_rate, budget = world("uniform")
    alone = solve(importance, change_rate, budget)
    monkeypatch.setattr(sweeps, "_ALONE", 0)
    monkeypatch.setattr(sweeps, "cores", lambda: 3)
    together = solve(importance, change_rate, budget)
    np.testing.assert_array_equal(alone.rates, together.rates)
    assert alone.multiplier == together.multiplier
    assert alone.objective == together.objective


@pytest.mark.parametrize("name", WORLDS)
def test_algorithm_2_in_sweeps_equals_the_printed_one(name):
    importance, change_rate, budget = world(name)
    fast, printed = (solve_poisson(importance, change_rate, budget, method=method) for method in ("sort-free", "sort"))
    np.testing.assert_allclose(fast.rates, printed.rates, rtol=1e-6, atol=1e-8 * budget / N)
    assert fast.objective == pytest.approx(printed.objective, rel=1e-12)
    assert fast.objective == pytest.approx(freshness_poisson(importance, change_rate, fast.rates), rel=1e-12)
    assert fast.multiplier == pytest.approx(printed.multiplier, rel=1e-7)
    assert fast.rates.sum() == pytest.approx(budget, rel=1e-12)
    assert fast.kkt_residual < 1e-6
    with np.errstate(divide="ignore", invalid="ignore"):
        marginal = importance * change_rate / (fast.rates + change_rate) ** 2
    visited = fast.rates > 1e-12 * budget
    assert np.abs(marginal[visited] / fast.multiplier - 1).max() < 1e-6
    assert np.nanmax(marginal[~visited], initial=0.0) <= fast.multiplier * (1 + 1e-6)


def test_sweeps_leave_what_they_cannot_do_to_the_careful_method():
    importance, change_rate, _ = world("uniform")
    with np.errstate(all="ignore"):
        assert solve_in_sweeps(importance, change_rate, 1e-9) is None  # rates would be differences of nearly equal numbers
        assert solve_in_sweeps(importance * 1e-300, change_rate * 1e-20, 1e-20) is None  # products below the smallest double
        assert solve_in_sweeps(importance * 1e300, change_rate * 1e20, 1e24) is None  # or above the largest
        assert solve_in_sweeps(np.zeros(N), change_rate, 1.0) is None
        for bad in (np.nan, -1.0, np.inf):
            spoiled = importance.copy()
            spoiled[12_345] = bad
            assert solve_in_sweeps(spoiled, change_rate, 0.2 * N) is None
            assert solve_in_sweeps(importance, spoiled, 0.2 * N) is None
    for scale in (1e-200, 1e200):
        solution = solve_poisson(importance * scale, change_rate * scale, 0.2 * N * scale)
        np.testing.assert_allclose(solution.rates, solve_poisson(importance, change_rate, 0.2 * N).rates * scale, rtol=1e-6)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("bounds", ["free", "scalar bounds", "array bounds", "cost"])
def test_many_evenly_spaced_pages_reach_the_dual_bound(name, objective, bounds):
    importance, change_rate, budget = world(name)
    rng = np.random.default_rng(1)
    kwargs = {}
    if bounds == "scalar bounds":
        kwargs = {"min_rate": 0.01 * budget / N, "max_rate": 5 * budget / N}
    elif bounds == "array bounds":
        low = 0.1 * budget / N * rng.random(N)
        kwargs = {"min_rate": low, "max_rate": low + 5 * budget / N * rng.random(N)}
        kwargs["max_rate"][::7] = low[::7]
    elif bounds == "cost":
        kwargs = {"cost": 0.1 + rng.random(N)}
    solution = solve_periodic(importance, change_rate, budget, objective, **kwargs)
    cost = kwargs.get("cost", 1.0)
    assert (solution.rates * cost).sum() + solution.unused == pytest.approx(budget, rel=1e-9)
    assert solution.kkt_residual < 1e-6
    if solution.unused == 0:
        bound = dual_bound(
            importance, change_rate, budget, objective, solution.multiplier,
            low=kwargs.get("min_rate", 0.0), high=kwargs.get("max_rate", np.inf), cost=cost,
        )  # fmt: skip
        assert solution.objective == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("factor", [1.0, 1.001, 0.5, 30.0, 1e-6, 1e6])
def test_a_start_changes_nothing_but_the_time(factor):
    importance, change_rate, budget = world("heavy tails")
    cold = solve_periodic(importance, change_rate, budget, min_rate=1e-4, max_rate=1.0)
    warm = solve_periodic(importance, change_rate, budget, min_rate=1e-4, max_rate=1.0, start=cold.multiplier * factor)
    np.testing.assert_allclose(warm.rates, cold.rates, rtol=1e-5, atol=1e-6 * budget / N)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)


def test_one_page_that_changes_very_often_and_is_worth_just_the_price():
    """Spending jumps over the budget between two neighbouring prices, far from the end of the scale."""
    importance, change_rate, budget = world("uniform")
    price = solve_periodic(importance, change_rate, budget).multiplier
    importance, change_rate = np.append(importance, price * 1e9), np.append(change_rate, 1e9)
    solution = solve_periodic(importance, change_rate, budget + 10.0)
    assert solution.rates.sum() == pytest.approx(budget + 10, rel=1e-9)
    assert solution.multiplier == pytest.approx(price, rel=1e-3)
    assert solution.kkt_residual < 1e-6
    bound = dual_bound(importance, change_rate, budget + 10.0, "freshness", solution.multiplier)
    assert solution.objective == pytest.approx(bound, rel=1e-9)


def test_the_next_item_is_made_while_one_is_taken_in():
    """In their order, and what the iterator raises comes after all that it has yielded."""
    begun = [threading.Event() for _ in range(4)]

    def items():
        for number, event in enumerate(begun):
            event.set()
            yield number
        raise ValueError("no more")

    found = []

    def take() -> None:
        for number in ahead(items()):
            assert all(event.wait(10) for event in begun[: number + 2])
            found.append(number)

    with pytest.raises(ValueError, match="no more"):
        take()
    assert found == [0, 1, 2, 3]


def test_leaving_early_leaves_no_thread():
    items = ahead(iter(range(100)))
    assert next(items) == 0
    items.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("optimal_frontier-ahead")]
