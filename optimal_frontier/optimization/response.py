"""How often to visit a page at a given price: the one curve behind every evenly spaced plan.

A page of value ``w`` per visit that sees a change, visited every ``1 / f``, is worth ``w f (1 - exp(-r))`` per unit of time with
``r = change rate / f`` changes between two visits. One more visit per unit of time is worth ``w (1 - (1 + r) exp(-r))``. At a price ``p``
for a visit the best ``r`` solves ``1 - (1 + r) exp(-r) = p / w``: it is the quantile of the Gamma(2) distribution at ``p / w``, and the
best rate is ``change rate * g`` with ``g = 1 / r`` *visits per change*.

``g`` is tabulated against the odds ``z = p / (w - p)``, not against ``p / w``: ``r - log(1 + r) = log(1 + z)`` has no cancellation at
either end, and equal steps of ``log z`` resolve both the pages that are hardly worth a visit (``z -> inf``) and those visited many times
between two changes (``z -> 0``). One quadratic in ``z`` per bin of `_BINS_PER_OCTAVE` to the octave is within 1e-9 (relative) of ``g``.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SUB_BITS = 8  # 2 ** 8 bins to the octave of z
_BINS_PER_OCTAVE = 1 << _SUB_BITS
_SHIFT = 52 - _SUB_BITS
_LOWEST = -120  # log2 of the smallest z in the table; below it g = 1 / sqrt(2 z) to 1e-18
_HIGHEST = 54  # w - p is at least one rounding of p, so z < 2 ** 54 for a page that is worth a visit
_BASE = (1023 + _LOWEST) << _SUB_BITS  # the leading bits of the double 2 ** _LOWEST
TINY_ODDS = 2.0**_LOWEST
#: w - p is raised to this share of p, which sends the page to the last entry of the table: no visits.
_FLOOR = 2.0**-60
_SERIES = (1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120)


def changes_between_visits(odds: Floats) -> Floats:
    """Best number of changes between two visits, ``r``, at price odds ``z``.

    Parameters
    ----------
    odds : ndarray, any shape
        ``z = p / (w - p) > 0`` for a page of value ``w`` at price ``p``.

    Returns
    -------
    ndarray
        ``r`` with ``r - log1p(r) = log1p(z)``, to about 1e-15 relative.

    Notes
    -----
    Temme's series in ``s = sqrt(2 log1p(z))`` for ``s < 0.1``, Newton above. This is the reference that the table is made from.
    """
    target = np.log1p(odds)
    root = np.sqrt(2 * target)
    series = np.zeros_like(root)
    for coefficient in reversed(_SERIES):
        series = (series + coefficient) * root
    r = np.where(root < 1, series, target + np.log1p(target + root))
    for _ in range(6):
        step = (r - np.log1p(r) - target) * (1 + r) / r
        r = np.where(root < 0.1, r, r - step)
    result: Floats = r
    return result


class _Table(NamedTuple):
    constant: Floats
    linear: Floats
    square: Floats


@cache
def _table() -> _Table:
    """Coefficients of ``g(z) = constant + linear z + square z ** 2`` per bin; the last entry is for pages not worth a visit."""
    octaves = _HIGHEST - _LOWEST
    start = 1 + np.arange(_BINS_PER_OCTAVE) / _BINS_PER_OCTAVE
    half = 0.5 / _BINS_PER_OCTAVE
    offset = half * np.sqrt(0.75)  # Chebyshev nodes of a quadratic
    centre = np.tile(start + half, octaves)
    scale = np.repeat(2.0 ** np.arange(_LOWEST, _HIGHEST), _BINS_PER_OCTAVE)
    low, mid, high = (1 / changes_between_visits((centre + shift) * scale) for shift in (-offset, 0.0, offset))
    slope = (high - low) / (2 * offset)
    curve = (high - 2 * mid + low) / (2 * offset**2)
    columns = (mid - centre * slope + centre**2 * curve, (slope - 2 * centre * curve) / scale, curve / scale**2)
    padded = []
    for column in columns:  # indexed by the leading bits themselves; the part below _BASE is never touched, so it takes no memory
        full = np.zeros(_BASE + column.size + 1)
        full[_BASE:-1] = column
        padded.append(full)
    return _Table(*padded)


class ResponseKernel:
    """Working memory and table for evaluating ``g`` block by block.

    Blocks of `size` pages stay in the processor's cache, which is what makes a dozen numpy passes cost little more than one.

    Parameters
    ----------
    size : int
        Largest block that will be asked for.
    """

    def __init__(self, size: int) -> None:
        self._table = _table()
        self._odds = np.empty(size)
        self._index = np.empty(size, np.int64)
        self._gather = np.empty(size)
        self._work = np.empty(size)

    def visits_per_change(
        self, value: Floats, price: Floats | float, out: Floats, slope: Floats | None = None, *, tiny: bool = False
    ) -> None:
        """Write ``g`` of every page into `out`, and ``d g / d log(price)`` into `slope`.

        Parameters
        ----------
        value : ndarray (m,)
            Worth of a visit that sees a change, >= 0 and finite.
        price : float or ndarray (m,)
            Price of a visit, > 0, in the unit of `value`.
        out, slope : ndarray (m,)
            Results. A page whose value does not exceed the price gets 0 in both.
        tiny : bool
            True if some odds may lie below the table (`TINY_ODDS`).
        """
        m = out.size
        odds, index, gather, work = self._odds[:m], self._index[:m], self._gather[:m], self._work[:m]
        table = self._table
        np.subtract(value, price, out=work)
        np.maximum(work, price * _FLOOR, out=work)
        np.divide(price, work, out=odds)
        np.right_shift(odds.view(np.int64), _SHIFT, out=index)
        np.take(table.square, index, out=gather, mode="clip")
        np.multiply(gather, odds, out=work)
        np.take(table.linear, index, out=gather, mode="clip")
        np.add(work, gather, out=out)
        if slope is not None:
            np.add(out, work, out=slope)
        np.multiply(out, odds, out=out)
        np.take(table.constant, index, out=gather, mode="clip")
        np.add(out, gather, out=out)
        if slope is not None:  # dz / d log(price) = z (1 + z)
            np.multiply(slope, odds, out=slope)
            np.add(odds, 1.0, out=work)
            np.multiply(slope, work, out=slope)
        if tiny:
            below = odds < TINY_ODDS
            out[below] = 1 / np.sqrt(2 * odds[below])
            if slope is not None:
                slope[below] = -0.5 * out[below]


def caught_share(changes: Floats) -> Floats:
    """``1 - exp(-r)``: probability that a visit sees a change, given ``r`` expected changes since the last one."""
    result: Floats = -np.expm1(-changes)
    return result


def marginal_share(changes: Floats) -> Floats:
    """``1 - (1 + r) exp(-r)`` without cancellation: value of one more visit per unit of time, as a share of the page's value.

    Parameters
    ----------
    changes : ndarray, any shape
        Changes between two visits, ``r >= 0``; may be inf.
    """
    r = np.minimum(changes, 700.0)
    result: Floats = -np.expm1(-r) - r * np.exp(-r)
    small = r < 0.03
    if small.any():
        result[small] = marginal_share_series(r[small])
    return result


def marginal_share_series(r: Floats) -> Floats:
    """`marginal_share` for ``r < 0.03`` by its Taylor series, to 1e-16 relative: ``sum over k >= 2 of (-1) ** k (k - 1) / k! r ** k``."""
    result: Floats = r * r * (1 / 2 - r * (1 / 3 - r * (1 / 8 - r * (1 / 30 - r * (1 / 144 - r * (1 / 840 - r * (1 / 5760 - r / 45360)))))))
    return result
