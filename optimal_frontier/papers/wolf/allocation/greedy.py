"""Fox's greedy: one crawl after the other to the page where it takes off most."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.allocation.first_differences import Columns
from optimal_frontier.papers.wolf.allocation.selection import entries


def greedy(columns: Columns, low: Integers, high: Integers, total: int) -> Integers:
    """Return how many crawls each page gets, from `low` on and never above `high`.

    Notes
    -----
    O(n + total log n), with a heap of what the next crawl of each page is worth. Of equal ones the first page's comes first.
    """
    spare = total - int(low.sum())
    crawls = low.tolist()
    if spare == 0:
        return low
    high = np.minimum(high, low + spare)
    # Twice the mean at once for all; the few pages that get more are asked again, for twice as many each time.
    ahead = np.minimum(high - low, 2 * (spare // columns.n) + 2)
    _, _, worth = entries(columns, low, ahead, 1)
    ends = np.cumsum(ahead)
    known = [part.tolist()[::-1] for part in np.split(worth, ends[:-1])]
    most = high.tolist()
    nothing = (np.inf, columns.n)  # what a page that may have no more offers
    heap = [(-known[page].pop(), page) if known[page] else nothing for page in range(columns.n)]
    heapify(heap)
    for _ in range(spare):
        page = heap[0][1]
        crawls[page] += 1
        if not known[page] and crawls[page] < most[page]:
            count = min(most[page] - crawls[page], 2 * (crawls[page] - int(low[page])))
            positions = np.arange(crawls[page], crawls[page] + count)
            known[page] = columns.worth(np.full(count, page), positions).tolist()[::-1]
        heapreplace(heap, (-known[page].pop(), page) if crawls[page] < most[page] else nothing)
    return np.array(crawls, dtype=np.int64)
