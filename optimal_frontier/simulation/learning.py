"""What a simulated crawl makes of the bits that it sees: learners, which keep a Gamma posterior of every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from optimal_frontier.estimation import update_posterior
from optimal_frontier.scheduling.planning import PRIOR_SHAPE
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised


@dataclass(frozen=True)
class Seen:
    """One visit to each of some pages.

    Attributes
    ----------
    pages : ndarray of int (m,)
        Which; each at most once.
    since, until : ndarray (m,)
        When each was visited before, and now.
    changed : ndarray of bool (m,)
        Whether it had changed.
    """

    pages: Ints
    since: Floats
    until: Floats
    changed: np.ndarray

    @property
    def intervals(self) -> Floats:
        """Time between the two visits."""
        return self.until - self.since


class Learner(Protocol):
    """What a simulated crawl asks of who learns.

    Attributes
    ----------
    shape, time : ndarray (n,)
        Gamma posteriors that plans are made from; shape 0 where a page has no bit yet and the prior of a live crawl is meant.
    """

    shape: Floats
    time: Floats

    def learn(self, seen: Seen) -> None:
        """Take in visits."""


class Filtering:
    """The Gamma posterior alone, as in a live crawl without anything more.

    Parameters
    ----------
    world : Realised
        Its size and budget give the prior.
    """

    def __init__(self, world: Realised) -> None:
        self.shape, self.time = np.zeros(len(world)), np.zeros(len(world))
        self.prior_time = len(world) / world.budget

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        known = self.shape[seen.pages] > 0
        a, b = np.where(known, self.shape[seen.pages], PRIOR_SHAPE), np.where(known, self.time[seen.pages], self.prior_time)
        self.shape[seen.pages], self.time[seen.pages] = update_posterior(a, b, seen.intervals, seen.changed)


#: Makers of learners by name.
LEARNERS: Final[Mapping[str, Callable[[Realised], Learner]]] = MappingProxyType({"plain": Filtering})


def learn_in_turn(world: Realised, learner: Learner, pages: Ints, times: Floats, last: Floats) -> None:
    """Let a learner take in visits, of each page one after the other.

    Parameters
    ----------
    world : Realised
        Whose changes the visits see.
    learner : Learner
        Who learns.
    pages, times : ndarray (m,)
        Visits in the order in which they were made.
    last : ndarray (n,)
        When each page was visited before them.
    """
    order = np.argsort(pages, kind="stable")
    page, at = pages[order], times[order]
    again = np.zeros(len(page), bool)
    again[1:] = page[1:] == page[:-1]
    since = np.where(again, np.concatenate([[0.0], at[:-1]]), last[page])
    changed = world.changed(page, since, at)
    turn = np.arange(len(page)) - np.maximum.accumulate(np.where(again, 0, np.arange(len(page))))
    for number in range(int(turn.max(initial=-1)) + 1):
        now = turn == number
        learner.learn(Seen(page[now], since[now], at[now], changed[now]))
