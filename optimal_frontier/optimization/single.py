"""The optimal revisit rate of one page at a given price, in plain floats: what a new page gets between two plans.

`periodic_rates_at` answers the same for arrays; a test holds the two equal. On one page numpy's overhead is most of its time.
"""

from __future__ import annotations

import math
from typing import Final, Literal

#: Newton's method is quadratic here; this many steps are never reached.
_MOST_STEPS: Final = 60
_PRECISION: Final = 1e-12


def periodic_rate_at(
    importance: float,
    change_rate: float,
    multiplier: float,
    objective: Literal["freshness", "changes"] = "freshness",
    *,
    min_rate: float = 0.0,
    max_rate: float = math.inf,
) -> float:
    """Return the revisit rate at which one more visit of the page is worth just ``multiplier``.

    Parameters
    ----------
    importance, change_rate : float
        Weight above 0 and change rate per second, 0 or more.
    multiplier : float
        Objective per fetch per second that a visit must be worth, above 0.
    objective : {"freshness", "changes"}
        Azar et al. 2018, eq. 6, or crawlfrontier's T.
    min_rate, max_rate : float
        Bounds, visits per second.

    Returns
    -------
    float
        Visits per second.

    Notes
    -----
    With changes per visit ``r = change_rate / rate`` the marginal of either objective is a multiple of ``1 - (1 + r) exp(-r)``, whose root
    Newton's method finds from above.

    Examples
    --------
    >>> round(periodic_rate_at(1.0, 0.1, 2.0), 6)
    0.121302
    """
    worth = importance / change_rate if objective == "freshness" and change_rate > 0 else importance
    if change_rate <= 0 or multiplier >= worth:
        return min(max(0.0, min_rate), max_rate)
    rate = change_rate / _changes_per_visit(multiplier / worth)
    return min(max(rate, min_rate), max_rate)


def _changes_per_visit(q: float) -> float:
    # f(r) = 1 - (1 + r) exp(-r) is r^2/2 - r^3/3 + ... near 0 and 1 - (1 + r) exp(-r) far away; both starts lie near the root.
    if q < 1e-8:
        return math.sqrt(2 * q) + 2 * q / 3
    r = math.sqrt(2 * q) + 2 * q / 3 if q < 0.5 else 1.0 - math.log1p(-q) + math.log1p(-math.log1p(-q))
    for _ in range(_MOST_STEPS):
        decay = math.exp(-r)
        # -expm1(-r) - r exp(-r) keeps its digits where 1 - (1 + r) exp(-r) cancels.
        step = (-math.expm1(-r) - r * decay - q) / (r * decay)
        r -= step
        if abs(step) <= _PRECISION * r:
            break
    return r
