"""Which slots are used: a matching of points on a line at least cost, with points that may only move to the right."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

import numpy as np

from optimal_frontier.optimization.problem import Floats, Integers

#: Slots whose tasks are lists at the same time.
_BLOCK: Final = 4096


def used_slots(either: Floats, later: Integers, capacity: int, slots: int) -> Integers:
    """Return how many crawlers are busy in each slot.

    Parameters
    ----------
    either : ndarray (m,)
        Ideal places of tasks that may move both ways, in slots, in rising order, from 0 to ``slots - 1``.
    later : ndarray of int (slots,)
        How many tasks that only move to the right become ready with each slot. They fit.
    capacity : int
        Crawlers.
    slots : int

    Returns
    -------
    ndarray of int64 (slots,)
        Their sum is the number of tasks; no assignment costs less than the best one to these slots.

    Notes
    -----
    From left to right, the best assignment of the tasks so far to the slots so far, in which tasks without a slot wait for one. A task
    that may move left takes the free place that costs least; a new place takes a task that waits, or else the one that gains most by
    coming over. What was decided can be taken back at a known price, and both heaps are of such prices: a task at x that went to a place
    of price w comes over to y for ``y - x - (x + w)``, so -2x - w is kept of it; and where that was worth it, the task goes back when
    another one at z takes its place, for ``z - y`` less the gain, so -2y + 2x + w is kept. Tasks that came from the left to a place never
    leave it: all that wait or move on to the right cost the same from there on, whoever they are. That is also why it does not matter
    that some may only move to the right, and why an exchange with one that is further left need never be looked at.

    O(n log n) time. What no longer pays as places get further away is dropped, so the heap of tasks stays small.
    """
    # Numbers that the garbage collector need not go through over and over.
    busy = array("q", bytes(8 * slots))
    free: list[tuple[int, int]] = []  # slot and number of crawlers, never used so far; the last is the nearest
    left: list[tuple[float, int]] = []  # price and slot of places that a task left for a better one
    moved: list[tuple[float, int]] = []  # price and slot of tasks that moved left
    waiting = 0
    for slot, waits, places in _arrivals(either, later):
        waiting += waits
        for number, ideal in enumerate(places):
            if left and (not free or left[0][0] < -free[-1][0]):
                price, place = heappop(left)
            elif free:
                place, crawlers = free.pop()
                if crawlers > 1:
                    free.append((place, crawlers - 1))
                price = -place
            else:
                waiting += len(places) - number
                break
            busy[place] += 1
            heappush(moved, (-2 * ideal - price, place))
        if waiting >= capacity:
            waiting -= capacity
            busy[slot] = capacity
            continue
        here = waiting
        waiting = 0
        while here < capacity and moved and moved[0][0] + slot < 0:
            price, place = heappop(moved)
            busy[place] -= 1
            heappush(left, (-2 * slot - price, place))
            here += 1
        busy[slot] = here
        if here < capacity:
            moved.clear()
            free.append((slot, capacity - here))
    return np.array(busy, dtype=np.int64)


def _arrivals(either: Floats, later: Integers) -> Iterator[tuple[int, int, list[float]]]:
    """Yield each slot, how many tasks that only move right are ready with it, and the places of the others since the slot before."""
    for first in range(0, later.size, _BLOCK):
        waits = later[first : first + _BLOCK].tolist()
        starts = np.searchsorted(either, np.arange(first - 1.0, first + len(waits)), side="right")
        if first == 0:
            starts[0] = 0
        places = either[starts[0] : starts[-1]].tolist()
        ends = (starts - starts[0]).tolist()
        for number, count in enumerate(waits):
            yield first + number, count, places[ends[number] : ends[number + 1]]
