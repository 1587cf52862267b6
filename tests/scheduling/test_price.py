"""The price that is carried from plan to plan: the sums that are kept are those of the pages as they are, and the plan stays the plan."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.optimization import BinnedDual
from optimal_frontier.scheduling import CarriedPrice, RatePlan, plan_rates
from optimal_frontier.scheduling.price import REBUILD_PLANS, answers_to_price


class World:
    """Pages that live: posteriors move, importances change, pages come and go, some slots are given to new ones."""

    def __init__(self, n: int, seed: int, hosts: int = 0) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.slots = np.arange(n)
        self.importance = rng.pareto(1.2, n) + 0.1
        self.shape, self.time = rng.uniform(0.5, 20, n), 10 ** rng.uniform(0, 4, n)
        self.low, self.high = np.full(n, 1e-6), np.full(n, 1.0)
        self.low[: n // 20] = self.high[: n // 20] = 0.01
        self.hosts = hosts
        self.host = rng.integers(0, hosts, n) if hosts else np.zeros(n, np.int64)

    def move(self, share: float) -> None:
        """A share of the pages is visited, a few leave, a few come."""
        rng, n = self.rng, len(self.slots)
        visited = rng.random(n) < share
        self.time[visited] *= rng.uniform(0.8, 1.3, visited.sum())
        self.importance[rng.random(n) < share / 10] *= 2
        stay = rng.random(n) >= share / 20
        come = rng.integers(1, 9)
        slots = np.concatenate([self.slots[stay], self.slots[-1] + 1 + np.arange(come)])
        columns = {"importance": 1.0, "shape": 1.0, "time": 50.0, "low": 1e-6, "high": 1.0}
        for name, value in columns.items():
            setattr(self, name, np.concatenate([getattr(self, name)[stay], np.full(come, value)]))
        self.host = np.concatenate([self.host[stay], np.zeros(come, np.int64)])
        self.slots = slots

    def plan(self, budget: float, price: CarriedPrice | None = None) -> RatePlan:
        limits = {"host": self.host, "host_max_rate": 1.5 * budget / self.hosts} if self.hosts else {}
        pages = (self.importance.copy(), self.shape.copy(), self.time.copy())
        return plan_rates(*pages, budget, self.low, self.high, price=price, slots=self.slots, **limits)


def fresh_dual(world: World, price: CarriedPrice, plan: RatePlan) -> BinnedDual:
    """Made anew from what is counted, with the values that the plan used."""
    assert (price._slots == world.slots).all()
    counted = price._counted
    dual = BinnedDual()
    dual.add(world.importance[counted], plan.change_rate[counted])
    return dual


@pytest.mark.parametrize("hosts", [0, 40])
def test_sums_that_are_kept_give_the_price_of_fresh_ones(hosts):
    """Over 30 plans in a moving world, whatever came, went or moved."""
    world, price = World(3000, 1, hosts), CarriedPrice()
    for turn in range(30):
        plan = world.plan(60.0 + turn, price)
        if turn > 1:
            assert price.moved < 1000, "not made anew"
        if turn:
            fresh = fresh_dual(world, price, plan)
            assert price.dual.pages == fresh.pages
            for bandwidth in (5.0, 50.0):
                assert price.dual.multiplier(bandwidth) == pytest.approx(fresh.multiplier(bandwidth), rel=1e-9)
        world.move(0.02)


@pytest.mark.parametrize("hosts", [0, 40])
def test_a_warm_plan_is_a_cold_one(hosts):
    """The start saves time and changes nothing."""
    world, price = World(3000, 2, hosts), CarriedPrice()
    for turn in range(8):
        warm, cold = world.plan(60.0 - 3 * turn, price), world.plan(60.0 - 3 * turn)
        # A page whose value is just above the price answers to its last digits.
        np.testing.assert_allclose(warm.rates, cold.rates, rtol=1e-5, atol=1e-9)
        assert warm.multiplier == pytest.approx(cold.multiplier, rel=1e-6)
        assert warm.freshness == pytest.approx(cold.freshness, rel=1e-9)
        world.move(0.05)


@pytest.mark.parametrize("hosts", [0, 40])
def test_the_estimate_is_near_the_answer(hosts):
    """Nearer than the last multiplier when the budget moved."""
    world, price = World(20_000, 3, hosts), CarriedPrice()
    world.plan(400.0, price)
    world.plan(400.0, price)
    world.move(0.02)
    last = price._last
    estimate = price.estimate(world.slots, world.importance, world.plan(380.0).change_rate, 0.97 * 380.0)
    answer = world.plan(380.0).multiplier
    assert estimate is not None
    assert abs(estimate / answer - 1) < 0.2 * abs(last / answer - 1)
    assert estimate == pytest.approx(answer, rel=0.02)


def test_the_first_plan_starts_from_what_was_published():
    world = World(10, 4)
    assert CarriedPrice().estimate(world.slots, world.importance, np.ones(10), 1.0) is None
    assert CarriedPrice(last=2.5).estimate(world.slots, world.importance, np.ones(10), 1.0) == 2.5


def test_much_that_moves_and_many_plans_make_the_sums_anew():
    world, price = World(300, 5), CarriedPrice()
    made = []
    for turn in range(REBUILD_PLANS + 3):
        world.time *= 1.01 if turn == 10 else 1.0
        before = price.dual
        world.plan(6.0, price)
        made.append(price.dual is not before)
    assert [turn for turn, anew in enumerate(made) if anew] == [1, 10, REBUILD_PLANS]


def test_nothing_left_for_the_others_keeps_the_last_price():
    """All pages at their maxima, or none there: no estimate, no error."""
    world, price = World(30, 6), CarriedPrice()
    for budget in (1e6, 1e6, 3.0, 1e6, 3.0):
        plan = world.plan(budget, price)
        assert np.isfinite(plan.rates).all()
    world.slots, world.host = world.slots[:0], world.host[:0]
    for name in ("importance", "shape", "time", "low", "high"):
        setattr(world, name, getattr(world, name)[:0])
    assert world.plan(3.0, price).rates.size == 0
    assert price.estimate(world.slots, world.importance, np.zeros(0), 3.0) == price._last


def test_who_answers_to_the_price():
    """Between its bounds: moves. At a maximum, pinned, held above its worth, on a full host: does not. Worthless: may start."""
    low, high = np.array([0.1, 0.1, 0.1, 0.5, 0.0, 0.1]), np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0])
    rates, host = np.array([0.1, 0.4, 1.0, 0.5, 0.6, 0.1]), np.array([0, 0, 0, 0, 1, 0])
    importance = np.array([3.0, 3.0, 3.0, 3.0, 3.0, 1.9])

    def ask(host, limits, objective="freshness", change_rate=1.0):
        answers = answers_to_price(importance, np.full(6, change_rate), rates, low, high, host, limits, 2.0, objective)
        return "".join("m" if moving else "b" if bound else "." for moving, bound in zip(*answers, strict=True))

    assert ask(None, np.inf) == "bmbbm."
    assert ask(None, np.inf, "changes", change_rate=9.0) == "bmbbm."
    assert ask(None, np.inf, change_rate=9.0) == ".mbbm."
    assert ask(host, 0.6) == "bbbbbb"
    assert ask(host, np.array([5.0, 0.6])) == "bmbbb."
