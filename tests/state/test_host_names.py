"""Handouts name their hosts as the server does now: a number may be another host's on a server that has lost something."""

from __future__ import annotations

from timed_namespace import TimedNamespace, new_page


def test_a_name_that_is_no_text_ends_nothing(space: TimedNamespace) -> None:
    space.add(new_page("a/1"))
    space.command("HSET", space.key("hosts:names"), 1, b"\xff")
    assert [handout.host for handout in space.dispatch()] == ["\N{REPLACEMENT CHARACTER}"]


def test_a_host_without_a_name_ends_nothing(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    space.command("HDEL", space.key("hosts:names"), 1)
    assert sorted(handout.host for handout in space.dispatch(2)) == ["", "b"]


def test_handouts_of_an_emptied_namespace_have_the_new_names(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    assert {handout.host for handout in space.ask(5).handouts} == {"a", "b"}
    keys = list(space.connection.client_of(space.prefix(0)).scan_iter(match=space.prefix(0) + "*"))
    space.command("DEL", *keys)
    space.start()
    space.add(new_page("c/1"))
    (handout,) = space.ask(5).handouts
    assert (handout.host, handout.record["url"]) == ("c", "http://c/1")


def test_a_server_that_lost_the_last_hosts_may_have_other_numbers(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    (first, second) = sorted(space.ask(5).handouts, key=lambda handout: handout.host)
    # It was started anew from a file that lacked the last hosts, and another crawler brought them in another order.
    names = space.key("hosts:names")
    space.command("HSET", names, first.row.host, "b", second.row.host, "a")
    space.advance(1e7)
    again = {handout.row.host: handout.host for handout in space.ask(5).handouts}
    assert again == {first.row.host: "b", second.row.host: "a"}
