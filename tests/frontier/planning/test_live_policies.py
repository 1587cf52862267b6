"""POLICY "poisson", update times, and changed RULES in the plans of a live crawl."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from crawled import START, Crawl, new_page, page_of, parse

from optimal_frontier.frontier.judging.update_times import numbers_of_timed, republished
from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.frontier.planning.bounds import BoundsRevision
from optimal_frontier.frontier.planning.curve import read_crawl_curve
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.optimization import freshness_poisson, solve_poisson
from optimal_frontier.scheduling.numbers import draw_of, fixed
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.published import Published
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.rows import ACTIVE, CHECKED, DONE, HEAD_BYTES, TAIL_BYTES, TIMED, Row

PERIOD = 1000.0
TIMES = (200.0, 650.0)
RULES = [{"pattern": "/news", "update_times": [200, (650, 1.0)], "period": PERIOD}]


def planned(crawl: Crawl, **values: object):
    planner = Planner(crawl.namespace, parse(**values))
    return planner, planner.plan()


def test_memoryless_rates_are_those_of_azars_algorithm(crawl):
    """And the estimate of the freshness is sum importance x rate / (rate + change rate), over all importance."""
    crawl.crawled(60, max_interval=1e9)
    planner, report = planned(crawl, CRAWL_RATE=2, POLICY="poisson")
    pages = planner.crawl.tables[0].pages
    importance, rate = pages["importance"].astype(float), planner.crawl.median
    best = solve_poisson(importance, rate, 2.0, min_rate=1e-9)
    np.testing.assert_allclose(planner.rates, best.rates, rtol=1e-6, atol=1e-9)
    assert report.multiplier == pytest.approx(best.multiplier, rel=1e-6)
    freshness = freshness_poisson(importance, rate, planner.rates) / importance.sum()
    assert report.estimated_freshness == pytest.approx(freshness, rel=1e-9)
    assert crawl.plan()["policy"] == "poisson"


def test_memoryless_waits_are_draws_that_a_plan_does_not_draw_anew(crawl):
    """Mean interval times the draw of this visit; the same after another plan, and in another process."""
    crawl.crawled(60)
    planner, _ = planned(crawl, CRAWL_RATE=10, POLICY="poisson")
    pages = planner.crawl.tables[0].pages
    rates = dict(zip(pages["id"].tolist(), planner.rates, strict=True))
    drawn = 0
    for page, head in crawl.rows().items():
        wait = head["a"] + head["s"] * crawl.log_price()
        if rates[page] > 1e-8:
            assert wait == pytest.approx(draw_of(page, 1) / rates[page], rel=1e-3)
            drawn += 1
    assert drawn > 20
    before = {page: head.tobytes() for page, head in crawl.rows().items()}
    crawl.advance(0.001)
    assert planner.plan().queued == planned(crawl, CRAWL_RATE=10, POLICY="poisson")[1].queued == 0
    assert {page: head.tobytes() for page, head in crawl.rows().items()} == before


def test_the_policy_may_change_between_two_runs(crawl):
    """All numbers are those of the new one after its first plan; pinned pages stay evenly spaced."""
    crawl.crawled(30)
    crawl.add(*(new_page(f"p/{i}", min_interval=50.0, max_interval=50.0) for i in range(5)))
    firsts = crawl.firsts()
    crawl.observe_many([(handout, {"shape": 2.0, "time": 100.0}) for handout in firsts])
    for policy in ("periodic", "poisson", "periodic"):
        planner, _ = planned(crawl, CRAWL_RATE=10, POLICY=policy)
        terms = Terms(crawl.log_price(), crawl.published(), planner.settings)
        for page, head in crawl.rows().items():
            row = Row(*head.tolist())
            assert (row.a, row.s, row.e, row.l) == pytest.approx(tuple(numbers_of(row, page, terms)), rel=0.06, abs=1e-3)
    assert crawl.row("p/1").a == crawl.row("p/1").l == 50.0


def with_news(crawl: Crawl, settings, importance: float = 1.0, visited: float = START) -> None:
    """Add a page with update times, and visit it as a judge does before the first plan: all its times are bought."""
    crawl.add(new_page("h0/news", importance=importance, flags=TIMED, min_interval=1.0, max_interval=1e6))
    (handout,) = crawl.firsts()
    row = handout.row._replace(b=visited * 1e6, visits=1, flags=TIMED, unseen=0.0)
    page = republished(settings.rules.of("http://h0/news").update_times, Memory())
    a, s, e, longest = numbers_of_timed(page, row, handout.page, Terms(0.0, crawl.published(), settings))
    crawl.observe(handout, settings, flags=TIMED, a=a, s=s, e=e, l=longest)


def test_update_times_that_are_worth_it_are_bought_and_paid_for(crawl):
    """At both times where both are; the other pages get what is left of the budget."""
    settings = parse(CRAWL_RATE=2.0, RULES=RULES)
    crawl.crawled(20)
    with_news(crawl, settings, importance=30.0)
    planner = Planner(crawl.namespace, settings)
    report = planner.plan()
    pages = planner.crawl.tables[0].pages
    timed = pages["flags"] & TIMED > 0
    assert planner.rates[timed] == pytest.approx(2 / PERIOD)
    assert report.planned_rate == pytest.approx(2.0)
    assert crawl.due("h0/news") == pytest.approx(START + 200.1, abs=0.01)


def test_the_plan_buys_the_time_that_is_worth_it(crawl):
    """Of two times only the one that almost always changes the page; the stored deadline moves there."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.02), (650, 1.0)], "period": PERIOD}]
    settings = parse(CRAWL_RATE=0.3, RULES=rules)
    crawl.crawled(20)
    with_news(crawl, settings, importance=0.6)
    assert crawl.due("h0/news") == pytest.approx(START + 200.1, abs=0.01)
    planner = Planner(crawl.namespace, settings)
    planner.plan()
    assert planner.rates[planner.crawl.tables[0].pages["flags"] & TIMED > 0] == pytest.approx(1 / PERIOD)
    assert crawl.due("h0/news") == pytest.approx(START + 650.1, abs=0.01)
    assert planner.plan().queued == 0


def test_a_page_whose_times_are_not_worth_a_visit_waits_for_its_longest_interval(crawl):
    """At the last update time in it, so that its probabilities go on being learned."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.02)], "period": PERIOD}]
    settings = parse(CRAWL_RATE=0.2, RULES=rules)
    crawl.crawled(20)
    with_news(crawl, settings, importance=0.001)
    planner = Planner(crawl.namespace, settings)
    planner.plan()
    assert planner.rates[planner.crawl.tables[0].pages["flags"] & TIMED > 0].tolist() == [0.0]
    assert crawl.due("h0/news") == pytest.approx(START + 1e6 - 799.9, abs=1.0)


def test_changed_rules_reach_stored_pages(crawl):
    """Bounds, importance, update times; pages that are no longer to be revisited are done; what a request stated stands."""
    crawl.crawled(20, importance=1.0)
    planned(crawl, CRAWL_RATE=2.0)
    rules = [
        {"host": "h1", "importance": 4.0, "min_interval": 5, "max_interval": 500},
        {"host": "h2", "interval": 60},
        {"host": "h3", "revisit": False},
        {"host": "h4", "update_times": [200], "period": PERIOD},
    ]
    pages = crawl.namespace.counts()["pages"]
    _, report = planned(crawl, CRAWL_RATE=2.0, RULES=rules)
    row = crawl.row("h1/1")
    assert (row.importance, row.min_interval, row.max_interval) == (4.0, 5.0, 500.0)
    assert (row.e, row.l) == (5.0, 500.0)
    row = crawl.row("h2/2")
    assert (row.min_interval, row.max_interval, row.l) == (60.0, 60.0, 60.0)
    assert crawl.row("h3/3").state == DONE
    assert crawl.namespace.command("ZSCORE", crawl.namespace.key("q"), page_of("h3/3")) is None
    gone = sum(head["state"] == DONE for head in crawl.rows().values())
    assert crawl.namespace.counts()["pages"] == pages - gone
    assert report.pages == 20 - gone
    assert crawl.row("h4/4").flags == TIMED
    assert crawl.due("h4/4") == pytest.approx(START + 200.1, abs=0.01)
    assert crawl.row("h0/0").importance == 1.0
    assert crawl.namespace.counts()["fetched"] == pages - gone


def test_a_rule_that_is_gone_takes_back_what_it_gave(crawl, caplog):
    """Importance, bounds, update times, and that pages are fetched once; what a request stated stays, and so does its own word."""
    crawl.crawled(20, importance=1.0)
    planned(crawl, CRAWL_RATE=2.0)
    before = crawl.namespace.counts()
    rules = [
        {"host": "h1", "importance": 4.0, "max_interval": 500},
        {"host": "h3", "revisit": False},
        {"host": "h4", "update_times": [200], "period": PERIOD},
    ]
    planned(crawl, CRAWL_RATE=2.0, RULES=rules)
    done = sum(head["state"] == DONE for head in crawl.rows().values())
    own = crawl.row("h3/3")
    post = pack_record({"url": "http://h3/3", "method": "POST"}, "h3")
    value = crawl.namespace.command("HGET", crawl.namespace.key("pages"), page_of("h3/12"))
    crawl.namespace.command("HSET", crawl.namespace.key("pages"), page_of("h3/12"), value[: HEAD_BYTES + TAIL_BYTES] + post)
    with caplog.at_level(logging.INFO):
        _, report = planned(crawl, CRAWL_RATE=2.0)
    assert (crawl.row("h1/1").importance, crawl.row("h1/1").max_interval, crawl.row("h4/4").flags) == (1.0, 1e9, 0)
    again = crawl.row("h3/3")
    assert (again.state, again.shape, again.visits) == (ACTIVE, own.shape, own.visits)
    assert crawl.namespace.command("ZSCORE", crawl.namespace.key("q"), page_of("h3/3")) is not None
    assert crawl.row("h3/12").state == DONE
    assert report.pages == 19
    after = crawl.namespace.counts()
    assert {name: before[name] - after[name] for name in ("pages", "fetched")} == {"pages": 1, "fetched": 1}
    (line,) = [record.message for record in caplog.records if record.message.startswith("RULES")]
    assert line.endswith(f"bounds and importance of {3 + 2 + done - 1} pages follow")


def test_nothing_is_revised_while_the_rules_stay_the_same(crawl):
    """Not by another process either, and not by what counts as content."""
    crawl.crawled(20)
    planned(crawl, CRAWL_RATE=2.0)
    revised = []
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=2.0, FINGERPRINT="body"))
    planner.crawl.revise = lambda *arguments: revised.append(arguments)
    planner.plan()
    assert revised == []


def test_what_another_budget_would_buy(crawl):
    """The curve at the present budget is the plan; it rises; the budget for a freshness is found again; nothing is written."""
    crawl.crawled(200)
    planner, report = planned(crawl, CRAWL_RATE=20, HOST_MAX_RATE=8)
    before = crawl.plan(), {page: head.tobytes() for page, head in crawl.rows().items()}
    curve = read_crawl_curve(crawl.namespace, planner.settings)
    here = curve.at(20.0)
    assert here.freshness == pytest.approx(report.estimated_freshness, rel=1e-6)
    assert here.multiplier == pytest.approx(report.multiplier, rel=1e-4)
    np.testing.assert_allclose(curve.plan(20.0).rates, planner.rates, rtol=1e-4, atol=1e-9)
    values = [curve.at(budget).freshness for budget in (5.0, 10.0, 20.0, 40.0)]
    assert values == sorted(values)
    assert curve.budget_for(here.freshness).budget == pytest.approx(20.0, rel=1e-3)
    limit = curve.limit()
    total = limit.freshness + limit.not_fetched + limit.bounds + limit.hosts + limit.failures
    assert total == pytest.approx(1.0)
    assert limit.hosts > 0
    assert (crawl.plan(), {page: head.tobytes() for page, head in crawl.rows().items()}) == before
    assert crawl.namespace.command("EXISTS", crawl.namespace.key("planner")) == 0


def test_changed_rules_leave_the_time_of_a_second_look(judged):
    """It is not after the least interval, as the check of a noisy page is; the new bounds hold."""
    url = "http://a.example/fast"
    judged.add(url)
    judged.see_all()
    judged.rewrite(url, flags=CHECKED, **fixed(500.0)._asdict())
    values = {"OPTIMAL_FRONTIER_CRAWL_RATE": 1.0, "OPTIMAL_FRONTIER_MIN_INTERVAL": 1.0}
    for longest, expected in ((1e5, 500.0), (200.0, 200.0)):
        settings = FrontierSettings.parse(values | {"OPTIMAL_FRONTIER_MAX_INTERVAL": longest})
        revision = BoundsRevision(judged.namespace, 0, Terms(0.0, Published(number=1, prior_time=50.0), settings), judged.time)
        value = judged.namespace.command("HGET", judged.key("pages"), judged.page(url))
        revision.see([judged.page(url)], [value])
        assert revision.revised == 1
        assert judged.row(url).l == expected
