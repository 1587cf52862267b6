"""Pages with update times in a live crawl, on a clock that the test sets."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START, fingerprint
from played_crawl import Play, parse

from optimal_frontier.frontier.deadlines import deadlines_at_most
from optimal_frontier.frontier.dispatcher import horizon_s
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.session import apply_bounds
from optimal_frontier.frontier.timed_pages import probabilities_of
from optimal_frontier.settings import Timetable
from optimal_frontier.state.consistency import check_state
from optimal_frontier.state.reading import read_status
from optimal_frontier.state.records import Published, UpdateTimes, encode_record
from optimal_frontier.state.update_times import read_update_times

PERIOD = 1000.0
#: START is a multiple of the period.
TIMES = (200.0, 650.0)
RULES = [{"pattern": "/news", "update_times": [200, (650, 1.0)], "period": PERIOD}]
URL = "http://h0/news"


class TimedPlay(Play):
    """A crawl of steady pages, and of pages that are republished."""

    def __init__(self, store, settings):
        super().__init__(store, settings)
        self.posteriors = {}

    def add_news(self, url: str = URL, **meta: object) -> int:
        self.store.add(self.dispatcher.new_page(fingerprint(url), url, encode_record({"url": url}), **meta))
        slot = int(self.store.command("HGET", self.store.key("ids"), fingerprint(url)))
        self.posteriors[slot] = (2.0, 500.0)
        return slot

    def check(self) -> None:
        report = check_state(self.store, deadlines_at_most, horizon_s(self.settings), sleep=lambda _: None)
        assert (report.violations, report.warnings) == ([], [])


def phases(play, slot, since=0.0):
    """Times of visits within the period."""
    return np.array([(at - START) % PERIOD for at in play.visits[slot] if at >= START + since])


def started(store, settings, pages=20, **values):
    play = TimedPlay(store, settings)
    play.add(pages)
    return play, play.add_news(**values)


@pytest.mark.parametrize("dispatch", ["edf", "index"])
def test_a_republished_page_is_visited_within_a_second_of_its_times_and_never_before(store, dispatch):
    """At both of them, as both are bought, on a crawler whose budget is spent; its other pages keep the rates that the rest of it buys."""
    play, slot = started(store, parse(CRAWL_RATE=2.0, RULES=RULES, DISPATCH=dispatch), importance=30.0)
    play.until(2500.0)
    at = phases(play, slot, 500.0)
    late = np.array([min(phase - time for time in TIMES if phase >= time) for phase in at])
    assert len(at) == 4
    assert late.max() < 1.0
    assert late.min() >= 0.05
    rates = play.rates()
    assert rates[slot] == pytest.approx(2 / PERIOD)
    assert rates.sum() == pytest.approx(0.97 * 2.0)
    visits = np.array([sum(at >= START + 500.0 for at in play.visits[other]) for other in range(20)])
    planned = 2000.0 * rates[:20]
    if dispatch == "index":
        # By price the whole budget is spent, and a page whose visits are hardly worth it gets some more or none.
        assert visits.sum() == pytest.approx(2000.0 * (2.0 - 2 / PERIOD), rel=0.02)
        visits, planned = visits[planned > 100], planned[planned > 100]
        assert len(planned) >= 12
    assert visits == pytest.approx(planned, rel=0.15, abs=4)
    play.check()


def test_the_plan_buys_the_time_that_is_worth_it(store):
    """Of two times only the one that almost always changes the page; the other one is not visited."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.02), (650, 1.0)], "period": PERIOD}]
    play, slot = started(store, parse(CRAWL_RATE=0.3, RULES=rules), importance=0.6)
    play.until(5000.0)
    at = phases(play, slot, 1000.0)
    assert len(at) == 4
    assert ((at >= 650.0) & (at < 660.0)).all()
    assert store.records_at("bought", [slot])["times"].tolist() == [2.0]
    play.check()


def test_a_page_whose_times_are_not_worth_a_visit_is_looked_at_once_in_its_longest_interval(store):
    """At an update time, so that its probabilities go on being learned."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.02)], "period": PERIOD, "max_interval": 2500}]
    play, slot = started(store, parse(CRAWL_RATE=0.2, RULES=rules), importance=0.001)
    play.until(7000.0)
    at = [visit - START for visit in play.visits[slot]]
    assert [visit // PERIOD for visit in at][-2:] == [3, 6]
    assert store.records_at("bought", [slot])["times"].tolist() == [0.0]
    assert ((phases(play, slot, 1500.0) - 200.0) < 5.0).all()


def visit(store, slot):
    """Hand the page out, if it is due, to a crawler that never idles; judge and end it unchanged."""
    taken = [handout for handout in store.dispatch(10, budget=0.0)[0] if handout.slot == slot]
    for handout in taken:
        store.observe(handout)
    return len(taken)


def test_a_crawler_that_never_idles_waits_for_the_update_time(store):
    """And says how long, not the pause of an anticipated page."""
    play = TimedPlay(store, parse(RULES=RULES))
    slot = play.add_news()
    store.set_time(START + 5.0)
    assert visit(store, slot) == 1
    assert store.dispatch(10, budget=0.0)[0] == []
    assert store.dispatch(10, budget=0.0)[1] == pytest.approx(195.1)
    store.set_time(START + 200.0)
    assert visit(store, slot) == 0
    store.set_time(START + 200.2)
    assert visit(store, slot) == 1
    store.set_time(START + 640.0)
    assert visit(store, slot) == 0


@pytest.mark.parametrize("dispatch", ["edf", "index"])
def test_many_pages_that_wait_for_their_times_stand_in_nobodys_way(store, dispatch):
    """A crawler that never idles and is ahead of its plan goes on with other pages; at their time, and not before, all are handed out."""
    play = TimedPlay(store, parse(CRAWL_RATE=1.28, RULES=RULES, DISPATCH=dispatch, RESOLVE_INTERVAL=3600))
    play.add(20)
    news = {play.add_news(f"http://h{number % 7}/news/{number}", importance=100.0) for number in range(600)}
    store.set_time(START + 5.0)
    store.visit_all()
    play.planner.plan()
    assert (store.records_at("bought", sorted(news))["times"] == 3.0).all()
    steady, calls = set(range(20)), 0
    for second in range(10, 200):
        store.set_time(START + second)
        handouts, wait = store.dispatch(5, budget=0.0)
        while not handouts and wait == 0:
            handouts, wait = store.dispatch(5, budget=0.0)
            calls += 1
        assert handouts
        assert {handout.slot for handout in handouts} <= steady
        for handout in handouts:
            store.observe(handout)
    assert calls <= 3
    play.check()
    store.set_time(START + 200.2)
    handouts, _ = store.dispatch(600, budget=0.0)
    assert {handout.slot for handout in handouts} == news
    assert max(handout.lateness for handout in handouts) < 0.2


def test_a_shut_host_with_many_pages_at_their_times_stands_in_nobodys_way(store):
    """And its pages count as late until it opens."""
    rules = [{"pattern": "news", "update_times": [200], "period": PERIOD}]
    play = TimedPlay(store, parse(CRAWL_RATE=1.5, RULES=rules, RESOLVE_INTERVAL=3600))
    shut = {play.add_news(f"http://h0/news/{number}") for number in range(60)}
    open_ = play.add_news("http://h1/news")
    store.set_time(START + 5.0)
    store.visit_all()
    play.planner.plan()
    store.set_time(START + 150.0)
    assert store.dispatch(5, budget=0.0)[0] == []
    store.run([("hold_host", ["h0", "100.0"])])
    store.set_time(START + 200.2)
    assert [handout.slot for handout in store.dispatch(5, budget=0.0)[0]] == [open_]
    assert read_status(store).due == 60
    store.set_time(START + 251.0)
    assert {handout.slot for handout in store.dispatch(100, budget=0.0)[0]} == shut


def test_force_goes_at_once_and_a_late_crawler_leaves_the_tenth_before_alone(store):
    play = TimedPlay(store, parse(RULES=RULES))
    slot = play.add_news()
    store.set_time(START + 5.0)
    visit(store, slot)
    store.set_time(START + 120.0)
    store.run([("force_page", [fingerprint(URL)])])
    store.advance(0.001)
    assert visit(store, slot) == 1
    store.set_time(START + 560.0)  # the visit of 200 s was never made; 650 s is near
    assert visit(store, slot) == 0
    store.set_time(START + 650.2)
    assert visit(store, slot) == 1
    store.set_time(START + 1540.0)  # as late, but not near
    assert visit(store, slot) == 1


def test_a_failed_visit_is_tried_again_and_not_just_before_the_next_time(store):
    play = TimedPlay(store, parse(RULES=RULES))
    slot = play.add_news()
    store.set_time(START + 5.0)
    visit(store, slot)
    store.set_time(START + 300.0)
    for failures in range(1, 8):
        (handout,), _ = store.dispatch(1, budget=0.0)
        store.observe(handout, "failed")
        store.advance(2.0**failures + 0.001)
    assert store.time() - START == pytest.approx(554.0, abs=0.1)
    taken, wait = store.dispatch(1, budget=0.0)
    assert (taken, store.time() - START + wait) == ([], pytest.approx(650.1))
    store.set_time(START + 650.2)
    assert visit(store, slot) == 1


def bits(store, slot, rng, chances, rounds=60):
    """Visit after each time; the page changes at each with its chance."""
    content, published = 0, Published(1.0, 5000.0)
    for at in range(2 * rounds):
        store.set_time(START + (at // 2 + 1) * PERIOD + TIMES[at % 2] + 0.2)
        content += int(rng.random() < chances[at % 2])
        (handout,) = [h for h in store.dispatch(10, budget=0.0)[0] if h.slot == slot]
        observation = judge_visit(handout, content.to_bytes(16, "little"), 77, handout.received, published)
        store.run(store.observe_calls([observation], 1e15))


def test_probabilities_are_learned_from_bits_and_change_what_is_bought(store):
    play = TimedPlay(store, parse(CRAWL_RATE=0.05, RULES=RULES))
    play.add(20)
    slot = play.add_news(importance=0.08)
    for handout in store.dispatch(100, budget=0.0)[0]:
        store.observe(handout, content=b"\x4d\0\0\0" + b"x" * 16)
    store.advance(1.0)
    play.planner.plan()
    assert store.records_at("bought", [slot])["times"].tolist() == [3.0]
    bits(store, slot, np.random.default_rng(4), (0.05, 0.95))
    stored = read_update_times(store)
    (learned,) = stored.learned
    assert stored.slots.tolist() == [slot]
    assert probabilities_of(learned, stored.timetables[learned.number]) == pytest.approx([0.05, 0.95], abs=0.15)
    play.planner.plan()
    assert store.records_at("bought", [slot])["times"].tolist() == [2.0]


def test_changed_rules_reach_stored_pages(store):
    """What was learned stays under the same timetable, and goes with another one; without one the page is as any other."""
    settings = parse(RULES=RULES)
    apply_bounds(store, settings)
    slot = TimedPlay(store, settings).add_news()
    store.visit_all(learned=UpdateTimes(1, ((3.0, 4.0), (5.0, 6.0))))
    apply_bounds(store, parse(RULES=[{**RULES[0], "importance": 3.0}]))
    assert read_update_times(store).learned == [UpdateTimes(1, ((3.0, 4.0), (5.0, 6.0)))]
    assert store.records_at("page", [slot])["importance"].tolist() == [3.0]
    other = Timetable(50.0, (10.0,), (1.0,))
    apply_bounds(store, parse(RULES=[{"pattern": "/news", "update_times": [10], "period": 50}]))
    stored = read_update_times(store)
    assert (stored.learned, stored.timetables[2]) == ([UpdateTimes(2)], other)
    apply_bounds(store, parse(RULES=[]))
    assert read_update_times(store).learned == []


def test_a_page_that_is_forgotten_takes_its_times_along(store):
    """And what an old lease learned of another timetable is not stored."""
    settings = parse(RULES=RULES)
    play = TimedPlay(store, settings)
    play.add_news()
    (handout,), _ = store.dispatch(1)
    apply_bounds(store, settings)
    apply_bounds(store, parse(RULES=[{"pattern": "/news", "update_times": [10], "period": 50}]))
    store.observe(handout, learned=UpdateTimes(1, ((3.0, 4.0), (5.0, 6.0))))
    assert read_update_times(store).learned == [UpdateTimes(2)]
    store.run([("forget_page", [fingerprint(URL)])])
    assert read_update_times(store).learned == []
    play.check()


def test_a_host_that_is_paused_delays_its_own_pages_only(store):
    """The page of the open host goes at its time."""
    rules = [{"pattern": "news", "update_times": [200], "period": PERIOD}]
    play = TimedPlay(store, parse(RULES=rules))
    shut, open_ = play.add_news(), play.add_news("http://h1/news")
    store.set_time(START + 5.0)
    store.visit_all()
    store.run([("hold_host", ["h0", "400.0"])])
    store.set_time(START + 200.2)
    assert [handout.slot for handout in store.dispatch(5, budget=0.0)[0]] == [open_]
    store.set_time(START + 406.0)
    assert [handout.slot for handout in store.dispatch(5, budget=0.0)[0]] == [shut]
