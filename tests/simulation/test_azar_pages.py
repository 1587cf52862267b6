"""The pages of Azar's experiments are distributed as the paper says."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation import azar_pages


def test_zipf_utilities_have_exponent_2_and_range_10000():
    """Shares of the first values, and of the tail, within five standard errors of what they should be."""
    n = 200_000
    importance = azar_pages(n, "zipf", seed=1).importance
    expected = 1 / np.arange(1, 10_001) ** 2.0
    expected /= expected.sum()
    for low, high in [(1, 1), (2, 2), (3, 3), (10, 99), (100, 10_000)]:
        share = expected[low - 1 : high].sum()
        found = np.mean((importance >= low) & (importance <= high))
        assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / n), (low, high)
    assert (importance == np.round(importance)).all()
    assert importance.max() > 1000


@pytest.mark.parametrize("column", ["importance", "change_rate"])
def test_uniform_columns_are_uniform(column):
    """Above 0, at most 1, and as many in each tenth."""
    values = getattr(azar_pages(100_000, "uniform", seed=2), column)
    assert values.min() > 0
    assert values.max() <= 1
    counts, _ = np.histogram(values, bins=10, range=(0, 1))
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(9000)


def test_importance_and_change_rate_are_independent():
    for utilities in ("zipf", "uniform"):
        pages = azar_pages(100_000, utilities, seed=3)
        ranks = np.argsort(np.argsort(pages.importance, kind="stable"))
        assert abs(np.corrcoef(ranks, pages.change_rate)[0, 1]) < 5 / np.sqrt(100_000)


def test_a_seed_gives_its_pages_again_and_another_one_others():
    first, again, other = (azar_pages(50, "zipf", seed) for seed in (7, 7, 8))
    assert (first.change_rate == again.change_rate).all()
    assert (first.importance == again.importance).all()
    assert (first.change_rate != other.change_rate).any()
    assert (first.change_rate == azar_pages(50, "uniform", 7).change_rate).all()


def test_unknown_utilities_are_named():
    with pytest.raises(InvalidProblemError, match="'normal'; expected 'zipf' or 'uniform'"):
        azar_pages(5, "normal", 0)
