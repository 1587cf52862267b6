"""Going over all pages block by block, on as many cores as the process may use.

numpy lets go of the interpreter while it works through an array, so two threads on two cores take a little more than half the time. Blocks
are small enough to stay in a core's cache through a dozen operations, and large enough that threads seldom wait for the interpreter.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from itertools import islice
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

#: Pages per block: 256 KiB an array, so that the five or so arrays of a step stay in a second-level cache of 2 MiB.
BLOCK: Final = 32768
#: Below this many pages a thread costs more than it saves.
_ALONE: Final = 200_000
_MOST_THREADS: Final = 8
#: Inner products of up to this many entries are below the size at which BLAS starts threads of its own.
_INNER: Final = 8192

Floats = NDArray[np.float64]
S = TypeVar("S")
T = TypeVar("T")


def blockwise(size: int, work: Callable[[Iterator[slice]], Iterator[T]], width: int = BLOCK) -> list[T]:
    """Run a generator over all blocks, in one thread or several that share them out as they come, and return what it yielded.

    Parameters
    ----------
    size : int
        Number of pages.
    work : generator function
        Called once per thread with an iterator over slices of up to `width` pages; allocates its own buffers and yields one result per
        block. numpy's error state is the caller's.
    width : int
        Pages per block.

    Returns
    -------
    list
        One result per block, in the order of the pages whatever the threads did, so that sums come out the same every time.
    """
    count = -(-size // width)
    results: list[T | None] = [None] * count
    waiting = iter(range(count))  # `next` on it is atomic

    def run() -> None:
        current = -1

        def blocks() -> Iterator[slice]:
            nonlocal current
            for current in waiting:
                yield slice(current * width, min((current + 1) * width, size))

        for result in work(blocks()):
            results[current] = result

    threads = 1 if size < _ALONE else max(1, min(_MOST_THREADS, cores(), count))
    if threads == 1:
        run()
    else:
        pool = _workers(os.getpid())
        others = [pool.submit(copy_context().run, run) for _ in range(threads - 1)]
        try:
            run()
        finally:
            for other in others:
                other.result()
    return cast("list[T]", results)


def in_order(work: Callable[[S], T], items: Sequence[S], each: Callable[[], None] = lambda: None) -> Iterator[T]:
    """Yield what a function makes of each item, in their order, while several threads are at the next ones.

    Parameters
    ----------
    work : callable
        What it raises is raised here; items that were not begun are left then.
    items : sequence
        Parts of a large problem, so that results are taken before many more are made.
    each : callable
        Called after each, on the thread of the caller.
    """
    threads = min(_MOST_THREADS, cores(), len(items))
    if threads <= 1:
        for item in items:
            yield work(item)
            each()
        return
    pool = ThreadPoolExecutor(threads, "optimal_frontier-part")
    try:
        left = iter(items)
        waiting = deque(pool.submit(work, item) for item in islice(left, 2 * threads))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(left, 1))
            yield result
            each()
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(items: Iterator[T]) -> Generator[T]:
    """Yield what an iterator yields, while another thread is at its next item; what it raises is raised here.

    Who closes it early waits until that item is made.
    """
    done = object()
    with ThreadPoolExecutor(1, "optimal_frontier-ahead") as pool:
        coming = pool.submit(next, items, done)
        while (item := coming.result()) is not done:
            coming = pool.submit(next, items, done)
            yield cast("T", item)


@cache
def _workers(process: int) -> ThreadPoolExecutor:
    """Threads that wait for the next sweep; a process that was forked gets its own."""
    return ThreadPoolExecutor(_MOST_THREADS - 1, "optimal_frontier-sweep")


def cores() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def inner(a: Floats, b: Floats | NDArray[np.bool_]) -> float:
    """Inner product, on this thread alone: the threads of a BLAS spin for a while after each call, on cores that have work to do."""
    if a.size <= _INNER:
        return float(np.dot(a, b))
    return float(sum(np.dot(a[at : at + _INNER], b[at : at + _INNER]) for at in range(0, a.size, _INNER)))
