"""Policies that plan: from what a crawl knows to a revisit rate for every page, which credit makes visits of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

import numpy as np

from optimal_frontier.scheduling.exploration import Choice, Exploration, choose, explores, page_uniforms, phase
from optimal_frontier.scheduling.planning import PRIOR_SHAPE, RatePlan, plan_rates
from optimal_frontier.simulation.ragged import Floats


@dataclass(frozen=True)
class Knowledge:
    """What a policy may know when it plans.

    Attributes
    ----------
    now, horizon : float
        Time since the crawl began, and how long it will be.
    importance : ndarray (n,)
        Weights.
    budget : float
        Visits per unit of time, over all pages.
    shape, time : ndarray (n,)
        Gamma posteriors; shape 0 where a page has no bit yet.
    rng : numpy.random.Generator
        For policies that draw.
    known_rates : callable
        Change rates as they are, for the clairvoyant alone.
    """

    now: float
    horizon: float
    importance: Floats
    budget: float
    shape: Floats
    time: Floats
    rng: np.random.Generator
    known_rates: Callable[[float], Floats]

    def believed(self) -> tuple[Floats, Floats]:
        """Posteriors, with the prior of a live crawl where there is no bit."""
        known = self.shape > 0
        return np.where(known, self.shape, PRIOR_SHAPE), np.where(known, self.time, len(self.shape) / self.budget)


#: Returns visits per unit of time of every page. One is made for each run, so that it may remember.
Planner = Callable[[Knowledge], Floats]


@runtime_checkable
class Solver(Protocol):
    """A planner that solves for its rates, and can say what they were solved from: what dispatch by price goes by."""

    def __call__(self, what: Knowledge) -> Floats:
        """Return revisit rates."""

    def plan(self, what: Knowledge) -> RatePlan:
        """Return revisit rates and what they were solved from."""


def _solved(what: Knowledge, choice: Choice) -> RatePlan:
    """A plan by the arithmetic of a live plan. (It may start from the price of the last one, which pays from some 10,000 pages on.)"""
    return plan_rates(
        what.importance,
        what.shape,
        what.time,
        what.budget,
        np.zeros(what.importance.shape),
        np.full(what.importance.shape, np.inf),
        change_rate=choice.change_rate,
        least_rate=choice.least_rate,
        most_rate=choice.most_rate,
    )


@dataclass
class Exploring:
    """Ours: posterior, exploration, solver, as in a live crawl.

    Attributes
    ----------
    exploration : str
        As in `choose`.
    knows_horizon : bool
        Whether ``explore-then-commit`` may know how long the crawl will be.
    """

    exploration: Exploration
    knows_horizon: bool = True
    _committed: tuple[Floats, Floats] | None = field(default=None, init=False)
    _phase: int = field(default=0, init=False)
    _seed: int | None = field(default=None, init=False)

    def __call__(self, what: Knowledge) -> Floats:
        """Return revisit rates."""
        return self.plan(what).rates

    def plan(self, what: Knowledge) -> RatePlan:
        """Return revisit rates and what they were solved from."""
        n = len(what.importance)
        shape, time = what.believed()
        rounds = what.now * what.budget / n
        horizon = what.horizon * what.budget / n if self.knows_horizon else np.inf
        if self.exploration == "explore-then-commit":
            if explores(rounds, horizon):
                self._committed = None
            elif self._committed is None:
                self._committed = shape, time
            if self._committed is not None:
                # Pages that came since then stand behind the others: for them what is known now.
                old = len(self._committed[0])
                shape, time = np.append(self._committed[0], shape[old:]), np.append(self._committed[1], time[old:])
        choice = choose(self.exploration, shape, time, what.budget, self._numbers(what, rounds), rounds, horizon)
        return _solved(what, choice)

    def _numbers(self, what: Knowledge, rounds: float) -> Floats:
        """New numbers for every plan, or for every phase."""
        number = phase(rounds)
        if self._seed is None or self.exploration != "epsilon" or number != self._phase:
            self._seed = int(what.rng.integers(2**62))
            self._phase = number
        return page_uniforms(np.arange(len(what.importance)), self._seed)


class Clairvoyant:
    """The solver's rates at the true change rates, which no crawl knows."""

    def __call__(self, what: Knowledge) -> Floats:
        """Return revisit rates."""
        return self.plan(what).rates

    def plan(self, what: Knowledge) -> RatePlan:
        """Return revisit rates and what they were solved from."""
        known = what.known_rates(what.now)
        return _solved(what, Choice(known, np.zeros(known.shape), np.full(known.shape, np.inf)))


def uniform(what: Knowledge) -> Floats:
    """Return the same rate for every page."""
    return np.full(len(what.importance), what.budget / len(what.importance))


def by_importance(what: Knowledge) -> Floats:
    """Return rates in proportion to importance."""
    return what.importance * (what.budget / float(what.importance.sum()))


def by_change_rate(what: Knowledge) -> Floats:
    """Return rates in proportion to the posterior means of the change rates."""
    shape, time = what.believed()
    mean = shape / time
    return np.asarray(mean * (what.budget / float(mean.sum())))


#: Makers of planners by name.
PLANNERS: Final[Mapping[str, Callable[[], Planner]]] = MappingProxyType(
    {
        "median": lambda: Exploring("median"),
        "mean": lambda: Exploring("mean"),
        "thompson": lambda: Exploring("thompson"),
        "epsilon": lambda: Exploring("epsilon"),
        "explore-then-commit": lambda: Exploring("explore-then-commit"),
        "explore-doubling": lambda: Exploring("explore-then-commit", knows_horizon=False),
        "uniform": lambda: uniform,
        "change-rate": lambda: by_change_rate,
        "importance": lambda: by_importance,
        "clairvoyant": Clairvoyant,
    }
)
