"""How often a stale copy would embarrass a search engine: weights of pages from what is shown and clicked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.sweeps import blockwise
from optimal_frontier.validation import numeric_array, page_values

#: Pages a block, so that what is shown of them stays in a core's cache.
_WIDTH = 2048


def embarrassment_weights(incorrect: ArrayLike, click: ArrayLike, shown: ArrayLike) -> Floats:
    """Weights of pages for staleness: how often a query ends in a click on the page that its stale copy turns out to be wrong about.

    Parameters
    ----------
    incorrect : array_like (n,)
        Probability that a stale copy of each page gives an incorrect response (d in the paper), 0 to 1.
    click : array_like (k, j)
        Frequency of clicks on what is returned in position j of result page k (c), >= 0.
    shown : array_like (n, k, j)
        Probability, or frequency, with which each page is returned in position j of result page k (b), >= 0.

    Returns
    -------
    ndarray (n,)
        ``incorrect x sum over k, j of click x shown``; in clicks per query, if frequencies are per query.

    Raises
    ------
    InvalidProblemError
        An argument is unusable, or the shapes do not fit; the message names it and the first offending index.

    References
    ----------
    Wolf et al. 2002, eq. 8.

    Examples
    --------
    Two result pages of two positions; the first page comes first in half of all queries, the second last in all:

    >>> embarrassment_weights([1.0, 0.1], [[0.4, 0.2], [0.1, 0.05]], [[[0.5, 0], [0, 0]], [[0, 0], [0, 1]]])
    array([0.2  , 0.005])
    """
    wrong = page_values("incorrect", incorrect)
    if wrong.size and wrong.max() > 1:
        at = int(np.argmax(wrong > 1))
        raise InvalidProblemError(f"incorrect[{at}] is {wrong[at]}; expected a probability, 0 to 1")
    clicks = numeric_array("click", click)
    if clicks.ndim != 2:
        raise InvalidProblemError(f"click has shape {clicks.shape}; expected result pages x positions, (k, j)")
    _check_frequencies("click", clicks, 0)
    displays = numeric_array("shown", shown)
    wanted = (wrong.size, *clicks.shape)
    if displays.shape != wanted:
        raise InvalidProblemError(f"shown has shape {displays.shape}; expected {wanted}, the pages of incorrect and the shape of click")
    per_position = clicks.astype(np.float64).ravel()
    weights = np.empty(wrong.size)

    def work(blocks: Iterator[slice]) -> Iterator[None]:
        for at in blocks:
            some = displays[at]
            _check_frequencies("shown", some, at.start)
            weights[at] = wrong[at] * (some.reshape(len(some), -1) @ per_position)
            yield

    blockwise(wrong.size, work, _WIDTH)
    return weights


def _check_frequencies(name: str, values: NDArray[Any], first: int) -> None:
    """Refuse what is negative, not finite, or no number; `first` is the index of the first row."""
    good = (values >= 0) & (values < np.inf)
    if not good.all():
        row, *rest = np.unravel_index(int(np.argmin(good)), values.shape)
        value = values[(row, *rest)]
        raise InvalidProblemError(f"{name}[{', '.join(map(str, (row + first, *rest)))}] is {value}; expected a non-negative, finite number")
