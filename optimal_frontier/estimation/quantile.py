"""Quantiles of the Gamma posterior of a change rate: the inverse of the regularised incomplete gamma function.

Notes
-----
P(a, x) = p is solved for v = log(x/a) by Newton's method on the logarithm of the smaller tail, which is nearly straight. With
f = x^a e^(-x)/Gamma(a), the density of log x, the tails are P = f J and Q = 1 - P = f K where

    J = int_0^inf exp(-a t + x (1 - e^(-t))) dt,    K = int_0^inf exp(a t - x (e^t - 1)) dt,

and J and K are at the same time the inverse slopes of log P and -log Q. Both integrands fall smoothly from 1, and 48 Gauss-Legendre
nodes over the stretch where they exceed e^-36 give them to 1e-12 for every a >= 1, at a cost that does not grow with a. Below
a = 1 and x = 1 the power series of P (DLMF 8.7.1) takes over. Starts: Wilson and Hilferty's cube root; for small shapes
P <= x^a/Gamma(a+1). log P is concave in log x, and log Q convex (a < 1) or concave in x: neither iteration can cycle.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.estimation.validation import broadcast_shape, positive_array, probability_array

Floats = NDArray[np.float64]

#: Rows solved together, so that the (rows, nodes) work arrays stay in the processor's cache.
_ROWS = 2048
#: The integrands are followed down to e^-36, 2e-16.
_DEPTH = 36.0
#: Below this log x a quantile of a small shape is its leading term to the last digit.
_NEGLIGIBLE = -50.0
_MAX_STEPS = 60
_LARGEST = float(np.finfo(np.float64).max)


def posterior_quantile(shape: ArrayLike, time: ArrayLike, level: ArrayLike) -> Floats:
    """Change rates below which the posteriors put a given probability.

    Parameters
    ----------
    shape : array_like, (n,)
        Gamma shapes, > 0.
    time : array_like, (n,)
        Gamma inverse scales, > 0; the quantiles are in 1 / its unit.
    level : array_like, (n,) or float
        Probabilities, strictly between 0 and 1.

    Returns
    -------
    ndarray, (n,)
        Quantiles, relative error below 1e-6 (below 1e-10 for shapes from 1e-3 to 1e6). A quantile too small for a float is 0, as happens
        for shapes below about 1e-3. The arguments broadcast against each other.

    Raises
    ------
    InvalidProblemError
        If a shape or time is not positive and finite, or a level not between 0 and 1: the message names the argument and the
        first offending index.

    Notes
    -----
    A few us a page; for medians `posterior_median` is faster.

    Examples
    --------
    >>> posterior_quantile(1.0, 2.0, [0.5, 0.975]).round(6).tolist()  # exponential: -log(1 - level) / 2
    [0.346574, 1.84444]
    """
    a = positive_array(shape, "shape")
    b = positive_array(time, "time")
    p = probability_array(level, "level")
    common = broadcast_shape(shape=a, time=b, level=p)
    flat_a, flat_p = (np.broadcast_to(array, common).ravel() for array in (a, p))
    log_x = np.empty(flat_a.size)
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, flat_a.size, _ROWS):
            rows = slice(start, start + _ROWS)
            log_x[rows] = log_gamma_quantile(flat_a[rows], flat_p[rows])
        quantile = np.minimum(np.exp(log_x.reshape(common) - np.log(b)), _LARGEST)
    return np.asarray(quantile)


def log_gamma_quantile(a: Floats, p: Floats) -> Floats:
    """log x with P(a, x) = p, for 1-d arrays of one length; trusts its input."""
    constant = _log_density_constant(a)
    log_a = np.log(a)
    # P <= x^a / Gamma(a+1), and log Gamma(a+1) = a log a - a + log a - constant: so a lower bound of v, sharp for small a
    lower = (np.log(p) + log_a - constant) / a - 1.0
    z = _normal_quantile(p)
    cube = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * np.sqrt(a))
    hilferty = np.where((a >= 1.0) & (cube > 0.0), 3.0 * np.log(np.where(cube > 0.0, cube, 1.0)), -np.inf)
    v = np.maximum(np.maximum(lower, hilferty), -_LARGEST)
    left = p <= 0.5
    target = np.where(left, np.log(p), np.log1p(-p))
    tolerance = 1e-9 / (1.0 + np.sqrt(a)) + 1e-14 / np.minimum(a, 1.0)
    active = np.flatnonzero(v + log_a > _NEGLIGIBLE)
    for _ in range(_MAX_STEPS):
        if active.size == 0:
            return np.asarray(v + log_a)
        log_tail, spread = _log_tail(a[active], v[active], constant[active], left[active])
        step = (log_tail - target[active]) * spread
        # to the left in log x, to the right in x
        step = np.where(left[active], -step, np.log1p(np.maximum(step, -0.9)))
        v[active] += step
        active = active[np.abs(step) > tolerance[active]]
    raise ConvergenceError(f"the quantile of Gamma({a[active[0]]!r}) at {p[active[0]]!r} did not converge")


def _log_tail(a: Floats, v: Floats, constant: Floats, left: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """log P (where `left`) or log Q at x = a e^v, and the tail over the density of log x."""
    x = a * np.exp(v)
    log_density = constant - a * (np.expm1(v) - v)
    log_tail, spread = np.empty_like(a), np.empty_like(a)
    small = (a < 1.0) & (left | (x < 1.0))
    if small.any():
        spread[small] = _series(a[small], x[small]) / a[small]
        log_tail[small] = log_density[small] + np.log(spread[small])
        upper = small & ~left
        if upper.any():
            q = -np.expm1(np.minimum(log_tail[upper], -1e-300))
            log_tail[upper] = np.log(q)
            spread[upper] = q * np.exp(-log_density[upper])
    for rows, integral in ((~small & left, _left_integral), (~small & ~left, _right_integral)):
        if rows.any():
            spread[rows] = integral(a[rows], x[rows])
            log_tail[rows] = log_density[rows] + np.log(spread[rows])
    return log_tail, spread


def _series(a: Floats, x: Floats) -> Floats:
    """Sum over n of x^n / ((a+1)...(a+n)) for x below about 1."""
    term = np.ones_like(a)
    total = np.ones_like(a)
    for n in range(1, 26):
        term = term * (x / (a + n))
        total += term
    return total


def _left_integral(a: Floats, x: Floats) -> Floats:
    """J of the module's notes, for a >= 1."""
    slope = np.maximum(a - x, 0.0)
    # the exponent is at least slope t + 0.3 x t^2 up to t = 1.5, and at least a t - x everywhere
    bend = 0.6 * x
    near = 2.0 * _DEPTH / (slope + np.sqrt(slope * slope + 2.0 * _DEPTH * bend))
    end = np.where(near < 1.5, near, (_DEPTH + x) / a)
    nodes, weights = _legendre()
    t = end[:, None] * nodes
    return np.asarray((np.exp(-a[:, None] * t - x[:, None] * np.expm1(-t)) @ weights) * end)


def _right_integral(a: Floats, x: Floats) -> Floats:
    """K of the module's notes, for a >= 1 or x >= 1."""
    slope = x - a
    # the exponent is at least slope t + x t^2 / 2: an end beyond e^-36, drawn in by a fixed-point iteration from above
    root = np.sqrt(slope * slope + 2.0 * _DEPTH * x)
    end = np.where(slope > 0.0, 2.0 * _DEPTH / (slope + root), (root - slope) / x)
    for _ in range(4):
        end = np.minimum(end, np.log1p((_DEPTH + a * end) / x))
    nodes, weights = _legendre()
    t = end[:, None] * nodes
    return np.asarray((np.exp(a[:, None] * t - x[:, None] * np.expm1(t)) @ weights) * end)


@cache
def _legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _log_density_constant(a: Floats) -> Floats:
    """a log a - a - log Gamma(a): by Stirling's series at a >= 10, shifted there when below (DLMF 5.11.1, 5.5.1)."""
    far = a >= 10.0
    b = np.where(far, a, a + 10.0)
    r = 1.0 / (b * b)
    correction = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / b
    stirling = 0.5 * np.log(b / (2.0 * np.pi)) - correction
    if far.all():
        return np.asarray(stirling)
    near = np.where(far, 1.0, a)
    product = np.ones_like(a)
    for n in range(1, 10):
        product *= near + n
    log_gamma = b * np.log(b) - b - stirling - np.log(product) - np.log(near)
    return np.asarray(np.where(far, stirling, near * np.log(near) - near - log_gamma))


def _normal_quantile(p: Floats) -> Floats:
    levels, where = np.unique(p, return_inverse=True)
    inverse = NormalDist().inv_cdf
    return np.array([inverse(float(level)) for level in levels])[where]
