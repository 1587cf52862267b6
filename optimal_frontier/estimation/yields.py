"""How many new pages a page yields: from counts of new links at its visits to a rate, and to what they are worth a second."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

#: What is remembered of a page reaches back at least so many of its new pages, and so many visits.
REMEMBERED_PAGES: Final = 20.0
REMEMBERED_VISITS: Final = 10.0
#: Shortest time that a count is about, seconds: clocks have a resolution.
_SHORTEST_S: Final = 1e-3


class Yield(NamedTuple):
    """What is believed of the new pages that a page yields.

    Attributes
    ----------
    pages, importance : float
        New pages, and the sum of their importance; what is long ago counts less.
    seconds : float
        In which they came.
    """

    pages: float
    importance: float
    seconds: float

    @property
    def rate(self) -> float:
        """New pages per second, eta."""
        return self.pages / self.seconds

    @property
    def mean_importance(self) -> float:
        """Of a new page, mu."""
        return self.importance / self.pages if self.pages > 0.0 else 0.0

    @property
    def worth(self) -> float:
        """Importance of the new pages of a second, mu eta."""
        return self.importance / self.seconds


def first_yield(pages: float, importance: float, seconds: float, visits: int) -> Yield:
    """Return what is believed of a page that shows new pages for the first time at a later visit than its first.

    Parameters
    ----------
    pages, importance : float
        How many are new, and the sum of their importance.
    seconds : float
        Since the visit before.
    visits : int
        Good ones before this, 1 or more. Those between the first and this one showed nothing new, and their times count: they are taken
        to be as long as the last one, as far as they would be remembered.

    Examples
    --------
    >>> first_yield(3, 3.0, 600.0, 1).rate == 3 / 600, first_yield(1, 2.0, 600.0, 4).worth == 2 / 2400
    (True, True)
    """
    return Yield(float(pages), importance, max(seconds, _SHORTEST_S) * min(max(visits, 1), REMEMBERED_VISITS))


def learn_yield(known: Yield, pages: float, importance: float, seconds: float) -> Yield:
    """Return what is believed after a visit.

    Parameters
    ----------
    known : Yield
        Before it.
    pages, importance : float
        New links of the visit, 0 or more, and the sum of their importance.
    seconds : float
        Since the last visit that counted.

    Notes
    -----
    New pages come as a Poisson process, of whose rate the posterior is a Gamma distribution of shape `Yield.pages` and inverse scale
    `Yield.seconds`, under the prior that says nothing. What a visit is worth is linear in the rate, so its mean is the estimate.
    Before each count the past is discounted by ``exp(-min(expected / 20, 1 / 10))``: what is remembered reaches back twenty pages or ten
    visits, whichever is longer. So a page that goes quiet falls by at most a tenth a visit beside the time that passes, and never to 0.

    Examples
    --------
    >>> quiet = Yield(10.0, 10.0, 1000.0)
    >>> for _ in range(10):
    ...     quiet = learn_yield(quiet, 0, 0.0, 100.0)
    >>> round(quiet.rate, 4)
    0.0045
    """
    seconds = max(seconds, _SHORTEST_S)
    kept = math.exp(-min(known.rate * seconds / REMEMBERED_PAGES, 1.0 / REMEMBERED_VISITS))
    return Yield(known.pages * kept + pages, known.importance * kept + importance, known.seconds * kept + seconds)
