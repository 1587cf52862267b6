"""MAX_INTERVAL holds: no numbers put a page further ahead than its longest interval, whatever happened to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, PAGE, context, handed, judged, parse, planned
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.estimation.update_probabilities import stated_beta
from optimal_frontier.frontier.judging.update_times import Republished, numbers_of_timed
from optimal_frontier.frontier.judging.waits import Terms, goes_by_price, numbers_of, priced_numbers
from optimal_frontier.settings import Timetable
from optimal_frontier.state.rows import ACTIVE, CHECKED, LAYOUT, SIGNALLED, Row

#: What 32 bits leave of a bound.
ROUNDED = 1.0 + 1e-6
TABLES = [
    Timetable(1000.0, (200.0, 650.0), (0.5, 1.0)),
    Timetable(86_400.0, (0.0,), (1.0,)),
    Timetable(7.0, (0.0, 0.5, 6.5), (0.1, 0.2, 0.9)),
]
POLICIES = [{}, {"POLICY": "poisson"}, {"EXPLORATION": "epsilon"}, {"EXPLORATION": "explore-then-commit"}]


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """A page after a visit: seen or not, failing, gone, checked, with a posterior or none, pinned or between bounds."""
    longest = draw(st.floats(1e-2, 4e6))
    failures = draw(st.integers(0, 255))
    known = draw(st.booleans())
    return Row(
        host=1,
        state=ACTIVE,
        b=AT * 1e6 + draw(st.floats(0, 1e12)),
        flags=draw(st.sampled_from([0, 0, SIGNALLED, CHECKED])),
        min_interval=longest * draw(st.sampled_from([1.0, 1.0 - 1e-6, 0.5, 1e-4])),
        max_interval=longest,
        importance=draw(st.floats(1e-3, 1e3)),
        shape=draw(st.floats(1e-3, 1e4)) if known else 0.0,
        time=draw(st.floats(1e-3, 1e8)) if known else 0.0,
        visits=draw(st.integers(1, 5)),
        failed=failures,
        failures=failures,
        gone=min(failures, draw(st.integers(0, 3))),
        unseen=draw(st.sampled_from([0.0, 5.0, 1e5])) if failures else 0.0,
        pattern=7,
    )


@st.composite
def terms(draw: st.DrawFn) -> Terms:
    log_price = draw(st.one_of(st.floats(-60, 60), st.just(-math.inf)))
    number = draw(st.sampled_from([0, 1]))
    values = draw(st.sampled_from(POLICIES))
    exploration = {
        "exploration": values.get("EXPLORATION", "median"),
        "exploration_number": "1",
        "explores": draw(st.sampled_from(["0", "1"])),
    }
    return Terms(log_price, planned(log_price, number=number, exploration=exploration), parse(**values))


def due_after(row: Row, numbers: tuple[float, float, float, float], log_price: float) -> float:
    """Seconds from the visit to the deadline, by what is stored of it."""
    a, s, e, longest = (float(np.float32(min(value, 3.4e38))) for value in numbers)
    assert e <= longest * ROUNDED
    return min(max(a + s * log_price if s else a, e), longest)


@given(rows(), terms(), st.floats(0, 1e8), st.floats(-1000, 1000), st.floats(0, 1e7))
def test_no_numbers_are_beyond_it(row: Row, found: Terms, since: float, log_price: float, late: float) -> None:
    """At any price that dispatch may come to: pinned, failing for ever, gone, checked, explored, memoryless, worth nothing."""
    numbers = numbers_of(row, PAGE, found, since=since, late=late)
    assert due_after(row, numbers, log_price) <= row.max_interval * ROUNDED


@given(rows(), terms(), st.floats(-1000, 1000), st.sampled_from(TABLES))
def test_neither_are_those_of_a_page_with_update_times(row: Row, found: Terms, log_price: float, table: Timetable) -> None:
    numbers = numbers_of_timed(Republished(table, tuple(map(stated_beta, table.probabilities))), row, PAGE, found)
    assert due_after(row, numbers, log_price) <= row.max_interval * ROUNDED


@given(st.lists(rows(), min_size=1, max_size=5), terms(), st.floats(0, 1e7), st.floats(-1000, 1000))
def test_nor_those_that_a_plan_writes(some: list[Row], found: Terms, later: float, log_price: float) -> None:
    stored = [row._replace(failures=0, failed=0, gone=0, unseen=0.0, a=1.0, s=0.0, e=1.0, l=1.0) for row in some]
    table = np.frombuffer(b"".join(row.pack() for row in stored), LAYOUT)
    priced = np.flatnonzero(goes_by_price(table) & (found.published.number > 0))
    made = priced_numbers(table[priced], np.array([PAGE] * len(priced), "V12"), found, AT + later)
    for at, place in enumerate(priced):
        numbers = tuple(float(column[at]) for column in made)
        assert due_after(stored[place], numbers, log_price) <= stored[place].max_interval * ROUNDED  # type: ignore[arg-type]


@pytest.mark.parametrize("error", ["500", "404", "timeout", "robots", "blocked"])
def test_a_page_that_goes_on_failing_is_tried_again_within_it(error: str) -> None:
    """Backoff ends there, and so do confirmations of a 404."""
    for failures in (0, 3, 40, 254):
        handout = handed(failures=failures, failed=failures, min_interval=1.0, max_interval=50.0)
        row = judged(handout, error, context(RULES=[{"host": "h", "max_interval": 50.0}])).row
        if row.state == ACTIVE:
            assert row.l <= 50.0 * ROUNDED
            assert row.l == pytest.approx(50.0) or failures < 6
    for seen in (OLD, NEW):
        row = judged(handed(min_interval=1.0, max_interval=50.0), seen, context(RULES=[{"host": "h", "max_interval": 50.0}])).row
        assert row.l <= 50.0 * ROUNDED
