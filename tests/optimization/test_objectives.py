"""What one more visit is worth: the derivative of the objectives."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.optimization import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.optimization.objectives import marginal_values


def marginal_value(importance: float, change_rate: float, rate: float, objective: str, policy: str = "periodic") -> float:
    (value,) = marginal_values(np.array([importance]), np.array([change_rate]), np.array([rate]), objective, policy)
    return float(value)


@pytest.mark.parametrize(("objective", "value"), [("freshness", freshness_periodic), ("changes", changes_periodic)])
@pytest.mark.parametrize("rate", [0.05, 1.0, 30.0])
def test_the_marginal_value_is_the_derivative_of_the_objective(objective, value, rate):
    step = rate * 1e-6
    slope = (value([2.0], [0.7], [rate + step]) - value([2.0], [0.7], [rate - step])) / (2 * step)
    assert marginal_value(2.0, 0.7, rate, objective) == pytest.approx(slope, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("rate", [0.05, 1.0, 30.0])
def test_the_marginal_value_of_memoryless_visits_is_the_derivative_of_azars_objective(rate):
    step = rate * 1e-6
    slope = (freshness_poisson([2.0], [0.7], [rate + step]) - freshness_poisson([2.0], [0.7], [rate - step])) / (2 * step)
    assert marginal_value(2.0, 0.7, rate, "freshness", "poisson") == pytest.approx(slope, rel=1e-4, abs=1e-9)
    assert marginal_value(2.0, 0.7, 0.0, "freshness", "poisson") == pytest.approx(2.0 / 0.7)


def test_the_marginal_value_has_no_cancellation():
    x = 1e-9
    assert marginal_value(1.0, x, 1.0, "changes") == pytest.approx(x * x / 2, rel=1e-6)
    assert marginal_value(1.0, 1e300, 1e-300, "changes") == 1.0
    assert marginal_value(1.0, 0.0, 1.0, "freshness") == marginal_value(1.0, 0.0, 0.0, "freshness", "poisson") == 0.0
    assert np.isfinite(marginal_value(1.0, 1e-4, 1.0, "freshness"))
