"""The regret of "Learning to crawl": explore-then-commit against its bound and against phased epsilon-greedy, as the horizon grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.optimization import solve_poisson
from optimal_frontier.scheduling.exploration import EPSILON, PHASE_ROUNDS, exploration_time, regret_bound
from optimal_frontier.simulation.ragged import Floats

#: Horizons, in the time in which the budget visits every page once.
HORIZONS: Final = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
PAGES: Final = 100
#: Bounds on the change rates, which are uniform between them, per round; and the probability with which the bound may fail.
LOWER: Final = 0.5
UPPER: Final = 2.0
DELTA: Final = 0.1
#: Each phase of epsilon-greedy is this much longer than the one before.
_GROWTH: Final = 1.3
#: Names, in the order of tables.
REGRET_POLICIES: Final = ("theorem-1", "square-root", "doubling", "epsilon", "epsilon-root")


@dataclass(frozen=True)
class Regret:
    """What a policy lost in a crawl.

    Attributes
    ----------
    policy : str
        ``theorem-1``: explore-then-commit, for the time at which the bound is least; ``square-root``: for the square root of the
        horizon, in rounds; ``doubling``: the same without knowing the horizon; ``epsilon``: phased epsilon-greedy, a share `EPSILON` / k
        of phase k exploring; ``epsilon-root``: the same with `EPSILON` / sqrt k.
    horizon : float
        Length of the crawl, in rounds.
    seed : int
        Of pages and bits.
    regret : float
        Time x share of the importance lost against the optimum, in rounds. With few pages it may be below 0: exploration at even intervals
        can be worth more than the best memoryless visits.
    bound : float
        What Theorem 1 says of ``theorem-1``; NaN for the others.
    """

    policy: str
    horizon: float
    seed: int
    regret: float
    bound: float


@dataclass(frozen=True)
class Growth:
    """How the regret of a policy grows with the horizon.

    Attributes
    ----------
    policy : str
        Its name.
    exponent, error : float
        Of the horizon, fitted to mean regrets on a logarithmic scale; and its standard error (jackknife over seeds).
    """

    policy: str
    exponent: float
    error: float


class _Pages:
    """A set of pages, what memoryless visits are worth to them, and what is learned of them. Times are in rounds, so the budget is n."""

    def __init__(self, rng: np.random.Generator, pages: int) -> None:
        self.rng = rng
        self.weight = rng.pareto(1.2, pages) + 0.1
        self.weight /= self.weight.sum()
        self.rate = LOWER + (UPPER - LOWER) * rng.random(pages)
        self.best = solve_poisson(self.weight, self.rate, float(pages)).objective
        self.even = float(self.weight @ (-np.expm1(-self.rate) / self.rate))  # visits every round, eq. 6

    def lost(self, rates: Floats) -> float:
        """Freshness that memoryless visits at some rates lose, by time."""
        return self.best - float(self.weight @ (rates / (rates + self.rate)))

    def changes_seen(self, rounds: int) -> Floats:
        """Changes found by a visit per round."""
        return self.rng.binomial(rounds, -np.expm1(-self.rate)).astype(np.float64)

    def planned(self, estimate: Floats) -> Floats:
        return solve_poisson(self.weight, estimate, float(len(estimate))).rates


def regrets(pages: int = PAGES, seeds: Iterable[int] = range(20), horizons: Sequence[float] = HORIZONS) -> Iterator[Regret]:
    """Measure the regret of every policy for every seed and horizon.

    Parameters
    ----------
    pages : int
        Number of pages.
    seeds : iterable of int
        One set of pages each.
    horizons : sequence of float
        Lengths of crawls, in rounds.

    Yields
    ------
    Regret

    Notes
    -----
    As in the paper the optimum is that of memoryless visits (Azar's Algorithm 2), rates after exploring are those of Algorithm 2 at the
    estimates, and what they lose is worked out, not sampled. Exploration is at even intervals; its freshness is that of eq. 6. Bits are
    drawn. The estimate is eq. 7, clipped to the bounds on the rates: for even intervals it has a closed form. Epsilon-greedy plans a
    mixture in each phase, (1 - e) x the rates at the estimates + e x uniform rates. Its phases grow by 1.3, and e is the mean over as many
    phases of the length that a live crawl has. Its visits are memoryless, so a visit at rate f finds no change with probability
    f / (f + x), and the estimate makes that right on average.

    References
    ----------
    U. Upadhyay et al., "Learning to crawl", AAAI 2020, sections 5 and 6.
    """
    for seed in seeds:
        for horizon in horizons:
            rng = np.random.default_rng([seed, 2])
            world = _Pages(rng, pages)
            explored = exploration_time(pages, float(pages), horizon, LOWER, UPPER, DELTA)
            bound = regret_bound(pages, float(pages), horizon, explored, LOWER, UPPER, DELTA)
            yield Regret("theorem-1", horizon, seed, _explore_then_commit(world, explored, horizon), bound)
            yield Regret("square-root", horizon, seed, _explore_then_commit(world, math.ceil(math.sqrt(horizon)), horizon), math.nan)
            yield Regret("doubling", horizon, seed, _doubling(world, horizon), math.nan)
            yield Regret("epsilon", horizon, seed, _epsilon_greedy(world, horizon, 1.0), math.nan)
            yield Regret("epsilon-root", horizon, seed, _epsilon_greedy(world, horizon, 0.5), math.nan)


def growths(measured: Iterable[Regret]) -> list[Growth]:
    """Return how the mean regret of each policy grows with the horizon; horizons of a seed count together."""
    table: dict[str, dict[int, dict[float, float]]] = {}
    for one in measured:
        table.setdefault(one.policy, {}).setdefault(one.seed, {})[one.horizon] = one.regret
    found = []
    for policy, by_seed in table.items():
        horizons = sorted(next(iter(by_seed.values())))
        values = np.array([[row[horizon] for horizon in horizons] for row in by_seed.values()])
        n = len(values)
        without = [_slope(horizons, (values.sum(axis=0) - row) / (n - 1)) for row in values] if n > 1 else []
        error = math.sqrt((n - 1) * float(np.var(without))) if n > 1 else math.nan
        found.append(Growth(policy, _slope(horizons, values.mean(axis=0)), error))
    return found


def even_estimate(changes: Floats, rounds: int) -> Floats:
    """Return `moment_rate` of visits one round apart, clipped to the bounds on the rates; a test holds the two equal."""
    with np.errstate(divide="ignore"):
        return np.clip(-np.log1p(-changes / rounds), LOWER, UPPER)


def _explore_then_commit(world: _Pages, explored: float, horizon: float) -> float:
    rounds = int(min(explored, horizon))
    regret = rounds * (world.best - world.even)
    return regret + (horizon - rounds) * world.lost(world.planned(even_estimate(world.changes_seen(rounds), rounds)))


def _doubling(world: _Pages, horizon: float) -> float:
    """Stretches of 1, 2, 4, ... rounds, each with its own exploration; what was learned before is not thrown away."""
    regret, begun, length = 0.0, 0.0, 1.0
    changes, explored = np.zeros(len(world.rate)), 0
    while begun < horizon:
        stretch = min(length, horizon - begun)
        rounds = int(min(math.ceil(math.sqrt(length)), stretch))
        changes, explored = changes + world.changes_seen(rounds), explored + rounds
        regret += rounds * (world.best - world.even)
        if explored and stretch > rounds:
            regret += (stretch - rounds) * world.lost(world.planned(even_estimate(changes, explored)))
        begun, length = begun + length, 2.0 * length
    return regret


def _epsilon_greedy(world: _Pages, horizon: float, power: float) -> float:
    """A share `EPSILON` / k^power of phase k explores."""
    n = len(world.rate)
    begun, length, regret = 0.0, float(PHASE_ROUNDS), 0.0
    rates, visits, unchanged = [], [], []
    estimate = np.full(n, 0.5 * (LOWER + UPPER))
    while begun < horizon:
        stretch = min(length, horizon - begun)
        first, last = begun / PHASE_ROUNDS + 1.0, (begun + stretch) / PHASE_ROUNDS + 1.0
        total = math.log(last / first) if power == 1.0 else (last ** (1.0 - power) - first ** (1.0 - power)) / (1.0 - power)
        explored = min(1.0, EPSILON * total / (last - first))
        rate = (1.0 - explored) * world.planned(estimate) + explored
        regret += stretch * world.lost(rate)
        made = world.rng.poisson(rate * stretch).astype(np.int64)
        rates.append(rate)
        visits.append(made.astype(np.float64))
        unchanged.append(world.rng.binomial(made, rate / (rate + world.rate)).astype(np.float64))
        estimate = memoryless_estimate(np.array(rates), np.array(visits), np.array(unchanged))
        begun, length = begun + length, _GROWTH * length
    return regret


def memoryless_estimate(rates: Floats, visits: Floats, unchanged: Floats) -> Floats:
    """Return the change rates at which as many memoryless visits are expected to find no change as did, clipped to the bounds on them.

    Parameters
    ----------
    rates, visits, unchanged : ndarray (k, n)
        By phase and page: rate of visits, how many were made, and how many found no change.

    Returns
    -------
    ndarray (n,)
        By bisection, to 1e-12.
    """
    low, high = np.full(rates.shape[1], LOWER), np.full(rates.shape[1], UPPER)
    found = unchanged.sum(axis=0)
    for _ in range(40):
        middle = 0.5 * (low + high)
        too_low = (visits * rates / (rates + middle)).sum(axis=0) > found
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return np.asarray(0.5 * (low + high))


def _slope(horizons: Sequence[float], values: Floats) -> float:
    if len(horizons) < 2 or not (values > 0).all():
        return math.nan
    slope, _ = np.polyfit(np.log(horizons), np.log(values), 1)
    return float(slope)
