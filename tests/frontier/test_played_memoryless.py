"""POLICY "poisson", played through dispatch, judge and planner on a clock that the test sets."""

from __future__ import annotations

from functools import partial

import numpy as np
import played_crawl
import pytest
from kolmogorov import distance_to_exponential
from played_crawl import Play
from timed_namespace import START

parse = partial(played_crawl.parse, POLICY="poisson")


def relative_gaps(play: Play, since: float) -> np.ndarray:
    """Gaps in units of the planned interval, of pages that are visited often."""
    rates = play.rates()
    return np.concatenate([rates[number] * play.gaps(number, since) for number in play.visits if rates[number] > 0.5])


def test_gaps_are_exponential_with_the_planned_mean(space):
    """Of every page, over a dozen plans that redraw nothing, but for what comes late when all of the budget is used: no memory either."""
    play = Play(space, parse(CRAWL_RATE=20, RESOLVE_INTERVAL=10))
    play.add(12)
    play.until(10.0)
    assert play.rates().sum() == pytest.approx(20, rel=1e-6)
    play.until(160.0)
    relative = relative_gaps(play, since=20.0)
    assert len(relative) > 2000
    assert relative.mean() == pytest.approx(1.0, abs=0.08)
    assert relative.std() / relative.mean() == pytest.approx(1.0, abs=0.1)
    assert abs(np.corrcoef(relative[:-1], relative[1:])[0, 1]) < 3.5 / np.sqrt(len(relative))
    assert distance_to_exponential(relative / relative.mean()) < 0.1


def test_the_budget_stays_a_hard_bucket(space):
    """However the draws cluster; and all of it is used."""
    play = Play(space, parse(CRAWL_RATE=30))
    play.add(150)
    play.until(60.0)
    at = np.array(play.handouts)
    for window in (0.5, 5.0, 50.0):
        most = np.searchsorted(at, at + window) - np.arange(len(at))
        assert most.max() <= 30 * window + 3 + 1
    assert play.count(20.0, 60.0) == pytest.approx(30 * 40, rel=0.01)


def test_an_outage_causes_no_burst(space):
    """After an hour without a fetch each page comes once, and then at its rate: nothing is made up for."""
    play = Play(space, parse(CRAWL_RATE=20, RESOLVE_INTERVAL=5))
    play.add(40)
    play.until(60.0)
    play.set_time(START + 3660.0)
    play.until(3680.0)
    visits = np.array([sum(at > START + 3650 for at in play.visits[number]) for number in range(40)])
    assert visits.sum() == pytest.approx(400, abs=3)
    expected = play.rates() * 20.0 + 1
    assert (np.abs(visits - expected) < 4.5 * np.sqrt(expected)).all()


def test_pinned_pages_stay_evenly_spaced(space):
    """RULES that say an interval are taken at their word."""
    play = Play(space, parse(CRAWL_RATE=20, RULES=[{"host": "h0", "interval": 2}]))
    play.add(10, hosts=1)
    play.add(10, name="other/{page}")
    play.until(40.0)
    gaps = np.concatenate([play.gaps(number, since=5.0) for number in range(10)])
    assert gaps.mean() == pytest.approx(2.0, rel=0.02)
    assert gaps.std() < 0.2


def test_the_policy_may_change_between_two_runs(space):
    """Evenly spaced, memoryless, evenly spaced again: each run's gaps are its own."""
    even = played_crawl.parse(CRAWL_RATE=15, RESOLVE_INTERVAL=5)
    play = Play(space, even)
    play.add(20)
    play.until(30.0)

    def spread(since: float) -> float:
        return float(np.std(relative_gaps(play, since)))

    assert spread(15.0) < 0.25
    play.until(70.0, parse(CRAWL_RATE=15, RESOLVE_INTERVAL=5))
    assert spread(35.0) > 0.6
    play.until(110.0, even)
    assert spread(85.0) < 0.25
