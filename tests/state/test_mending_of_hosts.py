"""What is kept of single hosts: a key of another type made every call for requests of its partition fail, a lost name its own."""

from __future__ import annotations

import pytest
from timed_namespace import TimedNamespace, new_page

from optimal_frontier.errors import StateError
from optimal_frontier.state.mending import mend


def test_a_key_of_a_host_of_another_type_is_put_away_and_other_hosts_go_on(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    assert mend(space) == []
    for name in ("f:1", "retired:1"):
        space.command("DEL", space.key(name))
        space.command("SET", space.key(name), "no list")
    with pytest.raises(StateError, match="another type"):
        space.dispatch(4)
    assert mend(space) == ["f:1 is a string, expected a zset", "retired:1 is a string, expected a list"]
    assert space.names(4) == ["b/1"]
    assert mend(space) == []


@pytest.mark.parametrize("damaged", [b"\xff\xfe", b"c"])
def test_a_name_that_was_overwritten_comes_back(space: TimedNamespace, damaged: bytes) -> None:
    """By the number that its host has in `hosts`, as a crawler mends it."""
    space.add(new_page("a/1"), new_page("b/1"))
    space.command("HSET", space.key("hosts:names"), 1, damaged)
    assert mend(space) == ["host a is not named by its number"]
    assert space.names(4) == ["a/1", "b/1"]
    assert mend(space) == []


def test_a_number_that_is_damaged_takes_no_name(space: TimedNamespace) -> None:
    """Here it is `hosts` that is wrong: the name of the other host, and its own, stand where they belong."""
    space.add(new_page("a/1"), new_page("b/1"))
    for lost in ("c", "b"):
        space.command("HDEL", space.key("hosts"), lost)
        space.command("HSET", space.key("hosts"), "a", 2)
        assert mend(space) == []
    assert space.command("HMGET", space.key("hosts:names"), 1, 2) == [b"a", b"b"]


@pytest.mark.parametrize("lost", ["hosts", "hosts:names"])
def test_a_host_that_is_new_takes_no_number_of_another(space: TimedNamespace, lost: str) -> None:
    """Where one of the two hashes was lost: requests for the pages of one host went to the other."""
    space.add(new_page("a/1"), new_page("b/1"))
    space.command("DEL", space.key(lost))
    space.add(new_page("c/1"))
    assert space.command("HGET", space.key("hosts"), "c") == b"3"
    assert space.command("HGET", space.key("hosts:names"), 3) == b"c"
    assert "c/1" in space.names(4)
