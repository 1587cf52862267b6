"""Weights and importance from counted results."""

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import embarrassment_weights
from optimal_frontier.papers.wolf.result_counts import LEAST_IMPORTANCE, ResultCounts, importance_of_weights
from optimal_frontier.papers.wolf.search_engine import search_log


def test_weights_are_those_of_eq_8():
    """Frequencies written out in full arrays and given to `embarrassment_weights` make the same weights."""
    rng = np.random.default_rng(3)
    pages, result_pages, positions, queries = 40, 3, 4, 500
    incorrect = rng.random(pages)
    counts = ResultCounts()
    shown = np.zeros((pages, result_pages, positions))
    clicks = np.zeros((result_pages, positions))
    for _ in range(queries):
        reach = rng.integers(1, result_pages + 1)  # not every client goes on to the last
        for at, page in enumerate(rng.permutation(pages)[: reach * positions]):
            k, j = divmod(at, positions)
            clicked = bool(rng.random() < 0.5 / (at + 1))
            counts.add(int(page), (k + 1, j + 1), clicked=clicked, incorrect=incorrect[page])
            shown[page, k, j] += 1
            clicks[k, j] += clicked
    assert (len(counts), counts.queries, counts.rows, counts.clicks) == (pages, queries, shown.sum(), clicks.sum())
    wanted = embarrassment_weights(incorrect, clicks / shown.sum(axis=0), shown / queries)
    np.testing.assert_allclose(counts.weights(), wanted, rtol=1e-12)


def test_a_long_log_gives_the_weights_that_it_was_drawn_from():
    """Pages drawn by `search_log`, each shown in its places and clicked on by the paper's frequencies."""
    log = search_log(30, seed=4)
    rng = np.random.default_rng(5)
    counts = ResultCounts()
    rounds, places = 4000, log.click.size
    where = log.where[log.centre]
    for page in range(len(log)):
        for at in rng.choice(places, rounds, p=where[page].ravel()):
            clicked = bool(rng.random() < log.click.ravel()[at])
            counts.add(page, divmod(int(at), log.click.shape[1]), clicked=clicked, incorrect=log.incorrect[page])
    measured = counts.weights() * counts.queries / rounds
    # Five standard errors of the clicks in the first place, sqrt(0.22 x 0.78 / 2400), times the share of a page that is shown there, 0.09.
    assert np.abs(measured - log.weights).max() < 5 * 0.0085 * 0.09
    # Deep places have some ten clicks each, of which a page sees a dozen places.
    np.testing.assert_allclose(measured, log.weights, rtol=0.3)


def test_incorrect_is_1_unless_given_and_a_mean_where_given_often():
    counts = ResultCounts()
    for page, incorrect in ((0, None), (1, 0.25), (1, 0.75), (1, None), (2, 0.0)):
        counts.add(page, (1, page + 1), clicked=True, incorrect=incorrect)
    np.testing.assert_allclose(counts.weights(), [1 / 3, 0.5, 1 / 3 * 0.0])


def test_pages_in_between_that_were_never_shown_weigh_nothing():
    counts = ResultCounts()
    counts.add(2, (1, 1), clicked=True)
    np.testing.assert_array_equal(counts.weights(), [0.0, 0.0, 1.0])
    assert ResultCounts().weights().shape == (0,)
    assert ResultCounts().queries == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((-1, None), "page is -1"), ((0, 1.5), r"incorrect is 1.5; expected a probability"), ((0, float("nan")), "incorrect is nan")],
)
def test_what_cannot_be_counted_is_refused(arguments, message):
    counts = ResultCounts()
    with pytest.raises(InvalidProblemError, match=message):
        counts.add(arguments[0], (1, 1), clicked=False, incorrect=arguments[1])
    assert counts.rows == 0


@pytest.mark.parametrize("weights", [[3.0], [1.0, 2.0, 3.0], [0.0, 1.0], [1e-300, 1e-299], np.random.default_rng(0).pareto(0.3, 10_000)])
def test_importance_has_mean_1_and_is_never_0(weights):
    """And is in proportion to the weights, wherever it is above the least."""
    importance = importance_of_weights(weights)
    assert importance.mean() == pytest.approx(1.0, rel=1e-12)
    assert importance.min() >= LEAST_IMPORTANCE
    above = importance > LEAST_IMPORTANCE
    ratio = importance[above] / np.asarray(weights)[above]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    assert (np.diff(importance[np.argsort(weights)]) >= 0).all()


@pytest.mark.parametrize(
    ("weights", "least", "message"),
    [
        ([0.0, 0.0], 0.1, "weights are all 0"),
        ([], 0.1, "weights are all 0"),
        ([1.0, -1.0], 0.1, r"weights\[1\]"),
        ([1.0], 0.0, "least is 0.0"),
        ([1.0], 1.0, "least is 1.0"),
    ],
)
def test_no_importance_of_what_is_no_weight(weights, least, message):
    with pytest.raises(InvalidProblemError, match=message):
        importance_of_weights(weights, least=least)
