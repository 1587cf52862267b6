"""One simulated crawl by the rule of another scheduler, which keeps an interval per page."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque

import numpy as np

from optimal_frontier.simulation.bandwidth import BandwidthChange, slot_times
from optimal_frontier.simulation.crawl import Visits, first_visits
from optimal_frontier.simulation.interval_rules import IntervalRule
from optimal_frontier.simulation.worlds import Realised


def ruled_visits(world: Realised, rule: IntervalRule, horizon: float, bandwidth: BandwidthChange | None = None) -> Visits:
    """Return the visits of a scheduler that keeps an interval per page.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    rule : IntervalRule
        The scheduler; its times are in days.
    horizon : float
        Length of the crawl.
    bandwidth : BandwidthChange, optional
        When the budget is another one.

    Returns
    -------
    Visits
    """
    slots, day = slot_times(world.budget, horizon, bandwidth, world.phase), world.day
    begun = first_visits(world, slots)
    state: dict[int, tuple[float, float]] = {}
    last: dict[int, float] = {}
    queue = []
    for page, at in zip(begun.pages.tolist(), begun.times.tolist(), strict=True):
        due, state[page] = rule.first(at / day)
        last[page] = at
        queue.append((due * day, page))
    heapq.heapify(queue)
    order = np.argsort(world.arrival, kind="stable")
    coming = deque(order[world.arrival[order] > 0.0].tolist())
    changes, starts = world.drawn.changes.times.tolist(), world.drawn.changes.starts.tolist()
    pages, times = begun.pages.tolist(), begun.times.tolist()
    for at in slots[len(begun.pages) :].tolist():
        if coming and world.arrival[coming[0]] <= at:
            page = coming.popleft()
            due, state[page] = rule.first(at / day)
            last[page] = at
            heapq.heappush(queue, (due * day, page))
            pages.append(page)
            times.append(at)
            continue
        if not queue:
            continue
        due, page = queue[0]
        if rule.waits and due > at + 1e-9 / world.budget:
            continue
        pages.append(page)
        times.append(at)
        if at >= world.gone[page]:
            heapq.heappop(queue)
            continue
        seen = bisect_right(changes, last[page], starts[page], starts[page + 1])
        changed = seen < starts[page + 1] and changes[seen] <= at
        due, state[page] = rule.next(at / day, changed, state[page])
        last[page] = at
        heapq.heapreplace(queue, (due * day, page))
    return Visits(np.array(pages, dtype=np.int64), np.array(times))
