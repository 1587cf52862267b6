"""A crawl with a budget, stopped and started again on the same state."""

from __future__ import annotations

import numpy as np
import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

pytestmark = pytest.mark.timing

SPIDER = """
    class Tester(Base):
        paths = [f"/static/{at}" for at in range(20)]
"""


def test_the_whole_budget_is_used_run_after_run(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Every page is visited in each run, none is lost, leases end, and the price goes on from where it was."""
    prices = []
    for _ in range(2):
        fetched = len(site.fetches)
        with crawl(SPIDER, of_CRAWL_RATE=60, of_MIN_INTERVAL=0.01, of_RESOLVE_INTERVAL=1.0) as running:
            running.until(lambda before=fetched: len(site.fetches) > before + 150 and "log_price" in state.plan)
            prices.append(float(state.plan["log_price"]))
            running.stop()
        assert state.in_flight == 0
        assert {fetch.path for fetch in site.fetches[fetched:]} >= {f"/static/{at}" for at in range(20)}
    assert np.isfinite(prices).all()
    late = np.array([fetch.at for fetch in site.fetches[-100:]])
    assert 99 / (late[-1] - late[0]) > 0.6 * 60
    counts = state.counts
    assert counts["pages"] == counts["fetched"] == 20
    assert counts.get("failures", 0) == 0
