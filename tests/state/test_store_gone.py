"""Pages that are gone: retired one by one, brought back by a link; held where a host loses most of its pages at once."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import ClockedStore, new_page

from optimal_frontier.scheduling import backoff
from optimal_frontier.state.columns import ACTIVE, RETIRED
from optimal_frontier.state.health import is_held
from optimal_frontier.state.troubles import read_held_hosts, read_page_troubles

DAY_S = 86_400.0


def seen_pages(store: ClockedStore, *names: str) -> list[int]:
    """Pages that were fetched once and are planned once a second; their slots."""
    store.add(*(new_page(name) for name in names))
    store.visit_all()
    slots = [store.slot(name) for name in names]
    for slot in slots:
        store.plan(slot, 1.0)
    return slots


def visit(store: ClockedStore, name: str, outcome: str, **values: object) -> None:
    """Fetch a page as soon as it is due."""
    for _ in range(200):
        handouts, wait = store.dispatch(100, budget=1e9)
        for handout in handouts:
            mine = handout.slot == store.slot(name)
            store.observe(handout, outcome if mine else "released", **(values if mine else {}))
        if any(handout.slot == store.slot(name) for handout in handouts):
            return
        store.advance(max(wait, 0.01))
    raise AssertionError(f"{name} never became due")


def state_of(store: ClockedStore, name: str) -> int:
    return int(store.records_at("page", [store.slot(name)])["state"][0])


def test_a_page_is_retired_at_the_second_404_and_not_asked_for_at_once(store):
    seen_pages(store, "h/gone", "h/other")
    visit(store, "h/gone", "gone")
    assert state_of(store, "h/gone") == ACTIVE
    slot = store.slot("h/gone")
    assert store.seen(slot)["gone"] == 1
    (due,) = (float(score) for score in [store.command("ZSCORE", store.key("due:1"), slot)])
    assert due - store.seen(slot)["last_attempt"] == pytest.approx(float(backoff(1, slot)))
    visit(store, "h/gone", "gone")
    assert state_of(store, "h/gone") == RETIRED
    assert store.counts()["retired"] == 1


def test_a_page_of_long_intervals_is_looked_at_again_later(store):
    """A tenth of its interval, at most an hour: a site may be down for some minutes."""
    slot, other = seen_pages(store, "h/slow", "h/slower")
    for at, rate, wait in ((slot, 1 / 7200, 720.0), (other, 1e-6, 3600.0)):
        store.plan(at, rate, base_credit=2.0)
        store.advance(0.01)
        (handout,), _ = store.dispatch(1, budget=1e9)
        assert handout.slot == at
        store.observe(handout, "gone")
        due = float(store.command("ZSCORE", store.key("due:1"), at))
        assert due - store.time() == pytest.approx(wait, abs=1e-3)


def test_a_link_brings_a_retired_page_back_but_not_every_day(store):
    """After a day, two, four, ... a month at most; each time one more 404 retires it."""
    seen_pages(store, "h/gone")
    visit(store, "h/gone", "gone")
    visit(store, "h/gone", "gone")
    link = new_page("h/gone")
    for days in (1, 2, 4, 8, 16, 30, 30):
        store.advance(days * DAY_S - 60)
        store.add(link)
        assert state_of(store, "h/gone") == RETIRED
        store.advance(120)
        store.add(link)
        assert state_of(store, "h/gone") == ACTIVE
        (handout,), _ = store.dispatch(1, budget=1e9)
        assert handout.lateness == pytest.approx(0.0, abs=1e-3)
        store.observe(handout, "gone")
        assert state_of(store, "h/gone") == RETIRED
    assert store.counts()["revived"] == 7
    store.advance(31 * DAY_S)
    store.add(link)
    visit(store, "h/gone", "ok", bit=1, shape=1.0, time=1.0)
    assert store.seen(store.slot("h/gone"))[["failures", "gone"]].item() == (0, 0)
    assert store.counts()["retired"] == 0


def test_a_host_that_loses_its_pages_is_held(store):
    """None stays retired; all go on being asked, minutes apart; what recovers, recovers."""
    names = [f"h/{n}" for n in range(12)]
    seen_pages(store, *names, "other/a")
    for name in names:
        visit(store, name, "gone")
        visit(store, name, "gone") if state_of(store, name) == ACTIVE and int(name[2:]) < 3 else None
    # The first three were retired before anybody could know; they came back with the fourth.
    assert {state_of(store, name) for name in names} == {ACTIVE}
    assert store.counts()["retired"] == 0
    assert store.counts()["gone_held"] >= len(names)
    assert read_held_hosts(store) == ["h"]
    slots = [store.slot(name) for name in names]
    assert all(store.seen(slot)["failures"] >= 9 for slot in slots)
    rows = store.command("ZRANGE", store.key("due:1"), 0, -1, "WITHSCORES")
    assert sorted(map(int, rows[::2])) == sorted(slots)
    assert all(float(due) - store.seen(int(slot))["last_attempt"] >= 256 for slot, due in zip(rows[::2], rows[1::2], strict=True))
    assert read_page_troubles(store, b"", slots[0], 1).is_host_held
    for name in names:
        visit(store, name, "ok", bit=0, shape=1.0, time=1.0)
    assert read_held_hosts(store) == []
    assert {state_of(store, name) for name in names} == {ACTIVE}
    visit(store, "h/3", "gone")
    visit(store, "h/3", "gone")
    assert state_of(store, "h/3") == RETIRED


def test_a_host_that_stays_dead_loses_its_pages_after_some_days(store):
    """Asked for less and less, once a day in the end."""
    names = [f"h/{n}" for n in range(6)]
    seen_pages(store, *names)
    began, asked = store.time(), 0
    while any(state_of(store, name) == ACTIVE for name in names):
        handouts, wait = store.dispatch(100, budget=1e9)
        for handout in handouts:
            asked += 1
            store.observe(handout, "gone")
        if not handouts:
            store.advance(max(wait, 0.01))
    assert 3 * DAY_S < store.time() - began < 8 * DAY_S
    assert asked <= 24 * len(names)
    assert store.counts()["retired"] == len(names)


def test_pages_that_were_never_there_do_not_count_against_their_host(store):
    """Dead links are retired, however many."""
    names = [f"h/{n}" for n in range(20)]
    store.add(*(new_page(name) for name in names))
    for name in names * 2:
        visit(store, name, "gone")
    assert {state_of(store, name) for name in names} == {RETIRED}
    assert read_held_hosts(store) == []


def test_a_few_gone_pages_among_many_do_not_hold_a_host(store):
    """A tenth of all visits; chance would have to be very bad."""
    rng = np.random.default_rng(4)
    names = [f"h/{n}" for n in range(60)]
    seen_pages(store, *names)
    for name in names:
        for _ in range(2 if rng.random() < 0.1 else 0):
            visit(store, name, "gone")
        if state_of(store, name) == ACTIVE:
            visit(store, name, "ok", bit=0, shape=1.0, time=1.0)
        assert read_held_hosts(store) == []
    assert store.counts()["retired"] == sum(state_of(store, name) == RETIRED for name in names) > 0


@pytest.mark.parametrize(("in_a_row", "seen"), [(4, 0), (7, 25)])
def test_so_many_gone_pages_in_a_row_hold_a_host(store, in_a_row, seen):
    """Four where little is known of the host, seven after many good visits since a page was gone."""
    names = [f"h/{n}" for n in range(10)]
    seen_pages(store, *names)
    if seen:
        visit(store, names[-1], "gone")
        for n in range(seen):
            visit(store, names[n % 9], "ok")
    for n in range(in_a_row):
        assert read_held_hosts(store) == []
        visit(store, names[n], "gone")
    assert read_held_hosts(store) == ["h"]


def test_failures_say_why_until_the_page_is_seen(store):
    (slot,) = seen_pages(store, "h/a")
    visit(store, "h/a", "failed", counters={"failures_timeout": 1})
    assert read_page_troubles(store, b"", slot, 1).failed_by == "timeout"
    visit(store, "h/a", "gone")
    assert read_page_troubles(store, b"", slot, 1).failed_by == "gone"
    visit(store, "h/a", "failed", counters={"blocked_pages": 1})
    assert read_page_troubles(store, b"", slot, 1).failed_by == "blocked"
    visit(store, "h/a", "ok")
    assert read_page_troubles(store, b"", slot, 1).failed_by == ""
    assert store.command("EXISTS", store.key("failed")) == 0


def test_the_share_that_holds_a_host_is_the_one_of_the_script(store):
    """Python's constants against Lua's, over a grid."""
    from importlib.resources import files

    from optimal_frontier.state.scripts import source

    folder = files("optimal_frontier.state") / "lua"
    shared = source("observe")[: -len((folder / "observe.lua").read_text())]
    body = "return is_held({good = tonumber(ARGV[1]), gone = tonumber(ARGV[2])}) and 1 or 0"
    for good in np.arange(0, 10, 0.7):
        for gone in np.arange(0, 10, 0.7):
            assert store.command("EVAL", shared + body, 1, store.prefix, repr(float(good)), repr(float(gone))) == is_held(good, gone)
