"""Quantiles and medians of the posterior, against the incomplete gamma function that they invert."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior, posterior_median, posterior_quantile
from optimal_frontier.estimation.quantile import many_medians

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)

SHAPES = np.logspace(-3, 6, 721)


@pytest.mark.parametrize("level", [1e-12, 1e-6, 0.005, 0.025, 0.25, 0.5, 0.5000001, 0.75, 0.975, 0.995, 1 - 1e-6, 1 - 1e-12])
def test_the_level_lies_below_the_quantile_over_nine_decades_of_shape(level: float) -> None:
    """The relative error of the quantile, to first order: the miss of the smaller tail over the density of log x."""
    x = posterior_quantile(SHAPES, 1.0, level)
    normal = x > 1e-290
    a, x = SHAPES[normal], x[normal]
    miss = special.gammainc(a, x) - level if level <= 0.5 else (1.0 - level) - special.gammaincc(a, x)
    density = np.exp(a * np.log(x) - x - special.gammaln(a))
    assert np.abs(miss / density).max() < 1e-8
    assert (np.log(level) + special.gammaln(SHAPES + 1.0) < np.log(1e-289) * SHAPES)[~normal].all()  # only quantiles too small for a float


@bounded
@given(exponent=st.floats(-2.5, 5.5), level=st.floats(1e-9, 1 - 1e-9))
def test_the_posterior_puts_the_level_below_the_quantile(exponent: float, level: float) -> None:
    shape = 10.0**exponent
    x = posterior_quantile(shape, 1.0, level)
    if x > 1e-290:
        assert special.gammainc(shape, x) == pytest.approx(level, rel=1e-8)
        assert special.gammaincc(shape, x) == pytest.approx(1 - level, rel=1e-7)


@bounded
@given(shape=st.floats(1e-300, 1e15), time=st.floats(1e-300, 1e300), level=st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_every_legal_input_has_a_finite_answer(shape: float, time: float, level: float) -> None:
    assert 0.0 <= posterior_quantile(shape, time, level) < np.inf


def test_an_exponential_posterior_has_its_closed_form() -> None:
    levels = np.linspace(0.001, 0.999, 999)
    np.testing.assert_allclose(posterior_quantile(1.0, 4.0, levels), -np.log1p(-levels) / 4.0, rtol=1e-11)


def test_a_quantile_too_small_for_a_float_is_zero() -> None:
    assert posterior_quantile([1e-4, 1e-9, 1e-300], 1.0, 0.5).tolist() == [0.0, 0.0, 0.0]


def test_a_huge_time_does_not_spoil_a_small_quantile() -> None:
    # x is far below the smallest float, the quantile x / time is not
    assert posterior_quantile(1e-3, 1e-300, 0.25) == pytest.approx(
        np.exp((np.log(0.25) + special.gammaln(1.001)) / 1e-3 + 300 * np.log(10.0)), rel=1e-9
    )


def test_quantiles_rise_with_the_level_and_across_the_change_of_method() -> None:
    for shape in (0.01, 0.3, 0.999999, 1.0, 1.000001, 9.999, 10.0, 1e3, 1e6):
        levels = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 301), 0.5 + np.linspace(-1e-6, 1e-6, 21)])
        values = posterior_quantile(shape, 1.0, np.sort(levels))
        assert (np.diff(values) >= -1e-11 * values[1:]).all(), shape  # equal to rounding where levels are an ulp apart


def test_quantiles_are_continuous_in_the_shape_where_the_method_changes() -> None:
    for edge in (1.0, 10.0):
        for level in (0.025, 0.5, 0.975):
            below, at, above = posterior_quantile([edge * (1 - 1e-9), edge, edge * (1 + 1e-9)], 1.0, level)
            assert below <= at * (1 + 1e-11)
            assert at <= above * (1 + 1e-11)
            assert above == pytest.approx(below, rel=1e-7)


def test_shapes_broadcast_and_empty_input_gives_empty_output() -> None:
    assert posterior_quantile(np.ones((3, 1)), 1.0, [0.1, 0.5]).shape == (3, 2)
    assert posterior_quantile([], 1.0, 0.5).shape == (0,)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan")])
def test_a_level_that_is_no_probability_is_named(level: float) -> None:
    with pytest.raises(InvalidProblemError, match=rf"^level\[1\] is {level}; expected a number strictly between"):
        posterior_quantile(1.0, 1.0, [0.5, level])


def test_a_shape_that_is_not_positive_is_named_with_both_indices_in_two_dimensions() -> None:
    with pytest.raises(InvalidProblemError, match=r"^shape\[1, 0\]"):
        posterior_quantile([[1.0, 2.0], [0.0, 3.0]], 1.0, 0.5)


# the median, which the planner takes of every page at once


def test_half_of_the_posterior_lies_below_the_median_over_nine_decades_of_shape() -> None:
    shape = np.logspace(-3, 6, 5001)
    median = posterior_median(shape, 1.0)
    normal = median > 1e-290
    a, x = shape[normal], median[normal]
    density = np.exp(a * np.log(x) - x - special.gammaln(a))  # of log x
    assert normal.sum() > 4900
    assert np.abs((special.gammainc(a, x) - 0.5) / density).max() < 1e-9


def test_the_median_is_about_a_third_below_the_shape() -> None:
    shape = np.array([1e3, 1e6, 1e9, 1e15])
    np.testing.assert_allclose(posterior_median(shape, 1.0), shape - 1 / 3, rtol=1e-7)


def test_medians_rise_with_the_shape_across_every_seam() -> None:
    shape = np.unique(np.concatenate([np.logspace(-2, 3, 4001), 0.2 + np.linspace(-1e-7, 1e-7, 11), 2.0 + np.linspace(-1e-7, 1e-7, 11)]))
    assert (np.diff(posterior_median(shape, 1.0)) > 0.0).all()


def test_a_median_too_small_for_a_float_is_zero_and_a_large_one_stays_finite() -> None:
    assert posterior_median([1e-300, 1e-5], 1.0).tolist() == [0.0, 0.0]
    assert posterior_median(1e300, 1e-300) < np.inf
    assert RatePosterior(1e-300, 1.0).median == 0.0
    assert RatePosterior(1e300, 1e-300).median < np.inf


@pytest.mark.parametrize("shape", [1e-6, 0.002, 0.1, 0.2, 0.21, 1.0, 2.0, 2.1, 55.5, 1e7])
def test_one_page_and_many_pages_agree(shape: float) -> None:
    assert RatePosterior(shape, 7.0).median == pytest.approx(posterior_median([shape], [7.0])[0], rel=1e-13)


def test_empty_strided_and_broadcast_input_is_taken() -> None:
    assert posterior_median([], []).shape == (0,)
    assert posterior_median(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    strided = np.linspace(1.0, 9.0, 9)[::2]
    assert (posterior_median(strided, 1.0) == posterior_median(strided.copy(), 1.0)).all()


def test_a_time_that_is_not_positive_is_named() -> None:
    with pytest.raises(InvalidProblemError, match=r"^time\[1\]"):
        posterior_median([1.0, 1.0], [1.0, 0.0])


def test_medians_take_little_more_than_scipys_function_alone() -> None:
    shape = np.exp(np.random.default_rng(3).normal(0.0, 2.0, 300_000))
    spent: dict[bool, list[float]] = {True: [], False: []}
    for is_ours in [True, False] * 3:
        start = clock.process_time()
        posterior_median(shape, shape) if is_ours else scipy.special.gammaincinv(shape, 0.5)
        spent[is_ours].append(clock.process_time() - start)
    assert min(spent[True]) < 1.5 * min(spent[False])


def test_medians_of_many_pages_are_those_of_each() -> None:
    shape = np.concatenate([np.geomspace(1e-3, 1e6, 30_011), [0.05, 1e4, 1e-7, 1.0]])
    time = np.tile([1e-3, 1.0, 3e7], len(shape))[: len(shape)]
    np.testing.assert_allclose(many_medians(shape, time), posterior_median(shape, time), rtol=1e-7)
