"""A page that moves: record, history and place in the queues go with it, its old name leads to it."""

from __future__ import annotations

from typing import Any

import pytest
from clocked_store import ClockedStore, fingerprint, new_page

from optimal_frontier.frontier.deadlines import deadlines_at_most
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.consistency import check_state
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.records import Move, decode_record


def move(store: ClockedStore, name: str, target: str, **values: Any) -> int:
    given = {"is_stated": False, **values}
    (result,) = store.run(store.move_calls([Move(fingerprint(name), f"http://{name}", new_page(target, **given))]))
    return int(result)


def seen_page(store: ClockedStore, name: str, **values: Any) -> int:
    """A page with a bit and something remembered."""
    store.add(new_page(name, **values))
    for bit in (-1, 1):
        for handout in store.dispatch(10)[0]:
            if handout.slot == store.slot(name):
                store.observe(handout, bit=bit, shape=1.5, time=7.0, content=b"t" * 20, memory=Memory(etag=b"e"), rate=0.1)
            else:
                store.observe(handout, "released")
        store.advance(20.0)
    return store.slot(name)


def assert_sound(store: ClockedStore) -> None:
    report = check_state(store, deadlines_at_most, 1e15, sleep=lambda _: None)
    assert report.violations == []


def test_all_that_is_known_goes_with_the_page(store):
    """Slot, bits, posterior, content, memory and deadline stay; URL, host and bounds are new."""
    slot = seen_page(store, "old/a")
    before = store.seen(slot).tobytes()
    assert move(store, "old/a", "new/b", gap=3.0, max_rate=0.25) == 1
    assert store.slot("new/b") == store.slot("old/a") == slot
    assert store.seen(slot).tobytes() == before
    reading = read_page(store, fingerprint("old/a"))
    assert (reading.host, reading.record["url"], reading.memory.etag) == ("new", "http://new/b", b"e")
    assert (reading.page["gap"], reading.page["max_rate"]) == (3.0, 0.25)
    assert reading.troubles.fingerprint == fingerprint("new/b")
    assert reading.troubles.aliases == ("http://old/a",)
    (handout,), _ = store.dispatch(1)
    assert (handout.slot, handout.record["url"], handout.memory.etag) == (slot, "http://new/b", b"e")
    store.observe(handout, bit=0, shape=1.5, time=9.0)
    assert_sound(store)


def test_a_move_said_twice_is_made_once(store):
    seen_page(store, "h/a")
    assert [move(store, "h/a", "h/b"), move(store, "h/a", "h/b")] == [1, 0]
    assert store.counts()["moved"] == 1
    assert move(store, "h/b", "h/b") == 0
    assert move(store, "h/unknown", "h/b") == 0


def test_a_page_moves_while_it_is_fetched(store):
    """Its lease goes on; the observation counts where it is now."""
    slot = seen_page(store, "old/a")
    (handout,), _ = store.dispatch(1)
    assert move(store, "old/a", "new/a") == 1
    assert store.observe(handout, bit=0, shape=1.0, time=1.0, rate=0.1) == 1
    assert store.seen(slot)["visits"] == 3
    assert [int(member) for member in store.command("ZRANGE", store.key("due:2"), 0, -1)] == [slot]
    assert_sound(store)


def test_a_page_that_moves_onto_a_known_one_is_that_one(store):
    """Which keeps its history, and takes the larger importance."""
    seen_page(store, "h/old", importance=5.0)
    kept = seen_page(store, "h/kept", importance=2.0)
    before = store.seen(kept).tobytes()
    assert move(store, "h/old", "h/kept") == 2
    assert store.slot("h/old") == store.slot("h/kept") == kept
    assert store.seen(kept).tobytes() == before
    assert store.records_at("page", [kept])["importance"][0] == 5.0
    counts = store.counts()
    assert (counts["pages"], counts["fetched"], counts["merged"], counts.get("moved", 0)) == (1, 1, 1, 0)
    assert_sound(store)


def test_a_target_that_was_never_seen_takes_over_what_is_known(store):
    """Its first visit gives a bit already."""
    slot = seen_page(store, "h/old")
    known = store.seen(slot)
    store.add(new_page("h/new"))
    assert move(store, "h/old", "h/new") == 2
    (handout,), _ = store.dispatch(1)
    assert (handout.slot, handout.visits, handout.content, handout.memory.etag) == (store.slot("h/new"), 2, b"t" * 16, b"e")
    store.observe(handout, bit=0, shape=2.0, time=9.0)
    seen = store.seen(store.slot("h/new"))
    assert (seen["visits"], seen["observations"], seen["changes"]) == (3, known["observations"] + 1, known["changes"])
    assert store.counts()["fetched"] == 1
    assert_sound(store)


def test_names_follow_through_a_chain_and_back(store):
    """a -> b -> c -> a: one page with three names, whichever it has now."""
    slot = seen_page(store, "h/a")
    for name, target in (("h/a", "h/b"), ("h/b", "h/c"), ("h/c", "h/a")):
        assert move(store, name, target) == 1
        assert {store.slot(each) for each in ("h/a", target)} == {slot}
        assert_sound(store)
    aliases = store.command("HGETALL", store.key("aliases"))
    assert {bytes(name): bytes(value)[:20] for name, value in aliases.items()} == {
        fingerprint("h/b"): fingerprint("h/a"),
        fingerprint("h/c"): fingerprint("h/a"),
    }


@pytest.mark.parametrize("by", ["h/a", "h/b", "h/c"])
def test_forget_takes_all_names_along(store, by):
    """Asked for by any of them."""
    seen_page(store, "h/a")
    move(store, "h/a", "h/b")
    move(store, "h/b", "h/c")
    assert store.run([("forget_page", [fingerprint(by)])]) == [1]
    for name in ("ids", "aliases", "aliased:0", "memory", "records"):
        assert not store.command("EXISTS", store.key(name)), name
    assert store.add(new_page("h/a")) == [1]
    assert_sound(store)


def test_what_a_page_keeps_of_its_former_names_is_bounded(store):
    """Of more than a thousand the oldest are given up."""
    seen_page(store, "h/0")
    for n in range(1005):
        assert move(store, f"h/{n}", f"h/{n + 1}") == 1
    assert store.command("LLEN", store.key("aliased:0")) == store.command("HLEN", store.key("aliases")) == 1000
    assert store.command("HLEN", store.key("ids")) == 1001
    assert store.command("HGET", store.key("ids"), fingerprint("h/0")) is None


def test_a_page_is_found_by_its_old_link(store):
    """A link to the former name is no new page."""
    seen_page(store, "h/a")
    move(store, "h/a", "h/b")
    assert store.add(new_page("h/a", importance=4.0)) == [0]
    assert store.records_at("page", [store.slot("h/b")])["importance"][0] == 4.0


def test_check_finds_aliases_that_lead_nowhere(store):
    seen_page(store, "h/a")
    move(store, "h/a", "h/b")
    store.command("HSET", store.key("aliases"), fingerprint("h/x"), fingerprint("h/y"))
    report = check_state(store, deadlines_at_most, 1e15, sleep=lambda _: None)
    assert [finding.invariant for finding in report.violations] == ["aliases"]


def test_another_site_does_not_get_what_one_was_trusted_with(store):
    """Cookies and authorization stay behind; on the same site they go along."""
    from optimal_frontier.frontier.dispatcher import Dispatcher
    from optimal_frontier.state.records import encode_record

    headers = {b"Authorization": [b"secret"], b"Cookie": [b"a=b"], b"Accept": [b"*/*"]}
    record = encode_record({"url": "http://h/a", "headers": headers, "cookies": {"a": "b"}})
    page = new_page("h/a")
    store.run(store.add_calls([type(page)(page.fingerprint, page.host, record)]))
    (handout,), _ = store.dispatch(1)
    dispatcher = Dispatcher(store, FrontierSettings.parse({}))
    for url, kept in (("http://h/b", 3), ("https://h/a", 1), ("http://h:81/a", 1), ("http://other/a", 1)):
        moved = decode_record(dispatcher.move_of(handout, page.fingerprint, url, fingerprint(url)).target.record)
        assert moved["url"] == url
        assert len(moved["headers"]) == kept
        assert ("cookies" in moved) == (kept == 3)


@pytest.mark.parametrize("outcome", ["failed", "gone"])
def test_a_target_that_only_failed_takes_over_what_is_known(store, outcome):
    """It was attempted as often as it was visited, at least."""
    seen_page(store, "h/old")
    store.add(new_page("h/new"))
    target = store.slot("h/new")
    for handout in store.dispatch(10)[0]:
        store.observe(handout, outcome if handout.slot == target else "released")
    assert move(store, "h/old", "h/new") == 2
    assert_sound(store)
    store.advance(100.0)
    assert [handout.slot for handout in store.dispatch(10)[0]] == [target]


def test_a_retired_target_that_comes_back_has_not_failed(store):
    seen_page(store, "h/old")
    target = seen_page(store, "h/kept")
    while not store.counts().get("retired"):
        store.advance(3000.0)
        for handout in store.dispatch(10)[0]:
            store.observe(handout, "gone" if handout.slot == target else "released")
    assert move(store, "h/old", "h/kept") == 2
    assert store.hash("failed") == {}
    assert_sound(store)
