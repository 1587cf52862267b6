"""Dispatch by live price in simulated crawls: near the optimum whatever the real bandwidth is, at a dozen evaluations a visit."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.scheduling.exploration import learning_rate
from optimal_frontier.scheduling.index import CANDIDATES, visit_value
from optimal_frontier.simulation import INDEXED_POLICIES, POLICY_NAMES, BandwidthChange, compare, simulate, standings, synthetic_world
from optimal_frontier.simulation.bandwidth import slot_times
from optimal_frontier.simulation.crawl import visits_of_plans
from optimal_frontier.simulation.index_crawl import ByPrice, indexed_visits
from optimal_frontier.simulation.learning import Filtering
from optimal_frontier.simulation.policies import PLANNERS, Exploring

SMALL = synthetic_world("A", pages=60)


@pytest.mark.parametrize("world", ["A", "B", "C"])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_it_is_near_the_optimum_of_the_real_bandwidth(world, factor):
    """With known rates, while plans go on assuming the old one: within 0.1% from a round after the change on; credit is far from it."""
    pages = synthetic_world(world, pages=250)
    rounds = 1 / pages.visits_per_page
    change = BandwidthChange(factor, since=10 * rounds)
    kept = {}
    for dispatch in ("edf", "index"):
        reports = [
            simulate(pages, "clairvoyant", 60 * rounds, seed, burn_in=11 * rounds, dispatch=dispatch, bandwidth=change) for seed in range(1)
        ]
        kept[dispatch] = np.mean([report.fraction for report in reports])
    assert 0.999 < kept["index"] < 1.001
    assert kept["edf"] < (0.9995 if factor == 1.0 else 0.97)


def test_learned_rates_keep_their_distance_to_the_optimum_when_the_bandwidth_halves():
    """By credit it grows; what is learned from fewer visits stays the same page by page."""
    change = BandwidthChange(0.5, since=100.0)
    pages = synthetic_world("A", pages=200)
    fraction = {}
    for dispatch in ("edf", "index"):
        steady, halved = (
            np.mean([simulate(pages, "median", 200.0, seed, dispatch=dispatch, bandwidth=real).fraction for seed in range(2)])
            for real in (None, change)
        )
        fraction[dispatch] = steady, halved
    assert fraction["index"][0] > fraction["edf"][0] - 0.003
    assert fraction["index"][1] > fraction["index"][0] - 0.005
    assert fraction["edf"][1] < fraction["index"][1] - 0.03


def test_a_visit_costs_about_a_dozen_evaluations():
    """And the price is the multiplier at the real bandwidth, up to a few per cent."""
    world = synthetic_world("A", pages=200).realise(300.0, seed=1)
    dispatch = ByPrice(200)
    visits = visits_of_plans(
        dispatch, world, PLANNERS["clairvoyant"](), Filtering(world), 300.0, 4.0, np.random.default_rng(0), BandwidthChange(0.5, 50.0)
    )
    assert dispatch.evaluations <= CANDIDATES * len(visits.pages)
    late = visits.times > 200.0
    last, rates = {}, world.known_rates(0.0)
    values = []
    for page, at in zip(visits.pages.tolist(), visits.times.tolist(), strict=True):
        if at > 200.0 and page in last:
            values.append(visit_value(world.importance[page], rates[page], at - last[page]))
        last[page] = at
    assert np.count_nonzero(late) >= len(values) > 500
    assert np.std(np.log(values)) < 0.05  # every visit is worth the same
    assert dispatch.price == pytest.approx(np.exp(np.mean(np.log(values))), rel=0.1)


@pytest.mark.parametrize("policy", INDEXED_POLICIES)
def test_every_slot_is_used_and_the_same_seed_gives_the_same(policy):
    world = SMALL.realise(80.0, seed=2)
    first, again = (indexed_visits(world, PLANNERS[policy](), Filtering(world), 80.0, 2.0, np.random.default_rng(0)) for _ in range(2))
    assert first.times * world.budget == pytest.approx(np.arange(960), abs=1e-6)
    assert first.pages.tolist() == again.pages.tolist()
    assert sorted(first.pages[:60]) == list(range(60))


@pytest.mark.parametrize("exploration", ["median", "mean", "thompson", "epsilon"])
def test_no_page_is_left_alone_for_good(exploration):
    """Lemma 2: whatever visits are worth, intervals stay below a bound, however long the crawl."""
    realised = synthetic_world("A", pages=20).realise(4500.0, seed=1)
    visits = indexed_visits(realised, Exploring(exploration), Filtering(realised), 4500.0, 45.0, np.random.default_rng(1))
    bound = 1.1 / learning_rate(20, realised.budget)
    for page in range(20):
        times = np.append(visits.times[visits.pages == page], 4500.0)
        assert np.diff(times).max() <= bound, page


def test_pages_of_one_rate_are_visited_evenly():
    """Explore-then-commit explores as under credit: nothing is worth more than the page whose turn it is."""
    world = SMALL.realise(60.0, seed=4)
    visits = indexed_visits(world, Exploring("explore-then-commit"), Filtering(world), 60.0, 2.0, np.random.default_rng(0))
    explored = visits.pages[: 60 * 4]  # of 12 rounds the first 4
    assert np.bincount(explored[60:], minlength=60).tolist() == [3] * 60


def test_pages_that_arrive_later_are_dispatched_too():
    """Half of the pages, from the plan after their arrival on."""
    world = synthetic_world("S", pages=60).realise(200.0, seed=1)
    visits = indexed_visits(world, Exploring("median"), Filtering(world), 200.0, 4.0, np.random.default_rng(0))
    late = np.flatnonzero(world.arrival > 0)
    assert len(late) > 20
    first, counts = (np.array([f(visits.times[visits.pages == page]) for page in late]) for f in (np.min, len))
    assert np.all(first - world.arrival[late] < 4.0 + 60 / world.budget)
    assert np.all(first >= world.arrival[late])
    assert np.median(counts) > 3


@pytest.mark.parametrize("policy", [name for name in POLICY_NAMES if name not in INDEXED_POLICIES])
def test_policies_without_a_solver_are_refused(policy):
    """They have no value of a visit to go by."""
    with pytest.raises(InvalidProblemError, match=f"policy '{policy}'.*index.*solves"):
        simulate(SMALL, policy, 20.0, 1, dispatch="index")


def test_standings_tell_dispatchers_apart():
    """Against the clairvoyant and the default under credit."""
    reports = list(compare([SMALL], ["median", "clairvoyant", "uniform"], [1, 2], 60.0, dispatches=("edf", "index")))
    found = {(one.policy, one.dispatch): one for one in standings(reports)}
    assert set(found) == {("median", "edf"), ("median", "index"), ("clairvoyant", "edf"), ("clairvoyant", "index"), ("uniform", "edf")}
    assert found["clairvoyant", "edf"].of_clairvoyant.mean == 1.0
    assert found["median", "edf"].behind_default.mean == 0.0
    expected = found["median", "index"].freshness.mean - found["median", "edf"].freshness.mean
    assert np.sign(found["median", "index"].behind_default.mean) == -np.sign(expected)


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


def test_an_unknown_dispatcher_is_named():
    with pytest.raises(InvalidProblemError, match="dispatch 'fifo': unknown; known are edf, index"):
        simulate(SMALL, "median", 20.0, 1, dispatch="fifo")
