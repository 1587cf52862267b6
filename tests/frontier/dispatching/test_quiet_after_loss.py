"""A server that was put back to an earlier state knows nothing of its hosts' last fetches, so crawlers leave it in peace for a moment."""

from __future__ import annotations

import pytest
from clocked_namespace import ClockedNamespace, open_namespace, page_of, settings_of

from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import LOOK_S, Dispatcher, Exchange, Turn
from optimal_frontier.frontier.dispatching.held_leases import HeldLeases
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.state.partition import Ask, Belief, dispatch_call

DELAY_S = 2.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The local monotonic time of dispatchers, to be set."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def contents(store: ClockedNamespace) -> dict[bytes, bytes]:
    """All keys of a namespace, and what they hold."""
    return {key: store.command("DUMP", key) for key in store.command("KEYS", everything_of(store))}


def everything_of(store: ClockedNamespace) -> str:
    return store.key("*").replace("{", r"\{")


def put_back(store: ClockedNamespace, earlier: dict[bytes, bytes]) -> None:
    store.command("DEL", *store.command("KEYS", everything_of(store)))
    for key, value in earlier.items():
        store.command("RESTORE", key, 0, value, "REPLACE")


def test_hosts_keep_their_delay_when_the_server_is_put_back(store: ClockedNamespace, clock: list[float]) -> None:
    dispatcher = Dispatcher(store, settings_of(HOST_DELAY=DELAY_S), ServerWatch(store))
    dispatcher.exchange(Exchange(pages=[page_of("a/1"), page_of("a/2")]))
    earlier = contents(store)
    assert len(dispatcher.exchange(Exchange(want=1)).handouts) == 1
    put_back(store, earlier)

    clock[0] += LOOK_S
    # What this reply hands out may be of a host that was fetched a moment ago.
    found = dispatcher.exchange(Exchange(want=1))
    assert found.is_other_server
    assert not found.handouts
    never = HeldLeases(dispatcher.lease_s, has_turns=True).give_turns_back(found.unfetched)
    assert len(never) == 1
    # Nor does a redirect or a retry get a turn that others may have had.
    turn = Turn("a")
    dispatcher.exchange(Exchange(starts=never))
    revealing = dispatcher.exchange(Exchange(want=1, turns=[turn]))
    assert revealing.is_other_server
    assert (revealing.turns, turn.at) == ([turn], 0.0)
    never = [*revealing.never, *HeldLeases(dispatcher.lease_s, has_turns=True).give_turns_back(revealing.unfetched)]
    assert dispatcher.reopen() is False
    for _ in range(2):
        found = dispatcher.exchange(Exchange(want=1, turns=[turn]))
        assert not found.handouts
        assert (found.turns, turn.at) == ([turn], 0.0)
        assert not found.is_other_server
        assert found.wait == pytest.approx(LOOK_S + DELAY_S)
    clock[0] += LOOK_S + DELAY_S
    store.advance(2 * DELAY_S)
    assert len(dispatcher.exchange(Exchange(want=1, starts=never)).handouts) == 1


def test_every_crawler_notices_that_two_servers_have_changed_places(redis_socket: str, namespace: str, clock: list[float]) -> None:
    """Also those that call after another one has told the server which namespace it took it for."""
    stores = [open_namespace(redis_socket, namespace) for _ in range(2)]
    first, run = contents(stores[0]), stores[0].run_id
    stores[0].command("DEL", *first)
    crawlers = []
    for store in stores:
        store.open(spider="test")
        crawlers.append(Dispatcher(store, settings_of(), ServerWatch(store)))
        assert not crawlers[-1].exchange(Exchange(want=1)).is_other_server
    put_back(stores[0], first)
    for _ in range(20):  # more calls than they have made
        stores[0].run([dispatch_call(0, Ask(1, belief=Belief(0.0, 0.0, -run)))])

    clock[0] += LOOK_S
    for crawler in crawlers:
        assert crawler.exchange(Exchange(want=1)).is_other_server
    for crawler, store in zip(crawlers, stores, strict=True):
        crawler.reopen()
        assert store.run_id == run
        clock[0] += LOOK_S
        assert not crawler.exchange(Exchange(want=1)).is_other_server
        store.connection.close()
