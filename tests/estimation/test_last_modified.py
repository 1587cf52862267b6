"""One visit at which the page says when it changed: Bayes' rule by numerical integration, what must hold, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import posterior_median, update_posterior
from optimal_frontier.estimation.last_modified import (
    RESOLVED,
    update_one_with_age,
    update_one_with_first_age,
    update_with_age,
    update_with_first_age,
)

NAN = float("nan")


def moments_by_integration(shape, time, likelihood):
    """Mean and variance of the rate under Gamma(shape, time) and a likelihood."""

    def weighted(power):
        def density(x):
            return x ** (shape - 1 + power) * np.exp(-time * x) * likelihood(x)

        return integrate.quad(density, 0.0, 60.0 * (3 + shape) / time, epsabs=0.0, epsrel=1e-12, limit=1000)[0]

    mean = weighted(1) / weighted(0)
    return mean, weighted(2) / weighted(0) - mean**2


@pytest.mark.parametrize(("shape", "time"), [(1.0, 1.0), (0.5, 3.0), (4.0, 2.0), (20.0, 5.0)])
@pytest.mark.parametrize(("interval", "age"), [(1.0, 0.0), (1.0, 0.3), (7.0, 7.0), (30.0, 2.0)])
def test_a_change_at_a_known_time_matches_numerical_integration_of_bayes_rule(shape, time, interval, age):
    """Likelihood x e^(-age x): one change at L, none since, nothing known of before."""
    mean, variance = moments_by_integration(shape, time, lambda x: x * np.exp(-age * x))
    (a,), (b,) = update_with_age([shape], [time], [interval], [age], [True])
    assert a / b == pytest.approx(mean, rel=1e-9)
    assert a / b**2 == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_a_first_age_matches_numerical_integration_of_its_tempered_likelihood(weight):
    mean, variance = moments_by_integration(1.5, 2.0, lambda x: (x * np.exp(-3.0 * x)) ** weight)
    a, b = update_with_first_age(1.5, 2.0, 3.0, weight=weight)
    assert a / b == pytest.approx(mean, rel=1e-9)
    assert a / b**2 == pytest.approx(variance, rel=1e-9)


def test_ages_of_pages_as_they_change_are_what_the_likelihood_says():
    """Pages with rates from the prior, visited once: at the posterior's mean the mean rate comes out right, whatever the age."""
    rng = np.random.default_rng(4)
    rates = rng.gamma(2.0, 1.0 / 3.0, 400_000)
    back = rng.exponential(1.0 / rates)
    changed = back <= 1.5
    shape, time = update_with_age(2.0, 3.0, 1.5, np.where(changed, back, NAN), changed)
    for kind in (changed & (back < 0.3), changed & (back > 1.0), ~changed):
        assert (shape / time)[kind].mean() == pytest.approx(rates[kind].mean(), rel=0.01)


def test_where_an_age_says_nothing_the_bit_counts_alone():
    """Unknown, unchanged, longer than the interval, or not resolved in it."""
    ages, changed = [NAN, 0.5, 4.0, 0.5], [True, False, True, True]
    intervals = [3.0, 3.0, 3.0, 0.99 * RESOLVED * 0.02]
    got = update_with_age(1.5, 2.0, intervals, ages, changed, resolution=0.02)
    np.testing.assert_array_equal(got, update_posterior(np.full(4, 1.5), 2.0, intervals, changed))
    (resolved,), _ = update_with_age([1.5], 2.0, RESOLVED * 0.02, 0.5, True, resolution=0.02)
    assert resolved == 2.5


def test_one_page_and_many_pages_agree():
    rng = np.random.default_rng(5)
    shape, time, intervals, ages = (np.exp(rng.normal(size=100)) for _ in range(4))
    changed = rng.random(100) < 0.6
    many = update_with_age(shape, time, intervals, ages, changed)
    first = update_with_first_age(shape, time, ages, weight=0.5)
    for i in range(100):
        one = update_one_with_age(shape[i], time[i], intervals[i], ages[i], bool(changed[i]))
        assert one == pytest.approx((many[0][i], many[1][i]), rel=1e-14)
        assert update_one_with_first_age(shape[i], time[i], ages[i], 0.5) == (first[0][i], first[1][i])
    assert update_one_with_age(1.0, 2.0, 3.0, None, False) == (1.0, 5.0)


def test_ages_make_the_estimate_after_ten_visits_better():
    """By a tenth at a change per visit."""
    rng = np.random.default_rng(6)
    plain = aged = (np.ones(20_000), np.ones(20_000))
    for _ in range(10):
        spent, back = rng.exponential(1.0, 20_000), rng.exponential(1.0, 20_000)
        plain = update_posterior(*plain, spent, back <= spent)
        aged = update_with_age(*aged, spent, back, back <= spent)
    error, better = (np.sqrt(((posterior_median(*one) - 1.0) ** 2).mean()) for one in (plain, aged))
    assert better < 0.9 * error


@pytest.mark.parametrize(("bad", "said"), [(-1.0, "-1.0"), (float("inf"), "inf")])
def test_an_age_out_of_range_is_named_with_its_index(bad, said):
    for update in (lambda ages: update_with_age(1.0, 1.0, 1.0, ages, True), lambda ages: update_with_first_age(1.0, 1.0, ages)):
        with pytest.raises(InvalidProblemError, match=rf"^ages\[1\] is {said}; expected a non-negative, finite number, or NaN"):
            update([NAN, bad, bad])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.0, 1.0, 1.0, 1.0, True), {}, "shape is 0.0; expected a positive"),
        ((1.0, 1.0, 0.0, 1.0, True), {}, "intervals is 0.0; expected a positive"),
        ((1.0, 1.0, 1.0, 1.0, None), {}, "changed is None; expected a boolean"),
        ((1.0, 1.0, 1.0, ["old"], True), {}, "ages: expected numbers"),
        ((1.0, 1.0, [1.0, 2.0], [1.0, 2.0, 3.0], True), {}, r"ages \(3,\)"),
        ((1.0, 1.0, 1.0, 1.0, True), {"resolution": -1.0}, "resolution is -1.0; expected a non-negative"),
    ],
)
def test_unusable_arguments_are_named(arguments, options, message):
    with pytest.raises(InvalidProblemError, match=message):
        update_with_age(*arguments, **options)


def test_read_only_empty_and_broadcast_input_is_taken_and_left_as_it_was():
    ages = np.array([0.5, NAN, 2.0])
    ages.flags.writeable = False
    shape, time = update_with_age(1.0, 1.0, 1.0, ages, [1, 1, 0])
    assert shape.shape == time.shape == (3,)
    assert update_with_age([], [], [], [], [])[0].shape == (0,)
    with pytest.raises(InvalidProblemError, match=r"weight is -0.5; expected a non-negative"):
        update_with_first_age(1.0, 1.0, 1.0, weight=-0.5)
