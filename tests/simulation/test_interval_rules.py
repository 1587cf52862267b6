"""Other crawlers' schedulers, step by step as their sources say."""

from __future__ import annotations

import pytest

from optimal_frontier.simulation import Frontera, Nutch, StormCrawler
from optimal_frontier.simulation.interval_rules import RULES


def test_nutch_multiplies_and_synchronises():
    """30 days; x 1.4 unchanged and x 0.8 changed; no less than the time since a change, and 0.3 of that earlier."""
    rule = Nutch()
    due, state = rule.first(0.0)
    assert due == 30.0
    due, state = rule.next(30.0, False, state)
    assert (due, state) == (pytest.approx(30 - 9 + 42), (pytest.approx(42.0), 0.0))
    due, state = rule.next(63.0, False, state)
    assert (due, state) == (pytest.approx(63 - 18.9 + 63), (pytest.approx(63.0), 0.0))  # 58.8 is less than the 63 days without change
    due, state = rule.next(110.0, True, state)
    assert (due, state) == (pytest.approx(110 + 50.4), (pytest.approx(50.4), 110.0))


def test_nutch_keeps_its_bounds():
    rule = Nutch()
    assert rule.next(500.0, False, (300.0, 499.0))[1][0] == 365.0
    assert rule.next(1.0, True, (1e-9, 0.0))[1][0] == 60 / 86_400


def test_nutch_without_sync_delta_multiplies_only():
    rule = RULES["nutch-tuned"](5.0)
    due, state = rule.first(0.0)
    assert due == 5.0
    due, state = rule.next(40.0, False, state)
    assert (due, state[0]) == (47.0, 7.0)
    assert rule.next(50.0, True, state)[0] == pytest.approx(55.6)


def test_stormcrawler_counts_in_minutes():
    """A day; half as much again up to two weeks; down to the mean with an hour."""
    rule = StormCrawler()
    due, state = rule.first(2.0)
    assert due == 3.0
    due, state = rule.next(3.0, True, state)
    assert (due, state) == (3.0 + 750 / 1440, (750.0, 3.0))
    due, state = rule.next(4.0, False, state)
    assert state == (1125.0, 3.0)
    assert rule.next(5.0, False, (20_000.0, 0.0))[1][0] == 20_160.0
    assert rule.next(5.0, True, (61.0, 0.0))[1][0] == 60.0  # 60.5 whole minutes
    assert due == 4.0 + 1125 / 1440


def test_frontera_has_one_interval():
    rule = Frontera(2.0)
    due, state = rule.first(1.0)
    assert due == 3.0
    assert rule.next(7.0, True, state) == (9.0, state)
    assert rule.next(7.0, False, state) == (9.0, state)
    assert rule.waits
