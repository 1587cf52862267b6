"""Plans: written only by the planner that holds the lock, and only over what no visit has overtaken."""

from __future__ import annotations

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.messages import REST
from optimal_frontier.state.rows import CHECKED, DONE, SIGNALLED, UNCONDITIONAL

LATER = (50.0, 2.0, 1.0, 1e9)


def test_one_planner_holds_the_lock_and_each_new_one_has_a_higher_fence(space: TimedNamespace) -> None:
    first = space.call("take_planner_lock", "a", 10_000)
    assert space.call("take_planner_lock", "a", 10_000) == first
    assert space.call("take_planner_lock", "b", 10_000) == 0
    assert space.call("take_planner_lock", "b", 0) == 0
    assert space.call("take_planner_lock", "a", 0) == 1
    assert space.call("take_planner_lock", "b", 10_000) == first + 1


def test_new_numbers_move_a_page_and_leave_all_else(space: TimedNamespace) -> None:
    space.visit("h/1", wait=10.0, shape=3.0)
    before = space.row(page_of("h/1"))
    assert space.write_plan(space.lock(), (page_of("h/1"), before.b, LATER)) == 1
    assert space.row(page_of("h/1")) == before._replace(a=50.0, s=2.0, e=1.0, l=1e9)
    assert space.due_in("h/1") == pytest.approx(50.0, abs=1e-5)


def test_numbers_from_another_visit_than_the_stored_one_are_dropped(space: TimedNamespace) -> None:
    space.visit("h/1", wait=0.0)
    old = space.row(page_of("h/1")).b
    space.advance(1.0)
    space.observe(space.dispatch()[0], 10.0)
    before = space.row(page_of("h/1"))
    assert space.write_plan(space.lock(), (page_of("h/1"), old, LATER)) == 0
    assert space.row(page_of("h/1")) == before
    assert space.due_in("h/1") == pytest.approx(10.0, abs=1e-5)


def test_pages_under_way_or_in_no_queue_or_waiting_or_unknown_keep_theirs(space: TimedNamespace) -> None:
    space.visit("h/leased", "h/rest", wait=0.0)
    space.advance(1.0)
    handed = {handout.record["url"]: handout for handout in space.dispatch(2)}
    assert space.observe(handed["http://h/rest"], op=REST, state=DONE) == 1
    space.add(new_page("h/new"))
    rows = [
        (page_of(f"h/{name}"), b, LATER)
        for name in ("leased", "rest", "new", "unknown")
        for b in (0.0, space.row(page_of("h/leased")).b, space.at)
    ]
    assert space.write_plan(space.lock(), *rows) == 0
    assert space.score(page_of("h/leased")) == handed["http://h/leased"].token
    assert space.score(page_of("h/rest")) is space.score(page_of("h/new")) is None


@pytest.mark.parametrize("flag", [UNCONDITIONAL, SIGNALLED, CHECKED])
def test_pages_that_somebody_wants_sooner_keep_their_numbers(space: TimedNamespace, flag: int) -> None:
    """The plan may have read them before that was said."""
    space.visit("h/1", wait=10.0, flags=flag)
    row = space.row(page_of("h/1"))
    assert space.write_plan(space.lock(), (page_of("h/1"), row.b, LATER)) == 0
    assert space.row(page_of("h/1")) == row


def test_a_planner_that_was_overtaken_writes_nothing(space: TimedNamespace) -> None:
    space.visit("h/1", wait=10.0)
    old = space.lock()
    space.call("take_planner_lock", "planner", 0)
    new = space.lock()
    row = space.row(page_of("h/1"))
    assert space.write_plan(old, (page_of("h/1"), row.b, LATER)) == -1
    assert space.publish(old, "3.0") == -1
    assert space.row(page_of("h/1")) == row
    assert space.state().log_price == 0.0
    assert space.command("EXISTS", space.key("plan")) == 0
    assert space.publish(new, "3.0") == 1


def test_a_planner_that_slept_while_the_server_lost_its_locks_writes_nothing(space: TimedNamespace) -> None:
    """The next planner's token is another one, though nothing is known of the last: here, and on a server that was restored."""
    space.visit("h/1")
    b = space.row(page_of("h/1")).b
    kept = [["DUMP", space.key(name)] for name in ("fence",)]
    space.call("take_planner_lock", "first", 10_000)
    (before,) = space.commands(kept)
    space.call("take_planner_lock", "first", 0)
    space.advance(1.0)
    old = space.call("take_planner_lock", "sleeper", 10_000)
    for restored in ([], [["RESTORE", space.key("fence"), 0, before]]):
        space.commands([["DEL", space.key("fence"), space.key("planner")], *restored])
        space.advance(1.0)
        new = space.call("take_planner_lock", "other", 10_000)
        assert new > old
        assert space.publish(old, "2.0") == -1
        assert space.write_plan(old, (page_of("h/1"), b, (5.0, 0.0, 0.0, 1e9))) == -1
        assert space.write_plan(new, (page_of("h/1"), b, (5.0, 0.0, 0.0, 1e9))) == 1


def test_a_plan_is_there_for_crawlers_and_readers(space: TimedNamespace) -> None:
    fence = space.lock()
    assert space.publish(fence, "3.5", 0.25, b"priors", b"prices") == 1
    assert (space.state().log_price, space.state().step) == (3.5, 0.25)
    assert space.hash("plan") == {"number": "1", "time": "1.5"}
    assert space.command("MGET", space.key("priors"), space.key("prices")) == [b"priors", b"prices"]
    assert space.ask().plan == 1
    assert space.publish(fence) == 2
    assert space.ask().plan == 2


def test_without_a_new_price_the_live_one_stays(space: TimedNamespace) -> None:
    space.set_price(1.25)
    space.publish(space.lock(), "", 0.5)
    assert (space.state().log_price, space.state().step) == (1.25, 0.5)


def test_the_last_hundred_plans_are_kept(space: TimedNamespace) -> None:
    fence = space.lock()
    for _ in range(103):
        space.publish(fence)
    assert space.command("XLEN", space.key("plans")) == 100


def test_partitions_have_planners_of_their_own(two: TimedNamespace) -> None:
    assert two.call("take_planner_lock", "a", 10_000, k=0) > 0
    fence = two.call("take_planner_lock", "b", 10_000, k=1)
    two.publish(fence, "2.0", k=1)
    assert (two.state(0).log_price, two.state(1).log_price) == (0.0, 2.0)
