"""The hours in which a host changes are learned from intervals, and its clock keeps the length of days."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation.rhythm import HOURS, Rhythms

DAY = 86_400.0


def learned(busy: range, days: int = 200) -> Rhythms:
    """Pages of one host that change twice a day, in busy hours alone, and are visited at random times."""
    rng = np.random.default_rng(1)
    rhythms = Rhythms(DAY)
    rhythms.grow(2)
    hours = np.array(busy)
    for _ in range(10):
        changes = np.sort((rng.integers(0, days, 2 * days) + (rng.choice(hours, 2 * days) + rng.random(2 * days)) / HOURS) * DAY)
        visits = np.sort(rng.random(4 * days) * days * DAY)
        since, until = visits[:-1], visits[1:]
        changed = np.searchsorted(changes, until) > np.searchsorted(changes, since)
        rate = np.full(len(since), 2.0 / DAY)
        for part in np.array_split(np.arange(len(since)), 40):
            host = np.ones(len(part), int)
            elapsed = rhythms.elapsed(host, since[part], until[part])
            odds = np.where(changed[part], 1.0 / np.maximum(-np.expm1(-rate[part] * elapsed), 1e-9), 0.0)
            rhythms.fold(host, since[part], until[part], rate[part], odds)
            rhythms.refresh(np.unique(host))
    return rhythms


def test_busy_hours_are_found_and_other_hosts_stay_flat() -> None:
    profile = learned(range(9, 17)).profile
    assert profile[1].mean() == pytest.approx(1.0)
    assert profile[1, 10:16].min() > 1.8
    assert profile[1, [0, 1, 2, 3, 4, 20, 21, 22, 23]].max() < 0.4
    assert np.array_equal(profile[0], np.ones(HOURS))


def test_a_day_takes_a_day_from_any_hour_on_and_time_never_goes_back() -> None:
    rhythms = learned(range(20, 23), days=40)
    since = np.linspace(-3.3, 5.0, 200) * DAY
    host = np.ones(200, int)
    assert rhythms.elapsed(host, since, since + 2 * DAY) == pytest.approx(np.full(200, 2 * DAY))
    steps = rhythms.elapsed(host[:-1], since[:-1], since[1:])
    assert (steps > 0.0).all()
    assert steps.sum() == pytest.approx(rhythms.elapsed(host[:1], since[:1], since[-1:])[0])


def test_intervals_above_two_weeks_are_left_out() -> None:
    rhythms = Rhythms(DAY)
    rhythms.grow(1)
    one = np.zeros(1, int)
    rhythms.fold(one, np.zeros(1), np.array([15 * DAY]), np.array([1.0 / DAY]), np.ones(1))
    assert not rhythms.expected.any()
    rhythms.fold(one, np.zeros(1), np.array([0.5 * DAY]), np.array([1.0 / DAY]), np.ones(1))
    assert rhythms.expected[0] == pytest.approx(np.where(np.arange(24) < 12, 1.0 / 24.0, 0.0))
