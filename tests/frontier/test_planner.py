"""The planner, on pages that were observed through the store."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page

from optimal_frontier.frontier.dispatcher import horizon_s
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.scheduling import LOAD, credit_at, planning
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import CHUNK, DONE, ONCE
from optimal_frontier.state.records import Observation


def parse(**values: object) -> FrontierSettings:
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


def crawled(store: ClockedStore, n: int, seed: int = 0, **bounds: float) -> np.random.Generator:
    """Add ``n`` pages and fetch each once, with a posterior."""
    rng = np.random.default_rng(seed)
    limits = {"min_rate": 1e-7, "max_rate": 10.0} | bounds
    store.add(*(new_page(f"h{i % 9}/{i}", importance=float(rng.uniform(0.1, 5)), **limits) for i in range(n)))
    observe(store, store.dispatch(100_000)[0], rng)
    store.advance(0.001)
    return rng


def observe(store: ClockedStore, handouts, rng) -> None:
    ended = [Observation(h.slot, h.token, "ok", float("inf"), -1, rng.uniform(0.5, 9), 10 ** rng.uniform(0, 4)) for h in handouts]
    for at in range(0, len(ended), 200):
        store.run(store.observe_calls(ended[at : at + 200], 1e15))


def credits(store: ClockedStore, at: float) -> np.ndarray:
    seen, plan = store.columns("seen", "plan")
    return credit_at(at, seen["carry"], seen["settled"], plan["rate"], plan["base_time"], plan["base_credit"])


def test_planned_rates_sum_to_the_load(store):
    """0.97 of the budget, within 1e-6, written to the columns and published."""
    crawled(store, 500)
    report = Planner(store, parse(CRAWL_RATE=20)).plan()
    (plan,) = store.columns("plan")
    assert report is not None
    assert report.pages == 500
    assert report.planned_rate == pytest.approx(LOAD * 20, rel=1e-6)
    assert plan["rate"].sum() == pytest.approx(LOAD * 20, rel=1e-6)
    assert (plan["base_time"] == report.time).all()
    published = store.hash("published")
    assert float(published["planned_rate"]) == report.planned_rate
    assert float(published["multiplier"]) == report.multiplier > 0
    assert 0 < float(published["estimated_freshness"]) < 1
    assert published["feasible"] == "1"


def test_a_planner_carries_the_price_and_plans_as_if_it_did_not(store, monkeypatch):
    """The first plan of a process starts from the published multiplier, later ones from the price of what moved; none differs for it."""
    starts = []
    solve = planning.solve_periodic
    monkeypatch.setattr(planning, "solve_periodic", lambda *a, start=None, **k: starts.append(start) or solve(*a, start=start, **k))
    rng = crawled(store, 400)
    planner = Planner(store, parse(CRAWL_RATE=20))
    first = planner.plan()
    for _ in range(3):
        store.advance(2.0)
        observe(store, store.dispatch(10)[0], rng)
        store.advance(0.001)
        warm = planner.plan()
        rates = store.columns("plan")[0]["rate"].copy()
        cold = Planner(store, parse(CRAWL_RATE=20))
        cold.plan()
        assert starts.pop() == pytest.approx(warm.multiplier)  # a new process
        np.testing.assert_allclose(store.columns("plan")[0]["rate"], rates, rtol=1e-5, atol=1e-10)
    assert starts[0] is None
    for start in starts[1:]:
        assert start == pytest.approx(warm.multiplier, rel=0.2)
        assert start not in (first.multiplier, warm.multiplier)


def test_first_visits_that_wait_keep_their_share_of_the_budget(store):
    crawled(store, 50)
    store.add(*(new_page(f"new/{i}") for i in range(1000)))
    report = Planner(store, parse(CRAWL_RATE=20, DISCOVERY_SHARE=0.25)).plan()
    assert report is not None
    assert report.revisit_budget == pytest.approx(15.0)
    assert store.columns("plan")[0]["base_time"][50] == 0


def test_few_first_visits_keep_only_what_they_can_use_before_the_next_plan(store):
    """One page that waits does not take a quarter of the budget from all others."""
    crawled(store, 50)
    store.add(new_page("new/1"))
    report = Planner(store, parse(CRAWL_RATE=20, DISCOVERY_SHARE=0.25, RESOLVE_INTERVAL=60)).plan()
    assert report is not None
    assert report.revisit_budget == pytest.approx(20 - 1 / 60)


def test_pins_are_respected(store):
    """200 pages pinned to 40 fetches a second in all, at a budget of 50."""
    store.add(*(new_page(f"p/{i}", min_rate=0.2, max_rate=0.2, gap=2.5) for i in range(200)))
    crawled(store, 300)
    report = Planner(store, parse(CRAWL_RATE=50)).plan()
    rates = store.columns("plan")[0]["rate"]
    assert report is not None
    assert report.feasible
    assert rates[:200] == pytest.approx(0.2, rel=1e-9)
    assert rates[200:].sum() == pytest.approx(LOAD * 50 - 40, rel=1e-6)


def test_minima_that_do_not_fit_are_scaled_with_one_warning(store, caplog):
    """The crawl goes on, `feasible` is false, and the log is not flooded."""
    crawled(store, 100, min_rate=1.0)
    planner = Planner(store, parse(CRAWL_RATE=10))
    with caplog.at_level(logging.WARNING):
        reports = [planner.plan() for _ in range(3)]
    assert [report.feasible for report in reports] == [False] * 3
    assert store.columns("plan")[0]["rate"] == pytest.approx(LOAD * 0.1)
    assert len([record for record in caplog.records if "scaled down" in record.getMessage()]) == 1
    assert store.hash("published")["feasible"] == "0"


def test_hosts_get_no_more_than_their_delay_allows(store):
    """1/HOST_DELAY is a constraint of the plan."""
    crawled(store, 90)
    report = Planner(store, parse(CRAWL_RATE=50, HOST_DELAY=0.5)).plan()
    page, plan = store.columns("page", "plan")
    assert report is not None
    assert np.bincount(page["host"], weights=plan["rate"]).max() <= 2.0 * (1 + 1e-9)
    assert plan["rate"].sum() == pytest.approx(LOAD * 18.0, rel=1e-6)


def test_a_slow_host_keeps_room_for_its_own_first_visits(store):
    """DISCOVERY_SHARE counts per host where the host, not the budget, is the limit; other hosts are left as they are."""
    crawled(store, 90)
    busy = next(iter(store.command("HKEYS", store.key("hosts")))).decode()
    store.add(*(new_page(f"{busy}/new{i}") for i in range(100)))
    report = Planner(store, parse(CRAWL_RATE=500, HOST_DELAY=0.5, DISCOVERY_SHARE=0.25, RESOLVE_INTERVAL=10)).plan()
    page, plan = store.columns("page", "plan")
    sums = np.bincount(page["host"], weights=plan["rate"])
    number = int(store.command("HGET", store.key("hosts"), busy))
    assert report is not None
    assert sums[number] == pytest.approx(LOAD * 1.5, rel=1e-6)
    others = [s for h, s in enumerate(sums) if s > 0 and h != number]
    assert others == pytest.approx([LOAD * 2.0] * len(others), rel=1e-6)


def test_a_crawl_that_has_grown_is_planned_sooner(store):
    """Pages that no plan has seen do not wait a whole RESOLVE_INTERVAL."""
    crawled(store, 20)
    planner = Planner(store, parse(CRAWL_RATE=20, RESOLVE_INTERVAL=60))
    assert planner.plan() is not None
    store.command("HSET", store.key("published"), "first_time", "0")  # long past the first, quick plans
    assert planner.due_in() == pytest.approx(60, abs=1)
    crawled(store, 30)
    assert planner.due_in() <= 6


class OvertakenStore(ClockedStore):
    """Another planner takes the lock before the call named ``before``."""

    before = ""

    def run(self, calls):
        if calls and calls[0][0] == self.before:
            self.before = ""
            self.command("DEL", self.key("planner"))
            super().run([("take_planner_lock", ["another", 10_000])])
        return super().run(calls)


def test_a_planner_that_lost_the_lock_before_writing_writes_nothing(store, redis_client, namespace):
    crawled(store, 20)
    store.__class__ = OvertakenStore
    store.before = "write_plan"
    assert Planner(store, parse(CRAWL_RATE=5)).plan() is None
    assert not store.columns("plan")[0]["rate"].any()
    assert store.hash("published") == {}
    assert not list(redis_client.scan_iter(f"{namespace}*:due:*", count=10_000))


@pytest.mark.parametrize("before", ["queue_due", "publish_plan"])
def test_a_planner_that_lost_the_lock_later_publishes_nothing(store, before):
    crawled(store, 20)
    store.__class__ = OvertakenStore
    store.before = before
    assert Planner(store, parse(CRAWL_RATE=5)).plan() is None
    assert store.hash("published") == {}


def test_one_planner_at_a_time(store):
    """While one plans the other is turned away; afterwards it gets its turn."""
    crawled(store, 5)
    one, other = (Planner(store, parse(CRAWL_RATE=5)) for _ in range(2))
    meanwhile = []
    one.solve = lambda *arguments, solve=one.solve: meanwhile.append(other.plan()) or solve(*arguments)
    assert one.plan() is not None
    assert meanwhile == [None]
    assert other.plan() is not None


def test_a_plan_that_fails_gives_the_lock_back(store):
    crawled(store, 5)
    one, other = (Planner(store, parse(CRAWL_RATE=5)) for _ in range(2))
    one.solve = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        one.plan()
    assert other.plan() is not None


def test_a_plan_keeps_what_was_earned(store):
    """Rates change, credits do not: at the moment of the second plan each page has what it had under the first."""
    crawled(store, 200)
    Planner(store, parse(CRAWL_RATE=4)).plan()
    store.advance(30)
    before = credits(store, store.time())
    rates = store.columns("plan")[0]["rate"].copy()
    store.run([("take_planner_lock", ["x", 1])])
    store.command("DEL", store.key("planner"))
    Planner(store, parse(CRAWL_RATE=40)).plan()
    assert (store.columns("plan")[0]["rate"] > rates).sum() > 150
    assert credits(store, store.time()) == pytest.approx(before, rel=1e-12, abs=1e-12)
    assert before.max() > 0.1


class VisitedStore(ClockedStore):
    """Pages are visited after the planner has read and before it writes."""

    visits = 0

    def columns(self, *names):
        result = super().columns(*names)
        if self.visits and "plan" in names:
            visits, self.visits = self.visits, 0
            handouts, _ = self.dispatch(visits)
            self.advance(0.25)
            observe(self, handouts, np.random.default_rng(9))
            self.visited = [handout.slot for handout in handouts]
        return result


def test_a_visit_while_a_plan_is_computed_keeps_its_credit(store):
    """The plan knows nothing of it; the deadline counts from the visit all the same."""
    crawled(store, 50)
    planner = Planner(store, parse(CRAWL_RATE=5))
    planner.plan()
    store.advance(20)
    store.__class__ = VisitedStore
    store.visits = 10
    report = planner.plan()
    assert report is not None
    seen, plan = store.columns("seen", "plan")
    assert len(store.visited) == 10
    for slot in store.visited:
        assert seen["settled"][slot] > plan["base_time"][slot] == report.time
        assert credits(store, store.time())[slot] == seen["carry"][slot] <= 0.5 + plan["rate"][slot]
    others = np.setdiff1d(np.arange(50), store.visited)
    assert (seen["settled"][others] < plan["base_time"][others]).all()


def test_pages_beyond_one_chunk_are_planned_and_queued(store):
    """5,000 pages in two chunks: every rate is at its own slot, and what falls due soon is queued by exactly its deadline."""
    crawled(store, 5000)
    store.command("HSET", store.key("meta"), "clock", f"{START + 5:.6f}")
    report = Planner(store, parse(CRAWL_RATE=100, RESOLVE_INTERVAL=10)).plan()
    _page, _seen, plan = store.columns("page", "seen", "plan")
    assert len(plan) > CHUNK
    assert plan["rate"].sum() == pytest.approx(97, rel=1e-6)
    assert report is not None
    # The best pages of each chunk are visited at equal marginal values: both chunks get their share.
    assert 0.1 < plan["rate"][CHUNK:].sum() / 97 < 0.3
    client = store.connection.client
    queued = {int(s): at for host in range(1, 10) for s, at in client.zrange(store.key(f"due:{host}"), 0, -1, withscores=True)}
    with np.errstate(divide="ignore"):
        due = plan["base_time"] + (1 - plan["base_credit"]) / plan["rate"]
    expected = np.flatnonzero(due <= store.time() + 20)
    assert sorted(queued) == expected.tolist()
    assert len(queued) == report.queued > 100
    assert [queued[slot] for slot in expected] == pytest.approx(due[expected], abs=1e-5)


def test_what_falls_due_within_the_horizon_is_queued(store):
    """Under an "auto" budget too, whose horizon is longer because deadlines are anticipated."""
    crawled(store, 100)
    store.command("HSET", store.key("meta"), "opened", repr(START))
    store.set_time(START + 20)
    settings = parse(RESOLVE_INTERVAL=5)
    report = Planner(store, settings).plan()
    (plan,) = store.columns("plan")
    due = store.time() + (1 - plan["base_credit"]) / plan["rate"]
    assert report is not None
    assert 0 < report.queued == (due <= store.time() + horizon_s(settings)).sum() < 100


def test_pages_that_are_not_revisited_get_no_rate(store):
    """Waiting for their first visit, fetched once, retired, or forgotten."""
    crawled(store, 4)
    store.add(new_page("once/1", kind=ONCE), new_page("new/1", priority=-9))
    (once,), _ = store.dispatch(1)
    store.observe(once)
    store.run([("forget_page", [fingerprint("h1/1")])])
    report = Planner(store, parse(CRAWL_RATE=5)).plan()
    page, plan = store.columns("page", "plan")
    assert report is not None
    assert report.pages == 3
    assert page["state"][4] == DONE
    assert (plan["base_time"] > 0).tolist() == [True, False, True, True, False, False]


def test_a_page_that_was_gone_once_stays_queued_whatever_its_rate(store):
    """A plan must not move it out of sight: the second look decides whether it is retired."""
    crawled(store, 20)
    planner = Planner(store, parse(CRAWL_RATE=5, RESOLVE_INTERVAL=10))
    planner.plan()
    store.advance(100)
    (handout,), _ = store.dispatch(1)
    store.observe(handout, "refused")
    store.advance(5000)
    while (again := store.dispatch(1)[0][0]).slot != handout.slot:
        store.observe(again)
    store.observe(again, "gone", horizon=20.0)
    host = store.records_at("page", [handout.slot])["host"][0]
    key = store.key(f"due:{host}")
    (seen,) = store.records_at("seen", [handout.slot])
    assert seen["gone"] == 1
    due = float(store.command("ZSCORE", key, handout.slot))
    assert due == pytest.approx(seen["last_attempt"] + 2**13)
    for _ in range(4):
        planner.plan()
        store.advance(2500)
    planner.plan()
    assert float(store.command("ZSCORE", key, handout.slot)) == pytest.approx(due)


def test_the_first_plans_come_quickly(store):
    """None before the first fetch, at once after it, then after a second, at growing intervals up to RESOLVE_INTERVAL."""
    planner = Planner(store, parse(CRAWL_RATE=5, RESOLVE_INTERVAL=60))
    assert planner.due_in() is None
    store.add(new_page("a/1"))
    assert planner.due_in() is None
    store.visit_all()
    assert planner.due_in() == 0.0
    waits = []
    for _ in range(14):
        planner.plan()
        waits.append(planner.due_in())
        store.advance(waits[-1])
    assert waits[0] == pytest.approx(1.0, abs=1e-5)
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(60.0, abs=1e-4)


def test_an_auto_budget_is_what_was_measured(store):
    """Fetches of all kinds per second since the last plan; an hour of downtime says nothing."""
    store.command("HSET", store.key("meta"), "opened", repr(START))
    crawled(store, 100)
    store.set_time(START + 10)
    planner = Planner(store, parse())
    assert planner.plan().budget == pytest.approx(10.0, rel=1e-3)
    store.set_time(START + 20)
    store.run([("draw_tokens", ["0", 200])])
    assert planner.plan().budget == pytest.approx(15.0, rel=1e-3)
    store.set_time(START + 4000)
    assert planner.plan().budget == pytest.approx(15.0, rel=1e-3)


def test_an_empty_namespace_is_planned_without_a_page(store):
    report = Planner(store, parse(CRAWL_RATE=5)).plan()
    assert report is not None
    assert (report.pages, report.queued, report.planned_rate) == (0, 0, 0.0)
