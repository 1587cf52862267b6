"""The log of visits, and what is stored of clocks of neighbourhoods."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.clocks import BEGINNING, group_keys, read_clocks, read_clocks_of, read_visits, store_calls
from optimal_frontier.state.layouts import PartitionState
from optimal_frontier.state.partition import observe_calls
from optimal_frontier.state.rows import SIGNALLED
from optimal_frontier.state.visit_log import CHANGED, SAMPLED, VISIT, WELL, sound_visits

NAMES = ["h/1", "h/2", "h/3"]


def send(space: TimedNamespace, bits: list[int], *, is_logged: bool = True, tokens: float = 0.0, **row: object) -> list[int]:
    """Visit what is due in the order of its names, with these bits; ``tokens`` are added to those of the first lease."""
    handouts = sorted(space.dispatch(3), key=lambda handout: handout.record["url"])
    seen = [space.observation(handout, shape=3.0, time=60.0, **row) for handout in handouts]
    for one, bit in zip(seen, bits, strict=True):
        one.bit = bit
    given = [one.handout.token for one in seen]
    given[0] += tokens
    return [value for reply in space.run(observe_calls(0, seen, given, is_logged=is_logged)) for value in reply]


def test_visits_that_gave_a_bit_are_logged_with_what_was_known_before(space: TimedNamespace) -> None:
    space.visit(*NAMES, wait=0.0, slope=0.0, shape=2.0, time=50.0, unseen=4.0, directory=7, pattern=9)
    first = space.row(page_of("h/1"))
    space.advance(10.0)
    assert send(space, [1, -1, 0]) == [1, 1, 1]
    visits, last, _ = read_visits(space, {0: BEGINNING}, space.now())[0]
    assert [page.tobytes()[:12] for page in visits["page"]] == [page_of("h/1"), page_of("h/3")]
    assert visits["flags"].tolist() == [CHANGED | SAMPLED | WELL, SAMPLED | WELL]
    assert (visits["until"] - visits["since"]).tolist() == [14e6, 14e6]
    assert (visits["shape"].tolist(), visits["time"].tolist()) == ([2.0, 2.0], [50.0, 50.0])
    assert visits[["host", "directory", "pattern"]].tolist() == [(first.host, 7, 9)] * 2
    after = space.row(page_of("h/1"))
    told = visits[0][["a", "s", "e", "l", "new_shape", "new_time", "row_flags"]].item()
    assert told == (after.a, after.s, after.e, after.l, after.shape, after.time, after.flags)
    assert visits["until"][0] == after.b
    assert len(read_visits(space, {0: last}, space.now())[0].visits) == 0
    space.advance(20.0)
    send(space, [0, 0, 0])
    again = read_visits(space, {0: last}, space.now())[0]
    assert again.visits["shape"].tolist() == [3.0] * 3
    assert len(read_visits(space, {0: BEGINNING}, space.now())[0].visits) == 5


def test_a_visit_that_was_not_counted_is_not_logged(space: TimedNamespace) -> None:
    space.visit(*NAMES, wait=0.0)
    space.advance(10.0)
    assert send(space, [1, 0, 1], tokens=2.0) == [0, 1, 1]
    assert [page.tobytes()[:12] for page in read_visits(space, {0: BEGINNING}, space.now())[0].visits["page"]] == [
        page_of("h/2"),
        page_of("h/3"),
    ]


def test_partitions_are_read_together_each_to_its_end(two: TimedNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one two entries at a time are not all, of the other they are; each is read from where it was read before, and has its price."""
    monkeypatch.setattr("optimal_frontier.state.clocks._READ_COUNT", 2)
    packed = np.zeros(1, VISIT)
    for name in ("a", "s", "e", "l", "shape", "time", "new_shape", "new_time"):
        packed[name] = 1.0
    packed["since"], packed["until"] = 1e6, 2e6
    sent = {0: 7, 1: 2}
    for k, entries in sent.items():
        packed["host"] = k
        two.commands([["XADD", two.key("visited", k), f"1-{i + 1}", "v", packed.tobytes()] for i in range(entries)], partition=k)
        two.command("SET", two.key("d", k), struct.pack("<7d", *PartitionState(log_price=k + 0.5)[:7]), partition=k)
    read = read_visits(two, {0: "1-1", 1: BEGINNING}, two.now())
    assert {k: (one.visits["host"].tolist(), one.last, one.log_price) for k, one in read.items()} == {
        0: ([0] * 6, "1-7", 0.5),
        1: ([1] * 2, "1-2", 1.5),
    }


def test_a_visit_whose_time_somebody_chose_is_no_sample(space: TimedNamespace) -> None:
    space.visit(*NAMES, wait=0.0, flags=SIGNALLED)
    space.advance(10.0)
    send(space, [1, 1, 1])
    assert read_visits(space, {0: BEGINNING}, space.now())[0].visits["flags"].tolist() == [CHANGED | WELL] * 3


@pytest.mark.parametrize("field", ["until", "since", "shape", "time", "s", "e", "l", "new_shape", "new_time"])
def test_visits_that_nobody_can_have_counted_are_passed_over(field: str) -> None:
    visits = np.zeros(2, VISIT)
    visits["since"], visits["until"], visits["l"] = 1e6, 2e6, 5.0
    assert len(sound_visits([visits.tobytes()], 3.0)) == 2
    visits[field][1] = np.nan
    assert len(sound_visits([visits.tobytes(), b"text"], 3.0)) == 1
    visits["until"][0] = 100e6
    assert len(sound_visits([visits.tobytes()], 3.0)) == 0


def test_nothing_is_logged_unless_it_is_wanted(space: TimedNamespace) -> None:
    space.visit(*NAMES, wait=0.0)
    space.advance(10.0)
    send(space, [1, 1, 1], is_logged=False)
    assert not space.command("EXISTS", space.key("visited"))


def test_first_visits_are_not_logged(space: TimedNamespace) -> None:
    space.add(*(new_page(name) for name in NAMES))
    send(space, [-1, -1, -1])
    assert not space.command("EXISTS", space.key("visited"))


@pytest.mark.parametrize("count", [3, 500])
def test_what_is_stored_is_read_again(space: TimedNamespace, count: int) -> None:
    fence = space.lock()
    keys = group_keys(np.full(count, 5), np.arange(1, count + 1), np.arange(1, count + 1))[:, 3].tolist()
    groups = {key: b"%d" % key for key in keys}
    assert space.run(store_calls(0, fence, "17-0", groups, {5: b"host"}, []))[-1] == 1
    stored = read_clocks(space, 0)
    assert (stored.last, stored.groups, stored.hosts) == ("17-0", groups, {5: b"host"})
    assert space.run(store_calls(0, fence, "18-0", {keys[1]: b"new"}, {}, keys[:1])) == [1]
    some = read_clocks_of(space, 0, 5, keys[:3])
    assert (some.last, some.groups, some.hosts) == ("18-0", {keys[1]: b"new", keys[2]: groups[keys[2]]}, {5: b"host"})


def test_a_planner_that_was_overtaken_stores_nothing(space: TimedNamespace) -> None:
    fence = space.lock()
    assert space.run(store_calls(0, fence - 1, "17-0", {1 << 56: b"x"}, {}, [])) == [-1]
    assert not space.command("EXISTS", space.key("clocks"))
