"""A simulated crawl: the budget, the order of visits, the arithmetic of the live crawl, and what policies keep."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.scheduling.exploration import LEARNING_SHARE, uniform_rate
from optimal_frontier.simulation import POLICY_NAMES, Exploring, Nutch, simulate, synthetic_world
from optimal_frontier.simulation.interval_rules import RULES
from optimal_frontier.simulation.learners import Bits
from optimal_frontier.simulation.planned_crawl import planned_visits
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.ruled_crawl import ruled_visits

SMALL = synthetic_world("A", pages=60)


def visits_of(policy, world, horizon, replan=2.0):
    if policy in RULES:
        return ruled_visits(world, RULES[policy](len(world) / world.budget), horizon)
    return planned_visits(world, PLANNERS[policy](), Bits(), horizon, replan, np.random.default_rng(0))


def equal(one, other):
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name), equal_nan=f.type == "float") for f in dataclasses.fields(one))


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_budget_is_never_exceeded_and_never_idle(policy):
    """One visit to a slot, every slot in its place; first visits first, the most important page first."""
    world = SMALL.realise(80.0, seed=2)
    visits = visits_of(policy, world, 80.0)
    slots = visits.times * world.budget
    if policy.startswith("explore"):  # pages that are explored come at even intervals, not sooner
        assert slots == pytest.approx(np.round(slots), abs=1e-6)
        assert 0.95 * 960 < len(slots) < 960
        assert np.diff(slots).min() > 0.5
    else:
        assert slots == pytest.approx(np.arange(960), abs=1e-6)
    assert sorted(visits.pages[:60]) == list(range(60))
    assert world.importance[visits.pages[:60]].tolist() == sorted(world.importance, reverse=True)


def test_frontera_waits_until_pages_are_due():
    """With two visits to a page and day it uses half of the budget."""
    world = synthetic_world("A", pages=10, visits_per_page=2.0).realise(50.0, seed=1)
    visits = visits_of("frontera", world, 50.0)
    assert len(visits.pages) == 500
    for page in range(10):
        assert np.diff(visits.times[visits.pages == page]).min() > 1.0 - 1e-9


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_the_same_seed_gives_the_same_report(policy):
    first, again, other = (simulate(SMALL, policy, 25.0, seed) for seed in (3, 3, 4))
    assert equal(first, again)
    assert first.freshness != other.freshness
    assert 0 < first.freshness < 1
    assert (first.by_time <= 1).all()
    assert 0.95 * 300 < first.visits <= 300


def test_pages_with_rates_go_by_the_earliest_deadline():
    """Policies that say revisit rates: of the first of the queue the one that is latest, as a share of its interval."""
    world = synthetic_world("A", pages=4, visits_per_page=0.5).realise(60.0, seed=1)
    rates = np.array([1.0, 0.6, 0.3, 0.1])
    visits = planned_visits(world, lambda what: rates, Bits(), 60.0, 3.0, np.random.default_rng(0))
    last = np.zeros(4)
    last[visits.pages[:4]] = visits.times[:4]
    for page, now in zip(visits.pages[4:], visits.times[4:], strict=True):
        late = 2.0 * ((now - last) * rates - 1.0)
        assert late[page] == pytest.approx(late.max(), abs=1e-9)
        last[page] = now


def test_posteriors_are_those_of_one_page_at_a_time():
    """With several visits to a page between two plans."""
    world = synthetic_world("A", pages=4, visits_per_page=1.0).realise(30.0, seed=6)
    seen = []

    def planner(what):
        seen.append((what.now, what.shape.copy(), what.time.copy()))
        return np.array([2.0, 1.0, 0.5, 0.5])

    visits = planned_visits(world, planner, Bits(), 30.0, 5.0, np.random.default_rng(0))
    changes = world.drawn.changes
    for page in range(4):
        posterior, updated = RatePosterior(1.0, 1.0), False
        times = visits.times[visits.pages == page]
        for before, at in itertools.pairwise(times):
            if at >= seen[-1][0]:
                break
            row = changes.times[changes.starts[page] : changes.starts[page + 1]]
            posterior.update(at - before, bool(((row > before) & (row <= at)).any()))
            updated = True
        assert updated
        assert seen[-1][1][page] == pytest.approx(posterior.shape, rel=1e-12)
        assert seen[-1][2][page] == pytest.approx(posterior.time, rel=1e-12)


def test_policies_come_in_the_order_of_what_they_know():
    """The optimum bounds all; the clairvoyant, what learns, what looks at importance or nothing. Pages change each for itself."""
    world, alone = synthetic_world("A", pages=100), {"learner": "no-neighbourhoods"}
    learning = ("median", "mean", "thompson", "epsilon", "explore-then-commit")
    names = ("clairvoyant", *learning, "importance", "uniform", "change-rate", "nutch", "frontera")
    # Between seeds the policies that learn differ by 0.003 at most, those that do not by 0.03, and they take little time.
    seeds = {policy: range(1 if policy in ("clairvoyant", *learning) else 2) for policy in names}
    fraction = {policy: np.mean([simulate(world, policy, 150.0, seed, **alone).fraction for seed in seeds[policy]]) for policy in names}
    assert 0.995 < fraction["clairvoyant"] < 1.0
    for policy in learning:
        assert 0.97 < fraction[policy] < fraction["clairvoyant"], policy
    assert fraction["uniform"] < 0.9
    assert fraction["change-rate"] < fraction["uniform"] < fraction["importance"] < fraction["median"]
    assert fraction["nutch"] < fraction["uniform"]
    assert fraction["frontera"] == pytest.approx(fraction["uniform"], abs=1e-3)


def test_uniform_visits_have_the_freshness_of_eq_6():
    """Exactly, as visits are perfectly even; change times have no part in it."""
    report = simulate(SMALL, "uniform", 100.0, 9)
    rates = SMALL.realise(100.0, 9).known_rates(0.0)
    weights = SMALL.realise(100.0, 9).importance
    even = -np.expm1(-rates * 5.0) / (rates * 5.0)
    assert report.freshness == pytest.approx(weights @ even / weights.sum(), rel=1e-12)


@pytest.mark.parametrize("exploration", ["median", "mean", "thompson", "epsilon"])
def test_no_page_is_left_alone_for_good(exploration):
    """Lemma 2: whatever visits are worth, each page keeps getting them at bounded intervals, however long the crawl."""
    realised = synthetic_world("A", pages=20).realise(3900.0, seed=1)
    planner = Exploring(exploration)
    visits = planned_visits(realised, planner, Bits(), 3900.0, 45.0, np.random.default_rng(1))
    longest = 1.0 / (LEARNING_SHARE * uniform_rate(20, realised.budget))
    for page in range(20):
        times = visits.times[visits.pages == page]
        intervals = np.diff(times)
        assert np.diff(np.append(times, 3900.0)).max() <= 1.1 * longest, page
        for begin in (0.0, 1300.0, 2600.0):
            inside = (times[1:] >= begin) & (times[1:] < begin + 1300.0)
            assert np.count_nonzero(intervals[inside] <= 1.05 * longest) >= 2, (page, begin)


def test_doubling_comes_back_to_every_page():
    """Lemma 2 with explore-then-commit: each exploration of three rounds or more has two visits to a page, a round apart."""
    realised = synthetic_world("A", pages=20).realise(1270.0, seed=1)
    visits = planned_visits(realised, Exploring("explore-then-commit", knows_horizon=False), Bits(), 1270.0, 2.5, np.random.default_rng(1))
    for begin, length in ((15, 4), (31, 6), (63, 8), (127, 12)):
        inside = (visits.times >= 5.0 * begin) & (visits.times < 5.0 * (begin + length))
        assert np.bincount(visits.pages[inside], minlength=20).min() >= 2


def test_what_is_simulated_may_be_ones_own():
    """A scheduler with other parameters, and what makes a planner."""
    assert simulate(SMALL, Nutch(start=5.0), 50.0, 1).policy == "Nutch"
    even = simulate(SMALL, lambda: lambda what: np.full(60, 0.2), 50.0, 1)
    assert even.freshness == simulate(SMALL, "uniform", 50.0, 1).freshness


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("D", "median", 10.0, 1), {}, "world 'D'"),
        (("A", "medium", 10.0, 1), {}, "policy 'medium': unknown; known are median, mean"),
        (("A", "median", 0.0, 1), {}, "horizon must be positive"),
        (("A", "median", np.inf, 1), {}, "horizon must be positive"),
        (("A", "median", 10.0, -1), {}, "seed must be a whole number"),
        (("A", "median", 10.0, 1), {"burn_in": 10.0}, "burn_in must be"),
        (("A", "median", 10.0, 1), {"replan": 0.0}, "replan must be positive"),
    ],
)
def test_unusable_arguments_of_simulate_are_named(arguments, options, message):
    with pytest.raises(InvalidProblemError, match=message):
        simulate(*arguments, **options)


def test_a_crawl_shorter_than_its_first_visits():
    report = simulate(SMALL, "median", 1.0, 1)
    assert report.visits == 12
    assert report.freshness > 0
