"""How many new pages a page yields."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation.yields import Yield, first_yield, learn_yield


def learned(counts: np.ndarray, intervals: np.ndarray) -> Yield:
    """What is believed after these visits; those before the first new page are told by their number."""
    first = int(np.flatnonzero(counts)[0])
    known = first_yield(int(counts[first]), float(counts[first]), intervals[first], first + 1)
    for count, interval in zip(counts[first + 1 :], intervals[first + 1 :], strict=True):
        known = learn_yield(known, int(count), float(count), interval)
    return known


@pytest.mark.parametrize("per_visit", [0.05, 0.3, 2.0, 40.0])
def test_the_rate_is_right_on_average(per_visit):
    """Of pages that yield few and many new pages a visit, at unequal intervals."""
    rng = np.random.default_rng(4)
    rates = []
    for _ in range(300):
        intervals = rng.uniform(50, 150, 200)
        counts = rng.poisson(per_visit / 100 * intervals)
        if counts.any():
            rates.append(learned(counts, intervals).rate)
    assert np.mean(rates) == pytest.approx(per_visit / 100, rel=0.06)


def test_a_page_that_yields_at_its_second_visit_is_believed_at_once():
    assert first_yield(6, 9.0, 600.0, 1) == Yield(6.0, 9.0, 600.0)


def test_one_new_link_after_many_visits_without_is_no_great_promise():
    """The visits between count, as far as they would be remembered."""
    assert first_yield(1, 1.0, 600.0, 8).rate == pytest.approx(1 / 4800)
    assert first_yield(1, 1.0, 600.0, 500).rate == pytest.approx(1 / 6000)


def test_a_page_that_goes_quiet_falls_back_and_is_never_given_up():
    known = Yield(100.0, 100.0, 1000.0)
    rates = []
    for _ in range(2000):
        known = learn_yield(known, 0, 0.0, 100.0)
        rates.append(known.rate)
    assert rates[9] < 0.06
    assert rates[40] < 0.005
    assert np.all(np.diff(rates) <= 0)
    assert rates[-1] > 0


def test_one_that_wakes_up_is_believed_soon():
    known = Yield(1e-6, 1e-6, 1e5)
    for _ in range(3):
        known = learn_yield(known, 5, 5.0, 100.0)
    assert known.rate > 1e-4


def test_what_new_pages_are_worth_is_a_running_mean():
    known = Yield(10.0, 10.0, 100.0)
    for _ in range(60):
        known = learn_yield(known, 2, 6.0, 20.0)
    assert known.mean_importance == pytest.approx(3.0, rel=0.01)
    assert known.worth == pytest.approx(known.rate * known.mean_importance)


def test_visits_at_the_same_moment_divide_by_no_zero():
    assert learn_yield(Yield(1.0, 1.0, 1.0), 1, 1.0, 0.0).rate > 0
    assert first_yield(1, 1.0, 0.0, 1).rate > 0
