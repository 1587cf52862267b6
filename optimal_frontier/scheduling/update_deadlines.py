"""Pages that are republished at known times: when they are due, and which of the times a visit has seen.

Such a page is due at the first update time that the plan buys a visit for, later than the last visit; at the latest at the first update
time at all once its longest interval is over. Where gap, backoff or a late crawler would put the visit shortly before an update time, it
waits for that.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.settings import Timetable

#: Seconds from an update time to the deadline of its visit: clocks of two machines are not quite the same.
SLACK_S: Final = 0.1
#: Share of the period before an update time in which the page is left alone; where times are close, half of the time between them.
QUIET_SHARE: Final = 0.1

Floats = NDArray[np.float64]


def next_update(timetable: Timetable, after: ArrayLike, wanted: ArrayLike = True) -> tuple[Floats, NDArray[np.int64]]:
    """Return the first update time later than some time, and which one of the period it is.

    Parameters
    ----------
    timetable : Timetable
        With q update times.
    after : array_like (n,)
        Seconds since the epoch.
    wanted : array_like of bool, (q,) or (n, q)
        Which of the times count.

    Returns
    -------
    times : ndarray (n,)
        Seconds since the epoch; inf where no time counts.
    which : ndarray of int (n,)
        From 0; 0 where no time counts.

    Examples
    --------
    >>> page = Timetable(86400.0, (21600.0, 64800.0), (1.0, 1.0))
    >>> times, which = next_update(page, [0.0, 107_999.0, 108_000.0])
    >>> times.tolist(), which.tolist()
    ([21600.0, 108000.0, 151200.0], [0, 0, 1])
    """
    at = np.atleast_1d(np.asarray(after, dtype=np.float64))[:, None]
    q = len(timetable.times)
    start = np.floor(at / timetable.period) * timetable.period
    candidates = np.hstack([start + np.array(timetable.times), start + timetable.period + np.array(timetable.times)])
    fits = (candidates > at) & np.tile(np.broadcast_to(wanted, (len(at), q)), (1, 2))
    first = fits.argmax(axis=1)
    found = np.where(fits.any(axis=1), candidates[np.arange(len(at)), first], np.inf)
    return found, first % q


def visit_deadline(
    timetable: Timetable, bought: ArrayLike, seen: ArrayLike, earliest: ArrayLike, longest: ArrayLike, now: ArrayLike = -np.inf
) -> Floats:
    """Return when pages of one timetable are due.

    Parameters
    ----------
    timetable : Timetable
        With q update times.
    bought : array_like of bool, (q,) or (n, q)
        Update times that a visit is planned for.
    seen : array_like (n,)
        When the last visit that counts was made, seconds since the epoch: what was published until then was seen.
    earliest : array_like (n,)
        When gap and backoff allow the next one.
    longest : array_like (n,)
        Longest interval from ``seen`` on, seconds; may be inf. The page is due at the last update time in it, wanted or not, or if that is
        not later than ``seen`` and ``earliest``, at its end.
    now : array_like (n,)
        For a page that is about to be handed out: the time; a deadline in the past moves to the next update time if that is close.

    Returns
    -------
    ndarray (n,)
        Seconds since the epoch; inf for never.

    Examples
    --------
    >>> page = Timetable(86400.0, (21600.0, 64800.0), (0.2, 1.0))
    >>> visit_deadline(page, [False, True], seen=70_000.0, earliest=70_001.0, longest=1e9).tolist()
    [151200.1]
    >>> visit_deadline(page, [False, True], seen=70_000.0, earliest=70_001.0, longest=[36_000.0, 40_000.0]).tolist()
    [106000.0, 108000.1]
    >>> visit_deadline(page, [True, True], seen=10_000.0, earliest=10_001.0, longest=1e9, now=60_000.0).tolist()
    [64800.1]
    """
    last, open_, at_most = (np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in (seen, earliest, longest))
    target = next_update(timetable, last, bought)[0]
    finite = np.isfinite(at_most)
    end = last + np.where(finite, at_most, 0.0)
    times = np.array(timetable.times)
    coming, which = next_update(timetable, end - SLACK_S)
    before = coming - np.append(times[0] + timetable.period - times[-1], np.diff(times))[which] + SLACK_S
    latest = np.where(finite, np.where(before > np.maximum(last + SLACK_S, open_), before, end), np.inf)
    due = np.maximum(np.minimum(target + SLACK_S, latest), open_)
    at = np.maximum(due, now)
    never = ~np.isfinite(due)
    coming, which = next_update(timetable, np.where(never, 0.0, at))
    waits = (at > coming - quiet_before(timetable)[which]) & (~finite | (coming + SLACK_S <= np.maximum(end, now)))
    return np.where(never, np.inf, np.where(waits, coming + SLACK_S, due))


def quiet_before(timetable: Timetable) -> Floats:
    """Return the seconds before each update time in which the page is left alone, (q,)."""
    times = np.array(timetable.times)
    before = np.append(times[-1] - timetable.period, times[:-1])
    return np.asarray(np.minimum(QUIET_SHARE * timetable.period, (times - before) / 2))


def passed(timetable: Timetable, since: float, until: float) -> list[int]:
    """Return how often each update time came later than `since` and not later than `until`, seconds since the epoch.

    Examples
    --------
    >>> passed(Timetable(86400.0, (21600.0, 64800.0), (1.0, 1.0)), 30_000.0, 3 * 86400.0 + 21600.0)
    [3, 3]
    """
    counts = np.floor((np.array([[until], [since]]) - np.array(timetable.times)) / timetable.period)
    return [max(0, int(count)) for count in counts[0] - counts[1]]
