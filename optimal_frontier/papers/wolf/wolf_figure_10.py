"""Wolf's figure 10: how far from their ideal times crawls end up when each gets a slot of a crawler of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.papers.wolf.slots import assign_slots
from optimal_frontier.papers.wolf.update_models.quasi_deterministic import QuasiDeterministic
from optimal_frontier.papers.wolf.wolf_pages import INTERVAL, Floats, Integers, WolfPages, wolf_pages
from optimal_frontier.papers.wolf.wolf_schemes import FIXED_CRAWLS_PER_PAGE, Check, crawls_of

#: The paper's crawlers. With as many pages and 2.5 crawls each they make a million crawls apiece, as in the paper.
CRAWLERS: Final = 10
FIGURE_10_PAGES: Final = 4_000_000
#: Shares of the kinds of pages with which about the paper's 20% of the crawls are quasi-deterministic.
SHARES: Final = (0.55, 0.27, 0.18)
#: Shares of slots that stay free: none, as in the paper, and one in a hundred.
FREE: Final = (0.0, 0.01)
#: Slots within which the paper has virtually all crawls, and what share of them that is taken for.
WINDOW: Final = 20
VIRTUALLY_ALL: Final = 0.995
#: Quasi-deterministic crawls due in so many slots before the end are due at their beginning: later ones would not fit.
_LAST_SLOTS: Final = 3


@dataclass(frozen=True)
class SlotDeviations:
    """Crawls in slots, by how far these are from the ideal times.

    Attributes
    ----------
    crawls, slots : int
        Crawls, and slots of each crawler.
    quasi_deterministic : int
        How many of the crawls may not be early.
    free : float
        Share of slots without a crawl.
    seconds : float
        Time that the assignment took.
    edges : ndarray (b + 1,)
        Whole deviations, in slots: those in ``[edges[k], edges[k + 1])`` are counted together.
    counts, quasi_counts : ndarray of int (b,)
        All crawls, and quasi-deterministic ones.
    within : float
        Share of crawls within 20 slots of their ideal times.
    farthest : float
        Largest deviation, in slots.
    early : int
        Quasi-deterministic crawls before their time.
    """

    crawls: int
    slots: int
    quasi_deterministic: int
    free: float
    seconds: float
    edges: Integers
    counts: Integers
    quasi_counts: Integers
    within: float
    farthest: float
    early: int


def wolf_figure_10(n: int = FIGURE_10_PAGES, seed: int = 0, free: Sequence[float] = FREE) -> Iterator[SlotDeviations]:
    """Measure the figure, one assignment for each share of free slots.

    Parameters
    ----------
    n : int
        Number of pages, 100 or more; there are 2.5 crawls per page.
    seed : int
        Of the pages, and of when they were crawled last.
    free : sequence of float
        Shares of slots that stay free, 0 or more and below 1.

    Yields
    ------
    SlotDeviations

    Notes
    -----
    Crawls are those of the optimum. A page with x crawls is crawled every 1 / x of the interval, and its last crawl in the interval
    before, which the paper takes as known, was at some time of its last 1 / x, each with the same probability. Quasi-deterministic
    pages are crawled at potential update times; the day of each begins at a random time of the crawlers' day, as sites are in all time
    zones. If all days began together, copies known to be fresh then would leave the crawlers idle at first and crowd them later.

    With no slot free every slot is taken by some crawl, wherever the ideal times are: the assignment carries the surplus of crawls that
    come in a crowd to where crawls are few, hours later. The difference of crawls due and slots gone by is like a random walk that ends
    where it began, about ``sqrt(crawls) / (2 crawlers)`` slots wide. A few free slots end that.

    References
    ----------
    Wolf et al. 2002, figure 10 and section 3.

    Examples
    --------
    >>> for found in wolf_figure_10(4000):
    ...     print(found.free, found.crawls, found.slots, round(found.within, 2), found.early)
    0.0 10000 1000 1.0 0
    0.010880316518298683 10000 1011 1.0 0
    """
    pages = wolf_pages(n, seed, shares=SHARES)
    crawls = crawls_of("optimal", pages, round(FIXED_CRAWLS_PER_PAGE * n / CRAWLERS) * CRAWLERS)
    ideal = ideal_times(pages, crawls, np.random.default_rng(seed))
    not_before = np.zeros(len(ideal), np.bool_)
    not_before[len(ideal) - int(crawls[len(pages) - pages.quasi_deterministic :].sum()) :] = True
    del pages, crawls
    for share in free:
        yield deviations(ideal, not_before, share)


def ideal_times(pages: WolfPages, crawls: Integers, rng: np.random.Generator) -> Floats:
    """Return when each crawl should be, page after page, with a random phase of each page."""
    found = []
    start = 0
    for model in pages.models:
        mine = crawls[start : start + len(model)]
        start += len(model)
        phase = np.repeat(rng.random(len(mine)), mine)
        if isinstance(model, QuasiDeterministic):
            found.append((model.crawl_times(mine, INTERVAL) + phase * INTERVAL) % INTERVAL)
        else:
            within = np.arange(int(mine.sum())) - np.repeat(np.cumsum(mine) - mine, mine)
            found.append((within + phase) * INTERVAL / np.repeat(mine, mine))
    return np.concatenate(found)


def deviations(ideal: Floats, not_before: NDArray[np.bool_], free: float, crawlers: int = CRAWLERS) -> SlotDeviations:
    """Assign crawls to slots and see how far off they are.

    Parameters
    ----------
    ideal : ndarray (n,)
        Ideal times.
    not_before : ndarray of bool (n,)
        Crawls that may not be early.
    free : float
        Share of slots that stay free.
    crawlers : int
    """
    slots = -int(-len(ideal) // (crawlers * (1.0 - free)))
    due = np.where(not_before, np.minimum(ideal, INTERVAL * max(slots - _LAST_SLOTS, 0) / slots), ideal)
    start = time.perf_counter()
    slot = assign_slots(due, not_before, crawlers, slots, INTERVAL) % slots
    seconds = time.perf_counter() - start
    early = int(np.count_nonzero(not_before & (slot * INTERVAL / slots < due)))
    off = slot - due * (slots / INTERVAL)
    far = np.abs(off)
    farthest = float(far.max())
    edges = np.arange(-int(farthest) - 1, int(farthest) + 2)
    return SlotDeviations(
        crawls=len(ideal),
        slots=slots,
        quasi_deterministic=int(np.count_nonzero(not_before)),
        free=1.0 - len(ideal) / (crawlers * slots),
        seconds=seconds,
        edges=edges,
        counts=np.histogram(off, edges)[0],
        quasi_counts=np.histogram(off[not_before], edges)[0],
        within=float(np.mean(far <= WINDOW)),
        farthest=farthest,
        early=early,
    )


def figure_10_checks(found: Sequence[SlotDeviations]) -> list[Check]:
    """Return that no quasi-deterministic crawl is early, and that virtually all crawls are within 20 slots where some slots are free."""
    checks = [Check(f"no quasi-deterministic crawl early, {_free(one)}", -float(one.early), f"{one.early} early") for one in found]
    for one in found:
        if one.free > 0:
            promise = f"at least {VIRTUALLY_ALL:.1%} within {WINDOW} slots, {_free(one)}"
            checks.append(Check(promise, one.within - VIRTUALLY_ALL, f"{one.within:.3%}, farthest {one.farthest:.1f} slots"))
    return checks


def _free(one: SlotDeviations) -> str:
    return f"{one.free:.1%} of slots free"
