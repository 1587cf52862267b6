"""Change events as CSV: a round trip, and bad lines named."""

from __future__ import annotations

import io

import numpy as np
import pytest

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import events_of, read_trace, simulate, write_trace


def test_round_trip():
    """Odd names, any order, fractions of seconds."""
    events = [("a,b", 5.0), ('say "c"', 7.25), ("line\nfeed", 1e9 + 0.125), ("a,b", 1.0), ("ü", 3.0)]
    file = io.StringIO(newline="")
    assert write_trace(events, file) == 5
    file.seek(0)
    trace = read_trace(file)
    assert sorted((name, time + 1.0) for name, time in events_of(trace)) == sorted(events)
    assert trace.names == ("a,b", 'say "c"', "line\nfeed", "ü")
    assert trace.length == 1e9 + 0.125 - 1.0


def test_a_header_is_not_needed_and_empty_lines_do_not_matter():
    assert read_trace(["a,1", "", "b,2"]).names == ("a", "b")
    assert read_trace(["Page, Time", "a,1", "b,2"]).names == ("a", "b")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "f: expected change events at two different times at least, got 0 events"),
        (["page,time"], "got 0 events"),
        (["a,1", "b,1"], "got 2 events"),
        (["a,1", "b"], "f, line 2: expected page,time (seconds), got 1 columns"),
        (["a,1", "b,2,3"], "f, line 2: expected page,time (seconds), got 3 columns"),
        (["a,yesterday"], "f, line 1: expected page,time (seconds), got 'yesterday' as the time"),
        (["a,nan"], "got 'nan' as the time"),
        (["a,1", 'b,"2'], "f, line 2: expected page,time as CSV"),
    ],
)
def test_bad_lines_are_named(lines, message):
    with pytest.raises(ConfigurationError) as caught:
        read_trace(lines, "f")
    assert message in str(caught.value)


def test_first_pages_keep_the_time():
    trace = read_trace(["a,0", "b,5", "a,2", "c,9"])
    few = trace.first(2)
    assert few.names == ("a", "b")
    assert few.changes.times.tolist() == [0.0, 2.0, 5.0]
    assert few.length == 9.0
    assert trace.first(10).names == trace.names


def test_last_part_keeps_all_pages():
    part = read_trace(["a,0", "b,5", "a,7", "c,9"]).last(4.0)
    assert part.names == ("a", "b", "c")
    assert part.changes.times.tolist() == [2.0, 0.0, 4.0]
    assert part.changes.counts.tolist() == [1, 1, 1]
    assert part.length == 4.0
    assert part.last(100.0) is part


def test_staleness_on_a_trace_is_what_happened():
    """Two pages, a visit to each every 20 s, in turn; one changes at 45 s, the other never after its beginning."""
    trace = read_trace(["a,0", "b,0", "a,45", "b,200"])
    report = simulate(trace.world("t", 0.1), "uniform", 100.0, 0, burn_in=20.0)
    assert report.visits == 10
    # Page a (the first of equals) is visited at 0, 20, 40, 60: stale from 45 to 60.
    assert report.freshness == pytest.approx(1 - 15 / (2 * 80))
    assert np.isnan(report.optimum)
