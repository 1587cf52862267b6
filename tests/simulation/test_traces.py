"""Traces as CSV: what exists when, round trips, and bad lines named."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import Event, events_of, read_trace, simulate, write_trace


def lives(trace):
    """Name, arrival, changes and end of each page."""
    rows = [trace.changes.times[a:b].tolist() for a, b in zip(trace.changes.starts, trace.changes.starts[1:], strict=False)]
    return list(zip(trace.names, trace.arrival.tolist(), rows, trace.gone.tolist(), strict=True))


def test_round_trip():
    """Odd names, any order, fractions of seconds."""
    events = [
        Event("a,b", 5.0, "changed"),
        Event('say "c"', 7.25, "created"),
        Event("line\nfeed", 1e9 + 0.125, "created"),
        Event("a,b", 1.0, "created"),
        Event("ü", 3.0, "created"),
        Event("ü", 4.0, "gone"),
    ]
    file = io.StringIO(newline="")
    assert write_trace(events, file) == 6
    file.seek(0)
    trace = read_trace(file)
    assert sorted((page, time + 1.0, event) for page, time, event in events_of(trace)) == sorted(events)
    assert trace.names == ("a,b", 'say "c"', "line\nfeed", "ü")
    assert trace.length == 1e9 + 0.125 - 1.0


def test_a_page_exists_from_creation_until_it_is_gone():
    """And is another one when it is created again. Late words of other branches change nothing; two at one time are one change."""
    trace = read_trace(
        [
            "page,time,event",
            "old,50,changed",
            "dead,30,gone",
            "a,10,created",
            "a,20,created",
            "a,40,changed",
            "a,40,changed",
            "a,60,gone",
            "a,65,changed",
            "a,66,gone",
            "a,70,created",
            "a,90,changed",
            "b,0,created",
            "flash,80,created",
            "flash,80,gone",
        ]
    )
    assert lives(trace) == [
        ("old", 0.0, [50.0], math.inf),
        ("dead", 0.0, [30.0], 30.0),
        ("a", 10.0, [20.0, 40.0, 60.0], 60.0),
        ("a", 70.0, [90.0], math.inf),
        ("b", 0.0, [], math.inf),
    ]


def test_without_events_the_first_change_of_a_page_creates_it():
    """By time, not by place in the file."""
    assert lives(read_trace(["a,300", "a,100", "b,150", "a,200"])) == [("a", 0.0, [100.0, 200.0], math.inf), ("b", 50.0, [], math.inf)]


def test_columns_may_stand_in_any_order_under_a_header_which_is_not_needed():
    assert read_trace(["a,1", "", "b,2"]).names == ("a", "b")
    assert read_trace(["Page, Time", "a,1", "b,2"]).names == ("a", "b")
    with_all = read_trace(["importance,event,time,page", "2,created,1,a", ",created,2,b", "3,changed,5,a"])
    assert lives(with_all) == [("a", 0.0, [4.0], math.inf), ("b", 1.0, [], math.inf)]
    assert with_all.importance.tolist() == [3.0, 1.0]
    without = read_trace(["a,1,created,2", "b,2,created,", "a,5,changed,3"])
    assert (lives(without), without.importance.tolist()) == (lives(with_all), [3.0, 1.0])
    assert with_all.world("t", 1.0).importance.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "f: expected events at two different times at least, got 0 events"),
        (["page,time"], "got 0 events"),
        (["a,1", "b,1"], "got 2 events"),
        (["a,1", "b"], "f, line 2: expected page,time, got 1 columns"),
        (["a,1", "b,2,changed"], "f, line 2: expected page,time, got 3 columns"),
        (["a"], "f, line 1: expected page,time,event,importance (event and importance are optional), got 1 columns"),
        (["page,time,kind", "a,1,created"], "f, line 1: expected some of page,time,event,importance as the header, each once, got"),
        (["page,time,time", "a,1,1"], "each once, got 'page,time,time'"),
        (["a,yesterday"], "f, line 1: expected a number of seconds as the time, got 'yesterday'"),
        (["a,nan"], "got 'nan'"),
        (["a,1,created", "a,2,moved"], "f, line 2: expected created, changed, gone as the event, got 'moved'"),
        (["a,1,created,x"], "f, line 1: expected a number above 0 as the importance, or nothing, got 'x'"),
        (["a,1,created,0"], "expected a number above 0 as the importance"),
        (["a,1,gone", "b,2,created", "b,2,gone"], "f: expected a page that exists for a while, got 3 events"),
        (["a,1", 'b,"2'], "f, line 2: expected page,time,event as CSV"),
    ],
)
def test_bad_lines_are_named(lines, message):
    with pytest.raises(ConfigurationError) as caught:
        read_trace(lines, "f")
    assert message in str(caught.value)


def test_first_pages_keep_the_time():
    trace = read_trace(["a,0", "b,5", "a,2", "c,9"])
    few = trace.first(2)
    assert lives(few) == [("a", 0.0, [2.0], math.inf), ("b", 5.0, [], math.inf)]
    assert few.length == 9.0
    assert trace.first(10).names == trace.names


WINDOW = [
    "before,0,created",
    "before,3,gone",
    "there,0,created",
    "there,2,changed",
    "there,7,changed",
    "dying,0,created",
    "dying,8,gone",
    "coming,6,created",
    "coming,9,changed",
    "end,9,created",
]


def test_the_last_part_has_the_pages_that_exist_in_it():
    part = read_trace(WINDOW).last(4.0)
    assert lives(part) == [
        ("there", 0.0, [2.0], math.inf),
        ("dying", 0.0, [3.0], 3.0),
        ("coming", 1.0, [4.0], math.inf),
        ("end", 4.0, [], math.inf),
    ]
    assert part.length == 4.0
    assert read_trace(WINDOW).last(4.0, newcomers=False).names == ("there", "dying")
    assert lives(part.last(100.0)) == lives(part)
    with pytest.raises(ConfigurationError, match="there is no page in the last"):
        read_trace(["a,0,created", "a,5,gone", "b,9,created"]).last(4.0, newcomers=False)


def test_staleness_on_a_trace_is_what_happened():
    """Two pages, a visit to each every 20 s, in turn; one changes at 45 s, the other never."""
    trace = read_trace(["page,time,event", "a,0,created", "b,0,created", "a,45,changed", "b,200,changed"])
    for seed in range(4):
        world = trace.world("t", 0.1)
        realised = world.realise(100.0, seed)
        report = simulate(world, "uniform", 100.0, seed, burn_in=20.0)
        assert report.visits == 10
        # a is visited every 20 s, from the first or the second slot on; stale from 45 until then.
        first = 10.0 * (realised.phase + (0 if realised.drawn.changes.times[0] == 45.0 else 1))
        found = first + 20.0 * math.ceil((45.0 - first) / 20.0)
        assert report.freshness == pytest.approx(1 - (found - 45.0) / (2 * 80))
        assert np.isnan(report.optimum)
