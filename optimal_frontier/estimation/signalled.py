"""The step of the filter for a visit to a page of which signals tell: a Gamma posterior, a bit and a number of signals.

Notes
-----
Let a page change at the rate x, a share r of the changes be told of, and false signals come at the rate f. What a visit finds after an
interval I with n signals has, as a function of x, the likelihood (the times of the visits may depend on the signals as they like)

* unchanged: ``e^(-Ix)``. All signals were false, so they tell nothing of x: Gamma(a, b + I), exactly, as at any visit.
* changed: ``e^(-rIx) ((1 + r x / f)^n - e^(-(1 - r) I x))``. That is a mixture: j of the signals were true, each with a factor ``r x / f``,
  or none was and the change came without a word. Its parts are Gamma(a + j, b + r I), and what an ordinary visit after (1 - r) I makes of
  Gamma(a, b + r I). The Gamma with the mean and variance of the mixture takes its place.

Without signals (r = 0, or n = 0 and r = 0) it is the ordinary step; where every change is told of and nothing else, Gamma(a + 1, b + I).
An ordinary step in its place would take the time of such a visit for chance, while it was chosen by the change: the rate would come out
too high.
"""

from __future__ import annotations

import math
from typing import Final

from optimal_frontier.estimation.filtering import update_one

#: More signals than these are joined: ``(1 + y)^n`` to ``(1 + y n / m)^m``.
_MOST: Final = 6.0
#: Least false signals for each change.
_LEAST_FALSE: Final = 1e-20


def update_signalled(
    shape: float, time: float, interval: float, changed: bool, signals: float, recall: float, false_rate: float
) -> tuple[float, float]:
    """Return shape and time of the posterior after a visit to a page of which signals tell.

    Parameters
    ----------
    shape, time : float
        Posterior before it, > 0; time in seconds.
    interval : float
        Seconds since the last successful visit, > 0.
    changed : bool
        The bit.
    signals : float
        That came since the last visit, 0 or more.
    recall : float
        Share of the changes that are told of. Of several sources: that of all together.
    false_rate : float
        Signals per second that no change caused. Of several sources, false rate and number of the strongest signals: two sources that
        tell tell of one change.

    Notes
    -----
    About 5 us.

    Examples
    --------
    >>> update_signalled(2.0, 100.0, 50.0, False, 3, 0.6, 0.01)
    (2.0, 150.0)
    >>> [round(number, 3) for number in update_signalled(2.0, 100.0, 50.0, True, 1, 1.0, 0.0)]
    [3.0, 150.0]
    """
    if not changed or recall <= 0.0:
        return update_one(shape, time, interval, changed)
    base = time + recall * interval
    total = mean = square = 0.0
    silent = (1.0 - recall) * interval
    if silent > 0.0:
        # No signal was true: what is left of the ordinary step.
        weight = -math.expm1(-shape * math.log1p(silent / base))
        after, until = update_one(shape, base, silent, True)
        first, second = after / until, after * (after + 1.0) / (until * until)
        total, mean, square = weight, weight * first, weight * second
    count = math.floor(min(signals, _MOST))
    if count:
        odds = recall / max(false_rate, _LEAST_FALSE * shape / time) * (signals / count)
        weight = 1.0
        for true in range(1, count + 1):
            weight *= (count + 1.0 - true) / true * odds * (shape + true - 1.0) / base
            first = (shape + true) / base
            total += weight
            mean += weight * first
            square += weight * first * (shape + true + 1.0) / base
    if total <= 0.0:
        return shape + 1.0, time + interval
    mean, square = mean / total, square / total
    spread = square - mean * mean
    return mean * mean / spread, mean / spread
