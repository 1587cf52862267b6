"""Azar's Algorithm 1: one fetch per slot."""

import numpy as np
import pytest
from scipy.optimize import minimize

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import solve_discrete


@pytest.mark.parametrize("seed", range(60))
def test_discrete_optimum(seed):
    """Algorithm 1: sorting or not, sums to 1, KKT, and the multiplier bounds every page's marginal value; probabilities up to 1."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 10, 500]))
    importance = 10.0 ** rng.uniform(-3, 3, n)
    probability = 10.0 ** rng.uniform(-8, 0, n)
    if seed % 3 == 0:
        probability[rng.random(n) < 0.3] = 1.0
    if seed % 5 == 0 and n > 1:
        importance[0] = 0.0
        probability[-1] = 0.0
    fast, printed = solve_discrete(importance, probability), solve_discrete(importance, probability, method="sort")
    np.testing.assert_allclose(fast.rates, printed.rates, rtol=1e-6, atol=1e-9)
    if fast.unused:
        assert not ((importance > 0) & (probability > 0)).any()
        return
    p = fast.rates
    assert p.sum() == pytest.approx(1, rel=1e-9)
    assert (p >= 0).all()
    assert fast.kkt_residual < 1e-6
    stale = p + probability - p * probability
    changing = probability > 0
    marginal = importance[changing] * probability[changing] / stale[changing] ** 2
    assert (marginal <= fast.multiplier * (1 + 1e-6)).all()
    assert fast.objective == pytest.approx(
        (importance[changing] * p[changing] / stale[changing]).sum() + importance[~changing].sum(), rel=1e-9
    )


def test_discrete_no_worse_than_slsqp():
    rng = np.random.default_rng(2)
    importance, probability = rng.random(7) + 0.1, np.append(rng.random(6), 1.0)

    def value(p):
        return (importance * p / (p + probability - p * probability)).sum()

    found = minimize(
        lambda p: -value(p), np.full(7, 1 / 7), method="SLSQP", bounds=[(0, 1)] * 7,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1}, options={"ftol": 1e-14},
    )  # fmt: skip
    solution = solve_discrete(importance, probability)
    assert solution.objective >= -found.fun * (1 - 1e-9)
    assert solution.objective == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize(
    ("importance", "change_probability", "message"),
    [([1.0, 1.0], [0.5, 1.5], r"change_probability\[1\]"), ([1.0, -1.0], [0.5, 0.5], r"importance\[1\]")],
)
def test_bad_input_names_argument_and_index(importance, change_probability, message):
    with pytest.raises(InvalidProblemError, match=message):
        solve_discrete(importance, change_probability)
