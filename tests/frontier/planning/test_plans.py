"""The planner, on pages that were observed through the scripts of a real server."""

from __future__ import annotations

import logging
import math
import time
import types

import numpy as np
import pytest
from crawled import START, Crawl, new_page, open_crawl, page_of, parse

from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.frontier.planning import planner as planner_module
from optimal_frontier.frontier.planning.page_table import SMALL, share_to_read
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.optimization import solve_periodic
from optimal_frontier.scheduling.numbers import Numbers, deadline, waits_at_price
from optimal_frontier.scheduling.price_law import GAIN
from optimal_frontier.state.layouts import pack_doubles
from optimal_frontier.state.messages import REST
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Belief, draw_call
from optimal_frontier.state.rows import DONE, ONCE, Row


def planned(crawl: Crawl, **values: object):
    planner = Planner(crawl.namespace, parse(**values))
    return planner, planner.plan()


def asks(crawl: Crawl) -> None:
    """As a crawler does that has no room, or finds nothing."""
    crawl.dispatch(0, belief=Belief(run=1.0))


def host_rates(planner: Planner) -> np.ndarray:
    pages = planner.crawl.tables[0].pages
    return np.bincount(pages["host"][planner.crawl.planned], weights=planner.rates)


def test_planned_rates_sum_to_the_budget(crawl):
    """All of it, within 1e-6; report and fields say the same."""
    crawl.crawled(500)
    planner, report = planned(crawl, CRAWL_RATE=20)
    assert report is not None
    assert report.pages == 500
    assert report.planned_rate == pytest.approx(20, rel=1e-6)
    assert planner.rates.sum() == pytest.approx(20, rel=1e-6)
    plan = crawl.plan()
    assert float(plan["planned_rate"]) == report.planned_rate
    assert float(plan["multiplier"]) == report.multiplier > 0
    assert float(plan["log_price"]) == math.log(report.multiplier) == crawl.log_price()
    assert 0 < float(plan["estimated_freshness"]) == report.estimated_freshness < 1
    assert plan["feasible"] == "1"


def test_stored_numbers_are_those_that_a_judge_makes(crawl):
    """After the first plan each page is due when a visit is worth the one price: at the interval that the solver gives it."""
    crawl.crawled(300)
    planner, _ = planned(crawl, CRAWL_RATE=20)
    terms = Terms(crawl.log_price(), crawl.published(), planner.settings)
    pages = planner.crawl.tables[0].pages
    rates = dict(zip([pages["id"][at].item() for at in planner.crawl.planned], planner.rates, strict=True))
    worth = 0
    for page, head in crawl.rows().items():
        row = Row(*head.tolist())
        assert (row.a, row.s, row.e, row.l) == pytest.approx(numbers_of(row, page, terms), rel=1e-5)
        if rates[page] > 1e-8:
            wait = deadline(0.0, numbers_of(row, page, terms), terms.log_price)
            assert wait == pytest.approx(1 / rates[page], rel=1e-4)
            worth += 1
        score = float(crawl.namespace.command("ZSCORE", crawl.namespace.key("q"), page))
        due = row.b + deadline(0.0, Numbers(row.a, row.s, row.e, row.l), terms.log_price) * 1e6
        assert score == pytest.approx(min(due, 9e15), abs=2.0)
    assert worth > 100


def test_only_pages_that_moved_are_written(crawl):
    """A second plan has nothing to say; a new budget moves no number; a page that teaches its siblings does."""
    crawl.crawled(200)
    planner, first = planned(crawl, CRAWL_RATE=20)
    assert first.written > 100
    crawl.advance(2)
    assert planner.plan().queued == 0
    assert planned(crawl, CRAWL_RATE=40)[1].queued == 0
    price = crawl.log_price()
    assert price == pytest.approx(math.log(first.multiplier))  # visits move it, plans do not
    # Another process knows nothing, reads all, and agrees.
    assert planned(crawl, CRAWL_RATE=20)[1].queued == 0


def test_no_deadline_that_is_made_anew_lies_in_the_past_and_no_plan_pushes_what_is_due_ahead(crawl):
    settings = parse(CRAWL_RATE=20)
    crawl.crawled(100)
    crawl.advance(3000)
    planner = Planner(crawl.namespace, settings)
    planner.plan()
    late = [page for page, head in crawl.rows().items() if head["a"] < np.inf]
    now = crawl.at
    scores = {page: float(crawl.namespace.command("ZSCORE", crawl.namespace.key("q"), page)) / 1e6 for page in late}
    assert min(scores.values()) >= now - 0.01
    assert sum(score < now + 0.01 for score in scores.values()) > 30
    crawl.advance(100)
    assert planner.plan().queued == 0
    assert Planner(crawl.namespace, settings).plan().queued == 0


def test_what_a_visit_is_not_worth_comes_back_when_it_is(crawl):
    """A page that changes too fast for the price waits for its longest interval, until the price falls."""
    crawl.crawled(50)
    planner, _ = planned(crawl, CRAWL_RATE=1)
    starved = [page for page, head in crawl.rows().items() if head["a"] == np.inf]
    assert len(starved) > 5
    crawl.set_time(crawl.at + 1)
    crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, crawl.log_price() - 6))
    planner.plan()
    assert sum(head["a"] == np.inf for head in crawl.rows().values()) < len(starved) / 2


def _with_price(crawl: Crawl, log_price: float) -> bytes:
    return pack_doubles(crawl.state()._replace(log_price=log_price))


def test_pages_of_which_only_the_price_has_risen_are_not_written(crawl):
    """Their numbers say when they are due at any price near by, and dispatch puts those back that come up early."""
    crawl.crawled(50)
    planner, first = planned(crawl, CRAWL_RATE=5)
    assert first.written > 30
    crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, crawl.log_price() + 0.08))
    assert planner.plan().queued == 0


def test_a_price_that_answers_to_nothing_is_set_anew(crawl):
    """Where no page is worth it, no visit can move it: the plan does."""
    crawl.crawled(50)
    planner, first = planned(crawl, CRAWL_RATE=5)
    for off in (40.0, -40.0):
        crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, off))
        planner.plan()
        assert crawl.log_price() == pytest.approx(math.log(first.multiplier), abs=1e-4)


@pytest.mark.parametrize(("new", "waiting", "moves"), [(10, 0, True), (1, 20, True), (1, 0, False)])
def test_the_price_of_a_crawl_that_has_grown_moves_as_that_of_its_plan_does(crawl, new, waiting, moves):
    """First visits do not move it. What visits have found stays where it has not grown, and their distance from the plan if it has.

    However little it was at a time in a first pass of many plans (more wait than three of these hold).
    """
    crawl.crawled(50)
    planner, first = planned(crawl, CRAWL_RATE=5, RESOLVE_INTERVAL=1)
    moved = crawl.log_price() + 0.3
    crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, moved))
    planner.plan()
    assert crawl.log_price() == moved
    crawl.add(*(new_page(f"grown/{i}", importance=1.0) for i in range(new)))
    crawl.observe_many([(handout, {"shape": 2.0, "time": 50.0}) for handout in crawl.firsts()])
    crawl.add(*(new_page(f"waiting/{i}") for i in range(waiting)))
    crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, moved))
    grown = planner.plan()
    assert grown.multiplier > first.multiplier
    by = math.log(grown.multiplier) - math.log(first.multiplier) if moves else 0.0
    assert crawl.log_price() == pytest.approx(moved + by, abs=1e-4)


def test_the_step_of_the_price_is_one_over_its_response(crawl):
    """R pages fall due per unit of the log price: found again by solving for a price that is a little off."""
    crawl.crawled(400)
    planner, report = planned(crawl, CRAWL_RATE=20)
    pages = planner.crawl.tables[0].pages
    importance, rate = pages["importance"].astype(float), planner.crawl.median
    waits = []
    for off in (-1e-4, 1e-4):
        waits.append(waits_at_price(math.log(report.multiplier) + off, importance, rate)[0])
    with np.errstate(invalid="ignore"):
        slope = (waits[1] - waits[0]) / 2e-4 / (0.5 * (waits[0] + waits[1]))
    free = np.isfinite(slope) & (waits[1] < 1e9)
    assert crawl.step() == pytest.approx(GAIN / np.minimum(slope[free], 2.0).sum(), rel=0.01)


def test_first_visits_that_wait_keep_their_share_of_the_budget(crawl):
    crawl.crawled(50)
    crawl.add(*(new_page(f"new/{i}") for i in range(1000)))
    _, report = planned(crawl, CRAWL_RATE=20, DISCOVERY_SHARE=0.25, RESOLVE_INTERVAL=10)
    assert report.revisit_budget == pytest.approx(15.0)
    assert report.pages == 50


def test_few_first_visits_keep_only_what_they_can_use_before_the_next_plan(crawl):
    """One page that waits does not take a quarter of the budget from all others."""
    crawl.crawled(50)
    crawl.add(new_page("new/1"))
    _, report = planned(crawl, CRAWL_RATE=20, DISCOVERY_SHARE=0.25)
    assert report.revisit_budget == pytest.approx(20 - 1 / 60)


def test_pins_are_respected(crawl):
    """200 pages pinned to 40 fetches a second in all, at a budget of 50."""
    crawl.crawled(300, min_interval=0.05)
    crawl.add(*(new_page(f"p/{i}", min_interval=5.0, max_interval=5.0) for i in range(200)))
    firsts = crawl.firsts()
    crawl.observe_many([(handout, {"shape": 1.0, "time": 100.0}) for handout in firsts])
    planner, report = planned(crawl, CRAWL_RATE=50)
    pages = planner.crawl.tables[0].pages
    pinned = (pages["min_interval"] == 5.0)[planner.crawl.planned]
    assert report.feasible
    assert pinned.sum() == 200
    assert planner.rates[pinned] == pytest.approx(0.2, rel=1e-9)
    assert planner.rates[~pinned].sum() == pytest.approx(10, rel=1e-6)


def test_minima_that_do_not_fit_are_scaled_with_one_warning(crawl, caplog):
    """The crawl goes on, all intervals are stretched alike, `feasible` is false, and the log is not flooded."""
    crawl.crawled(100, max_interval=1.0, min_interval=1e-3)
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=10))
    with caplog.at_level(logging.WARNING):
        reports = [planner.plan() for _ in range(3)]
    assert [report.feasible for report in reports] == [False] * 3
    assert planner.rates == pytest.approx(0.1)
    assert reports[0].stretch == pytest.approx(10.0)
    assert float(crawl.plan()["stretch"]) == reports[0].stretch
    (warned,) = (record.getMessage() for record in caplog.records)
    assert warned == "the intervals asked for (RULES, MAX_INTERVAL) need 100 fetches/s, of which 10 can be planned; they are scaled down"
    assert crawl.plan()["feasible"] == "0"
    assert all(head["l"] == pytest.approx(10.0) for head in crawl.rows().values())


def test_minima_that_a_host_does_not_bear_are_not_said_to_exceed_the_budget(crawl, caplog):
    crawl.crawled(20, max_interval=1.0, min_interval=1e-3)
    with caplog.at_level(logging.WARNING):
        Planner(crawl.namespace, parse(CRAWL_RATE=100, HOST_DELAY=1)).plan()
    (warned,) = (record.getMessage() for record in caplog.records)
    assert warned == "the intervals asked for (RULES, MAX_INTERVAL) are more than some hosts bear; they are scaled down"


def test_hosts_get_no_more_than_their_delay_allows(crawl):
    """1/HOST_DELAY is a constraint of the plan, all of it is planned, and a host at its limit has a price of its own."""
    crawl.crawled(90)
    planner, report = planned(crawl, CRAWL_RATE=50, HOST_DELAY=0.5)
    assert host_rates(planner).max() <= 2.0 * (1 + 1e-9)
    assert planner.rates.sum() == pytest.approx(18.0, rel=1e-6)
    prices = crawl.published().host_prices
    assert len(prices) == int(crawl.plan()["hosts_at_limit"]) == 9
    # A page of a full host is due at the interval at which the host is just full.
    pages = planner.crawl.tables[0].pages
    due = np.array([pages["a"][at] + pages["s"][at] * crawl.log_price() for at in planner.crawl.planned])
    free = np.isfinite(due) & (planner.rates > 1e-6) & (due < 1e8)
    assert due[free] == pytest.approx(1 / planner.rates[free], rel=0.01)
    assert free.sum() > 30
    assert report.queued > 30


def test_a_slow_host_keeps_room_for_its_own_first_visits(crawl):
    """DISCOVERY_SHARE counts per host where the host, not the budget, is the limit; other hosts are left as they are."""
    crawl.crawled(90)
    crawl.add(*(new_page(f"h1/new{i}") for i in range(100)))
    planner, _ = planned(crawl, CRAWL_RATE=500, HOST_DELAY=0.5, DISCOVERY_SHARE=0.25, RESOLVE_INTERVAL=10)
    sums = host_rates(planner)
    number = int(crawl.namespace.command("HGET", crawl.namespace.key("hosts"), "h1"))
    assert sums[number] == pytest.approx(1.5, rel=1e-6)
    others = [s for h, s in enumerate(sums) if s > 0 and h != number]
    assert others == pytest.approx([2.0] * len(others), rel=1e-6)


def test_hosts_without_a_planned_page_have_a_limit_too(crawl):
    """Also while they have the highest numbers."""
    crawl.crawled(20, hosts=2)
    crawl.add(*(new_page(f"later{i}/1") for i in range(3)))
    planner, report = planned(crawl, CRAWL_RATE=20, HOST_MAX_RATE=2.0)
    assert report.feasible
    assert planner.rates.sum() == pytest.approx(4.0)


def test_a_crawl_that_has_grown_is_planned_sooner(crawl):
    """Pages that no plan has seen do not wait a whole RESOLVE_INTERVAL."""
    crawl.crawled(20)
    planner, _ = planned(crawl, CRAWL_RATE=20)
    crawl.set_plan(first_time="0")  # long past the first, quick plans
    assert planner.due_in() == pytest.approx(60, abs=1)
    crawl.namespace.command("HINCRBY", crawl.namespace.key("stats"), "fetched", 3)
    assert planner.due_in() <= 6


@pytest.mark.parametrize("grown", [0, 3])
def test_plans_take_a_tenth_of_the_time_of_a_new_crawl_at_most(crawl, grown):
    """Where the processor is busy each takes seconds, and fetches wait for it."""
    crawl.crawled(20)
    planner, _ = planned(crawl, CRAWL_RATE=20)
    last = float(crawl.namespace.hash("plan")["time"])
    crawl.set_plan(first_time=repr(last - 4.0), seconds="0.05")
    crawl.namespace.command("HINCRBY", crawl.namespace.key("stats"), "fetched", grown)
    assert planner.due_in() == pytest.approx(2, abs=0.5)
    for seconds, wait in (("1.5", 15), ("70", 60)):
        crawl.set_plan(seconds=seconds)
        assert planner.due_in() == pytest.approx(wait, abs=0.5)
    crawl.set_plan(first_time=repr(last))  # most of those seconds were to load what the others need
    assert planner.due_in() <= 1
    crawl.set_plan(first_time=repr(last - 4.0), policy="poisson")
    assert Planner(crawl.namespace, planner.settings).due_in() <= 1


@pytest.mark.parametrize(
    "other",
    [
        {"POLICY": "poisson"},
        {"OBJECTIVE": "changes"},
        {"EXPLORATION": "epsilon"},
        {"MAX_INTERVAL": 1e8},
        {"RULES": [{"pattern": "h1/", "importance": 3}]},
    ],
)
def test_other_settings_bring_a_plan_soon(crawl, other):
    crawl.crawled(20)
    planned(crawl, CRAWL_RATE=20)
    crawl.set_plan(first_time="0")
    switched = Planner(crawl.namespace, parse(CRAWL_RATE=20, **other))
    assert Planner(crawl.namespace, parse(CRAWL_RATE=20)).due_in() > 50
    assert switched.due_in() <= 1.0
    switched.plan()
    crawl.set_plan(first_time="0")
    assert switched.due_in() > 50


def test_two_crawlers_of_other_settings_do_not_plan_in_turns_without_end(crawl, caplog):
    """Each wrote all pages anew a second after the other, and told of settings that nobody had changed."""
    crawl.crawled(20)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=20, MIN_INTERVAL=least)) for least in (1, 2))
    one.plan()
    crawl.set_plan(first_time="0")
    assert other.due_in() <= 1.0
    with caplog.at_level("INFO"):
        for planner in (other, one, other, one):
            planner.plan()
            crawl.set_plan(first_time="0")
            assert one.due_in() > 50
            assert other.due_in() > 50
    assert caplog.text.count("RULES or interval bounds changed") == 1
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 2
    assert "under another RULES, MIN_INTERVAL or MAX_INTERVAL: some crawler of namespace" in warned[0]


class OvertakenNamespace(Namespace):
    """Another planner takes the lock before the script named ``before``."""

    before = ""

    def run(self, calls):
        if calls and calls[0].script == self.before:
            self.before = ""
            self.command("DEL", self.key("planner"))
            self.run([calls[0]._replace(script="take_planner_lock", arguments=["another", 10_000])])
        return super().run(calls)


@pytest.mark.parametrize("before", ["publish_plan", "write_plan"])
def test_a_planner_that_lost_the_lock_writes_nothing_more(redis_socket, namespace, before):
    """Before it publishes: nothing at all."""
    crawl = open_crawl(redis_socket, namespace, kind=OvertakenNamespace)
    crawl.crawled(20)
    rows = {page: head.tobytes() for page, head in crawl.rows().items()}
    crawl.namespace.before = before
    assert Planner(crawl.namespace, parse(CRAWL_RATE=5)).plan() is None
    assert {page: head.tobytes() for page, head in crawl.rows().items()} == rows
    assert bool(crawl.plan()) is (before == "write_plan")
    assert crawl.namespace.command("GET", crawl.namespace.key("planner")) == b"another"
    crawl.namespace.connection.close()


def test_one_planner_at_a_time_and_no_plan_is_lost(crawl, monkeypatch):
    """While one plans the other is turned away; the one's plan is whole; afterwards the other gets its turn."""
    crawl.crawled(5)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    meanwhile = []
    problem = one.crawl.problem
    monkeypatch.setattr(one.crawl, "problem", lambda *arguments: meanwhile.append(other.plan()) or problem(*arguments))
    assert one.plan() is not None
    assert meanwhile == [None]
    assert crawl.plan()["number"] == "1"
    assert other.plan() is not None


def test_a_slow_plan_keeps_its_lock(crawl, monkeypatch):
    """It is renewed while the plan is made, however long that takes."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.LOCK_S", 0.3)
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.RENEW_S", 0.0)
    crawl.crawled(200)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    run, turned_away = crawl.namespace.run, []

    def slow(calls):
        if calls[0].script in ("publish_plan", "write_plan") and calls[0].arguments[0] == one.lock.fences.get(0):
            time.sleep(0.2)
            turned_away.append(other.lock.take())
        return run(calls)

    monkeypatch.setattr(crawl.namespace, "run", slow)
    report = one.plan()
    assert report is not None
    assert report.written > 100
    assert len(turned_away) > 2
    assert not any(turned_away)


def test_two_crawlers_that_find_a_plan_due_make_one(crawl):
    """The second one has its turn when the first one is through, and finds that nothing is due."""
    crawl.crawled(5)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    assert one.due_in() == other.due_in() == 0.0
    assert one.plan(if_due=True) is not None
    assert other.plan(if_due=True) is None
    assert crawl.plan()["number"] == "1"


def test_a_plan_that_fails_gives_the_lock_back(crawl, monkeypatch):
    crawl.crawled(5)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    monkeypatch.setattr(one.crawl, "problem", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one.plan()
    assert other.plan() is not None


def test_a_visit_while_a_plan_is_computed_keeps_its_numbers(crawl, monkeypatch):
    """The plan knows nothing of it: its numbers for that page are dropped."""
    settings = parse(CRAWL_RATE=5)
    crawl.crawled(50)
    planner = Planner(crawl.namespace, settings)
    problem, visited = planner.crawl.problem, []

    def visit(*arguments):
        crawl.advance(1)
        handout = crawl.take("h0/0")
        crawl.observe(handout, settings, a=7.0, s=0.0, e=7.0, l=7.0)
        visited.append(handout.page)
        return problem(*arguments)

    monkeypatch.setattr(planner.crawl, "problem", visit)
    report = planner.plan()
    assert visited == [page_of("h0/0")]
    assert report.written == report.queued - 1
    assert crawl.row("h0/0").a == 7.0


def test_a_page_that_is_under_way_keeps_its_numbers(crawl):
    crawl.crawled(20)
    handout = crawl.take("h0/0")
    _, report = planned(crawl, CRAWL_RATE=5)
    assert report.written == report.queued - 1
    assert crawl.row("h0/0") == handout.row
    assert crawl.observe(handout) == 1


def test_pages_that_are_not_revisited_are_not_planned(crawl):
    """Waiting for their first visit, fetched once, or forgotten."""
    crawl.crawled(4)
    crawl.add(new_page("once/1", state=ONCE))
    (once,) = crawl.firsts()
    crawl.observe(once, op=REST, state=DONE)
    crawl.add(new_page("new/1"))
    crawl.run("forget", page_of("h1/1"))
    _, report = planned(crawl, CRAWL_RATE=5)
    assert report.pages == 3
    assert crawl.row("once/1").state == DONE


def test_a_page_that_failed_keeps_its_backoff_and_leaves_its_budget_to_others(crawl):
    crawl.crawled(20)
    handout = crawl.take("h0/0")
    crawl.observe(handout, failures=12)
    row, due = crawl.row("h0/0"), crawl.due("h0/0")
    planner, _ = planned(crawl, CRAWL_RATE=5)
    assert (crawl.row("h0/0"), crawl.due("h0/0")) == (row, due)
    pages = planner.crawl.tables[0].pages
    (at,) = np.flatnonzero(pages["failures"][planner.crawl.planned] > 0)
    assert planner.rates[at] <= 1 / row.l * (1 + 1e-6)
    assert planner.rates.sum() == pytest.approx(5)


def test_the_first_plans_come_quickly(crawl):
    """None before the first fetch, at once after it, then after a second, at growing intervals up to RESOLVE_INTERVAL."""
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=5, RESOLVE_INTERVAL=60))
    assert planner.due_in() is None
    crawl.add(new_page("a/1"))
    assert planner.due_in() is None
    for handout in crawl.dispatch():
        crawl.observe(handout)
    assert planner.due_in() == 0.0
    waits = []
    for _ in range(14):
        planner.plan()
        waits.append(planner.due_in())
        crawl.advance(waits[-1])
    assert waits[0] == pytest.approx(1.0, abs=1e-5)
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(60.0, abs=1e-4)


def test_an_auto_budget_is_what_was_measured(crawl):
    """Fetches of all kinds per second since the last plan; an hour of downtime says nothing."""
    crawl.crawled(100)
    crawl.set_time(START + 10)
    planner = Planner(crawl.namespace, parse())
    assert planner.plan().budget == pytest.approx(10.0, rel=1e-3)
    crawl.set_time(START + 20)
    crawl.namespace.run([draw_call(0, 0.0, 200)])
    assert planner.plan().budget == pytest.approx(15.0, rel=1e-3)
    assert float(crawl.plan()["measured_rate"]) == pytest.approx(15.0, rel=1e-3)
    crawl.set_time(START + 4000)
    assert planner.plan().budget == pytest.approx(15.0, rel=1e-3)


def test_an_auto_budget_after_a_stop_is_that_of_the_last_plan_if_nothing_was_measured(crawl):
    """A crawl with a CRAWL_RATE measures nothing; a day of downtime is no time in which it fetched."""
    crawl.crawled(100)
    crawl.set_time(START + 10)
    Planner(crawl.namespace, parse(CRAWL_RATE=15)).plan()
    crawl.set_time(START + 86400)
    assert Planner(crawl.namespace, parse()).plan().budget == pytest.approx(15.0)
    crawl.advance(60)  # nobody has fetched yet
    assert Planner(crawl.namespace, parse()).plan().budget == pytest.approx(15.0)
    crawl.advance(20)
    crawl.namespace.run([draw_call(0, 0.0, 40)])
    assert Planner(crawl.namespace, parse()).plan().budget == pytest.approx((15.0 + 2.0) / 2)


def test_an_auto_budget_after_a_short_stop_is_near_that_of_the_last_plan(crawl):
    """A restart with another CRAWL_RATE is no gap that could be told from a slow crawl."""
    crawl.crawled(100)
    crawl.set_time(START + 10)
    Planner(crawl.namespace, parse(CRAWL_RATE=15)).plan()
    crawl.advance(100)
    crawl.namespace.run([draw_call(0, 0.0, 100)])
    assert Planner(crawl.namespace, parse()).plan().budget == pytest.approx((15.0 + 1.0) / 2)


@pytest.mark.parametrize(("share", "budget"), [("0.0", "5.0"), ("inf", "inf"), ("1.0", "inf")])
def test_a_damaged_budget_of_the_last_plan_counts_nothing(crawl, share, budget):
    crawl.crawled(100)
    crawl.set_time(START + 10)
    Planner(crawl.namespace, parse(CRAWL_RATE=15)).plan()
    crawl.namespace.command("HSET", crawl.namespace.key("plan"), "share", share, "budget", budget)
    crawl.advance(50)
    crawl.namespace.run([draw_call(0, 0.0, 100)])
    assert Planner(crawl.namespace, parse()).plan().budget == pytest.approx(2.0)


def test_fetches_of_a_partition_that_was_away_are_no_capacity(crawl):
    """All that it ever made would count as made since the last plan."""
    crawl.crawled(100)
    crawl.set_time(START + 10)
    planner = Planner(crawl.namespace, parse())
    budget = planner.plan().budget
    crawl.namespace.command("HSET", crawl.namespace.key("plan"), "measured_partitions", 2, "measured_fetches", 0)
    crawl.advance(10)
    assert planner.plan().budget == pytest.approx(budget)


def test_plans_while_no_crawler_runs_leave_an_auto_budget(crawl):
    """As of `plan --every`. A crawler that asks and gets nothing is another matter."""
    crawl.crawled(100)
    crawl.set_time(START + 10)
    planner = Planner(crawl.namespace, parse())
    budget = planner.plan().budget
    for _ in range(5):
        crawl.advance(60)
        assert planner.plan().budget == pytest.approx(budget)
    crawl.advance(60)
    asks(crawl)
    assert planner.plan().budget == pytest.approx(budget / 2)


def test_a_crawl_that_stopped_before_its_first_plan_has_no_budget_of_next_to_nothing(crawl):
    """Its fetches were made in three RESOLVE_INTERVALs at most, as a plan would have come."""
    crawl.crawled(100)
    crawl.set_time(START + 86400)
    assert Planner(crawl.namespace, parse(RESOLVE_INTERVAL=10)).plan().budget == pytest.approx(100 / 30)


def test_an_auto_budget_is_not_what_a_crawl_makes_whose_pages_are_all_pinned(crawl):
    """Few fetches are no sign that no more could be made there; else intervals would be stretched for ever, as after an outage."""
    crawl.crawled(100, min_interval=36000, max_interval=36000)
    crawl.set_time(START + 10)
    planner = Planner(crawl.namespace, parse())
    for _ in range(40):
        report = planner.plan()
        assert (report.feasible, report.stretch) == (True, 1.0)
        crawl.advance(60)
        asks(crawl)
    assert report.budget == pytest.approx(100 / 36000)
    crawl.add(new_page("other/1"))  # of an ordinary page more could be fetched
    crawl.advance(60)
    asks(crawl)
    assert planner.plan().budget < 1e-3


def test_redirects_retries_and_robots_txt_are_taken_from_the_budget(crawl):
    """All of them: no part of the budget is left unplanned to make up for it."""
    crawl.crawled(100)
    planner, _ = planned(crawl, CRAWL_RATE=10)
    crawl.advance(20)
    crawl.namespace.run([draw_call(0, 10.0, 40)])
    assert planner.plan().revisit_budget == pytest.approx(8.0)


def test_an_empty_namespace_is_planned_without_a_page(crawl):
    """And the price is set once there is one."""
    _, report = planned(crawl, CRAWL_RATE=5)
    assert (report.pages, report.queued, report.planned_rate) == (0, 0, 0.0)
    assert "log_price" not in crawl.plan()
    crawl.crawled(10)
    _, report = planned(crawl, CRAWL_RATE=0.001)
    assert crawl.log_price() == pytest.approx(math.log(report.multiplier))


def test_a_budget_that_serves_all_visits_them_as_often_as_they_may_be(crawl):
    """The price is low enough for that, and still a number."""
    crawl.crawled(30, min_interval=2.0)
    planner, report = planned(crawl, CRAWL_RATE=1000)
    assert report.multiplier == 0
    assert planner.rates == pytest.approx(0.5)
    assert math.isfinite(crawl.log_price())
    for page, head in crawl.rows().items():
        assert head["a"] + head["s"] * crawl.log_price() <= 2.0, page


def test_a_budget_that_serves_all_gives_no_page_up(crawl):
    """What a held host has made of the price is gone with the next plan, though at the plan's own price no visit moves it."""
    crawl.crawled(30, min_interval=2.0)
    planner, _ = planned(crawl, CRAWL_RATE=1000)
    found = crawl.log_price()
    for _ in range(2):  # a price that two plans have found is taken for the one that lasts
        crawl.namespace.command("SET", crawl.namespace.key("d"), _with_price(crawl, found + 20.0))
        planner.plan()
    assert crawl.log_price() == pytest.approx(found)
    assert crawl.plan()["given_up"] == "0"


def test_one_price_over_all_partitions(redis_socket, namespace):
    """The plan of four partitions is that of one; each gets the share of the budget that its pages have at the one price."""
    one, four = open_crawl(redis_socket, namespace), open_crawl(redis_socket, namespace + "-4", partitions=4)
    reports, prices = [], []
    for crawl in (one, four):
        rng = np.random.default_rng(3)
        values = {f"h{i % 9}/{i}": (rng.uniform(0.1, 5), rng.uniform(0.5, 9), 10 ** rng.uniform(0, 4)) for i in range(300)}
        crawl.add(*(new_page(name, importance=values[name][0]) for name in values))
        by_page = {page_of(name): value for name, value in values.items()}
        crawl.observe_many([(h, {"shape": by_page[h.page][1], "time": by_page[h.page][2]}) for h in crawl.firsts()])
        reports.append(Planner(crawl.namespace, parse(CRAWL_RATE=12)).plan())
        prices.append({round(crawl.log_price(k), 9) for k in range(crawl.namespace.partitions)})
    assert reports[0].multiplier == pytest.approx(reports[1].multiplier, rel=1e-4)
    assert len(prices[1]) == 1
    plans = [four.published(k) for k in range(4)]
    assert sum(plan.share for plan in plans) == pytest.approx(1.0)
    assert sum(plan.budget for plan in plans) == pytest.approx(12.0)
    for plan in plans:
        assert plan.share == pytest.approx(float(plan.fields["planned_rate"]) / 12, abs=0.01)
    assert len({round(plan.share, 3) for plan in plans}) > 1
    for crawl in (one, four):
        crawl.namespace.connection.close()


def test_large_tables_are_read_by_parts(redis_socket, namespace, monkeypatch):
    """What is visited is known again within half a round; pages that were forgotten leave; those that join come."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SMALL", 100)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SCAN_COUNT", 50)
    crawl = open_crawl(redis_socket, namespace)
    crawl.crawled(2000, hosts=3)
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=20))
    assert planner.plan().read == 2000
    assert planner.plan().read < 200
    crawl.run("forget", page_of("h0/0"))
    crawl.add(new_page("h0/joins"))
    for handout in crawl.firsts():
        crawl.observe(handout, shape=3.0, time=5.0)
    for _ in range(140):
        planner.plan()
    ids = set(planner.crawl.tables[0].pages["id"].tolist())
    assert page_of("h0/0") not in ids
    assert page_of("h0/joins") in ids
    assert len(ids) == 2000
    stored = crawl.rows()
    pages = planner.crawl.tables[0].pages
    for at, page in enumerate(pages["id"].tolist()):
        assert (pages["b"][at], pages["shape"][at]) == (stored[page]["b"], stored[page]["shape"])
    crawl.namespace.connection.close()


def test_how_much_is_read():
    """As much as was visited, twice over."""
    assert share_to_read(SMALL * 10, SMALL) == pytest.approx(0.2)
    assert share_to_read(10**6, 10**6) == 1.0


def test_the_solver_of_the_plan_is_the_exact_one(crawl):
    """Rates are those of `solve_periodic` for the posterior medians, under the crawl's own bounds, nothing else."""
    crawl.crawled(200, max_interval=5000.0)
    planner, report = planned(crawl, CRAWL_RATE=3)
    pages = planner.crawl.tables[0].pages
    best = solve_periodic(
        pages["importance"].astype(float), planner.crawl.median, 3.0, min_rate=1 / 5000.0, max_rate=1 / pages["min_interval"].astype(float)
    )
    np.testing.assert_allclose(planner.rates, best.rates, rtol=1e-6, atol=1e-12)
    assert report.multiplier == pytest.approx(best.multiplier, rel=1e-6)


@pytest.mark.parametrize(("trip_s", "is_far"), [(0.0, False), (0.05, True)])
def test_a_plan_is_written_in_few_round_trips_where_they_are_long(crawl, monkeypatch, trip_s, is_far):
    """One call after the other to a server nearby; else one, then seven at once."""
    crawl.crawled(512)
    sent, now, run = [], [0.0], crawl.namespace.run
    clock = types.SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter, time=time.time)
    monkeypatch.setattr(planner_module, "time", clock)

    def far(calls):
        now[0] += trip_s
        sent.append([call.script for call in calls].count("write_plan"))
        return run(calls)

    monkeypatch.setattr(crawl.namespace, "run", far)
    _, report = planned(crawl, CRAWL_RATE=20)
    calls = math.ceil(report.written / 64)
    assert calls > 4
    assert [n for n in sent if n] == ([1, calls - 1] if is_far else [1] * calls)
