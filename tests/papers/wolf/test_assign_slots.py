"""Crawls into slots: against scipy's assignment on the dense matrix, and what holds of any best assignment."""

from __future__ import annotations

import numpy as np
import pytest
from each_value import each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.scheduling import assign_slots

PROFILE = settings(max_examples=100, deadline=None, derandomize=True, database=None)
FORBIDDEN = 1e6


def dense_cost(ideal_times, not_before, crawlers, slots, interval, by_crawler=None, windows=None):
    """What each task costs in each place, in the order of crawler x slots + slot."""
    times = np.tile(np.arange(slots) * interval / slots, crawlers)
    ideal = np.asarray(ideal_times)[:, None]
    wrong = np.asarray(not_before)[:, None] & (times < ideal)
    if by_crawler is not None:
        wrong |= ~np.repeat(by_crawler, slots, axis=1)
    if windows is not None:
        wrong |= (times < windows[:, :1]) | (times > windows[:, 1:])
    return np.where(wrong, FORBIDDEN, np.abs(times - ideal))


def random_tasks(rng: np.random.Generator):
    """Few slots or many, full or not, with ties, crowds, times between and on slots, and beyond both ends."""
    crawlers, slots = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    interval = float(rng.choice([1.0, slots, 24.0]))
    n = crawlers * slots if rng.random() < 0.25 else int(rng.integers(0, crawlers * slots + 1))
    at = rng.random(n) * slots
    kind = rng.integers(4)
    if kind == 1:
        at = np.round(at * 2) / 2
    elif kind == 2:
        at = np.round(at)
    elif kind == 3:
        at = slots * (0.3 + 0.4 * rng.random(n))
    if rng.random() < 0.3:
        at = at * 1.4 - 0.2 * slots
    return at * interval / slots, rng.random(n) < rng.choice([0, 0.2, 0.5, 0.8]), crawlers, slots, interval


def check(tasks, allowed=None, by_crawler=None, windows=None) -> bool:
    """Hold an assignment against the dense one; False if there is none."""
    cost = dense_cost(*tasks, by_crawler, windows)
    rows, columns = linear_sum_assignment(cost)
    least = cost[rows, columns].sum()
    if least >= FORBIDDEN:
        with pytest.raises(InvalidProblemError, match=r"not_before|allowed"):
            assign_slots(*tasks, allowed)
        return False
    places = assign_slots(*tasks, allowed)
    assert places.dtype == np.int64
    assert np.unique(places).size == places.size
    assert cost[np.arange(places.size), places].sum() == pytest.approx(least, rel=1e-12, abs=1e-9)
    return True


@each("seed", range(100))
def test_total_distance_is_that_of_the_dense_assignment(seed):
    """1,000 problems, feasible or not: the next test says how many are."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        check(random_tasks(rng))


def test_both_answers_are_among_such_problems():
    solved = [check(random_tasks(np.random.default_rng((1, seed)))) for seed in range(200)]
    assert 100 <= sum(solved) <= 180


@each("seed", range(60))
def test_restricted_assignments_are_those_of_the_dense_matrix(seed):
    """Crawlers, windows and both, also such that leave no assignment; windows that end on a slot include it."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        tasks = ideal, _, crawlers, slots, interval = random_tasks(rng)
        n, width = ideal.size, interval / slots
        by_crawler = rng.random((n, crawlers)) < rng.choice([0.4, 0.8])
        by_crawler[np.arange(n), rng.integers(0, crawlers, n)] = True
        windows = np.stack([ideal - width * rng.integers(0, slots + 1, n), ideal + width * rng.integers(0, slots + 1, n)], axis=1)
        if rng.random() < 0.5:
            windows = np.round(windows / width) * interval / slots
        check(tasks, by_crawler, by_crawler=by_crawler)
        check(tasks, windows, windows=windows)
        check(tasks, (by_crawler, windows), by_crawler=by_crawler, windows=windows)


@pytest.mark.parametrize("seed", range(5))
def test_larger_problems_too(seed):
    """Hundreds of tasks at loads from a half to 1, with and without restrictions that bind."""
    rng = np.random.default_rng(seed)
    crawlers, slots = 5, 105
    n = [250, 400, 475, 520, 525][seed]
    ideal = np.sort(rng.random(n)) * slots * 0.98
    tasks = ideal, rng.random(n) < 0.2, crawlers, slots, float(slots)
    halves = np.ones((n, crawlers), bool)
    halves[::3, 2:] = False
    check(tasks)
    check(tasks, halves, by_crawler=halves)
    windows = np.stack([ideal - 15, ideal + 15], axis=1)
    check(tasks, windows, windows=windows)


@PROFILE
@given(st.integers(0, 2**31))
def test_restrictions_that_forbid_nothing_cost_nothing(seed):
    """All crawlers, the whole interval, None and None: two solvers, one total."""
    tasks = random_tasks(np.random.default_rng(seed))
    n, crawlers, interval = tasks[0].size, tasks[2], tasks[4]
    everywhere = np.tile([0.0, interval], (n, 1))
    try:
        places = assign_slots(*tasks)
    except InvalidProblemError:
        for allowed in (np.ones((n, crawlers), bool), everywhere, (None, everywhere)):
            with pytest.raises(InvalidProblemError, match="not_before"):
                assign_slots(*tasks, allowed)
        return
    cost = dense_cost(*tasks)
    for allowed in (np.ones((n, crawlers), bool), everywhere, (None, everywhere), (None, None)):
        again = assign_slots(*tasks, allowed)
        assert cost[np.arange(n), again].sum() == pytest.approx(cost[np.arange(n), places].sum(), abs=1e-9)


@PROFILE
@given(st.integers(0, 2**31))
def test_tasks_may_come_in_any_order(seed):
    """The total does not depend on it, and a shift by whole slots moves everything along."""
    rng = np.random.default_rng(seed)
    ideal, not_before, crawlers, slots, _ = random_tasks(rng)
    n, interval = ideal.size, float(slots)
    tasks = np.clip(ideal, 0, slots - 1), not_before, crawlers, 2 * slots, 2 * interval
    order = rng.permutation(n)
    cost = dense_cost(*tasks)
    total = cost[np.arange(n), assign_slots(*tasks)].sum()
    mixed = assign_slots(tasks[0][order], not_before[order], *tasks[2:])
    assert cost[order, mixed].sum() == pytest.approx(total, abs=1e-9)


def test_a_later_two_sided_task_may_have_to_go_first():
    """Where tasks in rising order to slots in rising order would be infeasible: the last one takes the first slot."""
    assert assign_slots([2.0, 2.0, 2.5, 0.0], [True, True, False, False], 1, 4, 4.0).tolist()[:2] == [2, 3]
    assert sorted(assign_slots([2.0, 2.0, 2.5, 0.0], [True, True, False, False], 1, 4, 4.0).tolist()[2:]) == [0, 1]


def test_tasks_on_slots_stay_there_and_others_go_to_the_nearer_side():
    places = assign_slots([0.0, 1.0, 2.4, 3.6, 2.0], False, 1, 6, 6.0)
    assert places.tolist() == [0, 1, 3, 4, 2]
    assert assign_slots([1.2, 4.8], False, 1, 6, 6.0).tolist() == [1, 5]
    assert assign_slots([1.2, 4.8], True, 1, 6, 6.0).tolist() == [2, 5]


@pytest.mark.parametrize(("slots", "interval"), [(10, 1.0), (3, 1.0), (7, 86400.0), (86400, 1.0)])
def test_a_task_at_the_time_of_a_slot_may_have_it(slots, interval):
    """Slot times are `k interval / slots` as floats have them: rounding makes no task late."""
    times = np.arange(slots) * interval / slots
    assert (assign_slots(times, True, 1, slots, interval) == np.arange(slots)).all()
    windows = np.stack([times, times], axis=1)
    assert (assign_slots(times, False, 1, slots, interval, windows) == np.arange(slots)).all()


@pytest.mark.parametrize("allowed", [None, [[-np.inf, np.inf]] * 3])
def test_ideal_times_may_be_far_outside_the_interval(allowed):
    """Those far before it take the first slots, those far after it the last."""
    assert assign_slots([1e308, -1e308, -1e9], [False, True, False], 1, 10, 1e-3, allowed).tolist()[0] == 9
    assert sorted(assign_slots([1e308, -1e308, -1e9], [False, True, False], 1, 10, 1e-3, allowed).tolist()) == [0, 1, 9]


def test_crawlers_of_a_slot_are_used_from_the_first_on():
    places = assign_slots([0.0, 0.0, 0.0, 2.0], False, 4, 3, 3.0)
    assert sorted(places.tolist()) == [0, 2, 3, 6]
    assert assign_slots([], [], 2, 3, 3.0).tolist() == []


def test_a_long_interval_is_assigned_without_detours():
    """20,000 tasks at loads 0.9 and 1: no exchange of two two-sided tasks pays, and none of the others is early."""
    rng = np.random.default_rng(1)
    for n in (18_000, 20_000):
        slots = 5000
        ideal = rng.random(n) * slots
        not_before = (rng.random(n) < 0.2) & (ideal < 0.9 * slots)
        slot = assign_slots(ideal, not_before, 4, slots, float(slots)) % slots
        assert np.bincount(slot).max() <= 4
        assert (slot[not_before] >= ideal[not_before]).all()
        either = np.flatnonzero(~not_before)
        assert (np.diff(slot[either[np.argsort(ideal[either])]]) >= 0).all()


@pytest.mark.parametrize("allowed", [None, np.ones((2, 2), bool)])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ideal_times": [0.0, np.nan]}, r"ideal_times\[1\] is nan"),
        ({"ideal_times": [0.0, -np.inf]}, r"ideal_times\[1\] is -inf"),
        ({"ideal_times": [[0.0]]}, "ideal_times: expected one number per"),
        ({"ideal_times": ["a", "b"]}, "ideal_times"),
        ({"not_before": [True]}, r"not_before has shape \(1,\); expected \(2,\)"),
        ({"not_before": [0.5, 1]}, "not_before: expected True or False"),
        ({"crawlers": 0}, "crawlers is 0"),
        ({"crawlers": 1.5}, "crawlers is 1.5"),
        ({"slots": -1}, "slots is -1"),
        ({"interval": 0.0}, "interval is 0.0"),
        ({"interval": np.inf}, "interval is inf"),
        ({"crawlers": 1, "slots": 1}, "ideal_times has 2 entries, but there are 1 x 1 = 1 slots"),
        ({"ideal_times": [0.0, 2.5]}, r"ideal_times\[1\] is 2.5, after the last slot, at 2.0, and not_before\[1\]"),
        ({"ideal_times": [2.0, 2.0], "crawlers": 1}, "not_before is True for 2 tasks that are ready after 1.0, but only 1 slots"),
    ],
)
def test_unusable_arguments_are_named(changed, message, allowed):
    good = {"ideal_times": [0.0, 1.0], "not_before": [False, True], "crawlers": 2, "slots": 3, "interval": 3.0, "allowed": allowed}
    if "crawlers" in changed and changed.get("ideal_times") == [2.0, 2.0]:
        good["not_before"] = [True, True]
    with pytest.raises(InvalidProblemError, match=message):
        assign_slots(**good | changed)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (np.ones((2, 3), bool), r"allowed has shape \(2, 3\); expected \(2, 2\), one column per crawler"),
        (np.array([[True, True], [False, False]]), "allowed leaves task 1 no crawler"),
        ([[0.0, 1.0]], r"allowed: expected windows .* shape \(2, 2\), got shape \(1, 2\)"),
        ([[0.0, 1.0], [0.0, np.nan]], "allowed: expected windows"),
        ([[0.0, 1.0], [1.1, 1.9]], "allowed leaves task 1 a window without a slot"),
        ([[0.0, 1.0], [0.0, 0.0]], "allowed leaves task 1 a window without a slot in it, or none that its ideal time allows"),
        ((None, [[0.0, 9.0]]), r"shape \(2, 2\), got shape \(1, 2\)"),
        ("monday", "allowed"),
        (np.array([[True, False], [True, False]]), "allowed leaves 2 tasks, number . among them, 1 places between them"),
    ],
)
def test_unusable_restrictions_are_named(allowed, message):
    ideal = [0.0, 1.0]
    slots = 1 if "2 tasks" in message else 3
    with pytest.raises(InvalidProblemError, match=message):
        assign_slots(ideal, [False, slots == 3], 2, slots, float(slots), allowed)
