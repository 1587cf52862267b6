"""A page that is republished every four seconds, in real crawls."""

from __future__ import annotations

import time

import numpy as np
import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

pytestmark = pytest.mark.timing

SPIDER = """
    class Tester(Base):
        paths = ["/news/4", *(f"/static/{at}" for at in range(20))]
"""
#: Twice in a period of eight seconds.
RULES = [{"pattern": "/news/", "update_times": [0, [4, 0.5]], "period": 8, "importance": 20}]


@pytest.mark.parametrize("settings", [{"of_CRAWL_RATE": 40}, {"of_CRAWL_RATE": "auto", "DOWNLOAD_DELAY": 0.02}])
def test_a_republished_page_is_fetched_within_a_second_of_its_times(crawl: Crawler, site: MisbehavingSite, state: State, settings) -> None:
    """And at no other time; each visit sees the new edition; the other pages use the rest of the budget."""
    epoch = time.time() - time.monotonic()
    with crawl(SPIDER, of_RULES=RULES, **settings) as running:
        running.until(lambda: site.count("/news/4") >= 4)
        running.stop()
    at = np.array([fetch.at + epoch for fetch in site.of("/news/4")])[1:]  # the first visit comes when it comes
    late = at % 4
    assert late.max() < 1.0
    assert (np.diff(at) > 3.0).all()
    assert (np.diff(at) < 5.0).all()
    seen = state.at(site.url("/news/4"))
    assert seen["visits"] >= 4
    assert seen["changes"] == seen["observations"] >= 3
    assert all(site.count(f"/static/{n}") > 5 for n in range(20))
