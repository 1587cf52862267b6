"""One visit: the filter against 150-digit arithmetic, numerical integration, and what must hold whatever the numbers."""

from __future__ import annotations

import time as clock
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior, update_posterior

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)


def decades(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


def moments_by_decimal(shape: float, time: float, interval: float) -> tuple[float, float]:
    """The textbook formula for a change, cancellation and all, with digits to spare."""
    with localcontext() as context:
        context.prec = 150
        a, b, i = Decimal(shape), Decimal(time), Decimal(interval)
        log_s = (b / (b + i)).ln()
        e0, e1, e2 = (1 - ((a + k) * log_s).exp() for k in range(3))
        m1 = a / b * e1 / e0
        variance = a * (a + 1) / b**2 * e2 / e0 - m1 * m1
        return float(m1 * m1 / variance), float(m1 / variance)


@bounded
@given(shape=decades(-3, 6), time=decades(-6, 6), ratio=decades(-12, 12))
def test_a_change_matches_the_exact_moments_over_24_decades_of_interval_times_rate(shape: float, time: float, ratio: float) -> None:
    interval = time * ratio
    expected = moments_by_decimal(shape, time, interval)
    got = update_posterior([shape], [time], [interval], [True])
    np.testing.assert_allclose([got[0][0], got[1][0]], expected, rtol=2e-14)


@pytest.mark.parametrize(("shape", "time", "interval"), [(1.0, 1.0, 1.0), (0.5, 3.0, 7.0), (4.0, 2.0, 0.1), (20.0, 5.0, 30.0)])
def test_a_change_matches_numerical_integration_of_bayes_rule(shape: float, time: float, interval: float) -> None:
    from scipy import integrate  # half a second, which all workers would pay

    def weighted(power: int) -> float:
        def density(x: float) -> float:
            return float(x ** (shape - 1 + power) * np.exp(-time * x) * -np.expm1(-interval * x))

        return float(integrate.quad(density, 0.0, 60.0 * (1 + shape) / time, epsabs=0.0, epsrel=1e-11, limit=500)[0])

    mean, square = weighted(1) / weighted(0), weighted(2) / weighted(0)
    (new_shape,), (new_time,) = update_posterior([shape], [time], [interval], [True])
    assert new_shape / new_time == pytest.approx(mean, rel=1e-8)
    assert new_shape / new_time**2 == pytest.approx(square - mean**2, rel=1e-7)


def test_no_change_adds_the_interval_and_nothing_else() -> None:
    shape, time = update_posterior([0.3, 2.0], [1.5, 4.0], [2.5, 8.0], [False, False])
    assert shape.tolist() == [0.3, 2.0]
    assert time.tolist() == [4.0, 12.0]


def test_a_change_seen_at_once_counts_one_change_and_no_time() -> None:
    shape, time = update_posterior(3.0, 2.0, 1e-13, True)
    assert shape == pytest.approx(4.0, rel=1e-12)
    assert time == pytest.approx(2.0, rel=1e-12)


def test_a_change_after_an_age_tells_nothing() -> None:
    shape, time = update_posterior(3.0, 2.0, 1e15, True)
    assert shape == pytest.approx(3.0, rel=1e-12)
    assert time == pytest.approx(2.0, rel=1e-12)


tame = st.floats(min_value=1e-300, max_value=1e300)


@bounded
@given(shape=tame, time=tame, interval=st.floats(min_value=5e-324, max_value=1.7e308), changed=st.booleans())
def test_no_input_makes_it_fall_overflow_or_vanish(shape: float, time: float, interval: float, changed: bool) -> None:
    (new_shape,), (new_time,) = update_posterior([shape], [time], [interval], [changed])
    assert shape <= new_shape < np.inf
    assert time <= new_time < np.inf


@bounded
@given(shape=decades(-3, 6), time=decades(-6, 6), ratio=decades(-12, 12), changed=st.booleans())
def test_one_page_and_many_pages_agree(shape: float, time: float, ratio: float, changed: bool) -> None:
    (many_shape,), (many_time,) = update_posterior([shape], [time], [time * ratio], [changed])
    one = RatePosterior(shape, time)
    one.update(time * ratio, changed)
    assert one.shape == pytest.approx(many_shape, rel=1e-14)
    assert one.time == pytest.approx(many_time, rel=1e-14)


@bounded
@given(shape=decades(-2, 4), time=decades(-3, 3), ratio=decades(-6, 6), unit=decades(-6, 6))
def test_the_unit_of_time_does_not_matter(shape: float, time: float, ratio: float, unit: float) -> None:
    interval = time * ratio
    seconds = update_posterior([shape], [time], [interval], [True])
    other = update_posterior([shape], [time * unit], [interval * unit], [True])
    np.testing.assert_allclose(other[0], seconds[0], rtol=1e-12)
    np.testing.assert_allclose(other[1], seconds[1] * unit, rtol=1e-12)


@bounded
@given(shape=decades(-2, 4), time=decades(-3, 3), ratio=decades(-6, 6))
def test_a_change_raises_the_mean_and_no_change_lowers_it(shape: float, time: float, ratio: float) -> None:
    a, b = update_posterior([shape, shape], [time, time], [time * ratio] * 2, [True, False])
    mean = a / b
    assert mean[0] >= shape / time * (1 - 1e-14)
    assert mean[1] <= shape / time


def test_the_pages_do_not_see_each_other() -> None:
    rng = np.random.default_rng(1)
    columns = [np.exp(rng.normal(size=50)) for _ in range(3)]
    bits = rng.random(50) < 0.5
    order = rng.permutation(50)
    straight = update_posterior(*columns, bits)
    shuffled = update_posterior(*(column[order] for column in columns), bits[order])
    assert (straight[0][order] == shuffled[0]).all()
    assert (straight[1][order] == shuffled[1]).all()


def test_read_only_strided_empty_and_broadcast_input_is_taken_and_left_as_it_was() -> None:
    shape = np.linspace(1.0, 2.0, 10)[::2]
    shape.flags.writeable = False
    before = shape.copy()
    new_shape, new_time = update_posterior(shape, 1.0, 3.0, [0, 1, 0, 1, 1])
    assert (shape == before).all()
    assert new_shape.shape == new_time.shape == (5,)
    new_shape[0] = new_time[0] = 1.0  # writable, and no view of the input
    assert shape[0] == before[0]
    assert update_posterior([], [], [], [])[0].shape == (0,)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["shape", "time", "intervals"])
def test_a_number_that_is_not_positive_and_finite_is_named_with_its_first_index(name: str, bad: float) -> None:
    arguments: dict[str, list[float] | list[bool]] = {
        "shape": [1.0] * 4,
        "time": [1.0] * 4,
        "intervals": [1.0] * 4,
        "changed": [True] * 4,
    }
    arguments[name] = [1.0, 1.0, bad, bad]
    with pytest.raises(InvalidProblemError, match=rf"^{name}\[2\] is {bad}; expected a positive, finite number"):
        update_posterior(**arguments)


@pytest.mark.parametrize("bits", [[True, None], [0, 2], ["yes", "no"], [1.0, float("nan")]])
def test_a_bit_that_is_not_a_boolean_is_refused(bits: list[object]) -> None:
    with pytest.raises(InvalidProblemError, match="changed"):
        update_posterior([1.0, 1.0], [1.0, 1.0], [1.0, 1.0], bits)  # type: ignore[arg-type]  # the point of the test


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match=r"intervals \(3,\)"):
        update_posterior([1.0, 1.0], 1.0, [1.0, 1.0, 1.0], True)


def test_things_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="intervals: expected numbers"):
        update_posterior(1.0, 1.0, ["soon"], True)


def test_a_million_pages_take_at_most_a_second() -> None:
    rng = np.random.default_rng(2)
    columns = [np.exp(rng.normal(0.0, 3.0, 1_000_000)) for _ in range(3)]
    bits = rng.random(1_000_000) < 0.5
    start = clock.process_time()
    update_posterior(*columns, bits)
    assert clock.process_time() - start < 1.0  # 1 us a page
