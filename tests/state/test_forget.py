"""Forgetting: nothing of a page stays, wherever it stood."""

from __future__ import annotations

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.messages import REST
from optimal_frontier.state.partition import count_calls
from optimal_frontier.state.rows import RETIRED

PAGE = page_of("h/1")


def put(space: TimedNamespace, where: str) -> None:
    if where == "waiting":
        space.add(new_page("h/1"), new_page("h/2"))
    elif where == "queued":
        space.visit("h/1", "h/2")
    elif where == "leased":
        space.add(new_page("h/1"), new_page("h/2"))
        space.dispatch(2)
    else:
        space.add(new_page("h/1"), new_page("h/2"))
        for handout in space.dispatch(2):
            space.observe(handout, op=REST, state=RETIRED)
        space.run(count_calls(0, {"retired": 2, "pending": -2}))


@pytest.mark.parametrize("where", ["waiting", "queued", "leased", "retired"])
def test_nothing_of_a_page_stays(space: TimedNamespace, where: str) -> None:
    put(space, where)
    assert space.call("forget", PAGE) == [1]
    assert space.call("forget", PAGE) == [0]
    client = space.connection.client
    for key in client.scan_iter(f"{space.prefix(0)}*"):
        if key.rsplit(b":", 1)[-1] not in (b"retired", b"1"):
            assert PAGE not in client.dump(key), key
    assert space.command("HLEN", space.key("pages")) == 1
    assert space.counts()["pages"] == 1
    assert space.hash("kept") == {"h1": "1", "p0": "1"}
    assert space.state().forgotten == 1
    assert space.ask().forgotten == 1


def test_the_lease_of_a_forgotten_page_is_over(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    space.call("forget", PAGE)
    assert space.observe(handout) == 0
    counts = space.counts()
    assert counts["dispatched"] - counts["ended"] == 0


def test_the_next_page_of_the_host_takes_its_place(space: TimedNamespace) -> None:
    space.add(new_page("h/1"), new_page("h/2"), new_page("i/1"))
    space.call("forget", PAGE)
    assert space.names(5) == ["h/2", "i/1"]


def test_a_name_that_a_page_had_can_be_forgotten(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    space.command("HSET", space.key("aliases"), page_of("old/1"), b"x", page_of("old/2"), b"x", page_of("old/3"), b"x")
    assert space.call("forget", PAGE, page_of("old/3")) == [1, 0]
    assert space.command("HLEN", space.key("aliases")) == 2


def test_a_forgotten_page_is_new_again(space: TimedNamespace) -> None:
    space.visit("h/1")
    space.call("forget", PAGE)
    assert space.add(new_page("h/1")) == [1]
    assert space.dispatch()[0].row.visits == 0


def test_a_host_that_is_shut_is_not_asked_about_once_its_last_page_is_forgotten(space: TimedNamespace) -> None:
    """Else every poll would find something to do at once, and in the end no other host would have its turn."""
    space.add(new_page("h/1"), new_page("h/2"))
    [first] = space.dispatch(2, host_delay=10.0)
    left = page_of("h/2") if first.page == PAGE else PAGE
    assert space.call("forget", left) == [1]
    assert space.command("ZCARD", space.key("f")) == 0
    space.advance(20.0)
    assert space.ask(2, host_delay=10.0).wait > 0.0
