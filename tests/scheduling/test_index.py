"""Values of visits, when they reach a price, and how the price follows them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import changes_periodic, freshness_periodic, solve_periodic
from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling import backoff
from optimal_frontier.scheduling.index import (
    PRICE_MEMORY,
    claim,
    deadline_by_price,
    price_after_visit,
    value_reached_after,
    value_share,
    visit_bound,
    visit_value,
)

PROFILE = settings(max_examples=300, deadline=None, derandomize=True, database=None)
RATES = st.floats(1e-9, 1e4)
WEIGHTS = st.floats(1e-6, 1e6)
OBJECTIVES = st.sampled_from(["freshness", "changes"])


@PROFILE
@given(st.floats(0, 1000))
def test_the_share_in_plain_floats_is_that_of_the_solver(changes):
    assert value_share(changes) == pytest.approx(float(marginal_share(np.array([changes]))[0]), rel=2e-12, abs=0)


@PROFILE
@given(WEIGHTS, RATES, st.floats(1e-2, 20.0))
def test_the_value_is_the_derivative_of_the_objective(importance, change_rate, changes):
    """By visits per second, at visits this far apart; of both objectives."""
    elapsed = changes / change_rate
    for objective, total in (("freshness", freshness_periodic), ("changes", changes_periodic)):
        step = 1e-4 / elapsed
        slope = (
            (total([importance], [change_rate], [1 / elapsed + step]) - total([importance], [change_rate], [1 / elapsed - step])) / 2 / step
        )
        assert visit_value(importance, change_rate, elapsed, objective) == pytest.approx(slope, rel=1e-5)


@PROFILE
@given(WEIGHTS, RATES, st.floats(-30, -0.05), OBJECTIVES)
def test_the_interval_is_that_at_which_the_value_is_the_price(importance, change_rate, exponent, objective):
    """Down to prices of a 1e-30th of what a visit can be worth."""
    price = 10**exponent * visit_bound(importance, change_rate, objective)
    after = value_reached_after(importance, change_rate, price, objective)
    assert visit_value(importance, change_rate, after, objective) == pytest.approx(price, rel=1e-9)
    due = float(deadline_by_price(0.0, 0.0, 0.0, 0, importance, change_rate, 0.0, math.inf, price, objective))
    assert due == pytest.approx(after, rel=1e-8)


@PROFILE
@given(WEIGHTS, RATES, st.floats(-4, 2), st.floats(1e-6, 1), st.floats(1, 100), OBJECTIVES)
def test_bounds_hold(importance, change_rate, exponent, least, ratio, objective):
    """No sooner than the most rate lets it, no later than the least rate asks, whatever the price."""
    price, most = 10**exponent * visit_bound(importance, change_rate, objective), least * ratio
    after = value_reached_after(importance, change_rate, price, objective, least_rate=least, most_rate=most)
    assert 1 / most <= after * (1 + 1e-12)
    assert after <= 1 / least * (1 + 1e-12)
    due = deadline_by_price(50.0, 50.0, 0.0, 0, importance, change_rate, least, most, price, objective)
    assert float(due) == pytest.approx(50.0 + after, rel=1e-8)


def test_a_page_that_is_never_worth_the_price():
    assert value_reached_after(1.0, 2.0, 0.5) == math.inf
    assert value_reached_after(1.0, 2.0, 0.5, least_rate=0.1) == 10.0
    assert value_reached_after(1.0, 0.0, 0.5) == math.inf
    assert visit_value(1.0, 0.0, 1e9) == 0.0
    assert deadline_by_price(0.0, 0.0, 0.0, 0, 1.0, [2.0, 0.0], 0.0, 1.0, 0.5).tolist() == [math.inf, math.inf]


def test_without_a_price_every_page_is_due_as_soon_as_it_may_be():
    assert value_reached_after(1.0, 2.0, 0.0, most_rate=4.0) == 0.25
    assert float(deadline_by_price(10.0, 10.0, 3.0, 0, 1.0, 2.0, 0.0, 4.0, 0.0)) == 13.0


def test_a_failure_waits_for_its_backoff():
    assert float(deadline_by_price(10.0, 20.0, 1.0, 5, 1.0, 1.0, 0.0, 1.0, 1e-3, slot=3)) == 20.0 + float(backoff(5, 3))


def test_at_the_multiplier_of_a_plan_the_interval_is_the_planned_one():
    """Of every page at once: what dispatch by price comes to is the optimum."""
    rng = np.random.default_rng(3)
    importance, change_rate = rng.pareto(1.2, 400) + 0.1, rng.lognormal(-2.0, 1.5, 400)
    for objective in ("freshness", "changes"):
        plan = solve_periodic(importance, change_rate, 40.0, objective, min_rate=0.01, max_rate=1.0)
        wait = deadline_by_price(0.0, 0.0, 0.0, 0, importance, change_rate, 0.01, 1.0, plan.multiplier, objective)
        np.testing.assert_allclose(1 / wait, plan.rates, rtol=1e-5)


@pytest.mark.parametrize(("name", "arguments"), [("importance", (-1.0, 1.0, 1.0)), ("multiplier", (1.0, 1.0, -1.0))])
def test_unusable_arguments_are_named(name, arguments):
    with pytest.raises(InvalidProblemError, match=name):
        value_reached_after(*arguments)


@PROFILE
@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_the_price_comes_to_what_is_visited(start, value):
    """Monotonously, and within a hundredth of its distance after as many visits as say so."""
    price, visits = start, round(PRICE_MEMORY * math.log(100)) + 3
    for _ in range(visits):
        before, price = price, price_after_visit(price, value)
        assert min(before, value) * (1 - 1e-12) <= price <= max(before, value) * (1 + 1e-12)
    assert abs(math.log(price / value)) <= 0.01 * abs(math.log(start / value)) + 1e-9


def test_claims_keep_the_least_rate():
    """The price at the longest interval, and more the later; before it nothing but the value."""
    assert claim(0.1, 5.0, 99.0, 0.01, 1.0) == 0.1
    assert claim(0.1, 5.0, 100.0, 0.01, 1.0) == 5.0
    assert claim(0.1, 5.0, 300.0, 0.01, 1.0) == 15.0
    assert claim(7.0, 5.0, 100.0, 0.01, 1.0) == 7.0
    assert claim(0.1, 5.0, 50.0, 0.0, 1.0) == 0.1
