"""Links are counted by what the store says of them, and the visit waits for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, open_namespace, page_of, settings_of

from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease
from optimal_frontier.frontier.dispatching.found_links import with_links
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import HUB, ONCE, TRANSIENT

PATIENCE_S = 10.0


def published(_: int) -> Published:
    return Published()


def link(name: str, handout=None, **values):
    return replace(page_of(name, **values), found_on=handout)


@pytest.fixture
def store(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    opened = open_namespace(redis_socket, namespace)
    yield opened
    opened.connection.close()


@pytest.fixture
def revisited(store: ClockedNamespace):
    """A page that was seen 1,000 seconds ago, handed out again."""
    store.visit("a/list", wait=1000.0)
    store.advance(1000.0)
    (handout,) = store.dispatch()
    return handout


def test_only_new_pages_count(store, revisited):
    """Neither known ones nor requests that are forgotten; each with its importance, fetched once or not."""
    store.visit("a/old")
    dispatcher = Dispatcher(store, settings_of())
    pages = [
        link("a/old", revisited),
        link("a/1", revisited, importance=2.5),
        link("a/2", revisited, kind=ONCE),
        link("a/3", revisited, kind=TRANSIENT),
        link("a/1", revisited),
        link("a/4"),
    ]
    dispatcher.exchange(Exchange(pages=pages))
    assert (revisited.new_links, revisited.new_importance) == (2, 3.5)


def test_an_observation_waits_for_its_links_and_no_other_does(store, revisited):
    other = replace(revisited, page=b"another page")
    ended = [(store.seen(one, wait=50.0), Lease.of(one)) for one in (revisited, other)]
    settings = settings_of()
    known, held = with_links(ended, [link("a/1", revisited)], published, settings)
    assert [observation.handout.page for observation, _ in known] == [b"another page"]
    assert held == ended[:1]
    revisited.new_links, revisited.new_importance = 3, 6.0
    (counted, _), *rest = with_links(held, [], published, settings)[0]
    assert rest == []
    assert counted.row.flags & HUB
    assert counted.memory.yielded[:3] == pytest.approx((3.0, 6.0, 1000.0))
    # What has no links is passed on as it is.
    assert known[0][0] is ended[1][0]


def test_the_courier_stores_the_count_with_the_visit(store, revisited):
    """Links go first; the observation follows, whatever comes between."""
    courier = Courier(Dispatcher(store, settings_of()), lambda: None)
    courier._leases.take([revisited])
    courier.start()
    try:
        courier.add([link("a/1", revisited), link("a/2", revisited)])
        courier.observe(store.seen(revisited, wait=50.0))
        assert courier.flush(PATIENCE_S)
        assert store.row("a/list").flags & HUB
        assert store.remembered("a/list").yielded.pages == 2.0
        assert store.row("a/list").visits == 2
        assert store.score("a/list") % 2 == 0
        assert store.counts(0)["discovered"] == 2
    finally:
        assert courier.stop(PATIENCE_S)


def test_a_crawler_that_stops_sends_what_waited(store, revisited):
    courier = Courier(Dispatcher(store, settings_of()), lambda: None)
    courier._leases.take([revisited])
    courier.add([link("a/1", revisited)])
    courier.observe(store.seen(revisited, wait=50.0))
    courier.start()
    assert courier.stop(PATIENCE_S)
    assert store.remembered("a/list").yielded.pages == 1.0


def test_one_that_dies_in_between_has_stored_the_links(store, revisited):
    """The page is visited again; the links are there, so that visit counts none of them."""
    Dispatcher(store, settings_of()).exchange(Exchange(pages=[link("a/1", revisited)]))
    store.advance(2e6)
    handouts = {handout.page: handout for handout in store.dispatch(5)}
    assert set(handouts) == {revisited.page, fingerprint("a/1")[:12]}
    again = handouts[revisited.page]
    assert (again.new_links, again.memory) == (0, Memory())
