"""The step of the filter: a Gamma posterior and one visit -> the Gamma posterior after it.

Notes
-----
A page changes at the times of a Poisson process of unknown rate x ~ Gamma(shape a, time b): density proportional to
x^(a-1) e^(-bx). A visit after an interval I tells one bit.

* Unchanged (likelihood e^(-Ix)): the posterior is Gamma(a, b + I), exactly.
* Changed (likelihood 1 - e^(-Ix)): no longer Gamma; the Gamma with the same mean and variance takes its place
  (assumed-density filtering). With s = b/(b+I) and E_k = 1 - s^(a+k) the moments are
  m1 = (a/b) E_1/E_0 and m2 = (a(a+1)/b^2) E_2/E_0; the new shape is m1^2/(m2 - m1^2), the new time m1/(m2 - m1^2).

The difference m2 - m1^2 cancels when written so. From E_2 E_0 - E_1^2 = -s^a (1-s)^2 it follows that, with
u = s^a (1-s) and D = 1 + (u/E_1) (s - a(1-s)/E_0),

    shape' = a (1 + u/E_0) / D,    time' = b / D,

where E_1 = E_0 + u adds positive terms only and 0.7 < D <= 1: nothing cancels, at any ratio of interval to 1/rate, and no
series is needed. One log1p and one expm1 are the whole cost.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.validation import bit_array, broadcast_shape, number_array

#: I/b and a are held inside [_TINY, _HUGE] in the formula, so that no product in it leaves the range of a float. The formula has
#: reached its limit long before: (a+1, b) for short intervals, (a, b) for long ones.
_TINY, _HUGE = 1e-150, 1e150
_LARGEST = float(np.finfo(np.float64).max)


def update_posterior(
    shape: ArrayLike, time: ArrayLike, intervals: ArrayLike, changed: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Posteriors of many pages after one visit to each.

    Parameters
    ----------
    shape : array_like, (n,)
        Gamma shapes before the visit, > 0.
    time : array_like, (n,)
        Gamma inverse scales before the visit, > 0, in the unit of `intervals` (seconds, say).
    intervals : array_like, (n,)
        Time since the last successful visit, > 0.
    changed : array_like of bool, (n,)
        Whether the page had changed. A visit that gave no bit must be left out.

    Returns
    -------
    shape, time : ndarray, (n,)
        New arrays; neither is ever below its value before. The inputs, which broadcast against each other, stay as they are.

    Raises
    ------
    InvalidProblemError
        If a shape, time or interval is not positive and finite, or a bit not boolean (the message names the argument and the first
        offending index), or the array shapes do not go together.

    Notes
    -----
    O(n), about 0.1 us a page. See the module for the formula.

    Examples
    --------
    >>> shape, time = update_posterior([1.0, 1.0], [1.0, 1.0], [2.0, 1e-9], [False, True])
    >>> shape.round(6).tolist(), time.round(6).tolist()
    ([1.0, 2.0], [3.0, 1.0])
    """
    a = number_array("shape", shape, positive=True)
    b = number_array("time", time, positive=True)
    interval = number_array("intervals", intervals, positive=True)
    bits = bit_array("changed", changed)
    common = broadcast_shape(shape=a, time=b, intervals=interval, changed=bits)
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.clip(interval / b, _TINY, _HUGE)
        kept = 1.0 / (1.0 + ratio)  # s
        lost = ratio * kept  # 1 - s
        exponent = np.maximum(a, _TINY) * np.log1p(ratio)
        e0 = -np.expm1(-exponent)
        u = (1.0 - e0) * lost
        d = 1.0 + u / (e0 + u) * (kept - a * (lost / e0))
        new_shape = np.where(bits, np.minimum(np.maximum(a, _TINY) * (1.0 + u / e0) / d, _LARGEST), a)
        new_time = np.minimum(np.where(bits, b / d, b + interval), _LARGEST)
    # rounding may leave either an ulp below what it was
    new_shape, new_time = np.maximum(new_shape, a), np.maximum(new_time, b)
    return np.broadcast_to(new_shape, common).copy(), np.broadcast_to(new_time, common).copy()


def update_one(shape: float, time: float, interval: float, changed: bool) -> tuple[float, float]:
    """`update_posterior` of one page in plain floats, about 1 us; trusts its input."""
    if not changed:
        time += interval
        return shape, time if time < _LARGEST else _LARGEST
    # Comparisons take a third of the time of `min` and `max`.
    a = shape if shape > _TINY else _TINY
    ratio = interval / time
    ratio = _TINY if ratio < _TINY else _HUGE if ratio > _HUGE else ratio
    kept = 1.0 / (1.0 + ratio)
    lost = ratio * kept
    e0 = -math.expm1(-a * math.log1p(ratio))
    u = (1.0 - e0) * lost
    d = 1.0 + u / (e0 + u) * (kept - a * (lost / e0))
    new_shape, new_time = a * (1.0 + u / e0) / d, time / d
    new_shape = _LARGEST if new_shape > _LARGEST else new_shape
    new_time = _LARGEST if new_time > _LARGEST else new_time
    return new_shape if new_shape > shape else shape, new_time if new_time > time else time
