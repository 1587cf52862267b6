"""Leases: who does not name the token changes nothing, and a crawler that dies loses none of its pages."""

from __future__ import annotations

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.state.messages import DROP, KEEP, RELEASE, REST
from optimal_frontier.state.partition import Belief, draw_call, renewed


def test_a_token_is_the_odd_time_until_which_the_lease_holds(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch(lease=10.0)[0]
    assert handout.token % 2 == 1
    assert handout.token == space.score(page_of("h/1"))
    assert handout.token / 1e6 == pytest.approx(space.now() + 10.0, abs=1e-5)


@pytest.mark.parametrize("op", [KEEP, RELEASE, DROP, REST])
def test_a_lease_ends_once(space: TimedNamespace, op: int) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch()[0]
    assert space.observe(handout, op=op) == 1
    before = space.counts()
    assert space.observe(handout, op=op) == 0
    assert space.counts() == before | {"observations_refused": 1}
    assert before["ended"] == 1


def test_a_page_is_in_one_pair_of_hands(space: TimedNamespace) -> None:
    space.add(*(new_page(f"h/{i}") for i in range(10)))
    handed = [handout.page for _ in range(4) for handout in space.dispatch(3)]
    assert len(handed) == len(set(handed)) == 10


def test_a_lost_lease_is_handed_out_again_and_the_late_visit_counts_for_nothing(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    lost = space.dispatch(lease=10.0)[0]
    space.advance(9.9)
    told = space.ask(lease=10.0)
    assert told.handouts == []
    assert told.wait == pytest.approx(0.1, abs=1e-5)
    space.advance(0.2)
    again = space.dispatch(lease=10.0)[0]
    assert again.token != lost.token
    assert again.lateness is None
    assert space.observe(lost, wait=77.0) == 0
    assert space.score(page_of("h/1")) == again.token
    assert space.observe(again) == 1
    assert space.counts()["leases_expired"] == 1


def test_lost_leases_go_before_all_that_is_due(space: TimedNamespace) -> None:
    space.visit(*(f"h/{i}" for i in range(5)), wait=1.0)
    space.advance(1.5)
    lost = set(space.names(2, lease=1.0))
    space.advance(5.0)
    assert set(space.names(2, lease=10.0)) == lost
    assert space.counts()["leases_expired"] == 2


def test_a_late_visit_counts_while_nobody_else_has_the_page(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch(lease=1.0)[0]
    space.advance(5.0)
    assert space.observe(handout) == 1


def test_renewal_is_idempotent_and_lengthens_the_lease(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch(lease=10.0)[0]
    token = renewed(handout.token, 10.0)
    assert token % 2 == 1
    assert [space.renew(handout, token) for _ in range(3)] == [1, 1, 1]
    space.advance(15.0)
    assert space.dispatch() == []
    assert space.observe(handout) == 0
    handout.token = token
    assert space.observe(handout) == 1
    assert space.renew(handout, renewed(token, 10.0)) == 0


def test_a_renewal_that_nobody_heard_of_still_answers_to_its_new_token(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    handout = space.dispatch(lease=1.0)[0]
    space.renew(handout, renewed(handout.token, 100.0))
    space.advance(50.0)
    assert space.dispatch() == []


@pytest.mark.parametrize("lease_s", [1e-6, 0.1, 15.0, 1e5])
def test_a_renewed_token_is_odd_and_later(lease_s: float) -> None:
    token = 2_000_000_000_000_001.0
    assert renewed(token, lease_s) % 2 == 1
    assert renewed(token, lease_s) > token


def test_leases_are_spared_after_an_outage(space: TimedNamespace) -> None:
    """The first call after a time in which nobody could renew them gives everybody the time to; then they run out."""
    crawlers = {"lease": 10.0, "belief": Belief(0.0, 0.0, 7.0)}
    space.add(new_page("a/1"))
    (first,) = space.dispatch(**crawlers)
    space.advance(4.0)
    assert space.dispatch(**crawlers) == []
    space.advance(6.5)
    assert space.dispatch(**crawlers) == [], "it has run out, and is spared"
    assert 9_000 < space.command("PTTL", space.key("grace")) <= 10_000
    space.command("DEL", space.key("grace"))  # as it will be gone by then
    space.advance(5.0)
    (again,) = space.dispatch(**crawlers)
    assert again.page == first.page
    assert space.counts()["leases_expired"] == 1


@pytest.mark.parametrize("budget", [0.0, 50.0])
def test_leases_are_spared_too_where_an_outage_ends_with_a_draw(space: TimedNamespace, budget: float) -> None:
    crawlers = {"lease": 10.0, "budget": budget, "belief": Belief(0.0, 0.0, 7.0)}
    space.add(new_page("a/1"))
    space.advance(1.0)
    assert len(space.dispatch(**crawlers)) == 1
    space.advance(30.0)
    space.run([draw_call(0, budget, 1, 10.0)])
    assert space.dispatch(**crawlers) == []
