"""Revisions: a head is rewritten only if nobody has visited the page since it was read, and nobody has it."""

from __future__ import annotations

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import REST
from optimal_frontier.state.rows import ACTIVE, DONE, RETIRED

PAGE = page_of("h/1")


def test_a_page_that_somebody_wants_now_is_due_now(space: TimedNamespace) -> None:
    space.visit("h/1", wait=1e6)
    row = space.row(PAGE)
    wanted = row._replace(a=0.0, s=0.0, e=0.0, l=0.0, flags=1)
    assert space.revise(PAGE, row.b, wanted, counters="forced=1") == 1
    assert space.names() == ["h/1"]
    assert space.row(PAGE) == wanted
    assert space.counts()["forced"] == 1


def test_what_was_visited_since_stays(space: TimedNamespace) -> None:
    space.visit("h/1", wait=0.0)
    row = space.row(PAGE)
    space.advance(1.0)
    space.observe(space.dispatch()[0], 10.0)
    newer = space.row(PAGE)
    assert space.revise(PAGE, row.b, row._replace(flags=1), counters="forced=1") == 0
    assert space.row(PAGE) == newer
    assert "forced" not in space.counts()


def test_pages_in_hands_or_before_their_first_visit_are_told_apart(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    row = space.row(PAGE)
    assert space.revise(PAGE, 0.0, row) == 2
    handout = space.dispatch()[0]
    assert space.revise(PAGE, 0.0, row) == 2
    assert space.observe(handout) == 1
    assert space.revise(page_of("h/2"), 0.0, row) == 0


@pytest.mark.parametrize("state", [RETIRED, DONE])
def test_a_page_comes_back_to_the_queue_and_leaves_it(space: TimedNamespace, state: int) -> None:
    space.visit("h/1", wait=5.0)
    row = space.row(PAGE)
    assert space.revise(PAGE, row.b, row._replace(state=state)) == 1
    assert space.score(PAGE) is None
    assert space.revise(PAGE, row.b, row._replace(state=ACTIVE)) == 1
    assert space.due_in("h/1") == pytest.approx(5.0, abs=1e-5)


def test_a_page_that_was_retired_unseen_comes_back(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    assert space.observe(handout, op=REST, state=RETIRED, b=0.0, visits=0) == 1
    row = space.row(PAGE)
    assert space.revise(PAGE, 0.0, row._replace(state=ACTIVE, b=space.at, a=0.0, s=0.0, e=0.0, l=0.0)) == 1
    assert space.names() == ["h/1"]


def test_memory_is_left_replaced_or_forgotten(space: TimedNamespace) -> None:
    space.visit("h/1")
    row = space.row(PAGE)
    for memory, stored in ((Memory(size=5), 1), (None, 1), (NOTHING_REMEMBERED, 0)):
        assert space.revise(PAGE, row.b, row, memory) == 1
        assert space.command("HEXISTS", space.key("memory"), PAGE) == stored
