"""Probabilities of update times learned from bits, against numerical integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation.update_probabilities import MOST_COUNTS, learn_update, stated_beta

GRID = (np.arange(2000) + 0.5) / 2000


def moments(betas, passed, index):
    """Mean and variance of one time's probability after "changed", by a grid over all of them."""
    never = []
    for (a, b), n in zip(betas, passed, strict=True):
        density = GRID ** (a - 1) * (1 - GRID) ** (b - 1)
        never.append((density * (1 - GRID) ** n).sum() / density.sum())
    rest = np.prod([value for at, value in enumerate(never) if at != index])
    a, b = betas[index]
    density = GRID ** (a - 1) * (1 - GRID) ** (b - 1) * (1 - rest * (1 - GRID) ** passed[index])
    density /= density.sum()
    mean = (density * GRID).sum()
    return mean, (density * (GRID - mean) ** 2).sum()


@pytest.mark.parametrize(
    ("betas", "passed"),
    [
        ([(2.0, 3.0), (4.0, 2.0)], [1, 1]),
        ([(2.0, 3.0), (4.0, 2.0), (1.0, 9.0)], [2, 0, 1]),
        ([(3.0, 30.0)], [4]),
        ([(2.5, 7.5), (2.5, 7.5)], [40, 41]),
    ],
)
def test_a_change_after_several_times_keeps_mean_and_variance(betas, passed):
    learned = learn_update(betas, passed, True)
    for index, (a, b) in enumerate(learned):
        if not passed[index]:
            assert (a, b) == betas[index]
            continue
        mean, variance = moments(betas, passed, index)
        assert a / (a + b) == pytest.approx(mean, rel=1e-4)
        assert a * b / (a + b) ** 2 / (a + b + 1) == pytest.approx(variance, rel=1e-3)


def test_one_time_and_no_change_are_exact():
    assert learn_update([(2.0, 3.0), (4.0, 2.0)], [0, 1], True) == [(2.0, 3.0), (5.0, 2.0)]
    assert learn_update([(2.0, 3.0), (4.0, 2.0)], [3, 1], False) == [(2.0, 6.0), (4.0, 3.0)]
    assert learn_update([(2.0, 3.0)], [0], True) == [(2.0, 3.0)]


@pytest.mark.parametrize(("apart_every", "tolerance"), [(1, 0.08), (4, 0.25)])
def test_probabilities_are_found_whatever_was_stated(apart_every, tolerance):
    """Well where each time is visited; where most bits mix both, what they do together is known well, and which of them is likelier."""
    rng = np.random.default_rng(5)
    true = np.array([0.2, 0.9])
    betas = [stated_beta(1.0), stated_beta(0.5)]
    for day in range(400):
        updates = rng.random(2) < true
        for passed in ([1, 0], [0, 1]) if day % apart_every == 0 else ([1, 1],):
            betas = learn_update(betas, passed, bool((updates & np.array(passed, bool)).any()))
    means = np.array([a / (a + b) for a, b in betas])
    assert means == pytest.approx(true, abs=tolerance)
    assert means[0] < 0.5 * means[1]
    assert 1 - np.prod(1 - means) == pytest.approx(1 - np.prod(1 - true), abs=0.05)


def test_what_was_seen_long_ago_fades():
    """And nothing but numbers comes out of extremes."""
    betas = [stated_beta(0.0)]
    for _ in range(1000):
        betas = learn_update(betas, [1], True)
    assert sum(betas[0]) == pytest.approx(MOST_COUNTS)
    for _ in range(300):
        betas = learn_update(betas, [1], False)
    assert betas[0][0] / MOST_COUNTS < 0.3
    for passed in ([10**9, 0], [10**9, 10**9]):
        for changed in (True, False):
            learned = learn_update([(1e-6, 200.0), (200.0, 1e-6)], passed, changed)
            assert all(np.isfinite(pair).all() and min(pair) > 0 for pair in learned)
