"""On what terms partitions are asked."""

from __future__ import annotations

from itertools import count

import pytest
from clocked_namespace import ClockedNamespace, page_of, settings_of

from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease

RATE = 50.0


@pytest.mark.parametrize(("trip_s", "depth_s"), [(0.0, 0.1), (0.04, 0.1), (0.2, 0.4), (60.0, 1.0)])
def test_what_comes_in_on_the_way_to_the_server_is_saved_up(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, trip_s: float, depth_s: float
) -> None:
    """During two round trips; of what came in during an outage no more than a second's."""
    dispatcher, times = Dispatcher(store, settings_of(CRAWL_RATE=RATE)), count()
    monkeypatch.setattr(module, "local_clock", lambda: next(times) * trip_s)  # looked at before and after
    for _ in range(30):
        dispatcher.exchange(Exchange(want=1))
    asks = [dispatcher.terms.ask(Exchange(), 0), dispatcher.terms.look(0)]
    assert [ask.depth for ask in asks] == pytest.approx([depth_s] * 2, rel=0.01)
    assert dispatcher.terms.most_at_once(0) == pytest.approx(RATE * depth_s, abs=1.0)


@pytest.mark.parametrize("visits", [0, 1])
def test_a_silent_host_is_not_asked_for_while_it_has_a_request(store: ClockedNamespace, visits: int) -> None:
    """Its end says that there may be another one; until then nobody looks again, but once a second."""
    dispatcher = Dispatcher(store, settings_of())
    names = [f"a/{n}" for n in range(4)]
    if visits:
        store.visit(*names, wait=0.0)
    else:
        store.add(*(page_of(name) for name in names))
    for _ in range(3):
        dispatcher.recent.silent_hosts.after("a", "TimeoutError", 0.0, 0.0)
    (first,) = dispatcher.exchange(Exchange(want=8)).handouts
    outcome = dispatcher.exchange(Exchange(want=8, under_way={"a"}, looks_again=True))
    assert (outcome.handouts, outcome.wait) == ([], pytest.approx(1.0, abs=0.1))
    ended = [(store.seen(first), Lease.of(first))]
    assert [handout.host for handout in dispatcher.exchange(Exchange(want=8, ended=ended)).handouts] == ["a"]
