"""Keys of single hosts that are of another type: one of them made every call for requests of its partition fail."""

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
