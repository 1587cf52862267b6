"""Leases that end before their fetch began give the turn of their host back, whichever way they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from clocked_namespace import ClockedNamespace, page_of, settings_of

from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.exchange import Dispatcher
from optimal_frontier.frontier.dispatching.held_leases import HeldLeases
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.dispatching.work import Exchange, Start, Turn
from optimal_frontier.frontier.judging.safely import aside
from optimal_frontier.state.layouts import HostTurns
from optimal_frontier.state.messages import DROP, RELEASE, Handout, Observation
from optimal_frontier.state.rows import Row

PATIENCE_S = 10.0


def handout(page: int, token: float = 1.0, host: str = "a") -> Handout:
    record = {"url": f"http://{host}/{page}"}
    return Handout(0, bytes(11) + bytes((page,)), token, 0.0, time.monotonic(), None, 0.0, Row(), 0.0, record, host)


def awaited(store: ClockedNamespace) -> list[bool]:
    """Of each host whether it waits to be told of a start."""
    kept = store.command("HVALS", store.key("opens"))
    return [turns.awaited > 0 for turns in map(HostTurns.stored, kept) if turns is not None]


def eventually(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.002)


@pytest.fixture
def courier(store: ClockedNamespace) -> Iterator[Courier]:
    """Of a crawl that paces its hosts."""
    made = Courier(Dispatcher(store, settings_of(HOST_DELAY=0.5), ServerWatch(store)), lambda: None)
    made.start()
    yield made
    assert made.stop(PATIENCE_S)


def handed(courier: Courier) -> Handout:
    """The handout of a page of a host that waits for its start since."""
    courier.add([page_of("a.example/1")])
    assert courier.flush(PATIENCE_S)
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.ask(0, {}, 0)
    return courier.ready.popleft()


ENDS: dict[str, Callable[[Handout], Observation]] = {
    "given back": lambda one: Observation(one, RELEASE, one.row),
    "dropped": lambda one: Observation(one, DROP, one.row),
    "put aside": lambda one: aside(one, "no request can be made of it"),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_lease_that_ends_without_a_fetch_opens_its_host(way: str, courier: Courier, store: ClockedNamespace) -> None:
    one = handed(courier)
    assert awaited(store) == [True]
    courier.observe(ENDS[way](one))
    assert courier.flush(PATIENCE_S)
    eventually(lambda: awaited(store) == [False])


def test_a_crawler_that_stops_opens_the_hosts_of_its_leases(courier: Courier, store: ClockedNamespace) -> None:
    handed(courier)
    assert awaited(store) == [True]
    assert courier.stop(PATIENCE_S)
    assert awaited(store) == [False]


def test_a_handout_that_may_not_be_fetched_opens_its_host(store: ClockedNamespace) -> None:
    """It is put aside, and nobody gets to see it."""
    store.add(page_of("a.example/1"))
    watch, settings = ServerWatch(store), settings_of(HOST_DELAY=0.5, SCHEMES=["https"])
    courier = Courier(Dispatcher(store, settings, watch), lambda: None)
    courier.start()
    courier.ask(1, {}, 0)
    eventually(lambda: awaited(store) == [False])
    assert courier.stop(PATIENCE_S)
    assert not courier.ready
    assert store.command("HLEN", store.key("damaged")) == 1


def test_a_turn_that_was_used_is_not_given_back(courier: Courier, store: ClockedNamespace) -> None:
    """The start of that fetch is told when it begins, also where its lease ends before."""
    one = handed(courier)
    turn = courier.use_turn(one.host)
    assert turn is not None
    assert courier.use_turn(one.host) is None
    courier.observe(ENDS["given back"](one))
    assert courier.flush(PATIENCE_S)
    assert awaited(store) == [True]
    courier.note_start(one.host, turn)
    assert courier.flush(PATIENCE_S)
    assert awaited(store) == [False]


def test_a_turn_belongs_to_the_last_handout_of_its_host() -> None:
    """An older one's end gives back nothing, nor does the end of an older lease of the same page."""
    held = HeldLeases(15.0, has_turns=True)
    held.take([handout(1), handout(2), handout(1, 3.0, "b")])
    assert held.end(handout(1))[1] == []
    assert held.end(handout(1, 1.0, "b"))[1] == []
    assert held.unused() == [Start("a", 0.0, 15e6), Start("b", 0.0, 15e6)]
    assert held.end(handout(2))[1] == [Start("a", 0.0, 15e6)]
    assert held.end(handout(2))[1] == []
    assert (len(held), held.unused()) == (1, [Start("b", 0.0, 15e6)])


def test_without_pauses_there_are_no_turns() -> None:
    held = HeldLeases(15.0, has_turns=False)
    held.take([handout(1)])
    assert held.use_turn("a") is None
    assert (held.unused(), held.end(handout(1))[1]) == ([], [])


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_turn_that_comes_when_nobody_waits_for_it_any_more_is_given_back(store: ClockedNamespace, is_wanted: bool) -> None:
    """Its host would stay shut until it waits no more for that fetch."""
    dispatcher = Dispatcher(store, settings_of(HOST_DELAY=2.0), ServerWatch(store))
    turn = Turn("a")
    turn.is_wanted = is_wanted
    outcome = dispatcher.exchange(Exchange(turns=[turn]))
    assert turn.at > 0
    assert outcome.never == ([] if is_wanted else [Start("a", 0.0, turn.awaited)])
