"""Credit: how a page earns its next visit, and the deadline that follows.

A page earns credit at its revisit rate and is due when it has earned 1. A visit takes 1 off; what is left, early or late, is clamped to
``[-1, 0.5]``, so that an outage causes no burst. A new plan changes the speed at which credit is earned, never what has been earned
(resetting it costs up to two points of freshness). The Lua scripts use the same formulas; a test holds them equal.

Memoryless visits (POLICY "poisson") are the same with one number more: a visit leaves, besides, 1 less a draw from the exponential
distribution of mean 1, so that what is still to be earned is the draw. As it is in the credit from then on, plans, queues and
restarts go on from what is stored, and nothing is drawn twice.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Bounds on what a visit leaves behind.
LEAST_CARRY: Final = -1.0
MOST_CARRY: Final = 0.5
#: Longest wait after failures, seconds.
LONGEST_BACKOFF_S: Final = 86_400.0
#: When to look again at a page that is gone: after this share of its interval, and after so many seconds at most.
GONE_SHARE: Final = 0.1
LONGEST_GONE_S: Final = 3600.0

Floats = NDArray[np.float64]


def credit_at(
    now: ArrayLike, carry: ArrayLike, settled: ArrayLike, rate: ArrayLike, base_time: ArrayLike, base_credit: ArrayLike
) -> Floats:
    """Return the credit that pages have earned.

    Parameters
    ----------
    now : array_like
        Time at which to look, seconds.
    carry, settled : array_like
        Credit after the last visit, and the time (s) to which it belongs.
    rate : array_like
        Revisit rate, visits per second.
    base_time, base_credit : array_like
        Time (s) of the last plan, 0 for none, and the credit that the page had then. They count only if the plan came after the visit.

    Returns
    -------
    ndarray of float64
        The credit; the page is due at 1.

    Examples
    --------
    >>> float(credit_at(110.0, carry=0.2, settled=100.0, rate=0.05, base_time=0.0, base_credit=0.0))
    0.7
    """
    t, r, visit, plan = _floats(now), _floats(rate), _floats(settled), _floats(base_time)
    return np.where(plan > visit, _floats(base_credit) + r * (t - plan), _floats(carry) + r * (t - visit))


def carry_after_visit(credit: ArrayLike) -> Floats:
    """Return what a visit leaves of the credit that a page had when it was handed out: 1 less, clamped to ``[-1, 0.5]``."""
    return np.clip(np.asarray(credit, dtype=np.float64) - 1.0, LEAST_CARRY, MOST_CARRY)


def memoryless_wait(slot: int, generation: int, attempts: int) -> float:
    """Return what a page has to earn for its next visit where visits are memoryless: a draw from the exponential distribution of mean 1.

    Parameters
    ----------
    slot, generation : int
        The page.
    attempts : int
        Its attempts so far, the one that was just made included.

    Returns
    -------
    float
        Above 0, at most 36.8: ``-log u`` with ``u`` from the first 52 bits of a SHA-1 of the three numbers. The same page and visit
        give the same draw, whoever makes it and however often.

    Examples
    --------
    >>> round(memoryless_wait(5, 0, 1), 6) == round(memoryless_wait(5, 0, 1), 6) != round(memoryless_wait(5, 0, 2), 6)
    True
    """
    digest = hashlib.sha1(f"{slot} {generation} {attempts}".encode(), usedforsecurity=False).hexdigest()
    return -math.log((int(digest[:13], 16) + 0.5) / 2.0**52)


def backoff(failures: ArrayLike, slot: ArrayLike = 0) -> Floats:
    """Return the least seconds between two attempts after failures in a row: between half and all of 2, 4, 8, ... up to a day.

    Parameters
    ----------
    failures : array_like
        So many in a row.
    slot : array_like
        Of the page: pages that failed together do not come again together. The same page and number of failures give the same wait.

    Examples
    --------
    >>> backoff([1, 2, 3, 40], slot=5).round(1).tolist()
    [1.2, 2.8, 6.6, 74076.1]
    """
    failed = _floats(failures)
    jitter = (_floats(slot) * 0.6180339887498949 + failed * 0.7548776662466927) % 1.0
    return np.minimum(LONGEST_BACKOFF_S, 2.0 ** np.minimum(failed, 17)) * (1.0 - 0.5 * jitter)


def least_wait(gap: ArrayLike, failures: ArrayLike, slot: ArrayLike, gone: ArrayLike = 0, rate: ArrayLike = 0.0) -> Floats:
    """Return the least seconds from one attempt to the next.

    Parameters
    ----------
    gap : array_like
        Least seconds between two visits.
    failures, slot : array_like
        As in `backoff`.
    gone : array_like
        How often in a row it was gone (404, 410).
    rate : array_like
        Revisit rate, visits per second; 0 for none.

    Returns
    -------
    ndarray of float64
        A page that is gone is looked at again after a tenth of its interval, an hour at most, and not before its backoff.
    """
    rates = _floats(rate)
    with np.errstate(divide="ignore"):
        look = np.where((_floats(gone) > 0) & (rates > 0), np.minimum(LONGEST_GONE_S, GONE_SHARE / rates), 0.0)
    return np.maximum(_floats(gap), np.where(_floats(failures) > 0, np.maximum(backoff(failures, slot), look), 0.0))


def deadline(
    carry: ArrayLike,
    settled: ArrayLike,
    rate: ArrayLike,
    base_time: ArrayLike,
    base_credit: ArrayLike,
    last_attempt: ArrayLike,
    gap: ArrayLike,
    failures: ArrayLike = 0,
    slot: ArrayLike = 0,
) -> Floats:
    """Return the time at which pages that were fetched before are due.

    Parameters
    ----------
    carry, settled, rate, base_time, base_credit : array_like
        As in `credit_at`.
    last_attempt : array_like
        Time of the last attempt, seconds.
    gap : array_like
        Least seconds between two visits.
    failures, slot : array_like
        Failed attempts since the last success, and the page, as in `backoff`.

    Returns
    -------
    ndarray of float64
        Seconds on the same clock; inf for a page that earns nothing.

    Examples
    --------
    >>> float(deadline(0.2, 100.0, 0.05, 0.0, 0.0, last_attempt=99.0, gap=1.0))
    116.0
    """
    r, visit, plan = _floats(rate), _floats(settled), _floats(base_time)
    after_plan = plan > visit
    start = np.where(after_plan, plan, visit)
    missing = 1.0 - np.where(after_plan, base_credit, carry)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        due = np.where(r > 0.0, start + missing / r, np.where(missing <= 0.0, start, np.inf))
    later: Floats = np.maximum(due, _floats(last_attempt) + least_wait(gap, failures, slot))
    return later


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
