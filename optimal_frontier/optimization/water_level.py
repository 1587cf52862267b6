"""Filling to a level: the piecewise linear equation behind Azar's Algorithms 1 and 2.

Page ``i`` gets ``slope_i (level - depth_i)`` if that is positive; the level is wanted at which the pages together get a given volume. With
``depth = sqrt(change rate / importance)`` and the level ``1 / sqrt(multiplier)`` this is Azar's eq. 11. Levels are measured from the
shallowest page, so that budgets far below every change rate lose no digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.sweeps import inner

_BLOCK = 8192
#: Accepted miss of the volume, relative; the rest is made up by scaling.
_TOLERANCE = 1e-9


def level_by_sorting(slope: Floats, depth: Floats, volume: float) -> float:
    """The level, by dropping the deepest page until all that remain are above water: the algorithm as printed.

    Parameters
    ----------
    slope, depth : ndarray (n,)
        ``slope >= 0``, some > 0; ``depth >= 0``.
    volume : float
        > 0.

    Notes
    -----
    O(n log n): after sorting by depth, the level for the first ``j`` pages is ``(volume + sum slope depth) / sum slope``; the
    answer is the largest ``j`` whose level is above its last page. Azar et al. 2018, Algorithms 1 and 2, Corollary 3.
    """
    order = np.argsort(depth, kind="stable")
    sorted_depth = depth[order]
    slopes = slope[order]
    level = (volume + np.cumsum(slopes * sorted_depth)) / np.cumsum(slopes)
    last = int(np.flatnonzero((level > sorted_depth) & (slopes > 0))[-1])
    return float(level[last])


def level_without_sorting(slope: Floats, depth: Floats, volume: float) -> float:
    """The level, by solving for all pages, dropping those that came out dry, and again until none drops.

    Notes
    -----
    This is Newton's method on a convex, piecewise linear function: the level falls in every step and the answer is reached
    after finitely many, usually under ten; starting from the level of a sample of the pages takes three. O(n) a step.
    """
    n = slope.size
    stride = n // 8192
    level = np.inf
    if stride > 1:
        sample_slope, sample_depth = slope[::stride], depth[::stride]
        if float(sample_slope.max()) > 0:
            level = level_without_sorting(sample_slope, sample_depth, volume * sample_slope.size / n)
    below = 0.0
    for _ in range(200):
        area, weighted = _above(slope, depth, level)
        if area == 0.0:  # the sample's level was below every page
            area, weighted = _above(slope, depth, np.inf)
        filled = (volume + weighted) / area
        if abs(level * area - weighted - volume) <= _TOLERANCE * volume or filled in (level, below):
            return filled
        below, level = level, filled
    return level


def _above(slope: Floats, depth: Floats, level: float) -> tuple[float, float]:
    """Sums of slope, and of slope x depth, over the pages above water."""
    area = weighted = 0.0
    for block in _blocks(slope.size):
        wet = slope[block] * (depth[block] < level)
        area += float(wet.sum())
        weighted += inner(wet, depth[block])
    return area, weighted


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))
