"""EXPLORATION in real crawls, one after the other on the same state."""

from __future__ import annotations

from itertools import pairwise

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite


def test_runs_with_different_explorations_follow_each_other(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Each plans by its own choice soon after it starts; rounds go on, so that no phase is gone through again."""
    spider = """
        class Tester(Base):
            paths = [f"/static/{at}" for at in range(20)]
    """
    found = []
    for exploration in ("explore-then-commit", "epsilon", "median"):
        fetched = len(site.fetches)
        settings = {"of_EXPLORATION": exploration, "of_CRAWL_RATE": 60, "of_MIN_INTERVAL": 0.01, "of_RESOLVE_INTERVAL": 1.0}
        with crawl(spider, **settings) as running:
            running.until(
                lambda wanted=exploration, before=fetched: len(site.fetches) > before + 60 and state.plan.get("exploration") == wanted
            )
            running.stop()
        found.append(state.plan)
    rounds = [float(published["exploration_rounds"]) for published in found]
    assert all(one <= other for one, other in pairwise(rounds))
    assert rounds[-1] > 4.0
    assert {published["feasible"] for published in found} == {"1"}


def test_an_unknown_exploration_is_refused(crawl: Crawler) -> None:
    """In one line that says what there is."""
    with crawl("class Tester(Base):\n    paths = ['/static/0']", of_EXPLORATION="greedy") as running:
        running.wait()
        lines = [line for line in running.log.splitlines() if "CRITICAL" in line]
    assert len(lines) == 1
    assert "OPTIMAL_FRONTIER_EXPLORATION = 'greedy'" in lines[0]
    assert '"explore-then-commit"' in lines[0]
