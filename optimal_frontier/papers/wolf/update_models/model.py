"""What an allocation needs to know of pages: how stale they are after so many crawls, and what one more is worth."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.validation import numeric_array, page_or_scalar, scalar

#: Parameters and intervals lie within so many powers of ten of 1, either way, so that no product of two leaves the range of doubles.
WIDEST: Final = 100.0
#: More crawls than this are not counted exactly by a float.
_MOST_CRAWLS: Final = 2.0**53


class UpdateModel(Protocol):
    """How some pages in a row change, as far as their crawls are concerned.

    A model covers `len(model)` pages. Wherever it takes `crawls`, these are whole numbers, one for all pages, one per page, shape (n,),
    or several sets at once, shape (..., n); a model whose parameters are all scalars covers one page, and takes crawls of any shape. The
    answer has the shape that crawls and parameters have together.
    """

    def __len__(self) -> int:
        """Return the number of pages."""

    def staleness(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x), the share of the scheduling interval in which the copy is stale, by crawls: convex and non-increasing in them."""

    def decrease(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x) - A(x + 1), what one more crawl takes off, without cancellation: non-negative and non-increasing in x."""

    def crawl_times(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return the best times in [0, interval] of `crawls` of each page: all in one array, page after page, each in rising order."""

    def part(self, pages: slice | NDArray[np.int64]) -> UpdateModel:
        """Return the model of some of the pages, in any order and as often as is liked."""


def checked_interval(interval: Any) -> float:
    """Return the length of the scheduling interval, a positive number."""
    return scalar("interval", interval, positive=True, decades=WIDEST)


def checked_crawls(crawls: ArrayLike, pages: tuple[int, ...]) -> Floats:
    """Return numbers of crawls as floats, in the shape that they have together with the parameters of a model.

    Parameters
    ----------
    crawls : array_like of int
    pages : tuple
        Shape of the parameters, () or (n,).

    Raises
    ------
    InvalidProblemError
        Some entry is not a whole number >= 0, or there are not as many entries as pages.
    """
    array = numeric_array("crawls", crawls).astype(np.float64)
    wrong = ~((array >= 0) & (array <= _MOST_CRAWLS) & (array == np.floor(array)))
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), array.shape)
        where = f"[{', '.join(map(str, at))}]" if array.ndim else ""
        raise InvalidProblemError(f"crawls{where} is {array[at]}; expected a whole number, 0 or more")
    try:
        together = np.broadcast_shapes(array.shape, pages)
    except ValueError as error:
        raise InvalidProblemError(f"crawls has shape {array.shape}; expected one number, or one for each of {pages[0]} pages") from error
    return np.broadcast_to(array, together)


def page_parameters(given: dict[str, ArrayLike], *, zero: tuple[str, ...] = (), decades: float = WIDEST) -> dict[str, Floats]:
    """Return parameters as arrays of one shape, () if all are scalars, else (n,).

    Parameters
    ----------
    given : dict
        Name to a positive number, or to one per page.
    zero : tuple of str
        Those that may be 0.
    decades : float
        Powers of ten, either way, within which they must lie.

    Raises
    ------
    InvalidProblemError
        Names the parameter and the first offending index.
    """
    arrays = {name: numeric_array(name, value) for name, value in given.items()}
    n = next((array.size for array in arrays.values() if array.ndim), None)
    for name, array in arrays.items():
        arrays[name] = np.asarray(
            page_or_scalar(name, array, 1 if n is None else n, positive=name not in zero, decades=decades), dtype=np.float64
        )
    return {name: array if n is None else np.broadcast_to(array, (n,)) for name, array in arrays.items()}


def crawls_of_pages(crawls: ArrayLike, pages: tuple[int, ...]) -> NDArray[np.int64]:
    """Return how many crawls each page gets, shape (n,), where times are asked for."""
    counts = checked_crawls(crawls, pages)
    if counts.ndim > 1 or (not pages and counts.size != 1):
        raise InvalidProblemError(f"crawls has shape {counts.shape}; expected one number per page")
    return counts.reshape(-1).astype(np.int64)
