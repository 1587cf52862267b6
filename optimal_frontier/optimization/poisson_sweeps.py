"""Azar's Algorithm 2 for many pages: a few sweeps over blocks, no sort, one array beside the input.

With ``slope = sqrt(importance x change rate)`` and the level ``L = 1 / sqrt(multiplier)``, eq. 11 reads
``rate = max(slope L, change rate) - change rate``: one square root a page and no division. Spending is convex and piecewise linear in L.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import BLOCK, blockwise, inner
from optimal_frontier.optimization.water_level import level_without_sorting

#: Miss of the budget that scaling the rates may make up, relative: the KKT residual is at most twice that, the loss its square.
_TOLERANCE = 1e-7
#: Products of importance and change rate below this lose digits.
_SMALL = 1e-290
#: Share of the level that the budget must make up, or the rates are differences of nearly equal numbers.
_THIN = 1e-6
_LARGEST_SAMPLE = 16384
#: Relative error to be expected of the sample's slope.
_SAMPLED = 0.03
_SWEEPS = 8


def solve_in_sweeps(weights: Floats, changes: Floats, budget: float) -> Solution | None:
    """Optimal memoryless rates of many pages.

    Parameters
    ----------
    weights, changes : ndarray (n,)
        Importance and change rates, not checked yet.
    budget : float
        > 0.

    Returns
    -------
    Solution or None
        None where a value is not finite or negative, and where double precision needs the levels measured from the shallowest page.

    Notes
    -----
    The level of a sample of the pages is off by a fraction of a percent. A sweep there, with the sample's slope, leaves some 1e-5 of the
    budget; a second one gives the slope between the two, and the level where that line meets the budget is off by 1e-8 or so. The third
    sweep writes the rates, which are scaled to the budget.
    """
    level, area = _level_of_sample(weights, changes, budget)
    if not (0 < level < np.inf and 0 < area < np.inf):
        return None
    rates = np.empty(weights.size)
    spent, static = _build(weights, changes, rates, level)
    doubt = _SAMPLED  # relative error of `area`
    for _ in range(_SWEEPS):
        if not isfinite(spent):
            return None
        miss = spent - budget
        step = -miss / area
        previous, level = level, level + step
        if not (level > 0 and budget > _THIN * area * level):
            return None
        if abs(miss) * doubt <= 0.2 * _TOLERANCE * budget:
            break
        before = spent
        spent = _spend(rates, changes, level)
        if level != previous and spent != before:
            area = (spent - before) / (level - previous)
        doubt = abs(step) / level
    return _finish(weights, changes, rates, level, budget, static=static)


def _level_of_sample(weights: Floats, changes: Floats, budget: float) -> tuple[float, float]:
    """The level by some of the pages, and the sum of all slopes by them."""
    stride = max(1, weights.size // min(_LARGEST_SAMPLE, max(1024, weights.size // 32)))
    weight, change = np.ascontiguousarray(weights[::stride]), np.ascontiguousarray(changes[::stride])
    slope, depth = np.sqrt(weight * change), np.sqrt(change / weight)
    wet = np.isfinite(depth) & (slope > 0)
    if not wet.any():
        return 0.0, 0.0
    if not wet.all():
        slope, depth = slope[wet], depth[wet]
    level = level_without_sorting(slope, depth, budget / stride)
    return level, float(slope.sum(where=depth < level)) * stride


def _build(weights: Floats, changes: Floats, slopes: Floats, level: float) -> tuple[float, bool]:
    """Write the slopes; return what the pages spend at a level (NaN if a value is out of range), and whether some page never changes."""

    def work(blocks: Iterator[slice]) -> Iterator[tuple[float, bool]]:
        buffer = np.empty(min(BLOCK, slopes.size))
        for block in blocks:
            weight, change, slope, rate = weights[block], changes[block], slopes[block], buffer[: block.stop - block.start]
            lightest, slowest = float(weight.min()), float(change.min())
            good = lightest >= 0 and slowest >= 0
            np.multiply(weight, change, out=slope)
            if lightest * slowest < _SMALL and ((slope < _SMALL) & (weight > 0) & (change > 0)).any():
                good = False
            np.sqrt(slope, out=slope)
            np.multiply(slope, level, out=rate)
            np.maximum(rate, change, out=rate)
            np.subtract(rate, change, out=rate)
            yield float(rate.sum()) if good else np.nan, slowest == 0.0

    totals, statics = zip(*blockwise(slopes.size, work), strict=True)
    return sum(totals), any(statics)


def _spend(slopes: Floats, changes: Floats, level: float) -> float:
    """What the pages spend at a level."""

    def work(blocks: Iterator[slice]) -> Iterator[float]:
        buffer = np.empty(min(BLOCK, slopes.size))
        for block in blocks:
            rate, change = buffer[: block.stop - block.start], changes[block]
            np.multiply(slopes[block], level, out=rate)
            np.maximum(rate, change, out=rate)
            np.subtract(rate, change, out=rate)
            yield float(rate.sum())

    return sum(blockwise(slopes.size, work))


def _finish(weights: Floats, changes: Floats, rates: Floats, level: float, budget: float, *, static: bool) -> Solution | None:
    """Slopes in, rates out, in place; then judged."""

    def work(blocks: Iterator[slice]) -> Iterator[tuple[float, float, float]]:
        buffer = np.empty(min(BLOCK, rates.size))
        for block in blocks:
            rate, change, fresh = rates[block], changes[block], buffer[: block.stop - block.start]
            np.multiply(rate, level, out=fresh)
            np.maximum(fresh, change, out=fresh)
            np.subtract(fresh, change, out=rate)
            objective = 0.0
            if static:
                np.maximum(fresh, np.finfo(float).tiny, out=fresh)
                objective = inner(weights[block], change == 0)
            np.divide(rate, fresh, out=fresh)  # rate / (rate + change rate)
            yield float(rate.sum()), objective + inner(fresh, weights[block]), float(fresh.max())

    totals, objectives, freshest = zip(*blockwise(rates.size, work), strict=True)
    total, multiplier = sum(totals), level**-2
    if abs(total - budget) > _TOLERANCE * budget:
        return None
    scale = budget / total
    if scale != 1.0:
        _scale(rates, scale)
    # At the rates before scaling the marginal importance x change rate / (rate + change rate)^2 equals the multiplier but for rounding.
    residual = abs((1 + (scale - 1) * max(freshest)) ** -2 - 1) + np.finfo(float).eps
    return Solution(rates, sum(objectives) + multiplier * (budget - total), multiplier, 0.0, residual)


def _scale(rates: Floats, factor: float) -> None:
    def work(blocks: Iterator[slice]) -> Iterator[Floats]:
        for block in blocks:
            yield np.multiply(rates[block], factor, out=rates[block])

    blockwise(rates.size, work)
