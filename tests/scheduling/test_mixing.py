"""One optimum over pages of several models: prices agree, and nothing better is found."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.scheduling import LOAD, plan_rates
from optimal_frontier.scheduling.mixing import TOLERANCE, TimedPages, mixed_plan
from optimal_frontier.settings import Timetable

TWICE = Timetable(100.0, (25.0, 75.0), (0.5, 1.0))


class World:
    """Pages at a steady rate, and after them pages with the timetable."""

    def __init__(self, steady, timed, seed=1, importance=None, objective="freshness"):
        rng = np.random.default_rng(seed)
        self.steady, self.timed, self.objective = steady, timed, objective
        n = steady + timed
        self.importance = rng.uniform(0.2, 3, n) if importance is None else np.full(n, importance)
        self.shape, self.time = rng.uniform(2, 9, n), rng.uniform(50, 2000, n)
        self.probabilities = rng.uniform(0, 1, (timed, 2))
        if importance is not None:
            self.probabilities[:] = (0.5, 1.0)
        self.rows = np.arange(steady, n)
        self.solves = 0

    def buyers(self, most=np.inf):
        weights = self.importance[self.rows]
        bounds = np.zeros(self.timed), np.full(self.timed, most)
        return TimedPages.of_timetable(TWICE, self.rows, self.probabilities, weights, *bounds, self.objective)

    def solve(self, rates, budget, host=None, limit=np.inf):
        self.solves += 1
        least, most = np.zeros(len(self.importance)), np.full(len(self.importance), np.inf)
        least[self.rows] = most[self.rows] = rates
        return plan_rates(
            self.importance, self.shape, self.time, budget, least, most, objective=self.objective, host=host, host_max_rate=limit
        )

    def plan(self, budget, start=0.0):
        buyers = self.buyers()
        plan, (rates,) = mixed_plan(lambda rates: self.solve(rates, budget), [buyers], LOAD * budget, start)
        return buyers, plan, rates

    def total(self, plan, buyers, rates):
        """Importance x freshness of all."""
        steady = np.arange(self.steady)
        change, visits = plan.change_rate[steady], plan.rates[steady]
        with np.errstate(divide="ignore", invalid="ignore"):
            fresh = np.where(visits > 0, visits / change * -np.expm1(-change / visits), 0.0)
        return float(self.importance[steady] @ fresh + self.importance[self.rows] @ buyers.freshness(rates))


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("budget", [0.05, 0.3, 2.0, 8.0])
def test_all_models_pay_one_price(budget, objective):
    """What is bought is worth the price, what is not is not; the budget is spent."""
    world = World(60, 40, objective=objective)
    buyers, plan, rates = world.plan(budget)
    count = buyers.visits(rates)
    rows = np.arange(40)
    worth = np.hstack([np.full((40, 1), np.inf), buyers.worth, np.zeros((40, 1))])
    slack = 1 + 3 * TOLERANCE
    bought = worth[rows, count]
    if bought.min() * slack < plan.multiplier:
        fewer = rates.copy()
        fewer[bought.argmin()] -= 1 / TWICE.period
        assert (world.solve(fewer, budget).multiplier + plan.multiplier) / 2 <= bought.min() * slack
    unbought = worth[rows, count + 1]
    if unbought.max() > plan.multiplier * slack:  # visits are whole: with this one the price is too high
        more = rates.copy()
        more[unbought.argmax()] += 1 / TWICE.period
        assert (world.solve(more, budget).multiplier + plan.multiplier) / 2 * slack >= unbought.max() or more.sum() > LOAD * budget
    assert plan.rates.sum() + plan.unused == pytest.approx(LOAD * budget)
    assert plan.feasible
    assert (plan.rates[world.rows] == rates).all()
    if budget == 0.3:
        assert 0 < count.sum() < 80


@pytest.mark.parametrize("seed", range(8))
def test_no_other_choice_of_times_is_better(seed):
    """All ways to buy for four pages, each with the best rates for the others."""
    world = World(6, 4, seed)
    buyers, plan, rates = world.plan(0.12)
    found = world.total(plan, buyers, rates)
    best = 0.0
    for counts in itertools.product(range(3), repeat=4):
        tried = np.array(counts) / TWICE.period
        if tried.sum() <= LOAD * 0.12:
            best = max(best, world.total(world.solve(tried, 0.12), buyers, tried))
    assert found >= best * (1 - 2e-3)


def test_the_price_of_the_last_plan_changes_nothing_but_the_number_of_solves():
    world = World(3000, 2000)
    _, plan, rates = world.plan(15.0)
    cold, world.solves = world.solves, 0
    _, again, same = world.plan(15.0, plan.multiplier)
    assert world.solves <= min(cold, 5)
    assert again.multiplier == pytest.approx(plan.multiplier, rel=2 * TOLERANCE)
    assert np.abs(same - rates).sum() <= 1e-3 * rates.sum()


def test_prices_that_differ_by_rounding_are_the_same():
    """A solver whose answers drift in their last digits: what is bought is what it was."""
    world = World(60, 5, importance=1.0)
    buyers = world.buyers()
    least = replace(buyers, worth=buyers.worth * 1e3)  # bought at any price

    def drifting(rates):
        plan = world.solve(rates, 1.0)
        return replace(plan, multiplier=plan.multiplier * (1 + 1e-13 * world.solves))

    plan = world.solve(np.full(5, 0.02), 1.0)
    for start in (0.998, 0.9995, 1.0, 1.002):
        _, (rates,) = mixed_plan(drifting, [least], LOAD, start * plan.multiplier)
        assert rates.tolist() == [0.02] * 5


def test_pages_that_are_worth_the_same_share_the_budget():
    """A thousand equal pages and a budget for a quarter of their visits: not all, and not none."""
    world = World(50, 1000, importance=1.0)
    _, plan, rates = world.plan(6.0)
    assert 2.0 < rates.sum() <= LOAD * 6.0
    assert plan.rates.sum() + plan.unused == pytest.approx(LOAD * 6.0)
    assert len(np.unique(rates)) > 1


def test_timed_pages_alone_spend_the_budget():
    world = World(0, 30)
    _, plan, rates = world.plan(0.2)
    assert 0.9 * LOAD * 0.2 < rates.sum() <= LOAD * 0.2
    assert plan.feasible


def test_a_host_that_is_full_buys_what_fits():
    """And the most valuable of it; the other pages of the host get nothing then, those of other hosts as before."""
    world = World(20, 20)
    host, room = np.array([0] * 10 + [1] * 10 + [0] * 20), np.array([0.1, 5.0])
    buyers = world.buyers()
    plan, (rates,) = mixed_plan(lambda rates: world.solve(rates, 3.0, host, room), [buyers], LOAD * 3.0, 0.0, host[world.rows], room)
    assert 0.09 <= rates.sum() <= 0.1
    assert plan.feasible
    worth = np.sort(buyers.worth.ravel())[::-1]
    count = buyers.visits(rates)
    assert buyers.worth[np.arange(20)[count > 0], count[count > 0] - 1].min() >= worth[10]


def test_shortest_and_longest_intervals_bound_the_visits():
    world = World(5, 5)
    rates = world.buyers(most=0.01).rates(np.full(5, 1e-9))
    assert rates.tolist() == [0.01] * 5
    weights = world.importance[world.rows]
    held = TimedPages.of_timetable(TWICE, world.rows, world.probabilities, weights, np.full(5, 0.01), np.full(5, 1.0), "freshness")
    assert held.rates(np.full(5, 1e9)).tolist() == [0.01] * 5


def test_timetables_of_different_lengths_stand_side_by_side():
    """And what is bought is told as a mask of times."""
    world = World(0, 3)
    once = Timetable(50.0, (10.0,), (1.0,))
    weights, bounds = world.importance, (np.zeros(3), np.full(3, np.inf))
    part = TimedPages.of_timetable(once, np.arange(3, 5), np.array([[1.0], [0.0]]), weights[:2], bounds[0][:2], bounds[1][:2], "freshness")
    both = TimedPages.together([world.buyers(), part])
    rates = both.rates(np.full(5, 1e-9))
    assert rates.tolist() == [0.02] * 5
    assert both.masks(rates).tolist() == [3.0] * 3 + [1.0] * 2
    assert both.masks(np.zeros(5)).tolist() == [0.0] * 5
    assert both.freshness(rates) == pytest.approx(np.ones(5))
