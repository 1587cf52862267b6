"""What a simulated crawl makes of the bits that it sees: learners, which keep a Gamma posterior of every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.estimation import forget, update_posterior, watch_habits
from optimal_frontier.estimation.bursts import are_bursty, follow_many
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
    ages : ndarray (m,)
        How long ago it last changed; NaN where that is not known.
    """

    pages: Ints
    since: Floats
    until: Floats
    changed: np.ndarray
    ages: Floats

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

    @property
    def shape(self) -> Floats:
        """Of the posteriors."""

    @property
    def time(self) -> Floats:
        """Of the posteriors."""

    def learn(self, seen: Seen) -> None:
        """Take in visits."""


class Filtering:
    """The Gamma posterior alone.

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
        self.shape[seen.pages], self.time[seen.pages] = update_posterior(*self.before(seen), seen.intervals, seen.changed)

    def before(self, seen: Seen) -> tuple[Floats, Floats]:
        """Return the posteriors of visited pages before the visit."""
        known = self.shape[seen.pages] > 0
        return np.where(known, self.shape[seen.pages], PRIOR_SHAPE), np.where(known, self.time[seen.pages], self.prior_time)


class Standby:
    """What stands by of every page in case that its habits change; not of pages found bursty, whose every burst would look like that.

    Parameters
    ----------
    pages : int
        How many there are.
    """

    def __init__(self, pages: int) -> None:
        self._watch = np.zeros((3, pages))
        self._bursts = np.zeros((4, pages))

    def look(self, seen: Seen, before: tuple[Floats, Floats], prior: tuple[ArrayLike, ArrayLike]) -> tuple[Ints, Floats, Floats]:
        """Take in visits; return the pages whose habits have changed, and the shape and time of what takes over.

        Parameters
        ----------
        seen : Seen
            The visits.
        before, prior : tuple
            Shape and time of posteriors before them, and of priors.
        """
        watch, alarm = watch_habits(tuple(self._watch[:, seen.pages]), *before, *prior, seen.intervals, seen.changed)
        self._watch[:, seen.pages] = watch
        chance = -np.expm1(-before[0] * np.log1p(seen.intervals / before[1]))
        bursts = self._bursts[:, seen.pages] = follow_many(self._bursts[:, seen.pages], chance, seen.changed)
        alarm &= ~are_bursty(bursts[1], bursts[2])
        return seen.pages[alarm], watch.shape[alarm], watch.time[alarm]


class Watching(Filtering):
    """The Gamma posterior, and one that takes over when habits change.

    Parameters
    ----------
    world : Realised
        Its size and budget give the prior.
    """

    def __init__(self, world: Realised) -> None:
        super().__init__(world)
        self._standby = Standby(len(world))

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        other, shape, time = self._standby.look(seen, self.before(seen), (PRIOR_SHAPE, self.prior_time))
        super().learn(seen)
        self.shape[other], self.time[other] = shape, time


class Forgetting(Filtering):
    """The Gamma posterior, which forgets at a half-life: HALF_LIFE of a live crawl, but for the change points that are watched there too.

    Parameters
    ----------
    world : Realised
        Its size and budget give the prior.
    half_life : float, optional
        In the world's unit of time; `HALF_LIFE_ROUNDS` rounds unless given.
    """

    def __init__(self, world: Realised, half_life: float | None = None) -> None:
        super().__init__(world)
        self.half_life = HALF_LIFE_ROUNDS * self.prior_time if half_life is None else half_life

    def before(self, seen: Seen) -> tuple[Floats, Floats]:
        """Return what is left of the posteriors before the visit."""
        return forget(*super().before(seen), seen.intervals, self.half_life, PRIOR_SHAPE, self.prior_time)


#: Half-life of `Forgetting` unless told: 70 days in world B, 35 in A and C.
HALF_LIFE_ROUNDS: Final = 7.0


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
    changed, ages = world.changed(page, since, at), world.ages(page, at)
    turn = np.arange(len(page)) - np.maximum.accumulate(np.where(again, 0, np.arange(len(page))))
    for number in range(int(turn.max(initial=-1)) + 1):
        now = turn == number
        learner.learn(Seen(page[now], since[now], at[now], changed[now], ages[now]))
