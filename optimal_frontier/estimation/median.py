"""The posterior median, the change rate that the solver is given by default.

Notes
-----
Three Chebyshev series, fitted at first use to the quantiles of `quantile`: of a log m(a) for shapes a up to 0.2 and from there to 2,
and of m(a) - a in 1/a beyond, where m(a) is the median of Gamma(a, 1). The median is close to a - 1/3 for large shapes and to
2^(-1/a) e^(-0.5772) for small ones.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.estimation.quantile import log_gamma_quantile
from optimal_frontier.estimation.validation import broadcast_shape, positive_array

#: The shapes at which one series hands over to the next. The median of small shapes falls like 2^(-1/a), which no polynomial follows far.
_LOW, _HIGH = 0.2, 2.0
_DEGREE = 30
_Number = TypeVar("_Number", float, NDArray[np.float64])

_LARGEST = float(np.finfo(np.float64).max)


def posterior_median(shape: ArrayLike, time: ArrayLike) -> NDArray[np.float64]:
    """Medians of Gamma posteriors of change rates.

    Parameters
    ----------
    shape : array_like, (n,)
        Gamma shapes, > 0.
    time : array_like, (n,)
        Gamma inverse scales, > 0; the medians are in 1 / its unit.

    Returns
    -------
    ndarray, (n,)
        Medians, relative error below 1e-9. One too small for a float is 0, as happens for shapes below about 1e-3. The arguments broadcast
        against each other.

    Raises
    ------
    InvalidProblemError
        If a shape or time is not positive and finite: the message names the argument and the first offending index.

    Examples
    --------
    >>> posterior_median([1.0, 10.0], 2.0).round(6).tolist()  # log(2) / 2, and about (10 - 1/3) / 2
    [0.346574, 4.834357]
    """
    a = positive_array(shape, "shape")
    b = positive_array(time, "time")
    broadcast_shape(shape=a, time=b)
    small, middle, large = _coefficients()
    low, high = a <= _LOW, a > _HIGH
    between = ~(low | high)
    median = np.empty(a.shape)
    with np.errstate(over="ignore", under="ignore"):
        for rows, series, start, end in ((low, small, 0.0, _LOW), (between, middle, _LOW, _HIGH)):
            few = a[rows]
            median[rows] = np.exp(_clenshaw(series, (few - start) * (2.0 / (end - start)) - 1.0) / few)
        many = a[high]
        median[high] = many + _clenshaw(large, (2.0 * _HIGH) / many - 1.0)
        return np.asarray(np.minimum(median / b, _LARGEST))


def median_one(shape: float, time: float) -> float:
    """`posterior_median` of one page in plain floats; trusts its input."""
    small, middle, large = _coefficients()
    if shape > _HIGH:
        median = shape + _clenshaw(large, (2.0 * _HIGH) / shape - 1.0)
    else:
        series, start, end = (small, 0.0, _LOW) if shape <= _LOW else (middle, _LOW, _HIGH)
        log_median = _clenshaw(series, (shape - start) * (2.0 / (end - start)) - 1.0) / shape
        median = math.exp(log_median) if log_median > -745.0 else 0.0
    return min(median / time, _LARGEST)


def _clenshaw(coefficients: tuple[float, ...], x: _Number) -> _Number:
    """Sum of coefficients[k] T_k(x), for a float or an array."""
    twice = x + x
    after = before = x * 0.0
    for c in reversed(coefficients[1:]):
        after, before = c + twice * after - before, after
    return coefficients[0] + x * after - before


@cache
def _coefficients() -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """The three series, through Chebyshev points of the first kind."""
    angles = (np.arange(_DEGREE + 1) + 0.5) * (np.pi / (_DEGREE + 1))
    at = 0.5 * (np.cos(angles) + 1.0)  # in (0, 1)
    half = np.full(at.shape, 0.5)
    small, middle, large = _LOW * at, _LOW + (_HIGH - _LOW) * at, _HIGH / at
    basis = np.cos(np.outer(np.arange(_DEGREE + 1), angles)) * (2.0 / (_DEGREE + 1))
    basis[0] *= 0.5
    return (
        _trimmed(basis @ (small * log_gamma_quantile(small, half))),
        _trimmed(basis @ (middle * log_gamma_quantile(middle, half))),
        _trimmed(basis @ (large * np.expm1(log_gamma_quantile(large, half) - np.log(large)))),
    )


def _trimmed(coefficients: NDArray[np.float64]) -> tuple[float, ...]:
    """Without the last terms: what is left of a converged series is rounding noise, which costs time and gives nothing."""
    keep = int(np.flatnonzero(np.abs(coefficients) > 1e-13)[-1]) + 1
    return tuple(coefficients[:keep].tolist())
