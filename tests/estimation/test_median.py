"""The median, which the planner takes of every page at once."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from scipy import special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior, posterior_median


def test_medians_agree_with_scipy_over_nine_decades_of_shape() -> None:
    shape = np.logspace(-3, 6, 5001)
    got, expected = posterior_median(shape, 1.0), special.gammaincinv(shape, 0.5)
    normal = expected > 1e-290
    np.testing.assert_allclose(got[normal], expected[normal], rtol=1e-9)


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


def test_a_million_medians_take_at_most_half_a_second() -> None:
    shape = np.exp(np.random.default_rng(3).normal(0.0, 2.0, 1_000_000))
    start = clock.process_time()
    posterior_median(shape, shape)
    assert clock.process_time() - start < 0.5
