"""Pages that may change at known times only, each with a probability."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.papers.wolf.update_models.choices import Choices, Method
from optimal_frontier.papers.wolf.update_models.model import checked_crawls, checked_interval, crawls_of_pages
from optimal_frontier.papers.wolf.update_models.potential_updates import check_shares, potential_updates
from optimal_frontier.validation import choice, page_or_scalar


class QuasiDeterministic:
    """Updates at given times of the scheduling interval, each of which may or may not occur.

    Parameters
    ----------
    times : array_like (Q,), (n, Q), or n lists of different lengths
        Potential update times ``0 <= u_1 <= u_2 <= ...`` of one page or of each page; none may exceed the interval.
    probabilities : float or array_like, as `times`
        With which the update occurs, 0 to 1. Pages with fewer times than others may be filled up with probability 0.
    initially_fresh : float or array_like (n,)
        Probability that the copy is fresh at time 0, before any crawl (1 - k_0 in the paper), 0 to 1.
    method : {"greedy", "exact"}
        How crawl times are chosen: as in the paper, each the best beside those chosen before, O(Q^2) a page; or the best of all choices
        by dynamic programming, O(Q^2 x) a page.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.

    Notes
    -----
    A crawl at ``u_j`` sees the update of that time. With ``u_0 = 0`` and ``u_(Q+1) = T`` the copy is stale for the share
    ``sum_j (u_(j+1) - u_j) / T (1 - product over k = J_j + 1 .. j of (1 - k_k))`` of time, where J_j is the last crawled time up to j.
    Before the first crawl the product begins at k = 0, with ``1 - k_0 = initially_fresh``; eq. 16 as printed has J = 0 there, as though
    time 0 were crawled. Eq. 18 as printed has ``u_j`` in the place of the interval length. At most Q + 1 crawls help: at 0 and at all
    times.

    Freshness is submodular in the set of crawled times, so the greedy choice never gains more in a step than in the one before, and has
    at least 1 - 1/e of the best freshness. The best choices are convex in x as well, since the freshness between two neighbouring crawls
    fulfils Monge's condition; they are not nested, so their times may all move when a crawl is added.

    The choices of all pages for all x are made at the first call and kept for the interval, 20 (Q + 2) bytes a page; parts of the model
    share them. About 2, 8 and 25 us a page for 10, 24 and 50 times; exact ones take as long up to 24 times, 64 us for 50.

    References
    ----------
    Wolf et al. 2002, section 2.3.3, eq. 15 to 18.

    Examples
    --------
    A page republished at 06:00 with probability 0.25 and at 18:00 for sure, times in hours:

    >>> page = QuasiDeterministic([6, 18], [0.25, 1.0])
    >>> page.staleness([0, 1, 2, 3], interval=24)
    array([0.375, 0.125, 0.   , 0.   ])
    >>> page.crawl_times(1, interval=24), page.crawl_times(2, interval=24)
    (array([18.]), array([ 6., 18.]))
    """

    def __init__(self, times: ArrayLike, probabilities: ArrayLike, initially_fresh: ArrayLike = 1.0, *, method: Method = "greedy") -> None:
        choice("method", method, ("greedy", "exact"))
        at, chances, self._pages = potential_updates(times, probabilities)
        if self._pages == () and np.ndim(initially_fresh):
            raise InvalidProblemError(f"initially_fresh has shape {np.shape(initially_fresh)}; expected one number for one page")
        fresh = np.asarray(page_or_scalar("initially_fresh", initially_fresh, len(at)), dtype=np.float64)
        check_shares("initially_fresh", fresh)
        self._choices = Choices(at, chances, np.broadcast_to(fresh, (len(at),)), method, self._pages)
        self._rows = np.arange(len(at))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def times(self) -> Floats:
        """Potential update times, (n, Q)."""
        return self._choices.times[self._rows]

    @property
    def probabilities(self) -> Floats:
        """With which updates occur, (n, Q)."""
        return self._choices.probabilities[self._rows]

    def staleness(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x), the expected share of the interval in which the copy is stale, at the chosen crawl times.

        Parameters
        ----------
        crawls : array_like of int, scalar, (n,) or (..., n)
            Crawls in the interval, 0 or more.
        interval : float
            Length T of the scheduling interval, not before the last potential update time.

        Returns
        -------
        ndarray
            In [0, 1], of the shape that crawls and pages have together. Convex and non-increasing; 0 from Q + 1 crawls on.

        Raises
        ------
        InvalidProblemError
            An argument is unusable; the message names it and the first offending index.
        """
        return self._look_up(self._choices.curves(checked_interval(interval)).staleness, crawls)

    def decrease(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x) - A(x + 1), what one more crawl takes off.

        Parameters
        ----------
        crawls : array_like of int, scalar, (n,) or (..., n)
        interval : float
            As in `staleness`.

        Returns
        -------
        ndarray
            Non-negative, non-increasing in the crawls.

        Raises
        ------
        InvalidProblemError
        """
        return self._look_up(self._choices.curves(checked_interval(interval)).gains, crawls)

    def crawl_times(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return the chosen times: those of potential updates, and 0; a crawl is made at or soon after its time, never before.

        Parameters
        ----------
        crawls : array_like of int, scalar or (n,)
        interval : float

        Returns
        -------
        ndarray (sum of crawls,)
            Times in rising order, page after page. Crawls beyond Q + 1, which are of no use, repeat those times.

        Raises
        ------
        InvalidProblemError
        """
        length, counts = checked_interval(interval), crawls_of_pages(crawls, self._pages)
        found = np.hstack([np.zeros((len(self), 1)), self.times])
        nodes = found.shape[1]
        useful = np.minimum(counts, nodes)
        pages, at = np.nonzero(self._choices.nodes(length, self._rows, useful))
        if (counts <= nodes).all():
            return np.asarray(found[pages, at])
        extra = counts - useful
        owner = np.repeat(np.arange(len(self)), extra)
        turn = (np.arange(len(owner)) - np.repeat(np.cumsum(extra) - extra, extra)) % nodes
        pages, at = np.concatenate([pages, owner]), np.concatenate([at, turn])
        return np.asarray(found[pages, at][np.lexsort((at, pages))])

    def part(self, pages: slice | NDArray[np.int64]) -> Self:
        """Return the model of some of the pages; one of a single page is returned as it is."""
        if not self._pages:
            return self
        few = copy(self)
        few._rows = self._rows[pages]
        few._pages = few._rows.shape
        return few

    def _look_up(self, curve: Floats, crawls: ArrayLike) -> Floats:
        """Entries of a curve of shape (m, n); its last row holds for all larger numbers of crawls."""
        steps = np.minimum(checked_crawls(crawls, self._pages), len(curve) - 1).astype(np.int64)
        return np.asarray(curve[steps, self._rows if self._pages else 0])[()]
