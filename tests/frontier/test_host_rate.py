"""HOST_MAX_RATE: kept by the dispatcher whatever is due, and by the solver, which gives what a host cannot use to the others."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START, ClockedStore, new_page
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.solving import default_prior_time
from played_crawl import Play, parse

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.scheduling import LOAD
from optimal_frontier.state.records import Observation

RATE = 4.0


def most_in_a_window(times: list[float], seconds: float) -> int:
    at = np.array(times)
    return int((np.searchsorted(at, at + seconds * (1 - 1e-9)) - np.arange(len(at))).max())


def by_host(play: Play, hosts: int) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in range(hosts)]
    for slot, visits in play.visits.items():
        times[slot % hosts] += visits
    return [sorted(row) for row in times]


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_no_host_gets_more_whatever_is_due(store: ClockedStore, policy):
    """First visits, revisits, and after an outage a queue of overdue pages: 1/HOST_MAX_RATE apart, but for a round trip now and then."""
    play = Play(store, parse(CRAWL_RATE=100, HOST_MAX_RATE=RATE, POLICY=policy, RESOLVE_INTERVAL=10))
    store.add(*(new_page(f"h{i % 3}/new{i}", max_rate=1e3) for i in range(60)))
    play.posteriors = dict.fromkeys(range(60), (3.0, 20.0))
    play.until(30.0)
    assert store.counts()["pending"] == 0
    store.set_time(START + 3600)
    play.dispatcher = Dispatcher(store, play.settings)
    play.until(3630.0)
    for times in by_host(play, 3):
        assert len(times) > 200
        assert np.diff(times).min() >= 1 / RATE - 0.02 - 1e-5  # times are stored with microseconds
        for window in (1.0, 10.0):
            assert most_in_a_window(times, window) <= RATE * window + 1
    # The hour without a fetch was used by none of them; the rest was used up to what was planned.
    assert len(play.handouts) / (3 * 60.0) > 0.8 * RATE


def test_the_smaller_of_delay_and_rate_holds(store: ClockedStore):
    """HOST_DELAY of half a second goes before four fetches a second."""
    play = Play(store, parse(CRAWL_RATE=100, HOST_MAX_RATE=RATE, HOST_DELAY=0.5))
    play.add(9)
    play.until(20.0)
    assert all(np.diff(times).min() >= 0.5 - 1e-5 for times in by_host(play, 3))


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_what_a_full_host_cannot_use_goes_to_the_others(store: ClockedStore, policy):
    """Nine tenths of the importance lie on one host: it gets its limit, the rest of the budget is spent elsewhere."""
    pages = [new_page(f"big/{i}", importance=9.0, max_rate=1e3) for i in range(40)]
    pages += [new_page(f"small{i % 20}/{i}", importance=1.0, max_rate=1e3) for i in range(40)]
    store.add(*pages)
    ended = [Observation(h.slot, h.token, "ok", float("inf"), -1, 3.0, 30.0) for h in store.dispatch(100)[0]]
    store.run(store.observe_calls(ended, 1e15))
    store.advance(0.001)
    free = Play(store, parse(CRAWL_RATE=20, POLICY=policy))
    free.planner.plan()
    rates = free.rates()
    assert rates[:40].sum() > 2 * RATE
    limited = Play(store, parse(CRAWL_RATE=20, POLICY=policy, HOST_MAX_RATE=RATE))
    report = limited.planner.plan()
    rates, before = limited.rates(), rates
    assert rates[:40].sum() == pytest.approx(LOAD * RATE, rel=1e-9)
    assert rates.sum() == pytest.approx(LOAD * 20, rel=1e-9)
    assert (rates[40:] > 1.5 * before[40:]).all()
    assert report is not None
    assert report.feasible
    assert float(store.hash("published")["unused"]) == pytest.approx(0.0, abs=1e-9)
    if policy == "periodic":
        change_rate = np.full(80, limited.planner.plan() and float(store.hash("published")["change_rate_p50"]))
        importance = np.repeat([9.0, 1.0], 40)
        host = np.r_[np.zeros(40, np.int64), 1 + np.arange(40) % 20]
        alone = solve_periodic(importance, change_rate, LOAD * 20, host=host, host_max_rate=LOAD * RATE)
        np.testing.assert_allclose(rates, alone.rates, rtol=1e-6)


def test_what_no_host_can_use_is_reported(store: ClockedStore):
    """Two hosts at four fetches a second use eight of a budget of twenty; of the rest the plan says that it is unused."""
    play = Play(store, parse(CRAWL_RATE=20, HOST_MAX_RATE=RATE))
    play.add(20, hosts=2)
    report = play.planner.plan()
    assert report is not None
    assert report.planned_rate == pytest.approx(LOAD * 2 * RATE)
    assert float(store.hash("published")["unused"]) == pytest.approx(LOAD * (20 - 2 * RATE))


def test_round_trips_do_not_add_up(store: ClockedStore):
    """Looking 8 ms after the host opened each time, it still gets its 20 a second, and not one more."""
    settings = parse(CRAWL_RATE=1000, HOST_MAX_RATE=20)
    store.add(*(new_page(f"h/{i}") for i in range(300)))
    dispatcher, times = Dispatcher(store, settings), []
    while len(times) < 201:
        outcome = dispatcher.exchange(Exchange(want=5))
        times += [store.time()] * len(outcome.handouts)
        assert outcome.wait is not None
        store.advance(0.001 if outcome.handouts else outcome.wait + 0.008)
    assert 200 / (times[-1] - times[0]) == pytest.approx(20, rel=0.002)
    assert most_in_a_window(times, 1.0) <= 21
    assert most_in_a_window(times, 5.0) <= 101


def test_the_dispatcher_waits_until_the_host_opens(store: ClockedStore):
    """And says for how long: not a busy loop."""
    store.add(*(new_page(f"h/{i}") for i in range(2)))
    dispatcher = Dispatcher(store, parse(CRAWL_RATE=100, HOST_MAX_RATE=0.5))
    assert len(dispatcher.exchange(Exchange(want=5)).handouts) == 1
    assert dispatcher.exchange(Exchange(want=5)).wait == pytest.approx(2.0, abs=1e-5)


def test_the_default_prior_goes_by_what_hosts_admit_and_by_pages_that_wait():
    """Else the first bit of a page, a second after its first visit, makes it look too fast to follow."""
    host = np.array([0, 0, 0, 3, 3, 3, 3, 3])
    settings = parse(CRAWL_RATE=100.0, HOST_DELAY=2.0, DISCOVERY_SHARE=0.2)
    assert default_prior_time(settings, host, np.zeros(0, int), 100.0) == pytest.approx(8 / (2 * 0.5))
    assert default_prior_time(settings, host, np.full(1000, 3), 100.0) == pytest.approx(8 / (0.5 + 0.4))
    assert default_prior_time(parse(CRAWL_RATE=100.0), host, np.zeros(0, int), 80.0) == pytest.approx(0.1)
    assert default_prior_time(settings, host, np.zeros(0, int), 0.25) == pytest.approx(32.0)
