"""On what terms partitions are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace, page_of, settings_of

from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease

RATE = 50.0


@pytest.mark.parametrize(
    ("trip_s", "more_s", "depth_s"), [(0.0, 0.0, 0.1), (0.03, 0.0, 0.1), (0.2, 0.0, 0.6), (0.05, 0.2, 0.75), (60.0, 0.0, 1.0)]
)
def test_what_comes_in_on_the_way_to_the_server_is_saved_up(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, trip_s: float, more_s: float, depth_s: float
) -> None:
    """During three exchanges, with the round trips that follow them; of what came in during an outage no more than a second's."""
    dispatcher, now = Dispatcher(store, settings_of(CRAWL_RATE=RATE)), [0.0]
    monkeypatch.setattr(module, "local_clock", lambda: now[0])

    def takes(seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            now[0] += seconds
            return function(*arguments)

        return run

    monkeypatch.setattr(store, "run", takes(trip_s, store.run))
    monkeypatch.setattr(dispatcher._follow_up, "run", takes(more_s, dispatcher._follow_up.run))
    for _ in range(30):
        dispatcher.exchange(Exchange(want=1, looks_again=True))
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
