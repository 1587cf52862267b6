"""Sections of a site whose pages change together, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START

SECTIONS, PAGES = 10, 20
#: Seconds between two events of a section on average; each changes most of its pages.
EVENT_S, TOGETHER = 400.0, 0.9
#: Requests a second, so that a round takes 100 s.
BUDGET = 2.0
LENGTH = 4000.0


class Sections(Play):
    """Page number p is in section p // PAGES."""

    def __init__(self, store, settings, seed: int = 3) -> None:
        super().__init__(store, settings, self.edition)
        rng = np.random.default_rng(seed)
        self.changes: list[np.ndarray] = []
        for section in range(SECTIONS):
            events = np.cumsum(rng.exponential(EVENT_S, int(4 * LENGTH / EVENT_S)))
            for page in range(PAGES):
                self.add_page(f"site/s{section}/page{page}.html")
                self.changes.append(events[rng.random(len(events)) < TOGETHER])

    def edition(self, number: int, at: float) -> int:
        return int(np.searchsorted(self.changes[number], at))

    def staleness(self, begin: float, end: float) -> float:
        """Mean share of pages that are stale between two times, seconds after START."""
        lost = 0.0
        for number, changes in enumerate(self.changes):
            visits = np.array(self.visits[number]) - START
            # A copy is stale from the first change after a visit until the next visit.
            for at, until in zip(visits, np.append(visits[1:], np.inf), strict=True):
                first = changes[np.searchsorted(changes, at, "right")] if len(changes) and changes[-1] > at else np.inf
                lost += max(0.0, min(until, end) - max(first, begin, at))
        return lost / (end - begin) / len(self.changes)


def crawled(store, seed: int = 3, **settings: object) -> Sections:
    play = Sections(store, parse(CRAWL_RATE=BUDGET, RESOLVE_INTERVAL=60, **settings), seed)
    play.until(LENGTH)
    return play


def test_pages_of_a_section_that_changes_are_visited_sooner(space) -> None:
    play = crawled(space)
    print(play.planner.keeper.fields(0), play.staleness(LENGTH / 4, LENGTH), play.count(0))


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("seed", [3, 4])
def test_compare(space, on, seed) -> None:
    import time

    t = time.process_time()
    play = crawled(space, seed, NEIGHBOURHOODS=on)
    print(on, seed, play.staleness(LENGTH / 4, LENGTH), play.count(0), time.process_time() - t, space.counts())
