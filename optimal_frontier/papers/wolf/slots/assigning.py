"""Crawls with ideal times -> crawlers and slots: the transportation problem of Wolf et al., solved on the line that it lies on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.slots.dealing import deal
from optimal_frontier.papers.wolf.slots.paths import by_shortest_paths
from optimal_frontier.papers.wolf.slots.restrictions import checked_restrictions
from optimal_frontier.papers.wolf.slots.tasks import checked_tasks

Windows = ArrayLike
Crawlers = NDArray[np.bool_]


def assign_slots(
    ideal_times: ArrayLike,
    not_before: ArrayLike,
    crawlers: int,
    slots: int,
    interval: float,
    allowed: Crawlers | Windows | tuple[Crawlers | None, Windows | None] | None = None,
) -> Integers:
    """Give each crawl a crawler and a time slot, as near to its ideal time as possible in sum.

    Minimises the sum of ``|t - ideal time|`` over all assignments of one place each, where slot k (from 0) of every crawler begins at
    ``t = k interval / slots``.

    Parameters
    ----------
    ideal_times : array_like (n,)
        Finite; n is at most ``crawlers x slots``.
    not_before : array_like of bool (n,), or one for all
        Tasks that may begin at their ideal time or later, but never earlier: crawls of quasi-deterministic pages.
    crawlers, slots : int
        Crawlers, and slots of each in the interval.
    interval : float
        Length of the scheduling interval, > 0.
    allowed : optional
        Restrictions, one of: an array of bool (n, crawlers), the crawlers that each task may have; an array of numbers (n, 2), the window
        from the first to the last time at which each may begin, both included; a tuple of the two, of which either may be None.

    Returns
    -------
    ndarray of int64 (n,)
        ``crawler x slots + slot`` of each task, all different.

    Raises
    ------
    InvalidProblemError
        An argument is unusable, or no assignment meets all conditions; the message names the argument and what is wrong.

    Notes
    -----
    Without `allowed` crawlers are alike and the problem lies on a line: O(n log n + slots), by a sweep with two heaps. That answer is kept
    where it meets all windows. Otherwise tasks are inserted one by one by shortest paths, which stay local while there are free places:
    about 0.1 ms a task for up to nine tenths of the places taken, longer and longer beyond. 100,000 tasks are the practical limit, and a
    few thousand where every place is taken.

    References
    ----------
    Wolf et al. 2002, *Optimal crawling strategies for web search engines*, section 3, eq. 22 to 26. Its slot times are printed as
    ``(l - 1) / T``; meant is ``(l - 1) T / S``.

    Examples
    --------
    Two crawlers with slots at 0, 1, 2, 3; the third task is late rather than early.

    >>> assign_slots([0.2, 0.4, 0.6, 3.0], [False, False, True, False], crawlers=2, slots=4, interval=4.0)
    array([0, 4, 1, 3])
    """
    tasks = checked_tasks(ideal_times, not_before, crawlers, slots, interval)
    if allowed is None:
        slot = deal(tasks)
        return _rank_within(slot) * tasks.slots + slot
    restrictions = checked_restrictions(allowed, tasks, float(interval))
    if len(restrictions.groups) == 1 and len(restrictions.kinds) == 1:
        slot = deal(tasks)
        if ((slot >= restrictions.first) & (slot <= restrictions.last)).all():  # no window is in the way of the best
            return _rank_within(slot) * tasks.slots + slot
    slot, crawler = by_shortest_paths(tasks, restrictions)
    return crawler * tasks.slots + slot


def _rank_within(slot: Integers) -> Integers:
    """How many tasks before it have the same slot, for each task."""
    order = np.argsort(slot, kind="stable")
    in_order = slot[order]
    rank = np.empty(slot.size, dtype=np.int64)
    rank[order] = np.arange(slot.size) - np.searchsorted(in_order, in_order)
    return rank
