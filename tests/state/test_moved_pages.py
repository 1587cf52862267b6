"""Moves: a page arrives under its new name first and leaves the old one then, so a crash between the steps loses nothing."""

from __future__ import annotations

import struct

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.aliases import pack_alias, point
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import Handout, NewPage
from optimal_frontier.state.partition import become_alias_call, count_calls
from optimal_frontier.state.rows import Row, pack_tail
from optimal_frontier.state.steps import side_by_side


def adopt(space: TimedNamespace, handout: Handout, target: NewPage, k: int, memory: bytes = b"") -> object:
    row = space.observation(handout, 10.0).row._replace(importance=4.0)
    return space.call("adopt", target.page, target.host, row.pack(), pack_tail(target.stated, target.record), memory, k=k)


def leave(space: TimedNamespace, handout: Handout, target: NewPage, k: int, **counters: int) -> int:
    alias = struct.pack("<I", k) + target.page + str(handout.record["url"]).encode()
    seen = space.observation(handout, 10.0)
    return int(space.run([become_alias_call(seen, handout.token, alias, counters)])[0])


def fetched(space: TimedNamespace, name: str, k: int = 0) -> Handout:
    space.add(new_page(name), k=k)
    handout = space.dispatch(k=k)[0]
    space.observe(handout, 0.0)
    space.run(count_calls(k, {"fetched": 1, "pending": -1}))
    space.advance(1.0)
    return space.dispatch(k=k)[0]


@pytest.mark.parametrize("to", [0, 1])
def test_a_page_keeps_what_is_known_of_it_within_a_partition_and_across(two: TimedNamespace, to: int) -> None:
    handout = fetched(two, "old/1")
    target = new_page("new/1", stated=2.0)
    memory = Memory(etag=b'"e"')
    assert adopt(two, handout, target, to, memory.pack()) == 1
    assert leave(two, handout, target, to, visits=1, moves=1) == 1
    assert two.command("HEXISTS", two.key("pages"), handout.page) == 0
    assert two.score(handout.page) is None
    two.advance(11.0)
    (moved,) = two.dispatch(5, k=to)
    assert (moved.host, moved.record, moved.stated, moved.memory) == ("new", {"url": "http://new/1"}, 2.0, memory)
    assert (moved.row.visits, moved.row.importance) == (2, 4.0)
    counts = two.counts()
    assert (counts["pages"], counts["fetched"], counts["pending"], counts["moves"]) == (1, 1, 0, 1)
    assert two.add(new_page("old/1")) == [0]


def test_a_move_that_comes_late_leaves_the_page_to_whoever_has_its_lease(two: TimedNamespace) -> None:
    handout = fetched(two, "old/1")
    target = new_page("new/1")
    assert adopt(two, handout, target, 1) == 1
    two.advance(2e6)
    (again,) = two.dispatch(5, k=0)
    assert leave(two, handout, target, 1) == 0
    assert two.score(again.page) == again.token
    assert not two.command("EXISTS", two.key("aliases"))
    assert leave(two, again, target, 1) == 1


def test_a_crash_between_the_steps_leaves_two_pages_and_the_move_is_made_again(two: TimedNamespace) -> None:
    handout = fetched(two, "old/1")
    target = new_page("new/1")
    assert adopt(two, handout, target, 1) == 1
    two.advance(2e6)
    (again,) = two.dispatch(5, k=0)
    assert again.page == handout.page
    stored = adopt(two, again, target, 1)
    assert Row.unpack(stored).importance == 4.0  # type: ignore[arg-type]
    assert leave(two, handout, target, 1) == 0
    assert leave(two, again, target, 1) == 1
    assert two.counts()["pages"] == 1


def test_the_second_step_counts_once(two: TimedNamespace) -> None:
    handout = fetched(two, "old/1")
    target = new_page("new/1")
    adopt(two, handout, target, 0)
    assert [leave(two, handout, target, 0) for _ in range(3)] == [1, 0, 0]
    counts = two.counts()
    assert (counts["pages"], counts["ended"], counts["dispatched"]) == (1, 2, 2)
    assert two.hash("kept") == {"h1": "0", "p0": "1", "h2": "1"}


def test_other_names_of_a_page_point_to_where_it_is_now(two: TimedNamespace) -> None:
    older = fetched(two, "older/1")
    middle = new_page("middle/1")
    adopt(two, older, middle, 0)
    leave(two, older, middle, 0)
    two.advance(20.0)
    handout = two.dispatch()[0]
    target = new_page("new/1")
    adopt(two, handout, target, 1)
    assert leave(two, handout, target, 1) == 1
    side_by_side(two, [point([pack_alias(0, older.page)], (1, target.page))])
    aliases = two.command("HMGET", two.key("aliases"), older.page, middle.page)
    assert [raw[:16] for raw in aliases] == [struct.pack("<I", 1) + target.page] * 2
    assert [raw[16:] for raw in aliases] == [b"http://older/1", b"http://middle/1"]


def test_a_page_that_comes_back_to_an_old_name_is_a_page_again(two: TimedNamespace) -> None:
    handout = fetched(two, "a/1")
    there = new_page("b/1")
    adopt(two, handout, there, 0)
    leave(two, handout, there, 0)
    two.advance(20.0)
    back = two.dispatch()[0]
    home = new_page("a/1")
    assert adopt(two, back, home, 0) == 1
    assert leave(two, back, home, 0) == 1
    assert two.command("HKEYS", two.key("aliases")) == [there.page]
    assert two.counts()["pages"] == 1
    two.advance(20.0)
    assert [handout.host for handout in two.dispatch(5)] == ["a"]


def test_a_known_page_is_told_as_it_is_stored_and_left(two: TimedNamespace) -> None:
    two.add(new_page("new/1", importance=7.0), k=1)
    two.observe(two.dispatch(k=1)[0], 500.0)
    handout = fetched(two, "old/1")
    stored = adopt(two, handout, new_page("new/1"), 1)
    assert Row.unpack(stored).importance == 7.0  # type: ignore[arg-type]
    assert two.row(page_of("new/1"), 1).importance == 7.0


def test_a_page_that_waits_for_its_first_visit_is_replaced(two: TimedNamespace) -> None:
    two.add(new_page("new/1", importance=7.0), k=1)
    handout = fetched(two, "old/1")
    assert adopt(two, handout, new_page("new/1"), 1) == 1
    assert leave(two, handout, new_page("new/1"), 1) == 1
    assert two.row(page_of("new/1"), 1).importance == 4.0
    assert two.first_queue(1) == {}
    counts = two.counts()
    assert (counts["pages"], counts["pending"]) == (1, 0)
    assert two.hash("kept", 1) == {"h1": "1", "p0": "1"}
