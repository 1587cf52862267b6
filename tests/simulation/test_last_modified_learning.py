"""Ages in simulated crawls: what they are, what they are worth, and what lies cost."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.trust import Trust, is_lie
from optimal_frontier.simulation import simulate, synthetic_world
from optimal_frontier.simulation.last_modified_learning import LIES, LastModified
from optimal_frontier.simulation.learners import Seen

SMALL = synthetic_world("A", pages=200)


def ages_of(world, at):
    return np.array([world.age(page, at) for page in range(len(world))])


def test_an_age_is_the_time_since_the_last_change():
    world = SMALL.realise(50.0, 1)
    ages = ages_of(world, 30.0)
    for page in range(200):
        row = world.drawn.changes.times[world.drawn.changes.starts[page] : world.drawn.changes.starts[page + 1]]
        if (row <= 30.0).any():
            assert ages[page] == 30.0 - row[row <= 30.0].max()
        elif not np.isnan(ages[page]):
            assert ages[page] > 30.0


@pytest.mark.parametrize(("process", "horizon"), [("poisson", 700.0), ("weibull", 700.0), ("pareto", 2000.0)])
def test_ages_at_the_start_are_distributed_as_the_times_to_the_first_change(process, horizon):
    """The process looks the same backwards in time; NaN are few, and the longest, where the horizon is long: Pareto needs more."""
    world = synthetic_world("A", process, pages=4000).realise(horizon, 2)
    ages = ages_of(world, 0.0)
    ahead = world.drawn.changes.next_time(np.arange(4000), np.zeros(4000))
    assert np.isnan(ages).mean() < 0.05
    for level in (0.1, 0.3, 0.5):
        assert np.nanquantile(ages, level) == pytest.approx(np.quantile(ahead, level), rel=0.1)
    # of the page itself, not of the neighbour whose number it comes from
    slow = world.known_rates(0.0) < 0.2
    assert np.nanmedian(ages[slow]) > 2 * np.nanmedian(ages[~slow])


def test_it_learns_as_a_live_crawl_does():
    """One host, visited page by page; bits alone before it is trusted, then the ages."""
    world = synthetic_world("A", pages=20).realise(100.0, 3)
    learner = LastModified(world)
    shapes, trust = dict.fromkeys(range(20), (1.0, world.importance.size / world.budget)), Trust()
    at, last, used = 6.0, np.zeros(20), 0
    while at < 99.0:
        page = int(at * 7) % 20
        interval, age = at - last[page], world.age(page, at)
        (changed,) = world.changed(np.array([page]), np.array([last[page]]), np.array([at]))
        seen = Seen(page, interval, at, changed, age)
        last[page], at = at, at + 0.25
        shape, time = shapes[page]
        posterior = RatePosterior(shape, time)
        posterior.update(interval, changed)
        is_first = learner.shape[page] == 0
        learner.learn(seen)
        if not np.isnan(age):
            if trust.is_earned and changed:
                used += 1
                expected = (shape + 1.0, time + age)
            elif trust.is_earned and is_first:
                expected = (shape + 0.5, time + interval + 0.5 * (age - interval))
            else:
                expected = (posterior.shape, posterior.time)
            trust = trust.after(bool(changed), is_lie(interval, age, bool(changed), shape / time))
        else:
            expected = (posterior.shape, posterior.time)
        assert (learner.shape[page], learner.time[page]) == pytest.approx(expected, rel=1e-12)
        shapes[page] = expected
    assert used > 20


def test_ages_make_copies_fresher_and_some_liars_do_not_spoil_that():
    """By 0.2 points with 1,000 pages; see docs/maths.md. Mean over three seeds of 200 pages."""
    bits, ages, with_liars = (
        np.mean([simulate(SMALL, "median", 150.0, seed, **learner).freshness for seed in range(3)])
        for learner in ({"learner": "no-neighbourhoods"}, {"learner": "last-modified"}, {"learner": "last-modified-liars"})
    )
    assert ages - bits > 0.001
    assert with_liars > bits


@pytest.mark.parametrize("lie", range(len(LIES)), ids=LIES)
def test_liars_are_not_believed_for_long(lie):
    """A site that is deployed every ten days tells the truth between deploys, and 20 pages visited at once bear witness to it."""
    world = SMALL.realise(300.0, 1)
    learner = LastModified(world)
    learner.lie[:] = lie
    rng = np.random.default_rng(1)
    pages, last, trusted = np.arange(200), np.zeros(200), []
    for at in range(4, 300, 4):
        until = at + rng.random(200)
        changed = world.changed(pages, last, until)
        for page in range(200):
            learner.learn(Seen(page, until[page] - last[page], until[page], changed[page], world.age(page, until[page])))
        trusted.append(learner.trusted.mean())
        last = until
    assert np.mean(trusted) < (0.2 if LIES[lie] == "deploy" else 0.02)


def test_a_share_of_liars_is_a_share():
    with pytest.raises(InvalidProblemError, match=r"liars must be a share from 0 to 1, got 1\.5"):
        LastModified(SMALL.realise(10.0, 1), 1.5)
