"""A live crawl tests each page's bits for bursts, on a clock that the test sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from clocked_store import START, fingerprint, new_page
from played_crawl import parse

from optimal_frontier.estimation.bursts import REJECTED, Bursts, sure_correlation, weibull_of_bits
from optimal_frontier.frontier.budget_curve import read_crawl_curve
from optimal_frontier.frontier.deadlines import LivePrice, deadlines
from optimal_frontier.frontier.dispatcher import Dispatcher
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.scheduling import LOAD, believed_rates
from optimal_frontier.scheduling.exploration import LEARNING_SHARE
from optimal_frontier.scheduling.index import visit_value
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.records import NOT_SURPRISED, Published, Surprises, encode_record

MEAN_S = 5000.0
PUBLISHED = Published(1.0, MEAN_S)


def crawl(store, shape: float, visits: int) -> Bursts:
    """Visit a page whose changes are those of a Weibull process every mean time between them; return what is stored at the end."""
    store.add(new_page("h/page", max_rate=1e3))
    return go_on(store, shape, range(visits))


def go_on(store, shape: float, visits: range) -> Bursts:
    changes = np.cumsum(MEAN_S / math.gamma(1 + 1 / shape) * np.random.default_rng(3).weibull(shape, 2000))
    for visit in visits:
        store.set_time(START + MEAN_S * (visit + 1))
        if visit:
            store.run([("force_page", [fingerprint("h/page")])])
            store.advance(0.001)
        (handout,), _ = store.dispatch(1)
        edition = int(np.searchsorted(changes, MEAN_S * visit))
        observation = judge_visit(handout, edition.to_bytes(16, "little"), 77, handout.received, PUBLISHED)
        store.run(store.observe_calls([observation], 1e15))
    return Bursts(*read_page(store, fingerprint("h/page")).surprises)


def test_a_bursty_page_is_found_from_its_bits(store):
    bursts = crawl(store, 0.4, 300)
    assert bursts.is_bursty
    assert 0.15 < bursts.correlation < 0.6


def test_a_poisson_page_is_not(store):
    bursts = crawl(store, 1.0, 300)
    assert not bursts.is_bursty
    assert abs(bursts.z) < REJECTED
    assert bursts.variance > 3


def test_what_is_kept_goes_with_the_page(store):
    """As 32-bit floats; nothing of it comes to the next page in its slot."""
    store.add(new_page("h/page", max_rate=1e3))
    store.visit_all(surprises=Surprises(0.25, 1.5, 2.0, 8.0))
    assert read_page(store, fingerprint("h/page")).surprises == pytest.approx((0.25, 1.5, 2.0, 8.0))
    store.run([("forget_page", [fingerprint("h/page")])])
    store.add(new_page("h/other", max_rate=1e3))
    assert read_page(store, fingerprint("h/other")).surprises == NOT_SURPRISED


def test_a_burst_is_not_taken_for_a_new_habit(store):
    """Of a page that is known to be bursty: its posterior goes on growing, whatever the watch for changed habits thinks of its bits."""
    assert crawl(store, 0.35, 200).is_bursty
    before = read_page(store, fingerprint("h/page"))
    go_on(store, 0.35, range(200, 600))
    after = read_page(store, fingerprint("h/page"))
    assert after.watch.relearned == before.watch.relearned
    assert after.seen["shape"] + after.seen["time"] / MEAN_S > before.seen["shape"] + before.seen["time"] / MEAN_S + 100


class Mixed:
    """A bursty page, twenty pages at a steady rate on its host and another, and one that is republished."""

    RULES = ({"pattern": "/news", "update_times": [200, (650, 0.5)], "period": 1000.0},)

    def __init__(self, store, visits: int = 400) -> None:
        self.store = store
        self.bursts = crawl(store, 0.35, visits)
        rng = np.random.default_rng(5)
        names = [f"{'h' if i % 2 else 'g'}/{i}" for i in range(20)]
        store.add(*(new_page(name, max_rate=1e3, importance=float(rng.uniform(0.5, 4))) for name in names))
        rules = parse(RULES=list(self.RULES))
        url = "http://g/news"
        store.add(Dispatcher(store, rules).new_page(fingerprint(url), url, encode_record({"url": url}), importance=3.0))
        slot = store.slot("h/page")
        for handout in store.dispatch(100)[0]:
            posterior = (handout.shape, handout.time) if handout.slot == slot else (rng.uniform(3, 30), rng.uniform(5, 30) * MEAN_S)
            store.observe(handout, shape=float(posterior[0]), time=float(posterior[1]))
        store.advance(1.0)
        self.slot, self.news = slot, int(store.command("HGET", store.key("ids"), fingerprint(url)))

    def plan(self, **settings):
        """Rates of a plan, and what a visit to each page is worth at them: to the bursty page by its model."""
        store = self.store
        settings = parse(**{"CRAWL_RATE": 0.02, "RULES": list(self.RULES)} | settings)
        report = Planner(store, settings).plan()
        page, seen, plan = store.columns("page", "seen", "plan")
        rates, kept = plan["rate"], seen[self.slot]
        medians = believed_rates(seen["shape"].copy(), seen["time"].copy(), report.revisit_budget)
        bursts = Bursts(*read_page(store, fingerprint("h/page")).surprises)
        self.shape, self.mean = weibull_of_bits(
            [kept["changes"]],
            [kept["observations"]],
            sure_correlation([bursts.score], [bursts.variance], [bursts.spread]),
            medians[[self.slot]],
        )
        with np.errstate(divide="ignore"):
            models = Weibull.from_mean(1 / medians, np.ones(len(medians)))
            worth = page["importance"] * models.crawl_worth(np.minimum(1 / rates, 1e4 * MEAN_S), settings.objective)
        self.poisson_worth = worth[self.slot]
        own = Weibull.from_mean(self.mean, np.round(self.shape, 3))
        worth[self.slot] = page["importance"][self.slot] * own.crawl_worth(1 / rates[[self.slot]], settings.objective)[0]
        return report, rates, worth


@pytest.mark.parametrize("objective", ["freshness", "changes"])
def test_a_bursty_page_gets_a_heavy_tailed_model_and_all_pay_one_price(store, objective):
    """With pages at a steady rate and one that is visited at update times; prices agree to 1e-3."""
    crawl_ = Mixed(store)
    assert crawl_.bursts.is_bursty
    report, rates, worth = crawl_.plan(OBJECTIVE=objective, CRAWL_RATE=0.01)
    assert 0.25 <= crawl_.shape[0] < 0.7
    assert 0.15 < crawl_.mean[0] / MEAN_S < 3.0
    others = np.delete(np.arange(22), [crawl_.slot, crawl_.news])
    visited = others[rates[others] > 0]
    assert rates[crawl_.slot] > 0
    assert rates[crawl_.news] in (1e-3, 2e-3)
    assert worth[crawl_.slot] == pytest.approx(report.multiplier, rel=1e-3)
    assert worth[visited] == pytest.approx(report.multiplier, rel=1e-3)
    assert len(visited) > 10
    assert abs(crawl_.poisson_worth / report.multiplier - 1) > 0.05
    assert rates.sum() == pytest.approx(LOAD * report.revisit_budget)


def test_before_there_are_enough_bits_it_is_planned_as_poisson(store):
    crawl_ = Mixed(store, visits=12)
    assert not crawl_.bursts.is_bursty
    report, _, _ = crawl_.plan()
    assert crawl_.poisson_worth == pytest.approx(report.multiplier, rel=1e-3)


def test_memoryless_visits_and_explorations_go_by_no_model(store):
    """Every page gets the same while ``explore-then-commit`` explores; with POLICY poisson its rate is that of the others' formula."""
    crawl_ = Mixed(store)
    _, rates, _ = crawl_.plan(EXPLORATION="explore-then-commit", CLOSE_AFTER=100_000, RULES=[])
    if store.hash("published")["exploration_rounds"] == "0.0":
        assert np.ptp(np.delete(rates, crawl_.news)) < 1e-9
    report, rates, _ = crawl_.plan(POLICY="poisson", RULES=[])
    seen = store.columns("seen")[0]
    change = believed_rates(seen["shape"].copy(), seen["time"].copy(), report.revisit_budget)[crawl_.slot]
    assert change / (rates[crawl_.slot] + change) ** 2 == pytest.approx(report.multiplier, rel=1e-3)


def test_a_full_host_has_one_price_for_all_models(store):
    crawl_ = Mixed(store)
    report, rates, worth = crawl_.plan(CRAWL_RATE=0.05, HOST_MAX_RATE=0.002, DISCOVERY_SHARE=0.0, RULES=[])
    (page,) = store.columns("page")
    host = (page["host"] == page["host"][crawl_.slot]) & (rates > 0)
    assert rates[host].sum() == pytest.approx(LOAD * 0.002, rel=1e-3)
    assert worth[host].min() > 1.5 * report.multiplier
    held = rates < 1.001 * LEARNING_SHARE * 0.05 / 22  # visited so often in any case
    assert worth[host & ~held] == pytest.approx(worth[crawl_.slot], rel=1e-3)
    assert (host & ~held).sum() > 8


def test_by_price_it_is_due_when_a_visit_is_worth_it_by_its_model(store):
    """That is at its planned interval, while the price is the planned one; later at a higher one, about as its model says."""
    crawl_ = Mixed(store)
    _, rates, _ = crawl_.plan(DISPATCH="index", RULES=[])
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    at, live = [crawl_.slot], LivePrice.read(store)
    due = deadlines(page[at], seen[at], plan[at], index[at], live)[0] - seen["last_seen"][crawl_.slot]
    assert due == pytest.approx(1 / rates[crawl_.slot], rel=1e-3)
    row = index[crawl_.slot]
    own = Weibull.from_mean(crawl_.mean, np.round(crawl_.shape, 3))
    for factor in (0.9, 1.0, 1.1):
        expected = float(own.crawl_worth(factor * due)[0])
        assert visit_value(row["weight"], row["change_rate"], factor * due) == pytest.approx(expected, rel=2e-3)
    others = np.delete(np.arange(22), crawl_.slot)
    assert (index["weight"][others] == page["importance"][others]).all()


def test_what_another_budget_would_buy_is_asked_of_the_same_models(store):
    crawl_ = Mixed(store)
    settings = {"CRAWL_RATE": 0.02, "RULES": []}
    crawl_.plan(**settings)
    curve = read_crawl_curve(store, parse(**settings))
    _, rates, _ = crawl_.plan(**settings | {"CRAWL_RATE": 0.04})
    assert curve.plan(0.04).rates == pytest.approx(rates, rel=1e-3)
    more, less = (curve.at(0.02 * (1 + sign * 1e-3)) for sign in (1, -1))
    assert curve.at(0.02).slope == pytest.approx((more.freshness - less.freshness) / 4e-5, rel=1e-2)
    assert curve.changes(0.02) > 0


def test_a_bursty_page_that_is_believed_never_to_change_is_planned_all_the_same(store):
    """The median of a posterior with a small shape is too small for a number."""
    store.add(new_page("h/page", max_rate=1e3))
    store.visit_all(bit=1, shape=1e-8, time=1.0, surprises=Surprises(0.25, 12.0, 9.0, 30.0))
    report = Planner(store, parse()).plan()
    assert report is not None
    assert report.pages == 1
