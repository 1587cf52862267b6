"""A schedule of slots that is repeated for ever, and how fresh it keeps pages that change at the times of Poisson processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.validation import numeric_array, page_values, scalar

Floats = NDArray[np.float64]


def cycle_freshness(schedule: ArrayLike, change_rate: ArrayLike, slot_length: float = 1.0) -> Floats:
    """Share of time that each page's copy is current when a schedule is repeated for ever.

    Parameters
    ----------
    schedule : array_like of int (slots,)
        The page visited in each slot, -1 for none, as `edf_schedule` returns it.
    change_rate : array_like (n,)
        Changes of each page per unit of time, >= 0.
    slot_length : float
        Units of time that a slot takes.

    Returns
    -------
    ndarray of float64 (n,)
        Expected freshness of each page: 0 if it is never visited, 1 if it never changes.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.

    Notes
    -----
    Exact: nothing is drawn. A copy that is a time s old is current with probability ``exp(-change_rate x s)``, so a gap g between two
    visits has ``(1 - exp(-change_rate x g)) / change_rate`` of fresh time. The gap after a page's last visit ends with its first visit of
    the next round, so gaps sum to the length of the cycle and there is no transient to wait for. No rates with the same number
    of visits per unit of time do better than `solve_periodic`'s objective, which therefore bounds every schedule.

    O(n + slots log slots) time.

    Examples
    --------
    >>> cycle_freshness([0, 1, 0, -1], [1.0, 0.1, 5.0]).round(4)
    array([0.4323, 0.8242, 0.    ])
    """
    changes = page_values("change_rate", change_rate)
    length = scalar("slot_length", slot_length, positive=True)
    slots = _checked_schedule(schedule, changes.size)
    visited = np.flatnonzero(slots >= 0)
    pages = slots[visited]
    order = np.argsort(pages, kind="stable")
    pages, when = pages[order], visited[order]
    last = np.append(pages[1:] != pages[:-1], True)[: pages.size]
    first = np.roll(last, 1)
    following = np.roll(when, -1)
    following[last] = when[first] + slots.size
    rate, gap = changes[pages], (following - when) * length
    fresh_time = np.divide(-np.expm1(-rate * gap), rate, out=gap.astype(np.float64), where=rate > 0)
    share: Floats = np.bincount(pages, weights=fresh_time, minlength=changes.size) / (slots.size * length)
    return np.where(changes > 0, share, 1.0)


def cycle_slots(rates: ArrayLike, worth: ArrayLike, least: int, *, neglected: float = 1e-5, most: int | None = None) -> int:
    """Length of a cycle in which every page that matters is visited.

    Parameters
    ----------
    rates : array_like (n,)
        Visits per slot of each page.
    worth : array_like (n,)
        What each page adds to the objective.
    least : int
        Slots at least.
    neglected : float
        Share of the total worth that pages which are due too late to be visited may have.
    most : int, optional
        Slots at most; 20 x `least` unless given.

    Returns
    -------
    int
        `least`, or the slot by which the last page that matters is due for the first time.

    Examples
    --------
    >>> cycle_slots([0.5, 0.001, 0.0], [1.0, 0.5, 0.0], least=100), cycle_slots([0.5, 0.001, 0.0], [1.0, 1e-9, 0.0], least=100)
    (1000, 100)
    """
    visits = page_values("rates", rates)
    values = page_values("worth", worth, visits.size)
    rare = np.flatnonzero((visits > 0) & (visits * least < 1))
    rare = rare[np.argsort(visits[rare], kind="stable")]  # the rarest first
    affordable = np.cumsum(values[rare]) <= neglected * values.sum()
    kept = rare[np.count_nonzero(affordable) :]
    with np.errstate(over="ignore"):
        longest = float(np.ceil(1 / visits[kept[0]])) if kept.size else 0.0
    return int(min(max(least, longest), 20 * least if most is None else most))


def _checked_schedule(schedule: ArrayLike, n: int) -> NDArray[np.int64]:
    slots = numeric_array("schedule", schedule)
    if slots.ndim != 1 or slots.size == 0:
        raise InvalidProblemError(f"schedule: expected one page per slot, an array of shape (slots,), got shape {slots.shape}")
    good = (slots >= -1) & (slots < n) & (slots == np.floor(slots))
    if not good.all():
        index = int(np.argmin(good))
        raise InvalidProblemError(f"schedule[{index}] is {slots[index]}; expected a page from 0 to {n - 1}, or -1 for none")
    return slots.astype(np.int64, copy=False)
