"""One optimum over pages that change at any time and pages with update times: one price, and nothing better is found."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.frontier.planning.solving import Problem, solve
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.settings import Timetable

TWICE = Timetable(100.0, (25.0, 75.0), (0.5, 1.0))


def world(steady: int, timed: int, seed: int = 1, importance: float | None = None, objective: str = "freshness") -> Problem:
    """Pages at a steady rate, and after them pages with the timetable."""
    rng = np.random.default_rng(seed)
    n = steady + timed
    weight = rng.uniform(0.2, 3, n) if importance is None else np.full(n, importance)
    probabilities = rng.uniform(0, 1, (timed, 2))
    if importance is not None:
        probabilities[:] = (0.5, 1.0)
    rows, none = np.arange(steady, n), (np.zeros(n), np.full(n, np.inf))
    own = none[0][rows], none[1][rows]
    pages = TimedPages.of_timetable(TWICE, rows, probabilities, weight[rows], own, objective)
    change_rate = rng.uniform(2, 9, n) / rng.uniform(50, 2000, n)
    return Problem(weight, change_rate, *none, np.zeros(n), False, np.zeros(n, np.int64), None, objective, "periodic", pages)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("budget", [0.05, 0.3, 2.0, 8.0])
def test_all_pages_pay_one_price(budget, objective):
    """What is bought is worth the price, what is not is not, but for the visits at the price; the budget is spent."""
    problem = world(60, 40, objective=objective)
    plan = solve(problem, budget)
    rates, timed = plan.rates[60:], problem.timed
    wanted = [timed.rates(np.full(40, plan.multiplier * slack)) for slack in (1.3, 1 / 1.3)]
    assert (rates >= wanted[0] - 1e-12).all()
    assert (rates <= wanted[1] + 1e-12).all()
    assert plan.rates.sum() + plan.unused == pytest.approx(budget)
    assert plan.feasible


@pytest.mark.parametrize("seed", range(8))
def test_no_other_choice_of_times_is_better(seed):
    """All ways to buy for four pages, each with the best rates for the others."""
    problem = world(6, 4, seed)
    timed, found, best = problem.timed, solve(problem, 0.12), 0.0
    for counts in itertools.product(range(3), repeat=4):
        tried = np.array(counts) / TWICE.period
        if tried.sum() <= 0.12:
            bounds = problem.min_rate.copy(), problem.max_rate.copy()
            bounds[0][6:] = bounds[1][6:] = tried
            plan = solve(replace(problem, min_rate=bounds[0], max_rate=bounds[1], timed=None), 0.12)
            steady = plan.rates[:6]
            rate = problem.change_rate[:6]
            with np.errstate(divide="ignore", invalid="ignore"):
                fresh = np.where(steady > 0, steady / rate * -np.expm1(-rate / steady), 0.0)
            best = max(best, float(problem.importance[:6] @ fresh + problem.importance[6:] @ timed.freshness(tried)))
    assert found.freshness >= best * (1 - 0.02)


def test_the_price_of_the_last_plan_changes_nothing():
    problem = world(3000, 2000)
    plan = solve(problem, 15.0)
    again = solve(problem, 15.0, plan.multiplier)
    assert again.multiplier == pytest.approx(plan.multiplier, rel=2e-3)
    assert np.abs(again.rates - plan.rates).sum() <= 2e-3 * plan.rates.sum()


def test_pages_that_are_worth_the_same_share_the_budget():
    """A thousand equal pages and a budget for a quarter of their visits: not all, and not none."""
    plan = solve(world(50, 1000, importance=1.0), 6.0)
    assert 2.0 < plan.rates[50:].sum() <= 6.0
    assert plan.rates.sum() + plan.unused == pytest.approx(6.0)


def test_timed_pages_alone_spend_the_budget():
    plan = solve(world(0, 30), 0.2)
    assert 0.9 * 0.2 < plan.rates.sum() <= 0.2 * (1 + 1e-9)
    assert plan.feasible


def test_a_host_that_is_full_buys_what_fits():
    problem = world(20, 20)
    host, limit = np.array([0] * 10 + [1] * 10 + [0] * 20), np.array([0.1, 5.0])
    plan = solve(replace(problem, host=host, limit=limit), 3.0)
    assert plan.rates[host == 0].sum() <= 0.1 * (1 + 1e-9)
    assert plan.rates[20:].sum() >= 0.09
    assert plan.feasible


def test_shortest_and_longest_intervals_bound_the_visits():
    timed = world(5, 5).timed
    probabilities, weights = np.full((5, 2), 0.5), np.ones(5)
    most = TimedPages.of_timetable(TWICE, timed.rows, probabilities, weights, (np.zeros(5), np.full(5, 0.01)), "freshness")
    assert most.rates(np.full(5, 1e-9)).tolist() == [0.01] * 5
    held = TimedPages.of_timetable(TWICE, timed.rows, probabilities, weights, (np.full(5, 0.01), np.full(5, 1.0)), "freshness")
    assert held.rates(np.full(5, 1e9)).tolist() == [0.01] * 5


def test_timetables_of_different_lengths_stand_side_by_side():
    once = Timetable(50.0, (10.0,), (1.0,))
    bounds = np.zeros(2), np.full(2, np.inf)
    part = TimedPages.of_timetable(once, np.arange(3, 5), np.array([[1.0], [0.0]]), np.ones(2), bounds, "freshness")
    both = TimedPages.together([world(0, 3).timed, part])
    rates = both.rates(np.full(5, 1e-9))
    assert rates.tolist() == [0.02] * 5
    assert both.freshness(rates) == pytest.approx(np.ones(5))
