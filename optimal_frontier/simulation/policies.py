"""Policies that plan: from what a crawl knows to change rates that pages are priced by, or straight to revisit rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

import numpy as np

from optimal_frontier.scheduling.exploration import Choice, Exploration, choose, explores, page_uniforms, phase
from optimal_frontier.scheduling.planning import PRIOR_SHAPE
from optimal_frontier.simulation.believing import GIVEN, MEAN, MEDIAN
from optimal_frontier.simulation.ragged import Floats, Ints

#: What numbers are made from between plans.
_ESTIMATES: Final[Mapping[Exploration, int]] = MappingProxyType({"median": MEDIAN, "epsilon": MEDIAN, "mean": MEAN})


@dataclass(frozen=True)
class Knowledge:
    """What a policy may know when it plans.

    Attributes
    ----------
    now, horizon : float
        Time since the crawl began, and how long it will be.
    pages : ndarray of int (n,)
        Which; the same page has the same number in each plan. Pages that came since the last plan are behind the others.
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
    pages: Ints
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


#: Returns visits per unit of time of every page; the earliest deadline goes first. One is made for each run, so that it may remember.
Planner = Callable[[Knowledge], Floats]


@runtime_checkable
class Pricing(Protocol):
    """A policy that says which change rates pages are priced by, and how often each is looked at whatever that says."""

    @property
    def estimate(self) -> int:
        """From which rate numbers are made between plans: a constant of `believing`."""

    def choose(self, what: Knowledge) -> Choice:
        """Return change rates and bounds on revisit rates."""


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
    _committed: tuple[Ints, Floats, Floats] | None = field(default=None, init=False)
    _phase: int = field(default=0, init=False)
    _seed: int | None = field(default=None, init=False)

    @property
    def estimate(self) -> int:
        """Drawn rates, and those that it committed itself to, hold until the next plan; medians and means follow every bit."""
        return _ESTIMATES.get(self.exploration, GIVEN)

    def choose(self, what: Knowledge) -> Choice:
        """Return change rates and bounds on revisit rates."""
        n = len(what.importance)
        shape, time = what.believed()
        rounds = what.now * what.budget / n
        horizon = what.horizon * what.budget / n if self.knows_horizon else np.inf
        if self.exploration == "explore-then-commit":
            if explores(rounds, horizon):
                self._committed = None
            elif self._committed is None:
                self._committed = what.pages, shape, time
            if self._committed is not None:
                # For pages that came since then what is known now.
                old = np.isin(self._committed[0], what.pages)
                new = int(np.count_nonzero(old))
                shape, time = np.append(self._committed[1][old], shape[new:]), np.append(self._committed[2][old], time[new:])
        return choose(self.exploration, shape, time, what.budget, self._numbers(what, rounds), rounds, horizon)

    def _numbers(self, what: Knowledge, rounds: float) -> Floats:
        """New numbers for every plan, or for every phase."""
        number = phase(rounds)
        if self._seed is None or self.exploration != "epsilon" or number != self._phase:
            self._seed = int(what.rng.integers(2**62))
            self._phase = number
        return page_uniforms(what.pages, self._seed)


@dataclass(frozen=True)
class Clairvoyant:
    """The true change rates, which no crawl knows; those of the moment, at each plan."""

    estimate: int = GIVEN
    knows: bool = True

    def choose(self, what: Knowledge) -> Choice:
        """Return the change rates."""
        known = what.known_rates(what.now)
        return Choice(known, np.zeros(known.shape), np.full(known.shape, np.inf))


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
PLANNERS: Final[Mapping[str, Callable[[], Planner | Pricing]]] = MappingProxyType(
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
