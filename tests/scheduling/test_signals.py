"""When a page is due of which noisy signals tell: the scalar and the vectorised wait, and their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.optimization.signal_response import LEAST_UNANNOUNCED, MOST_EVIDENCE, signals_of_one
from optimal_frontier.scheduling.numbers import wait_at_price
from optimal_frontier.scheduling.signals import (
    evidence,
    joined_sources,
    signalled_wait,
    signalled_waits,
    unannounced,
    wait_with_sources,
)


def problem(n: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    importance, rate = rng.lognormal(0, 1, n), 10 ** rng.uniform(-7, 1, n)
    recall = rng.choice([0.0, 0.1, 0.5, 0.9, 0.99, 1.0], n)
    false = rate * 10 ** rng.uniform(-4, 3, n) * (rng.random(n) > 0.1)
    log_price = np.log(importance / rate * 10 ** rng.uniform(-9, 0.1, n))
    return log_price, importance, rate, recall, false


@pytest.mark.parametrize("objective", ["freshness", "changes"])
def test_one_page_and_many_have_equal_waits(objective) -> None:
    log_price, importance, rate, recall, false = problem(1500, 1)
    if objective == "changes":
        log_price = log_price + np.log(rate)
    waits, slopes = signalled_waits(log_price, importance, rate, recall, false, objective)
    one = np.array([signalled_wait(*map(float, page), objective) for page in zip(log_price, importance, rate, recall, false, strict=True)])
    assert np.isinf(waits).any()
    assert np.isfinite(waits).sum() > 1000
    # One step less, see `signal_response`.
    np.testing.assert_allclose(one[:, 0], waits, rtol=2e-3)
    np.testing.assert_allclose(one[:, 1], slopes, rtol=3e-2)


@pytest.mark.parametrize(("recall", "false_rate"), [(0.0, 0.0), (0.0, 3.0), (1e-10, 0.1), (0.6, 1e9)])
def test_signals_that_tell_nothing_change_no_doubt(recall, false_rate) -> None:
    """A source that is never right, or that says everything changes all the time: the page is due at the same doubt as without it."""
    wait, slope = signalled_wait(math.log(5.94), 1.0, 0.1, recall, false_rate)
    alone, alone_slope = wait_at_price(math.log(5.94), 1.0, 0.1)
    assert wait * unannounced(0.1, [recall]) == pytest.approx(alone * 0.1, rel=1e-6)
    assert slope * unannounced(0.1, [recall]) == pytest.approx(alone_slope * 0.1, rel=1e-3)


def test_a_source_that_says_always_now_is_worth_no_visit_and_costs_none() -> None:
    """Its signals are so many that they and the time run at the pace of the changes."""
    rate, recall, false = 1e-5, 0.6, 1.0
    pace = unannounced(rate, [recall]) + evidence(rate, recall, false) * (recall * rate + false)
    assert pace == pytest.approx(rate, rel=1e-4)


def test_the_slope_is_the_derivative_of_the_wait() -> None:
    for recall, false in ((0.6, 0.06), (0.9, 0.001), (0.3, 1.0), (1.0, 0.1)):
        below, _ = signalled_wait(1.0 - 1e-4, 1.0, 0.1, recall, false)
        above, _ = signalled_wait(1.0 + 1e-4, 1.0, 0.1, recall, false)
        assert signalled_wait(1.0, 1.0, 0.1, recall, false)[1] == pytest.approx((above - below) / 2e-4, rel=1e-3)


def test_waits_stay_finite_where_every_change_is_told_of() -> None:
    wait, slope = signalled_wait(1.0, 1.0, 0.1, 1.0, 0.0)
    assert 0 < wait < 10 / (0.1 * LEAST_UNANNOUNCED)
    assert 0 < slope <= 2 * wait
    # A signal that is never wrong is worth more than any wait: the page is due at once.
    assert evidence(0.1, 1.0, 0.0) / unannounced(0.1, [1.0]) > wait
    assert evidence(0.1, 1.0, 0.0) == MOST_EVIDENCE


def test_a_price_of_nothing_is_paid_at_once_and_one_beyond_the_worth_never() -> None:
    assert signalled_wait(-math.inf, 1.0, 0.1, 0.6, 0.06) == (0.0, 0.0)
    assert signalled_wait(math.log(10.0), 1.0, 0.1, 0.6, 0.06) == (math.inf, 0.0)
    assert signalled_wait(0.0, 1.0, 0.0, 0.6, 0.06) == (math.inf, 0.0)


def test_a_false_source_beside_a_good_one_adds_nothing() -> None:
    alone, _ = signalled_wait(1.0, 1.0, 0.1, 0.6, 0.06)
    for useless in ((0.0, 5.0), (0.5, 1e8)):
        both, _ = wait_with_sources(1.0, 1.0, 0.1, [0.6, useless[0]], [0.06, useless[1]])
        clock = unannounced(0.1, [0.6, useless[0]]) / unannounced(0.1, [0.6])
        assert both * clock == pytest.approx(alone, rel=2e-3)


def test_no_source_and_one_source() -> None:
    assert wait_with_sources(1.0, 1.0, 0.1, [], []) == wait_at_price(1.0, 1.0, 0.1)
    assert wait_with_sources(1.0, 1.0, 0.1, [0.6], [0.06]) == signalled_wait(1.0, 1.0, 0.1, 0.6, 0.06)
    assert joined_sources(0.1, [0.6], [0.06]) == pytest.approx(signals_of_one(0.1, 0.6, 0.06))
    assert joined_sources(0.1, [0.6, 0.4], [0.0, 0.0]) == pytest.approx(signals_of_one(0.1, 0.76, 0.0))


def test_a_page_that_is_hardly_worth_its_price_has_a_finite_slope_whatever_sources_tell() -> None:
    """Where sources tell of nearly all changes, and a visit is just worth its price, the gain rises by less than floats can hold."""
    rate, recalls = 1.15e-6, (0.9999911, 0.647, 0.762, 0.999935)
    wait, slope = wait_with_sources(math.log((1.0 - 1e-8) / rate), 1.0, rate, recalls, (3.5e-9, 9.4e-9, 5.0e-9, 1.0e-9))
    assert 0.0 < wait < math.inf
    assert 0.0 < slope < math.inf
