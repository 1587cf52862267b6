"""When a page is looked at that changes more often while it is young: the looks that lose least freshness at the price.

Notes
-----
A page that was visited at age u shows an old copy from its next change on. A look at the age v costs the price, in seconds of freshness q,
and the time in which the copy is old, ``c(u, v) = v - u - integral from u to v of exp(-(L(t) - L(u))) dt``, where L is the integral of its
change rate: h until it is no longer young, m from then on. With ``rho`` the cost of a second in later life, where the page is revisited at
the interval that is best for m, what is lost from u on beyond that is

    V(u) = min over v > u of c(u, v) + q - rho (v - u) + V(v),      V = 0 once it is no longer young.

That is solved backwards over ages that are close together where the page is young: dynamic programming. A page that would be given up at
the rate h is still looked at when its youth is over, as it is known to have changed and will stay as it is.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.single import changes_per_visit

Floats = NDArray[np.float64]

#: Ages of looks, in shares of youth: evenly, and so many times half as old as the first of these; and after its end, in shares of it.
_EVEN: Final = 16
_HALVES: Final = 12
_AFTER: Final = (1.03, 1.125, 1.25, 1.5, 2.0)
#: And in later intervals of the page.
_LATER: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
#: Logarithms are rounded to this part, so that pages of a pattern share what was solved.
_PARTS: Final = 8.0
#: They are held to where numbers made of several of them are finite.
_MOST_LOG: Final = 150.0


class Youth(NamedTuple):
    """How often pages change while they are young.

    Attributes
    ----------
    rate : float
        Changes per second, > 0.
    until : float
        The age (s) at which they are that no more, counted from their first visit; > 0.
    """

    rate: float
    until: float


def young_wait(youth: Youth, later_rate: float, log_worth: float, age: float) -> float:
    """Return after how long a young page that was just visited is looked at.

    Parameters
    ----------
    youth : Youth
        Of its kind.
    later_rate : float
        Changes per second afterwards, > 0.
    log_worth : float
        Logarithm of the seconds of freshness that a visit has to be worth: price / importance.
    age : float
        Of the page, seconds.

    Returns
    -------
    float
        Seconds; inf where it is no longer young, or where no look is worth its price.

    Notes
    -----
    About 1 ms for the first page at a price, 2 us for those that follow.

    Examples
    --------
    Pages that change three times in two minutes and hardly ever after that: where a visit has to be worth ten minutes one look is best,
    when that is over; where it has to be worth two seconds many are.

    >>> [round(young_wait(Youth(1 / 40, 128.0), 1e-5, math.log(worth), 0.0)) for worth in (600.0, 2.0)]
    [128, 16]
    >>> young_wait(Youth(1 / 40, 128.0), 1e-5, 1.0, 130.0), young_wait(Youth(1 / 40, 128.0), 1e-5, math.log(2e5), 0.0)
    (inf, inf)
    """
    until = youth.until
    if not 0.0 <= age < until or not math.isfinite(log_worth) or youth.rate <= 0.0 or later_rate <= 0.0:
        return math.inf
    in_youth = (math.log(youth.rate) + math.log(until), math.log(later_rate) + math.log(until), log_worth - math.log(until))
    ages, following = _looks(*(round(min(max(value, -_MOST_LOG), _MOST_LOG) * _PARTS) for value in in_youth))
    share = age / until
    # As for the nearest of the ages that were solved for.
    after = min(int(np.searchsorted(ages, share)), len(ages) - 1)
    then = following[after - (after > 0 and share - ages[after - 1] < ages[after] - share)]
    return (then - share) * until if then < math.inf else math.inf


@lru_cache(maxsize=4096)
def _looks(rate: int, later_rate: int, worth: int) -> tuple[Floats, list[float]]:
    """Return ages from 0 to 1, and when each is followed by the next look, in the unit of youth; arguments are rounded logarithms."""
    h, m, q = (math.exp(value / _PARTS) for value in (rate, later_rate, worth))
    if m * q < 1.0:
        r = changes_per_visit(m * q)
        rho = (r + math.expm1(-r) + m * q) / r if r > 0.0 else 0.0
        later = r / m
    else:
        rho, later = 1.0, 1.0 / m
    even = np.arange(1, _EVEN + 1) / _EVEN
    young = np.concatenate([[0.0], even[0] * 0.5 ** np.arange(_HALVES, 0, -1), even])
    ages = np.unique(np.concatenate([young, _AFTER, 1.0 + later * np.array(_LATER)]))
    inside = len(young) - 1
    rates = np.where(np.arange(len(ages) - 1) < inside, h, m)
    steps = rates * np.diff(ages)
    passed = np.append(0.0, np.cumsum(steps))
    fresh_s = -np.expm1(-steps) / rates
    value, following = np.zeros(len(ages)), [math.inf] * (inside + 1)
    for i in range(inside - 1, -1, -1):
        fresh = np.cumsum(np.exp(passed[i] - passed[i:-1]) * fresh_s[i:])
        span = ages[i + 1 :] - ages[i]
        cost = span - fresh + q - rho * span + value[i + 1 :]
        best = int(np.argmin(cost))
        value[i] = cost[best]
        # A page that is given up afterwards may as well never be looked at.
        if rho < 1.0 or cost[best] < -fresh[-1]:
            following[i] = float(ages[i + 1 + best])
        else:
            value[i] = -fresh[-1]
    return ages[: inside + 1], following
