"""Freshness of a repeated schedule: exact, by two other ways of working it out."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import freshness_periodic, solve_periodic
from optimal_frontier.papers.azar.cycle import cycle_freshness, cycle_slots
from optimal_frontier.scheduling import edf_schedule


def freshness_by_steps(schedule, change_rate, slot_length, steps=400):
    """The mean of exp(-change_rate x age) at the middles of many steps per slot, in the second of two rounds."""
    twice = np.concatenate([schedule, schedule])
    middles = (np.arange(len(schedule) * steps) + 0.5) / steps + len(schedule)
    found = []
    for page, rate in enumerate(change_rate):
        visits = np.flatnonzero(twice == page)
        if visits.size == 0:
            found.append(0.0 if rate > 0 else 1.0)
            continue
        last = visits[np.searchsorted(visits, middles, side="right") - 1]
        found.append(float(np.mean(np.exp(-rate * slot_length * (middles - last)))))
    return found


@pytest.mark.parametrize("slot_length", [1.0, 0.02, 30.0])
def test_freshness_is_the_mean_over_time(slot_length):
    """Of what a copy's age makes likely, in steps so fine that it does not matter."""
    rng = np.random.default_rng(4)
    change_rate = rng.random(6) / slot_length
    change_rate[5] = 0.0
    schedule = rng.choice([-1, 0, 1, 2, 3], size=40, p=[0.2, 0.5, 0.2, 0.05, 0.05])
    found = cycle_freshness(schedule, change_rate, slot_length)
    assert found == pytest.approx(freshness_by_steps(schedule, change_rate, slot_length), rel=1e-5)


def test_evenly_spaced_visits_have_the_freshness_of_eq_6():
    """A page in every 4th slot, one in every 8th, two once a round."""
    schedule = [0, 1, 2, -1, 0, -1, -1, -1, 0, 1, 3, -1, 0, -1, -1, -1]
    change_rate = np.array([0.3, 0.1, 0.01, 2.0])
    for page, rate in enumerate([1 / 4, 1 / 8, 1 / 16, 1 / 16]):
        expected = freshness_periodic([1.0], change_rate[page : page + 1], [rate / 0.5])
        assert cycle_freshness(schedule, change_rate, 0.5)[page] == pytest.approx(expected, rel=1e-14)


def test_where_a_round_begins_does_not_matter():
    rng = np.random.default_rng(5)
    schedule, change_rate = rng.integers(-1, 10, 100), rng.random(10)
    whole = cycle_freshness(schedule, change_rate)
    for begin in (1, 37, 99):
        assert cycle_freshness(np.roll(schedule, begin), change_rate) == pytest.approx(whole, rel=1e-13)
    assert cycle_freshness(np.tile(schedule, 3), change_rate) == pytest.approx(whole, rel=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_no_schedule_exceeds_the_optimum_of_evenly_spaced_visits(seed):
    """Neither a random one nor one made for it; the latter comes near."""
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.random(30), rng.random(30)
    best = solve_periodic(importance, change_rate, 15.0)
    at_random = rng.integers(0, 30, 3000)
    made = edf_schedule(best.rates / best.rates.sum(), 3000)
    reached = [float(importance @ cycle_freshness(schedule, change_rate, 1 / 15)) / best.objective for schedule in (at_random, made)]
    assert reached[0] < 0.9
    assert 0.99 < reached[1] < 1.0


def test_schedules_that_visit_nobody_keep_nothing_fresh():
    assert cycle_freshness([-1, -1], [0.5, 0.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("schedule", "change_rate", "message"),
    [
        ([], [1.0], "schedule: "),
        ([[0]], [1.0], "schedule: "),
        ([0, 1], [1.0], r"schedule\[1\] is 1"),
        ([0, -2], [1.0], r"schedule\[1\] is -2"),
        ([0.5], [1.0], r"schedule\[0\] is 0\.5"),
        ([0], [np.nan], r"change_rate\[0\] is nan"),
    ],
)
def test_unusable_arguments_are_named(schedule, change_rate, message):
    with pytest.raises(InvalidProblemError, match=message):
        cycle_freshness(schedule, change_rate)
    with pytest.raises(InvalidProblemError, match="slot_length"):
        cycle_freshness([0], [1.0], 0.0)


def test_a_cycle_is_as_long_as_the_pages_that_matter_ask_for():
    rates = [0.5, 1 / 3000, 1 / 5000, 0.0]
    assert cycle_slots(rates, [1.0, 0.1, 0.1, 0.0], 1000) == 5000
    assert cycle_slots(rates, [1.0, 0.1, 1e-6, 0.0], 1000) == 3000
    assert cycle_slots(rates, [1.0, 1e-6, 1e-6, 0.0], 1000) == 1000
    assert cycle_slots(rates, [1.0, 1e-6, 1e-6, 0.0], 1000, neglected=1e-7) == 5000
    # Pages that are neglected one by one may matter together.
    assert cycle_slots(rates, [1.0, 6e-6, 6e-6, 0.0], 1000) == 3000


@pytest.mark.parametrize("rarest", [1e-9, 1e-300, 5e-324])
def test_a_cycle_is_no_longer_than_it_may_be(rarest):
    assert cycle_slots([0.5, rarest], [1.0, 1.0], 100) == 2000
    assert cycle_slots([0.5, rarest], [1.0, 1.0], 100, most=150) == 150
