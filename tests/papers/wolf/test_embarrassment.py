"""Weights from what is shown and clicked (eq. 8)."""

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import embarrassment_weights


def test_eq_8():
    """Term by term, over more pages than a block has."""
    rng = np.random.default_rng(0)
    incorrect, click, shown = rng.random(3000), rng.random((5, 10)), rng.random((3000, 5, 10))
    weights = embarrassment_weights(incorrect, click, shown)
    for i in (0, 1, 2047, 2048, 2999):
        assert weights[i] == pytest.approx(incorrect[i] * sum(click[k, j] * shown[i, k, j] for k in range(5) for j in range(10)))
    np.testing.assert_allclose(embarrassment_weights(incorrect, click, shown.astype(np.float32)), weights, rtol=1e-6)
    np.testing.assert_allclose(embarrassment_weights(incorrect[::-1], click, shown[::-1]), weights[::-1], rtol=1e-14)


def test_a_simulated_search_engine():
    """The weight is the frequency of queries that embarrass, were the copy always stale: 4.5 standard errors."""
    rng = np.random.default_rng(1)
    incorrect, click = 0.6, np.array([[0.5, 0.3], [0.2, 0.1]])
    shown = np.array([[0.1, 0.2], [0.3, 0.25]])
    queries = 200_000
    position = np.searchsorted(np.cumsum(shown), rng.random(queries))  # beyond the last: not shown
    clicked = rng.random(queries) < np.append(click.ravel(), 0.0)[position]
    embarrassed = clicked & (rng.random(queries) < incorrect)
    weight = embarrassment_weights([incorrect], click, shown[None])[0]
    assert abs(embarrassed.mean() - weight) < 4.5 * np.sqrt(weight / queries)


def test_luck():
    """No embarrassment by what is never shown, never clicked, or right all the same."""
    click, shown = [[1.0, 0.0]], [[[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]], [[1.0, 0.0]]]
    np.testing.assert_array_equal(embarrassment_weights([1.0, 1.0, 0.0, 1.0], click, shown), [0.0, 0.0, 0.0, 1.0])
    assert embarrassment_weights([], click, np.zeros((0, 1, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 1.5], [[1.0]], np.ones((2, 1, 1))), r"incorrect\[1\] is 1.5; expected a probability"),
        (([0.5, -1.0], [[1.0]], np.ones((2, 1, 1))), r"incorrect\[1\] is -1"),
        (([0.5], [1.0], np.ones((1, 1, 1))), r"click has shape \(1,\)"),
        (([0.5], [[1.0, np.inf]], np.ones((1, 1, 2))), r"click\[0, 1\] is inf"),
        (([0.5], [[1.0, 1.0]], np.ones((2, 1, 2))), r"shown has shape \(2, 1, 2\); expected \(1, 1, 2\)"),
        (([0.5] * 5000, [[1.0]], np.where(np.arange(5000) == 4000, -1.0, 1.0)[:, None, None]), r"shown\[4000, 0, 0\] is -1"),
        (([0.5], [[1.0]], [[["a"]]]), "shown: expected numbers"),
    ],
)
def test_bad_input_names_argument_and_index(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        embarrassment_weights(*arguments)
