"""Updates in bursts (shape below 1), or more regular than memoryless ones (above)."""

from __future__ import annotations

from math import lgamma
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import DECADES, Floats
from optimal_frontier.papers.wolf.update_models.evenly_spaced import FEW, EvenlySpaced
from optimal_frontier.papers.wolf.update_models.model import page_parameters

#: Shapes within this factor of 1: Gamma(2 / shape) and its like stay accurate.
_MOST_SHAPE: Final = 100.0
#: Beyond a + this + 9 sqrt(a) the incomplete gamma function P(a, z) is 1 to the last digit.
_WHOLE: Final = 45.0
#: Quadrature does for a stretch on which the tail falls by a factor of up to e^this,
_SMOOTH: Final = 12.0
#: and its logarithm grows by one of up to e^this,
_STRAIGHT: Final = 3.5
#: and where the tail is below e^-this before.
_NOTHING: Final = 20.0
#: The larger z, the more terms: pages between two of these are summed together.
_BANDS: Final = (1.0, 6.0, 24.0)


class Weibull(EvenlySpaced):
    """Times between updates with tail exp(-rate t^shape).

    Parameters
    ----------
    rate : float or array_like (n,)
        1 / time^shape, > 0. Their mean is ``rate^(-1 / shape) Gamma(1 + 1 / shape)``.
    shape : float or array_like (n,)
        0.01 to 100; below 1 updates come in bursts (0.35 to 0.6 in git histories of documentation), at 1 they are `Exponential`.

    Raises
    ------
    InvalidProblemError
        A rate is not positive, or a shape out of range.

    Notes
    -----
    With ``a = 1 / shape``, ``d = T / (x + 1)``, ``z = rate d^shape`` and P the regularised lower incomplete gamma function:
    ``A(x) = P(a, z) - Gamma(2 a) / Gamma(a) z^-a P(2 a, z)``. Both are evaluated from one series of positive terms,
    ``P(a, z) = z^a e^-z / Gamma(a + 1) (1 + z / (a + 1) + z^2 / ((a + 1) (a + 2)) + ...)``, which takes z of the order of a hundred at
    most: beyond, P is 1. Relative errors are below 1e-13 / shape.

    References
    ----------
    Wolf et al. 2002, eq. 3 and section 4; DLMF 8.7.1.

    Examples
    --------
    >>> Weibull(1.0, 0.5).staleness([0, 1, 9], interval=1.0).round(6)
    array([0.150312, 0.086788, 0.021172])
    """

    _per_page = ("rate", "shape", "_log_rate", "_power", "_log_gamma", "_log_ratio")

    def __init__(self, rate: ArrayLike, shape: ArrayLike) -> None:
        parameters = page_parameters({"rate": rate, "shape": shape}, decades=DECADES)
        self.rate: Floats = parameters["rate"]
        self.shape: Floats = parameters["shape"]
        wrong = ~((self.shape >= 1 / _MOST_SHAPE) & (self.shape <= _MOST_SHAPE))
        if wrong.any():
            at = int(np.argmax(wrong))
            name = f"shape[{at}]" if np.ndim(shape) else "shape"
            raise InvalidProblemError(f"{name} is {np.atleast_1d(self.shape)[at]}; expected a number from 0.01 to {_MOST_SHAPE:g}")
        self._log_rate = np.log(self.rate)
        self._power = 1.0 / self.shape
        self._log_gamma = _log_gamma(1.0 + self._power)
        self._log_ratio = _log_gamma(1.0 + 2.0 * self._power) - self._log_gamma - np.log(2.0)
        self._pages = self.rate.shape

    @classmethod
    def from_mean(cls, mean: ArrayLike, shape: ArrayLike) -> Weibull:
        """Return the model with a given mean time between updates, > 0, scalar or (n,)."""
        parameters = page_parameters({"mean": mean, "shape": shape})
        power = 1.0 / parameters["shape"]
        return cls(np.exp(parameters["shape"] * (_log_gamma(1.0 + power) - np.log(parameters["mean"]))), parameters["shape"])

    def _stale(self, gap: Floats) -> Floats:
        log_z, a, log_gamma, log_ratio = self._exponent(gap)
        z = np.exp(log_z)
        result: Floats = 1.0 - np.exp(log_ratio - a * log_z)
        at = np.flatnonzero(z < _whole(2.0 * a))
        z, a = z[at], a[at]
        result[at] = np.exp(a * log_z[at] - z - log_gamma[at]) * (_series(a, z) - 0.5 * _series(2.0 * a, z))
        return result

    def _late(self, gap: Floats) -> Floats:
        log_z, a, log_gamma, log_ratio = self._exponent(gap)
        z = np.exp(log_z)
        result: Floats = np.exp(log_ratio - a * log_z)
        at = np.flatnonzero(z < _whole(2.0 * a))
        z, a = z[at], a[at]
        result[at] = np.exp(a * log_z[at] - z - log_gamma[at]) * 0.5 * _series(2.0 * a, z)
        return result

    def _density(self, age: Floats) -> Floats:
        log_z = self._log_rate + self.shape * np.log(age)
        return np.asarray(np.exp(self._power * self._log_rate - self._log_gamma - np.exp(log_z)))

    def _triangle(self, start: Floats, width: Floats) -> Floats:
        total = super()._triangle(start, width)
        before = np.exp(self._log_rate + self.shape * np.log(start))
        growth = self.shape * np.log1p(width / start)
        steep = (before < _NOTHING) & ((growth > _STRAIGHT) | (before * np.expm1(growth) > _SMOOTH))
        if steep.any():  # few crawls, and a large shape: the difference itself is large enough
            at = np.flatnonzero(steep)
            # One page answers for as many gaps as are asked about.
            few = self if len(self) == 1 else self.part(at)
            gap, ratio = start[at], start[at] / width[at] + 1.0
            total[at] = ratio * (few._stale(gap + width[at]) - few._stale(gap)) - few._late(gap)
        return total

    def _exponent(self, gap: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """``log z`` and, in its shape, ``a``, ``log Gamma(a + 1)`` and ``log(Gamma(2 a) / Gamma(a))``."""
        log_z = self._log_rate + self.shape * np.log(gap)
        log_z, a, log_gamma, log_ratio = np.broadcast_arrays(log_z, self._power, self._log_gamma, self._log_ratio)
        return log_z, a, log_gamma, log_ratio


def _log_gamma(values: Floats) -> Floats:
    """Logarithm of the gamma function, once for each different value."""
    different, where = np.unique(values, return_inverse=True)
    return np.array([lgamma(value) for value in different])[where].reshape(values.shape)


def _whole(a: Floats) -> Floats:
    """Return the z from which on P(a, z) is 1."""
    return a + _WHOLE + 9.0 * np.sqrt(a)


def _series(a: Floats, z: Floats) -> Floats:
    """``1 + z / (a + 1) + z^2 / ((a + 1) (a + 2)) + ...``."""
    result = np.empty(z.shape)
    bands = np.searchsorted(_BANDS, z)
    for band in range(len(_BANDS) + 1):
        at = np.flatnonzero(bands == band)
        if at.size:
            result[at] = _summed(a[at], z[at])
    return result


def _summed(a: Floats, z: Floats) -> Floats:
    most, least = float(z.max()), float(a.min())
    term, count = 1.0, 0
    while term > 1e-17 or most > least + count:
        count += 1
        term *= most / (least + count)
    total = np.ones(z.shape)
    terms = np.arange(count, 0.0, -1.0)  # from the smallest
    # Of few pages all ratios at once, as most of the time is numpy's own.
    for ratio in z / (a + terms[:, None]) if z.size <= FEW else (z / (a + term) for term in terms.tolist()):
        total *= ratio
        total += 1.0
    return total
