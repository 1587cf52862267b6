"""Hosts: delays, mean periods, holds, and full slots hold over all crawlers, and no page of a shut host blocks another's."""

from __future__ import annotations

from itertools import pairwise

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.frontier.dispatching.held_leases import HeldLeases
from optimal_frontier.state.layouts import HostTurns
from optimal_frontier.state.partition import starts_calls, turns_calls

HOSTS = "abcd"


def fill(space: TimedNamespace, pages: int = 8) -> None:
    space.add(*(new_page(f"{host}/{i}") for i in range(pages) for host in HOSTS))


def hosts_of(names: list[str]) -> list[str]:
    return [name[0] for name in names]


def test_a_host_gets_one_request_a_delay(space: TimedNamespace) -> None:
    fill(space)
    seen = []
    for _ in range(3):
        names = space.names(16, host_delay=2.0)
        assert sorted(hosts_of(names)) == list(HOSTS)
        told = space.ask(16, host_delay=2.0)
        assert (told.handouts, told.wait) == ([], pytest.approx(2.0, abs=1e-5))
        space.advance(1.0)
        assert space.names(16, host_delay=2.0) == []
        space.advance(1.0)
        seen += names
    assert len(set(seen)) == 12


def test_revisits_of_a_host_keep_its_delay_and_none_is_lost(space: TimedNamespace) -> None:
    space.visit(*(f"{host}/{i}" for i in range(5) for host in HOSTS), wait=1.0)
    space.advance(2.0)
    seen: list[str] = []
    for _ in range(40):
        names = space.names(16, host_delay=1.0)
        assert len(set(hosts_of(names))) == len(names)
        seen += names
        space.advance(0.5)
    assert len(seen) == len(set(seen)) == 20


def test_a_mean_period_catches_up_a_little(space: TimedNamespace) -> None:
    space.add(*(new_page(f"a/{i}") for i in range(100)))
    handed = 0
    for _ in range(200):
        handed += len(space.dispatch(4, host_period=0.1))
        space.advance(0.012)
    assert handed == pytest.approx(200 * 0.012 / 0.1, abs=2)


def test_a_delay_is_never_undercut_by_catching_up(space: TimedNamespace) -> None:
    space.add(*(new_page(f"a/{i}") for i in range(50)))
    times = []
    for _ in range(300):
        times += [space.now()] * len(space.dispatch(4, host_delay=0.1, host_period=0.1))
        space.advance(0.013)
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.1 - 1e-6


def test_a_hold_keeps_requests_from_a_host_alone(space: TimedNamespace) -> None:
    fill(space, 3)
    assert space.hold("a", 10.0) == 1
    assert space.hold("a", 1.0) == 1
    assert space.hold("nowhere", 1.0) == 0
    assert set(hosts_of(space.names(32))) == set("bcd")
    told = space.ask(32)
    assert (told.handouts, told.wait) == ([], pytest.approx(10.0, abs=1e-5))
    space.advance(10.1)
    assert hosts_of(space.names(32)) == ["a"] * 3
    assert space.counts()["host_holds"] == 2


def test_after_a_hold_first_visits_come_back_even_if_revisits_were_busy_meanwhile(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(8)), wait=0.5)
    space.add(new_page("a/new"))
    space.hold("a", 5.0)
    assert space.names(8, share=0.2) == []
    space.advance(6.0)
    # All that is wanted is due for revisits: nobody asks for first visits now.
    assert all(name != "a/new" for name in space.names(1, share=0.0))
    seen = [name for _ in range(12) for name in space.names(1)]
    assert "a/new" in seen


def test_pages_of_a_held_host_that_are_due_come_with_its_end(space: TimedNamespace) -> None:
    space.visit("a/1", "b/1", wait=1.0)
    space.advance(2.0)
    space.hold("a", 5.0)
    assert space.names(4) == ["b/1"]
    space.advance(5.1)
    assert space.names(4) == ["a/1"]
    assert space.command("EXISTS", space.key("opens")) == 0


def test_more_shut_pages_than_are_looked_at_do_not_hide_an_open_one(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(400)), wait=1.0)
    space.visit("b/1", wait=1.5)
    space.advance(2.0)
    space.hold("a", 50.0)
    seen: list[str] = []
    for _ in range(4):
        seen += space.names(1)
        space.advance(0.01)
    assert seen == ["b/1"]


def test_what_is_left_of_the_budget_goes_to_pages_behind_those_that_wait_for_a_shut_host(space: TimedNamespace) -> None:
    """Though none of them is due yet: those that were put off stood before them, more than one dispatch looks at."""
    space.visit(*(f"a/{i}" for i in range(400)), wait=1.0)
    space.visit("b/1", wait=150.0)
    space.advance(2.0)
    space.hold("a", 50.0)
    seen: list[str] = []
    for _ in range(8):
        seen += space.names(1)
        space.advance(0.01)
    assert seen == ["b/1"]


def test_what_is_due_next_is_not_passed_over_for_what_is_behind_those_that_wait_for_a_shut_host(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(400)), wait=1.0)
    space.visit(*(f"b/{i}" for i in range(20)), wait=60.0)
    space.visit("c/1", wait=3000.0)
    space.advance(2.0)
    space.hold("a", 5.0)
    seen: list[str] = []
    for _ in range(8):
        space.names(1, host_delay=6.0)
        space.advance(0.01)
    for _ in range(30):
        space.advance(1.0)
        seen += space.names(1, host_delay=6.0)
    assert sum(name.startswith("b/") for name in seen) == 5


def test_who_was_shown_pages_of_shut_hosts_alone_asks_again_at_once(space: TimedNamespace) -> None:
    space.visit(*(f"a/{i}" for i in range(200)), wait=1.0)
    space.visit("b/1", wait=1.5)
    space.advance(2.0)
    space.hold("a", 50.0)
    told = space.ask(1)
    assert (told.handouts, told.wait) == ([], 0.0)
    assert space.names(1) == ["b/1"]
    told = space.ask(1)
    assert (told.handouts, told.wait) == ([], pytest.approx(50.0, abs=1e-4))


def test_pages_are_put_off_by_an_hour_at_most_however_many_wait_for_their_host(space: TimedNamespace) -> None:
    """A delay of milliseconds that was taken for seconds kept all pages of a host away for days, also after it had been set right."""
    space.visit(*(f"a/{i}" for i in range(100)), wait=1.0)
    space.advance(2.0)
    assert len(space.names(16, host_delay=500.0)) == 1
    assert space.names(16, host_delay=500.0) == []
    scores = map(float, space.command("ZRANGE", space.key("q"), 0, -1, "WITHSCORES")[1::2])
    minutes = [(score / 1e6 - space.now() - 500.0) / 60.0 for score in scores if score % 2 == 0]
    assert (len(minutes), min(minutes), max(minutes)) == (99, pytest.approx(0.0), pytest.approx(60.0, abs=2.5))
    # Those that find no turn of their own within the hour share it evenly.
    assert sum(at < 30.0 for at in minutes) == pytest.approx(50, abs=10)


def test_full_slots_of_a_host_leave_the_rest(space: TimedNamespace) -> None:
    space.visit(*(f"{host}/{i}" for i in range(4) for host in "ab"), wait=1.0)
    space.advance(2.0)
    number = space.row(page_of("a/0")).host
    assert hosts_of(space.names(8, room={number: 1})).count("a") == 1
    space.advance(0.1)
    assert hosts_of(space.names(8)).count("a") == 3


def test_a_lost_lease_of_a_shut_host_waits_for_its_turn_and_stays_lost(space: TimedNamespace) -> None:
    space.add(new_page("a/1"))
    space.dispatch(1, lease=1.0)
    space.advance(2.0)
    space.hold("a", 5.0)
    assert space.names(1) == []
    assert (space.score(page_of("a/1")) or 0) % 2 == 1
    space.advance(6.0)
    assert space.names(1) == ["a/1"]
    assert space.counts()["leases_expired"] == 1


def awaited(space: TimedNamespace, host: str = "a") -> float:
    """Until when the start of a fetch of a host is awaited, us."""
    number = int(space.command("HGET", space.key("hosts"), host))
    turns = HostTurns.stored(space.command("HGET", space.key("opens"), number.to_bytes(4, "little")))
    assert turns is not None
    return turns.awaited


def test_a_start_that_is_told_late_leaves_the_next_turn_of_its_host_alone(space: TimedNamespace) -> None:
    """Its crawler slept while the host waited in vain; by now another one's fetch is awaited, and that has not begun."""
    space.add(*(new_page(f"a/{i}") for i in range(5)))
    terms = {"host_delay": 1.0, "awaited": 15.0}
    assert len(space.dispatch(**terms)) == 1
    late, begun = awaited(space), space.now() + 0.01
    space.advance(15.1)
    assert len(space.dispatch(**terms)) == 1
    last = awaited(space)
    assert space.run(turns_calls(0, 1.0, 15.0, ["a"]))[0][0] == -1
    for began in (0.0, begun):
        space.run(starts_calls(0, 1.0, [("a", began, late)]))
    assert awaited(space) == last
    space.advance(3.0)
    assert space.dispatch(**terms) == []
    space.run(starts_calls(0, 1.0, [("a", space.now(), last)]))
    space.advance(1.0)
    assert len(space.dispatch(**terms)) == 1


def test_a_host_whose_start_is_awaited_stays_shut_to_those_who_do_not_pace(space: TimedNamespace) -> None:
    space.add(*(new_page(f"a/{i}") for i in range(5)))
    assert len(space.dispatch(host_delay=1.0, awaited=15.0)) == 1
    space.advance(3.0)
    assert space.dispatch(4) == space.dispatch(4) == []
    space.run(starts_calls(0, 1.0, [("a", 0.0, awaited(space))]))
    space.advance(0.1)
    assert len(space.dispatch(4)) == 4


def test_hosts_that_start_at_once_keep_their_own_turns(space: TimedNamespace) -> None:
    """Of one more pages are due, and have got turns of it; what another has of an earlier turn says nothing any more."""
    space.visit("a/0", "a/1", "a/2", "b/0", "c/0", wait=1.0)
    space.advance(2.0)
    assert sorted(hosts_of(space.names(8, host_delay=1.0, awaited=15.0))) == ["a", "b", "c"]
    fields = [int(space.command("HGET", space.key("hosts"), host)).to_bytes(4, "little") for host in "abc"]
    kept = [HostTurns.stored(value) for value in space.command("HMGET", space.key("opens"), *fields)]
    shown = [(turns.free - space.at, turns.awaited - space.at, turns.turn > turns.free) for turns in kept if turns is not None]
    assert shown == [(1e6, 15e6, True), (1e6, 15e6, False), (1e6, 15e6, False)]


def test_a_turn_is_named_as_its_crawler_names_it(space: TimedNamespace) -> None:
    space.add(new_page("a/1"))
    (handout,) = space.dispatch(host_delay=1.0, lease=15.0, awaited=15.0)
    held = HeldLeases(15.0, has_turns=True)
    held.take([handout])
    assert held.use_turn("a") == pytest.approx(awaited(space), abs=1.0)
    space.advance(20.0)
    _, turn = space.run(turns_calls(0, 1.0, 15.0, ["a"]))[0]
    assert turn == awaited(space)


def test_a_host_stays_shut_until_its_fetch_has_begun_and_its_delay_after(space: TimedNamespace) -> None:
    """However late it begins; one that never begins, or nobody tells of, keeps it shut no longer than that."""
    space.add(*(new_page(f"a/{i}") for i in range(5)))
    terms = {"host_delay": 1.0, "awaited": 15.0}
    assert len(space.dispatch(**terms)) == 1
    turn = awaited(space)
    space.advance(3.0)
    assert space.dispatch(**terms) == []
    begun = space.now()
    space.run(starts_calls(0, 1.0, [("a", begun, turn)]))
    space.advance(0.9)
    assert space.dispatch(**terms) == []
    space.advance(0.1)
    assert len(space.dispatch(**terms)) == 1
    space.run(starts_calls(0, 1.0, [("a", 0.0, awaited(space)), ("nowhere", 5.0, 1.0)]))
    space.advance(1.0)
    assert len(space.dispatch(**terms)) == 1, "it never began"
    space.advance(15.1)
    assert len(space.dispatch(**terms)) == 1, "nobody told"


def test_turns_come_after_one_another_and_handouts_after_them(space: TimedNamespace) -> None:
    space.add(*(new_page(f"a/{i}") for i in range(3)))
    terms = {"host_delay": 1.0, "awaited": 15.0}
    assert len(space.dispatch(**terms)) == 1

    def take(*hosts: str) -> list[float]:
        return [float(wait) for wait in space.run(turns_calls(0, 1.0, 15.0, hosts))[0][::2]]

    assert take("a", "new") == [-1.0, 0.0], "the fetch that was handed out has not begun"
    space.run(starts_calls(0, 1.0, [("a", space.now(), awaited(space))]))
    assert take("a") == [pytest.approx(1e6)]
    space.advance(1.0)
    assert space.dispatch(**terms) == [], "the turn is another fetch's"
    space.run(starts_calls(0, 1.0, [("a", space.now(), awaited(space))]))
    space.advance(1.0)
    assert len(space.dispatch(**terms)) == 1


def test_asking_for_turns_of_a_host_that_is_held_for_long_does_not_keep_it_shut_for_longer(space: TimedNamespace) -> None:
    """Nobody waits for such a turn: it is told when it would be, and not taken, however often it is asked for."""
    fill(space, 2)
    space.hold("a", 600.0)
    for _ in range(50):
        wait, turn = space.run(turns_calls(0, 10.0, 15.0, ["a"]))[0]
        space.run(starts_calls(0, 10.0, [("a", 0.0, turn)]))
        assert wait == pytest.approx(600e6, rel=1e-3)
    space.advance(600.1)
    assert "a" in hosts_of(space.names(16, host_delay=10.0))
