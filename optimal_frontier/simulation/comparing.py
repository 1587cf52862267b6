"""Policies side by side: reports over seeds, and what they say together, with confidence intervals."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from optimal_frontier.simulation.ragged import Floats
from optimal_frontier.simulation.simulating import DEFAULT_LEARNER, POLICY_NAMES, Report, simulate
from optimal_frontier.simulation.worlds import World

#: The policies that others are held against: the default, the one that knows the rates, and the one that knows nothing.
DEFAULT_POLICY: Final = "median"
CLAIRVOYANT: Final = "clairvoyant"
UNIFORM: Final = "uniform"
#: Student's t at 0.975 for 1, 2, ... degrees of freedom; beyond, 1.96 + 2.42 / degrees, within 0.002.
_STUDENT: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


@dataclass(frozen=True)
class Interval:
    """A mean over seeds.

    Attributes
    ----------
    mean : float
        NaN if there is nothing to average.
    error : float
        Half-width of its 95% confidence interval (Student's t); NaN for a single seed.
    """

    mean: float
    error: float


@dataclass(frozen=True)
class Standing:
    """One policy in one world.

    Attributes
    ----------
    world, policy : str
        Names.
    seeds : int
        How many.
    freshness : Interval
        Share of the importance up to date, after the burn-in.
    of_clairvoyant, of_optimum : Interval
        As a share of the clairvoyant policy's on the same seed, and of the optimum's; NaN where that is missing.
    of_uniform : Interval
        Staleness (what is missing to full freshness) as a share of uniform visits' on the same seed.
    behind_default : Interval
        `of_clairvoyant` of the default policy less this one's, seed by seed: above 0 where the default wins.
    visits, visited : float
        Visits made, and pages visited after the burn-in; means.
    edges, by_time : ndarray
        Mean freshness in stretches of time.
    """

    world: str
    policy: str
    seeds: int
    freshness: Interval
    of_clairvoyant: Interval
    of_optimum: Interval
    of_uniform: Interval
    behind_default: Interval
    visits: float
    visited: float
    edges: Floats
    by_time: Floats


@dataclass(frozen=True)
class Run:
    """One crawl to be simulated; the attributes are parameters of `simulate`."""

    world: World
    policy: str
    horizon: float
    seed: int
    burn_in: float | None = None
    replan: float | None = None
    learner: str = DEFAULT_LEARNER

    def report(self) -> Report:
        """Simulate it."""
        return simulate(self.world, self.policy, self.horizon, self.seed, burn_in=self.burn_in, replan=self.replan, learner=self.learner)


def reports_of(runs: Sequence[Run], jobs: int = 1) -> Iterator[Report]:
    """Simulate crawls, several at a time.

    Parameters
    ----------
    runs : sequence of Run
        What is simulated.
    jobs : int
        Processes. With more than one the worlds have to be such that they can be pickled, as recorded ones can.

    Yields
    ------
    Report
        In the order of the runs.
    """
    if jobs <= 1:
        yield from map(Run.report, runs)
        return
    # Fresh processes: a forked one would have the locks of threads that it does not have.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    try:
        yield from pool.map(Run.report, runs)
    finally:
        pool.shutdown(cancel_futures=True)


def compare(
    worlds: Sequence[World],
    policies: Sequence[str] = POLICY_NAMES,
    seeds: Iterable[int] = range(4),
    horizon: float = 400.0,
    *,
    burn_in: float | None = None,
    replan: float | None = None,
    learner: str = DEFAULT_LEARNER,
) -> Iterator[Report]:
    """Simulate every policy in every world for every seed.

    Parameters
    ----------
    worlds : sequence of World
        What is crawled.
    policies : sequence of str
        Names in `POLICY_NAMES`.
    seeds : iterable of int
        All policies meet the same pages and changes on the same seed.
    horizon, burn_in, replan
        As in `simulate`.
    learner : str
        As in `simulate`.

    Yields
    ------
    Report
        World by world, seed by seed.
    """
    crawls = product(worlds, tuple(seeds), policies)
    return reports_of([Run(world, policy, horizon, seed, burn_in, replan, learner) for world, seed, policy in crawls])


def standings(reports: Iterable[Report]) -> list[Standing]:
    """Return means and confidence intervals over seeds, in the order in which worlds and policies first come."""
    groups: dict[tuple[str, str], dict[int, Report]] = {}
    for report in reports:
        groups.setdefault((report.world, report.policy), {})[report.seed] = report
    found = []
    for (world, policy), group in groups.items():
        known, default, even = (groups.get((world, name), {}) for name in (CLAIRVOYANT, DEFAULT_POLICY, UNIFORM))
        shares = _shares(group, known)
        reference = _shares(default, known)
        first = next(iter(group.values()))
        found.append(
            Standing(
                world,
                policy,
                len(group),
                interval([report.freshness for report in group.values()]),
                interval(list(shares.values())),
                interval([report.fraction for report in group.values()]),
                interval(_stale_shares(group, even)),
                interval([reference[seed] - share for seed, share in shares.items() if seed in reference]),
                float(np.mean([report.visits for report in group.values()])),
                float(np.mean([report.visited for report in group.values()])),
                first.edges,
                np.mean([report.by_time for report in group.values()], axis=0),
            )
        )
    return found


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of values and half the width of its 95% confidence interval.

    Examples
    --------
    >>> found = interval([1.0, 2.0, 3.0])
    >>> found.mean, round(found.error, 3)
    (2.0, 2.484)
    """
    several = np.asarray(values, dtype=np.float64)
    if several.size < 2:
        return Interval(float(several[0]) if several.size else float("nan"), float("nan"))
    degrees = several.size - 1
    student = _STUDENT[degrees - 1] if degrees <= len(_STUDENT) else 1.96 + 2.42 / degrees
    return Interval(float(several.mean()), float(student * several.std(ddof=1) / np.sqrt(several.size)))


def _shares(group: dict[int, Report], known: dict[int, Report]) -> dict[int, float]:
    """Freshness as a share of the clairvoyant's, by seed."""
    return {seed: report.freshness / known[seed].freshness for seed, report in group.items() if seed in known}


def _stale_shares(group: dict[int, Report], even: dict[int, Report]) -> list[float]:
    """Staleness as a share of uniform visits', for each seed on which that has any."""
    stale = {seed: 1.0 - report.freshness for seed, report in even.items() if report.freshness < 1.0}
    return [(1.0 - report.freshness) / stale[seed] for seed, report in group.items() if seed in stale]
