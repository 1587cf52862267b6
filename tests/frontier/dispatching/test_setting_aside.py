"""Pages that cannot be read are put aside; not those whose hosts have lost their names, which can be put back."""

from __future__ import annotations

from timed_namespace import TimedNamespace, new_page

from optimal_frontier.frontier.dispatching.setting_aside import set_aside
from optimal_frontier.state.put_aside import read_put_aside

REASON = "its URL is refused: unreadable"


def test_names_of_hosts_that_were_lost_are_put_back_and_no_page_is_put_aside(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    (page,) = space.command("ZRANGE", space.key("f:1"), 0, -1)
    space.command("DEL", space.key("hosts:names"))
    set_aside(space, 0, {page: REASON})
    assert space.command("HMGET", space.key("hosts:names"), 1, 2) == [b"a", b"b"]
    assert not list(read_put_aside(space, 0))
    assert space.names(4) == ["a/1", "b/1"]


def test_a_page_that_cannot_be_read_is_put_aside(space: TimedNamespace) -> None:
    space.add(new_page("a/1"))
    (page,) = space.command("ZRANGE", space.key("f:1"), 0, -1)
    set_aside(space, 0, {page: REASON})
    assert [one.page for one in read_put_aside(space, 0)] == [page]
    assert space.names(4) == []
