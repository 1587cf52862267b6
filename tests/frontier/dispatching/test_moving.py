"""A page that moves: record, history and place in the queues go with it, its old name leads to it, within a partition and between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, open_namespace, page_of, settings_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.frontier.dispatching.moving import MOST_ALIASES, MOST_TRIES, carry_out
from optimal_frontier.frontier.dispatching.work import Lease, Moving
from optimal_frontier.frontier.judging.moved_pages import rebounded
from optimal_frontier.state.aliases import split_alias
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import RELEASE, REST, Change, Handout, Move
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import ACTIVE, DONE, Row, split_tail

KNOWN: dict[str, Any] = {"content": b"t" * 16, "shape": 1.5, "time": 7.0, "memory": Memory(etag=b"e")}


@pytest.fixture(params=[1, 5])
def pages(request: pytest.FixtureRequest, redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """A namespace of one partition, or of several, where most moves between hosts change it."""
    opened = open_namespace(redis_socket, namespace, request.param)
    yield opened
    opened.connection.close()


def lease_of(pages: ClockedNamespace, name: str) -> Handout:
    """Hand out one page, which is due in 1,000 s at most."""
    pages.advance(2000.0)
    found = None
    for handout in pages.dispatch(1000, pages.partition_of(name.partition("/")[0])):
        if handout.page == fingerprint(name)[:12]:
            found = handout
        else:
            pages.end(handout, RELEASE)
    assert found is not None, f"{name} was not handed out"
    return found


def move(pages: ClockedNamespace, name: str, target: str, at_last: bool = False, **values: Any) -> bool:
    """Fetch a page, which has moved."""
    given = {**KNOWN, **values}
    settings = settings_of(**given.pop("settings", {}))
    handout = lease_of(pages, name)
    seen = pages.seen(handout, **given)
    return carried(pages, move_of(settings, seen, fingerprint(target), f"http://{target}"), at_last=at_last)


def carried(pages: ClockedNamespace, moved: Move, token: float = 0.0, at_last: bool = False) -> bool:
    """Carry out one move; return whether that was done."""
    handout = moved.observation.handout
    moving = Moving(moved, Lease(handout, token or handout.token, handout.received))
    done, put_off = carry_out(pages, [moving], is_last=at_last)
    assert [*done, *put_off] == [moving]
    return bool(done)


def counts(pages: ClockedNamespace, *names: str) -> tuple[int, ...]:
    told = pages.counts()
    return tuple(told.get(name, 0) for name in names)


def hash_of(pages: ClockedNamespace, name: str, k: int) -> dict[bytes, bytes]:
    raw = pages.command("HGETALL", pages.key(name, k), partition=k)
    return raw if isinstance(raw, dict) else dict(zip(raw[::2], raw[1::2], strict=True))


def assert_sound(pages: ClockedNamespace) -> None:
    """Each page is in one queue; counters are what is stored; other names lead to pages."""
    stored = queued = leased = waiting = 0
    for k in range(pages.partitions):
        rows = hash_of(pages, "pages", k)
        stored += len(rows)
        waiting += sum(Row.unpack(value).attempts == 0 for value in rows.values())
        scores = pages.command("ZRANGE", pages.key("q", k), 0, -1, "WITHSCORES", partition=k)
        assert {bytes(page) for page in scores[::2]} <= set(rows)
        queued += len(scores) // 2
        leased += sum(float(score) % 2 == 1 for score in scores[1::2])
        for name in pages.hash("hosts:names", k):
            queued += pages.command("ZCARD", pages.key(f"f:{name}", k), partition=k)
    told = pages.counts()
    assert queued == stored == told["pages"]
    assert told.get("dispatched", 0) - told.get("ended", 0) - told.get("leases_expired", 0) == leased
    kept = [int(by) for k in range(pages.partitions) for name, by in pages.hash("kept", k).items() if name.startswith("h")]
    assert sum(kept) == stored
    assert told.get("pending", 0) == waiting


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
    pages.visit("h/old")
    pages.add(page_of("h2/new"))
    under_way = lease_of(pages, "h2/new")
    handout = lease_of(pages, "h/old") if pages.score("h/old") else None
    assert handout is not None
    moved = move_of(settings_of(), pages.seen(handout, **KNOWN), fingerprint("h2/new"), "http://h2/new")
    assert not carried(pages, moved)
    assert carried(pages, moved, at_last=True)
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


# Moves that come together.


def movings_of(pages: ClockedNamespace, *moves: tuple[str, str], **values: Any) -> list[Moving]:
    """Hand out pages, each of which has moved; the leases of all run until all are handed out."""
    pages.advance(2000.0)
    leases = {handout.page: handout for k in range(pages.partitions) for handout in pages.dispatch(1000, k)}
    movings = []
    for name, target in moves:
        handout = leases.pop(fingerprint(name)[:12])
        seen = pages.seen(handout, **{**KNOWN, **values})
        movings.append(Moving(move_of(settings_of(), seen, fingerprint(target), f"http://{target}"), Lease.of(handout)))
    for handout in leases.values():
        pages.end(handout, RELEASE)
    return movings


def former_names(pages: ClockedNamespace, name: str) -> set[bytes]:
    """Pages that a page was before, as it remembers them itself."""
    return {split_alias(alias)[1] for alias in pages.remembered(name).aliases}


def ids(*names: str) -> set[bytes]:
    return {fingerprint(name)[:12] for name in names}


@pytest.fixture
def count_trips(pages: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Tell in how many round trips something is done."""
    kind = type(pages.connection.client.pipeline(transaction=False))
    execute, trips = kind.execute, 0

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal trips
        trips += 1
        return execute(self, *arguments, **named)

    def count(do: Callable[[], object]) -> int:
        before = trips
        do()
        return trips - before

    monkeypatch.setattr(kind, "execute", counted)
    return count


@pytest.mark.parametrize(("there", "most"), [(False, 3), (True, 4)])
def test_many_moves_take_as_many_round_trips_as_one(
    pages: ClockedNamespace, count_trips: Callable[[Callable[[], object]], int], there: bool, most: int
) -> None:
    """Where is the target; adopt; become_alias. Where a page is there, also what is remembered of it. A change takes none of its own."""
    moves = [(f"h{n % 7}/old{n}", f"g{n % 5}/new{n}") for n in range(31)]
    pages.visit(*(name for name, _ in moves), **KNOWN)
    if there:
        pages.visit(*(target for _, target in moves), **KNOWN)
    change = Change("http://h/a", b"1" * 16, b"2" * 16)
    one, *many = movings_of(pages, *moves, change=change, lateness=1.0)
    assert count_trips(lambda: carry_out(pages, [one])) == most
    done: list[Moving] = []
    assert count_trips(lambda: done.extend(carry_out(pages, many)[0])) == most
    assert done == many
    assert counts(pages, "pages", "merged" if there else "moved") == (31, 31)
    assert all(pages.row(name) == pages.row(target) for name, target in moves)
    assert_sound(pages)


def test_pages_that_move_to_one_place_together_are_one(pages: ClockedNamespace) -> None:
    """It knows all of their names."""
    pages.visit("a/x", "b/x", "c/x", **KNOWN)
    movings = movings_of(pages, ("a/x", "d/x"), ("b/x", "d/x"), ("c/x", "d/x"))
    assert carry_out(pages, movings) == (movings, [])
    assert counts(pages, "pages", "moved", "merged", "fetched") == (1, 1, 2, 1)
    assert former_names(pages, "d/x") == ids("a/x", "b/x", "c/x")
    assert_sound(pages)


def test_pages_that_move_to_one_place_by_its_former_names_are_one(pages: ClockedNamespace) -> None:
    """Only where they lead do the moves have a page in common."""
    pages.visit("a/x", "b/x", "c/1", **KNOWN)
    assert move(pages, "c/1", "d/2")
    assert move(pages, "d/2", "e/3")
    movings = movings_of(pages, ("a/x", "c/1"), ("b/x", "d/2"))
    assert carry_out(pages, movings) == (movings, [])
    assert former_names(pages, "e/3") == ids("c/1", "d/2", "a/x", "b/x")
    assert counts(pages, "pages", "merged") == (1, 2)
    assert_sound(pages)


def test_a_chain_that_moves_together_ends_at_its_end(pages: ClockedNamespace) -> None:
    """a -> b, which itself moves, waits for that; b -> c -> d do not wait where each comes after what it leads to."""
    pages.visit("a/x", "b/x", "c/x", **KNOWN)
    first, second, third = movings_of(pages, ("a/x", "b/x"), ("c/x", "d/x"), ("b/x", "c/x"))
    assert carry_out(pages, [first, second, third]) == ([second, third], [first])
    assert carry_out(pages, [first]) == ([first], [])
    assert counts(pages, "pages", "moved", "merged") == (1, 1, 2)
    assert former_names(pages, "d/x") == ids("a/x", "b/x", "c/x")
    assert pages.row("a/x") == pages.row("d/x")
    assert_sound(pages)


def test_a_page_moves_where_another_has_left_in_the_same_moment(pages: ClockedNamespace) -> None:
    """Which of them comes first counts: the page that was there takes along the one that comes later."""
    pages.visit("a/x", "b/x", **KNOWN)
    movings = movings_of(pages, ("b/x", "c/x"), ("a/x", "b/x"))
    assert carry_out(pages, movings) == (movings, [])
    assert counts(pages, "pages", "moved", "merged") == (1, 1, 1)
    assert former_names(pages, "c/x") == ids("a/x", "b/x")
    assert_sound(pages)


def test_pages_that_change_places_wait_for_each_other_and_are_one_at_last(pages: ClockedNamespace) -> None:
    pages.visit("a/x", "b/x", **KNOWN)
    movings = movings_of(pages, ("a/x", "b/x"), ("b/x", "a/x"))
    assert carry_out(pages, movings) == ([], movings)
    assert counts(pages, "pages", "merged", "moved") == (2, 0, 0)
    movings[0].tries = MOST_TRIES
    assert carry_out(pages, movings) == (movings, [])
    assert counts(pages, "pages", "merged", "moved") == (1, 1, 1)
    assert pages.row("b/x") == pages.row("a/x")
    assert former_names(pages, "a/x") == ids("b/x")
    assert_sound(pages)


def test_one_that_is_refused_and_one_that_waits_leave_the_others_alone(pages: ClockedNamespace) -> None:
    pages.visit("a/1", "a/2", "a/3", "a/4", "b/kept", **KNOWN)
    pages.add(page_of("b/once", settings_of(RULES=[{"host": "b", "revisit": False}])))
    movings = movings_of(pages, ("a/1", "c/1"), ("a/2", "b/once"), ("a/3", "b/kept"), ("a/4", "d/4"))
    under_way = lease_of(pages, "b/kept")
    done, put_off = carry_out(pages, movings)
    assert (done, put_off) == ([movings[0], movings[1], movings[3]], [movings[2]])
    assert counts(pages, "moved", "merged") == (2, 0)
    assert pages.end(under_way) == 1
    assert carry_out(pages, put_off) == (put_off, [])
    assert counts(pages, "moved", "merged") == (2, 1)


def test_where_a_page_comes_in_between_the_steps_of_several_it_is_joined(pages: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another crawler has added and fetched one target of three."""
    pages.visit("a/1", "a/2", "a/3", **KNOWN)
    movings = movings_of(pages, ("a/1", "b/1"), ("a/2", "c/2"), ("a/3", "d/3"))
    run = pages.run

    def come_between(calls: Sequence[Call]) -> list[Any]:
        monkeypatch.setattr(pages, "run", run)
        replies = run(calls)  # where the targets are
        pages.visit("c/2", content=b"c" * 16)
        return replies

    monkeypatch.setattr(pages, "run", come_between)
    assert carry_out(pages, movings) == (movings, [])
    assert counts(pages, "pages", "moved", "merged") == (3, 2, 1)
    assert (pages.row("a/1").content, pages.row("a/2").content) == (b"t" * 16, b"c" * 16)
    assert_sound(pages)


@pytest.mark.parametrize("step", range(4))
def test_pages_that_two_crawlers_move_to_one_place_at_once_are_one(
    pages: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The other one carries out its moves after any step of the first."""
    pages.visit("a/1", "a/2", "b/1", "b/2", "d/2", **KNOWN)
    movings = movings_of(pages, ("a/1", "c/1"), ("a/2", "d/2"), ("b/1", "c/1"), ("b/2", "d/2"))
    run, left = pages.run, step
    theirs: list[Moving] = []

    def come_between(calls: Sequence[Call]) -> list[Any]:
        nonlocal left
        replies = run(calls)
        left -= 1
        if left < 0:
            monkeypatch.setattr(pages, "run", run)
            theirs.extend(carry_out(pages, movings[2:])[0])
        return replies

    monkeypatch.setattr(pages, "run", come_between)
    assert carry_out(pages, movings[:2]) == (movings[:2], [])
    assert theirs == movings[2:]
    assert counts(pages, "pages", "moved", "merged") == (2, 1, 3)
    assert all(pages.row(f"{host}/1") == pages.row("c/1") and pages.row(f"{host}/2") == pages.row("d/2") for host in "ab")
    assert_sound(pages)


def stored(pages: ClockedNamespace) -> list[list[Any]]:
    """All that is stored of pages and their moves, and that counts them."""
    told: list[list[Any]] = []
    for k in range(pages.partitions):
        told.append([hash_of(pages, name, k) for name in ("pages", "memory", "aliases", "stats", "kept")])
        told[-1].append(pages.command("ZRANGE", pages.key("q", k), 0, -1, "WITHSCORES", partition=k))
        told[-1].append(sorted(str(entry) for _, entry in pages.command("XRANGE", pages.key("changes", k), "-", "+", partition=k)))
    return told


@pytest.mark.parametrize("is_run", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_moves_whose_answers_are_lost_are_carried_out_once(
    pages: ClockedNamespace, redis_socket: str, namespace: str, monkeypatch: pytest.MonkeyPatch, step: int, is_run: bool
) -> None:
    """At whichever step, and whether or not the server has taken it: as if nothing had happened, but that a move of two to one place whose
    first step was made may be told as one onto a known page."""
    sure = open_namespace(redis_socket, namespace + "-sure", pages.partitions)
    change = Change("http://h/a", b"1" * 16, b"2" * 16)
    moves = [("a/1", "b/1"), ("a/2", "c/2"), ("a/3", "d/there"), ("a/4", "b/1")]
    told = []
    for one in (sure, pages):
        one.visit("a/1", "a/2", "a/3", "a/4", "d/there", **KNOWN)
        movings = movings_of(one, *moves, change=change)
        run, left = one.run, step

        def fail(calls: Sequence[Call], run: Callable[..., Any] = run) -> list[Any]:
            nonlocal left
            left -= 1
            if left >= 0 or not calls:
                return list(run(calls))
            if is_run:
                run(calls)
            raise StateUnavailableError("gone")

        if one is pages:
            with monkeypatch.context() as patch:
                patch.setattr(one, "run", fail)
                with pytest.raises(StateUnavailableError):
                    carry_out(one, movings)
        assert carry_out(one, movings) == (movings, [])
        assert carry_out(one, movings) == (movings, [])  # as to a server that may have lost them
        assert_sound(one)
        found = stored(one)
        for partition in found:
            counted = partition[3]
            counted[b"moves"] = sum(int(counted.pop(name, 0)) for name in (b"moved", b"merged"))
        told.append(found)
    sure.connection.close()
    assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(20))
def test_moves_together_are_as_one_after_the_other(pages: ClockedNamespace, redis_socket: str, namespace: str, seed: int) -> None:
    """Chains, rings, many to one, onto former names, what waits, and what waits for the first visit."""
    random = Random(seed)
    names = [f"{host}/{n}" for host in "abcd" for n in range(4)]
    other = open_namespace(redis_socket, namespace + "-other", pages.partitions)
    there, waiting = names[:11], names[11:13]
    rounds = []
    for _ in range(3):
        some = random.sample(names, random.randrange(2, 9))
        rounds.append([(name, random.choice([one for one in names if one != name])) for name in some])
    is_last = random.random() < 0.3
    told = []
    for one, together in ((pages, True), (other, False)):
        one.visit("a/", "b/", "c/", "d/")  # hosts have the same numbers
        one.visit(*there, **KNOWN)
        one.add(*map(page_of, waiting))
        came_of = []
        for moves in rounds:
            known = {name for name in names if (row_of(one, name)) is not None}
            movings = movings_of(one, *((name, target) for name, target in moves if name in known))
            if together:
                done, put_off = carry_out(one, movings, is_last=is_last)
            else:
                each = [carry_out(one, [moving], is_last=is_last) for moving in movings]
                done, put_off = [m for some, _ in each for m in some], [m for _, some in each for m in some]
            came_of.append(({m.move.url for m in done}, {m.move.url for m in put_off}))
            for moving in put_off:
                one.end(moving.move.observation.handout, RELEASE)
            assert_sound(one)
        told.append((came_of, stored(one)))
    other.connection.close()
    assert told[0] == told[1]


def row_of(pages: ClockedNamespace, name: str) -> bytes | None:
    """What is stored under this very name."""
    k = pages.partition_of(name.partition("/")[0])
    found: bytes | None = pages.command("HGET", pages.key("pages", k), fingerprint(name)[:12], partition=k)
    return found


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
