"""Quantiles of the posterior, against scipy's inverse of the incomplete gamma function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import posterior_quantile

bounded = settings(max_examples=300, derandomize=True, deadline=None, database=None)

SHAPES = np.logspace(-3, 6, 721)


def reference(shape: np.ndarray, level: float) -> np.ndarray:
    return special.gammaincinv(shape, level) if level <= 0.5 else special.gammainccinv(shape, 1.0 - level)


@pytest.mark.parametrize("level", [1e-12, 1e-6, 0.005, 0.025, 0.25, 0.5, 0.5000001, 0.75, 0.975, 0.995, 1 - 1e-6, 1 - 1e-12])
def test_quantiles_agree_with_scipy_over_nine_decades_of_shape(level: float) -> None:
    got, expected = posterior_quantile(SHAPES, 1.0, level), reference(SHAPES, level)
    normal = expected > 1e-290
    np.testing.assert_allclose(got[normal], expected[normal], rtol=1e-8)
    assert (got[~normal] <= 1e-289).all()


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
    with pytest.raises(InvalidProblemError, match=r"^level\[1\] must lie strictly between"):
        posterior_quantile(1.0, 1.0, [0.5, level])


def test_a_shape_that_is_not_positive_is_named_with_both_indices_in_two_dimensions() -> None:
    with pytest.raises(InvalidProblemError, match=r"^shape\[1, 0\]"):
        posterior_quantile([[1.0, 2.0], [0.0, 3.0]], 1.0, 0.5)
