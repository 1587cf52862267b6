"""Credit and deadlines, as pure arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from optimal_frontier.scheduling import backoff, carry_after_visit, credit_at, deadline, least_wait, memoryless_wait

PROFILE = settings(max_examples=200, deadline=None, derandomize=True, database=None)


@PROFILE
@given(st.floats(-1e6, 1e6))
def test_a_visit_takes_one_off_and_leaves_little(credit):
    left = float(carry_after_visit(credit))
    assert -1.0 <= left <= 0.5
    assert left == credit - 1 or left in (-1.0, 0.5)


def test_backoff_doubles_up_to_a_day_with_a_jitter_of_up_to_half():
    most = np.array([1, 2, 4, 8, 65536, 86400, 86400])
    waits = np.array([backoff([0, 1, 2, 3, 16, 17, 1000], slot) for slot in range(1000)])
    assert (waits <= most).all()
    assert (waits > most / 2).all()
    # Pages that failed together come again one by one, evenly.
    for column in (waits / most).T:
        assert np.diff(np.sort(column)).max() < 0.01


def test_a_page_that_is_gone_is_looked_at_again_after_a_tenth_of_its_interval():
    """An hour at most, and not before gap and backoff allow it."""
    assert least_wait(1.0, 1, 0, gone=[0, 1, 1, 1], rate=[0.001, 0.001, 1e-6, 0.0]).round(3).tolist() == [1.245, 100.0, 3600.0, 1.245]
    assert least_wait([1.0, 7.0], [0, 1], 0, gone=1, rate=10.0).tolist() == [1.0, 7.0]


@PROFILE
@given(
    old=st.floats(1e-6, 10),
    new=st.floats(1e-6, 10),
    carry=st.floats(-1, 0.5),
    until_plan=st.floats(1e-3, 1e5),
    afterwards=st.floats(0, 1e5),
)
def test_a_new_plan_changes_the_speed_and_not_what_was_earned(old, new, carry, until_plan, afterwards):
    """Credit is continuous at the plan and grows at the new rate after it."""
    earned = float(credit_at(until_plan, carry, 0.0, old, 0.0, 0.0))
    assert float(credit_at(until_plan, carry, 0.0, new, until_plan, earned)) == earned
    later = float(credit_at(until_plan + afterwards, carry, 0.0, new, until_plan, earned))
    assert later == pytest.approx(earned + new * afterwards, rel=1e-9, abs=1e-9)


def test_a_visit_after_a_plan_counts_and_one_before_does_not():
    assert float(credit_at(20.0, 0.25, 10.0, 0.1, 5.0, 0.9)) == 1.25
    assert float(credit_at(20.0, 0.25, 10.0, 0.1, 15.0, 0.9)) == pytest.approx(1.4)
    assert float(credit_at(20.0, 0.25, 10.0, 0.1, 10.0, 0.9)) == 1.25


def test_neither_gap_nor_backoff_is_undercut():
    due = deadline(0.5, 100.0, 1000.0, 0.0, 0.0, last_attempt=100.0, gap=[0.0, 30.0, 0.0, 30.0], failures=[0, 0, 3, 6])
    assert due.tolist() == [pytest.approx(100.0005), 130.0, 100.0 + float(backoff(3)), 100.0 + float(backoff(6))]


def test_a_page_without_a_rate_is_never_due_unless_it_has_earned_its_visit():
    assert deadline([0.99, 1.0, 5.0], 10.0, 0.0, 0.0, 0.0, 0.0, 0.0).tolist() == [np.inf, 10.0, 10.0]


def test_arrays_of_pages_give_what_single_pages_give():
    rng = np.random.default_rng(5)
    columns = [rng.uniform(-1, 1, 50), rng.uniform(0, 9, 50), rng.choice([0, 0.1, 3], 50), rng.uniform(0, 9, 50), rng.uniform(-1, 2, 50)]
    columns += [rng.uniform(0, 9, 50), rng.uniform(0, 3, 50), rng.integers(0, 5, 50)]
    together = deadline(*columns)
    assert together.tolist() == [float(deadline(*row)) for row in zip(*columns, strict=True)]


def test_visits_on_time_follow_the_rate_exactly():
    """A page visited whenever it is due, a little late each time, gets its rate in the long run: lateness does not add up."""
    rng = np.random.default_rng(6)
    rate, now, carry, visits = 0.1, 0.0, 0.0, 0
    while now < 10_000:
        due = float(deadline(carry, now, rate, 0.0, 0.0, now, 1.0))
        late = due + float(rng.uniform(0, 4))
        carry = float(carry_after_visit(credit_at(late, carry, now, rate, 0.0, 0.0)))
        now, visits = late, visits + 1
    assert visits == pytest.approx(rate * now, abs=1)


def test_memoryless_waits_are_exponential_over_pages_and_over_visits():
    """Whichever of the three numbers runs; and no page's waits resemble its neighbour's."""
    over_slots = np.array([memoryless_wait(slot, 0, 1) for slot in range(5000)])
    over_visits = np.array([memoryless_wait(7, 3, attempts) for attempts in range(1, 5001)])
    over_generations = np.array([memoryless_wait(7, generation, 1) for generation in range(5000)])
    for waits in (over_slots, over_visits, over_generations):
        assert waits.min() > 0
        assert kstest(waits, "expon").pvalue > 0.01
        assert abs(np.corrcoef(waits[:-1], waits[1:])[0, 1]) < 3 / np.sqrt(len(waits))
    neighbour = np.array([memoryless_wait(8, 3, attempts) for attempts in range(1, 5001)])
    assert abs(np.corrcoef(over_visits, neighbour)[0, 1]) < 3 / np.sqrt(5000)


def test_memoryless_visits_on_time_or_late_follow_the_rate():
    """What comes late is carried over: as many visits as planned in the long run, at most half a visit to make up."""
    rng = np.random.default_rng(8)
    rate, now, carry, visits = 0.1, 0.0, 0.0, 0
    while now < 60_000:
        due = float(deadline(carry, now, rate, 0.0, 0.0, now, 0.0))
        late = due + float(rng.uniform(0, 2))
        carry = float(carry_after_visit(credit_at(late, carry, now, rate, 0.0, 0.0))) + 1 - memoryless_wait(1, 0, visits + 1)
        assert carry <= 1.5
        now, visits = late, visits + 1
    assert visits == pytest.approx(rate * now, abs=3 * np.sqrt(rate * now))
