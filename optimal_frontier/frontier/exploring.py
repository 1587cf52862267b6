"""Exploration in a live crawl: how far it is, kept from plan to plan, and what it chooses for the pages of a plan.

Time is counted in rounds: one for the first visits, and another one whenever there were as many change bits as pages that are planned. So
a crawl that stands still does not get on, one that grows does not go back, and neither a restart nor another planner starts over.
What is random is a function of slot, generation and a number that only rounds move; nothing else has to be stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from optimal_frontier.scheduling.exploration import (
    LEARNING_SHARE,
    Choice,
    Exploration,
    choose,
    draw,
    even_rate,
    explores,
    page_uniforms,
    phase,
    stretch,
    turning_point,
    uniform_rate,
)
from optimal_frontier.scheduling.planning import LOAD

#: Rounds of a crawl without a bit: the first visits.
_FIRST_ROUND: Final = 1.0
#: Stands for "no commitment is stored".
_NONE: Final = -1


@dataclass(frozen=True)
class Progress:
    """How far exploration is.

    Attributes
    ----------
    exploration : str
        EXPLORATION.
    rounds : float
        Since the crawl began, whatever EXPLORATION was.
    bits : int
        Change bits that are in `rounds`.
    horizon : float
        Length of the crawl in rounds, CLOSE_AFTER; inf for the doubling trick.
    committed : int
        Stretch of ``explore-then-commit`` whose commitment is stored; -1 for none.
    """

    exploration: Exploration
    rounds: float = _FIRST_ROUND
    bits: int = 0
    horizon: float = math.inf
    committed: int = _NONE

    @classmethod
    def of_plan(cls, published: Mapping[str, str]) -> Progress:
        """Read what was published with a plan; the beginning where nothing was."""
        return cls(
            published.get("exploration", "median"),  # type: ignore[arg-type]  # one of them, or the plan is from before there was one
            float(published.get("exploration_rounds", _FIRST_ROUND)),
            int(published.get("exploration_bits", 0)),
            float(published.get("exploration_horizon", math.inf)),
            int(published.get("exploration_committed", _NONE)),
        )

    def under(self, exploration: Exploration, close_after: int | None) -> Progress:
        """Return the same under these settings; a commitment does not outlive its EXPLORATION."""
        horizon = math.inf if close_after is None else float(close_after)
        same = exploration == self.exploration and horizon == self.horizon
        return replace(self, exploration=exploration, horizon=horizon, committed=self.committed if same else _NONE)

    def after(self, bits: int, pages: int) -> Progress:
        """Return the progress when there are so many bits, and so many pages to plan."""
        more = max(0, bits - self.bits) / max(pages, 1)
        return replace(self, rounds=self.rounds + more, bits=bits)

    @property
    def number(self) -> int:
        """Of the phase of ``epsilon``, the draw of ``thompson`` or the stretch of ``explore-then-commit``; 0 for the others."""
        if self.exploration == "epsilon":
            return phase(self.rounds)
        if self.exploration == "thompson":
            return draw(self.rounds)
        return stretch(self.rounds, self.horizon) if self.exploration == "explore-then-commit" else 0

    @property
    def is_exploring(self) -> bool:
        """Whether ``explore-then-commit`` visits at even intervals."""
        return self.exploration == "explore-then-commit" and explores(self.rounds, self.horizon)

    @property
    def commits(self) -> bool:
        """Whether the next plan is the first one after exploring, and has to store what it commits to."""
        return self.exploration == "explore-then-commit" and not self.is_exploring and self.committed != self.number

    @property
    def rounds_left(self) -> float:
        """Rounds until ``explore-then-commit`` begins or ceases to explore; inf for the others."""
        if self.exploration != "explore-then-commit":
            return math.inf
        return turning_point(self.rounds, self.horizon) - self.rounds

    def fields(self) -> dict[str, Any]:
        """Return what is published."""
        return {
            "exploration": self.exploration,
            "exploration_rounds": repr(self.rounds),
            "exploration_bits": self.bits,
            "exploration_horizon": repr(self.horizon),
            "exploration_number": self.number,
            "exploration_committed": self.committed,
        }


@dataclass(frozen=True)
class Pages:
    """Pages of a plan, in the order of its slots.

    Attributes
    ----------
    slots, generation : ndarray of int (n,)
        Which they are.
    min_rate, max_rate : ndarray (n,)
        Bounds of the crawl, visits per second.
    shape, time : ndarray (n,)
        Posteriors, the prior where there is no bit.
    committed : ndarray (n,) or None
        Column group *committed*; None if none is stored.
    """

    slots: np.ndarray
    generation: np.ndarray
    min_rate: np.ndarray
    max_rate: np.ndarray
    shape: np.ndarray
    time: np.ndarray
    committed: np.ndarray | None = None


def choice_of(progress: Progress, pages: Pages, budget: float, most: np.ndarray | None = None, of: int | None = None) -> Choice:
    """Return what a plan is made from, or was.

    Parameters
    ----------
    progress : Progress
        At the plan.
    pages : Pages
        All of the plan's, or some.
    budget : float
        For revisits, fetches per second.
    most : ndarray (n,), optional
        Even share of each page in what its host allows, visits per second: exploration asks for no more, or it would leave nothing to the
        other pages of a slow host.
    of : int, optional
        Number of pages of the plan, if these are not all of them.

    Returns
    -------
    Choice
    """
    n = len(pages.slots)
    if of is not None:
        budget *= n / max(of, 1)
    even: np.ndarray | float = uniform_rate(n, budget)
    shape, time = pages.shape, pages.time
    if progress.is_exploring:
        high = pages.max_rate if most is None else np.maximum(pages.min_rate, np.minimum(pages.max_rate, most))
        even = even_rate(pages.min_rate, high, LOAD * budget) if of is None else even
    elif pages.committed is not None:
        kept = is_committed(progress, pages)
        shape, time = np.where(kept, pages.committed["shape"], shape), np.where(kept, pages.committed["time"], time)
    if most is not None:
        even = np.minimum(even, most)
    numbers = uniforms(progress, pages.slots, pages.generation)
    choice = choose(progress.exploration, shape, time, budget, numbers, progress.rounds, progress.horizon, even)
    # A page with a longest interval (MAX_INTERVAL) is visited often enough to be learned as it is.
    enough = (pages.min_rate > 0) & (choice.least_rate <= LEARNING_SHARE * even * (1 + 1e-9))
    return replace(choice, least_rate=np.where(enough, 0.0, choice.least_rate))


def is_committed(progress: Progress, pages: Pages) -> np.ndarray:
    """Tell of each page whether ``explore-then-commit`` goes by the posterior that it had when exploring ended."""
    if pages.committed is None or progress.exploration != "explore-then-commit" or progress.is_exploring or progress.commits:
        return np.zeros(len(pages.slots), bool)
    # A slot that was given to another page has another generation.
    kept: np.ndarray = (pages.committed["generation"] == pages.generation) & (pages.committed["shape"] > 0)
    return kept


def uniforms(progress: Progress, slots: np.ndarray, generation: np.ndarray) -> np.ndarray:
    """Return the number in (0, 1) of each page, which stays the same throughout a phase or draw."""
    if progress.exploration not in ("thompson", "epsilon"):
        return np.full(len(slots), 0.5)
    return page_uniforms(slots.astype(np.uint64) | (generation.astype(np.uint64) << np.uint64(32)), progress.number)


def host_shares(host: np.ndarray | None, host_max_rate: np.ndarray | float) -> np.ndarray | None:
    """Return what each page gets if every host shares out evenly what it allows, visits per second; None without limits."""
    if host is None or not len(host):
        return None
    counts = np.bincount(host)
    shares: np.ndarray = (np.broadcast_to(host_max_rate, counts.shape) / np.maximum(counts, 1))[host]
    return shares
