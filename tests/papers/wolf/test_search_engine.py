"""The search engine of Wolf et al.'s experiments."""

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import embarrassment_weights
from optimal_frontier.papers.wolf.search_engine import search_log


def test_weights_are_those_of_what_is_shown():
    log = search_log(500, seed=3)
    assert len(log) == 500
    np.testing.assert_allclose(log.weights, embarrassment_weights(log.incorrect, log.click, log.shown), rtol=1e-12)


def test_as_in_the_paper():
    """5 pages of 10; a page is returned somewhere, mostly near its centre; clicks fall as 1 / position, and by 0.8 more a page."""
    log = search_log(100_000, seed=0)
    assert log.click.shape == (5, 10)
    np.testing.assert_allclose(log.where.sum(axis=(1, 2)), 1.0)
    assert (log.where.reshape(50, 50).argmax(axis=1) == np.arange(50)).all()
    positions = np.arange(1, 51).reshape(5, 10)
    np.testing.assert_allclose(log.click * positions / 0.8 ** np.arange(5)[:, None], log.click[0, 0])
    assert 0.2 < log.click[0, 0] < 0.25
    assert log.incorrect.mean() == pytest.approx(0.5, abs=0.01)
    assert np.ptp(np.bincount(log.centre, minlength=50) / 2000) < 0.3
    assert (np.diff([log.weights[log.centre == c].mean() for c in (0, 5, 15, 25, 35)]) < 0).all()


def test_the_spread_is_the_standard_deviation_of_the_positions():
    """Away from the ends, where nothing is cut off."""
    middle = search_log(1, seed=0, spread=3.0).where[25].ravel()
    assert np.sqrt((middle * (np.arange(50) - 25) ** 2).sum()) == pytest.approx(3.0, rel=1e-9)


def test_same_seed_same_log():
    one, two, other = (search_log(50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)
    assert (one.weights != other.weights).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"spread": 0.0}, "spread is 0"),
        ({"next_page": 1.5}, "next_page is 1.5"),
        ({"positions": -1}, "positions is -1"),
    ],
)
def test_bad_input_names_the_argument(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        search_log(**{"n": 5, "seed": 1, **arguments})
