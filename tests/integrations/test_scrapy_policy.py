"""POLICY "poisson" in a real crawl."""

from __future__ import annotations

import numpy as np
import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

pytestmark = pytest.mark.timing


def test_visits_are_memoryless(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """By the site's record the gaps of a page vary about as much as they are long; evenly spaced ones would hardly vary."""
    spider = """
        class Tester(Base):
            paths = [f"/static/{at}" for at in range(20)]
    """
    with crawl(spider, of_POLICY="poisson", of_CRAWL_RATE=60, of_MIN_INTERVAL=0.01, of_RESOLVE_INTERVAL=0.5) as running:
        running.until(lambda: len(site.fetches) > 400)
        published = state.plan
        running.stop()
    assert published["policy"] == "poisson"
    assert 0 < float(published["estimated_freshness"]) < 1
    times: dict[str, list[float]] = {}
    for fetch in site.fetches[100:]:
        times.setdefault(fetch.path, []).append(fetch.at)
    gaps = [np.diff(row) for row in times.values() if len(row) > 5]
    relative = np.concatenate([row / row.mean() for row in gaps])
    assert len(relative) > 150
    assert relative.std() > 0.6
    assert len(site.fetches[100:]) / (site.fetches[-1].at - site.fetches[100].at) <= 60 * 1.05


def test_memoryless_visits_of_changes_are_refused(crawl: Crawler) -> None:
    """In one line that names both settings."""
    with crawl("class Tester(Base):\n    paths = ['/static/0']", of_POLICY="poisson", of_OBJECTIVE="changes") as running:
        running.wait()
        lines = [line for line in running.log.splitlines() if "CRITICAL" in line]
    assert len(lines) == 1
    assert "OPTIMAL_FRONTIER_POLICY" in lines[0]
    assert "OPTIMAL_FRONTIER_OBJECTIVE" in lines[0]
