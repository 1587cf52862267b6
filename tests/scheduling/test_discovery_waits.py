"""When pages that yield new pages are worth a visit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling.discovery import discovery_rate, wait_with_discovery, waits_with_discovery
from optimal_frontier.scheduling.numbers import MOST_SLOPE, wait_at_price

KINDS = [("freshness", "periodic"), ("changes", "periodic"), ("freshness", "poisson")]


def worth(wait: float, importance: float, change_rate: float, discovery: float, kind: tuple[str, str]) -> float:
    """What a visit after this time is worth, from the definition."""
    if kind[1] == "poisson":
        return importance * change_rate / (change_rate + 1 / wait) ** 2 + discovery * wait**2
    value = importance if kind[0] == "changes" else importance / change_rate if change_rate > 0 else 0.0
    return value * float(marginal_share(np.array([change_rate * wait]))[0]) + discovery * wait**2 / 2


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    importance=st.floats(1e-3, 1e3),
    change_rate=st.just(0.0) | st.floats(1e-12, 1e3),
    discovery=st.floats(1e-9, 1e3),
    log_price=st.floats(-40.0, 20.0),
    kind=st.sampled_from(KINDS),
)
def test_one_page_and_many_have_the_same_waits_and_a_visit_is_worth_the_price_then(importance, change_rate, discovery, log_price, kind):
    one = wait_with_discovery(log_price, importance, change_rate, discovery, *kind)
    many = waits_with_discovery(log_price, np.array([importance]), np.array([change_rate]), np.array([discovery]), *kind)
    assert (many[0][0], many[1][0]) == pytest.approx(one, rel=1e-5)  # on a plateau digits are lost
    assert math.isfinite(one[0])
    assert one[0] > 0
    assert math.log(worth(one[0], importance, change_rate, discovery, kind)) == pytest.approx(log_price, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_is_the_derivative_by_the_log_price(kind):
    """Up to `MOST_SLOPE` waits, as anywhere."""
    for change_rate, discovery in ((0.1, 1e-3), (1e-9, 1e-3), (2.0, 1e-4), (5.0, 1e-7)):
        for log_price in (-3.0, 0.0, 1.5):
            wait, slope = wait_with_discovery(log_price, 1.0, change_rate, discovery, *kind)
            step = 1e-5
            low, high = (wait_with_discovery(log_price + by, 1.0, change_rate, discovery, *kind)[0] for by in (-step, step))
            assert slope == pytest.approx(min((high - low) / (2 * step), MOST_SLOPE * wait), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS[:1] + KINDS[2:])
@pytest.mark.parametrize("change_rate", [0.0, 1e-30, 1e30])
def test_where_nothing_else_counts_the_wait_is_that_of_discovery(change_rate, kind):
    """A page that never changes, and one whose copy is never fresh: sqrt(2 price / d), memoryless sqrt(price / d)."""
    wait, slope = wait_with_discovery(math.log(50.0), 1.0, change_rate, 0.25, *kind)
    assert wait == pytest.approx(math.sqrt((2 if kind[1] == "periodic" else 1) * 50.0 / 0.25), rel=1e-9)
    assert slope == pytest.approx(wait / 2, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_with_little_to_discover_it_is_the_wait_of_any_page(kind):
    plain = wait_at_price(-2.0, 1.0, 0.1, *kind)
    assert wait_with_discovery(-2.0, 1.0, 0.1, 0.0, *kind) == plain
    assert wait_with_discovery(-2.0, 1.0, 0.1, 1e-15, *kind) == pytest.approx(plain, rel=1e-6)
    # A page that no visit is worth the price to, if it were not for that.
    assert wait_at_price(5.0, 1.0, 0.1, *kind)[0] == math.inf
    assert math.isfinite(wait_with_discovery(5.0, 1.0, 0.1, 1e-15, *kind)[0])


def test_visits_that_are_free_come_at_once():
    assert wait_with_discovery(-math.inf, 1.0, 0.1, 0.5) == (0.0, 0.0)
    wait, slope = waits_with_discovery(-math.inf, np.ones(2), np.full(2, 0.1), np.array([0.0, 0.5]))
    assert (wait.tolist(), slope.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_pages_of_a_table_are_answered_each_by_its_own_price():
    price = np.array([0.0, 1.0, 2.0, 3.0])
    wait, slope = waits_with_discovery(price, np.ones(4), np.full(4, 0.1), np.array([0.0, 0.2, 0.0, 0.4]))
    for at in range(4):
        assert (wait[at], slope[at]) == pytest.approx(wait_with_discovery(price[at], 1.0, 0.1, [0.0, 0.2, 0.0, 0.4][at]), rel=1e-6)


def test_new_pages_count_in_the_unit_of_the_objective():
    """A page that is not found is stale; or its changes are not seen, at the rate that new pages are believed to have."""
    assert discovery_rate(2.0, "freshness", 0.3) == 2.0
    assert discovery_rate(2.0, "changes", 0.3) == 0.6
