"""The test of bits against the Poisson model: level and power by simulation; and the Weibull model that fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.bursts import LEAST_SHAPE, Bursts, fit_weibull, follow_bursts, follow_many


def bits(shape, interval, visits, rng):
    """Whether a page that changes at the times of a Weibull process of mean 1 had changed, of visits evenly spaced."""
    scale = 1.0 / math.gamma(1.0 + 1.0 / shape)
    times = np.cumsum(scale * rng.weibull(shape, int(3 * (visits * interval + 100))))
    edges = 50.0 + interval * np.arange(visits + 1)
    return np.diff(np.searchsorted(times, edges)) > 0


def followed(shape, interval, visits, rng):
    """What is kept after each visit, by the posterior of a page that begins with the prior."""
    posterior, bursts, history = RatePosterior(1.0, 1.0), Bursts(), []
    for bit in bits(shape, interval, visits, rng):
        chance = -math.expm1(-posterior.shape * math.log1p(interval / posterior.time))
        bursts = follow_bursts(bursts, chance, bool(bit))
        posterior.update(interval, bool(bit))
        history.append(bursts)
    return history


@pytest.mark.parametrize("interval", [0.2, 1.0])
def test_poisson_pages_are_hardly_ever_rejected(interval):
    """At any of 400 visits of 100 pages: at most three of them; and z is about standard normal at the end."""
    rng = np.random.default_rng(1)
    runs = [followed(1.0, interval, 400, rng) for _ in range(100)]
    assert sum(any(bursts.is_bursty for bursts in run) for run in runs) <= 3
    last = np.array([run[-1].z for run in runs])
    assert abs(last.mean()) < 0.3
    assert 0.8 < last.std() < 1.2


@pytest.mark.parametrize(("shape", "visits"), [(0.5, 400), (0.35, 250)])
def test_bursty_pages_are_found_and_their_shape_is_about_right(shape, visits):
    """Visited once per mean time between changes: nine of ten within so many visits."""
    rng = np.random.default_rng(2)
    runs = [followed(shape, 1.0, visits, rng) for _ in range(40)]
    assert sum(any(bursts.is_bursty for bursts in run) for run in runs) >= 36
    chance = np.mean(bits(shape, 1.0, 20_000, rng))
    found, interval = fit_weibull([chance] * 40, [max(run[-1].correlation, 0.0) for run in runs])
    assert found.mean() == pytest.approx(shape, abs=0.1)
    assert interval.mean() == pytest.approx(1.0, rel=0.35)


@pytest.mark.parametrize("shape", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("interval", [0.05, 0.7, 3.0])
def test_the_fit_finds_the_model_that_made_the_correlation(shape, interval):
    """By the incomplete gamma function."""
    rate = math.gamma(1.0 + 1.0 / shape)

    def changed(age):
        return scipy.special.gammainc(1.0 / shape, (age * rate) ** shape)

    chance = changed(interval)
    correlation = ((1 - changed(2 * interval)) - (1 - chance) ** 2) / (chance * (1 - chance))
    (found,), (length,) = fit_weibull([chance], [max(correlation, 0.0)])
    assert found == pytest.approx(shape, abs=0.006)
    assert length == pytest.approx(interval, rel=0.05)


def test_what_no_model_gives_is_the_nearest_one():
    shape, interval = fit_weibull([0.5, 1e-9, 1.0], [1.0, 0.0, 0.0])
    assert shape[0] == LEAST_SHAPE
    assert np.isfinite(interval).all()
    with pytest.raises(InvalidProblemError, match=r"correlation\[1\]"):
        fit_weibull([0.5, 0.5], [0.1, -0.1])


def test_the_first_bit_has_nothing_before_it():
    bursts = follow_bursts(Bursts(), 0.25, True)
    assert bursts == Bursts(0.75)
    assert (bursts.z, bursts.correlation, bursts.is_bursty) == (0.0, 0.0, False)
    assert follow_bursts(bursts, 0.5, False) == Bursts(-0.5, -0.375, 0.140625, 0.25)


def test_many_pages_are_followed_as_one_is():
    rng = np.random.default_rng(5)
    ones, many = [Bursts()] * 50, np.zeros((4, 50))
    for _ in range(40):
        chance, bits = rng.uniform(0.05, 0.95, 50), rng.random(50) < 0.5
        ones = [follow_bursts(*row) for row in zip(ones, chance.tolist(), bits.tolist(), strict=True)]
        many = follow_many(many, chance, bits)
    np.testing.assert_allclose(many, np.transpose(ones), rtol=1e-12)
