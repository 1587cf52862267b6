"""Processes make as many changes as their rates say, from the first moment on, at intervals of the law that they name."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation import PROCESSES, Drifting, Jumping, Pareto, Poisson, QuasiDeterministic, Weibull

PAGES, HORIZON, RATE = 4000, 50.0, 0.3


def draw(process, rate=RATE, pages=PAGES, horizon=HORIZON, seed=1):
    rng = np.random.default_rng(seed)
    return process.draw(rng, np.full(pages, rate), horizon, lambda rng, n: np.full(n, rate))


@pytest.mark.parametrize(
    "process", [Poisson(), Weibull(0.5), Weibull(2.0), Pareto(2.5), QuasiDeterministic(0.7), Jumping(), Drifting(0.0)], ids=str
)
def test_changes_come_at_the_mean_rate_at_all_times(process):
    """Also in the first days: the start is a moment like any other (five standard errors, of counts that may come in bursts)."""
    changes = draw(process).changes
    for begin, end in ((0.0, 2.0), (24.0, 26.0), (48.0, 50.0)):
        page = np.repeat(np.arange(PAGES), changes.counts)
        inside = (changes.times >= begin) & (changes.times < end)
        counts = np.bincount(page[inside], minlength=PAGES)
        error = counts.std(ddof=1) / np.sqrt(PAGES)
        assert abs(counts.mean() - RATE * (end - begin)) < 5 * error, (begin, counts.mean(), error)


@pytest.mark.parametrize(
    ("process", "tail"),
    [
        (Poisson(), lambda t: np.exp(-t)),
        (Weibull(0.5), lambda t: np.exp(-np.sqrt(2 * t))),
        (Weibull(2.0), lambda t: np.exp(-np.pi / 4 * t**2)),
        (Pareto(2.5), lambda t: (1.5 / (1.5 + t)) ** 2.5),
    ],
    # Without the functions, whose addresses differ from one process to the next.
    ids=["poisson", "weibull-0.5", "weibull-2", "pareto"],
)
def test_intervals_have_the_law_of_the_process(process, tail):
    """Tail of those that begin early enough to be seen whole, mean 1."""
    changes = draw(process, rate=1.0, pages=1000, horizon=200.0).changes
    begins, page = changes.times, np.repeat(np.arange(1000), changes.counts)
    following = changes.next_time(page, begins)
    early = begins < 150.0
    intervals = np.minimum(following - begins, 1e9)[early]
    for at in (0.1, 0.5, 1.0, 3.0):
        assert np.mean(intervals > at) == pytest.approx(tail(at), abs=0.005)


def test_jumping_rates_are_drawn_anew_at_a_mean_interval():
    rng = np.random.default_rng(3)
    drawn = Jumping(20.0).draw(rng, np.full(2000, 0.1), 100.0, lambda rng, n: rng.random(n) + 1.0)
    assert drawn.hazard.since.counts.mean() - 1 == pytest.approx(5.0, abs=0.3)
    assert (drawn.hazard.at(0.0) == 0.1).all()
    assert (drawn.hazard.at(99.9) > 1.0).mean() == pytest.approx(1 - np.exp(-4.995), abs=0.01)
    assert drawn.changes.counts.mean() == pytest.approx(drawn.rates.mean() * 100.0, rel=0.02)


def test_drifting_rates_spread_as_stated_and_forget():
    drawn = Drifting(spread=0.8, memory=10.0).draw(np.random.default_rng(4), np.full(3000, 0.2), 100.0, lambda rng, n: np.ones(n))
    first, last = np.log(drawn.hazard.at(50.5) / 0.2), np.log(drawn.hazard.at(60.5) / 0.2)
    assert (drawn.hazard.at(0.0) == 0.2).all()
    assert last.std() == pytest.approx(0.8, rel=0.05)
    assert np.corrcoef(first, last)[0, 1] == pytest.approx(np.exp(-1), abs=0.06)


def test_quasi_deterministic_changes_lie_on_a_grid():
    changes = draw(QuasiDeterministic(0.5), rate=0.25, pages=50).changes
    for page in range(50):
        times = changes.times[changes.starts[page] : changes.starts[page + 1]]
        steps = np.diff(times) / 2.0  # period 0.5 / 0.25
        assert steps == pytest.approx(np.round(steps), abs=1e-9)


@pytest.mark.parametrize("process", [Weibull(0.0), Weibull(np.nan), Pareto(1.0), QuasiDeterministic(0.0), QuasiDeterministic(1.5)], ids=str)
def test_parameters_without_a_mean_are_refused(process):
    with pytest.raises(InvalidProblemError, match=r"shape must be|probability must be"):
        draw(process, pages=2)


def test_processes_are_known_by_their_names():
    assert list(PROCESSES) == ["poisson", "weibull", "pareto", "quasi-deterministic", "drifting", "jumping"]
