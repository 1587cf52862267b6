"""The second posterior that stands by: when it takes over, and when it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import posterior_median, update_posterior, watch_habits
from optimal_frontier.estimation.change_points import ALARM, KNOWN, MEMORY, RESIDUE, alarm_of, watch_one

SIZES = st.floats(1e-6, 1e6)


class Pages:
    """Pages of one change rate, visited at one interval."""

    def __init__(self, count, interval, seed=0):
        self.rng = np.random.default_rng(seed)
        self.interval = interval
        self.shape, self.time = np.ones(count), np.full(count, interval)
        self.watch = (np.zeros(count),) * 3

    def visit(self, rate):
        """Visit every page once; return where there was an alarm."""
        changed = self.rng.random(len(self.shape)) < -np.expm1(-rate * self.interval)
        self.watch, alarm = watch_habits(self.watch, self.shape, self.time, 1.0, self.interval, self.interval, changed)
        shape, time = update_posterior(self.shape, self.time, self.interval, changed)
        self.shape, self.time = np.where(alarm, self.watch.shape, shape), np.where(alarm, self.watch.time, time)
        return alarm


@pytest.mark.parametrize("rate", [0.03, 0.1, 0.3, 1.0, 3.0])
def test_pages_that_keep_their_habits_are_left_alone(rate):
    pages = Pages(4000, 1.0)
    alarms = sum(int(pages.visit(rate).sum()) for _ in range(100))
    assert alarms <= 4000 * 100 / 6000


@pytest.mark.parametrize(("before", "after"), [(0.1, 1.0), (0.3, 3.0), (1.0, 0.1), (3.0, 0.3)])
def test_changed_habits_are_learned_within_the_visits_stated(before, after):
    pages = Pages(2000, 1.0)
    for _ in range(60):
        pages.visit(before)
    without = (pages.shape.copy(), pages.time.copy())
    known = np.zeros(2000, bool)
    for _ in range(28):
        known |= pages.visit(after)
        without = update_posterior(*without, 1.0, pages.rng.random(2000) < -np.expm1(-after))
    assert known.mean() >= 0.93
    error = np.abs(np.log(posterior_median(pages.shape, pages.time) / after))
    error_without = np.abs(np.log(posterior_median(*without) / after))
    assert np.median(error) < 0.5 * np.median(error_without)


def test_evidence_is_the_sum_of_what_the_bits_say():
    watch, alarm = watch_habits((0.0, 0.0, 0.0), 4.0, 8.0, 1.0, 2.0, 3.0, True)
    of_recent = 1.0 - (1.0 / 4.0) ** 0.5  # Gamma(1/2, 1) over an interval of 3
    of_page = 1.0 - (8.0 / 11.0) ** 4
    assert not alarm
    assert watch.evidence == pytest.approx(max(0.0, np.log(of_recent / of_page)), rel=1e-12)
    assert (watch.shape, watch.time) == update_posterior(RESIDUE * 1.0, RESIDUE * 2.0, 3.0, True)
    before = watch_habits((3.0, 5.0, 1.0), 4.0, 8.0, 1.0, 2.0, 3.0, False)[0]
    shape, time = 0.5 + MEMORY * 2.5, 1.0 + MEMORY * 4.0
    more = shape * np.log(time / (time + 3.0)) - 4.0 * np.log(8.0 / 11.0)
    assert before.evidence == pytest.approx(1.0 + more, rel=1e-12)
    assert (before.shape, before.time) == pytest.approx((shape, time + 3.0))


def test_an_alarm_starts_again():
    watch, alarm = watch_habits((20.0, 1.0, ALARM - 0.1), 1.0, 1e6, 1.0, 1.0, 1.0, True)
    assert alarm
    assert watch.evidence == 0.0


def test_the_more_is_known_the_more_evidence_an_alarm_takes():
    """Alarms that throw away ten times as many changes are ten times as rare."""
    assert alarm_of(0.5) == alarm_of(KNOWN) == ALARM
    assert alarm_of(10 * KNOWN) - alarm_of(KNOWN) == pytest.approx(np.log(10.0))
    for evidence, expected in ((ALARM + 1.0, [True, False]), (ALARM + 5.0, [True, True])):
        shape = np.array([KNOWN, 50 * KNOWN])
        assert watch_habits((shape, shape, np.full(2, evidence)), shape, shape, 1.0, 1.0, 1e-9, False)[1].tolist() == expected


def test_busy_pages_are_not_learned_anew_by_chance():
    """Of 1,000 pages with 150 changes each 62 are, most of them early; at a threshold that stays where it is it would be 198."""
    pages = Pages(1000, 0.1)
    assert sum(int(pages.visit(2.0).sum()) for _ in range(750)) <= 110


@given(st.tuples(SIZES, SIZES, st.floats(0.0, ALARM)), SIZES, SIZES, SIZES, SIZES, SIZES, st.booleans())
def test_one_page_is_as_many(watch, shape, time, prior_shape, prior_time, interval, changed):
    one, alarm = watch_one(watch, shape, time, prior_shape, prior_time, interval, changed)
    many, alarms = watch_habits(tuple([v] for v in watch), [shape], [time], prior_shape, prior_time, interval, [changed])
    if abs(many.evidence[0] - alarm_of(shape)) > 1e-9 and abs(one[2] - alarm_of(shape)) > 1e-9:
        assert bool(alarms[0]) == alarm
        assert np.concatenate(many).tolist() == pytest.approx(list(one), rel=1e-9, abs=1e-9)
    assert np.isfinite(one).all()
    assert 0.0 <= one[2] <= alarm_of(shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((([0.0], [0.0], [-1.0]), [1.0], [1.0], 1.0, 1.0, 1.0, [True]), "watch.evidence[0] is -1.0; expected a non-negative"),
        ((([0.0], [0.0], [0.0]), [1.0], [0.0], 1.0, 1.0, 1.0, [True]), "time[0] is 0.0; expected a positive"),
        ((([0.0], [0.0], [0.0]), [1.0], [1.0], 1.0, 0.0, 1.0, [True]), "prior_time is 0.0; expected a positive"),
        ((([0.0], [0.0], [0.0]), [1.0], [1.0], 1.0, 1.0, 1.0, [None]), "changed[0] is None; expected a boolean"),
        ((([0.0], [0.0], [0.0]), [1.0, 1.0], [1.0, 1.0, 1.0], 1.0, 1.0, 1.0, [True]), "shapes do not go together"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InvalidProblemError) as error:
        watch_habits(*arguments)
    assert message in str(error.value)
