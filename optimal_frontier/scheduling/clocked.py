"""When pages are due for which time passes on another clock than the calendar: that of their neighbourhood.

Once a clock has run ahead, many pages are late at the same moment, and their order matters more than when each of them became so. A queue
is in the order of deadlines, of which the earliest is not the page that loses most by waiting (`price_law`). So each late page gets the
deadline from which a page of one common slope would be worth as much by now: the queue stands in the order of value.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.response import marginal_share

Floats = NDArray[np.float64]

#: Slope that late pages get, in rounds (the time in which the budget visits every page once).
SPREAD_ROUNDS: Final = 1.0 / 8.0
#: A deadline stays where it is if it would move by less than so many slopes: that much a visit is worth more or less, in logarithms. That
#: of a page that stands among the late ones comes nearer by itself, and is not placed anew at every look.
_NOTICEABLE: Final = 0.1
_AGAIN: Final = 0.6
#: What rounding to 32 bits leaves of a slope.
_ROUNDING: Final = 1e-3
#: A late page waits at least for this share of the time that it may have waited, so that its deadline keeps off its shortest wait.
_LEAST: Final = 0.01


def on_clock(
    wait: Floats, slope: Floats, change_rate: Floats, since: Floats, shift: Floats, shortest: Floats, spread: float
) -> tuple[Floats, Floats]:
    """Return waits on the calendar, and their slopes, of pages whose time runs on other clocks.

    Parameters
    ----------
    wait, slope : ndarray (n,)
        What `numbers.waits_at_price` gives at the present price: seconds on the page's own clock.
    change_rate : ndarray (n,)
        Changes per second on that clock.
    since, shift : ndarray (n,)
        Seconds since the last visit on the calendar, and by how many more the clock has run meanwhile.
    shortest : ndarray (n,)
        Shortest waits, seconds on the calendar.
    spread : float
        Slope that all late pages get, > 0, seconds.

    Returns
    -------
    wait, slope : ndarray (n,)
        Seconds since the last visit; the slopes are those of a, s and L in `numbers.deadline`.

    Notes
    -----
    A visit is worth a multiple of h(r) = 1 - (1 + r) exp(-r) when r changes are expected (Azar et al. 2018, eq. 6). With change rate x
    one to a late page is worth ``z = log(h(x (since + shift)) / h(x wait))`` more than the price, in logarithms, and its wait becomes
    ``since - z spread``. A page without a slope (its host is at its limit) gets none.

    Examples
    --------
    >>> pages = np.array([100.0, 100.0]), np.array([50.0, 50.0]), np.array([1e-4, 1e-4]), np.array([80.0, 80.0])
    >>> [values.round(1).tolist() for values in on_clock(*pages, np.array([10.0, 120.0]), np.zeros(2), 10.0)]
    [[90.0, 66.2], [50.0, 10.0]]
    """
    elapsed = np.maximum(since + shift, 0.0)
    late = np.flatnonzero(elapsed > wait)
    due, slopes = np.array(wait - shift), np.array(slope, np.float64)
    x, least = change_rate[late], shortest[late] + _LEAST * np.maximum(since[late] - shortest[late], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.log(marginal_share(x * elapsed[late]) / marginal_share(x * wait[late]))
    due[late], slopes[late] = np.maximum(since[late] - worth * spread, least), np.where(slope[late] > 0.0, spread, 0.0)
    return due, slopes


def is_noticeable(moved: Floats, before: Floats, slope: Floats, spread: float) -> NDArray[np.bool_]:
    """Tell whether deadlines that move by so many seconds are worth writing, (n,), given their slopes before and now."""
    stands = (np.abs(before - spread) <= _ROUNDING * spread) & (slope == spread)
    return np.asarray(np.abs(moved) > np.where(stands | (slope == 0.0), _AGAIN, _NOTICEABLE) * np.where(slope > 0.0, slope, spread))
