"""POLICY "poisson", played with dispatcher and planner on a clock that the test sets."""

from __future__ import annotations

from functools import partial

import numpy as np
import played_crawl
import pytest
from clocked_store import START
from played_crawl import Play
from scipy.stats import kstest

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.optimization import freshness_poisson, solve_poisson
from optimal_frontier.scheduling import LOAD, credit_at
from optimal_frontier.scheduling.exploration import learning_rate

parse = partial(played_crawl.parse, POLICY="poisson")


def test_gaps_are_exponential_with_the_planned_mean(store):
    """Of every page, over a dozen plans that redraw nothing: mean 1/rate, the whole distribution, and no memory of the gap before."""
    play = Play(store, parse(CRAWL_RATE=20, RESOLVE_INTERVAL=10))
    play.add(12)
    play.dispatcher = Dispatcher(store, parse(CRAWL_RATE=2000))  # nothing comes late
    play.until(130.0)
    rates = play.rates()
    assert rates.sum() == pytest.approx(LOAD * 20, rel=1e-6)
    relative = np.concatenate([rates[slot] * play.gaps(slot, since=3.0) for slot in play.visits])
    assert len(relative) > 2000
    assert relative.mean() == pytest.approx(1.0, abs=0.06)
    assert relative.std() / relative.mean() == pytest.approx(1.0, abs=0.06)
    assert kstest(relative, "expon").pvalue > 0.01
    assert abs(np.corrcoef(relative[:-1], relative[1:])[0, 1]) < 3 / np.sqrt(len(relative))
    for slot in play.visits:
        expected = rates[slot] * 127
        assert len(play.gaps(slot, since=3.0)) == pytest.approx(expected, abs=4 * np.sqrt(expected))


def test_rates_are_those_of_azars_algorithm(store):
    """And the estimate of the freshness is sum importance x rate / (rate + change rate), over all importance."""
    play = Play(store, parse(CRAWL_RATE=2))
    play.add(60)
    play.until(5.0)
    report = play.planner.plan()
    page, plan = store.columns("page", "plan")
    change_rate = posterior_median(*map(np.array, zip(*(play.posteriors[slot] for slot in range(60)), strict=True)))
    best = solve_poisson(page["importance"], change_rate, LOAD * 2, min_rate=learning_rate(60, 2.0))
    np.testing.assert_allclose(plan["rate"], best.rates, rtol=1e-6, atol=1e-9)
    assert report is not None
    assert report.multiplier == pytest.approx(best.multiplier, rel=1e-6)
    freshness = freshness_poisson(page["importance"], change_rate, plan["rate"]) / page["importance"].sum()
    assert report.estimated_freshness == pytest.approx(freshness, rel=1e-9)
    assert store.hash("published")["policy"] == "poisson"


def test_the_budget_stays_a_hard_bucket(store):
    """However the draws cluster; and what comes late for it is made up: long-run rates are the planned ones."""
    play = Play(store, parse(CRAWL_RATE=30))
    play.add(150)
    play.until(90.0)
    at = np.array(play.handouts)
    for window in (0.5, 5.0, 50.0):
        most = np.searchsorted(at, at + window) - np.arange(len(at))
        assert most.max() <= 30 * window + max(1, 3) + 1
    assert (at > START + 20).sum() / 70 == pytest.approx(LOAD * 30, rel=0.03)


def test_an_outage_causes_no_burst(store):
    """After an hour without a fetch each page is fetched once, and then at its rate: at most half a visit is made up."""
    play = Play(store, parse(CRAWL_RATE=20))
    play.add(40)
    play.until(100.0)
    store.set_time(START + 3700)
    play.dispatcher = Dispatcher(store, parse(CRAWL_RATE=1e6))
    play.until(3700.5)
    at_once = np.array([sum(at > START + 3600 for at in play.visits[slot]) for slot in range(40)])
    rates = play.rates()
    assert at_once.min() >= 1
    # One each, and those whose next draw is below what is left of the credit (half a visit) or of half a second.
    assert at_once.sum() <= 40 * (1 + 1 - np.exp(-0.5)) + 0.5 * rates.sum() + 3 * np.sqrt(40)


def test_pinned_pages_stay_evenly_spaced(store):
    """RULES that say an interval are taken at their word."""
    play = Play(store, parse(CRAWL_RATE=20))
    play.add(10, min_rate=0.5, max_rate=0.5)
    play.until(60.0)
    gaps = np.concatenate([play.gaps(slot, since=5.0) for slot in range(10)])
    assert gaps.mean() == pytest.approx(2.0, rel=0.02)
    assert gaps.std() < 0.2


def test_what_was_drawn_survives_plans_and_restarts(store):
    """A plan at other rates, and a new planner and dispatcher, change neither credit nor what is missing to the next visit."""
    play = Play(store, parse(CRAWL_RATE=5))
    play.add(30)
    play.until(50.0)
    play.dispatcher.exchange(Exchange(observations=play._ended))

    def missing() -> np.ndarray:
        seen, plan = store.columns("seen", "plan")
        return 1 - credit_at(store.time(), seen["carry"], seen["settled"], plan["rate"], plan["base_time"], plan["base_credit"])

    before, rates = missing(), play.rates().copy()
    assert before.max() > 1.5  # some draw beyond what evenly spaced visits would ever wait for
    assert Planner(store, parse(CRAWL_RATE=50)).plan() is not None
    assert not np.allclose(play.rates(), rates)
    np.testing.assert_allclose(missing(), before, rtol=1e-9, atol=1e-9)


def test_the_policy_may_change_between_two_runs(store):
    """Evenly spaced, memoryless, evenly spaced again: each run's gaps are its own, and a plan is due at once."""
    even = parse(CRAWL_RATE=15, POLICY="periodic")
    play = Play(store, even)
    play.add(30)
    play.until(40.0)

    def spread(since: float) -> float:
        gaps = [play.rates()[slot] * play.gaps(slot, since=since) for slot in play.visits]
        return float(np.std(np.concatenate(gaps)))

    assert spread(20.0) < 0.25
    store.command("HSET", store.key("published"), "first_time", "0")
    switched = Planner(store, parse(CRAWL_RATE=15))
    assert Planner(store, even).due_in() > 1.5
    assert switched.due_in() <= 1.0
    play.visits.clear()
    play.until(80.0, parse(CRAWL_RATE=15))
    assert spread(45.0) > 0.7
    # Back: a long draw does not hold a page back for more than two intervals.
    play.until(81.5, even)
    seen, plan = store.columns("seen", "plan")
    credit = credit_at(store.time(), seen["carry"], seen["settled"], plan["rate"], plan["base_time"], plan["base_credit"])
    assert credit.min() >= -1.0
    play.visits.clear()
    play.until(120.0)
    assert spread(95.0) < 0.25
