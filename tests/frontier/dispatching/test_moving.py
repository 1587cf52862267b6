"""A page that moves: record, history and place in the queues go with it, its old name leads to it, within a partition and between two."""

from __future__ import annotations

import math
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, page_of, settings_of
from moving_pages import KNOWN, assert_sound, carried, counts, lease_of, move

from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.frontier.dispatching.moving import MOST_ALIASES, carry_out
from optimal_frontier.frontier.dispatching.moving_back import give_back
from optimal_frontier.frontier.dispatching.work import Lease, Moving
from optimal_frontier.frontier.judging.moved_pages import rebounded
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import RELEASE, REST, Change
from optimal_frontier.state.partition import observe_calls
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, RETIRED, Row, split_tail


@pytest.mark.parametrize(
    "value", [b"", b"short", Row(state=77).pack(), Row(b=5.0, visits=1).pack(), Row(b=5.0, a=math.nan).pack() + b"tail"]
)
def test_a_page_stays_where_the_row_at_its_target_is_damaged(pages: ClockedNamespace, value: bytes) -> None:
    """Its visit counts, and it may move another time; moves beside it go on."""
    for name in ("old/a", "old/c", "new/b"):
        pages.visit(name, **KNOWN)
    k = pages.partition_of("new")
    pages.command("HSET", pages.key("pages", k), fingerprint("new/b")[:12], value, partition=k)
    moves = [
        move_of(settings_of(), pages.seen(lease_of(pages, name), **KNOWN), fingerprint(target), f"http://{target}")
        for name, target in (("old/a", "new/b"), ("old/c", "new/d"))
    ]
    leases = [Lease(moved.observation.handout, moved.observation.handout.token, 0.0) for moved in moves]
    done, put_off = carry_out(pages, list(map(Moving, moves, leases)))
    assert (len(done), put_off) == (2, [])
    assert pages.row("old/a").visits == pages.row("new/d").visits == 2
    assert counts(pages, "moved", "merged", "visits") == (1, 0, 5)


def test_all_that_is_known_goes_with_the_page(pages: ClockedNamespace) -> None:
    """Bits, posterior, content, memory and deadline stay; URL, host, pattern and bounds are new."""
    pages.visit("old/a", **KNOWN)
    rules = {"RULES": [{"host": "new", "min_interval": 3, "max_interval": 5000, "importance": 4.0}]}
    assert move(pages, "old/a", "new/b/c.html", settings=rules, changes=7)
    row = pages.row("new/b/c.html")
    assert (row.visits, row.changes, row.shape, row.time, row.content) == (2, 7, 1.5, 7.0, b"t" * 16)
    assert (row.min_interval, row.max_interval, row.importance) == (3.0, 5000.0, 4.0)
    assert row.pattern == page_of("new/b/c.html").row.pattern
    assert pages.row("old/a") == row
    assert pages.remembered("old/a").etag == b"e"
    assert counts(pages, "pages", "fetched", "moved", "visits") == (1, 1, 1, 2)
    handout = lease_of(pages, "new/b/c.html")
    assert (handout.host, handout.record, handout.memory.etag) == ("new", {"url": "http://new/b/c.html"}, b"e")
    assert pages.end(handout) == 1
    assert_sound(pages)


def test_a_first_visit_may_show_a_move(pages: ClockedNamespace) -> None:
    """It counts once, where the page is now."""
    pages.add(page_of("old/a"))
    assert move(pages, "old/a", "new/a")
    assert counts(pages, "pages", "fetched", "pending", "moved", "ended") == (1, 1, 0, 1, 1)
    assert_sound(pages)


def test_a_page_that_was_to_be_fetched_once_and_is_revisited_now_is_counted_where_it_is(pages: ClockedNamespace) -> None:
    """The judge counts that, and so do the scripts that move it."""
    pages.add(page_of("old/a", settings_of(RULES=[{"host": "old", "revisit": False}])))
    assert pages.row("old/a").state == ONCE
    assert move(pages, "old/a", "new/a", state=ACTIVE, counters={"pages": 1, "fetched": 1, "pending": -1})
    assert counts(pages, "pages", "fetched", "pending") == (1, 1, 0)


def test_a_move_that_is_sent_again_is_made_once(pages: ClockedNamespace) -> None:
    """Steps are idempotent: by what is there, and by the token of the lease."""
    pages.visit("old/a")
    handout = lease_of(pages, "old/a")
    moved = move_of(settings_of(), pages.seen(handout, **KNOWN), fingerprint("new/a"), "http://new/a")
    assert carried(pages, moved)
    before = pages.row("new/a"), pages.remembered("new/a"), pages.counts()
    assert carried(pages, moved)
    assert (pages.row("new/a"), pages.remembered("new/a"), pages.counts()) == before
    assert_sound(pages)


def test_a_crawler_that_dies_between_the_steps_leaves_a_page_that_moves_at_its_next_visit(pages: ClockedNamespace) -> None:
    pages.visit("old/a", **KNOWN)
    handout = lease_of(pages, "old/a")
    moved = move_of(settings_of(), pages.seen(handout, **KNOWN), fingerprint("new/a"), "http://new/a")
    assert carried(pages, moved, handout.token + 2)  # the lease is another's by now: only the first step is made
    assert counts(pages, "pages", "moved") == (2, 0)
    assert pages.end(handout, RELEASE) == 1
    assert move(pages, "old/a", "new/a")
    assert counts(pages, "pages", "fetched", "merged") == (1, 1, 1)
    assert pages.row("old/a").visits == 2
    assert_sound(pages)


def test_a_page_that_moves_onto_a_known_one_is_that_one(pages: ClockedNamespace) -> None:
    """Which keeps its history, and takes the larger importance, also of a request: the next judgement knows it."""
    pages.add(page_of("h/old", importance=5.0))
    pages.visit("h/old", **KNOWN)
    pages.visit("h2/kept", **{**KNOWN, "changes": 3, "memory": Memory(etag=b"kept")})
    before = pages.row("h2/kept")
    assert move(pages, "h/old", "h2/kept")
    after = pages.row("h/old")
    assert after == pages.row("h2/kept") == before._replace(importance=5.0)
    assert pages.remembered("h/old").etag == b"kept"
    assert counts(pages, "pages", "fetched", "merged", "moved") == (1, 1, 1, 0)
    assert lease_of(pages, "h2/kept").stated == 5.0
    assert_sound(pages)


def test_a_target_that_waits_for_its_first_visit_takes_over_what_is_known(pages: ClockedNamespace) -> None:
    """Its next visit gives a bit already."""
    pages.visit("h/old", **KNOWN)
    pages.add(page_of("h2/new", importance=2.0), page_of("h2/other"))
    assert move(pages, "h/old", "h2/new", changes=4)
    handout = lease_of(pages, "h2/new")
    assert (handout.row.visits, handout.row.changes, handout.row.content, handout.memory.etag) == (2, 4, b"t" * 16, b"e")
    assert handout.stated == 2.0
    assert counts(pages, "pages", "fetched", "pending", "merged") == (2, 1, 1, 1)
    assert pages.end(handout) == 1
    assert_sound(pages)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_target_that_only_failed_takes_over_what_is_known(pages: ClockedNamespace, gone: int) -> None:
    """It was attempted as often as both were."""
    pages.visit("h/old", **KNOWN)
    pages.visit("h2/new", visits=0, failed=1, failures=1, gone=gone, counters={"fetched": 0})
    pages.command("HSET", pages.key("stats", pages.partition_of("h2")), "fetched", 0 if pages.partitions > 1 else 1)
    assert move(pages, "h/old", "h2/new")
    row = pages.row("h2/new")
    assert (row.visits, row.failed, row.failures, row.gone) == (2, 1, 0, 0)
    assert counts(pages, "pages", "fetched") == (1, 1)
    assert_sound(pages)


def test_a_retired_target_comes_back_and_has_not_failed(pages: ClockedNamespace) -> None:
    pages.visit("h/old", "h2/kept")
    pages.advance(2000.0)
    pages.retire("h2/kept", cause=2)
    assert counts(pages, "retired") == (1,)
    assert move(pages, "h/old", "h2/kept")
    row = pages.row("h2/kept")
    assert (row.state, row.failures, row.gone, row.cause) == (ACTIVE, 0, 0, 0)
    assert counts(pages, "retired", "pages") == (0, 1)
    assert lease_of(pages, "h2/kept").row.visits == 1
    assert_sound(pages)


def test_a_move_onto_a_page_that_is_being_fetched_waits_for_that(pages: ClockedNamespace) -> None:
    """At last it is made all the same: the page there keeps its own history."""
    pages.visit("h/old", "h2/kept")
    pages.advance(2000.0)
    (under_way,) = pages.dispatch(1, pages.partition_of("h2")) if pages.partitions > 1 else [lease_of(pages, "h2/kept")]
    handout = lease_of(pages, "h/old")
    moved = move_of(settings_of(), pages.seen(handout, **KNOWN), fingerprint("h2/kept"), "http://h2/kept")
    assert not carried(pages, moved)
    assert counts(pages, "pages", "merged") == (2, 0)
    assert pages.end(under_way) == 1
    assert carried(pages, moved)
    assert counts(pages, "pages", "merged") == (1, 1)
    assert pages.remembered("h2/kept").aliases
    assert_sound(pages)


def test_a_move_that_cannot_wait_is_made_without_the_history(pages: ClockedNamespace) -> None:
    """But the page knows its other name: by that the next run knows that it is a start page, and what it was asked for as."""
    pages.visit("h/old")
    pages.add(page_of("h2/new"))
    under_way = lease_of(pages, "h2/new")
    handout = lease_of(pages, "h/old") if pages.score("h/old") else None
    assert handout is not None
    moved = move_of(settings_of(), pages.seen(handout, **KNOWN), fingerprint("h2/new"), "http://h2/new")
    assert not carried(pages, moved)
    assert carried(pages, moved, at_last=True)
    assert len(pages.remembered("h2/new").aliases) == 1
    assert pages.end(under_way) == 1
    assert pages.row("h/old").visits == 1
    assert_sound(pages)


def test_names_follow_through_a_chain_and_back(pages: ClockedNamespace) -> None:
    """a -> b -> c -> a: one page with three names, whichever it has now."""
    pages.visit("a/x")
    for name, target in (("a/x", "b/x"), ("b/x", "c/x"), ("c/x", "a/x")):
        assert move(pages, name, target)
        assert pages.row("a/x") == pages.row(target)
        assert_sound(pages)
    assert counts(pages, "moved", "pages") == (3, 1)
    for name, host in (("b/x", "b"), ("c/x", "c")):
        k = pages.partition_of(host)
        alias = pages.command("HGET", pages.key("aliases", k), fingerprint(name)[:12], partition=k)
        assert alias[4:16] == fingerprint("a/x")[:12]
        assert alias[16:].decode() == f"http://{name}"
    k = pages.partition_of("a")
    assert pages.command("HGET", pages.key("aliases", k), fingerprint("a/x")[:12], partition=k) is None


@pytest.mark.parametrize("by", ["h/a", "h2/b", "h3/c"])
def test_forget_takes_all_names_along(pages: ClockedNamespace, by: str) -> None:
    """Asked for by any of them."""
    pages.visit("h/a", **KNOWN)
    move(pages, "h/a", "h2/b")
    move(pages, "h2/b", "h3/c")
    assert forget(pages, [fingerprint(by)]) == 1
    for k in range(pages.partitions):
        for name in ("pages", "aliases", "memory", "q"):
            assert not pages.command("EXISTS", pages.key(name, k), partition=k), name
    assert pages.add(page_of("h/a")) == [1]
    assert_sound(pages)


def test_a_page_keeps_so_many_former_names(store: ClockedNamespace) -> None:
    """Of more the oldest are given up: a link to one makes a page of it."""
    store.visit("h/0")
    for n in range(MOST_ALIASES + 5):
        assert move(store, f"h/{n}", f"h/{n + 1}", memory=None)
    last = f"h/{MOST_ALIASES + 5}"
    assert len(store.remembered(last).aliases) == store.command("HLEN", store.key("aliases")) == MOST_ALIASES
    assert store.add(page_of("h/0"), page_of(f"h/{MOST_ALIASES}")) == [1, 0]


def test_a_link_to_a_former_name_is_no_new_page(pages: ClockedNamespace) -> None:
    pages.visit("h/a")
    move(pages, "h/a", "h2/b")
    assert pages.add(page_of("h/a", importance=4.0)) == [0]


def test_another_site_does_not_get_what_one_was_trusted_with(store: ClockedNamespace) -> None:
    """Cookies and authorization stay behind; on the same site they go along."""
    headers = {b"Authorization": [b"secret"], b"Cookie": [b"a=b"], b"Accept": [b"*/*"]}
    store.visit("h/a")
    handout = lease_of(store, "h/a")
    handout.record |= {"headers": headers, "cookies": {"a": "b"}}
    for url, kept in (("http://h/b", 3), ("https://h/a", 1), ("http://h:81/a", 1), ("http://other/a", 1)):
        target = move_of(settings_of(), store.seen(handout), fingerprint(url), url).target
        moved = unpack_record(target.record, target.host)
        assert moved["url"] == url
        assert len(moved["headers"]) == kept
        assert ("cookies" in moved) == (kept == 3)


def test_what_a_request_said_of_its_importance_goes_along(pages: ClockedNamespace) -> None:
    pages.add(page_of("h/a", importance=2.5))
    pages.visit("h/a")
    assert move(pages, "h/a", "h2/b", settings={"RULES": [{"pattern": ".", "importance": 9}]})
    assert pages.row("h2/b").importance == 2.5
    assert lease_of(pages, "h2/b").stated == 2.5


@pytest.mark.parametrize("op", ["once", "unrevisited", "done"])
def test_a_move_to_what_is_fetched_once_is_a_visit_like_any_other(pages: ClockedNamespace, op: str) -> None:
    pages.visit("h/a")
    values: dict[str, Any] = {}
    if op == "unrevisited":
        values["settings"] = {"RULES": [{"host": "h2", "revisit": False}]}
    else:
        pages.add(page_of("h2/b", settings_of(RULES=[{"host": "h2", "revisit": False}])))
        if op == "done":
            handout = lease_of(pages, "h2/b")
            assert pages.end(handout, REST, state=DONE)
    assert move(pages, "h/a", "h2/b", changes=5, **values)
    assert (pages.row("h/a").visits, pages.row("h/a").changes) == (2, 5)
    assert counts(pages, "moved", "merged", "visits") == (0, 0, 2 + (op == "done"))


def test_the_change_feed_and_the_words_of_the_visit_are_stored(pages: ClockedNamespace) -> None:
    from optimal_frontier.state.host_words import HostWords

    pages.visit("h/a")
    change, words = Change("http://h/a", b"1" * 16, b"2" * 16), HostWords(good=1.0, missing=2.0)
    assert move(pages, "h/a", "h2/b", change=change, words=words, lateness=1.5)
    k = pages.partition_of("h")
    assert len(pages.command("XRANGE", pages.key("changes", k), "-", "+", partition=k)) == 1
    assert pages.command("HLEN", pages.key("hosts:words", k), partition=k) == 1
    assert pages.command("LRANGE", pages.key("lateness", k), 0, -1, partition=k) == [b"1.500000"]


# rel=canonical: an alias is made where a redirect's would be, but for mistakes that pages make.


def follow(pages: ClockedNamespace, name: str, target: str) -> bool:
    """Fetch the page ``name``, which says that ``target`` is its canonical form; return whether it is an alias now."""
    assert move(pages, name, target, is_canonical=True)
    k = pages.partition_of(name.partition("/")[0])
    return bool(pages.command("HEXISTS", pages.key("aliases", k), fingerprint(name)[:12], partition=k))


def test_a_duplicate_becomes_an_alias_of_the_page_that_it_names(store: ClockedNamespace) -> None:
    store.visit("a/x?sort=up", "a/x", "a/y?sort=up")
    assert follow(store, "a/x?sort=up", "a/x")
    assert follow(store, "a/y?sort=up", "a/y")
    assert counts(store, "canonical_followed", "pages") == (2, 2)
    assert store.add(page_of("a/x?sort=up"), page_of("a/y?sort=up")) == [0, 0]
    assert store.hash("kept")["h1"] == "2"


def test_two_pages_that_name_each_other_change_places_once(store: ClockedNamespace) -> None:
    store.visit("a/x", "a/y")
    assert follow(store, "a/x", "a/y")
    assert not follow(store, "a/y", "a/x")
    assert counts(store, "canonical_refused", "visits") == (1, 4)


def test_a_page_that_many_name_keeps_its_first_aliases(store: ClockedNamespace) -> None:
    """The others stay pages of their own."""
    store.visit(*(f"a/{n}" for n in range(30)), "a/home")
    assert [follow(store, f"a/{n}", "a/home") for n in range(30)] == [True] * 20 + [False] * 10
    assert counts(store, "pages", "canonical_followed", "canonical_refused") == (11, 20, 10)


def test_a_page_that_names_another_one_each_time_stops_somewhere(store: ClockedNamespace) -> None:
    store.visit("a/0")
    for n in range(20):
        assert follow(store, f"a/{n}", f"a/{n + 1}")
    assert not follow(store, "a/20", "a/21")


def test_a_redirect_is_bound_by_none_of_this(store: ClockedNamespace) -> None:
    store.visit(*(f"a/{n}" for n in range(30)), "a/home")
    for n in range(30):
        assert move(store, f"a/{n}", "a/home")
    assert counts(store, "merged", "canonical_refused", "pages") == (30, 0, 1)
    assert store.hash("kept")["h1"] == "1"


def test_a_stored_tail_names_the_url_of_the_page_that_it_is(pages: ClockedNamespace) -> None:
    """Of the page that was there, not of the one that came."""
    pages.add(page_of("h/old", importance=5.0))
    pages.visit("h/old", "h2/kept")
    move(pages, "h/old", "h2/kept")
    k = pages.partition_of("h2")
    value = pages.command("HGET", pages.key("pages", k), fingerprint("h2/kept")[:12], partition=k)
    stated, record = split_tail(value)
    assert (stated, unpack_record(record, "h2")) == (5.0, {"url": "http://h2/kept"})


# Bounds of the new name.


def test_pinned_pages_go_by_their_new_interval_at_once() -> None:
    known = Row(b=1e6, a=5.0, s=0.0, e=5.0, l=5.0, min_interval=5.0, max_interval=5.0)
    assert rebounded(known, Row(min_interval=9.0, max_interval=9.0))[4:8] == (9.0, 0.0, 9.0, 9.0)
    assert rebounded(known, Row(min_interval=1.0, max_interval=50.0))[4:8] == (5.0, 0.0, 1.0, 50.0)


def test_numbers_that_are_not_about_the_interval_stay() -> None:
    """Backoff after a failure, announcements, pages that are forced."""
    for known in (Row(b=1e6, a=5.0, e=5.0, l=5.0, failures=2), Row(b=1e6, flags=1), Row(b=1e6, a=7.0, e=7.0, l=7.0, flags=2)):
        assert rebounded(known, Row(min_interval=9.0, max_interval=9.0))[4:8] == known[4:8]


def test_a_longest_wait_that_was_chosen_to_learn_stays() -> None:
    known = Row(b=1e6, a=5.0, s=1.0, e=1.0, l=20.0, min_interval=1.0, max_interval=100.0)
    assert rebounded(known, Row(min_interval=2.0, max_interval=50.0))[4:8] == (5.0, 1.0, 2.0, 20.0)


def test_what_gets_its_former_url_back_is_as_any_page_there(pages: ClockedNamespace) -> None:
    """Its directory and its pattern are those of that URL; what one site was trusted with stays from the other."""
    pages.visit("old/here/a", **KNOWN)
    assert move(pages, "old/here/a", "new/there/b", directory=page_of("old/here/a").row.directory)
    gone = lease_of(pages, "new/there/b")
    gone.record["cookies"] = {"id": "1"}
    seen = pages.seen(gone, REST, state=RETIRED)
    pages.run(observe_calls(gone.partition, [seen], [gone.token]))
    assert give_back(pages, settings_of(), seen)
    back = lease_of(pages, "old/here/a")
    plain = page_of("old/here/a")
    assert (back.row.directory, back.row.pattern, back.record) == (plain.row.directory, plain.row.pattern, {"url": "http://old/here/a"})
