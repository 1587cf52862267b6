"""What dispatch promises: order, pacing, shares, budget, and how long to wait."""

from __future__ import annotations

import itertools
import random
import secrets
import struct
from dataclasses import replace

import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page, open_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimal_frontier.scheduling import backoff
from optimal_frontier.state.columns import ONCE, PAGE, TRANSIENT
from optimal_frontier.state.memory import Memory


def fetched(store: ClockedStore, *names: str, gap: float = 0.0) -> list[int]:
    """Add pages and visit each once, with a bucket that is full afterwards; return their slots."""
    store.add(*(new_page(name, gap=gap) for name in names))
    store.dispatch(0, budget=1e6)
    store.visit_all()
    store.advance(10)
    return [store.slot(name) for name in names]


def names(handouts) -> list[str]:
    return [handout.record["url"].removeprefix("http://") for handout in handouts]


def test_the_earliest_deadline_goes_first_over_all_hosts(store):
    """Whatever hosts the pages are on, and however they were queued."""
    random.seed(1)
    pages = [f"h{i % 7}/{i}" for i in range(60)]
    slots = fetched(store, *pages)
    credits = [random.random() for _ in slots]
    for slot, credit in zip(slots, credits, strict=True):
        store.plan(slot, rate=0.1, base_credit=credit)
    store.advance(20)
    handouts, _ = store.dispatch(1000, budget=1e6)
    assert [handout.slot for handout in handouts] == [slot for _, slot in sorted(zip(credits, slots, strict=True), reverse=True)]
    expected = [20 - (1 - credit) / 0.1 for credit in sorted(credits, reverse=True)]
    assert [handout.lateness for handout in handouts] == pytest.approx(expected, abs=1e-5)


def test_an_overloaded_crawler_keeps_the_order(store):
    """More is due than the budget allows: what was due first still goes first, over many calls."""
    slots = fetched(store, *(f"h{i % 3}/{i}" for i in range(30)))
    for i, slot in enumerate(slots):
        store.plan(slot, rate=1.0, base_credit=0.9 - 0.02 * i)
    store.advance(60)
    order = []
    while len(order) < 30:
        handouts, _ = store.dispatch(2, budget=1.0)
        order += [handout.slot for handout in handouts]
        store.advance(1.0)
    assert order == slots


def test_a_page_that_a_plan_moved_later_waits_for_its_new_deadline(store):
    """What stands in the queue is looked at again when it is handed out."""
    (slot,) = fetched(store, "a/1")
    store.plan(slot, rate=1.0)
    store.run([("write_plan", [store.command("HGET", store.key("meta"), "fence"), "plan", 0, slot * 24, b""])])
    key = store.key(f"due:{store.records_at('page', [slot])['host'][0]}")
    store.plan(slot, rate=0.1)
    store.command("ZADD", key, START + 1, slot)  # as queued by the plan before
    store.command("ZADD", store.key("hosts:due"), START + 1, 1)
    store.advance(5)
    handouts, wait = store.dispatch(5, budget=100)
    assert handouts == []
    assert wait == pytest.approx(5.0, abs=1e-5)
    store.advance(wait)
    assert len(store.dispatch(5, budget=100)[0]) == 1


def test_requests_to_a_host_are_spaced(store):
    """HOST_DELAY holds between any two hand-outs to a host, first visits and revisits alike; other hosts go on."""
    store.add(*(new_page(f"{host}/{i}") for host in "ab" for i in range(6)))
    times: dict[str, list[float]] = {"a": [], "b": []}
    while sum(map(len, times.values())) < 24:
        handouts, wait = store.dispatch(10, budget=1000, host_delay=2.0)
        for handout in handouts:
            times[names([handout])[0][0]].append(store.time())
            store.observe(handout, rate=0.4)
        assert len({name[0] for name in names(handouts)}) == len(handouts)
        assert wait > 0
        store.advance(max(1e-5, min(wait, 0.7)))
    for spaced in times.values():
        gaps = [later - earlier for earlier, later in itertools.pairwise(spaced)]
        assert min(gaps) >= 2.0 - 2e-6
        assert max(gaps) < 2.0 + 1.5


@pytest.mark.parametrize("budget", [0.0, 1000.0], ids=["auto", "fixed"])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_first_visits_get_their_share_while_both_kinds_wait(store, budget, n):
    """Exactly every fifth at 0.2, however few are asked for at a time, with a fixed budget as with "auto"."""
    slots = fetched(store, *(f"h{i}/old" for i in range(80)))
    for slot in slots:
        store.plan(slot, rate=1.0)
    store.advance(100)
    store.add(*(new_page(f"n{i}/new") for i in range(40)))
    kinds = ""
    while len(kinds) < 100:
        handouts, _ = store.dispatch(n, budget=budget, share=0.2)
        kinds += "".join("1" if handout.lateness is None else "0" for handout in handouts)
        store.advance(1.0)
    assert kinds[:100].count("1") == 20
    assert all(kinds[at : at + 5].count("1") == 1 for at in range(0, 100, 5))


def test_first_visits_take_what_revisits_leave(store):
    """With nothing due the whole budget goes to first visits, and that costs later first visits nothing."""
    slots = fetched(store, "a/old")
    store.plan(slots[0], rate=0.001)
    store.add(*(new_page(f"n{i}/new") for i in range(10)))
    assert len(store.dispatch(10, budget=1000, share=0.1)[0]) == 10


def test_a_share_of_zero_leaves_first_visits_to_idle_time(store):
    slots = fetched(store, *(f"h{i}/old" for i in range(10)))
    for slot in slots:
        store.plan(slot, rate=1.0)
    store.advance(50)
    store.add(new_page("n/new"))
    handouts, _ = store.dispatch(11, budget=1000, share=0.0)
    assert [handout.lateness is None for handout in handouts] == [False] * 10 + [True]


def test_first_visits_go_by_priority_then_importance_then_arrival(store):
    """Over all hosts, and over pages, pages fetched once and forgotten ones alike."""
    store.add(
        new_page("a/third"),
        new_page("b/second", importance=2.0, kind=ONCE),
        new_page("a/fourth", kind=TRANSIENT),
        new_page("c/last", priority=-5, importance=1000.0),
        new_page("a/first", priority=10, importance=0.1),
        new_page("b/fifth"),
    )
    assert names(store.dispatch(10)[0]) == ["a/first", "b/second", "a/third", "a/fourth", "b/fifth", "c/last"]


def test_a_first_visit_given_back_keeps_its_place(store):
    """In front of those that arrived later, behind higher priorities."""
    store.add(*(new_page(name) for name in ("a/1", "a/2", "b/3")))
    handouts, _ = store.dispatch(2)
    store.add(new_page("c/urgent", priority=1))
    store.observe(handouts[0], "released")
    assert names(store.dispatch(3)[0]) == ["c/urgent", "a/1", "b/3"]


@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budget=st.sampled_from([0.3, 2.0, 37.0, 200.0]),
    steps=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 40), st.integers(0, 3)), min_size=40, max_size=60),
)
def test_the_budget_is_never_exceeded_in_any_window(redis_socket, namespace, budget, steps):
    """Fetches and draws between any two moments stay within budget x time + depth; draws below zero hold hand-outs back."""
    store = open_store(redis_socket, f"{namespace}-{secrets.token_hex(4)}")
    depth = max(1.0, 0.1 * budget)
    store.add(*(new_page(f"h{i}/x", kind=TRANSIENT) for i in range(1000)))
    store.set_time(START + 1000)  # time without requests fills the bucket to its depth and no further
    spent: list[tuple[float, int, bool]] = []
    for seconds, want, drawn in steps:
        now = store.advance(seconds)
        handouts, wait = store.dispatch(want, budget=budget)
        spent.append((now, len(handouts), True))
        if len(handouts) < want:
            tokens = float(store.command("HGET", store.key("bucket"), "tokens"))
            assert tokens < 1
            assert wait == pytest.approx((1 - tokens) / budget)
        if drawn:
            store.run([("draw_tokens", [repr(budget), drawn])])
            spent.append((now, drawn, False))
    store.connection.close()
    for i, (since, _, _) in enumerate(spent):
        total = 0
        for at, fetches, handed_out in spent[i:]:
            total += fetches
            # A draw may go below zero, but then nothing is handed out until it is paid for.
            if handed_out and fetches:
                assert total <= budget * (at - since) + depth + 1e-6


def test_draws_below_zero_hold_dispatch_back(store):
    """Ten redirects at two fetches a second: nothing for the five seconds that pay for them."""
    store.add(*(new_page(f"h{i}/x") for i in range(10)))
    assert len(store.dispatch(5, budget=2.0)[0]) == 1
    assert float(store.run([("draw_tokens", ["2.0", 10])])[0]) == pytest.approx(5.0)
    handouts, wait = store.dispatch(5, budget=2.0)
    assert (handouts, wait) == ([], pytest.approx(5.5))
    store.advance(5.4)
    assert store.dispatch(5, budget=2.0)[0] == []
    store.advance(0.11)
    assert len(store.dispatch(5, budget=2.0)[0]) == 1
    assert store.counts()["extra_fetches"] == 10


def test_an_auto_budget_anticipates_but_never_before_the_gap(store):
    """With free capacity the earliest deadline goes out before it is due; a page within its minimum interval is passed over."""
    early, late, held = fetched(store, "a/early", "a/late", "b/held")
    for slot, rate in ((early, 0.1), (late, 0.01), (held, 1.0)):
        store.plan(slot, rate)
    store.command("SETRANGE", store.key("page:0"), held * PAGE.itemsize + 24, struct.pack("<d", 60.001))  # its gap: ten seconds are over
    handouts, wait = store.dispatch(5)
    assert [handout.slot for handout in handouts] == [early, late]
    assert [handout.lateness for handout in handouts] == [0.0, 0.0]
    assert wait == pytest.approx(50.0, abs=1e-5)
    for handout in handouts:
        store.observe(handout)
    store.advance(49.9)
    assert held not in [handout.slot for handout in store.dispatch(5)[0]]
    store.advance(0.2)
    assert [handout.slot for handout in store.dispatch(5)[0]] == [held]


def test_an_auto_budget_prefers_what_is_due_then_first_visits_then_what_is_not_due(store):
    due, later = fetched(store, "a/due", "a/later")
    store.plan(due, 1.0)
    store.plan(later, 0.001)
    store.add(new_page("b/new"))
    store.advance(2.0)
    assert names(store.dispatch(3)[0]) == ["a/due", "b/new", "a/later"]


def test_a_failing_page_is_not_anticipated_before_its_backoff(store):
    (slot,) = fetched(store, "a/1")
    store.plan(slot, 10.0)
    for failures in (1, 2, 3):
        (handout,), _ = store.dispatch(1)
        store.observe(handout, "failed")
        handouts, wait = store.dispatch(1)
        assert handouts == []
        assert wait == pytest.approx(backoff(failures, slot), abs=1e-5)
        store.advance(wait + 1e-6)


def test_a_fixed_budget_never_anticipates(store):
    (slot,) = fetched(store, "a/1")
    store.plan(slot, 0.1)
    handouts, wait = store.dispatch(5, budget=100.0)
    assert (handouts, wait) == ([], pytest.approx(10.0, abs=1e-5))


def test_wait_tells_when_something_becomes_due(store):
    """Nothing at all: -1. Otherwise the first of: a deadline, a host that opens, a lease that expires, a token."""
    assert store.dispatch(1, budget=10.0) == ([], -1.0)
    store.add(new_page("a/1"), new_page("a/2"))
    store.advance(1)
    (handout,), wait = store.dispatch(5, budget=10.0, host_delay=3.0, lease_s=60)
    assert wait == pytest.approx(3.0)  # the host opens
    store.advance(3.0)
    (other,), wait = store.dispatch(5, budget=10.0, host_delay=3.0, lease_s=60)
    store.advance(3.0)
    assert store.dispatch(5, budget=10.0, host_delay=3.0)[1] == pytest.approx(54.0)  # the first lease expires
    store.observe(handout, rate=0.1)
    assert store.dispatch(5, budget=10.0, host_delay=3.0)[1] == pytest.approx(10.0)  # the page is due again
    store.observe(other, rate=0.5)
    assert store.dispatch(5, budget=10.0, host_delay=3.0)[1] == pytest.approx(2.0)
    store.advance(2.0)
    assert len(store.dispatch(5, budget=10.0)[0]) == 1


def test_a_full_slot_hides_its_hosts_from_requests_and_from_the_wait(store):
    """A slow host with work due never stands in front of the others: neither in the order nor in how long to wait."""
    slow, quick = fetched(store, "slow/1", "quick/1")
    store.plan(slow, 1.0)
    store.plan(quick, 0.5)
    store.advance(1.5)
    handouts, wait = store.dispatch(5, budget=100.0, groups=(("slow", "slot", 0),))
    assert handouts == []
    assert wait == pytest.approx(0.5, abs=1e-5)
    store.advance(wait)
    assert names(store.dispatch(5, budget=100.0, groups=(("slow", "slot", 0),))[0]) == ["quick/1"]
    assert names(store.dispatch(5, budget=100.0)[0]) == ["slow/1"]


def test_hosts_that_share_a_slot_share_its_room(store):
    """Three hosts of one slot with room for two, and the limit for every other host."""
    store.add(*(new_page(f"{host}/{i}") for host in ("a", "b", "c", "d") for i in range(3)))
    groups = (("a", "slot", 2), ("b", "slot", 2), ("c", "slot", 2))
    handouts, _ = store.dispatch(20, per_host=2, groups=groups)
    assert names(handouts) == ["a/0", "a/1", "d/0", "d/1"]
    assert len(store.dispatch(20)[0]) == 8  # nothing stays hidden


def test_full_slots_do_not_touch_what_they_hide(store):
    """Due pages put aside within their gap, on a host that fills up in the same call, are found again."""
    slots = fetched(store, "a/1", "a/2", "a/3")
    for slot in slots:
        store.plan(slot, 0.01)
    store.command("SETRANGE", store.key("page:0"), slots[0] * PAGE.itemsize + 24, struct.pack("<d", 15.0))  # its gap
    handouts, _ = store.dispatch(5, per_host=1)
    assert [handout.slot for handout in handouts] == [slots[1]]
    store.advance(6)
    assert {handout.slot for handout in store.dispatch(5)[0]} == {slots[0], slots[2]}


def test_a_silent_owner_loses_its_leases_after_15_seconds(store):
    """And its observation no longer counts."""
    store.add(new_page("a/1"))
    (handout,), _ = store.dispatch(1, owner="gone")
    store.advance(14.9)
    assert store.dispatch(1, owner="other") == ([], 15.0)
    store.advance(0.2)
    (again,), _ = store.dispatch(1, owner="other")
    assert again.slot == handout.slot
    assert store.observe(handout) == 0
    assert store.observe(again) == 1
    assert store.counts()["leases_expired"] == 1


def test_signs_of_life_keep_leases(store):
    store.add(new_page("a/1"), new_page("a/2"))
    (kept, lost), _ = store.dispatch(2, owner="me", lease_s=10)
    for _ in range(5):
        store.advance(6)
        assert store.run([("renew_leases", ["me", "10", kept.slot, kept.token])]) == [1]
    handouts, _ = store.dispatch(5, owner="me", lease_s=10)
    assert [handout.slot for handout in handouts] == [lost.slot]


def test_thousands_of_leases_of_a_silent_owner_come_back_in_bounded_calls(store):
    """No call works without bound, and nothing is forgotten on the way."""
    store.add(*(new_page(f"h{i % 50}/{i}") for i in range(1000)))
    assert len(store.dispatch(1000, owner="gone")[0]) == 1000
    store.advance(20)
    sizes = []
    for _ in range(8):
        store.dispatch(1, owner="other", groups=tuple((f"h{i}", "full", 0) for i in range(50)))
        sizes.append(store.counts()["leases_expired"])
    assert sizes[0] <= 256
    assert sizes[-1] == 1000
    assert len(store.dispatch(2000, owner="other")[0]) == 1000


def test_the_clock_never_runs_backwards(store):
    """The server's time is behind what was seen before: time stands still."""
    store.set_time(START + 5)
    assert store.now() == START + 5
    store.dispatch(1)
    assert store.time() == START + 5


def test_a_forced_page_is_due_at_once_and_a_retired_one_comes_back(store):
    (slot,) = fetched(store, "a/1")
    store.plan(slot, 1.0)
    for _ in range(2):
        store.advance(100)
        (handout,), _ = store.dispatch(1, budget=10.0)
        store.observe(handout, "gone")
    assert store.counts()["retired"] == 1
    store.advance(1e6)
    assert store.dispatch(1, budget=10.0)[0] == []
    assert store.run([("force_page", [fingerprint("a/1")])]) == [1]
    (handout,), _ = store.dispatch(1, budget=10.0)
    assert handout.slot == slot
    assert store.counts()["retired"] == 0
    assert store.seen(slot)[["failures", "gone"]].item() == (0, 0)


def test_a_retired_page_that_is_forgotten_leaves_every_count(store):
    (slot,) = fetched(store, "a/1")
    store.plan(slot, 1.0)
    for _ in range(2):
        store.advance(100)
        store.observe(store.dispatch(1, budget=10.0)[0][0], "gone")
    assert store.run([("forget_page", [fingerprint("a/1")])]) == [1]
    counts = store.counts()
    assert [counts[name] for name in ("pages", "pending", "fetched", "retired")] == [0, 0, 0, 0]


def test_an_outage_causes_no_burst(store):
    """However long nothing was fetched, a visit leaves at most half a credit: the next one is at least half an interval away."""
    (slot,) = fetched(store, "a/1")
    store.plan(slot, 0.1)
    store.advance(100_000)
    (handout,), _ = store.dispatch(1, budget=10.0)
    store.observe(handout)
    assert store.seen(slot)["carry"] == 0.5
    assert store.dispatch(1, budget=10.0)[1] == pytest.approx(5.0, abs=1e-4)


def test_changed_pages_are_in_the_feed_and_others_are_not(store):
    store.add(new_page("a/1"))
    for bit in (-1, 0, 1):
        (handout,), _ = store.dispatch(1)
        store.observe(handout, bit=bit, rate=1.0)
    entries = store.connection.client.xrange(store.key("changes"))
    assert [int(fields[b"slot"]) for _, fields in entries] == [0]
    assert store.seen(0)[["observations", "changes", "bits", "visits"]].item() == (2, 1, 1, 3)


def test_a_held_host_is_left_alone_and_the_others_are_not(store):
    """For as long as it asked; a shorter hold after it changes nothing."""
    fetched(store, "held/1", "free/1")
    for name in ("held/1", "free/1"):
        store.plan(store.slot(name), rate=1.0, base_credit=1.0)
    assert store.run([("hold_host", ["held", "30"]), ("hold_host", ["held", "1"]), ("hold_host", ["unknown", "1"])]) == [1, 1, 0]
    handouts, wait = store.dispatch(10, budget=1e6)
    assert names(handouts) == ["free/1"]
    assert wait == pytest.approx(30, abs=0.01)
    store.advance(30.01)
    handouts, _ = store.dispatch(10, budget=1e6)
    assert names(handouts) == ["held/1"]


def test_the_importance_of_rules_does_not_replace_a_stated_one(store):
    """It counts for a new page; a known one keeps what its request said."""
    page = new_page("a/1", importance=5.0)
    store.add(page)
    store.add(replace(page, importance=2.0, is_stated=False))
    assert store.columns("page")[0]["importance"][0] == 5.0
    store.add(replace(page, importance=3.0))
    assert store.columns("page")[0]["importance"][0] == 3.0


def test_what_a_response_left_comes_back_at_the_next_fetch(store):
    """Kept until it is replaced or emptied; gone with the page."""
    store.add(new_page("h/page", max_rate=1e3))
    left = Memory(etag=b'"1"', last_modified=b"\xff")
    store.visit_all()
    store.plan(store.slot("h/page"), 1.0)
    for told, expected in ((left, left), (None, left), (Memory(), Memory()), (left, left)):
        store.advance(10)
        (handout,), _ = store.dispatch(1)
        assert store.observe(handout, memory=told)
        store.advance(10)
        (handout,), _ = store.dispatch(1)
        assert handout.memory == expected
        assert store.observe(handout)
    store.run([("forget_page", [fingerprint("h/page")])])
    assert store.hash("memory") == {}


def test_counters_of_an_observation_are_added(store):
    store.add(new_page("h/page", max_rate=1e3))
    store.visit_all(counters={"bytes_saved": 70, "not_modified": 1})
    assert store.counts()["bytes_saved"] == 70
    assert store.counts()["not_modified"] == 1


def test_a_page_that_has_to_be_checked_is_due_after_its_least_interval(store):
    """Once, and paid by the page: the visit after that is back in the plan, one interval later."""
    store.add(new_page("h/page", max_rate=1e3, gap=2.0))
    store.visit_all()
    store.plan(store.slot("h/page"), 1 / 1000)
    store.advance(1000)
    (handout,), _ = store.dispatch(1, budget=1e6)
    assert store.observe(handout, again=True)
    handouts, wait = store.dispatch(1, budget=1e6)
    assert not handouts
    assert wait == pytest.approx(2.0)
    store.advance(2.0)
    (handout,), _ = store.dispatch(1, budget=1e6)
    assert store.observe(handout)
    _, wait = store.dispatch(1, budget=1e6)
    assert wait == pytest.approx(2000 - 2, abs=0.5)


def test_a_check_costs_a_page_with_one_rate_no_visit(store):
    """Its longest interval stands."""
    store.add(new_page("h/page", min_rate=1e-3, max_rate=1e-3, gap=2.0))
    store.visit_all()
    store.plan(store.slot("h/page"), 1 / 1000)
    store.advance(1000)
    (handout,), _ = store.dispatch(1, budget=1e6)
    assert store.observe(handout, again=True)
    store.advance(2.0)
    (handout,), _ = store.dispatch(1, budget=1e6)
    assert store.observe(handout)
    _, wait = store.dispatch(1, budget=1e6)
    assert wait == pytest.approx(500.0)
