"""What a user of one posterior may rely on."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from scipy.special import gammainc, gammaincinv

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior, update_posterior


def test_mean_median_and_interval_are_those_of_the_gamma_distribution() -> None:
    posterior = RatePosterior(2.5, 40.0)
    assert posterior.mean == pytest.approx(2.5 / 40.0)
    assert posterior.median == pytest.approx(gammaincinv(2.5, 0.5) / 40.0, rel=1e-9)
    assert posterior.interval() == pytest.approx(gammaincinv(2.5, [0.025, 0.975]) / 40.0, rel=1e-9)
    assert posterior.interval(0.5) == pytest.approx(gammaincinv(2.5, [0.25, 0.75]) / 40.0, rel=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
def test_many_visits_find_the_rate_even_at_irregular_intervals(rate: float) -> None:
    rng = np.random.default_rng(4)
    posterior = RatePosterior()
    for interval in rng.exponential(1.0 / rate, 4000):
        posterior.update(interval, rng.random() < -np.expm1(-rate * interval))
    assert posterior.mean == pytest.approx(rate, rel=0.07)
    low, high = posterior.interval(0.999)
    assert low < rate < high


def test_credible_intervals_hold_the_rate_as_often_as_they_say() -> None:
    """A hundred thousand pages whose rates come from the prior, forty visits each: the filter's approximation costs under two points."""
    rng = np.random.default_rng(5)
    n = 100_000
    rates = rng.gamma(1.0, 1.0, n)
    shape, time = np.ones(n), np.ones(n)
    for _ in range(40):
        interval = rng.exponential(1.0, n) + 1e-6
        shape, time = update_posterior(shape, time, interval, rng.random(n) < -np.expm1(-rates * interval))
    inside = gammainc(shape, rates * time)
    assert np.mean((inside > 0.05) & (inside < 0.95)) == pytest.approx(0.9, abs=0.02)
    assert np.mean(inside < 0.5) == pytest.approx(0.5, abs=0.02)


def test_a_hundred_thousand_changes_or_none_keep_it_usable() -> None:
    always, never = RatePosterior(), RatePosterior()
    for _ in range(100_000):
        always.update(1.0, True)
        never.update(1.0, False)
    assert never.mean == pytest.approx(1e-5, rel=1e-4)
    assert 5.0 < always.mean < 50.0  # n changes out of n say rate > log(n) or so, here 11.5
    assert always.interval()[0] < always.median < always.interval()[1]


def test_a_truth_value_of_numpy_and_the_numbers_0_and_1_are_bits() -> None:
    for bit in (True, np.True_, 1):
        posterior = RatePosterior(1.0, 1.0)
        posterior.update(1.0, bit)
        assert posterior.shape > 1.0


@pytest.mark.parametrize("bad", [0.0, -3.0, float("nan"), float("inf"), "soon", None])
def test_a_bad_interval_is_refused_and_changes_nothing(bad: float) -> None:
    posterior = RatePosterior(2.0, 3.0)
    with pytest.raises(InvalidProblemError, match=r"^interval(: expected numbers| is .*; expected a (positive, finite )?number)"):
        posterior.update(bad, True)
    assert (posterior.shape, posterior.time) == (2.0, 3.0)


@pytest.mark.parametrize("bad", [None, "no", 2])
def test_a_visit_without_a_bit_is_refused_rather_than_counted_as_unchanged(bad: bool) -> None:
    with pytest.raises(InvalidProblemError, match="changed"):
        RatePosterior().update(1.0, bad)


@pytest.mark.parametrize("name", ["shape", "time"])
def test_a_prior_that_is_no_distribution_is_refused(name: str) -> None:
    with pytest.raises(InvalidProblemError, match=name):
        RatePosterior(**{name: 0.0})


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_an_interval_needs_a_level_between_0_and_1(level: float) -> None:
    with pytest.raises(InvalidProblemError, match="level"):
        RatePosterior().interval(level)


def test_an_update_takes_at_most_ten_microseconds() -> None:
    posterior = RatePosterior()
    start = clock.process_time()
    for _ in range(10_000):
        posterior.update(1.5, True)
    assert clock.process_time() - start < 0.1
