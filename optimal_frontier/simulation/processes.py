"""How pages change: processes that turn a page's mean change rate into the times of its changes.

Each is a frozen description; `draw` makes the changes of all pages up to a horizon. All but quasi-deterministic pages start in the long
run: what time passes until a page's first change is distributed as from any moment on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation.ragged import Floats, Ragged

#: Draws change rates of so many pages.
DrawRates = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Hazard:
    """Change rates that stay constant for a while.

    Attributes
    ----------
    since : Ragged
        When each stretch begins; a page's first at 0.
    rates : ndarray (m,)
        Change rate of each stretch, > 0.
    """

    since: Ragged
    rates: Floats

    def at(self, time: float) -> Floats:
        """Return the change rate of each page at a time."""
        pages = np.arange(len(self.since))
        return np.asarray(self.rates[self.since.after(pages, np.full(len(pages), time)) - 1])


@dataclass(frozen=True)
class Drawn:
    """Changes of all pages.

    Attributes
    ----------
    changes : Ragged
        Their times.
    hazard : Hazard or None
        The change rates, if changes are Poisson at rates that do not depend on the past; None for other processes.
    rates : ndarray (n,)
        Changes per unit of time in the long run.
    """

    changes: Ragged
    hazard: Hazard | None
    rates: Floats


class ChangeProcess(Protocol):
    """What the worlds need of a process."""

    @property
    def name(self) -> str:
        """As the command line calls it."""

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon; `redraw` gives new rates to pages whose habits change."""


@dataclass(frozen=True)
class Poisson:
    """Memoryless changes at a constant rate."""

    name: str = "poisson"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        n = len(rates)
        hazard = Hazard(Ragged(np.zeros(n), np.arange(n + 1)), rates)
        return Drawn(_poisson_changes(rng, hazard, horizon), hazard, rates)


@dataclass(frozen=True)
class Jumping:
    """Memoryless changes; each page draws its rate anew at the times of a Poisson process of its own.

    Attributes
    ----------
    every : float
        Mean time between two draws.
    """

    every: float = 100.0
    name: str = "jumping"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        n = len(rates)
        jumps = rng.poisson(horizon / self.every, n)
        pages = np.repeat(np.arange(n), jumps)
        since = Ragged.joined(np.concatenate([np.arange(n), pages]), np.concatenate([np.zeros(n), horizon * rng.random(len(pages))]), n)
        of_stretch = redraw(rng, len(since.times))
        of_stretch[since.starts[:-1]] = rates
        hazard = Hazard(since, of_stretch)
        return Drawn(_poisson_changes(rng, hazard, horizon), hazard, _mean_rates(hazard, horizon))


@dataclass(frozen=True)
class Drifting:
    """Memoryless changes; the logarithm of each rate wanders around where it began.

    Attributes
    ----------
    spread : float
        Standard deviation of the logarithm in the long run.
    memory : float
        Time in which the correlation with what was falls to 1/e.
    step : float
        Time for which a rate stays constant.
    """

    spread: float = 1.0
    memory: float = 100.0
    step: float = 1.0
    name: str = "drifting"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        n, steps = len(rates), max(1, math.ceil(horizon / self.step))
        kept = math.exp(-self.step / self.memory)
        shift = np.zeros((n, steps))
        for at in range(1, steps):
            shift[:, at] = kept * shift[:, at - 1] + self.spread * math.sqrt(1.0 - kept * kept) * rng.standard_normal(n)
        since = Ragged(np.tile(self.step * np.arange(steps), n), steps * np.arange(n + 1))
        hazard = Hazard(since, (rates[:, None] * np.exp(shift)).ravel())
        return Drawn(_poisson_changes(rng, hazard, horizon), hazard, _mean_rates(hazard, horizon))


@dataclass(frozen=True)
class Weibull:
    """Independent times between changes with tail exp(-(t / scale)^shape); below shape 1 changes come in bursts.

    Attributes
    ----------
    shape : float
        Of all pages, > 0; 0.35 to 0.6 fits git histories of documentation.
    """

    shape: float = 0.5
    name: str = "weibull"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        if not self.shape > 0:
            raise InvalidProblemError(f"shape must be positive, got {self.shape!r}")
        power = 1.0 / self.shape
        scale = 1.0 / (rates * math.gamma(1.0 + power))
        # The interval around a moment is drawn in proportion to its length, and the moment lies anywhere in it.
        first = scale * rng.gamma(1.0 + power, size=len(rates)) ** power * rng.random(len(rates))
        changes = _renewals(rng, first, lambda pages: scale[pages] * rng.exponential(size=len(pages)) ** power, horizon)
        return Drawn(changes, None, rates)


@dataclass(frozen=True)
class Pareto:
    """Independent times between changes with tail (scale / (scale + t))^shape.

    Attributes
    ----------
    shape : float
        Of all pages, > 1, so that there is a mean.
    """

    shape: float = 1.5
    name: str = "pareto"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        if not self.shape > 1:
            raise InvalidProblemError(f"shape must be above 1, got {self.shape!r}")
        scale = (self.shape - 1.0) / rates
        first = scale * rng.pareto(self.shape - 1.0, len(rates))  # what is left of the interval around a moment
        changes = _renewals(rng, first, lambda pages: scale[pages] * rng.pareto(self.shape, len(pages)), horizon)
        return Drawn(changes, None, rates)


@dataclass(frozen=True)
class QuasiDeterministic:
    """Changes at fixed times of a period, each made with a probability.

    Attributes
    ----------
    probability : float
        With which a time brings a change. Times of a page are 1/probability as frequent as its changes, evenly spaced from a random
        first one.
    """

    probability: float = 0.8
    name: str = "quasi-deterministic"

    def draw(self, rng: np.random.Generator, rates: Floats, horizon: float, redraw: DrawRates) -> Drawn:
        """Return the changes up to a horizon."""
        if not 0 < self.probability <= 1:
            raise InvalidProblemError(f"probability must be above 0 and at most 1, got {self.probability!r}")
        period = self.probability / rates
        first = period * rng.random(len(rates))
        times = np.maximum(np.ceil((horizon - first) / period), 0.0).astype(np.int64)
        pages = np.repeat(np.arange(len(rates)), times)
        begins = np.concatenate([[0], np.cumsum(times)[:-1]])
        at = first[pages] + period[pages] * (np.arange(len(pages)) - begins[pages])
        made = rng.random(len(pages)) < self.probability
        return Drawn(Ragged.joined(pages[made], at[made], len(rates)), None, rates)


def _poisson_changes(rng: np.random.Generator, hazard: Hazard, horizon: float) -> Ragged:
    since = hazard.since
    lengths = np.clip(_ends(since, horizon) - since.times, 0.0, None)
    counts = rng.poisson(hazard.rates * lengths)
    stretch = np.repeat(np.arange(len(counts)), counts)
    times = since.times[stretch] + lengths[stretch] * rng.random(len(stretch))
    return Ragged.joined(np.repeat(np.arange(len(since)), since.counts)[stretch], times, len(since))


def _ends(since: Ragged, horizon: float) -> Floats:
    """When each stretch ends."""
    ends = np.append(since.times[1:], horizon)
    ends[since.starts[1:] - 1] = horizon
    return np.asarray(np.minimum(ends, horizon))


def _mean_rates(hazard: Hazard, horizon: float) -> Floats:
    lengths = _ends(hazard.since, horizon) - hazard.since.times
    page = np.repeat(np.arange(len(hazard.since)), hazard.since.counts)
    expected = np.bincount(page, weights=hazard.rates * lengths, minlength=len(hazard.since))
    return np.asarray(expected / horizon, dtype=np.float64)


def _renewals(rng: np.random.Generator, first: Floats, interval: Callable[[np.ndarray], Floats], horizon: float) -> Ragged:
    """Changes of renewal processes: the next one of every page that is not at the end yet, again and again."""
    n = len(first)
    pages, times = np.arange(n), first
    found: list[tuple[np.ndarray, Floats]] = []
    while len(pages):
        inside = times < horizon
        pages, times = pages[inside], times[inside]
        found.append((pages, times))
        times = times + interval(pages)
    return Ragged.joined(np.concatenate([p for p, _ in found]), np.concatenate([t for _, t in found]), n)
