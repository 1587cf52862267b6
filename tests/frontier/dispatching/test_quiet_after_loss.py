"""A server that was put back to an earlier state knows nothing of its hosts' last fetches, so crawlers leave it in peace for a moment."""

from __future__ import annotations

import pytest
from clocked_namespace import ClockedNamespace, page_of, settings_of

from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import LOOK_S, Dispatcher, Exchange
from optimal_frontier.frontier.dispatching.held_leases import HeldLeases
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch

DELAY_S = 2.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The local monotonic time of dispatchers, to be set."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_hosts_keep_their_delay_when_the_server_is_put_back(store: ClockedNamespace, clock: list[float]) -> None:
    dispatcher = Dispatcher(store, settings_of(HOST_DELAY=DELAY_S), ServerWatch(store))
    dispatcher.exchange(Exchange(pages=[page_of("a/1"), page_of("a/2")]))
    everything = store.key("*").replace("{", r"\{")
    earlier = {key: store.command("DUMP", key) for key in store.command("KEYS", everything)}
    assert len(dispatcher.exchange(Exchange(want=1)).handouts) == 1
    store.command("DEL", *store.command("KEYS", everything))
    for key, value in earlier.items():
        store.command("RESTORE", key, 0, value, "REPLACE")

    clock[0] += LOOK_S
    # What this reply hands out may be of a host that was fetched a moment ago.
    found = dispatcher.exchange(Exchange(want=1))
    assert found.is_other_server
    assert not found.handouts
    never = HeldLeases(dispatcher.lease_s, has_turns=True).give_turns_back(found.unfetched)
    assert len(never) == 1
    assert dispatcher.reopen() is False
    for _ in range(2):
        found = dispatcher.exchange(Exchange(want=1))
        assert not found.handouts
        assert not found.is_other_server
        assert found.wait == pytest.approx(LOOK_S + DELAY_S)
    clock[0] += LOOK_S + DELAY_S
    store.advance(DELAY_S)
    assert len(dispatcher.exchange(Exchange(want=1, starts=never)).handouts) == 1
