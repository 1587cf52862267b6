"""The step of the filter for visits that signals caused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.signalled import update_signalled


def test_it_has_the_moments_of_the_posterior() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        shape, time, interval, recall = rng.uniform(0.5, 5), rng.uniform(1, 5), rng.uniform(0.1, 10), rng.uniform(0.01, 0.99)
        false, signals = 10 ** rng.uniform(-2, 1), int(rng.integers(0, 7))

        def density(x: float, *, a=shape, b=time, t=interval, r=recall, f=false, n=signals) -> float:
            seen = math.exp(-r * t * x) * ((1.0 + r * x / f) ** n - math.exp(-(1.0 - r) * t * x))
            return seen * x ** (a - 1.0) * math.exp(-b * x)

        total, mean, square = (quad(lambda x, k=k: density(x) * x**k, 0, 60, limit=500)[0] for k in range(3))
        found, until = update_signalled(shape, time, interval, True, signals, recall, false)
        assert found / until == pytest.approx(mean / total, rel=1e-6)
        assert found / until**2 == pytest.approx(square / total - (mean / total) ** 2, rel=1e-6)


def test_without_signals_it_is_the_ordinary_step() -> None:
    for changed in (False, True):
        assert update_signalled(2.0, 5.0, 3.0, changed, 2, 0.0, 0.1) == update_one(2.0, 5.0, 3.0, changed)
        assert update_signalled(2.0, 5.0, 3.0, changed, 0, 1e-12, 0.1) == pytest.approx(update_one(2.0, 5.0, 3.0, changed))


def test_where_every_change_is_told_of_it_counts_changes() -> None:
    assert update_signalled(2.0, 5.0, 3.0, True, 1, 1.0, 0.0) == pytest.approx((3.0, 8.0))
    assert update_signalled(2.0, 5.0, 3.0, True, 2, 1.0, 0.0) == pytest.approx((4.0, 8.0))
    # A change without a word of it, against all that is believed: it is counted, too.
    assert update_signalled(2.0, 5.0, 3.0, True, 0, 1.0, 0.0) == (3.0, 8.0)


@pytest.mark.parametrize(("recall", "false"), [(0.6, 0.6), (0.9, 0.05), (0.3, 0.5)])
def test_visits_that_signals_cause_leave_no_bias(recall, false) -> None:
    """Pages of rate 1, visited at every signal or after 2: the posterior comes to the true rate. The ordinary step finds too much."""
    rng = np.random.default_rng(3)
    shape, time = ordinary = 1.0, 1.0
    for _ in range(8000):
        change, told_false = rng.exponential(1.0), rng.exponential(1.0 / false)
        now, changed, signals = 0.0, False, 0
        while True:
            now_next = min(change, told_false)
            if now_next >= 2.0:
                now = 2.0
                break
            now = now_next
            if change <= told_false:
                changed = True
                change += rng.exponential(1.0)
                if rng.random() >= recall:
                    continue
            signals = 1
            break
        shape, time = update_signalled(shape, time, now, changed, signals, recall, false)
        ordinary = update_one(*ordinary, now, changed)
    assert shape / time == pytest.approx(1.0, rel=0.05)
    assert ordinary[0] / ordinary[1] > 1.08


def test_many_signals_are_joined() -> None:
    few, many = (update_signalled(2.0, 5.0, 3.0, True, n, 0.6, f) for n, f in ((6, 2.0), (6000, 2000.0)))
    assert many[0] / many[1] == pytest.approx(few[0] / few[1], rel=1e-3)
