from __future__ import annotations

import threading
import time

import pytest

from optimal_frontier.frontier.dispatching import round_trips
from optimal_frontier.frontier.dispatching.round_trips import RoundTrips
from optimal_frontier.frontier.dispatching.work import Outcome
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import Row

PATIENCE_S = 10.0


def after_a_second(requests: int, want: int = 50, *, is_full: bool = False) -> RoundTrips:
    """So many requests were handed out in it, of those that were wanted."""
    trips = RoundTrips()
    some = [Handout(0, b"x" * 12, 1.0, 1.0, 0.0, 0.0, 0.0, Row(), 0.0, {}, "h")] * requests
    trips.note_given(1000.0, want, Outcome(some, 0.0, waits_for_room=True, is_full=is_full))
    return trips


def test_a_crawl_that_is_behind_asks_for_more_in_advance() -> None:
    # Two round trips of a fiftieth and of a seventh of a second, at a hundred requests a second.
    in_time, late, as_many_as_one_call_gives = after_a_second(50, 60), after_a_second(50), after_a_second(50, 60, is_full=True)
    assert [trips.ahead for trips in (in_time, late, as_many_as_one_call_gives)] == [4, 30, 30]


def test_nothing_is_asked_for_in_advance_where_room_is_left() -> None:
    trips = after_a_second(50)
    trips.note_given(1000.5, 50, Outcome([], 60.0, waits_for_room=False))
    assert trips.ahead == 0


@pytest.mark.parametrize(("want", "ready", "ends"), [(31, 0, True), (31, 1, False), (30, 0, False)])
def test_a_downloader_that_runs_out_ends_the_rest(monkeypatch: pytest.MonkeyPatch, want: int, ready: int, ends: bool) -> None:
    """Not one that is full, nor one for which something is ready."""
    monkeypatch.setattr(round_trips, "_LONGEST_SPACING_S", 10 * PATIENCE_S)
    monkeypatch.setattr(round_trips, "_REQUESTS_A_TRIP", 10**9)
    trips = after_a_second(50)
    trips.note_asked(30, 30, 0)
    thread = threading.Thread(target=trips.rest, daemon=True)
    thread.start()

    def rests_on(seconds: float, *asked: int) -> bool:
        """The downloader asks again and again, as it does after each response."""
        end = time.monotonic() + seconds
        while thread.is_alive() and time.monotonic() < end:
            trips.note_asked(*asked)
            thread.join(0.005)
        return thread.is_alive()

    assert rests_on(PATIENCE_S if ends else 0.2, want, 30, ready) != ends
    assert not rests_on(PATIENCE_S, 31, 30, 0)
