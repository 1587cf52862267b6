"""Plans of steady and heavy-tailed pages: one price, and nothing better is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.scheduling import LOAD, plan_rates
from optimal_frontier.scheduling.bursty_pages import BurstyPages, StandIns


class World:
    """Pages, the last of which are bursty."""

    def __init__(self, n, bursty, seed=1, objective="freshness"):
        rng = np.random.default_rng(seed)
        self.n, self.objective = n, objective
        self.importance, self.change_rate = rng.lognormal(0, 1, n), rng.lognormal(-5, 1.5, n)
        rows = np.arange(n - bursty, n)
        self.pages = BurstyPages.of_models(rows, rng.uniform(0.25, 1.0, bursty), 1 / self.change_rate[rows])
        self.rows, self.solves = rows, 0
        self.low, self.high = np.zeros(n), np.full(n, np.inf)

    def plan(self, budget, start=None, **limits):
        def solve(weight, change_rate):
            self.solves += 1
            ones = np.ones(self.n)
            return plan_rates(weight, ones, ones, budget, self.low, self.high, objective=self.objective, change_rate=change_rate, **limits)

        start = np.zeros(len(self.rows)) if start is None else start
        return StandIns(self.pages, self.importance, self.change_rate, self.objective, start).plan(solve)

    def worth(self, plan):
        """What a visit to each page is worth at the rates of a plan, by its own model."""
        models = Weibull.from_mean(1 / self.change_rate, np.append(np.ones(self.n - len(self.rows)), self.pages.shape))
        with np.errstate(divide="ignore"):
            return self.importance * models.crawl_worth(np.minimum(1 / plan.rates, 1e9 / self.change_rate), self.objective)

    def freshness(self, rates):
        models = Weibull.from_mean(1 / self.change_rate, np.append(np.ones(self.n - len(self.rows)), self.pages.shape))
        return float(self.importance @ models.freshness_every(1 / rates))


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("share", [0.03, 0.3, 1.0])
@pytest.mark.parametrize("visits", [0.02, 0.3, 3.0])
def test_all_pages_pay_one_price(visits, share, objective):
    """What is visited is worth it to 1e-4, what is not is worth less; the budget is spent."""
    world = World(300, int(300 * share), objective=objective)
    budget = visits * world.change_rate.sum()
    plan = world.plan(budget)
    worth, visited = world.worth(plan), plan.rates > 0
    assert worth[visited] == pytest.approx(plan.multiplier, rel=2e-4)
    assert (worth[~visited] <= plan.multiplier * (1 + 2e-4)).all()
    assert plan.rates.sum() == pytest.approx(LOAD * budget)
    assert world.solves <= 10
    if visits == 0.02 and share > 0.1:
        assert 0 < visited[world.rows].sum() < len(world.rows)


def test_no_other_rates_are_better():
    """By a general solver that knows the models only."""
    world = World(6, 3)
    budget = 0.5 * world.change_rate.sum()
    found = world.plan(budget)
    even = np.full(6, LOAD * budget / 6)
    answer = minimize(
        lambda rates: -world.freshness(rates),
        even,
        bounds=[(1e-9, None)] * 6,
        constraints={"type": "ineq", "fun": lambda rates: 1e3 * (LOAD * budget - rates.sum())},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert world.freshness(found.rates) >= -answer.fun * (1 - 1e-6)
    assert world.freshness(found.rates) > 1.01 * world.freshness(even)
    assert found.freshness == pytest.approx(world.freshness(found.rates), rel=1e-9)


def test_pages_of_shape_1_are_planned_as_without_a_model():
    world = World(100, 40)
    world.pages = BurstyPages.of_models(world.rows, np.ones(40), 1 / world.change_rate[world.rows])
    budget, none = 0.3 * world.change_rate.sum(), np.zeros(100)
    plain = plan_rates(world.importance, none, none, budget, none, none + np.inf, change_rate=world.change_rate)
    plan = world.plan(budget)
    assert plan.rates == pytest.approx(plain.rates, rel=2e-4)
    assert plan.freshness == pytest.approx(plain.freshness, rel=1e-6)


def test_bounds_are_kept_and_all_between_pay_one_price():
    world = World(200, 100)
    budget = 0.3 * world.change_rate.sum()
    free = world.plan(budget).rates
    world.low, world.high = np.full(200, np.quantile(free, 0.3)), np.full(200, np.quantile(free, 0.8))
    plan = world.plan(budget)
    assert (plan.rates >= world.low * (1 - 1e-12)).all()
    assert (plan.rates <= world.high * (1 + 1e-12)).all()
    worth = world.worth(plan)
    low, high = plan.rates <= world.low * (1 + 1e-9), plan.rates >= world.high * (1 - 1e-9)
    assert low[world.rows].any()
    assert high[world.rows].any()
    assert worth[~low & ~high] == pytest.approx(plan.multiplier, rel=2e-4)
    assert (worth[low] <= plan.multiplier * (1 + 2e-4)).all()
    assert (worth[high] >= plan.multiplier * (1 - 2e-4)).all()


def test_pages_of_a_full_host_pay_its_price_whatever_their_model():
    world = World(120, 60)
    host = np.arange(120) % 3
    budget = 0.5 * world.change_rate.sum()
    limits = np.array([0.05, 1e9, 1e9]) * budget
    plan = world.plan(budget, host=host, host_max_rate=limits)
    assert plan.rates[host == 0].sum() == pytest.approx(limits[0], rel=1e-6)
    worth, full = world.worth(plan), (host == 0) & (plan.rates > 0)
    assert worth[(host > 0) & (plan.rates > 0)] == pytest.approx(plan.multiplier, rel=2e-4)
    own = np.median(worth[full])
    assert own > 1.5 * plan.multiplier
    assert worth[full] == pytest.approx(own, rel=2e-4)


def test_the_rates_of_the_last_plan_change_nothing_but_the_number_of_solves():
    world = World(300, 100)
    budget = 0.3 * world.change_rate.sum()
    plan = world.plan(budget)
    world.solves = 0
    again = world.plan(budget, plan.rates[world.rows])
    assert world.solves <= 2
    assert again.multiplier == pytest.approx(plan.multiplier, rel=2e-4)
    assert again.rates == pytest.approx(plan.rates, rel=1e-2, abs=1e-9)


def test_budget_to_spare_visits_all_pages_at_their_maxima():
    world = World(10, 5)
    world.high = np.full(10, 0.01)
    plan = world.plan(1.0)
    assert plan.rates == pytest.approx(world.high)
    assert plan.unused > 0
