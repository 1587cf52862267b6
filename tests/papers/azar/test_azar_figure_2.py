"""Figure 2: the line of the threshold parts the pages that are visited from the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.papers.azar.azar_figure_2 import azar_figure_2
from optimal_frontier.simulation import azar_pages


@pytest.mark.parametrize("n", [2, 50, 200, 5000])
def test_the_threshold_parts_the_pages(n):
    """A page is visited if and only if importance / change probability exceeds it (the paper's words to the figure)."""
    for seed in range(5):
        found = azar_figure_2(n, seed)
        assert (found.visited == (found.importance / found.change_probability > found.threshold)).all()
        assert found.misplaced == 0
        assert found.rates.sum() == pytest.approx(1.0, rel=1e-12)
        assert 0 < found.visited.sum() < n or n == 2


def test_visited_pages_have_equal_marginal_values():
    """d/dp of eq. 3 is the threshold wherever p > 0."""
    found = azar_figure_2(300, 1)
    weight, change, rate = (column[found.visited] for column in (found.importance, found.change_probability, found.rates))
    assert weight * change / (rate + change - rate * change) ** 2 == pytest.approx(found.threshold, rel=1e-9)


def test_freshness_is_the_share_of_eq_3():
    found = azar_figure_2(300, 1)
    terms = found.importance * found.rates / (found.rates + found.change_probability * (1 - found.rates))
    assert found.freshness == pytest.approx(terms.sum() / found.importance.sum(), rel=1e-12)


def test_pages_on_the_wrong_side_are_counted():
    found = azar_figure_2(200, 0)
    assert replace(found, threshold=0.0).misplaced == 200 - found.visited.sum()
    assert replace(found, threshold=np.inf).misplaced == found.visited.sum()


def test_pages_are_those_of_the_seed():
    pages = azar_pages(40, "uniform", 3)
    found = azar_figure_2(40, 3)
    assert (found.importance == pages.importance).all()
    assert (found.change_probability == pages.change_rate).all()
