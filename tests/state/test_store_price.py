"""Dispatch by live price in the store: the formulas equal their Python reference, and who is handed out when."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START, ClockedStore, new_page
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_store_formulas import probe

from optimal_frontier.errors import StateError
from optimal_frontier.frontier.deadlines import LivePrice, deadlines, deadlines_at_most
from optimal_frontier.scheduling.index import (
    CANDIDATES,
    FURTHER_CANDIDATES,
    PRICE_MEMORY,
    PROMPT,
    claim,
    deadline_by_price,
    price_after_visit,
    value_share,
    visit_bound,
    visit_value,
)
from optimal_frontier.state.columns import INDEX, PLAN
from optimal_frontier.state.consistency import check_state
from optimal_frontier.state.scripts import source

FORMULAS = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
RATES = st.floats(1e-9, 1e3)
WEIGHTS = st.floats(1e-6, 1e6)

_DEADLINE = """
local function get(i) return tonumber(ARGV[i]) end
local p = {gap = get(1), slot = 0}
local s = {last_attempt = get(3), last_seen = get(4), failures = get(5), gone = 0}
local x = {weight = get(2), change_rate = get(6), least_rate = get(7), most_rate = get(8)}
return number(deadline_by_price(p, s, x, get(9), ARGV[10] == 'freshness'))
"""


@FORMULAS
@given(st.floats(0, 800))
def test_the_value_equals_the_reference(store, changes):
    share = float(probe(store, "return number(value_share(tonumber(ARGV[1])))", repr(changes)))
    assert share == pytest.approx(value_share(changes), rel=1e-15)


@FORMULAS
@given(
    importance=WEIGHTS,
    change_rate=st.one_of(st.just(0.0), RATES),
    exponent=st.floats(-25, 1),
    least=st.one_of(st.just(0.0), st.floats(1e-9, 1)),
    ratio=st.floats(1, 1e6),
    gap=st.floats(0, 1e5),
    failures=st.integers(0, 20),
    objective=st.sampled_from(["freshness", "changes"]),
)
def test_the_deadline_equals_the_reference(store, importance, change_rate, exponent, least, ratio, gap, failures, objective):
    """Over 26 decades of the price, between all bounds."""
    price = 10**exponent * (visit_bound(importance, change_rate, objective) or 1.0)
    most = max(least, 1e-6) * ratio
    values = (gap, importance, START, START + 1.5, failures, change_rate, least, most, price)
    due = float(probe(store, _DEADLINE, *map(repr, values), objective))
    expected = float(deadline_by_price(START + 1.5, START, gap, failures, importance, change_rate, least, most, price, objective))
    assert due - START == pytest.approx(expected - START, rel=1e-7, abs=1e-5) if expected < np.inf else due >= 1e300


def test_constants_equal_the_reference(store):
    body = source("dispatch").partition("-- A page of the queue:")[0] + "return {CANDIDATES, FURTHER, PRICE_MEMORY, tostring(PROMPT)}"
    found = store.command("EVAL", body, 1, store.prefix)
    assert [float(value) for value in found] == [CANDIDATES, FURTHER_CANDIDATES, PRICE_MEMORY, PROMPT]


class Priced:
    """Pages that a plan by price has seen: name -> (importance, change rate, least rate, most rate)."""

    def __init__(self, store: ClockedStore, pages: dict[str, tuple[float, float, float, float]], price: float, **bounds: float) -> None:
        self.store, self.pages = store, pages
        bounds = {"max_rate": 1e3} | bounds
        store.add(*(new_page(name, importance=row[0], **bounds) for name, row in pages.items()))
        store.visit_all()
        self.names = {store.slot(name): name for name in pages}
        self.fence = store.run([("take_planner_lock", ["planner", 10_000_000])])[0]
        self.plan(price)

    def plan(self, price: float, dispatch: str = "index", horizon: float = 1e15) -> None:
        """As the planner does."""
        store = self.store
        plan, index = np.zeros(len(self.pages), PLAN), np.zeros(len(self.pages), INDEX)
        plan["rate"], plan["base_time"] = 1e-3, store.time()
        for slot, name in self.names.items():
            index[slot] = self.pages[name]
        (page,) = store.columns("page")
        pairs = np.stack([np.arange(len(self.pages)), page["generation"]], axis=1).astype("<u4").tobytes()
        calls = [("write_plan", [self.fence, "plan", 0, 0, plan.tobytes()])]
        if dispatch == "index":
            calls.append(("write_plan", [self.fence, "index", 0, 0, index.tobytes()]))
        calls.append(("set_price", [self.fence, dispatch, "freshness", repr(price), "1e6"]))
        store.run([*calls, ("queue_due", [self.fence, repr(horizon), pairs])])

    def take(self, n: int = 1, **limits: object) -> list[str]:
        """Names in the order in which they are handed out; they stay out."""
        return [self.names[handout.slot] for handout in self.store.dispatch(n, **limits)[0]]

    def value(self, name: str, elapsed: float) -> float:
        return visit_value(*self.pages[name][:2], elapsed)

    def live(self) -> LivePrice:
        live = LivePrice.read(self.store)
        assert live is not None
        return live


def test_the_page_that_is_worth_most_goes_first(store):
    """Not the one whose value has been above the price for longest."""
    pages = {"h/early": (1.0, 1.0, 0.0, 1e3), "h/late": (50.0, 0.01, 0.0, 1e3), "h/poor": (0.1, 1.0, 0.0, 1e3)}
    crawl = Priced(store, pages, price=0.2)
    store.advance(20.0)
    assert crawl.value("h/late", 20.0) > crawl.value("h/early", 20.0) > 0.2 > crawl.value("h/poor", 20.0)
    assert crawl.take(3) == ["h/late", "h/early", "h/poor"]


@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_a_token_is_never_left_over(store, budget):
    """With budget to spare pages go before they are worth the price; not before their shortest interval."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 0.1), "h/b": (1.0, 0.02, 0.0, 0.05)}, price=10.0)
    seen = store.seen(store.slot("h/a"))["last_seen"]
    store.set_time(seen + 9.0)
    handouts, wait = store.dispatch(2, budget=budget)
    assert handouts == []
    assert wait == pytest.approx(1.0, abs=1e-4)
    store.set_time(seen + 11.0)
    assert crawl.take(2, budget=budget) == ["h/a"]
    store.set_time(seen + 21.0)
    assert crawl.take(2, budget=budget) == ["h/b"]


def test_the_price_follows_what_is_visited(store):
    """By the reference's step; not for a page that was taken for its least rate, nor for one just at its shortest interval."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3), "h/bound": (1e-9, 1.0, 0.02, 1e3), "h/held": (1e6, 0.01, 0.0, 0.01)}, price=5.0)
    store.advance(70.0)
    handouts, _ = store.dispatch(1)
    assert crawl.names[handouts[0].slot] == "h/a"
    expected = price_after_visit(5.0, crawl.value("h/a", handouts[0].elapsed))
    assert crawl.live().price == pytest.approx(expected, rel=1e-9)
    assert crawl.live().highest == pytest.approx(max(5.0, expected), rel=1e-9)
    assert claim(0.0, expected, 70.0, 0.02, 1e3) > expected
    assert crawl.take() == ["h/bound"]
    store.advance(31.0)
    assert crawl.take() == ["h/held"]
    assert crawl.live().price == pytest.approx(expected, rel=1e-9)


def test_a_dozen_pages_are_looked_at_for_a_visit(store):
    """However many are on the queue; and four for each further one of the same call."""
    crawl = Priced(store, {f"h{i % 7}/{i}": (1.0 + i / 100, 0.01, 0.0, 1e3) for i in range(200)}, price=2.0)
    store.advance(100.0)
    assert len(crawl.take(1)) == 1
    assert store.counts()["evaluations"] == CANDIDATES
    assert len(crawl.take(30)) == 30
    assert store.counts()["evaluations"] == 2 * CANDIDATES + 29 * FURTHER_CANDIDATES


def test_the_queue_follows_the_price(store):
    """What is looked at and not chosen goes where it stands by the price of that moment."""
    crawl = Priced(store, {f"h/{i}": (1.0, 0.01, 0.0, 1e3) for i in range(5)}, price=1.0)
    store.command("HSET", store.key("price"), "price", "20.0")
    store.advance(30.0)
    crawl.take()
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    expected = deadlines(page, seen, plan, index, crawl.live())
    rows = store.command("ZRANGE", store.key("due:1"), 0, -1, "WITHSCORES")
    queued = dict(rows) if isinstance(rows[0], list | tuple) else dict(zip(rows[::2], rows[1::2], strict=True))
    assert len(queued) == 4
    for slot, at in queued.items():
        # Left where they are within a hundredth of the way.
        assert float(at) - store.time() == pytest.approx(expected[int(slot)] - store.time(), rel=0.02)


def test_first_visits_keep_their_share(store):
    """Whatever the others are worth."""
    crawl = Priced(store, {f"h/{i}": (1.0, 0.01, 0.0, 1e3) for i in range(40)}, price=1.0)
    store.add(*(new_page(f"h/new{i}") for i in range(40)))
    store.advance(100.0)
    handouts, _ = store.dispatch(20, share=0.25)
    first = [handout.slot not in crawl.names for handout in handouts]
    assert len(first) == 20
    assert sum(first) == 5


def test_a_host_with_a_delay_gives_its_best_page(store):
    """One at a time; the others of the call go to other hosts. Its own price follows, that of all does not."""
    pages = {f"slow/{i}": (1.0 + i, 0.01, 0.0, 1e3) for i in range(30)} | {"other/a": (0.5, 0.01, 0.0, 1e3)}
    crawl = Priced(store, pages, price=0.01)
    store.advance(200.0)
    assert crawl.take(4, host_delay=1.0) == ["slow/29", "other/a"]
    before = crawl.live().price
    taken = []
    for _ in range(12):
        store.advance(1.0)
        taken += crawl.take(4, host_delay=1.0)
    # A dozen of thirty are looked at each time; once all were, they come by what they are worth.
    assert len(taken) == 12
    left = sorted((name for name in pages if name not in {"slow/29", "other/a", *taken[:4]}), key=lambda name: -pages[name][0])
    assert taken[4:] == left[:8]
    assert crawl.live().price == before
    host = int(store.command("HGET", store.key("hosts"), "slow"))
    assert crawl.live().hosts[host] > before
    assert crawl.live().highest >= crawl.live().hosts[host]


def test_full_slots_are_left_alone(store):
    crawl = Priced(store, {"a/1": (9.0, 0.01, 0.0, 1e3), "a/2": (8.0, 0.01, 0.0, 1e3), "b/1": (1.0, 0.01, 0.0, 1e3)}, price=0.1)
    store.advance(100.0)
    assert crawl.take(3, per_host=8, groups=(("a", "a", 0),)) == ["b/1"]
    assert crawl.take(3, per_host=8, groups=(("a", "a", 1),)) == ["a/1"]


def test_a_forced_page_goes_first_and_then_as_before(store):
    """Also after a plan in between."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3), "h/b": (1e-3, 0.01, 0.0, 1e3)}, price=1.0)
    store.advance(60.0)
    assert store.run([("force_page", [fingerprint_of("h/b")])]) == [1]
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    assert deadlines(page, seen, plan, index, crawl.live())[store.slot("h/b")] <= store.time()
    handouts, _ = store.dispatch(1)
    assert crawl.names[handouts[0].slot] == "h/b"
    store.observe(handouts[0])
    assert store.seen(store.slot("h/b"))["carry"] < 1
    assert crawl.take(1) == ["h/a"]


def test_a_pinned_page_keeps_its_interval(store):
    """It goes by credit, whatever visits are worth."""
    crawl = Priced(store, {"h/pinned": (1e6, 1.0, 0.1, 0.1)}, price=1e-9, min_rate=0.1, max_rate=0.1)
    crawl.store.plan(0, rate=0.1)
    store.advance(9.9)
    assert crawl.take(budget=5.0) == []
    store.advance(0.2)
    assert crawl.take(budget=5.0) == ["h/pinned"]


def test_a_failure_waits_for_its_backoff(store):
    crawl = Priced(store, {"h/a": (1.0, 1.0, 0.0, 1e3)}, price=1e-3)
    store.advance(10.0)
    handouts, _ = store.dispatch(1)
    store.observe(handouts[0], "failed")
    store.advance(0.9)
    assert crawl.take() == []
    store.advance(0.6)
    assert crawl.take() == ["h/a"]


def test_a_page_that_fails_waits_for_its_credit_too(store):
    """A failed attempt costs what a visit costs: what is down would be worth most for ever, as nobody ever saw what became of it."""
    crawl = Priced(store, {"h/down": (1e6, 1.0, 0.0, 1e3), "h/up": (1.0, 1.0, 0.0, 1e3)}, price=1e-3)
    store.advance(10.0)
    handouts, _ = store.dispatch(1)
    assert crawl.names[handouts[0].slot] == "h/down"
    store.observe(handouts[0], "failed")
    store.advance(10.0)
    assert crawl.take(1, budget=5.0) == ["h/up"]
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    down = store.slot("h/down")
    assert deadlines(page, seen, plan, index, crawl.live())[down] > store.time()
    store.observe(handouts[0])
    store.advance(1e4)  # at the planned rate of 1e-3
    assert "h/down" in crawl.take(2, budget=5.0)


def test_a_host_that_opened_without_a_token_still_has_its_own_price(store):
    """The visit that its page had been worth all along comes with the next token; the price of all does not follow it."""
    pages = {f"slow/{i}": (5.0, 0.01, 0.0, 1e3) for i in range(3)}
    crawl = Priced(store, pages, price=0.01)
    store.advance(100.0)
    assert len(crawl.take(1, host_delay=1.0, budget=5.0)) == 1
    before = crawl.live().price
    store.advance(1.5)
    store.run([("draw_tokens", ["5.0", 3])])
    assert crawl.take(1, host_delay=1.0, budget=5.0) == []  # it opens, and there is no token
    store.advance(1.0)
    assert len(crawl.take(1, host_delay=1.0, budget=5.0)) == 1
    assert crawl.live().price == before
    assert crawl.live().hosts[int(store.command("HGET", store.key("hosts"), "slow"))] > before
    assert store.hash("hosts:opened") == {}


def test_an_expired_lease_is_handed_out_again(store):
    crawl = Priced(store, {"h/a": (1.0, 1.0, 0.0, 1e3)}, price=1e-3)
    store.advance(10.0)
    assert crawl.take(lease_s=5.0) == ["h/a"]
    assert crawl.take() == []
    store.advance(5.1)
    assert crawl.take() == ["h/a"]


def test_the_price_goes_on_from_plan_to_plan_and_ends_with_edf(store):
    """Pages are queued by what the plan in force goes by; nothing is lost on the way, and `check` finds nothing."""
    crawl = Priced(store, {f"h/{i}": (1.0 + i, 0.01, 0.0, 1e3) for i in range(20)}, price=1.0)
    store.command("HSET", store.key("published"), "time", store.time(), "dispatch", "index")
    store.command("HSET", store.key("price"), "price", "3.0", "highest", "9.0", "at", store.time())
    crawl.plan(1.0)
    assert (crawl.live().price, crawl.live().highest) == (3.0, 3.0)
    report = check_state(store, deadlines_at_most, 1e6, sleep=lambda _: None)
    assert (report.violations, report.warnings) == ([], [])
    store.advance(50.0)
    crawl.plan(1.0, "edf")
    assert LivePrice.read(store) is None
    assert store.dispatch(1, budget=5.0)[0] == []
    store.command("HSET", store.key("published"), "time", store.time(), "dispatch", "edf")
    report = check_state(store, deadlines_at_most, 1e15, sleep=lambda _: None)
    assert (report.violations, report.warnings) == ([], [])
    crawl.plan(1.0)
    assert crawl.live().price == 1.0
    assert len(crawl.take(50)) == 20


def test_a_price_that_nothing_reaches_is_started_again(store):
    """No visit since the last plan would have lowered it."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3)}, price=1e9)
    store.advance(10.0)
    store.command("HSET", store.key("published"), "time", store.time())
    crawl.plan(2.0)
    assert crawl.live().price == 2.0
    store.advance(50.0)
    assert crawl.take() == ["h/a"]
    moved = crawl.live().price
    store.command("HSET", store.key("published"), "time", store.time() - 1.0)
    crawl.plan(2.0)
    assert crawl.live().price == moved > 2.0


def test_check_finds_a_page_that_fell_out_of_its_queue(store):
    crawl = Priced(store, {f"h/{i}": (1.0, 0.01, 0.0, 1e3) for i in range(3)}, price=1.0)
    store.command("HSET", store.key("published"), "time", store.time(), "dispatch", "index")
    store.command("ZREM", store.key("due:1"), 1)
    report = check_state(store, deadlines_at_most, 1e6, sleep=lambda _: None)
    assert [finding.subject for finding in report.warnings] == ["slot 1"]
    # At a price that was higher since the plan it need not have been queued.
    store.command("HSET", store.key("price"), "highest", "1e9")
    assert check_state(store, deadlines_at_most, 1e6, sleep=lambda _: None).warnings == []
    assert crawl.live().highest == 1e9


def fingerprint_of(name: str) -> bytes:
    return new_page(name).fingerprint


def test_a_slot_that_is_given_back_leaves_no_price(store):
    """The next page in it starts from nothing."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3)}, price=1.0)
    assert store.run([("forget_page", [fingerprint_of("h/a")])]) == [1]
    assert store.columns("index")[0][0].item() == (0.0, 0.0, 0.0, 0.0)
    assert crawl.take() == []


def test_a_planner_that_lost_its_lock_sets_no_price(store):
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3)}, price=1.0)
    assert store.run([("set_price", [crawl.fence - 1, "edf", "freshness", "7.0", "1.0"])]) == [0]
    assert crawl.live().price == 1.0


def test_a_price_that_is_none_is_an_error_of_the_state(store):
    """Named as what it is."""
    crawl = Priced(store, {"h/a": (1.0, 0.01, 0.0, 1e3)}, price=1.0)
    store.command("HSET", store.key("price"), "highest", "much")
    with pytest.raises(StateError, match="live price"):
        crawl.live()
