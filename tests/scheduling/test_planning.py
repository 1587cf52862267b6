"""The arithmetic of one plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.optimization import freshness_periodic, freshness_poisson
from optimal_frontier.scheduling import LOAD, PRIOR_SHAPE, plan_rates
from optimal_frontier.scheduling.planning import fit_minima

PROFILE = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def world(n: int, seed: int = 3):
    """Importance, shape, time, minima and maxima of ``n`` pages, a fifth of them without a bit."""
    rng = np.random.default_rng(seed)
    shape = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.5, 20, n))
    time = np.where(shape > 0, 10 ** rng.uniform(0, 6, n), 0.0)
    return 10 ** rng.uniform(-2, 2, n), shape, time, np.full(n, 1e-9), np.full(n, 1.0)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_the_whole_load_is_planned(objective, n):
    """0.97 of the budget, wherever the maxima leave room for it."""
    budget = 0.2 * n
    plan = plan_rates(*world(n)[:3], budget, *world(n)[3:], objective=objective)
    assert plan.rates.sum() == pytest.approx(LOAD * budget, rel=1e-9)
    assert plan.feasible
    assert plan.unused == pytest.approx(0.0, abs=1e-9 * budget)


def test_what_the_maxima_leave_is_reported():
    importance, shape, time, low, _ = world(10)
    plan = plan_rates(importance, shape, time, 100.0, low, np.full(10, 2.0))
    assert plan.rates == pytest.approx(2.0)
    assert plan.unused == pytest.approx(97 - 20)


def test_a_page_without_a_bit_has_the_prior_whose_mean_is_the_mean_revisit_rate():
    plan = plan_rates(np.ones(4), np.zeros(4), np.zeros(4), 2.0, np.zeros(4), np.full(4, 9.0))
    assert plan.change_rate == pytest.approx(np.log(2) * PRIOR_SHAPE / 2.0)


def test_no_pages_and_no_budget_are_no_plan():
    empty = np.zeros(0)
    assert plan_rates(empty, empty, empty, 5.0, empty, empty).rates.shape == (0,)
    plan = plan_rates(*world(3)[:3], 0.0, *world(3)[3:])
    assert plan.rates.tolist() == [0.0, 0.0, 0.0]


@PROFILE
@given(
    bounds=st.lists(st.tuples(st.floats(0, 50), st.floats(1e-6, 50), st.integers(0, 3)), min_size=1, max_size=30),
    budget=st.floats(1e-3, 100),
    limit=st.sampled_from([np.inf, 0.01, 1.0, 20.0]),
)
def test_any_bounds_give_a_plan_within_budget_host_limits_and_maxima(bounds, budget, limit):
    """However they contradict each other; what had to give is said by ``feasible``."""
    low, high, host = (np.array(column) for column in zip(*bounds, strict=True))
    n = len(low)
    plan = plan_rates(np.ones(n), np.ones(n), np.ones(n), budget, low, high, host=host.astype(np.int64), host_max_rate=limit)
    slack = 1 + 1e-9
    assert plan.rates.sum() <= LOAD * budget * slack
    assert (plan.rates <= high * slack).all()
    assert (plan.rates >= 0).all()
    assert (np.bincount(host, weights=plan.rates) <= limit * slack).all()
    if plan.feasible:
        assert (plan.rates >= np.minimum(low, high) * (1 - 1e-8)).all()


def test_minima_that_do_not_fit_are_scaled_alike():
    low, feasible = fit_minima(np.array([1.0, 3.0]), np.array([9.0, 9.0]), 2.0, np.zeros(2, np.int64), np.inf)
    assert low == pytest.approx([0.5, 1.5])
    assert not feasible


def test_a_host_that_is_asked_too_much_leaves_the_others_alone():
    low, feasible = fit_minima(np.array([1.0, 3.0, 0.5]), np.full(3, 9.0), 100.0, np.array([0, 0, 1]), 2.0)
    assert low == pytest.approx([0.5, 1.5, 0.5])
    assert not feasible


def test_minima_that_just_fit_are_feasible():
    """To rounding: 97 pages pinned to the whole load."""
    rate = np.full(97, 0.1)
    plan = plan_rates(np.ones(97), np.ones(97), np.ones(97), 10.0, rate, rate)
    assert plan.feasible
    assert plan.rates == pytest.approx(0.1)


def test_pinned_pages_get_their_rate_and_the_others_the_rest():
    importance, shape, time, low, high = world(500)
    low[:200] = high[:200] = 0.2
    plan = plan_rates(importance, shape, time, 50.0, low, high)
    assert plan.rates[:200] == pytest.approx(0.2, rel=1e-9)
    assert plan.rates[200:].sum() == pytest.approx(LOAD * 50 - 40, rel=1e-9)


def test_scaled_pins_stay_pins():
    """Pins that ask for twice the budget get half of it each, none of them more."""
    importance, shape, time, _, _ = world(10)
    pinned = np.full(10, 1.0)
    plan = plan_rates(importance, shape, time, 5.0, pinned, pinned)
    assert plan.rates == pytest.approx(LOAD * 0.5)
    assert not plan.feasible


def test_the_order_of_pages_does_not_matter():
    columns = world(300)
    order = np.random.default_rng(0).permutation(300)
    one = plan_rates(*columns[:3], 9.0, *columns[3:])
    other = plan_rates(*(column[order] for column in columns[:3]), 9.0, *(column[order] for column in columns[3:]))
    assert other.rates == pytest.approx(one.rates[order], rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_numbers_beyond_all_measure_do_not_stop_a_plan(policy):
    """One page that somebody gave an importance of 1e-200, or an interval of 1e250 s."""
    importance, shape, time, low, high = world(50)
    importance[0], importance[1], low[2], high[3], high[4] = 1e-200, 1e200, 1e-250, 1e250, np.inf
    shape[5], time[5], shape[6], time[6] = 1.0, 1e200, 1.0, 1e-200
    low[7] = high[7] = 1e-150
    plan = plan_rates(importance, shape, time, 20.0, low, high, policy=policy)
    assert np.isfinite(plan.rates).all()
    assert plan.rates.sum() == pytest.approx(LOAD * 20.0, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_memoryless_plans_keep_to_the_same_rules(n):
    """Load, pins, host limits, and minima that do not fit."""
    importance, shape, time, low, high = world(n)
    host = np.arange(n) % 7
    low[: n // 5] = high[: n // 5] = 0.01
    plan = plan_rates(importance, shape, time, 0.1 * n, low, high, policy="poisson", host=host, host_max_rate=0.5 * n)
    assert plan.rates.sum() == pytest.approx(LOAD * 0.1 * n, rel=1e-9)
    assert plan.rates[: n // 5] == pytest.approx(0.01)
    assert plan.feasible
    tight = plan_rates(importance, shape, time, 0.1 * n, low, high, policy="poisson", host=host, host_max_rate=0.001)
    assert (np.bincount(host, weights=tight.rates) <= 0.001 * (1 + 1e-9)).all()
    assert tight.unused == pytest.approx(LOAD * 0.1 * n - tight.rates.sum(), rel=1e-9)
    assert tight.feasible == (n // 5 == 0)
    crowded = plan_rates(importance, shape, time, 0.1 * n, np.ones(n), high, policy="poisson")
    assert not crowded.feasible
    assert crowded.rates.sum() == pytest.approx(LOAD * 0.1 * n)


def test_the_freshness_of_a_memoryless_plan_is_azars_but_for_pinned_pages():
    importance, shape, time, low, high = world(100)
    low[:30] = high[:30] = 0.05
    plan = plan_rates(importance, shape, time, 9.0, low, high, policy="poisson")
    even, free = slice(None, 30), slice(30, None)
    expected = freshness_periodic(importance[even], plan.change_rate[even], plan.rates[even])
    expected += freshness_poisson(importance[free], plan.change_rate[free], plan.rates[free])
    assert plan.freshness == pytest.approx(expected, rel=1e-12)
    assert plan.freshness < plan_rates(importance, shape, time, 9.0, low, high).freshness
