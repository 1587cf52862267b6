"""What becomes of copies: expectation and event, against other ways of working them out."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import solve_periodic
from optimal_frontier.simulation import PROCESSES, Jumping, Pareto, SyntheticWorld, synthetic_world
from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.measuring import freshness_by_time


def brute_force(world, visits, begin, end, steps=200_000):
    """Share of importance up to date, by looking at many moments: change events, or what the hazard makes likely."""
    moments = begin + (end - begin) * (np.arange(steps) + 0.5) / steps
    total = 0.0
    for page, weight in enumerate(world.importance):
        times = visits.times[visits.pages == page]
        place = np.searchsorted(times, moments, side="right") - 1
        held = place >= 0
        if not held.any():
            continue
        fetched, at = times[place[held]], moments[held]
        hazard = world.drawn.hazard
        if hazard is None:
            changes = world.drawn.changes
            row = changes.times[changes.starts[page] : changes.starts[page + 1]]
            fresh = np.searchsorted(row, at, side="right") == np.searchsorted(row, fetched, side="right")
        else:
            since = hazard.since.times[hazard.since.starts[page] : hazard.since.starts[page + 1]]
            rates = hazard.rates[hazard.since.starts[page] : hazard.since.starts[page + 1]]
            grid = np.append(since, 1e9)
            passed = np.concatenate([[0.0], np.cumsum(rates * np.diff(grid))])
            fresh = np.exp(np.interp(fetched, grid, passed) - np.interp(at, grid, passed))
        total += weight * fresh.sum() / steps
    return total / world.importance.sum()


@pytest.mark.parametrize("process", PROCESSES)
def test_freshness_is_exact(process):
    """In every stretch of time, by looking at 200,000 moments of it."""
    world = synthetic_world("B", process, pages=5).realise(60.0, seed=3)
    rng = np.random.default_rng(1)
    visits = Visits(rng.integers(0, 4, 40), np.sort(60 * rng.random(40)))  # page 4 is never visited
    edges = np.array([0.0, 10.0, 45.0, 60.0])
    found = freshness_by_time(world, visits, edges)
    for value, begin, end in zip(found, edges[:-1], edges[1:], strict=True):
        assert value == pytest.approx(brute_force(world, visits, begin, end), abs=2e-4 if world.drawn.hazard is None else 1e-5)


@pytest.mark.parametrize("process", ["poisson", "jumping", "drifting"])
def test_expectation_is_the_mean_of_what_happens(process):
    """Changes of many pages under fixed visits, five standard errors."""
    world = synthetic_world("A", process, pages=20_000).realise(30.0, seed=5)
    rng = np.random.default_rng(2)
    pages = np.concatenate([np.arange(20_000)] * 3)
    fetched = np.concatenate([np.zeros(20_000), 4 + 6 * rng.random(20_000), 15 + 5 * rng.random(20_000)])
    until = np.concatenate([fetched[20_000:], np.full(20_000, 30.0)])
    expected = world.fresh_time(pages, fetched, fetched, until)
    happened = np.minimum(world.drawn.changes.next_time(pages, fetched), until) - fetched
    miss = happened - expected
    assert abs(miss.mean()) < 5 * miss.std() / np.sqrt(len(miss))
    assert miss.std() > 0


def test_bits_say_whether_a_change_lies_between():
    world = synthetic_world("A", pages=3).realise(100.0, seed=1)
    changes = world.drawn.changes
    time = changes.times[changes.starts[1]]
    pages = np.array([1, 1, 1, 1])
    since, until = np.array([0.0, 0.0, time, time - 1e-9]), np.array([time, time - 1e-9, time + 1e-9, time])
    assert world.changed(pages, since, until).tolist() == [True, False, False, True]


def test_optimum_is_that_of_eq_6_and_of_poisson_worlds_alone():
    world = synthetic_world("C", pages=50).realise(10.0, seed=2)
    best = solve_periodic(world.importance, world.known_rates(0.0), 0.2 * 50)
    assert world.optimum == best.objective / world.importance.sum()
    assert np.isnan(synthetic_world("C", "jumping", pages=50).realise(500.0, 2).optimum)
    assert np.isnan(synthetic_world("C", "weibull", pages=50).realise(10.0, 2).optimum)


def test_clairvoyance_follows_jumping_rates():
    world = SyntheticWorld("x", lambda rng, n: np.ones(n), lambda rng, n: 1 + rng.random(n), 1.0, Jumping(5.0), 30).realise(50.0, 1)
    assert (world.known_rates(0.0) != world.known_rates(49.0)).mean() > 0.9


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_worlds_are_those_of_the_evidence(name):
    """Medians and means of 100,000 pages."""
    world = synthetic_world(name, pages=100_000).realise(0.01, seed=0)
    rates, weights = world.known_rates(0.0), world.importance
    if name == "B":
        assert np.median(rates) == pytest.approx(0.1, rel=0.02)
        assert np.log(rates).std() == pytest.approx(1.5, rel=0.02)
        assert np.mean(weights - 0.1 > 1) == pytest.approx(2**-1.2, abs=0.01)
        assert world.budget == pytest.approx(1e4)
    else:
        assert rates.mean() == pytest.approx(0.5, abs=0.01)
        assert world.budget == pytest.approx(2e4)
        assert np.median(weights) == (pytest.approx(0.5, abs=0.01) if name == "A" else 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("D",), "world 'D': unknown; known are A, B, C"),
        (("A", "poison"), "process 'poison': unknown; known are poisson"),
        (("A", "poisson", 0), "pages must be 1 or more"),
        (("A", "poisson", 5, np.inf), "visits_per_page must be positive"),
    ],
)
def test_unusable_worlds_are_named(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        synthetic_world(*arguments)
    assert Pareto().name == "pareto"
