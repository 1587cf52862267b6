"""Layouts of packed values: one home, values of an earlier build are read, damaged ones are none."""

from __future__ import annotations

import math
import struct

import pytest
from timed_namespace import TimedNamespace, new_page

from optimal_frontier.state.layouts import STATE_FIELDS, TURN_FIELDS, HostTurns, PartitionState, is_sound, pack_doubles
from optimal_frontier.state.scripts import CONSTANTS


@pytest.mark.parametrize(("kind", "fields", "before"), [(PartitionState, STATE_FIELDS, 7), (HostTurns, TURN_FIELDS, 2)])
def test_a_value_comes_back_and_one_of_before_with_zeros(kind: type[PartitionState | HostTurns], fields: object, before: int) -> None:
    value = kind(*(1.5 + at for at in range(len(kind._fields))))
    stored = pack_doubles(value)
    assert len(stored) == 8 * len(kind._fields)
    assert kind.stored(stored) == value
    assert kind.stored(stored[: 8 * before]) == (*value[:before], *(0.0 for _ in value[before:]))
    assert [kind.stored(one) for one in (None, b"", b"short", stored[:-1], stored + bytes(8))] == [None] * 5


def test_what_is_no_number_is_read_and_not_sound() -> None:
    assert is_sound(PartitionState())
    assert not is_sound(None)
    assert not is_sound(HostTurns(free=math.inf))
    assert not is_sound(PartitionState(log_price=math.nan))


def test_scripts_and_python_read_the_same_of_a_value_of_before(space: TimedNamespace) -> None:
    space.command("SET", space.key("d"), struct.pack("<7d", space.at, 1.0, 0.0, 1.25, 0.5, 3.0, 4.0))
    space.add(new_page("h/1"))
    told = space.ask(1)
    assert (told.log_price, told.plan, told.forgotten, told.run, told.dispatches) == (1.25, 3, 4, 0.0, 0)
    assert space.state() == PartitionState(space.at, 1.0, 0.0, 1.25, 0.5, 3.0, 4.0, clock=space.at)
    assert len(space.command("GET", space.key("d"))) == struct.calcsize(str(CONSTANTS["STATE_FORMAT"]))


def test_time_goes_on_where_the_clock_is_ahead_and_that_is_known(space: TimedNamespace) -> None:
    """To scripts and to Python; forgotten after a minute, and nothing is made of a clock that is behind."""
    hour = 3600e6
    for ahead, since, expected in ((hour, 5e6, 5e6), (hour, 61e6, hour + 61e6), (2e6, 5e6, 7e6), (-hour, 5e6, 0.0), (0.0, 5e6, 5e6)):
        state = PartitionState(at=space.at - ahead - since, clock=space.at - since)
        space.write_state(state)
        assert state.now(space.at) - state.at == expected
        assert (space.ask(0).now * 1e6 - state.at) == pytest.approx(expected, abs=1.0)


def test_a_new_partition_is_the_same_to_scripts_and_to_python(space: TimedNamespace) -> None:
    space.command("DEL", space.key("d"))
    space.call("forget", b"")
    assert space.state() == PartitionState()
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    assert space.call("forget", handout.page) == [1]
    assert space.state() == PartitionState(at=space.at, forgotten=1.0, clock=space.at)
