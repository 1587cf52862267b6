"""The law of dispatch: who goes first, and how the price follows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling.numbers import numbers_at, wait_at_price
from optimal_frontier.scheduling.price_law import candidates, log_price_after, log_price_towards, price_step, rank


@given(st.floats(0.01, 100.0), st.floats(1e-3, 10.0), st.floats(0.02, 0.6), st.floats(-0.02, 0.02))
def test_the_rank_is_the_logarithm_of_what_a_visit_is_worth_to_first_order(importance, change_rate, share, late):
    """Over the price, a little before or after the deadline; where the slope is not capped."""
    log_price = math.log(share * importance / change_rate)
    wait, slope = wait_at_price(log_price, importance, change_rate)
    numbers = numbers_at(wait, slope, log_price, 0.0, math.inf)
    elapsed = wait + late * slope
    worth = math.log(importance / change_rate * float(marginal_share(np.array([change_rate * elapsed]))[0]))
    if slope < 1.99 * wait:
        assert rank(elapsed, numbers.a + numbers.s * log_price, *numbers[1:]) == pytest.approx(
            worth - log_price, abs=0.05 * abs(late) + 1e-9
        )


def test_pages_at_a_bound_go_by_the_share_of_their_interval():
    """Pinned, past the longest interval, before the shortest one, due at once: no slope is used, and the rank is finite."""
    assert rank(30.0, 20.0, 0.0, 20.0, 20.0) == pytest.approx(1.0)
    assert rank(90.0, math.inf, 0.0, 1.0, 60.0) == pytest.approx(1.0)
    assert rank(5.0, 2.0, 1.0, 10.0, 60.0) == pytest.approx(-1.0)
    assert 1e6 < rank(5.0, 0.0, 0.0, 0.0, 0.0) < math.inf
    assert rank(5.0, math.inf, 0.0, 1.0, math.inf) == -math.inf or math.isnan(rank(5.0, math.inf, 0.0, 1.0, math.inf))


@given(st.floats(-50.0, 50.0), st.floats(-1e6, 1e6), st.floats(1e-6, 1.0))
def test_a_visit_moves_the_price_by_its_rank_and_no_more_than_a_step(log_price, ranked, step):
    moved = log_price_after(log_price, ranked, step) - log_price
    assert abs(moved) <= step * (1 + 1e-9) + 1e-12
    assert moved == pytest.approx(ranked if abs(ranked) <= step else math.copysign(step, ranked), abs=1e-12 + 1e-9 * step)


@given(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0), st.floats(0.0, 1.0))
def test_a_plan_draws_the_price_as_far_as_no_clocks_run(log_price, planned, moved):
    """Downwards in small steps."""
    drawn = log_price_towards(log_price, planned, moved)
    assert drawn - log_price == pytest.approx((1.0 - moved) * max(planned - log_price, -0.05), abs=1e-12)


def test_the_step_is_the_gain_over_the_response():
    """Half the gain for few pages; never more than the gain."""
    assert price_step(1000, 500.0) == 1 / 500
    assert price_step(49, 25.0) == 0.5 / 25
    assert price_step(1000, 0.0) == 1.0
    assert [candidates(n) for n in (1, 9, 10, 64)] == [12, 12, 13, 67]
