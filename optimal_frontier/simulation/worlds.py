"""Worlds: pages with importance and habits, a budget, and what becomes of copies of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import solve_periodic
from optimal_frontier.simulation.azar_pages import azar_pages
from optimal_frontier.simulation.processes import (
    ChangeProcess,
    Drawn,
    DrawRates,
    Drifting,
    Jumping,
    Pareto,
    Poisson,
    QuasiDeterministic,
    Weibull,
)
from optimal_frontier.simulation.ragged import Floats, Ints, Ragged
from optimal_frontier.simulation.section_events import SectionEvents
from optimal_frontier.simulation.sites import SiteHabits, Sites

#: What worlds have unless told.
POISSON: Final = Poisson()
NO_HABITS: Final = SiteHabits()

DrawImportance = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Realised:
    """A world as it came out for one seed.

    Attributes
    ----------
    importance : ndarray (n,)
        Weight of each page.
    drawn : Drawn
        Its changes.
    budget : float
        Visits per unit of time, over all pages.
    day : float
        Length of a day in the unit of time.
    sites : Sites
        Groups of the pages, when they arrive, and when they are gone.
    phase : float
        By which share of the time between two visits all of them come later than from 0 on.
    """

    importance: Floats
    drawn: Drawn
    budget: float
    day: float
    sites: Sites
    phase: float = 0.0

    def __len__(self) -> int:
        return len(self.importance)

    @property
    def arrival(self) -> Floats:
        """When each page arrives."""
        return self.sites.arrival

    @property
    def gone(self) -> Floats:
        """When each page ceases to exist."""
        return self.sites.gone

    def round(self, horizon: float) -> float:
        """Return the time in which the budget visits every page once, by the mean number of pages that exist until a time."""
        lives = np.clip(np.minimum(self.gone, horizon) - self.arrival, 0.0, None)
        return float(lives.sum()) / horizon / self.budget

    def known_rates(self, now: float) -> Floats:
        """Return what who knows everything but the times of changes knows: rates at present, or in the long run."""
        return self.drawn.hazard.at(now) if self.drawn.hazard is not None else self.drawn.rates

    @property
    def optimum(self) -> float:
        """Share of the importance up to date under the best evenly spaced visits (Azar eq. 6).

        NaN unless changes are Poisson at constant rates, and all pages there from the start.
        """
        hazard = self.drawn.hazard
        if hazard is None or len(hazard.rates) > len(self) or (self.arrival > 0.0).any():
            return float("nan")
        return solve_periodic(self.importance, hazard.rates, self.budget).objective / float(self.importance.sum())

    def changed(self, pages: Ints, since: Floats, until: Floats) -> np.ndarray:
        """Return whether pages changed after one time and up to another."""
        changes = self.drawn.changes
        return np.asarray(changes.after(pages, until) > changes.after(pages, since))

    def age(self, page: int, at: float) -> float:
        """Return how long ago a page changed, as it would say itself: the time since the last change before a time.

        Changes begin to be drawn at time 0. How long before that a page last changed has the distribution of the time until its first
        change, so it is taken from that of another page, its neighbour, in proportion to the two mean times between changes. NaN where the
        neighbour never changed: not known.
        """
        times, starts = self.drawn.changes.times, self.drawn.changes.starts
        latest = bisect_right(times, at, int(starts[page]), int(starts[page + 1])) - 1
        if latest >= starts[page]:
            return float(at - times[latest])
        other = (page + 1) % len(self)
        if starts[other] == starts[other + 1]:
            return math.nan
        rates = self.known_rates(0.0)
        return float(at + times[starts[other]] * rates[other] / rates[page])

    def fresh_time(self, pages: Ints, fetched: Floats, begin: Floats, end: Floats) -> Floats:
        """Return for how long copies are current between two times.

        Parameters
        ----------
        pages, fetched : ndarray (m,)
            Page of each copy and when it was made.
        begin, end : ndarray (m,)
            fetched <= begin <= end; no visit to the page lies between.

        Returns
        -------
        ndarray (m,)
            The expectation where there is a hazard: visits depend on what earlier visits saw, and a memoryless change after the
            last of them on neither. Else what happened.
        """
        if self.drawn.hazard is None:
            return np.clip(np.minimum(self.drawn.changes.next_time(pages, fetched), end) - begin, 0.0, None)
        since, rates = self.drawn.hazard.since, self.drawn.hazard.rates
        if len(rates) == len(self):
            rate = rates[pages]
            return np.asarray(np.exp(-rate * (begin - fetched)) * -np.expm1(-rate * (end - begin)) / rate)
        return self._fresh_time_in_stretches(since, rates, pages, fetched, begin, end)

    def _fresh_time_in_stretches(self, since: Ragged, rates: Floats, pages: Ints, fetched: Floats, begin: Floats, end: Floats) -> Floats:
        ends = np.append(since.times[1:], np.inf)
        ends[since.starts[1:] - 1] = np.inf
        lengths = np.where(np.isfinite(ends), ends - since.times, 0.0)
        before = np.concatenate([[0.0], np.cumsum(rates * lengths)[:-1]])  # of all stretches; only differences within a page are used

        def expected_changes(stretch: Ints, at: Floats) -> Floats:
            return np.asarray(before[stretch] + rates[stretch] * (at - since.times[stretch]))

        at_fetch = expected_changes(since.after(pages, fetched) - 1, fetched)
        first, last = since.after(pages, begin) - 1, since.after(pages, end) - 1
        copy = np.repeat(np.arange(len(pages)), last - first + 1)
        begins = np.concatenate([[0], np.cumsum(last - first + 1)[:-1]]).astype(np.int64)
        stretch = first[copy] + np.arange(len(copy)) - begins[copy]
        start = np.maximum(begin[copy], since.times[stretch])
        stop = np.maximum(np.minimum(end[copy], ends[stretch]), start)
        rate = rates[stretch]
        current = np.exp(-(expected_changes(stretch, start) - at_fetch[copy]))
        fresh = current * -np.expm1(-rate * (stop - start)) / rate
        return np.asarray(np.bincount(copy, weights=fresh, minlength=len(pages)), dtype=np.float64)


class World(Protocol):
    """What `simulate` needs of a world."""

    @property
    def name(self) -> str:
        """For reports."""

    def realise(self, horizon: float, seed: int) -> Realised:
        """Return how it comes out; the same seed gives the same, whatever the policy."""


@dataclass(frozen=True)
class SyntheticWorld:
    """Pages drawn at random; times in days.

    Attributes
    ----------
    name : str
        For reports.
    draw_importance, draw_rates : callable
        Take a generator and a number of pages.
    visits_per_page : float
        Budget, visits per page and day.
    process : ChangeProcess
        How the pages change.
    pages : int
        How many.
    habits : SiteHabits
        What pages of a host or section have in common, and which arrive late. (Rates that a process draws anew have nothing of it.)
    events : SectionEvents, optional
        How pages change together, if they do. `process` draws the rest of their changes.
    """

    name: str
    draw_importance: DrawImportance
    draw_rates: DrawRates
    visits_per_page: float
    process: ChangeProcess = POISSON
    pages: int = 1000
    habits: SiteHabits = NO_HABITS
    events: SectionEvents | None = None

    def realise(self, horizon: float, seed: int) -> Realised:
        """Return how it comes out."""
        rng = np.random.default_rng([seed, 0])
        importance = self.draw_importance(rng, self.pages)
        # A generator of their own: what groups mean nothing for is the same with and without them.
        sites, factor = self.habits.draw(np.random.default_rng([seed, 2]), self.pages, horizon)
        rates = self.draw_rates(rng, self.pages) * factor
        if self.events is None:
            drawn = self.process.draw(rng, rates, horizon, self.draw_rates)
        else:
            own = self.process.draw(rng, (1.0 - self.events.share) * rates, horizon, self.draw_rates)
            drawn = self.events.added_to(own, rng, rates, horizon, sites)
        return Realised(importance, drawn, self.visits_per_page * self.pages, 1.0, sites)


@dataclass(frozen=True)
class TraceWorld:
    """Pages whose changes are known.

    Attributes
    ----------
    name : str
        For reports.
    changes : Ragged
        Times of changes from 0 on, in seconds. That a page is gone is its last one.
    budget : float
        Visits per second, over all pages.
    importance : ndarray (n,)
        Weights.
    groups : ndarray of int (n, 4)
        Neighbourhoods, as in `path_groups`.
    arrival, gone : ndarray (n,)
        From when to when each page exists; inf for one that stays.
    """

    name: str
    changes: Ragged
    budget: float
    importance: Floats
    groups: Ints
    arrival: Floats
    gone: Floats

    def realise(self, horizon: float, seed: int) -> Realised:
        """Return the same changes for every seed; the order of pages, and so that of first visits, and the phase of visits are drawn."""
        rng = np.random.default_rng([seed, 3])
        order = rng.permutation(len(self.importance))
        sites = Sites(self.groups[order], self.arrival[order], self.gone[order])
        drawn = Drawn(self.changes.rows(order), None, self._rates(horizon)[order])
        return Realised(self.importance[order], drawn, self.budget, 86_400.0, sites, phase=float(rng.random()))

    def _rates(self, horizon: float) -> Floats:
        """Changes per time of existence. Those without one have half a change, in their time and that of half a change of the mean page."""
        n = len(self.importance)
        counts = self.changes.after(np.arange(n), np.full(n, horizon)) - self.changes.starts[:-1]
        lives = np.clip(np.minimum(self.gone, horizon) - self.arrival, 0.0, None)
        mean = max(float(counts.sum()), 0.5) / float(lives.sum())
        return np.where(counts > 0, counts, 0.5) / np.where(counts > 0, lives, lives + 0.5 / mean)


def _uniform(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(1.0 - rng.random(n))


def _zipf(rng: np.random.Generator, n: int) -> Floats:
    return azar_pages(n, "zipf", int(rng.integers(2**63))).importance


def _two_kinds(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(np.where(rng.random(n) < 0.5, 0.01, 2.0) * rng.lognormal(0.0, 0.3, n))


def _pareto(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(rng.pareto(1.2, n) + 0.1)


#: Worlds by name, 1,000 pages each. A: importance and rate uniform; B: importance Pareto, rate lognormal; C: importance Zipf, rate uniform.
#: S: importance uniform, rate lognormal by host, section and page, half of the pages arrive during the crawl. M: the same with two kinds of
#: pages in every section, changing every 100 and every half day: what siblings taught of the one is wrong for the other. N: importance
#: uniform, rate lognormal by section and page; 80% of changes come with events in which pages of a section or host change together,
#: mostly in working hours.
WORLDS: Final[Mapping[str, SyntheticWorld]] = MappingProxyType(
    {
        "A": SyntheticWorld("A", _uniform, _uniform, 0.2),
        "B": SyntheticWorld("B", _pareto, lambda rng, n: rng.lognormal(np.log(0.1), 1.5, n), 0.1),
        "C": SyntheticWorld("C", _zipf, _uniform, 0.2),
        "S": SyntheticWorld("S", _uniform, lambda rng, n: rng.lognormal(np.log(0.1), 0.5, n), 0.1, habits=SiteHabits(1.0, 1.0, 0.5)),
        "M": SyntheticWorld("M", _uniform, _two_kinds, 0.1, habits=SiteHabits(newcomers=0.5)),
        "N": SyntheticWorld(
            "N", _uniform, lambda rng, n: rng.lognormal(np.log(0.04), 0.8, n), 0.2, habits=SiteHabits(0.0, 0.5), events=SectionEvents()
        ),
    }
)
#: Worlds without newcomers, in which policies are compared unless told.
STANDARD_WORLDS: Final = ("A", "B", "C")
#: Ways to change by name.
PROCESSES: Final[Mapping[str, ChangeProcess]] = MappingProxyType(
    {process.name: process for process in (POISSON, Weibull(), Pareto(), QuasiDeterministic(), Drifting(), Jumping())}
)


def synthetic_world(name: str, process: str = "poisson", pages: int = 1000, visits_per_page: float | None = None) -> SyntheticWorld:
    """Return a world by name.

    Parameters
    ----------
    name : str
        A key of `WORLDS`.
    process : str
        A key of `PROCESSES`.
    pages : int
        How many, at least 1.
    visits_per_page : float, optional
        Budget, visits per page and day; the world's own unless given.

    Raises
    ------
    InvalidProblemError
        A name is unknown, or a number out of range; the message says which.

    Examples
    --------
    >>> synthetic_world("B", "jumping", pages=10).name
    'B jumping'
    """
    for value, known, what in ((name, WORLDS, "world"), (process, PROCESSES, "process")):
        if value not in known:
            raise InvalidProblemError(f"{what} {value!r}: unknown; known are {', '.join(known)}")
    if pages < 1:
        raise InvalidProblemError(f"pages must be 1 or more, got {pages!r}")
    world = WORLDS[name]
    budget = world.visits_per_page if visits_per_page is None else visits_per_page
    if not 0.0 < budget < float("inf"):
        raise InvalidProblemError(f"visits_per_page must be positive and finite, got {budget!r}")
    full = name if process == "poisson" else f"{name} {process}"
    return replace(world, name=full, process=PROCESSES[process], pages=pages, visits_per_page=budget)
