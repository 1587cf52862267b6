"""A site whose articles change soon after they appear, and then no more, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

import numpy as np
import pytest
from played_crawl import parse
from timed_namespace import open_namespace
from young_site import UNTIL_S, News

from optimal_frontier.state.checking import check_state

SETTINGS = {"CRAWL_RATE": 0.6, "MIN_INTERVAL": 1.0, "MAX_INTERVAL": 30 * 86400.0}


def test_articles_that_change_at_first_are_looked_at_then(space, redis_socket, namespace):
    """By the calendar each waits for the interval that its kind has on average, long after all that happens to it."""
    young = News(space, parse(**SETTINGS))
    young.until(UNTIL_S / 2)
    (before,) = young.youth()
    # Another planner goes on with what was learned.
    young.run_by(young.settings)
    young.until(UNTIL_S)
    other = open_namespace(redis_socket, f"{namespace}-other")
    plain = News(other, parse(NEIGHBOURHOODS=False, **SETTINGS))
    plain.until(UNTIL_S)
    since = UNTIL_S / 2
    assert young.stale(since) < 0.5 * plain.stale(since)
    assert young.count(since, UNTIL_S) == pytest.approx(plain.count(since, UNTIL_S), rel=0.02)
    (found,) = young.youth()
    assert found["looks"].sum() > before["looks"].sum() > 20
    assert 1 / 80 < found["rate"] < 1 / 20
    assert 128.0 <= found["until"] <= 256.0
    assert int(space.hash("plan")["young_patterns"]) == 1
    assert not len(plain.youth())
    assert check_state(space, sleep=lambda _: None).violations == []
    other.connection.close()


def test_articles_that_change_at_any_time_are_visited_as_ever(space):
    play = News(space, parse(**SETTINGS), "any")
    play.until(UNTIL_S)
    (found,) = play.youth()
    assert found["rate"] == 0.0
    # But for one in eight, that is looked at early to learn this.
    looks = [np.diff(play.visits[number])[0] for number in play.article if len(play.visits[number]) > 1]
    assert np.mean(np.array(looks) < 0.5 * np.median(looks)) < 0.3
