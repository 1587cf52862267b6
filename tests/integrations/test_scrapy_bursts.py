"""Pages whose changes come in bursts, beside pages that change at any time, in a real crawl."""

from __future__ import annotations

import math

import numpy as np
from conftest import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.estimation.bursts import are_bursty

BURSTY = [f"/weibull/0.3/0.05/{n}" for n in range(4)]
STEADY = [f"/weibull/1/0.05/{n}" for n in range(3)]
SPIDER = f"""
    class Tester(Base):
        paths = {BURSTY + STEADY}

        def parse(self, response):
            pass
"""


def test_bursty_pages_are_told_from_steady_ones(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """By the bits of the crawl alone; a burst is no new habit, for which what was learned would be dropped."""

    def bursty() -> list[dict[str, float]]:
        """Those that are well beyond the moment of rejection."""
        rows = [state.at(site.url(path)) for path in BURSTY]
        return [row for row in rows if row and row["variance"] > 6.0 and row["score"] > 4.5 * math.sqrt(row["variance"])]

    with crawl(SPIDER, LOG_LEVEL="WARNING", of_CRAWL_RATE=150, of_RESOLVE_INTERVAL=0.5, of_MIN_INTERVAL=0.01) as running:
        found = running.until(bursty, 25.0)
        running.stop()
    assert sum(row["relearned"] for row in found) <= len(found)
    rows = [state.at(site.url(path)) for path in STEADY]
    score, variance = (np.array([row[name] for row in rows]) for name in ("score", "variance"))
    assert np.count_nonzero(are_bursty(score, variance)) <= 1
