"""The test of bits against the Poisson model: level and power by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.bursts import Bursts, follow_bursts


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
def test_bursty_pages_are_found(shape, visits):
    """Visited once per mean time between changes: nine of ten within so many visits."""
    rng = np.random.default_rng(2)
    runs = [followed(shape, 1.0, visits, rng) for _ in range(40)]
    assert sum(any(bursts.is_bursty for bursts in run) for run in runs) >= 36
    assert np.mean([run[-1].score / run[-1].spread for run in runs]) > 0.15


def test_the_first_bit_has_nothing_before_it():
    bursts = follow_bursts(Bursts(), 0.25, True)
    assert bursts == Bursts(0.75)
    assert (bursts.z, bursts.is_bursty) == (0.0, False)
    assert follow_bursts(bursts, 0.5, False) == Bursts(-0.5, -0.375, 0.140625, 0.25)
