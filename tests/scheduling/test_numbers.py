"""The numbers of a deadline: when a visit is worth the price."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling.numbers import (
    MOST_SLOPE,
    ManyNumbers,
    Numbers,
    deadline,
    deadlines,
    draw_of,
    fixed,
    numbers_at,
    wait_at_price,
    waits_at_price,
)

KINDS = [("freshness", "periodic"), ("changes", "periodic"), ("freshness", "poisson")]
SHARES = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999])


def top_of(importance: float, change_rate: float, objective: str) -> float:
    """The log price above which a page is never worth a visit."""
    return math.log(importance) - (math.log(change_rate) if objective == "freshness" else 0.0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    importance=st.floats(1e-3, 1e3),
    change_rate=st.floats(0.0, 1e3),
    log_price=st.floats(-40.0, 20.0),
    kind=st.sampled_from(KINDS),
)
def test_one_page_and_many_have_the_same_waits(importance, change_rate, log_price, kind):
    """Judges work out one page, planners all."""
    one = wait_at_price(log_price, importance, change_rate, *kind)
    many = waits_at_price(log_price, np.array([importance]), np.array([change_rate]), *kind)
    assert (many[0][0], many[1][0]) == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("share", SHARES)
def test_the_wait_is_the_inverse_of_what_a_visit_is_worth(objective, share):
    """Azar et al. 2018, eq. 6: after the wait a visit is worth the price."""
    importance, change_rate = 3.0, 0.02
    value = importance / change_rate if objective == "freshness" else importance
    wait, _ = wait_at_price(math.log(share * value), importance, change_rate, objective)
    assert float(marginal_share(np.array([change_rate * wait]))[0]) == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize(("objective", "policy"), KINDS)
def test_the_slope_is_the_derivative_by_the_log_price(objective, policy):
    step, importance, change_rate = 1e-4, 2.0, 0.3
    top = top_of(importance, change_rate, objective)
    for share in SHARES:
        log_price = top + math.log(share)
        (wait, slope), below, above = (
            wait_at_price(log_price + move, importance, change_rate, objective, policy) for move in (0.0, -step, step)
        )
        measured = (above[0] - below[0]) / (2 * step) if above[0] < math.inf else math.inf
        if slope < MOST_SLOPE * wait * (1 - 1e-9):
            assert slope == pytest.approx(measured, rel=1e-3)
        else:
            assert measured >= slope * (1 - 1e-3)


@pytest.mark.parametrize(("objective", "policy"), KINDS)
def test_the_slope_is_capped_near_the_highest_price(objective, policy):
    """At most `MOST_SLOPE` waits."""
    log_price = top_of(1.0, 0.1, objective) + math.log(1 - 1e-6)
    wait, slope = wait_at_price(log_price, 1.0, 0.1, objective, policy)
    assert wait < math.inf
    assert slope == pytest.approx(MOST_SLOPE * wait, rel=1e-12)


@pytest.mark.parametrize(("objective", "policy"), KINDS)
def test_a_page_is_not_worth_more_than_its_highest_price_at_any_time(objective, policy):
    top = top_of(1.0, 0.1, objective)
    for log_price in (top, top + 1e-9, top + 100.0, math.inf):
        assert wait_at_price(log_price, 1.0, 0.1, objective, policy) == (math.inf, 0.0)
    assert wait_at_price(-100.0, 1.0, 0.0, objective, policy) == (math.inf, 0.0)  # it never changes


@pytest.mark.parametrize(("objective", "policy"), KINDS)
def test_at_a_price_of_zero_a_page_is_due_at_once(objective, policy):
    assert wait_at_price(-math.inf, 1.0, 0.1, objective, policy) == (0.0, 0.0)
    waits, slopes = waits_at_price(-math.inf, np.ones(2), np.array([0.1, 0.0]), objective, policy)
    assert waits.tolist() == [0.0, math.inf]
    assert slopes.tolist() == [0.0, 0.0]


def test_memoryless_visits_have_azars_rate():
    """Eq. 11: sqrt(importance x change rate / price) - change rate, where positive."""
    importance, change_rate, price = 2.0, 0.05, 3.0
    wait, slope = wait_at_price(math.log(price), importance, change_rate, policy="poisson")
    rate = math.sqrt(importance * change_rate / price) - change_rate
    assert wait == pytest.approx(1 / rate)
    assert slope == pytest.approx(0.5 * (rate + change_rate) / rate**2)


def test_prices_may_differ_from_page_to_page():
    """Those of hosts do."""
    prices = np.array([-1.0, 0.0, 1.0])
    waits, slopes = waits_at_price(prices, np.ones(3), np.full(3, 0.1))
    assert (np.diff(waits) > 0).all()
    for price, wait, slope in zip(prices, waits, slopes, strict=True):
        assert (wait, slope) == pytest.approx(wait_at_price(price, 1.0, 0.1), rel=1e-6)


@pytest.mark.parametrize("log_price", [-50.0, 0.0, 3.0, math.inf])
def test_fixed_numbers_do_not_answer_to_the_price(log_price):
    """A pin, or a page that is wanted now."""
    price = min(log_price, 1e300)
    assert deadline(100.0, fixed(7.0), price) == 107.0
    assert deadline(100.0, fixed(0.0), price) == 100.0


@pytest.mark.parametrize(
    ("wait", "log_price", "expected"),
    [(20.0, 2.0, 20.0), (20.0, 4.0, 30.0), (20.0, -10.0, 5.0), (20.0, 50.0, 60.0), (math.inf, 2.0, 60.0), (1.0, 2.0, 5.0)],
)
def test_numbers_give_the_wait_at_their_price_and_its_line_within_bounds(wait, log_price, expected):
    """They are made at log price 2, where the page waits 20 s and 5 s more for each e-fold of the price; bounds are 5 and 60 s."""
    numbers = numbers_at(wait, 0.0 if math.isinf(wait) else 5.0, 2.0, 5.0, 60.0)
    assert deadline(1000.0, numbers, log_price) == 1000.0 + expected


def test_where_bounds_exclude_each_other_the_longest_wait_stands():
    assert deadline(0.0, numbers_at(20.0, 5.0, 2.0, 90.0, 60.0), 2.0) == 60.0


def test_numbers_made_at_a_price_of_zero_have_no_slope():
    assert numbers_at(0.0, 0.0, -math.inf, 1.0, 60.0) == Numbers(0.0, 0.0, 1.0, 60.0)


def test_deadlines_of_many_pages_are_those_of_each():
    rows = [fixed(7.0), numbers_at(20.0, 5.0, 2.0, 1.0, 60.0), Numbers(math.inf, 0.0, 1.0, 60.0), Numbers(-80.0, 10.0, 3.0, 60.0)]
    many = ManyNumbers(*(np.array(column) for column in zip(*rows, strict=True)))
    b = np.array([0.0, 100.0, 200.0, 300.0])
    for log_price in (-3.0, 0.0, 2.0, 8.0):
        expected = [deadline(at, numbers, log_price) for at, numbers in zip(b.tolist(), rows, strict=True)]
        assert deadlines(b, many, log_price).tolist() == expected
    assert deadlines(b, rows[1], np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [15.0, 120.0, 225.0, 330.0]


def test_draws_are_exponential_and_independent_from_visit_to_visit():
    """Mean and variance 1, the quartiles; the same draw for the same visit of a page."""
    pages = [number.to_bytes(12, "little") for number in range(20_000)]
    draws = np.array([[draw_of(page, attempts) for page in pages] for attempts in (1, 2)])
    assert draws.mean() == pytest.approx(1.0, abs=0.02)
    assert draws.var() == pytest.approx(1.0, abs=0.06)
    assert np.quantile(draws, [0.25, 0.5, 0.75]) == pytest.approx(-np.log([0.75, 0.5, 0.25]), rel=0.03)
    assert draws.min() > 0
    assert abs(np.corrcoef(draws)[0, 1]) < 0.03
    assert draw_of(pages[3], 1) == draws[0, 3]


def test_waits_of_many_pages_are_those_of_each_one() -> None:
    """Many are found by a table."""
    rng = np.random.default_rng(2)
    importance, rate = rng.lognormal(0, 1, 3000), 10 ** rng.uniform(-7, 1, 3000)
    prices = np.log(importance / rate * 10 ** rng.uniform(-9, 0.1, 3000))
    one = [wait_at_price(*page) for page in zip(prices.tolist(), importance.tolist(), rate.tolist(), strict=True)]
    np.testing.assert_allclose(np.transpose(waits_at_price(prices, importance, rate)), one, rtol=1e-6)
