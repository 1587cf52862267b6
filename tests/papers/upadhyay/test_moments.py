"""Moment matching: equation 7 by another root-finder, its clipping, and Lemma 3 put to the test."""

from __future__ import annotations

import math
import time as clock
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import bias_reduced_rate, mle_rate, moment_confidence, moment_rate

Floats = NDArray[np.float64]


def test_it_solves_equation_7_as_scipy_does_in_a_thousand_random_histories() -> None:
    rng = np.random.default_rng(1)
    solved = 0
    while solved < 1000:
        visits = int(rng.integers(2, 61))
        intervals = np.exp(rng.normal(0.0, rng.choice([0.0, 0.5, 2.0]), visits)) * 10.0 ** rng.uniform(-4, 4)
        changed = rng.random(visits) < -np.expm1(-rng.lognormal(0.0, 1.5) / np.median(intervals) * intervals)
        if not 0 < changed.sum() < visits:
            continue

        def equation_7(log_rate: float, intervals: Floats = intervals, none: float = 1.0 - changed.mean()) -> float:
            return float(np.exp(-math.exp(log_rate) * intervals).mean() - none)

        low, high = math.log(1e-3 / intervals.sum()), math.log(50.0 / intervals.min())
        root = optimize.brentq(equation_7, low, high, xtol=1e-13, rtol=1e-13)
        assert moment_rate(intervals, changed) == pytest.approx(math.exp(root), rel=1e-8)
        solved += 1


def test_it_is_exact_to_rounding_over_twelve_decades_of_interval() -> None:
    """Against the equation in 60 digits: it changes sign within 1e-12 of the answer, for every number of changes."""
    rng = np.random.default_rng(2)
    with localcontext() as context:
        context.prec = 60
        for _ in range(6):
            intervals = 10.0 ** rng.uniform(-6, 6, 12)
            for changes in range(1, 12):
                rate = Decimal(moment_rate(intervals, np.arange(12) < changes))
                below, above = (
                    sum((-Decimal(i) * rate * (1 + sign * Decimal("1e-12"))).exp() for i in intervals.tolist()) for sign in (-1, 1)
                )
                assert above < 12 - changes < below


def test_a_root_between_intervals_forty_decades_apart_is_found_in_few_steps_and_exactly() -> None:
    """Ten visits after ages, all changed, and twenty at once, none changed: any rate in between solves it to 17 digits, one to 40."""
    long, short = [1e20, 3e20] * 5, [1e-20, 7e-20] * 10
    rate = Decimal(moment_rate(long + short, [True] * 10 + [False] * 20))
    with localcontext() as context:
        context.prec = 80
        below, above = (sum((-Decimal(i) * rate * (1 + sign * Decimal("1e-13"))).exp() for i in long + short) for sign in (-1, 1))
        assert above < 20 < below


def test_one_change_in_a_million_visits_and_one_visit_without_lose_no_digit() -> None:
    rng = np.random.default_rng(3)
    intervals = rng.uniform(0.5, 1.5, 1_000_000)
    seen = moment_rate(intervals, np.arange(intervals.size) == 5)
    assert math.fsum(-np.expm1(-seen * intervals)) == pytest.approx(1.0, rel=1e-13)
    unseen = moment_rate(intervals, np.arange(intervals.size) != 5)
    assert math.fsum(np.exp(-unseen * intervals)) == pytest.approx(1.0, rel=1e-12)


def test_with_equal_intervals_it_is_the_maximum_likelihood_estimate() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 30, 500)
    intervals = np.repeat(10.0 ** rng.uniform(-6, 6, 500), counts)
    changed = rng.random(intervals.size) < np.repeat(rng.random(500), counts)
    np.testing.assert_allclose(moment_rate(intervals, changed, counts=counts), mle_rate(intervals, changed, counts=counts), rtol=1e-13)


def test_never_changed_gives_0_and_all_changed_a_finite_rate() -> None:
    assert moment_rate([1.0, 9.0], [False, False]) == 0.0
    assert moment_rate([4.0] * 5, [True] * 5) == pytest.approx(math.log(11.0) / 4.0, rel=1e-14)
    assert moment_rate([4.0] * 5, [True] * 5) == pytest.approx(bias_reduced_rate([4.0] * 5, [True] * 5), rel=1e-14)
    ragged = [1.0, 20.0, 300.0]
    rate = moment_rate(ragged, [True] * 3)
    assert sum(math.exp(-rate * i) for i in ragged) == pytest.approx(3 / 7, rel=1e-13)
    assert rate > moment_rate(ragged, [True, True, False])


def test_the_solution_is_clipped_to_the_bounds_of_each_page() -> None:
    intervals, changed, counts = [2.0] * 9, [0, 0, 0, 1, 1, 1, 1, 0, 1], [3, 3, 3]
    inside = math.log(3.0) / 2.0
    np.testing.assert_allclose(moment_rate(intervals, changed, 0.1, 3.0, counts), [0.1, 3.0, inside], rtol=1e-14)
    got = moment_rate(intervals, changed, [0.2, 0.1, 0.6], [1.0, 7.0, 0.8], counts)
    np.testing.assert_allclose(got, [0.2, 7.0, 0.6], rtol=1e-14)
    assert moment_rate([2.0] * 3, [True] * 3, lower=50.0) == 50.0


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
def test_lemma_3_covers_at_least_as_often_as_it_says_in_ten_thousand_simulations(rate: float, delta: float) -> None:
    """Ten thousand pages at irregular intervals, each with its own, 40 or 400 visits; rates up to the very bound."""
    rng = np.random.default_rng([5, round(rate * 100), round(delta * 100)])
    pages, lower, upper = 10_000, 0.01, 1.0
    counts = np.where(np.arange(pages) % 20 == 0, 400, 40)
    intervals = rng.exponential(1.5, counts.sum()) + 1e-9
    changed = rng.random(intervals.size) < -np.expm1(-rate * intervals)
    half_width = moment_confidence(intervals, upper, delta, counts)
    off = np.abs(moment_rate(intervals, changed, lower, upper, counts) - rate)
    covered = np.mean(off <= half_width)
    assert covered >= 1.0 - delta
    # a half-width above upper - lower would cover whatever the estimate: most of these say something
    assert np.mean(half_width < upper - lower) > 0.5


def test_lemma_3_is_nearly_tight_where_hoeffding_and_the_bound_on_the_slope_are() -> None:
    """Rate at the bound, even odds, equal intervals: what is left of the width is Hoeffding's own, 1.36 sigma for 1 sigma of 1/2."""
    rng = np.random.default_rng(6)
    pages, visits, delta = 10_000, 400, 0.32
    upper = math.log(2.0)
    changed = rng.random(pages * visits) < 0.5
    counts = np.full(pages, visits)
    half_width = moment_confidence(np.ones(changed.size), upper, delta, counts)
    off = np.abs(moment_rate(np.ones(changed.size), changed, counts=counts) - upper)
    covered = np.mean(off <= half_width)
    expected = special.erf(math.sqrt(math.log(2.0 / delta)))  # half-width over sigma is sqrt(2 log(2/delta))
    assert covered == pytest.approx(expected, abs=0.01)
    assert covered >= 1.0 - delta


def test_the_half_width_is_the_formula() -> None:
    intervals = np.array([0.5, 1.0, 4.0, 9.0])
    expected = math.sqrt(4 * math.log(2 / 0.1) / 2) / float(np.sum(intervals * np.exp(-0.3 * intervals)))
    assert moment_confidence(intervals, 0.3, 0.1) == pytest.approx(expected, rel=1e-14)
    many = moment_confidence(np.tile(intervals, 2), [0.3, 0.6], [0.1, 0.2], [4, 4])
    assert many[0] == pytest.approx(expected, rel=1e-14)
    assert many[1] == moment_confidence(intervals, 0.6, 0.2)


def test_the_half_width_is_infinite_without_visits_or_beyond_the_range_of_a_float_and_finite_up_to_there() -> None:
    got = moment_confidence([1.0, 1.0, 2e6], 1.0, 0.1, [0, 2, 1])
    assert got[0] == np.inf
    assert np.isfinite(got[1])
    assert got[2] == np.inf
    assert moment_confidence([], 1.0, 0.1) == np.inf
    assert np.isfinite(moment_confidence([700.0], 1.0, 0.1))
    assert moment_confidence([1e300, 1.0], 1e300, 0.1) == np.inf
    assert np.isfinite(moment_confidence([1e300, 1e-300], 1e300, 0.1))


@pytest.mark.parametrize("delta", [0.0, 1.0, float("nan")])
def test_a_risk_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(InvalidProblemError, match=rf"^delta is {delta}; expected a number strictly between 0 and 1"):
        moment_confidence([1.0], 1.0, delta)


@pytest.mark.parametrize("upper", [0.0, -1.0, float("inf"), float("nan")])
def test_the_half_width_needs_a_finite_bound(upper: float) -> None:
    with pytest.raises(InvalidProblemError, match=rf"^upper\[1\] is {upper}; expected a positive, finite number"):
        moment_confidence([1.0, 1.0], [1.0, upper], 0.1, [1, 1])


def test_a_hundred_thousand_pages_with_twenty_visits_take_at_most_two_seconds() -> None:
    rng = np.random.default_rng(7)
    intervals = rng.exponential(1.0, 2_000_000) + 1e-9
    changed = rng.random(2_000_000) < -np.expm1(-np.repeat(rng.lognormal(0.0, 1.5, 100_000), 20) * intervals)
    start = clock.process_time()
    moment_rate(intervals, changed, counts=np.full(100_000, 20))
    assert clock.process_time() - start < 2.0  # 0.25 s on an idle core
