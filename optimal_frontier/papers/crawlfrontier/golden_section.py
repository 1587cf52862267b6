"""Golden section search, with crawlfrontier's interface."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.validation import scalar, signed_scalar

Triple = tuple[float, float, float]
_SHARE = (3 - sqrt(5)) / 2  # 0.382: where the larger part of the interval is divided
_SCAN = 64


def golden_section_search(
    f: Callable[[float], float], xmin: float, xmax: float, eps: float, verbose: bool = False
) -> tuple[Triple, Triple] | None:
    """Find the minimum of a function.

    Parameters
    ----------
    f : callable
        float -> float, with one minimum in the interval; derivatives need not exist.
    xmin, xmax : float
        The start interval.
    eps : float
        Stop when the minimum is found inside an interval shorter than this, > 0 (or when floats cannot divide it further).
    verbose : bool
        Print the brackets.

    Returns
    -------
    ((xa, xb, xc), (fa, fb, fc)) or None
        ``f(xa) > f(xb) < f(xc)``, ``xa < xb < xc`` and ``xc - xa < eps``. None if no such triple was found to start from: a minimum at
        an end of the interval, or a function that is flat there.

    References
    ----------
    crawlfrontier, *Optimal revisiting algorithm*, Implementation; Numerical Recipes, section 10.2.

    Examples
    --------
    >>> (xa, xb, xc), _ = golden_section_search(lambda x: (x - 1) ** 2, 0.0, 3.0, 1e-6)
    >>> xa < 1 < xc
    True
    """
    if not callable(f):
        raise InvalidProblemError(f"f is a {type(f).__name__}; expected a function of one number")
    precision = scalar("eps", eps, positive=True)

    def value(x: float) -> float:
        fx = f(x)
        return fx if isinstance(fx, float) and fx == fx else signed_scalar(f"f({x!r})", fx, infinite=True)

    start = _bracket(value, signed_scalar("xmin", xmin), signed_scalar("xmax", xmax))
    if start is None:
        return None
    (xa, xb, xc), (fa, fb, fc) = start
    while xc - xa >= precision:
        x = xb + _SHARE * (xc - xb) if xc - xb > xb - xa else xb - _SHARE * (xb - xa)
        if not xa < x < xc or x == xb:
            break  # neighbouring floats
        fx = value(x)
        if fx < fb:
            if x > xb:
                xa, fa = xb, fb
            else:
                xc, fc = xb, fb
            xb, fb = x, fx
        elif fx == fb:  # rounding, at the bottom of the valley: the strict order of the three values cannot be kept any longer
            break
        elif x > xb:
            xc, fc = x, fx
        else:
            xa, fa = x, fx
        if verbose:
            print(f"golden section: [{xa!r}, {xc!r}], minimum so far {fb!r} at {xb!r}")
    return (xa, xb, xc), (fa, fb, fc)


def _bracket(f: Callable[[float], float], xmin: float, xmax: float) -> tuple[Triple, Triple] | None:
    """Three points with the middle one lowest, by scanning."""
    if not xmin < xmax:
        return None
    points = [xmin + (xmax / _SCAN - xmin / _SCAN) * k for k in range(_SCAN)] + [xmax]
    values = [f(x) for x in points]
    lowest = min(range(len(points)), key=values.__getitem__)
    if lowest in (0, _SCAN):  # look closer at that end before giving up
        end, inner = (xmin, points[1]) if lowest == 0 else (xmax, points[-2])
        f_end, f_inner = f(end), f(inner)
        for _ in range(60):
            x = end + (inner - end) / 2
            if x in (end, inner):
                return None
            fx = f(x)
            if fx < f_end and fx < f_inner:
                triple = sorted([(end, f_end), (x, fx), (inner, f_inner)])
                return (triple[0][0], triple[1][0], triple[2][0]), (triple[0][1], triple[1][1], triple[2][1])
            inner, f_inner = x, fx
        return None
    if not values[lowest - 1] > values[lowest] < values[lowest + 1]:
        left = next((k for k in range(lowest, -1, -1) if values[k] > values[lowest]), None)
        right = next((k for k in range(lowest, _SCAN + 1) if values[k] > values[lowest]), None)
        if left is None or right is None:
            return None
        return (points[left], points[lowest], points[right]), (values[left], values[lowest], values[right])
    trio = slice(lowest - 1, lowest + 2)
    xa, xb, xc = points[trio]
    fa, fb, fc = values[trio]
    return (xa, xb, xc), (fa, fb, fc)
