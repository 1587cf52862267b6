"""Memoryless updates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.response import caught_share, marginal_share
from optimal_frontier.papers.wolf.update_models.evenly_spaced import EvenlySpaced
from optimal_frontier.papers.wolf.update_models.model import page_parameters

#: Below this many updates in a gap the share of time that the copy is stale is summed as a series: 1 / 2! - y / 3! + y^2 / 4! - ...
_FEW = 0.5
_SERIES = tuple(1.0 / np.cumprod(np.arange(1.0, 16.0))[1:])


class Exponential(EvenlySpaced):
    """Updates at the times of a Poisson process: the tail of the times between them is exp(-rate t).

    Parameters
    ----------
    rate : float or array_like (n,)
        Updates per unit of time, >= 0.

    Raises
    ------
    InvalidProblemError
        A rate is no number >= 0, or outside 1e-100 to 1e100 and not 0.

    Notes
    -----
    With ``y = rate T / (x + 1)``: ``A(x) = 1 - (1 - exp(-y)) / y``.

    References
    ----------
    Wolf et al. 2002, eq. 14.

    Examples
    --------
    >>> Exponential(1.0).staleness([0, 1, 9], interval=1.0).round(6)
    array([0.367879, 0.213061, 0.048374])
    >>> Exponential([1.0, 2.0]).crawl_times([1, 3], interval=1.0)
    array([0.5 , 0.25, 0.5 , 0.75])
    """

    _per_page = ("rate",)

    def __init__(self, rate: ArrayLike) -> None:
        self.rate: Floats = page_parameters({"rate": rate}, zero=("rate",))["rate"]
        self._pages = self.rate.shape

    def _stale(self, gap: Floats) -> Floats:
        return _stale_share(self.rate * gap)

    def _late(self, gap: Floats) -> Floats:
        updates = self.rate * gap
        return np.where(updates > 0, marginal_share(updates) / updates, 0.0)

    def _triangle(self, start: Floats, width: Floats) -> Floats:
        return np.exp(-self.rate * start) * _stale_share(self.rate * width)

    def _density(self, age: Floats) -> Floats:
        return self.rate * np.exp(-self.rate * age)


def _stale_share(updates: Floats) -> Floats:
    """``1 - (1 - exp(-y)) / y`` without cancellation, for ``y >= 0`` expected updates."""
    result: Floats = np.empty(updates.shape)
    few = updates < _FEW
    many = ~few
    y = updates[few]
    sums = np.zeros(y.shape)
    for coefficient in reversed(_SERIES):
        sums = coefficient - y * sums
    result[few] = y * sums
    result[many] = 1.0 - caught_share(updates[many]) / updates[many]
    return result
