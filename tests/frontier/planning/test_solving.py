"""The arithmetic of one plan: a problem and a budget in, revisit rates and the price out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.solving import Problem, solve
from optimal_frontier.optimization import freshness_periodic, freshness_poisson, solve_periodic
from optimal_frontier.scheduling.exploration import EXPLORATIONS, choose

PROFILE = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def problem_of(importance: Any, change_rate: Any, **values: Any) -> Problem:
    """Pages without bounds and limits, unless told."""
    n = len(importance)
    free = Problem(
        np.asarray(importance, np.float64), np.asarray(change_rate, np.float64), np.zeros(n), np.full(n, np.inf), np.zeros(n), False,
        np.zeros(n, np.int64), None, "freshness", "periodic",
    )  # fmt: skip
    return replace(free, **values)


def world(n: int, seed: int = 3, **values: Any) -> Problem:
    """Pages as a crawl has them, a few of which seem never to change."""
    rng = np.random.default_rng(seed)
    change_rate = np.where(rng.random(n) < 0.05, 0.0, 10 ** rng.uniform(-6, 1, n))
    change_rate[0] = 0.1
    bounds = {"min_rate": np.full(n, 1e-9), "max_rate": np.full(n, 1.0)}
    return problem_of(10 ** rng.uniform(-2, 2, n), change_rate, **bounds | values)


def with_bounds(problem: Problem, pages: slice, rate: float) -> Problem:
    """The same with some pages pinned."""
    low, high = problem.min_rate.copy(), problem.max_rate.copy()
    low[pages] = high[pages] = rate
    return replace(problem, min_rate=low, max_rate=high)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_the_whole_budget_is_planned(objective, n):
    """Wherever the maxima leave room for it."""
    budget = 0.2 * n
    plan = solve(world(n, objective=objective), budget)
    assert plan.rates.sum() == pytest.approx(budget, rel=1e-9)
    assert plan.feasible
    assert plan.unused == pytest.approx(0.0, abs=1e-9 * budget)


def test_what_the_maxima_leave_is_reported():
    plan = solve(problem_of(np.ones(10), np.ones(10), max_rate=np.full(10, 2.0)), 100.0)
    assert plan.rates == pytest.approx(2.0)
    assert plan.unused == pytest.approx(100 - 20)


def test_no_pages_and_no_budget_are_no_plan():
    assert solve(problem_of([], []), 5.0).rates.shape == (0,)
    assert solve(world(3), 0.0).rates.tolist() == [0.0, 0.0, 0.0]


@PROFILE
@given(
    bounds=st.lists(st.tuples(st.floats(0, 50), st.floats(1e-6, 50), st.integers(0, 3)), min_size=1, max_size=30),
    budget=st.floats(1e-3, 100),
    limit=st.sampled_from([None, 0.01, 1.0, 20.0]),
)
def test_any_bounds_give_a_plan_within_budget_host_limits_and_maxima(bounds, budget, limit):
    """However they contradict each other; what had to give is said by ``feasible``."""
    low, high, host = (np.array(column) for column in zip(*bounds, strict=True))
    n = len(low)
    limits = None if limit is None else np.full(4, limit)
    problem = problem_of(np.ones(n), np.ones(n), min_rate=low, max_rate=high, host=host.astype(np.int64), limit=limits)
    plan = solve(problem, budget)
    slack = 1 + 1e-9
    assert plan.rates.sum() <= budget * slack
    assert (plan.rates <= high * slack).all()
    assert (plan.rates >= 0).all()
    if limit is not None:
        assert (np.bincount(host, weights=plan.rates) <= limit * slack).all()
    if plan.feasible:
        assert (plan.rates >= np.minimum(low, high) * (1 - 1e-8)).all()


def test_minima_that_just_fit_are_feasible():
    """To rounding: 97 pages pinned to the whole budget."""
    plan = solve(with_bounds(problem_of(np.ones(97), np.ones(97)), slice(None), 0.1), 9.7)
    assert plan.feasible
    assert plan.rates == pytest.approx(0.1)


def test_pinned_pages_get_their_rate_and_the_others_the_rest():
    plan = solve(with_bounds(world(500), slice(200), 0.2), 50.0)
    assert plan.rates[:200] == pytest.approx(0.2, rel=1e-9)
    assert plan.rates[200:].sum() == pytest.approx(50 - 40, rel=1e-9)


def test_scaled_pins_stay_pins():
    """Pins that ask for twice the budget get half of it each, none of them more; the stretch is 2."""
    plan = solve(with_bounds(world(10), slice(None), 1.0), 5.0)
    assert plan.rates == pytest.approx(0.5)
    assert plan.stretch == pytest.approx(2.0)
    assert not plan.feasible


def test_the_order_of_pages_does_not_matter():
    problem = world(300)
    order = np.random.default_rng(0).permutation(300)
    columns = {name: getattr(problem, name)[order] for name in ("importance", "change_rate", "min_rate", "max_rate", "asked", "host")}
    one, other = solve(problem, 9.0), solve(replace(problem, **columns), 9.0)
    assert other.rates == pytest.approx(one.rates[order], rel=1e-7, abs=1e-12)
    assert other.log_price == pytest.approx(one.log_price, abs=1e-7)


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_numbers_beyond_all_measure_do_not_stop_a_plan(policy):
    """One page that somebody gave an importance of 1e-200, or an interval of 1e250 s."""
    problem = world(50, policy=policy)
    importance, change_rate, low, high = problem.importance, problem.change_rate, problem.min_rate, problem.max_rate
    importance[0], importance[1], low[2], high[3], high[4] = 1e-200, 1e200, 1e-250, 1e250, np.inf
    change_rate[5], change_rate[6] = 1e-200, 1e200
    low[7] = high[7] = 1e-150
    plan = solve(problem, 20.0)
    assert np.isfinite(plan.rates).all()
    assert plan.rates.sum() == pytest.approx(20.0, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_memoryless_plans_keep_to_the_same_rules(n):
    """Budget, pins, host limits, and minima that do not fit."""
    budget, hosts = 0.1 * n, min(n, 7)
    pinned = with_bounds(world(n, policy="poisson", host=np.arange(n) % 7), slice(n // 5), 0.01)
    plan = solve(replace(pinned, limit=np.full(hosts, 0.5 * n)), budget)
    assert plan.rates.sum() == pytest.approx(budget, rel=1e-9)
    assert plan.rates[: n // 5] == pytest.approx(0.01)
    assert plan.feasible
    tight = solve(replace(pinned, limit=np.full(hosts, 0.001)), budget)
    assert (np.bincount(pinned.host, weights=tight.rates) <= 0.001 * (1 + 1e-9)).all()
    assert tight.unused == pytest.approx(budget - tight.rates.sum(), rel=1e-9)
    assert tight.feasible == (n // 5 == 0)
    crowded = solve(replace(pinned, min_rate=np.ones(n)), budget)
    assert not crowded.feasible
    assert crowded.rates.sum() == pytest.approx(budget)


def test_the_freshness_of_a_memoryless_plan_is_azars_but_for_pinned_pages():
    problem = with_bounds(world(100, policy="poisson"), slice(30), 0.05)
    plan = solve(problem, 9.0)
    even, free = slice(None, 30), slice(30, None)
    expected = freshness_periodic(problem.importance[even], problem.change_rate[even], plan.rates[even])
    expected += freshness_poisson(problem.importance[free], problem.change_rate[free], plan.rates[free])
    assert plan.freshness == pytest.approx(expected, rel=1e-12)
    assert plan.freshness < solve(replace(problem, policy="periodic"), 9.0).freshness


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_the_solver_gets_the_chosen_rates(exploration):
    """And the promised freshness is that of the rates that were used."""
    shape, time = np.array([1.0, 3.0, 40.0, 2.5]), np.array([10.0, 6.0, 80.0, 1e-3])
    weights, choice = np.array([1.0, 2.0, 3.0, 4.0]), choose(exploration, shape, time, 2.0, np.full(4, 0.5), rounds=5e5)
    plan = solve(problem_of(weights, choice.change_rate), 2.0)
    assert plan.freshness == pytest.approx(freshness_periodic(weights, choice.change_rate, plan.rates), rel=1e-12)
    exact = solve_periodic(weights, choice.change_rate, 2.0)
    assert plan.rates == pytest.approx(exact.rates, rel=1e-9, abs=1e-12)
    if exploration == "median":
        assert (choice.change_rate == posterior_median(shape, time)).all()


def test_what_exploration_asks_for_gives_way_to_bounds_and_limits():
    """Pins stay, the limit of a host and the budget hold, and none of it makes a plan infeasible."""
    rng = np.random.default_rng(2)
    n, budget = 60, 10.0
    shape, time, weights = rng.uniform(1, 9, n), 10 ** rng.uniform(0, 3, n), rng.uniform(0.1, 3, n)
    host = np.arange(n) % 3
    low, high = np.zeros(n), np.full(n, 5.0)
    low[:6] = high[:6] = 0.5
    high[6:12] = 1e-4
    for exploration in EXPLORATIONS:
        choice = choose(exploration, shape, time, budget, np.full(n, 0.1), rounds=1.5)
        is_even = bool((choice.least_rate >= choice.most_rate).all())
        bounds = {"min_rate": low, "max_rate": high, "asked": choice.least_rate, "is_even": is_even}
        plan = solve(problem_of(weights, choice.change_rate, host=host, limit=np.array([1.5, 20.0, 20.0]), **bounds), budget)
        assert plan.feasible
        assert plan.rates[:6] == pytest.approx(0.5)
        assert plan.rates[6:12].max() <= 1e-4 * (1 + 1e-9)
        assert plan.rates[host == 0].sum() <= 1.5 * (1 + 1e-9)
        assert plan.rates.sum() <= budget * (1 + 1e-9)
        if exploration != "explore-then-commit":
            assert plan.rates[12:].min() > 0


def test_pages_that_exploration_holds_are_counted():
    """A page that is not worth a visit stands at the rate that is asked for."""
    problem = problem_of(np.ones(4), [0.1, 0.5, 0.5, 2500.0])
    assert solve(problem, 2.0).held == 0
    held = solve(replace(problem, asked=np.full(4, 0.005)), 2.0)
    assert held.held == 1
    assert held.rates[3] == pytest.approx(0.005)
    assert held.feasible


@pytest.mark.parametrize("seed", range(8))
def test_hosts_at_their_limits_have_the_prices_at_which_memoryless_visits_spend_these(seed):
    """Of pages at their upper bounds some are there but for rounding: their worth, which may be any, is no price."""
    rng, n, hosts = np.random.default_rng(seed), 400, 6
    low = 10 ** rng.uniform(-6, -1, n)
    importance, change_rate = 10 ** rng.uniform(-2, 2, n), 10 ** rng.uniform(-6, 1, n)
    high, host = np.maximum(low, 10 ** rng.uniform(-4, 0, n)), rng.integers(0, hosts, n)
    limit = np.bincount(host, high, hosts) * rng.uniform(0.1, 0.6, hosts)
    problem = problem_of(importance, change_rate, min_rate=low, max_rate=high, host=host, limit=limit, policy="poisson")
    plan = solve(problem, 0.9 * limit.sum())
    price = np.exp(plan.log_price + plan.extra)[host]
    asked = np.bincount(host, np.clip(np.sqrt(importance * change_rate / price) - change_rate, low, high), hosts)
    full = plan.extra > 0
    assert full.any()
    least = np.bincount(host, low, hosts)
    assert asked[full] == pytest.approx(np.maximum(limit, least)[full], rel=1e-2)


@pytest.mark.parametrize("limit", [None, np.full(5, 3.0)])
@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_a_plan_is_made_though_the_fast_solver_gives_up(monkeypatch, limit, policy):
    problem = world(300, host=np.arange(300) % 5, limit=limit, policy=policy)
    plan = solve(problem, 12.0)

    def gives_up(*_: object, **__: object) -> None:
        raise ConvergenceError("the host prices did not settle")

    for name in ("solve_periodic", "solve_poisson_bounded"):
        monkeypatch.setattr(f"optimal_frontier.frontier.planning.solving.{name}", gives_up)
    other = solve(problem, 12.0)
    assert other.log_price == pytest.approx(plan.log_price, abs=1e-6)
    assert other.extra == pytest.approx(plan.extra, abs=1e-6)
    assert other.freshness == pytest.approx(plan.freshness, rel=1e-6)
