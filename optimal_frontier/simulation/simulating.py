"""A world, a policy, a time and a seed -> how fresh the copies were."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation.bandwidth import BandwidthChange, slots_until
from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.interval_rules import RULES, IntervalRule
from optimal_frontier.simulation.last_modified_learning import LastModified, with_liars
from optimal_frontier.simulation.learners import Bits, Learner
from optimal_frontier.simulation.measuring import fresh_and_counted
from optimal_frontier.simulation.oracles import HINDSIGHT, ORACLE_NAMES, TOLD, constant_rates, foreseen_visits, fresh_at_rates, told_visits
from optimal_frontier.simulation.planned_crawl import NO_CONDITIONS, Conditions, planned_visits
from optimal_frontier.simulation.policies import PLANNERS, Planner, Pricing
from optimal_frontier.simulation.ragged import Floats
from optimal_frontier.simulation.ruled_crawl import ruled_visits
from optimal_frontier.simulation.worlds import Realised, World, synthetic_world

#: Stretches of time of which freshness is told.
STRETCHES: Final = 40
#: Time between two plans, in rounds (the time in which the budget visits every page once), unless told.
REPLAN_ROUNDS: Final = 0.4
#: Makers of learners by name. ``live`` is what a live crawl makes of bits.
LEARNERS: Final[Mapping[str, Callable[[Realised], Bits | Learner]]] = MappingProxyType(
    {
        "live": lambda world: Bits(watches=True, has_siblings=True, has_neighbourhoods=True),
        "no-neighbourhoods": lambda world: Bits(watches=True, has_siblings=True),
        "plain": lambda world: Bits(),
        "watching": lambda world: Bits(watches=True),
        "siblings": lambda world: Bits(has_siblings=True),
        "last-modified": LastModified,
        "last-modified-liars": with_liars,
    }
)
#: The learner unless told.
DEFAULT_LEARNER: Final = "live"
#: Names of all policies.
POLICY_NAMES: Final = (*PLANNERS, *RULES)


@dataclass(frozen=True)
class Report:
    """How fresh a simulated crawl kept its pages.

    Attributes
    ----------
    world, policy : str
        Names.
    seed, pages : int
        Of the world; how many pages.
    horizon, burn_in, budget : float
        Length of the crawl; from when on it is measured; visits per unit of time.
    freshness : float
        Share of importance x time after the burn-in in which copies were current: the exact expectation between visits, or what happened
        where the world has none.
    optimum : float
        That of the best evenly spaced visits, for who knows the rates; NaN where that has no formula.
    fraction : float
        freshness / optimum.
    visits : int
        How many were made, first ones included.
    visited : int
        Pages visited after the burn-in.
    edges : ndarray (k + 1,)
        Stretches of time from 0 to the horizon.
    by_time : ndarray (k,)
        Freshness in each.
    """

    world: str
    policy: str
    seed: int
    pages: int
    horizon: float
    burn_in: float
    budget: float
    freshness: float
    optimum: float
    fraction: float
    visits: int
    visited: int
    edges: Floats
    by_time: Floats


def simulate(
    world: World | str,
    policy: str | IntervalRule | Callable[[], Planner | Pricing],
    horizon: float,
    seed: int,
    *,
    burn_in: float | None = None,
    replan: float | None = None,
    learner: str = DEFAULT_LEARNER,
    bandwidth: BandwidthChange | None = None,
    conditions: Conditions = NO_CONDITIONS,
) -> Report:
    """Simulate a crawl.

    Parameters
    ----------
    world : World or str
        The pages; a name as in `synthetic_world`.
    policy : str, IntervalRule or callable
        A name in `POLICY_NAMES`, a scheduler that keeps intervals, or what makes a planner; for recorded changes also one in
        `oracles.ORACLE_NAMES`.
    horizon : float
        Length of the crawl, in the world's unit of time (days, or seconds for traces).
    seed : int
        Of pages, changes and draws. Pages and changes do not depend on the policy.
    burn_in : float, optional
        From when on freshness is measured; half of `horizon` unless given.
    replan : float, optional
        Time between two plans; 0.4 of the time in which the budget visits every page once unless given. A quarter of that, or twice as
        much, changes freshness by less than 0.0003.
    learner : str
        Who learns, a key of `LEARNERS`; for policies that plan. ``live`` is what a live crawl makes of bits.
    bandwidth : BandwidthChange, optional
        When the real budget is not the one that plans count with. The optimum is that at the real one, on average over the time measured.
    conditions : Conditions
        Bounds of pages, hosts with a limit, batches, fetches in flight. For policies that plan; the optimum does not count with them.

    Returns
    -------
    Report
        The same for the same arguments.

    Raises
    ------
    InvalidProblemError
        A name is unknown, a number out of range, or a policy cannot be dispatched so; the message says which.

    Notes
    -----
    Every slot for a visit is used (work-conserving; Frontera's rule alone waits), and there are `horizon` x budget of them. 1,000 pages
    with 200 visits a day for 400 days take about a second.

    Examples
    --------
    >>> from optimal_frontier.simulation import synthetic_world
    >>> small = synthetic_world("A", pages=50)
    >>> for policy in ("median", "uniform"):
    ...     report = simulate(small, policy, 200.0, seed=1)
    ...     print(f"{policy:8} {report.fraction:.3f} {report.visits}")
    median   0.993 2000
    uniform  0.868 2000
    """
    if isinstance(world, str):
        world = synthetic_world(world)
    _positive(horizon, "horizon")
    start = 0.5 * horizon if burn_in is None else burn_in
    if not 0.0 <= start < horizon:
        raise InvalidProblemError(f"burn_in must be at least 0 and below the horizon, got {start!r}")
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise InvalidProblemError(f"seed must be a whole number, 0 or more, got {seed!r}")
    realised = world.realise(horizon, int(seed))
    if learner not in LEARNERS:
        raise InvalidProblemError(f"learner {learner!r}: unknown; known are {', '.join(LEARNERS)}")
    even = realised.round(horizon)
    interval = _positive(REPLAN_ROUNDS * even if replan is None else replan, "replan")
    edges = np.unique(np.concatenate([np.linspace(0.0, horizon, STRETCHES + 1), [start]]))
    if isinstance(policy, str) and policy in ORACLE_NAMES:
        if realised.drawn.hazard is not None or bandwidth is not None or conditions != NO_CONDITIONS:
            raise InvalidProblemError(f"policy {policy!r} knows when pages change: it is for recorded changes, without conditions")
        name, outcome = policy, _oracle(policy, realised, horizon, edges, start)
    else:
        name, chosen = _policy(policy, even / realised.day)
        if isinstance(chosen, IntervalRule):
            if conditions != NO_CONDITIONS:
                raise InvalidProblemError(f"policy {name!r} keeps intervals and takes no conditions")
            visits = ruled_visits(realised, chosen, horizon, bandwidth)
        else:
            rng = np.random.default_rng([int(seed), 1])
            real = conditions if bandwidth is None else replace(conditions, bandwidth=bandwidth)
            visits = planned_visits(realised, chosen(), LEARNERS[learner](realised), horizon, interval, rng, real)
        outcome = _outcome(realised, visits, edges, start)
    measured = edges[:-1] >= start
    freshness = float(outcome.fresh[measured].sum() / outcome.counted[measured].sum())
    optimum = _optimum(realised, float(start), float(horizon), bandwidth)
    return Report(
        world.name,
        name,
        int(seed),
        len(realised),
        float(horizon),
        float(start),
        realised.budget,
        freshness,
        optimum,
        freshness / optimum,
        outcome.visits,
        outcome.visited,
        edges,
        np.asarray(outcome.fresh / np.maximum(outcome.counted, np.finfo(np.float64).tiny)),
    )


class _Outcome(NamedTuple):
    """What is current and what counts, by stretches; visits made, and pages visited after the burn-in."""

    fresh: Floats
    counted: Floats
    visits: int
    visited: int


def _outcome(world: Realised, visits: Visits, edges: Floats, start: float) -> _Outcome:
    visited = len(np.unique(visits.pages[visits.times >= start]))
    return _Outcome(*fresh_and_counted(world, visits, edges), len(visits.pages), visited)


def _oracle(policy: str, world: Realised, horizon: float, edges: Floats, start: float) -> _Outcome:
    if policy == HINDSIGHT:
        rates = constant_rates(world, start, horizon)
        return _Outcome(*fresh_at_rates(world, rates, edges), slots_until(horizon, world.budget), int(np.count_nonzero(rates)))
    return _outcome(world, (told_visits if policy == TOLD else foreseen_visits)(world, horizon), edges, start)


def _optimum(world: Realised, start: float, end: float, bandwidth: BandwidthChange | None) -> float:
    if bandwidth is None:
        return world.optimum
    changed = bandwidth.share(start, end)
    return (1.0 - changed) * world.optimum + changed * replace(world, budget=world.budget * bandwidth.factor).optimum


def _policy(
    policy: str | IntervalRule | Callable[[], Planner | Pricing], even_days: float
) -> tuple[str, IntervalRule | Callable[[], Planner | Pricing]]:
    if isinstance(policy, str):
        if policy in RULES:
            return policy, RULES[policy](even_days)
        if policy in PLANNERS:
            return policy, PLANNERS[policy]
        raise InvalidProblemError(f"policy {policy!r}: unknown; known are {', '.join((*POLICY_NAMES, *ORACLE_NAMES))}")
    if isinstance(policy, IntervalRule):
        return type(policy).__name__, policy
    return getattr(policy, "__name__", type(policy).__name__), policy


def _positive(value: float, name: str) -> float:
    if not 0.0 < value < math.inf:
        raise InvalidProblemError(f"{name} must be positive and finite, got {value!r}")
    return float(value)
