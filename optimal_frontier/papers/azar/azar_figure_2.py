"""Azar's figure 2: which pages the optimum visits, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.papers.azar.discrete import solve_discrete
from optimal_frontier.simulation.azar_pages import Floats, azar_pages


@dataclass(frozen=True)
class RefreshRates:
    """The optimum of Azar's Problem 1 on one set of pages.

    Attributes
    ----------
    importance : ndarray (n,)
        Weight of each page.
    change_probability : ndarray (n,)
        Probability that it changes in a slot.
    rates : ndarray (n,)
        Probability that it is visited in a slot; they sum to 1.
    threshold : float
        The multiplier: a page is visited if and only if importance / change_probability exceeds it.
    freshness : float
        Share of the importance that is up to date.
    """

    importance: Floats
    change_probability: Floats
    rates: Floats
    threshold: float
    freshness: float

    @property
    def visited(self) -> NDArray[np.bool_]:
        """Which pages have a rate above 0."""
        return self.rates > 0

    @property
    def misplaced(self) -> int:
        """Pages on the wrong side of the line importance = threshold x change_probability; there should be none."""
        above = self.importance > self.threshold * self.change_probability
        return int(np.count_nonzero(above != self.visited))


def azar_figure_2(pages: int, seed: int) -> RefreshRates:
    """Solve Problem 1 for pages with importance and change probability uniform on (0, 1].

    Parameters
    ----------
    pages : int
        Number of pages.
    seed : int
        Of the pages.

    Returns
    -------
    RefreshRates

    References
    ----------
    Azar et al. 2018, figure 2 and Algorithm 1. The paper does not say how its data were drawn.

    Examples
    --------
    >>> found = azar_figure_2(100, seed=1)
    >>> int(found.visited.sum()), round(found.threshold, 2), found.misplaced
    (24, 2.63, 0)
    """
    world = azar_pages(pages, "uniform", seed)
    solution = solve_discrete(world.importance, world.change_rate)
    freshness = solution.objective / float(world.importance.sum())
    return RefreshRates(world.importance, world.change_rate, solution.rates, solution.multiplier, freshness)
