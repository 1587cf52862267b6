"""The one harness: the law of dispatch and the learner of a live crawl in simulated crawls, one at a time, in batches and in flight."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import update_posterior, watch_habits
from optimal_frontier.estimation.bursts import Bursts, are_bursty, follow_bursts
from optimal_frontier.estimation.quantile import posterior_median
from optimal_frontier.optimization.response import marginal_share
from optimal_frontier.scheduling.numbers import Numbers, deadline, waits_at_price
from optimal_frontier.scheduling.price_law import candidates, log_price_after, rank
from optimal_frontier.simulation import (
    POLICY_NAMES,
    BandwidthChange,
    Conditions,
    compare,
    crawling,
    simulate,
    standings,
    synthetic_world,
)
from optimal_frontier.simulation.bandwidth import slot_times
from optimal_frontier.simulation.believing import MEDIAN, learn_bit, new_belief
from optimal_frontier.simulation.learners import Bits
from optimal_frontier.simulation.planned_crawl import PlannedCrawl
from optimal_frontier.simulation.policies import PLANNERS

SMALL = synthetic_world("A", pages=60)
ONE_AT_A_TIME = Conditions()
LIVE = Bits(watches=True, has_siblings=True)
PRICED = ("median", "mean", "thompson", "epsilon", "explore-then-commit", "explore-doubling", "clairvoyant")


def crawl_of(world, policy="median", horizon=80.0, learner=LIVE, bandwidth=None, conditions=ONE_AT_A_TIME, replan=2.0):
    crawl = PlannedCrawl(world, PLANNERS[policy](), learner, horizon, np.random.default_rng(0), replace(conditions, bandwidth=bandwidth))
    return crawl, crawl.run(replan)


@pytest.mark.parametrize("world", ["A", "B", "C"])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_it_is_near_the_optimum_of_the_real_bandwidth(world, factor):
    """With known rates, while plans go on assuming the old one: within 0.2% from a round after the change on."""
    pages = synthetic_world(world, pages=250)
    rounds = 1 / pages.visits_per_page
    change = BandwidthChange(factor, since=10 * rounds)
    # At half of the bandwidth a round is twice as long.
    report = simulate(pages, "clairvoyant", (60 if factor < 1 else 30) * rounds, 0, burn_in=11 * rounds, bandwidth=change)
    assert 0.998 < report.fraction < 1.001


def test_learned_rates_keep_their_distance_to_the_optimum_when_the_bandwidth_halves():
    pages, change = synthetic_world("A", pages=100), BandwidthChange(0.5, since=60.0)
    steady, halved = (
        np.mean([simulate(pages, "median", 120.0, seed, bandwidth=real).fraction for seed in range(2)]) for real in (None, change)
    )
    assert halved > steady - 0.005


def test_every_visit_is_worth_the_price():
    """At half the bandwidth that plans count with: values spread by a few per cent, around the price."""
    world = synthetic_world("A", pages=200).realise(300.0, seed=1)
    crawl, visits = crawl_of(world, "clairvoyant", 300.0, bandwidth=BandwidthChange(0.5, 50.0), replan=4.0)
    rates, last, values = world.known_rates(0.0), {}, []
    for page, at in zip(visits.pages.tolist(), visits.times.tolist(), strict=True):
        if at > 200.0 and page in last:
            changes = np.array([rates[page] * (at - last[page])])
            values.append(math.log(world.importance[page] / rates[page] * marginal_share(changes)[0]))
        last[page] = at
    assert len(values) > 500
    assert np.std(values) < 0.05
    assert crawl.crawl.price[crawling.LOG_PRICE] == pytest.approx(np.mean(values), abs=0.1)


@pytest.mark.parametrize("policy", PRICED)
def test_the_same_seed_gives_the_same_and_slots_are_used(policy):
    """Every slot, but for those in which all pages are pinned to even visits (explore-then-commit)."""
    world = SMALL.realise(40.0, seed=2)
    first, again = (crawl_of(world, policy, 40.0)[1] for _ in range(2))
    assert first.pages.tolist() == again.pages.tolist()
    assert sorted(first.pages[:60]) == list(range(60))
    assert len(first.pages) > (480 * 0.96 if policy.startswith("explore") else 479)
    assert (np.diff(first.times) > 0).all()


def test_explored_pages_are_visited_evenly():
    """Explore-then-commit: nothing is worth more than the page whose turn it is."""
    world = SMALL.realise(60.0, seed=4)
    _, visits = crawl_of(world, "explore-then-commit", 60.0)
    explored = visits.pages[(visits.times >= 5.0) & (visits.times < 20.0)]  # of 12 rounds the first 4
    assert set(np.bincount(explored, minlength=60).tolist()) <= {2, 3}


def test_pages_that_arrive_later_are_dispatched_too():
    """Half of the pages, from the plan after their arrival on."""
    world = synthetic_world("S", pages=60).realise(200.0, seed=1)
    _, visits = crawl_of(world, "median", 200.0, replan=4.0)
    late = np.flatnonzero(world.arrival > 0)
    first, counts = (np.array([f(visits.times[visits.pages == page]) for page in late]) for f in (np.min, len))
    assert np.all(first - world.arrival[late] < 4.0 + 60 / world.budget)
    assert np.all(first >= world.arrival[late])
    assert np.median(counts) > 3


def test_the_learner_is_that_of_estimation():
    """One page a time in plain floats against the array functions, over bits of all kinds: jumps, bursts, rare changes."""
    rng = np.random.default_rng(5)
    n, visits = 40, 120
    belief = new_belief(n, True, True, MEDIAN)
    belief.prior_shape[:], belief.prior_time[:] = 1.0 + rng.random(n), rng.lognormal(0, 1, n)
    shape, time = belief.prior_shape.copy(), belief.prior_time.copy()
    watch, followed = np.zeros((3, n)), [Bursts()] * n
    alarms = 0
    for visit in range(visits):
        intervals = rng.lognormal(0, 1, n)
        chance = np.where(visit < 60, 0.05, 0.9) * (rng.random(n) < 0.8) + (rng.random(n) < 0.02)
        changed = rng.random(n) < chance
        probability = -np.expm1(-shape * np.log1p(intervals / time))
        new, alarm = watch_habits(tuple(watch), shape, time, belief.prior_shape, belief.prior_time, intervals, changed)
        watch, followed = np.array(new), [follow_bursts(*one) for one in zip(followed, probability.tolist(), changed.tolist(), strict=True)]
        bursts = np.transpose(followed)
        shape, time = update_posterior(shape, time, intervals, changed)
        takes_over = alarm & ~are_bursty(bursts[1], bursts[2])
        shape, time = np.where(takes_over, watch[0], shape), np.where(takes_over, watch[1], time)
        alarms += int(takes_over.sum())
        rates = [learn_bit(belief, page, float(intervals[page]), bool(changed[page])) for page in range(n)]
        np.testing.assert_allclose(belief.shape, shape, rtol=1e-10)
        np.testing.assert_allclose(belief.time, time, rtol=1e-10)
        np.testing.assert_allclose(rates, posterior_median(shape, time), rtol=1e-8)
    assert alarms > 20
    np.testing.assert_allclose(np.array([belief.surprise, belief.score, belief.variance, belief.spread]), bursts, rtol=1e-7, atol=1e-9)


def test_visits_are_those_of_the_law():
    """Slot by slot against a dispatcher that sorts all pages anew each time: numbers once a visit, rank, price."""
    world = synthetic_world("A", pages=24, visits_per_page=0.5).realise(60.0, seed=1)
    crawl = PlannedCrawl(world, PLANNERS["clairvoyant"](), LIVE, 60.0, np.random.default_rng(0))
    begun = np.argsort(-world.importance, kind="stable")
    crawl._visit_first(begun)
    crawl.plan(2.0, np.arange(24))
    kept, rates = crawl.crawl, world.known_rates(0.0)
    numbers = {p: Numbers(*(float(kept[i][p]) for i in (3, 4, 5, 6))) for p in range(24)}
    last, score = kept.b.copy(), kept.score.copy()
    log_price, step = float(kept.price[crawling.LOG_PRICE]), float(kept.price[crawling.STEP])
    crawling.crawl_until(crawling.plain(kept), crawling.plain(crawl.belief), learn_bit, 300)
    for place in range(24, 300):
        now = float(kept.slots[place])
        head = sorted(range(24), key=lambda p: (score[p], p))[: candidates(1)]
        ranks = {p: rank(now - last[p], numbers[p].a + numbers[p].s * log_price, *numbers[p][1:]) for p in head if score[p] < math.inf}
        best = min(ranks, key=lambda p: (-ranks[p], p))
        assert kept.pages[place] == best
        wait = numbers[best].a + numbers[best].s * log_price
        if numbers[best].s > 0 and numbers[best].e < wait < numbers[best].l:
            log_price = log_price_after(log_price, ranks[best], step)
        for p in ranks:
            score[p] = deadline(last[p], numbers[p], log_price)
        last[best] = now
        weight, rate = world.importance[[best]], rates[[best]]
        (wait,), (slope,) = waits_at_price(log_price, weight, rate)
        if wait == math.inf and (lasting := float(kept.price[crawling.LASTING])) < log_price:
            (wait,), (slope,) = waits_at_price(lasting, weight, rate)
            wait += slope * (log_price - lasting)
        numbers[best] = Numbers(wait - slope * log_price, slope, 0.0, math.inf)
        score[best] = deadline(now, numbers[best], log_price)
    assert float(kept.price[crawling.LOG_PRICE]) == pytest.approx(log_price, abs=1e-9)


def test_pinned_pages_are_visited_at_their_interval():
    """Never before it; a little after it at most."""
    world = synthetic_world("A", pages=100).realise(160.0, seed=3)
    least, most = np.zeros(100), np.full(100, np.inf)
    least[:10] = most[:10] = 0.5
    _, visits = crawl_of(world, horizon=160.0, conditions=Conditions(least=least, most=most))
    for page in range(10):
        gaps = np.diff(visits.times[visits.pages == page])[3:]
        assert gaps.min() >= 2.0 - 1e-9
        assert gaps.mean() < 2.1


def test_minima_beyond_the_budget_are_stretched_alike():
    world = synthetic_world("A", pages=100).realise(200.0, seed=3)
    _, visits = crawl_of(world, horizon=200.0, conditions=Conditions(least=1.5 * world.budget / 100))
    late = visits.pages[visits.times > 50.0]
    counts = np.bincount(late, minlength=100)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("batch", [1, 8])
def test_hosts_keep_their_distance_and_use_their_turns(batch):
    """Never two fetches sooner than the pause, but for one that was late; a host whose pages are worth it uses what it has."""
    world = synthetic_world("A", pages=200).realise(120.0, seed=3)
    host = np.where(np.arange(200) < 120, 0, 1 + np.arange(200) % 4)
    conditions = Conditions(host=host, host_rate=np.full(5, world.budget / 5), batch=batch)
    _, visits = crawl_of(world, horizon=120.0, conditions=conditions)
    late = visits.times > 60.0
    rate = np.bincount(host[visits.pages[late]], minlength=5) / 60.0
    assert rate.max() <= world.budget / 5 * 1.01
    assert rate[0] > 0.95 * world.budget / 5
    assert len(visits.pages) > 0.97 * 120.0 * world.budget


@cache
def one_at_a_time(pages):
    return simulate(pages, "clairvoyant", 100.0, 1).fraction


@pytest.mark.parametrize("conditions", [Conditions(batch=16), Conditions(flight=16), Conditions(batch=4, flight=8)])
def test_batches_and_fetches_in_flight_keep_the_budget(conditions):
    """No page is in flight twice, every slot is used, and a thousand pages stay as fresh as one at a time."""
    pages = synthetic_world("A", pages=300)
    world = pages.realise(100.0, seed=1)
    _, visits = crawl_of(world, "clairvoyant", 100.0, conditions=conditions)
    assert len(visits.pages) == 6000
    away = {}
    for place, page in enumerate(visits.pages.tolist()):
        assert place - away.get(page, -math.inf) >= conditions.flight, page
        away[page] = place
    assert simulate(pages, "clairvoyant", 100.0, 1, conditions=conditions).fraction > one_at_a_time(pages) - 0.002


def test_plans_write_few_numbers():
    """Known rates: those at the edge of being worth the price, each plan a few per cent; the first plan all."""
    world = synthetic_world("A", pages=300).realise(200.0, seed=1)
    crawl, visits = crawl_of(world, "clairvoyant", 200.0)
    assert 300 <= crawl.rewritten < 300 + 0.1 * 300 * 100
    assert len(visits.pages) == 12_000


def test_a_crawl_without_a_price_takes_it_from_a_later_plan():
    """While all pages are pinned nothing moves the price; once they are not, it is the plan's at once."""
    report = simulate(synthetic_world("A", pages=100), "explore-then-commit", 100.0, 0)
    assert report.fraction > 0.97


def test_standings_are_against_the_clairvoyant_and_the_default():
    found = {one.policy: one for one in standings(compare([SMALL], ["median", "clairvoyant", "uniform"], [1, 2], 60.0))}
    assert found["clairvoyant"].of_clairvoyant.mean == 1.0
    assert found["median"].behind_default.mean == 0.0
    assert found["uniform"].behind_default.mean > 0.0


def test_slots_of_a_bandwidth_that_changes():
    """Twice as many while it is doubled, and the old distance again after it."""
    times = slot_times(10.0, 4.0, BandwidthChange(2.0, since=1.0, until=2.0))
    assert np.bincount(times.astype(int)).tolist() == [10, 20, 10, 10]
    assert np.all(np.diff(times) > 0)
    np.testing.assert_array_equal(slot_times(10.0, 4.0), np.arange(40) / 10.0)


def test_the_optimum_is_that_of_the_real_bandwidth():
    """On average over the time that is measured."""
    half, whole = (simulate(SMALL, "uniform", 80.0, 1, bandwidth=real).optimum for real in (BandwidthChange(0.5), None))
    mixed = simulate(SMALL, "uniform", 80.0, 1, bandwidth=BandwidthChange(0.5, since=70.0)).optimum
    assert half < whole
    assert mixed == pytest.approx(0.75 * whole + 0.25 * half, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"factor": 0.0}, "factor"), ({"factor": float("nan")}, "factor"), ({"factor": 2.0, "since": 5.0, "until": 5.0}, "since")],
)
def test_unusable_changes_of_the_bandwidth_are_named(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        BandwidthChange(**arguments)


@pytest.mark.parametrize("arguments", [{"batch": 0}, {"flight": 0}, {"host": np.zeros(60, int)}])
def test_unusable_conditions_are_named(arguments):
    with pytest.raises(InvalidProblemError, match=r"batch and flight|host and host_rate"):
        Conditions(**arguments)


def test_interval_rules_take_no_conditions():
    with pytest.raises(InvalidProblemError, match="policy 'nutch' keeps intervals"):
        simulate(SMALL, "nutch", 20.0, 1, conditions=Conditions(batch=2))
    assert "nutch" in POLICY_NAMES
