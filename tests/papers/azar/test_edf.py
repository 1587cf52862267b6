"""Algorithm 3: every page within one visit of its rate, at every time."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.scheduling import EdfCarousel, edf_schedule

PROFILE = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def worst_discrepancy(rates, schedule) -> Fraction:
    """Largest |visits in the first t slots - rate t| over pages and t, exactly, for rates given as floats or fractions.

    Between two visits the discrepancy only falls, so it is extreme right after a visit and right before the next one.
    """
    worst = Fraction(0)
    for page, (part, whole) in enumerate(Fraction(rate).as_integer_ratio() for rate in rates):
        slots = (np.flatnonzero(schedule == page) + 1).tolist()
        found = [abs(len(slots) * whole - part * len(schedule))]
        for visits, slot in enumerate(slots):
            found += [abs((visits + 1) * whole - part * slot), abs(visits * whole - part * (slot - 1))]
        worst = max(worst, Fraction(max(found), whole))
    return worst


def printed_algorithm_3(rates: list[Fraction], slots: int) -> list[int]:
    """Algorithm 3 line by line in exact arithmetic, O(n) a slot; ties go to the first page."""
    deltas = [Fraction(0)] * len(rates)
    schedule = []
    for _ in range(slots):
        deltas = [delta + rate for delta, rate in zip(deltas, rates, strict=True)]
        deadlines = {k: -((delta - 1) // rates[k]) for k, delta in enumerate(deltas) if delta > 0}
        chosen = min(deadlines, key=lambda k: (deadlines[k], k)) if deadlines else -1
        if chosen >= 0:
            deltas[chosen] -= 1
        schedule.append(chosen)
    return schedule


@PROFILE
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any), st.integers(0, 10))
def test_schedule_is_that_of_the_printed_algorithm_in_exact_arithmetic(parts, idle):
    """For rates such as 1/3 or 7/30 the rounding of the rate changes nothing: floor and ceiling are those of the true quotient."""
    rates = [Fraction(part, sum(parts) + idle) for part in parts]
    assert edf_schedule([float(rate) for rate in rates], 150).tolist() == printed_algorithm_3(rates, 150)


@PROFILE
@given(st.lists(st.floats(-12, 0), min_size=1, max_size=12), st.booleans(), st.randoms(use_true_random=False))
def test_discrepancy_is_below_one_for_rates_of_many_decades(exponents, full, random):
    """Sums of 1 within rounding, and below 1; some pages are never to be visited."""
    rates = np.array([0.0 if random.random() < 0.1 else 10.0**exponent for exponent in exponents])
    if full or rates.sum() > 1:
        rates /= max(rates.sum(), 1e-300)
    assert worst_discrepancy(rates, edf_schedule(rates, 1500)) < 1


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_discrepancy_is_below_one_in_a_long_run(n):
    """Nothing drifts, within a block of slots and from one to the next."""
    rates = np.random.default_rng(n).random(n) ** 3
    rates /= rates.sum()
    assert worst_discrepancy(rates, edf_schedule(rates, 30_000)) < 1


@pytest.mark.parametrize("excess", [0.0, 1e-9])
def test_sums_of_one_within_rounding_are_kept_up_with(excess):
    """Also where the rates ask for slightly more than there is."""
    rates = np.random.default_rng(3).dirichlet(np.ones(50)) * (1 + excess)
    schedule = edf_schedule(rates, 30_000)
    assert schedule.min() >= 0
    assert worst_discrepancy(rates, schedule) < 1


@pytest.mark.parametrize(("parts", "whole"), [([1] * 10, 10), ([1] * 3, 3), ([29, 71], 100), ([7, 7, 86], 100), ([1, 48], 49)])
def test_rates_that_floats_cannot_hold_come_out_as_they_are_meant(parts, whole):
    """A page with rate 29/100 has had 29 visits after 100 slots, and after every further 100."""
    schedule = edf_schedule([part / whole for part in parts], 1000 * whole)
    assert (np.stack([np.bincount(block, minlength=len(parts)) for block in schedule.reshape(-1, whole)]) == parts).all()


def test_late_slots_are_as_exact_as_early_ones():
    """At rate 1/3 the visits of slots 3e6 and on are still one in each three."""
    schedule = edf_schedule([1 / 3, 1 / 7], 3_000_003)
    visits = np.flatnonzero(schedule == 0)
    assert (visits // 3 == np.arange(1_000_001)).all()


@pytest.mark.parametrize("pages", [1, 3])
def test_a_page_with_rate_one_is_visited_in_every_slot(pages):
    assert edf_schedule([1.0] + [0.0] * (pages - 1), 10).tolist() == [0] * 10


def test_pages_without_a_rate_are_never_visited():
    assert edf_schedule([0.0, 0.0], 5).tolist() == [-1] * 5
    assert set(edf_schedule([0.0, 0.4, 0.0], 50).tolist()) == {-1, 1}


def test_idle_slots_make_up_what_the_rates_leave():
    """At rates that sum to 0.75, a quarter of the slots."""
    schedule = edf_schedule([0.5, 0.25], 1000)
    assert np.count_nonzero(schedule == -1) == 250


@pytest.mark.parametrize("rate", [1e-300, 5e-324])
def test_a_rate_too_small_to_come_round_again_gets_one_visit_at_most(rate):
    assert edf_schedule([0.5, rate], 10_000).tolist().count(1) == 1
    assert edf_schedule([1.0, rate], 10_000).tolist().count(1) == 0


def test_order_is_by_deadline_and_then_by_page():
    assert edf_schedule([0.25, 0.5], 8).tolist() == [1, 0, 1, -1] * 2
    assert edf_schedule([0.25] * 4, 8).tolist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize("slots", [0, 1, 4095, 4096, 4097, 10_000])
def test_any_number_of_slots_is_the_beginning_of_the_carousel(slots):
    rates = np.random.default_rng(1).dirichlet(np.ones(30)) * 0.95
    schedule = edf_schedule(rates, slots)
    assert schedule.shape == (slots,)
    assert schedule.dtype == np.int64
    assert schedule.tolist() == list(islice(EdfCarousel(rates), slots))


def test_carousel_is_an_iterator_of_plain_integers():
    carousel = EdfCarousel([0.5, 0.25])
    assert iter(carousel) is carousel
    assert all(type(page) is int for page in islice(carousel, 5000))
    assert next(carousel) in (-1, 0, 1)


def test_carousel_keeps_no_more_the_longer_it_turns():
    """Memory after 100,000 slots is that after 10,000."""
    carousel = EdfCarousel(np.random.default_rng(2).dirichlet(np.ones(200)))
    tracemalloc.start()
    try:
        held = []
        for slots in (10_000, 90_000):
            for _ in itertools.repeat(None, slots):
                next(carousel)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[1] < held[0] + 20_000


@pytest.mark.parametrize(
    "rates",
    [
        [0.5, 0.25, 0.125],
        (0.5, 0.25, 0.125),
        np.array([0.5, 9, 0.25, 9, 0.125, 9])[::2],
        np.array([0.5, 0.25, 0.125], dtype=np.float32),
    ],
    ids=["list", "tuple", "strided", "float32"],
)
def test_rates_may_be_of_any_kind(rates):
    assert edf_schedule(rates, 64).tolist() == edf_schedule(np.array([0.5, 0.25, 0.125]), 64).tolist()


def test_rates_are_neither_written_to_nor_looked_at_again():
    rates = np.array([0.5, 0.25])
    rates.flags.writeable = False
    expected = edf_schedule(rates, 9000).tolist()
    changing = np.array([0.5, 0.25])
    carousel = EdfCarousel(changing)
    changing[:] = 0.0
    assert list(islice(carousel, 9000)) == expected


@pytest.mark.parametrize("make", [lambda rates: edf_schedule(rates, 10), EdfCarousel], ids=["edf_schedule", "EdfCarousel"])
@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([], "rates is empty"),
        ([0.1, np.nan], r"rates\[1\] is nan"),
        ([0.1, 0.2, -0.1], r"rates\[2\] is -0\.1"),
        ([0.0, 1.5], r"rates\[1\] is 1\.5"),
        ([np.inf], r"rates\[0\] is inf"),
        ([0.5, 0.4, 0.2, 0.1], r"rates sum to 1\.2.*rates\[2\]"),
        ([0.5, 0.5 + 3e-9], r"rates sum to 1\.000000003.*rates\[1\]"),
        ([[0.5]], r"rates: .*shape \(1, 1\)"),
        (0.5, r"rates: .*shape \(\)"),
        (["a"], r"rates"),
    ],
)
def test_unusable_rates_are_named(make, rates, message):
    with pytest.raises(InvalidProblemError, match=message):
        make(rates)


@pytest.mark.parametrize("slots", [-1, 2.0, "3", None, np.array([1, 2])])
def test_unusable_numbers_of_slots_are_named(slots):
    with pytest.raises(InvalidProblemError, match="slots is"):
        edf_schedule([0.5], slots)
