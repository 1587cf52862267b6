"""Whole numbers of crawls for pages of any update model: the discrete, separable, convex allocation of Wolf et al."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.allocation.first_differences import Columns
from optimal_frontier.papers.wolf.allocation.galil_megiddo import select_by_medians
from optimal_frontier.papers.wolf.allocation.greedy import greedy
from optimal_frontier.papers.wolf.allocation.relaxation import select_from_relaxation
from optimal_frontier.papers.wolf.allocation.selection import select
from optimal_frontier.validation import numeric_array, page_or_scalar, scalar, whole_number

if TYPE_CHECKING:
    from optimal_frontier.papers.wolf.update_models.model import UpdateModel

Method = Literal["auto", "greedy", "galil-megiddo", "frederickson-johnson"]

_METHODS: Final = {
    "auto": select_from_relaxation,
    "greedy": greedy,
    "galil-megiddo": select_by_medians,
    "frederickson-johnson": select,
}
#: Weights and intervals lie within so many powers of ten of 1, either way.
_DECADES: Final = 100.0


def allocate_crawls(
    models: UpdateModel | Sequence[UpdateModel],
    weights: ArrayLike,
    total: int,
    interval: float,
    minimum: ArrayLike = 0,
    maximum: ArrayLike | None = None,
    method: Method = "auto",
) -> Integers:
    """Best whole numbers of crawls of each page in a scheduling interval.

    Minimises ``sum weight x A(x)`` over whole numbers x with ``sum x = total`` and ``minimum <= x <= maximum``, where A is the staleness
    of a page that is crawled x times.

    Parameters
    ----------
    models : UpdateModel or sequence of UpdateModel
        Each covers as many of the n pages in a row as it is long: single pages, arrays of pages, or both, of any kinds.
    weights : array_like (n,) or float
        Weight of each page, >= 0.
    total : int
        Crawls in the interval, all of which are given out.
    interval : float
        Length of the scheduling interval, in the models' unit of time.
    minimum, maximum : array_like of int, (n,) or scalar
        Bounds on each page's crawls; None or inf: no upper bound.
    method : {"auto", "greedy", "galil-megiddo", "frederickson-johnson"}
        All give the same allocation. "auto" starts from a sample's price and ends with the selection of "frederickson-johnson".

    Returns
    -------
    ndarray of int64 (n,)
        Crawls of each page. Of crawls that take off equally much the first page's come first, also where they take off nothing: give
        a `maximum` where crawls may be left over.

    Raises
    ------
    InvalidProblemError
        An argument is unusable, or no allocation meets the bounds; the message names argument, index or sums.

    Notes
    -----
    A is convex, so what the next crawl of a page is worth, ``weight (A(x) - A(x + 1))``, falls with x, and the best allocation is made of
    the `total` largest of these numbers. Time: "greedy" O(n + total log n), "galil-megiddo" O(n log(total)^2), "frederickson-johnson"
    O(max(n, n log(total / n))) evaluations of a model.

    References
    ----------
    Wolf et al. 2002, *Optimal crawling strategies for web search engines*, section 2.4, eqs. 19 to 21; Fox 1966; Galil and Megiddo 1981;
    Frederickson and Johnson 1982.

    Examples
    --------
    >>> from optimal_frontier.optimization import Exponential
    >>> allocate_crawls(Exponential([0.2, 1.0, 5.0, 50.0]), 1.0, 6, 1.0)
    array([0, 2, 4, 0])
    """
    pages = _checked_models(models)
    n = sum(len(model) for model in pages)
    weight = page_or_scalar("weights", weights, n, decades=_DECADES)
    crawls = whole_number("total", total, 0)
    length = scalar("interval", interval, positive=True, decades=_DECADES)
    low, high = _checked_bounds(minimum, maximum, n, crawls)
    if not (isinstance(method, str) and method in _METHODS):
        raise InvalidProblemError(f"method is {method!r}; expected {', '.join(map(repr, _METHODS))}")
    if n == 0:
        return np.zeros(0, np.int64)
    columns = Columns(pages, np.broadcast_to(np.asarray(weight, np.float64), (n,)), length)
    return _METHODS[method](columns, low, high, crawls)


def _checked_models(models: Any) -> list[UpdateModel]:
    """The models as a list. An array model is a model, not a sequence of models, whatever its length."""
    listed = [models] if hasattr(models, "decrease") else models
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise InvalidProblemError(f"models is {type(models).__name__}; expected an update model or a sequence of update models")
    for index, model in enumerate(listed):
        if not all(hasattr(model, name) for name in ("__len__", "decrease", "part")):
            raise InvalidProblemError(f"models[{index}] is {type(model).__name__}; expected an update model")
    return [model for model in listed if len(model)]


def _checked_bounds(minimum: ArrayLike, maximum: ArrayLike | None, n: int, total: int) -> tuple[Integers, Integers]:
    """Bounds as integers, of which none is above `total` but where a maximum says so, and that can be met."""
    low = _whole_numbers("minimum", minimum, n)
    high = np.full(n, np.inf) if maximum is None else _whole_numbers("maximum", maximum, n, infinite=True)
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        at = int(crossed[0])
        raise InvalidProblemError(f"minimum[{at}] is {low[at]:.0f}, above maximum[{at}], {high[at]:.0f}")
    least, most = float(low.sum()), float(high.sum())
    if least > total:
        raise InvalidProblemError(f"minimum sums to {least:.0f}; expected at most total, {total}")
    if most < total:
        raise InvalidProblemError(f"maximum sums to {most:.0f}; expected at least total, {total}")
    return low.astype(np.int64), np.minimum(high, total).astype(np.int64)


def _whole_numbers(name: str, value: ArrayLike, n: int, *, infinite: bool = False) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = numeric_array(name, value)
    checked = np.broadcast_to(np.asarray(page_or_scalar(name, array, n, infinite=infinite), np.float64), (n,))
    wrong = np.flatnonzero((checked != np.floor(checked)) | ((checked > 2.0**53) & (checked < np.inf)))
    if wrong.size:
        entry = f"{name}[{wrong[0]}]" if array.ndim else name
        raise InvalidProblemError(f"{entry} is {checked[wrong[0]]:g}; expected a whole number of crawls, at most 2 ** 53")
    return checked
