"""Heavy-tailed updates: long silences are as likely as a power law says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.papers.wolf.update_models.evenly_spaced import EvenlySpaced, quadrature
from optimal_frontier.papers.wolf.update_models.model import page_parameters
from optimal_frontier.validation import numeric_array


class Pareto(EvenlySpaced):
    """Times between updates with tail (scale / (scale + t))^shape, and mean scale / (shape - 1).

    Parameters
    ----------
    scale : float or array_like (n,)
        Time, > 0.
    shape : float or array_like (n,)
        Above 1, so that there is a mean.

    Raises
    ------
    InvalidProblemError
        A scale is not positive, or a shape not above 1; both at most 1e100.

    Notes
    -----
    A copy of age s is fresh with probability ``(scale / (scale + s))^(shape - 1)``. With ``y = T / (x + 1) / scale`` and
    ``q = shape - 1``: ``A(x) = 1 - ((1 + y)^(1 - q) - 1) / ((1 - q) y)``, or ``1 - log(1 + y) / y`` where the shape is 2. The paper's
    range of shapes, 0 to 2, includes those up to 1, for which the mean is infinite and eq. 3 undefined.

    References
    ----------
    Wolf et al. 2002, eq. 3 and section 4.

    Examples
    --------
    >>> Pareto(1.0, 2.0).staleness([0, 1], interval=1.0).round(6)  # 1 - log 2, 1 - 2 log 1.5
    array([0.306853, 0.18907 ])
    """

    _per_page = ("scale", "shape", "_excess")

    def __init__(self, scale: ArrayLike, shape: ArrayLike) -> None:
        shapes = numeric_array("shape", shape)
        if not (shapes > 1).all():
            at = np.unravel_index(int(np.argmin(shapes > 1)), shapes.shape)
            where = f"[{', '.join(map(str, at))}]" if shapes.ndim else ""
            raise InvalidProblemError(f"shape{where} is {shapes[at]}; expected a number above 1: the times between updates have no mean")
        parameters = page_parameters({"scale": scale, "shape": shape})
        self.scale: Floats = parameters["scale"]
        self.shape: Floats = parameters["shape"]
        self._excess = self.shape - 1.0
        self._pages = self.scale.shape

    @classmethod
    def from_mean(cls, mean: ArrayLike, shape: ArrayLike) -> Pareto:
        """Return the model with a given mean time between updates, > 0, scalar or (n,)."""
        parameters = page_parameters({"mean": mean, "shape": shape})
        return cls(parameters["mean"] * (parameters["shape"] - 1.0), parameters["shape"])

    def _stale(self, gap: Floats) -> Floats:
        y, q = np.broadcast_arrays(gap / self.scale, self._excess)
        result = np.empty(y.shape)
        short, light, rest = _cases(y, q)
        result[short] = _integral(y[short], q[short], lambda v: 1.0 - v)
        result[light] = (-np.expm1(-q[light] * np.log1p(y[light])) * (1.0 + y[light]) - q[light] * y[light]) / ((1.0 - q[light]) * y[light])
        result[rest] = 1.0 - _fresh_time(y[rest], q[rest]) / y[rest]
        return result

    def _late(self, gap: Floats) -> Floats:
        y, q = np.broadcast_arrays(gap / self.scale, self._excess)
        result = np.empty(y.shape)
        short, light, rest = _cases(y, q)
        result[short] = _integral(y[short], q[short], lambda v: v)
        result[light] = (q[light] * _fresh_time(y[light], q[light]) + np.expm1(-q[light] * np.log1p(y[light]))) / y[light]
        result[rest] = _fresh_time(y[rest], q[rest]) / y[rest] - np.exp(-q[rest] * np.log1p(y[rest]))
        return result

    def _density(self, age: Floats) -> Floats:
        return np.asarray(self._excess / self.scale * np.exp(-self.shape * np.log1p(age / self.scale)))


def _cases(y: Floats, q: Floats) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaps that are short, for which integrals are summed; longer ones of q below 1/2; and all others: each has its form without loss."""
    short = (y <= 1.0) & (q * y <= 1.0)
    light = ~short & (q < 0.5)
    return short, light, ~short & ~light


def _fresh_time(y: Floats, q: Floats) -> Floats:
    """``int_0^y (1 + t)^-q dt = ((1 + y)^(1 - q) - 1) / (1 - q)``."""
    rise = (1.0 - q) * np.log1p(y)
    return np.log1p(y) * np.where(rise == 0, 1.0, np.expm1(rise) / rise)


def _integral(y: Floats, q: Floats, part: Callable[[Floats | float], Floats | float]) -> Floats:
    """``q y int_0^1 part(v) (1 + y v)^-(q + 1) dv``."""
    return np.asarray(q * y * quadrature(lambda v: part(v) * np.exp(-(q + 1.0) * np.log1p(y * v)), y.size))
