"""Pages that move side by side: as one after the other, in as many round trips as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, open_namespace, page_of, settings_of
from moving_pages import KNOWN, assert_sound, counts, hash_of, lease_of, move

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.moving import MOST_TRIES, carry_out
from optimal_frontier.frontier.dispatching.work import Lease, Moving
from optimal_frontier.state.aliases import split_alias
from optimal_frontier.state.messages import RELEASE, Change
from optimal_frontier.state.namespace import Call


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
