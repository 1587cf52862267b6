"""How often to visit a page at a given price: the one curve behind every evenly spaced plan.

A page of value ``w`` per visit that sees a change, visited every ``1 / f``, is worth ``w f (1 - exp(-r))`` per unit of time with
``r = change rate / f`` changes between two visits. One more visit per unit of time is worth ``w (1 - (1 + r) exp(-r))``. At a price ``p``
for a visit the best ``r`` solves ``1 - (1 + r) exp(-r) = p / w``: it is the quantile of the Gamma(2) distribution at ``p / w``, and the
best rate is ``change rate * g`` with ``g = 1 / r`` *visits per change*.

``g`` is tabulated against the odds ``z = p / (w - p)``, not against ``p / w``: ``r - log(1 + r) = log(1 + z)`` has no cancellation at
either end, and equal steps of ``log z`` resolve both the pages that are hardly worth a visit (``z -> inf``) and those visited many times
between two changes (``z -> 0``). Straight lines, `_BINS_PER_OCTAVE` to the octave, are within 6e-8 (relative) of ``g``: the objective's
loss is the square of that.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy  # scipy.special is imported at its first use: it takes 0.2 s
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SUB_BITS = 10  # 2 ** 10 bins to the octave of z
_BINS_PER_OCTAVE = 1 << _SUB_BITS
_SHIFT = 52 - _SUB_BITS
_LOWEST = -120  # log2 of the smallest z in the table; below it g = 1 / sqrt(2 z) to 1e-18
_HIGHEST = 54  # w - p is at least one rounding of p, so z < 2 ** 54 for a page that is worth a visit
_BASE = (1023 + _LOWEST) << _SUB_BITS  # the leading bits of the double 2 ** _LOWEST
TINY_ODDS = 2.0**_LOWEST
#: Odds below which five terms of r's series are exact.
_NEAR = 2.0**-16


def changes_between_visits(odds: Floats) -> Floats:
    """Best number of changes between two visits, ``r``, at price odds ``z``.

    Parameters
    ----------
    odds : ndarray, any shape
        ``z = p / (w - p) > 0`` for a page of value ``w`` at price ``p``.

    Returns
    -------
    ndarray
        ``r`` with ``r - log1p(r) = log1p(z)``, to about 1e-14 relative.

    Notes
    -----
    Quantiles of Gamma(2), from scipy: at ``z / (1 + z)`` from below, or at ``1 / (1 + z)`` from above, whichever is smaller, so that no
    digit is lost. About 0.4 us each. Where z is tiny, the series in ``s``, ``s^2 / 2 = log1p(z)`` (DLMF 8.12, lambda = 1 + r), which costs
    a tenth: most of the table is there. This is the reference that the table is made from.
    """
    z = np.asarray(odds, dtype=np.float64)
    result = np.empty_like(z)
    near, far = z < _NEAR, z >= 1
    middle = ~(near | far)
    s = np.sqrt(2.0 * np.log1p(z[near]))
    result[near] = s * (1 + s * (1 / 3 + s * (1 / 36 + s * (-1 / 270 + s / 4320))))
    result[middle] = scipy.special.gammaincinv(2.0, z[middle] / (1 + z[middle]))
    result[far] = scipy.special.gammainccinv(2.0, 1 / (1 + z[far]))
    return result


@cache
def _table() -> Floats:
    """Pairs ``a, b`` of ``g(z) = a + b z`` per bin; the first and the last are 0: pages not worth a visit.

    Indexed by the leading bits of z themselves; the part between the first entry and `_BASE` is never touched, so it takes no memory.
    """
    octaves = _HIGHEST - _LOWEST
    half = 0.5 / _BINS_PER_OCTAVE
    offset = half * np.sqrt(0.5)  # Chebyshev nodes of a straight line
    centre = np.tile(1 + np.arange(_BINS_PER_OCTAVE) / _BINS_PER_OCTAVE + half, octaves)
    scale = np.repeat(2.0 ** np.arange(_LOWEST, _HIGHEST), _BINS_PER_OCTAVE)
    low, high = (1 / changes_between_visits((centre + shift) * scale) for shift in (-offset, offset))
    slope = (high - low) / (2 * offset)
    table = np.zeros((_BASE + centre.size + 1, 2))
    table[_BASE:-1, 0] = 0.5 * (low + high) - slope * centre
    table[_BASE:-1, 1] = slope / scale
    return table


@cache
def _rough_table() -> Floats:
    """Mean of ``g`` over each bin of value / price, indexed by the leading bits of that; 0 where it is below 1."""
    octaves, bins = -_LOWEST // 2, _BINS_PER_OCTAVE
    scale = np.repeat(2.0 ** np.arange(octaves), bins)
    middle = (np.tile(1 + (np.arange(bins) + 0.5) / bins, octaves)) * scale
    table = np.zeros((1023 << _SUB_BITS) + middle.size)
    table[1023 << _SUB_BITS :] = 1 / changes_between_visits(1 / (middle - 1))
    # In the first bin g rises from 0 as steeply as 1 / -log(ratio - 1).
    steps = (np.arange(64) + 0.5) / 64 / bins
    table[1023 << _SUB_BITS] = (1 / changes_between_visits(1 / steps)).mean()
    return table


class ResponseKernel:
    """Working memory and table for evaluating ``g`` block by block.

    Blocks of `size` pages stay in the processor's cache, which is what makes a dozen numpy passes cost little more than one.

    Parameters
    ----------
    size : int
        Largest block that will be asked for.

    Attributes
    ----------
    odds : ndarray (size,)
        ``z`` of the pages of the last block; negative for a page that is worth less than its price.
    """

    def __init__(self, size: int) -> None:
        self._table = _table()
        self.odds = np.empty(size)
        self._index = np.empty(size, np.int64)
        self._lines = np.empty((size, 2))

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
            Results. A page whose value does not exceed the price gets 0 in both. `out` may be `value`, unless `tiny`.
        tiny : bool
            True if some odds may lie below the table (`TINY_ODDS`).
        """
        m = out.size
        odds, index, lines = self.odds[:m], self._index[:m], self._lines[:m]
        np.subtract(value, price, out=odds)
        np.divide(price, odds, out=odds)
        # The odds of a page that is worth less than its price are negative; so is the index then, which goes to the first entry.
        np.right_shift(odds.view(np.int64), _SHIFT, out=index)
        self._table.take(index, axis=0, out=lines, mode="clip")
        np.multiply(lines[:, 1], odds, out=out)
        if slope is not None:  # dz / d log(price) = z (1 + z)
            np.add(odds, 1.0, out=slope)
            np.multiply(slope, out, out=slope)
        np.add(out, lines[:, 0], out=out)
        lowest = np.minimum.reduce(out)
        if lowest != lowest:  # 0 x inf: a value that equals the price
            even = np.isinf(odds)
            out[even] = 0.0
            if slope is not None:
                slope[even] = 0.0
        if tiny:
            below = (odds < TINY_ODDS) & (value > price)
            out[below] = 1 / np.sqrt(2 * odds[below])
            if slope is not None:
                slope[below] = -0.5 * out[below]


def changes_by_table(share: Floats) -> Floats:
    """Best number of changes between two visits of many pages, ``r``, where the price is a share of what a visit is worth.

    Parameters
    ----------
    share : ndarray (n,)
        ``p / w``, above 0 and below 1 - 1e-15.

    Returns
    -------
    ndarray (n,)
        `changes_between_visits` to 6e-8 relative, in a tenth of its time; the table takes 0.1 s at its first use.
    """
    visits = np.empty(share.shape)
    ResponseKernel(len(share)).visits_per_change(np.ones(share.shape), share, visits, tiny=True)
    return 1.0 / visits


class RoughKernel:
    """``g`` to one part in a thousand a page, errors of both signs, at half the time of `ResponseKernel`: for sums over many pages.

    Parameters
    ----------
    size : int
        Largest block that will be asked for.
    """

    def __init__(self, size: int) -> None:
        self._table = _rough_table()
        self._index = np.empty(size, np.int64)

    def visits_per_change(self, value: Floats, price: Floats | float, out: Floats) -> None:
        """Write ``g`` of every page of `value` at a price, or its own, into `out`, which may be `value`; at most that of ``2 ** 60``."""
        index = self._index[: out.size]
        if isinstance(price, np.ndarray):
            np.divide(value, price, out=out)
        else:
            np.multiply(value, 1 / price, out=out)
        np.right_shift(out.view(np.int64), _SHIFT, out=index)
        np.take(self._table, index, out=out, mode="clip")


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
