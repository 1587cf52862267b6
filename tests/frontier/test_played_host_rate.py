"""HOST_MAX_RATE and HOST_DELAY, played through dispatch, judge and planner: kept whatever is due, and used."""

from __future__ import annotations

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START

RATE = 4.0


def most_in_a_window(times: list[float], seconds: float) -> int:
    at = np.array(times)
    return int((np.searchsorted(at, at + seconds * (1 - 1e-9)) - np.arange(len(at))).max())


def by_host(play: Play) -> list[list[float]]:
    times: dict[str, list[float]] = {}
    for number, visits in play.visits.items():
        times.setdefault(play.names[number].partition("/")[0], []).extend(visits)
    return [sorted(row) for row in times.values()]


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_no_host_gets_more_whatever_is_due(space, policy):
    """First visits, revisits, and after an outage a queue of overdue pages: 1/HOST_MAX_RATE apart, but for a round trip now and then."""
    play = Play(space, parse(CRAWL_RATE=100, HOST_MAX_RATE=RATE, POLICY=policy, RESOLVE_INTERVAL=10))
    play.add(60)
    play.until(30.0)
    assert space.counts()["pending"] == 0
    play.set_time(START + 3600.0)
    play.until(3630.0)
    for times in by_host(play):
        assert len(times) > 200
        assert np.diff(times).min() >= 1 / RATE - 0.02 - 1e-5  # times are stored with microseconds
        for window in (1.0, 10.0):
            assert most_in_a_window(times, window) <= RATE * window + 1
    # The hour without a fetch was used by none of them; the rest was used up.
    assert len(play.handouts) / (3 * 60.0) > 0.95 * RATE


def test_the_smaller_of_delay_and_rate_holds(space):
    """HOST_DELAY of half a second goes before four fetches a second."""
    play = Play(space, parse(CRAWL_RATE=100, HOST_MAX_RATE=RATE, HOST_DELAY=0.5))
    play.add(9)
    play.until(20.0)
    for times in by_host(play):
        assert np.diff(times).min() >= 0.5 - 1e-5
        assert len(times) >= 35


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_what_a_full_host_cannot_use_goes_to_the_others(space, policy):
    """Nine tenths of the importance lie on one host: it gets its limit, the rest of the budget is spent elsewhere."""
    play = Play(space, parse(CRAWL_RATE=20, POLICY=policy, HOST_MAX_RATE=RATE, RESOLVE_INTERVAL=5))
    play.add(40, hosts=1, name="big/{page}", importance=9.0)
    play.add(40, hosts=20, name="small{host}/{page}", importance=1.0)
    play.until(80.0)
    big = sum(at > START + 40 for number in range(40) for at in play.visits[number]) / 40
    small = sum(at > START + 40 for number in range(40, 80) for at in play.visits[number]) / 40
    # A page that falls due a moment after its host opened leaves the turn unused for that moment.
    assert (0.92 if policy == "periodic" else 0.8) * RATE < big < 1.01 * RATE
    assert big + small == pytest.approx(20.0, rel=0.01)


def test_round_trips_do_not_add_up(space):
    """Looking 8 ms after the host opened each time, it still gets its 20 a second, and not one more."""
    play = Play(space, parse(CRAWL_RATE=1000, HOST_MAX_RATE=20))
    play.add(300, hosts=1)
    play.delay = 0.008
    play.until(10.0)
    times = play.handouts
    assert (len(times) - 1) / (times[-1] - times[0]) == pytest.approx(20, rel=0.005)
    assert most_in_a_window(times, 1.0) <= 21
    assert most_in_a_window(times, 5.0) <= 101
