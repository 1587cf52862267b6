"""From a search log to weights and importance: counts of what was shown and clicked, in memory that does not grow with queries."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.validation import page_values

#: Least importance, where the mean is 1, of a page that no stale copy of embarrasses: importance is above 0.
LEAST_IMPORTANCE: Final = 0.001
#: Bits of a key of `ResultCounts` that number its place.
_PLACE_BITS: Final = 32


class ResultCounts:
    """How often each page was returned in each place, and how often what is in that place was clicked on.

    Notes
    -----
    A place is a pair of result page and position; any hashable numbers will do. Memory is one number per page and place in which it was
    returned, whatever the number of queries.

    References
    ----------
    Wolf et al. 2002, section 2.2: the search engine estimates these frequencies "by monitoring all query results or by sampling them".

    Examples
    --------
    Two queries; page 0 comes first in both and is clicked on once, page 1 comes second in one of them:

    >>> counts = ResultCounts()
    >>> counts.add(0, (1, 1), clicked=True)
    >>> counts.add(1, (1, 2), clicked=True, incorrect=0.5)
    >>> counts.add(0, (1, 1), clicked=False)
    >>> counts.weights()
    array([0.5 , 0.25])
    """

    def __init__(self) -> None:
        self.rows = self.clicks = 0
        self._pages = 0
        self._places: dict[tuple[int, int], int] = {}
        self._shown_at: list[int] = []
        self._clicked_at: list[int] = []
        self._shown: dict[int, int] = {}
        self._incorrect: dict[int, tuple[float, int]] = {}

    def add(self, page: int, place: tuple[int, int], *, clicked: bool, incorrect: float | None = None) -> None:
        """Count one result.

        Parameters
        ----------
        page : int
            Number of the page, from 0.
        place : (int, int)
            Result page and position on it.
        clicked : bool
        incorrect : float, optional
            Probability, 0 to 1, that a stale copy of the page gives an incorrect response. The mean of what is given of a page is used.

        Raises
        ------
        InvalidProblemError
            `page` is negative, or `incorrect` no probability.
        """
        if page < 0:
            raise InvalidProblemError(f"page is {page!r}; expected a number from 0")
        if incorrect is not None and not 0 <= incorrect <= 1:
            raise InvalidProblemError(f"incorrect is {incorrect!r}; expected a probability, 0 to 1")
        at = self._places.setdefault(place, len(self._places))
        if at == len(self._shown_at):
            self._shown_at.append(0)
            self._clicked_at.append(0)
        self.rows += 1
        self._shown_at[at] += 1
        if clicked:
            self.clicks += 1
            self._clicked_at[at] += 1
        key = page << _PLACE_BITS | at
        self._shown[key] = self._shown.get(key, 0) + 1
        self._pages = max(self._pages, page + 1)
        if incorrect is not None:
            total, times = self._incorrect.get(page, (0.0, 0))
            self._incorrect[page] = total + incorrect, times + 1

    def __len__(self) -> int:
        """Return the number of pages, the highest counted and all below it."""
        return self._pages

    @property
    def queries(self) -> int:
        """How often the place was shown that was shown most: a query shows a place once at most, and every answer has a first result."""
        return max(self._shown_at, default=0)

    def weights(self) -> Floats:
        """Return `embarrassment_weights` of the pages, summed over the places in which each was returned.

        Returns
        -------
        ndarray (n,)
            In clicks per query that a stale copy is wrong about. A click has the frequency that it has in its place, whatever the page:
            pages are clicked on too rarely for frequencies of their own. A page of which no ``incorrect`` is given has 1.

        References
        ----------
        Wolf et al. 2002, eq. 8.
        """
        keys = np.fromiter(self._shown, np.int64, len(self._shown))
        times = np.fromiter(self._shown.values(), np.float64, len(self._shown))
        click = np.array(self._clicked_at, np.float64) / np.maximum(self._shown_at, 1)
        incorrect = np.ones(self._pages)
        for page, (total, given) in self._incorrect.items():
            incorrect[page] = total / given
        expected = click[keys & (1 << _PLACE_BITS) - 1] * times / max(self.queries, 1)
        return np.asarray(incorrect * np.bincount(keys >> _PLACE_BITS, expected, minlength=self._pages))


def importance_of_weights(weights: ArrayLike, *, least: float = LEAST_IMPORTANCE) -> Floats:
    """Return importance in proportion to weights, with mean 1 and never below ``least``.

    Parameters
    ----------
    weights : array_like (n,)
        Weights of pages, >= 0, not all of them 0.
    least : float
        Least importance, above 0 and below 1.

    Returns
    -------
    ndarray (n,)
        Above 0; the mean is 1, the default importance of a page. What is above ``least`` is in proportion to the weights.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.

    Examples
    --------
    >>> importance_of_weights([0.3, 0.1, 0.0], least=0.2)
    array([2.1, 0.7, 0.2])
    """
    shares = page_values("weights", weights)
    if not 0 < least < 1:
        raise InvalidProblemError(f"least is {least!r}; expected a number above 0 and below 1")
    if not shares.size or not shares.max() > 0:
        raise InvalidProblemError("weights are all 0; expected one above 0")
    shares = shares / shares.max()
    low = np.zeros(shares.size, dtype=bool)
    while True:
        scale = (shares.size - least * low.sum()) / shares[~low].sum()
        # The scale only falls, as those set to the least take more than their share, so none comes up again.
        lower = low | (shares * scale < least)
        if (lower == low).all():
            return np.where(low, least, shares * scale)
        low = lower
