"""What a search engine shows and what its clients click on, as in the experiments of Wolf et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.papers.wolf.embarrassment import embarrassment_weights

Floats = NDArray[np.float64]
#: Result pages a query, and positions on each.
RESULT_PAGES: Final = 5
POSITIONS: Final = 10
#: With which a client goes on to the next result page.
NEXT_PAGE: Final = 0.8
#: Standard deviation, in positions, of where a page is returned over queries. The paper names none.
SPREAD: Final = 5.0


@dataclass(frozen=True)
class SearchLog:
    """How pages do in a search engine.

    Attributes
    ----------
    incorrect : ndarray (n,)
        Probability that a stale copy gives an incorrect response.
    click : ndarray (k, j)
        Probability that what is returned in position j of result page k is clicked on.
    centre : ndarray of int (n,)
        Position, counted through all result pages from 0, around which each page is returned.
    where : ndarray (k j, k, j)
        Probability of being returned in each position, by centre.
    """

    incorrect: Floats
    click: Floats
    centre: NDArray[np.int64]
    where: Floats

    def __len__(self) -> int:
        return len(self.incorrect)

    @property
    def shown(self) -> Floats:
        """Probability that each page is returned in position j of result page k, (n, k, j): 400 bytes a page."""
        return np.asarray(self.where[self.centre])

    @property
    def weights(self) -> Floats:
        """`embarrassment_weights` of the pages, without `shown` in memory, as there are only so many different centres."""
        return np.asarray(self.incorrect * embarrassment_weights(np.ones(len(self.where)), self.click, self.where)[self.centre])


def search_log(
    n: int,
    seed: int,
    *,
    result_pages: int = RESULT_PAGES,
    positions: int = POSITIONS,
    next_page: float = NEXT_PAGE,
    spread: float = SPREAD,
) -> SearchLog:
    """Return pages of a search engine, drawn as in the paper.

    Parameters
    ----------
    n : int
        Number of pages.
    seed : int
    result_pages, positions : int
        Result pages a query, 5 in the paper, and positions on each, 10.
    next_page : float
        Probability with which a client goes on to the next result page, 0 to 1; 0.8 in the paper.
    spread : float
        Standard deviation of the normal distribution of positions, > 0. The paper names none.

    Returns
    -------
    SearchLog

    Raises
    ------
    InvalidProblemError
        `next_page` is no probability, or another argument not positive.

    Notes
    -----
    All positions in a row are numbered from 1. Clicks follow Zipf's law in the position (the paper's Zipf-like function with parameter
    0) times the probability of getting to the result page: position r of page k is clicked on with probability ``(1 / r) / (1 + 1/2 + ...
    + 1/50) x next_page^(k - 1)``. A page has a centre, any position with equal probability, and is returned at position r with
    probability proportional to ``exp(-(r - centre)^2 / (2 spread^2))``: a normal distribution truncated to the positions that exist.
    Incorrect responses have a probability uniform on [0, 1].

    References
    ----------
    Wolf et al. 2002, section 2.2 and section 5.

    Examples
    --------
    >>> log = search_log(3, seed=1)
    >>> log.click[:2, :3].round(4)
    array([[0.2223, 0.1111, 0.0741],
           [0.0162, 0.0148, 0.0137]])
    >>> log.shown.shape, log.weights.shape
    ((3, 5, 10), (3,))
    """
    for name, value in (("n", n), ("result_pages", result_pages), ("positions", positions), ("spread", spread)):
        if not value > 0:
            raise InvalidProblemError(f"{name} is {value!r}; expected a positive number")
    if not 0 <= next_page <= 1:
        raise InvalidProblemError(f"next_page is {next_page!r}; expected a probability, 0 to 1")
    rng = np.random.default_rng(seed)
    count = result_pages * positions
    rank = np.arange(count)
    zipf = 1.0 / (rank + 1.0)
    click = (zipf / zipf.sum()).reshape(result_pages, positions) * next_page ** np.arange(result_pages)[:, None]
    density = np.exp(-0.5 * ((rank - rank[:, None]) / spread) ** 2)
    where = (density / density.sum(axis=1, keepdims=True)).reshape(count, result_pages, positions)
    centre = rng.integers(count, size=n)
    return SearchLog(rng.random(n), click, centre, where)
