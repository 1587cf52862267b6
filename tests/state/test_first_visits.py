"""First visits: their order, their hosts, their share, and their limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from timed_namespace import TimedNamespace, name_of, new_page, page_of

from optimal_frontier.state.messages import RELEASE, REST
from optimal_frontier.state.partition import FULL_HOST, FULL_PATTERN, KNOWN, NEW, REPLACED
from optimal_frontier.state.rows import DONE, RETIRED, TRANSIENT, Row, split_tail


def test_a_page_is_new_once(space: TimedNamespace) -> None:
    assert space.add(new_page("h/1"), new_page("h/2"), new_page("h/1")) == [NEW, NEW, KNOWN]
    assert space.add(new_page("h/1")) == [KNOWN]
    assert space.counts() == {"pages": 2, "pending": 2, "arrivals": 3}


def test_higher_priority_goes_first_then_higher_importance_then_who_came_first(space: TimedNamespace) -> None:
    space.add(new_page("a/late"), new_page("b/late"), new_page("a/heavy", importance=5.0), new_page("b/heavier", stated=6.0))
    space.add(new_page("c/urgent", priority=1.0), new_page("c/last", priority=-1.0), new_page("a/later"))
    assert space.names(10) == ["c/urgent", "b/heavier", "a/heavy", "a/late", "b/late", "a/later", "c/last"]


def test_one_host_does_not_hide_the_others(space: TimedNamespace) -> None:
    space.add(*(new_page(f"big/{i}", priority=1.0) for i in range(300)))
    space.add(new_page("small/1"))
    handed = space.names(64, per_host=2)
    assert handed[:2] == ["big/0", "big/1"]
    assert "small/1" in handed
    assert len(handed) == 3


def test_a_host_with_full_slots_is_passed_over(space: TimedNamespace) -> None:
    space.add(*(new_page(f"{host}/{i}") for host in "ab" for i in range(4)))
    first = space.dispatch(1)[0]
    assert name_of(first) == "a/0"
    assert space.names(8, room={first.row.host: 1}) == ["a/1", "b/0", "b/1", "b/2", "b/3"]
    assert space.names(8, room={first.row.host: 0}) == []
    assert space.names(8) == ["a/2", "a/3"]


@pytest.mark.parametrize("at_once", [1, 2, 10])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_first_visits_get_their_share_while_others_are_due(space: TimedNamespace, share: float, at_once: int) -> None:
    """Also those of a small budget, which has one fetch at a time."""
    space.visit(*(f"old/{i}" for i in range(60)), wait=1.0)
    space.advance(2.0)
    space.add(*(new_page(f"new/{i}") for i in range(60)))
    handed = [name for _ in range(40 // at_once) for name in space.names(at_once, share=share)]
    assert sum(name.startswith("new/") for name in handed) == pytest.approx(40 * share, abs=1)


def test_first_visits_take_all_that_is_left(space: TimedNamespace) -> None:
    space.visit("old/1", wait=1.0)
    space.visit("old/2", wait=100.0)
    space.advance(2.0)
    space.add(*(new_page(f"new/{i}") for i in range(5)))
    handed = space.names(6, share=0.0)
    assert handed[0] == "old/1"
    assert sorted(handed[1:]) == [f"new/{i}" for i in range(5)]


def test_a_released_first_visit_goes_back_to_its_place(space: TimedNamespace) -> None:
    space.add(*(new_page(f"h/{i}") for i in range(4)))
    handed = space.dispatch(2)
    assert space.send(*(space.observation(handout, op=RELEASE) for handout in handed)) == [1, 1]
    assert space.names(4) == ["h/0", "h/1", "h/2", "h/3"]


def test_a_first_visit_has_no_lateness(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    assert handout.lateness is None
    assert handout.elapsed == -1.0
    assert handout.row.b == 0.0


def test_limits_count_what_is_known_of_a_host_and_of_a_pattern(space: TimedNamespace) -> None:
    host = [new_page(f"h/{i}", limits=(2, 0), pattern=i) for i in range(4)]
    assert space.add(*host) == [NEW, NEW, FULL_HOST, FULL_HOST]
    assert space.add(new_page("h/9", limits=(3, 0))) == [NEW]
    pattern = [new_page(f"p{i}/1", limits=(0, 2), pattern=77) for i in range(4)]
    assert space.add(*pattern) == [NEW, NEW, FULL_PATTERN, FULL_PATTERN]
    assert space.add(new_page("h/t", state=TRANSIENT)) == [NEW]
    assert space.command("HGET", space.key("kept"), "h1") == b"3"


def test_a_page_that_is_yielded_again_gets_the_new_record_and_keeps_an_importance_that_was_stated(space: TimedNamespace) -> None:
    space.add(new_page("h/1", stated=3.0))
    assert space.add(new_page("h/1")) == [KNOWN]
    assert space.add(replace(new_page("h/1"), record=b"\x01/1?again")) == [REPLACED]
    stated, record = split_tail(space.command("HGET", space.key("pages"), page_of("h/1")))
    assert (stated, record) == (3.0, b"\x01/1?again")
    assert space.add(new_page("h/1", stated=4.0)) == [REPLACED]
    assert space.dispatch()[0].stated == 4.0


def test_a_tail_that_is_replaced_under_way_survives_the_observation(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    assert space.add(new_page("h/1", stated=2.5)) == [REPLACED]
    assert space.observe(handout, wait=0.0) == 1
    space.advance(1.0)
    again = space.dispatch()[0]
    assert (again.stated, again.row.visits) == (2.5, 1)


def test_a_page_that_is_yielded_twice_in_a_call_is_what_was_said_last(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    assert space.add(new_page("h/1", stated=3.0), replace(new_page("h/1"), record=b"\x01/1?b")) == [REPLACED, REPLACED]
    assert split_tail(space.command("HGET", space.key("pages"), page_of("h/1"))) == (3.0, b"\x01/1?b")


@pytest.mark.parametrize("state", [RETIRED, DONE])
def test_a_page_in_no_queue_is_told_as_it_is_stored(space: TimedNamespace, state: int) -> None:
    space.add(new_page("h/1"))
    assert space.observe(space.dispatch()[0], op=REST, state=state) == 1
    (told,) = space.add(new_page("h/1"))
    assert Row.unpack(told).state == state
    assert space.dispatch(5) == []


def test_an_alias_is_known(space: TimedNamespace) -> None:
    space.command("HSET", space.key("aliases"), page_of("h/1"), b"x")
    assert space.add(new_page("h/1"), new_page("h/2")) == [KNOWN, NEW]


def test_in_a_first_pass_pinned_and_forced_pages_keep_their_times(space: TimedNamespace) -> None:
    """First visits go before everything that is due but these, which go when they are due, the share of first visits beside them."""
    space.visit("a/late", wait=1.0)
    space.visit("a/pinned", wait=2.0, e=2.0, longest=2.0, min_interval=2.0, max_interval=2.0)
    space.visit("a/failed", wait=2.0, e=2.0, longest=2.0, min_interval=1.0, max_interval=9.0)
    space.add(*(new_page(f"{host}/new{i}") for host in "ab" for i in range(10)))
    assert all("/new" in name for name in space.names(2, share=1.2))
    space.advance(2.5)
    assert space.names(1, share=1.2) == ["a/pinned"]
    assert all("/new" in name for name in space.names(18, share=1.2))
    assert sorted(space.names(3, share=1.2)) == ["a/failed", "a/late"]


def test_pinned_pages_that_are_too_many_leave_first_visits_their_share(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(40)), wait=1.0, e=1.0, longest=1.0, min_interval=1.0, max_interval=1.0)
    space.add(*(new_page(f"b/new{i}") for i in range(40)))
    space.advance(5.0)
    handed = [name for _ in range(30) for name in space.names(1, share=1.2)]
    assert sum("/new" in name for name in handed) == pytest.approx(6, abs=1)


def test_a_pinned_page_of_a_shut_host_is_next_when_it_opens(space: TimedNamespace) -> None:
    """In a first pass of a host with a delay, with many known pages that are due there as well."""
    space.visit(*(f"a/old{i}" for i in range(60)), wait=1.0)
    space.visit("a/pinned", wait=10.0, e=10.0, longest=10.0, min_interval=10.0, max_interval=10.0)
    space.add(*(new_page(f"a/new{i}") for i in range(100)))
    times, start = [], space.now()
    for _ in range(400):
        for handout in space.dispatch(8, share=1.2, host_delay=1.0):
            if name_of(handout) == "a/pinned":
                times.append(space.now() - start)
                space.observe(handout, 10.0, e=10.0, longest=10.0)
            else:
                space.observe(handout, 1.0)
        space.advance(0.25)
    assert len(times) == 9  # of a hundred seconds
    assert times[0] == pytest.approx(10.0, abs=1.3)
    assert all(9.7 <= after - before <= 11.3 for before, after in pairwise(times))


def test_a_host_stands_by_its_first_page_whatever_joins_or_is_handed_out(space: TimedNamespace) -> None:
    """Hosts are offered by the rank of their first pages, so a page of a high priority brings its host to the front."""
    space.add(*(new_page(f"{host}/{i}") for host in "abc" for i in range(3)))
    space.add(replace(new_page("c/urgent"), priority=5))
    assert space.names(1) == ["c/urgent"]
    for host in "abc":
        number = int(space.command("HGET", space.key("hosts"), host))
        first = space.command("ZRANGE", f"{space.key('f:')}{number}", 0, 0)[0]
        assert space.command("ZSCORE", space.key("f"), number) == space.command("ZSCORE", f"{space.key('f:')}{number}", first)
    assert space.names(9) == [f"{host}/{i}" for host in "abc" for i in range(3)]
    assert space.command("EXISTS", space.key("f")) == 0


def test_first_visits_of_a_host_that_is_shut_most_of_the_time_save_their_share_up(space: TimedNamespace) -> None:
    """They have their share of all handouts then, not of what such a host lets through, as far as it lets them."""
    space.visit(*(f"slow/{i}" for i in range(60)), *(f"quick/{i}" for i in range(60)), wait=1.0)
    space.add(*(new_page(f"slow/new{i}") for i in range(500)))
    handed: list[str] = []
    for _ in range(20):
        for turn in range(40):
            space.advance(1.0)
            handout = space.dispatch(1, share=0.2, budget=1.0)[0]
            handed.append(name_of(handout))
            space.observe(handout, 1.0)
            if turn == 7:
                space.hold("slow", 32.5)
    assert 100 < sum("/new" in name for name in handed) <= 161


def test_first_visits_that_were_saved_up_pass_over_no_pinned_page(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(8)), wait=1.0)
    space.visit("b/pinned", wait=50.5, e=50.5, longest=50.5, min_interval=50.5, max_interval=50.5)
    space.add(*(new_page(f"b/new{i}") for i in range(60)))
    space.hold("b", 50.0)
    for _ in range(49):
        space.advance(1.0)
        space.observe(space.dispatch(1, share=0.2, budget=1.0)[0], 1.0)
    space.advance(2.0)
    assert space.names(1, share=0.2, budget=1.0) == ["b/pinned"]
    handed = []
    for _ in range(10):
        space.advance(1.0)
        handed += space.names(1, share=0.2, budget=1.0)
    assert 6 <= sum("/new" in name for name in handed) <= 9


@pytest.mark.parametrize("share", [0.2, 1.2, 1.5])
def test_a_pinned_page_of_a_host_that_is_shut_most_of_the_time_keeps_its_times(space: TimedNamespace, share: float) -> None:
    """However much first visits have saved up meanwhile, also in a first pass; and it keeps no other page of its host from its turn."""
    pinned = {"e": 60.0, "longest": 60.0}
    space.visit("slow/pinned", wait=60.0, min_interval=60.0, max_interval=60.0, **pinned)
    space.visit(*(f"slow/{i}" for i in range(20)), *(f"quick/{i}" for i in range(50)), wait=60.0)
    space.add(*(new_page(f"slow/new{i}") for i in range(1000)))
    handed: list[str] = []
    for _ in range(620):
        space.advance(1.0)
        for handout in space.dispatch(1, share=share, budget=1.0):
            handed.append(name_of(handout))
            space.observe(handout, 60.0, **(pinned if handed[-1] == "slow/pinned" else {}))
            if handed[-1].startswith("slow"):
                space.hold("slow", 10.0)
    assert 9 <= handed.count("slow/pinned") <= 10
    assert sum(name.startswith("slow/new") for name in handed) > 34
    assert share > 1 or any(name.startswith("slow/") and name[5:].isdigit() for name in handed)


def test_what_was_saved_up_falls_with_the_budget(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(100)), wait=1.0)
    space.add(*(new_page(f"b/new{i}") for i in range(1000)))
    space.hold("b", 65.0)
    for _ in range(60):
        space.advance(1.0)
        for handout in space.dispatch(16, share=0.2, budget=100.0):
            space.observe(handout, 1.0)
    space.advance(6.0)
    firsts = 0
    for _ in range(300):
        space.advance(1.0)
        (handout,) = space.dispatch(1, share=0.2, budget=1.0)
        firsts += handout.row.visits == 0
        space.observe(handout, 1.0)
    assert 60 <= firsts < 90
