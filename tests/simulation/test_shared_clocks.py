"""Clocks of neighbourhoods in simulated crawls: better where pages change together, and hardly worse where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.simulation import believing, crawling
from optimal_frontier.simulation.learners import Bits
from optimal_frontier.simulation.planned_crawl import PlannedCrawl
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.section_events import SectionEvents
from optimal_frontier.simulation.simulating import LEARNERS, simulate
from optimal_frontier.simulation.sites import SiteHabits
from optimal_frontier.simulation.worlds import WORLDS, SyntheticWorld, synthetic_world

NEIGHBOURLY = SyntheticWorld(
    "sections",
    lambda rng, n: np.ones(n),
    lambda rng, n: np.full(n, 0.05),
    0.2,
    pages=200,
    habits=SiteHabits(0.0, 0.0),
    events=SectionEvents(share=0.9),
)


def crawl_of(world: SyntheticWorld, policy: str, learner: str, horizon: float, seed: int) -> PlannedCrawl:
    realised = world.realise(horizon, seed)
    made = PlannedCrawl(realised, PLANNERS[policy](), LEARNERS[learner](realised), horizon, np.random.default_rng(seed))
    made.run(0.4 * len(realised) / realised.budget)
    return made


@pytest.fixture(scope="module")
def crawled() -> PlannedCrawl:
    """A crawl that has ended; what a test does to it afterwards is nothing to the others."""
    return crawl_of(NEIGHBOURLY, "median", "live", 120.0, 2)


def test_clocks_pay_where_pages_of_a_section_change_together() -> None:
    """Staleness falls by a fifth at least."""
    stale = {
        learner: 1.0 - simulate(NEIGHBOURLY, "median", 100.0, 0, learner=learner).freshness for learner in ("no-neighbourhoods", "live")
    }
    assert stale["live"] < 0.8 * stale["no-neighbourhoods"]


@pytest.mark.parametrize("world", ["A", "B", "C", "S"])
def test_clocks_cost_little_where_pages_are_independent(world: str) -> None:
    """At most 0.6 points on a single small crawl; docs/maths.md has the means of large ones."""
    small = synthetic_world(world, pages=200)
    with_clocks, without = (simulate(small, "median", 100.0, 3, learner=learner).freshness for learner in ("live", "no-neighbourhoods"))
    assert with_clocks > without - 0.006


def test_world_n_has_the_rates_it_was_drawn_with_and_pages_that_change_at_the_same_moments() -> None:
    world = WORLDS["N"].realise(800.0, 0)
    changes = world.drawn.changes
    busy = world.drawn.rates > np.median(world.drawn.rates)
    assert changes.counts[busy].sum() == pytest.approx(world.drawn.rates[busy].sum() * 800.0, rel=0.05)
    moments, pages = np.unique(changes.times, return_counts=True)
    together = pages[pages > 1].sum() / len(changes.times)
    assert 0.65 < together < 0.85
    assert (np.diff(changes.times)[np.diff(np.repeat(np.arange(len(world)), changes.counts)) == 0] >= 0.0).all()
    # Most changes of a host fall into ten hours of its day.
    of_host = world.sites.host[np.repeat(np.arange(len(world)), changes.counts)] == 0
    by_hour = np.bincount((changes.times[of_host] % 1.0 * 24.0).astype(int), minlength=24)
    best = max(np.roll(by_hour, shift)[:11].sum() for shift in range(24))
    assert best > 0.75 * by_hour.sum()
    assert len(moments) < len(changes.times)


def test_events_that_are_no_share_of_changes_leave_a_world_as_it_was() -> None:
    plain = replace(NEIGHBOURLY, events=None).realise(100.0, 4)
    none = replace(NEIGHBOURLY, events=SectionEvents(share=0.0)).realise(100.0, 4)
    assert np.array_equal(plain.drawn.changes.times, none.drawn.changes.times)


def test_policies_that_do_not_learn_have_no_clocks() -> None:
    cases = (("median", "live", True), ("clairvoyant", "live", False), ("uniform", "live", False), ("median", "no-neighbourhoods", False))
    for policy, learner, has in cases:
        realised = NEIGHBOURLY.realise(10.0, 0)
        made = PlannedCrawl(realised, PLANNERS[policy](), LEARNERS[learner](realised), 10.0, np.random.default_rng(0))
        assert (made.clocks is not None) == has
    assert Bits().has_neighbourhoods is False


def test_after_a_crawl_gates_of_neighbourly_hosts_are_open_and_deadlines_were_moved(crawled: PlannedCrawl) -> None:
    made = crawled
    assert made.clocks is not None
    assert made.clocks.neighbourhoods.gates.is_open.mean() > 0.7
    assert made.clocks.rewritten > 500
    assert np.isfinite(made.crawl.a[made.crawl.s > 0.0]).all()


def test_looks_keep_to_bounds_and_to_pages_whose_deadline_is_near(crawled: PlannedCrawl) -> None:
    clocks, crawl = crawled.clocks, crawled.crawl
    assert clocks is not None
    now = float(crawl.slots[-1]) + 2.0 * clocks.every
    before, score = crawl.a.copy(), crawl.score.copy()
    crawl.e[:] = np.minimum(3.0, crawl.l)
    clocks.look(now)
    written = np.flatnonzero(crawl.a != before)
    assert len(written) > 2
    due = crawl.a[written] + crawl.s[written] * crawl.price[crawling.LOG_PRICE]
    assert crawl.score[written] == pytest.approx(crawl.b[written] + np.clip(due, crawl.e[written], crawl.l[written]))
    assert (crawl.score[written] >= crawl.b[written] + crawl.e[written] - 1e-9).all()
    untouched = np.setdiff1d(np.arange(len(score)), written)
    assert np.array_equal(crawl.score[untouched], score[untouched])


def test_learning_by_clocks_leaves_posteriors_to_the_calendar(crawled: PlannedCrawl) -> None:
    """The posterior after the same visits is the same with clocks and without."""
    made = crawled
    assert made.clocks is not None
    other = PlannedCrawl(made.world, PLANNERS["median"](), LEARNERS["no-neighbourhoods"](made.world), 60.0, np.random.default_rng(6))
    for belief in (made.belief, other.belief):
        belief.shape[7], belief.time[7] = 2.0, 3.0
        belief.recent_shape[7] = belief.evidence[7] = 0.0
        belief.recent_time[7] = 1.0
        belief.surprise[7] = belief.score[7] = belief.variance[7] = belief.spread[7] = 0.0
        belief.prior_shape[7], belief.prior_time[7] = 1.0, 5.0
    rates = made.clocks.learn(made.belief, 7, 4.0, True), believing.learn_bit(other.belief, 7, 4.0, True)
    assert rates[0] == rates[1]
    assert made.belief.shape[7] == other.belief.shape[7]
