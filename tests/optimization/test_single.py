"""One page in plain floats gets what the array form gives it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.optimization import periodic_rate_at, periodic_rates_at


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("multiplier", [1e-6, 1e-2, 1.0, 100.0])
def test_one_page_gets_what_the_array_form_gives(objective: str, multiplier: float) -> None:
    rng = np.random.default_rng(7)
    importance, change_rate = np.exp(rng.uniform(-12, 12, (2, 500)))
    expected = periodic_rates_at(importance, change_rate, multiplier, objective)
    actual = [periodic_rate_at(w, c, multiplier, objective) for w, c in zip(importance.tolist(), change_rate.tolist(), strict=True)]
    np.testing.assert_allclose(actual, expected, rtol=6e-8, atol=0)


def test_bounds_hold_and_a_page_that_never_changes_gets_its_minimum() -> None:
    assert periodic_rate_at(1.0, 0.0, 1.0, min_rate=0.25) == 0.25
    assert periodic_rate_at(1.0, 5.0, 1.0, min_rate=0.25) == 0.25  # worth less than the price at any rate
    assert periodic_rate_at(1e6, 5.0, 1.0, max_rate=2.0) == 2.0
    assert periodic_rate_at(1.0, 0.1, 2.0, max_rate=math.inf) > 0.1
