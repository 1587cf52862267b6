"""Worlds in which sources tell of changes, not always and not always truly: what crawls make of their word.

`signal_crawl` has the crawls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import SignalSolution, solve_signals
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised, synthetic_world

#: What false signals come by.
FalseSignals = Literal["changes", "pages", "readings"]
FALSE_SIGNALS: Final[tuple[FalseSignals, ...]] = get_args(FalseSignals)


@dataclass(frozen=True)
class SignalWorld:
    """A world of `synthetic_world`, whose pages belong to sources that signal. Times in days.

    Attributes
    ----------
    base : str
        Name of the world: importance, change rates and budget.
    pages, sources : int
        How many; pages go to sources in turn. Each source is learned for itself.
    recall : float
        Share of the changes that are signalled.
    false : float
        False signals for each true one; for each change, where there are no true ones.
    false_by : {"changes", "pages", "readings"}
        They come to each page in proportion to its changes; as often to every page; or to all pages of a source at once, each time that
        it is read, as of a sitemap that says "now" of all its entries.
    delay : float
        Days by which true signals are late.
    repeats : int
        How often each true signal is given, each so much later again.
    """

    base: str = "A"
    pages: int = 1000
    sources: int = 10
    recall: float = 0.6
    false: float = 1.0
    false_by: FalseSignals = "changes"
    delay: float = 0.0
    repeats: int = 1

    def __post_init__(self) -> None:
        if not (0.0 <= self.recall <= 1.0 and 0.0 <= self.false < math.inf and 0.0 <= self.delay < math.inf):
            raise InvalidProblemError(
                f"recall, false and delay: expected a share and two numbers of 0 or more, got {(self.recall, self.false, self.delay)}"
            )
        if self.pages < 1 or self.sources < 1 or self.repeats < 1:
            raise InvalidProblemError("a world of signals needs pages, sources and repeats of 1 or more")
        if self.false_by not in FALSE_SIGNALS:
            raise InvalidProblemError(f"false_by must be one of {', '.join(FALSE_SIGNALS)}, got {self.false_by!r}")

    def realise(self, horizon: float, seed: int) -> RealisedSignals:
        """Return how it comes out; the same seed gives the same pages and changes, whatever is signalled of them."""
        world = synthetic_world(self.base, pages=self.pages).realise(horizon, seed)
        rng = np.random.default_rng([seed, 20_262])
        n, rate, changes = self.pages, world.known_rates(0.0), world.drawn.changes
        source = np.arange(n) % self.sources
        page = np.repeat(np.arange(n), changes.counts)
        told = rng.random(len(page)) < self.recall
        pages, times = [], []
        for repeat in range(self.repeats):
            pages.append(page[told])
            times.append(changes.times[told] + (repeat + 1) * self.delay)
        rates = rate * (self.recall or 1.0) * self.false
        if self.false_by != "changes":
            rates = np.full(n, rates.mean())
        if self.false_by == "readings" and self.false > 0.0:
            readings = [np.arange(rng.random(), horizon * rates[0]) / rates[0] for _ in range(self.sources)]
            pages.append(np.concatenate([np.tile(np.flatnonzero(source == k), len(at)) for k, at in enumerate(readings)]))
            times.append(np.concatenate([np.repeat(at, np.count_nonzero(source == k)) for k, at in enumerate(readings)]))
        else:
            count = rng.poisson(rates * horizon)
            pages.append(np.repeat(np.arange(n), count))
            times.append(rng.random(int(count.sum())) * horizon)
        at, which = np.concatenate(times), np.concatenate(pages)
        order = np.argsort(at, kind="stable")
        return RealisedSignals(world, source, at[order], which[order], np.full(n, self.recall), rates)


@dataclass(frozen=True)
class RealisedSignals:
    """A world as it came out.

    Attributes
    ----------
    world : Realised
        Pages and changes.
    source : ndarray of int (n,)
        Of each page.
    times, pages : ndarray (m,)
        Signals in the order in which they come, and the page of each.
    recall, false_rate : ndarray (n,)
        Of each page's source, as it is.
    """

    world: Realised
    source: Ints
    times: Floats
    pages: Ints
    recall: Floats
    false_rate: Floats

    @property
    def optimum(self) -> SignalSolution:
        """The best thresholds, for who knows everything but the times of changes."""
        rates = self.world.known_rates(0.0)
        return solve_signals(self.world.importance, rates, self.recall, self.false_rate, self.world.budget)
