"""Recorded changes in simulated crawls: pages that come and go, phases, and what could be reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation import ORACLE_NAMES, POLICY_NAMES, Event, Run, read_trace, reports_of, simulate
from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.interval_rules import RULES
from optimal_frontier.simulation.learners import Bits
from optimal_frontier.simulation.measuring import fresh_and_counted, freshness_by_time
from optimal_frontier.simulation.oracles import constant_rates, foreseen_visits, fresh_at_rates, told_visits
from optimal_frontier.simulation.planned_crawl import planned_visits
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.ruled_crawl import ruled_visits

HORIZON = 400.0


def trace_of(events):
    return read_trace(["page,time,event", *(f"{page},{time},{event}" for page, time, event in events)])


def drawn_trace(seed, pages=60, horizon=HORIZON):
    """Directories whose pages change together; a third of the pages come late, a third end early."""
    rng = np.random.default_rng(seed)
    events = [Event("d0/clock", 0.0, "created"), Event("d0/clock", horizon, "changed")]
    names = [f"d{page % 6}/p{page}" for page in range(pages)]
    born = np.where(np.arange(pages) % 3 == 1, horizon * rng.random(pages), 0.0)
    dead = np.where(np.arange(pages) % 3 == 2, horizon * rng.random(pages), np.inf)
    events += [Event(name, at, "created") for name, at in zip(names, born, strict=True)]
    events += [Event(name, at, "gone") for name, at in zip(names, dead, strict=True) if at < horizon]
    for directory in range(6):
        for at in np.cumsum(rng.exponential(30.0 + 20.0 * directory, 40)):
            for page in range(directory, pages, 6):
                if born[page] < at < min(dead[page], horizon) and rng.random() < 0.7:
                    events.append(Event(names[page], at, "changed"))
    return trace_of(events)


def visits_of(policy, world, horizon=HORIZON):
    if policy in RULES:
        return ruled_visits(world, RULES[policy](world.round(horizon) / world.day), horizon)
    if policy in PLANNERS:
        return planned_visits(world, PLANNERS[policy](), Bits(True, True), horizon, 4.0, np.random.default_rng(0))
    return {"told-siblings": told_visits, "all-times": foreseen_visits}[policy](world, horizon)


@pytest.mark.parametrize("policy", [*POLICY_NAMES, "told-siblings", "all-times"])
def test_a_page_is_visited_from_its_arrival_until_a_visit_finds_it_gone(policy):
    world = drawn_trace(1).world("t", 6.0).realise(HORIZON, 0)
    visits = visits_of(policy, world)
    assert (visits.times >= world.arrival[visits.pages]).all()
    late = np.bincount(visits.pages[visits.times >= world.gone[visits.pages]], minlength=len(world))
    assert late.max() <= 1
    if policy in ("uniform", "told-siblings", "median"):
        assert (late[world.gone < 0.8 * HORIZON] == 1).all()
        last = {int(page): float(at) for page, at in zip(visits.pages, visits.times, strict=True)}
        assert all(last[page] >= world.gone[page] for page in np.flatnonzero(late))


@pytest.mark.parametrize("policy", ["median", "uniform", "explore-then-commit", "epsilon", "nutch", "told-siblings"])
def test_new_pages_are_visited_at_once(policy):
    world = drawn_trace(1).world("t", 6.0).realise(HORIZON, 0)
    visits = visits_of(policy, world)
    first = np.full(len(world), np.inf)
    np.minimum.at(first, visits.pages, visits.times)
    new = (world.arrival > 0.1 * HORIZON) & (world.arrival < 0.98 * HORIZON)
    assert np.count_nonzero(new) > 10
    assert (first[new] - world.arrival[new] < 4 / world.budget).all()


def test_a_crawl_outlives_all_its_pages():
    trace = trace_of(
        [("a", 0, "created"), ("b", 0, "created"), ("a", 10, "gone"), ("b", 20, "gone"), ("c", 60, "created"), ("c", 99, "gone")]
    )
    for policy in ("median", "uniform", "nutch", "clairvoyant", "told-siblings", "all-times"):
        visits = visits_of(policy, trace.world("t", 1.0).realise(99.0, 0), 99.0)
        assert not ((visits.times > 24) & (visits.times < 60)).any()
        assert (visits.times > 60).any() or policy == "all-times"


def test_what_counts():
    """From arrival on while it exists, and then until a visit finds it gone; there is no copy before the first visit."""
    events = [("seen", 0, "created"), ("seen", 10, "changed"), ("seen", 30, "gone"), ("never", 5, "created"), ("never", 25, "gone")]
    world = trace_of([*events, ("kept", 0, "created"), ("kept", 90, "gone"), ("end", 0, "created"), ("end", 100, "changed")]).world(
        "t", 1.0
    )
    realised = world.realise(100.0, 0)
    seen, kept, end = (int(np.flatnonzero(realised.gone == at)[0]) for at in (30.0, 90.0, np.inf))
    visits = Visits(np.array([seen, kept, seen, seen, end]), np.array([2.0, 2.0, 12.0, 44.0, 0.0]))
    fresh, counted = fresh_and_counted(realised, visits, np.array([0.0, 50.0, 100.0]))
    # seen: current 2 to 10 and 12 to 30, counts until 44. never: counts for 20. kept: current 2 to 90, nobody finds out. end: all the time.
    assert fresh.tolist() == [8 + 18 + 48 + 50, 40 + 50]
    assert counted.tolist() == [44 + 20 + 50 + 50, 50 + 50]
    np.testing.assert_allclose(freshness_by_time(realised, visits, np.array([0.0, 50.0, 100.0])), fresh / counted)


def test_seeds_are_phases():
    """Other first visits and slots, the same pages and changes; a seed gives the same again."""
    world = drawn_trace(2).world("t", 3.0)
    one, other = world.realise(HORIZON, 0), world.realise(HORIZON, 1)
    assert one.phase != other.phase
    assert (one.drawn.rates != other.drawn.rates).any()
    np.testing.assert_allclose(np.sort(one.drawn.rates), np.sort(other.drawn.rates))
    slots = ruled_visits(one, RULES["nutch"](1.0), HORIZON).times
    np.testing.assert_allclose(slots[:5], (np.arange(5) + one.phase) / one.budget)
    shares = [simulate(world, "uniform", HORIZON, seed).freshness for seed in (0, 1, 2, 0)]
    assert len(set(shares)) == 3
    assert shares[0] == shares[3]
    assert np.ptp(shares) < 0.05


def test_known_rates_are_changes_per_time_of_existence():
    trace = trace_of([("a", 0, "created"), ("a", 40, "changed"), ("a", 50, "gone"), ("b", 60, "created"), ("b", 100, "changed")])
    rates = trace.world("t", 1.0).realise(100.0, 0).known_rates(0.0)
    assert sorted(rates.tolist()) == pytest.approx([1 / 40, 2 / 50])
    early = replace(trace, length=90.0).world("t", 1.0).realise(90.0, 0).known_rates(0.0)  # b has no change yet
    assert sorted(early.tolist()) == pytest.approx([0.5 / (30 + 0.5 * 80 / 2), 2 / 50])


def test_the_staleness_of_constant_intervals_is_that_of_random_phases():
    """By formula and by visits with 400 phases, one of each page in every 400th of its interval; with pages that come and go."""
    world = drawn_trace(3, pages=12).world("t", 1.0).realise(HORIZON, 0)
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.02, 0.2, len(world))
    edges = np.array([0.0, 150.0, HORIZON])
    fresh, counted = np.zeros(2), np.zeros(2)
    phases = (rng.permuted(np.tile(np.arange(400), (len(world), 1)), axis=1) + rng.random((len(world), 400))) / 400
    for phase in phases.T:
        pages, times = [], []
        for page in range(len(world)):
            # A visit at arrival, as a page is met fresh there, and none after the one that finds it gone.
            grid = np.arange(world.arrival[page] + phase[page] / rates[page], HORIZON, 1.0 / rates[page])
            grid = np.concatenate([[world.arrival[page]], grid])
            grid = grid[: 1 + int(np.searchsorted(grid, world.gone[page]))]
            pages += [page] * len(grid)
            times += grid.tolist()
        found = fresh_and_counted(world, Visits(np.array(pages), np.array(times)), edges)
        fresh, counted = fresh + found[0] / 400, counted + found[1] / 400
    expected = fresh_at_rates(world, rates, edges)
    np.testing.assert_allclose(expected[0], fresh, rtol=0.003)
    np.testing.assert_allclose(expected[1], counted, rtol=0.003)


def test_constant_rates_are_the_best_within_the_budget():
    """No exchange of budget between two pages gains anything, but for the steps of the grid; dead pages get what they live for."""
    world = drawn_trace(4, pages=20).world("t", 0.8).realise(HORIZON, 0)
    rates = constant_rates(world, 100.0, HORIZON)
    edges = np.array([100.0, HORIZON])
    lives = np.clip(np.minimum(world.gone, HORIZON) - np.maximum(world.arrival, 100.0), 0.0, None)
    spent = float((rates * lives).sum())
    assert 0.97 * 0.8 * 300.0 < spent <= 0.8 * 300.0

    def staleness(rates):
        fresh, counted = fresh_at_rates(world, rates, edges)
        return float((counted - fresh)[0])

    best, rng = staleness(rates), np.random.default_rng(1)
    even = np.full(len(world), spent / lives.sum())
    assert best < 0.95 * staleness(even)
    for _ in range(300):
        one, other = rng.choice(np.flatnonzero(lives > 1.0), 2, replace=False)
        moved = rng.uniform(0.1, 1.0) * rates[one] * lives[one]
        changed = rates.copy()
        changed[one] -= moved / lives[one]
        changed[other] += moved / lives[other]
        assert staleness(changed) > best * (1.0 - 0.002)


def test_siblings_of_a_change_that_was_seen_are_visited_next():
    """Of six pages five change together; once one of them is seen, the others follow at once, and the sixth does not."""
    members = [f"m{number}" for number in range(5)]
    events = [(page, at, "created" if at == 0 else "changed") for page in members for at in (0, 100, 150, 190)]
    trace = trace_of([*events, ("alone", 0, "created"), ("alone", 140, "changed"), ("alone", 200, "changed")])
    for seed in range(4):
        world = trace.world("t", 0.3).realise(200.0, seed)
        visits = told_visits(world, 200.0)
        member = world.drawn.changes.counts == 3
        after = visits.pages[visits.times >= 100.0]
        seen = int(np.argmax(member[after]))
        assert sorted(after[seen : seen + 5].tolist()) == np.flatnonzero(member).tolist()


def test_who_knows_all_times_visits_the_page_that_stays_fresh_longest():
    """Two pages change together, and then one sooner than the other; slots at which all copies are fresh are not used."""
    events = [
        ("a", 21, "changed"),
        ("a", 45, "changed"),
        ("b", 21, "changed"),
        ("b", 46, "changed"),
        ("b", 47, "changed"),
        ("b", 48, "changed"),
    ]
    trace = trace_of([(page, 0, "created") for page in "abc"] + events + [("c", 70, "changed")])
    for seed in range(4):
        world = trace.world("t", 0.1).realise(70.0, seed)
        visits = foreseen_visits(world, 70.0)
        a, b = (int(np.flatnonzero(world.drawn.changes.counts == count)[0]) for count in (2, 4))
        after = visits.pages[visits.times >= 21.0].tolist()
        assert after[0] == b
        assert set(after) == {a, b}
        assert len(visits.pages) < 7


def test_more_knowledge_is_better():
    """On a trace whose changes come together; each by far more than phases differ."""
    world = drawn_trace(5, pages=120).world("t", 4.0)
    names = ("uniform", "median", "hindsight", "told-siblings", "all-times")
    stale = {name: np.mean([1 - simulate(world, name, HORIZON, seed).freshness for seed in range(2)]) for name in names}
    assert stale["uniform"] > 1.02 * stale["hindsight"]
    assert stale["hindsight"] > 1.2 * stale["told-siblings"]
    assert stale["told-siblings"] > 1.5 * stale["all-times"]
    assert stale["median"] > stale["told-siblings"]


def test_oracles_are_for_recorded_changes():
    for name in ORACLE_NAMES:
        with pytest.raises(InvalidProblemError, match=f"policy '{name}' knows when pages change"):
            simulate("A", name, 10.0, 0)


def test_processes_say_the_same_in_the_same_order():
    world = drawn_trace(6, pages=12).world("t", 1.0)
    runs = [Run(world, policy, HORIZON, seed) for policy in ("uniform", "hindsight") for seed in (0, 1)]
    alone, together = list(reports_of(runs)), list(reports_of(runs, jobs=2))
    assert [(one.policy, one.seed, one.freshness) for one in alone] == [(one.policy, one.seed, one.freshness) for one in together]
