"""What holds for every batch estimator: units, order, ragged histories, extremes, and what they say to bad input."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import bias_reduced_rate, mle_rate, moment_confidence, moment_rate, naive_rate

Estimator = Callable[..., Any]
ESTIMATORS = [naive_rate, bias_reduced_rate, mle_rate, moment_rate]
every = pytest.mark.parametrize("estimate", ESTIMATORS)
bounded = settings(max_examples=60, derandomize=True, deadline=None, database=None)

visits = st.lists(st.tuples(st.floats(-6, 6).map(lambda exponent: 10.0**exponent), st.booleans()), min_size=1, max_size=12)


def split(history: list[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [interval for interval, _ in history], [changed for _, changed in history]


@every
@bounded
@given(history=visits, unit=st.floats(-9, 9).map(lambda exponent: 10.0**exponent))
def test_the_unit_of_time_does_not_matter(estimate: Estimator, history: list[tuple[float, bool]], unit: float) -> None:
    intervals, changed = split(history)
    rate = estimate(intervals, changed)
    assert estimate([i * unit for i in intervals], changed) == pytest.approx(rate / unit, rel=1e-12, abs=0.0)


@every
@bounded
@given(history=visits, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_visits_does_not_matter(estimate: Estimator, history: list[tuple[float, bool]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(history))
    rate = estimate(*split(history))
    assert estimate(*split([history[i] for i in order])) == pytest.approx(rate, rel=1e-12, abs=0.0)


@every
@bounded
@given(histories=st.lists(st.one_of(visits, st.just([])), max_size=8))
def test_many_ragged_pages_at_once_are_the_pages_one_by_one(estimate: Estimator, histories: list[list[tuple[float, bool]]]) -> None:
    intervals, changed = split([visit for history in histories for visit in history])
    together = estimate(intervals, changed, counts=[len(history) for history in histories])
    assert together.shape == (len(histories),)
    alone = [estimate(*split(history)) for history in histories]
    np.testing.assert_allclose(together, alone, rtol=1e-13)
    if histories:
        half_width = moment_confidence(intervals, 0.5, 0.1, [len(history) for history in histories])
        np.testing.assert_allclose(half_width, [moment_confidence(split(history)[0], 0.5, 0.1) for history in histories], rtol=1e-13)


@every
@bounded
@given(history=visits)
def test_the_answer_is_finite_and_0_exactly_if_nothing_ever_changed(estimate: Estimator, history: list[tuple[float, bool]]) -> None:
    intervals, changed = split(history)
    rate = estimate(intervals, changed)
    assert isinstance(rate, float)
    assert 0.0 <= rate < np.inf
    assert (rate > 0.0) == any(changed)


@every
@pytest.mark.parametrize("exponent", [-9, -6, -3, 0, 3, 6, 9])
def test_twelve_decades_of_intervals_at_any_rate_give_finite_rates_without_a_warning(estimate: Estimator, exponent: int) -> None:
    rng = np.random.default_rng(exponent + 9)
    counts = rng.integers(0, 40, 2000)
    intervals = 10.0 ** rng.uniform(-6, 6, counts.sum())
    changed = rng.random(intervals.size) < -np.expm1(-(10.0**exponent) * intervals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = estimate(intervals, changed, counts=counts)
    assert np.isfinite(rates).all()
    assert (rates >= 0.0).all()


@every
@pytest.mark.parametrize("bits", [[True, True, False], [True, False, True], [False, True, True], [True, True, True], [False, False, False]])
def test_intervals_at_the_ends_of_the_floats_do_no_harm(estimate: Estimator, bits: list[bool]) -> None:
    for intervals in ([5e-324, 1.0, 1.7e308], [1.7e308] * 3, [5e-324] * 3, [1e-300, 2e-300, 3e-300]):
        assert 0.0 <= estimate(intervals, bits) < np.inf


@every
def test_the_estimates_of_a_known_history(estimate: Estimator) -> None:
    """Four visits a time unit apart, two changes: 2/4; log(4.5/2.5); log(4/2) twice."""
    expected = {naive_rate: 0.5, bias_reduced_rate: np.log(1.8), mle_rate: np.log(2.0), moment_rate: np.log(2.0)}
    assert estimate([1.0] * 4, [True, False, False, True]) == pytest.approx(expected[estimate], rel=1e-14)


@every
def test_no_visit_is_no_change(estimate: Estimator) -> None:
    assert estimate([], []) == 0.0
    assert estimate([], [], counts=[]).shape == (0,)
    assert estimate([], [], counts=[0, 0]).tolist() == [0.0, 0.0]
    assert estimate([2.0], [True], counts=[0, 1, 0])[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("estimate", [mle_rate, moment_rate])
def test_no_visit_is_the_lower_bound(estimate: Estimator) -> None:
    assert estimate([], [], 0.5, 2.0) == 0.5
    assert estimate([2.0], [True], [0.1, 0.2], [1.0, 2.0], [0, 1]).tolist() == [0.1, 2.0]


@every
def test_read_only_strided_and_integer_input_is_taken_and_left_as_it_was(estimate: Estimator) -> None:
    intervals = np.linspace(1.0, 2.0, 10)[::2]
    intervals.flags.writeable = False
    before = intervals.copy()
    bits = np.array([1, 0, 1, 1, 0])
    rate = estimate(intervals, bits)
    assert (intervals == before).all()
    assert estimate(intervals.tolist(), bits.astype(bool)) == rate
    assert estimate(np.array([1, 2, 3]), [1.0, 0.0, 1.0]) == estimate([1.0, 2.0, 3.0], [True, False, True])
    assert estimate(intervals, bits, counts=np.array([2.0, 3.0])).shape == (2,)


@every
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_an_interval_that_is_not_positive_and_finite_is_named_with_its_first_index(estimate: Estimator, bad: float) -> None:
    with pytest.raises(InvalidProblemError, match=rf"^intervals\[2\] is {bad}; expected a positive, finite number"):
        estimate([1.0, 1.0, bad, bad], [True] * 4)


@every
@pytest.mark.parametrize(
    ("intervals", "changed", "counts", "message"),
    [
        ([1.0, 1.0], [True, None], None, r"changed\[1\] is None; expected a boolean"),
        ([1.0, 1.0], [True, 2], None, r"changed\[1\] is 2; expected a boolean"),
        ([1.0, 1.0], [[True], [True, False]], None, "changed: expected an array of booleans"),
        ([1.0, 1.0], [True], None, "changed has 1 entries for 2 intervals; index 1 is the first without a counterpart"),
        ([1.0], [True, True, False], None, "changed has 3 entries for 1 intervals; index 1 is the first"),
        ([[1.0, 2.0]], [[True, False]], None, r"intervals: expected one dimension, got shape \(1, 2\)"),
        (1.0, True, None, r"intervals: expected one dimension, got shape \(\)"),
        ([1.0, None], [True, True], None, r"intervals\[1\] is None; expected a number"),
        ([1.0, "soon"], [True, True], None, r"intervals: expected numbers, got an array of type"),
        ([1.0, 1j], [True, True], None, r"intervals: expected numbers, got an array of type"),
        ([[1.0], [1.0, 2.0]], [True, True], None, "intervals: expected an array of numbers"),
        ([1.0] * 4, [True] * 4, [1, 2], "counts adds up to 3 visits, but there are 4"),
        ([1.0] * 4, [True] * 4, [1, 2, 2, 9], r"counts\[2\] goes up to visit 5, but there are 4"),
        ([1.0] * 4, [True] * 4, [5, -1], r"counts\[1\] is -1.0; expected a whole number of visits, 0 or more"),
        ([1.0] * 4, [True] * 4, [1.5, 2.5], r"counts\[0\] is 1.5; expected a whole number"),
        ([1.0] * 4, [True] * 4, [4, float("nan")], r"counts\[1\] is nan; expected a whole number"),
        ([1.0] * 4, [True] * 4, [2**62, 2**62], r"counts\[0\] goes up to visit"),
        ([1.0] * 4, [True] * 4, 4, "counts: expected one dimension"),
        ([1.0] * 4, [True] * 4, [[4]], "counts: expected one dimension"),
    ],
)
def test_bad_histories_are_refused_with_the_argument_and_the_first_offender(
    estimate: Estimator, intervals: object, changed: object, counts: object, message: str
) -> None:
    with pytest.raises(InvalidProblemError, match=f"^{message}"):
        estimate(intervals, changed, counts=counts)


@pytest.mark.parametrize("estimate", [mle_rate, moment_rate])
@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (-1.0, None, "lower is -1.0; expected a non-negative, finite number"),
        (float("inf"), None, "lower is inf; expected a non-negative, finite number"),
        ([0.1, float("nan")], None, r"lower\[1\] is nan; expected a non-negative"),
        (None, 0.0, "upper is 0.0; expected a positive number"),
        (None, [1.0, float("nan")], r"upper\[1\] is nan; expected a positive number"),
        ([0.1, 3.0], [1.0, 2.0], r"lower\[1\] is 3.0, above upper\[1\], 2.0"),
        ([0.1, 0.2, 0.3], None, r"lower: expected one number or shape \(2,\), got shape \(3,\)"),
        (None, "high", "upper: expected numbers, got"),
    ],
)
def test_bad_bounds_are_refused_with_the_argument_and_the_first_offender(
    estimate: Estimator, lower: object, upper: object, message: str
) -> None:
    with pytest.raises(InvalidProblemError, match=f"^{message}"):
        estimate([1.0, 1.0], [True, False], lower, upper, [1, 1])


@pytest.mark.parametrize("estimate", [mle_rate, moment_rate])
def test_one_page_has_one_bound(estimate: Estimator) -> None:
    with pytest.raises(InvalidProblemError, match=r"^lower: expected one number, got shape \(2,\)"):
        estimate([1.0, 1.0], [True, False], lower=[0.1, 0.2])
