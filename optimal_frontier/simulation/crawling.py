"""The inner loop of simulated crawls: pages are handed out by the law of dispatch, come back, are learned from and get new numbers.

Every function here is plain Python on arrays of numbers, and runs the very functions of `estimation` and `scheduling` that a live crawl
runs: 12,000 visits a second.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from optimal_frontier.scheduling.exploration import second_look
from optimal_frontier.scheduling.numbers import numbers_at, wait_at_price
from optimal_frontier.scheduling.price_law import candidates, log_price_after, moves_price, rank

#: An array of floats or of whole numbers: a memoryview of a numpy array.
Values = Any
#: Takes in one bit and returns the change rate that numbers are made from: belief, page, interval, changed.
Learn = Callable[[Any, int, float, bool], float]
#: Places in the queue, and their pages: a heap.
Queue = list[tuple[float, int]]

#: Places in `Crawl.price` ...
LOG_PRICE: Final = 0
STEP: Final = 1
STRETCH: Final = 2
LASTING: Final = 3
#: ... and in `Crawl.count`.
SLOT: Final = 0
MADE: Final = 1
HEAD: Final = 2
TAIL: Final = 3
BATCH: Final = 4
FLIGHT: Final = 5
LANES: Final = 6
RATED: Final = 7
LOOKS: Final = 8
#: A time is not later than another one if it is by less than this.
_MOMENT: Final = 1e-9
#: Pages of shut hosts, and pages that may not be visited yet, that are passed over at most for each candidate.
_PASSED: Final = 40


class Crawl(NamedTuple):
    """All that dispatch keeps. Times are in the world's unit.

    Attributes
    ----------
    slots : (m,)
        When a fetch can start.
    score, b, a, s, e, l : (n,)
        Place of each page in the queue, inf for one that is in flight or not known yet; the numbers of its deadline.
    importance, shortest, longest : (n,)
        Weight, and bounds on the interval.
    host : int (n,)
        Of each page.
    host_price : (hosts,)
        What each host adds to the log price; 0 for one that is not at its limit.
    opens, turn, pause : (hosts,)
        When a fetch may start; the end of the line of pages that wait for that; least time between two fetches.
    changes, starts : (events,), int (n + 1,)
        When pages change, row by row.
    gone : (n,)
        When pages cease to exist; a visit from then on is the last one.
    pages, times : int (m,), (m,)
        The visits that were made.
    fetched : (n,)
        When each page in flight was fetched.
    checked : int (n,)
        1 for pages that are due for a second look; plans leave their numbers alone.
    away, until : int (k,), int (k,)
        Pages in flight, and the slots at which they come back; a ring.
    price, count : (4,), int (9,)
        Log price, its step, by how much longest intervals are stretched, and the log price that lasts; place of the next slot,
        visits made, ends of the ring, fetches that are handed out at once, slots that one takes, pages that wait for one turn of a host,
        whether "change rates" are revisit rates, and whether pages that seem too fast get a second look.
    """

    slots: Values
    score: Values
    b: Values
    a: Values
    s: Values
    e: Values
    l: Values  # noqa: E741  # the name that docs/maths.md has
    importance: Values
    shortest: Values
    longest: Values
    host: Values
    host_price: Values
    opens: Values
    turn: Values
    pause: Values
    changes: Values
    starts: Values
    gone: Values
    pages: Values
    times: Values
    fetched: Values
    checked: Values
    away: Values
    until: Values
    price: Values
    count: Values


def crawl_until(crawl: Crawl, belief: Any, learn: Learn, end: int, queue: Queue | None = None) -> None:
    """Make the visits of all slots before number ``end``.

    Parameters
    ----------
    crawl, belief
        What dispatch and learning keep, as `plain` returns it.
    learn : callable
        Takes in a bit.
    end : int
        Number of a slot.
    queue : list of tuple, optional
        What `queue_of` returned, and this function left, if no score was written since then.
    """
    if queue is None:
        queue = queue_of(crawl.score)
    count, slots, gone, fetched, score = crawl.count, crawl.slots, crawl.gone, crawl.fetched, crawl.score
    away, until, room, pages, times = crawl.away, crawl.until, len(crawl.away), crawl.pages, crawl.times
    batch, flight, slot, made, head, tail = count[BATCH], count[FLIGHT], count[SLOT], count[MADE], count[HEAD], count[TAIL]
    while slot < end:
        taken = hand_out(crawl, queue, slots[slot], min(batch, end - slot))
        for place, page in enumerate(taken, slot):
            pages[made], times[made] = page, slots[place]
            made += 1
            away[tail % room], until[tail % room] = page, place + flight
            tail += 1
            score[page], fetched[page] = math.inf, slots[place]
        slot += len(taken) or 1
        while head < tail and until[head % room] <= slot:
            page = away[head % room]
            head += 1
            if fetched[page] < gone[page]:
                score[page] = at = come_back(crawl, belief, learn, page)
                heapq.heappush(queue, (at, page))
            else:
                crawl.b[page] = fetched[page]  # the visit that found the page gone
    count[SLOT], count[MADE], count[HEAD], count[TAIL] = slot, made, head, tail


def queue_of(score: Values) -> Queue:
    """Return the pages that are known and not in flight, as a heap."""
    scores = np.asarray(score)
    (pages,) = (scores < math.inf).nonzero()
    queue = list(zip(scores[pages].tolist(), pages.tolist(), strict=True))
    heapq.heapify(queue)
    return queue


def come_back(crawl: Crawl, belief: Any, learn: Learn, page: int) -> float:
    """Learn from a page that came back and exists; return its place in the queue."""
    at, since = crawl.fetched[page], crawl.b[page]
    starts, changes = crawl.starts, crawl.changes
    end = starts[page + 1]
    first = bisect_right(changes, since, starts[page], end)
    rate = learn(belief, page, at - since, first < end and changes[first] <= at)
    crawl.b[page] = at
    renumber(crawl, page, rate)
    crawl.checked[page] = 0
    if crawl.a[page] == math.inf and crawl.count[LOOKS]:
        log_price = min(crawl.price[LOG_PRICE], crawl.price[LASTING]) + crawl.host_price[crawl.host[page]]
        wait = max(second_look(log_price, crawl.importance[page], rate, at - since), crawl.shortest[page])
        if wait < crawl.l[page]:
            crawl.checked[page] = 1
            crawl.a[page], crawl.s[page], crawl.e[page], crawl.l[page] = wait, 0.0, wait, wait
    return due(crawl, page)


def renumber(crawl: Crawl, page: int, rate: float) -> None:
    """Make the numbers of a page anew."""
    shortest, longest, price = crawl.shortest[page], crawl.longest[page], crawl.price
    log_price, stretch = price[LOG_PRICE], price[STRETCH]
    if shortest >= longest:
        wait = longest * stretch
        crawl.a[page], crawl.s[page], crawl.e[page], crawl.l[page] = wait, 0.0, wait, wait
        return
    if crawl.count[RATED]:
        wait, slope = 1.0 / rate if rate > 0.0 else math.inf, 0.0
    else:
        extra, importance, lasting = crawl.host_price[crawl.host[page]], crawl.importance[page], crawl.price[LASTING]
        wait, slope = wait_at_price(log_price + extra, importance, rate)
        if wait == math.inf and lasting < log_price:
            # As in `waits_that_last`.
            wait, slope = wait_at_price(lasting + extra, importance, rate)
            wait += slope * (log_price - lasting)
    crawl.a[page], crawl.s[page], crawl.e[page], crawl.l[page] = numbers_at(wait, slope, log_price, shortest, longest * stretch)


def due(crawl: Crawl, page: int) -> float:
    """Return the deadline of a page at the present price."""
    return _deadline(crawl.b[page], crawl.a[page], crawl.s[page], crawl.e[page], crawl.l[page], crawl.price[LOG_PRICE])


def _deadline(b: float, a: float, s: float, e: float, longest: float, log_price: float) -> float:
    """`scheduling.numbers.deadline` of numbers that are at hand."""
    wait = a + s * log_price
    if e > wait:
        wait = e
    return b + (longest if longest < wait else wait)


def hand_out(crawl: Crawl, queue: Queue, now: float, wanted: int) -> list[int]:
    """Return the pages to fetch now, best first; all others are back in the queue, each where it is to be looked at next."""
    b, a, s, e, longest, score = crawl.b, crawl.a, crawl.s, crawl.e, crawl.l, crawl.score
    hosts, opens, soon, log_price = crawl.host, crawl.opens, now + _MOMENT, crawl.price[LOG_PRICE]
    ready: list[tuple[Any, ...]] = []
    passed: Queue = []
    most = candidates(wanted)
    while queue and len(ready) < most and len(passed) < _PASSED * most:
        at, page = heapq.heappop(queue)
        since, shortest, host = b[page], e[page], hosts[page]
        if opens[host] > soon:
            # A page that is due takes the next place in the line of its host.
            if at <= soon:
                at = max(crawl.turn[host], opens[host])
                crawl.turn[host] = at + crawl.pause[host] / crawl.count[LANES]
            passed.append((at, page))
        elif since + shortest > soon:
            passed.append((max(at, since + shortest), page))
        else:
            wait, slope, most_wait = a[page], s[page], longest[page]
            ranked = rank(now - since, wait + slope * log_price, slope, shortest, most_wait)
            ready.append((-ranked, page, host, since, wait, slope, shortest, most_wait))
    ready.sort()
    taken: list[int] = []
    for negative, page, host, since, wait, slope, shortest, most_wait in ready:
        if len(taken) < wanted and opens[host] <= soon:
            taken.append(page)
            pause = crawl.pause[host]
            if pause > 0.0:
                on_time = now - opens[host] < pause
                opens[host] = (opens[host] if on_time else now) + pause
            if moves_price(-negative, wait + slope * log_price, slope, shortest, most_wait):
                crawl.price[LOG_PRICE] = log_price = log_price_after(log_price, -negative, crawl.price[STEP])
        else:
            score[page] = at = _deadline(since, wait, slope, shortest, most_wait, log_price)
            heapq.heappush(queue, (at, page))
    for entry in passed:
        score[entry[1]] = entry[0]
        heapq.heappush(queue, entry)
    return taken


def plain(arrays: Any) -> Any:
    """The same memory, whose elements are read as plain Python numbers: 3 times as fast as numpy's."""
    return type(arrays)(*(memoryview(array) for array in arrays))
