"""DISPATCH "index" in real crawls, one after the other on the same state."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

pytestmark = pytest.mark.timing

SPIDER = """
    class Tester(Base):
        paths = [f"/static/{at}" for at in range(20)]
"""


def test_runs_with_different_dispatchers_follow_each_other(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Each goes by its own soon after it starts; the whole budget is used, no page is lost, and leases end."""
    for dispatch in ("index", "edf", "index"):
        fetched = len(site.fetches)
        with crawl(SPIDER, of_DISPATCH=dispatch, of_CRAWL_RATE=60, of_MIN_INTERVAL=0.01, of_RESOLVE_INTERVAL=1.0) as running:
            running.until(
                lambda wanted=dispatch, before=fetched: (
                    len(site.fetches) > before + 150 and state.plan.get("dispatch") == wanted
                )
            )
            price = state.store.hash("price")
            running.stop()
        assert bool(price) == (dispatch == "index")
        assert not state.store.hash("leases")
        if dispatch == "index":
            assert float(price["price"]) > 0
        assert {fetch.path for fetch in site.fetches[fetched:]} >= {f"/static/{at}" for at in range(20)}
    late = np.array([fetch.at for fetch in site.fetches[-100:]])
    assert 99 / (late[-1] - late[0]) > 0.6 * 60
    counts = state.store.counts()
    assert counts["pages"] == counts["fetched"] == 20
    assert counts.get("failures", 0) == 0


def test_memoryless_visits_by_price_are_refused(crawl: Crawler) -> None:
    """In one line that names both settings."""
    with crawl("class Tester(Base):\n    paths = ['/static/0']", of_DISPATCH="index", of_POLICY="poisson") as running:
        running.wait()
        lines = [line for line in running.log.splitlines() if "CRITICAL" in line]
    assert len(lines) == 1
    assert "OPTIMAL_FRONTIER_DISPATCH" in lines[0]
    assert "OPTIMAL_FRONTIER_POLICY" in lines[0]
