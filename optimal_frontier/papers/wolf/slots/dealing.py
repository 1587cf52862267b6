"""Who gets which of the slots that are used."""

from __future__ import annotations

import numpy as np

from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.slots.line import used_slots
from optimal_frontier.papers.wolf.slots.tasks import Tasks


def deal(tasks: Tasks) -> Integers:
    """Return the slot of each task, (n,), where crawlers are all alike."""
    order = np.argsort(tasks.place, kind="stable")
    only_later = tasks.not_before[order]
    ready = tasks.ready[order]
    both_ways = order[~only_later]
    either = np.bincount(ready[~only_later], minlength=tasks.slots)
    later = np.bincount(ready[only_later], minlength=tasks.slots)
    if tasks.n == tasks.crawlers * tasks.slots:
        busy = np.full(tasks.slots, tasks.crawlers)
    else:
        busy = used_slots(tasks.place[both_ways], later, tasks.crawlers, tasks.slots)
    early, ranks = early_tasks(either, later, busy)
    slot = np.empty(tasks.n, dtype=np.int64)
    ahead = np.zeros(tasks.n, dtype=np.bool_)
    ahead[both_ways[ranks]] = True
    numbers = np.arange(tasks.slots)
    slot[both_ways[ranks]] = np.repeat(numbers, early)
    slot[order[~ahead[order]]] = np.repeat(numbers, busy - early)
    return slot


def early_tasks(either: Integers, later: Integers, busy: Integers) -> tuple[Integers, Integers]:
    """Return how many tasks each slot takes ahead of their time, and where these are among those that may move both ways.

    Parameters
    ----------
    either, later : ndarray of int (slots,)
        How many tasks that may move both ways, and only to the right, become ready with each slot.
    busy : ndarray of int (slots,)
        Tasks that each slot takes.

    Returns
    -------
    tuple of ndarray
        Numbers of early tasks, int (slots,); their ranks by ideal time, in the order of the slots, int (sum,).

    Notes
    -----
    Let a slot take a task early while another one waits. The exchange of the two makes the second earlier by the distance of their slots,
    and the first no further off by more than that. So tasks that wait go first, and only slots that are left take others, the next ones.
    """
    waiting = upcoming = arrived = 0
    early = [0] * busy.size
    firsts: list[int] = []
    for slot, (both, right, crawlers) in enumerate(zip(either.tolist(), later.tolist(), busy.tolist(), strict=True)):
        arrived += both
        if arrived > upcoming:
            waiting += arrived - upcoming
            upcoming = arrived
        waiting += right - crawlers
        if waiting < 0:
            early[slot] = -waiting
            firsts.append(upcoming)
            upcoming -= waiting
            waiting = 0
    counts = np.array(early, dtype=np.int64)
    some = counts[counts > 0]
    ranks = np.repeat(np.array(firsts, dtype=np.int64) - (np.cumsum(some) - some), some) + np.arange(some.sum())
    return counts, ranks
