"""A learner whose pages without a bit start from what their siblings have taught, as in a live crawl."""

from __future__ import annotations

import numpy as np

from optimal_frontier.estimation import update_posterior
from optimal_frontier.estimation.sibling_priors import SiblingPriors, sibling_priors
from optimal_frontier.simulation.learning import Seen
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised


class Siblings:
    """The Gamma posterior, with priors by host and section of the world.

    Parameters
    ----------
    world : Realised
        Its size and budget give the default prior, its sites the groups.
    """

    def __init__(self, world: Realised) -> None:
        n = len(world)
        self._host, self._pattern = world.sites.host, world.sites.pattern + 1  # 0 stands for none
        self._shape, self._time = np.zeros(n), np.zeros(n)
        self._default_time = n / world.budget
        self._is_old = False
        self.priors: SiblingPriors = self._fitted()

    @property
    def shape(self) -> Floats:
        """Gamma shapes that plans are made from. A plan fits the priors; bits until the next one start from these, as in a live crawl."""
        if self._is_old:
            self.priors, self._is_old = self._fitted(), False
        return np.where(self._shape > 0, self._shape, self.priors.shape[self._pattern])

    @property
    def time(self) -> Floats:
        """Times that go with the shapes."""
        return np.where(self._shape > 0, self._time, self.priors.time[self._pattern])

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        self._shape[seen.pages], self._time[seen.pages] = update_posterior(*self.before(seen.pages), seen.intervals, seen.changed)
        self._is_old = True

    def prior(self, pages: Ints) -> tuple[Floats, Floats]:
        """Return the priors of pages by the last plan."""
        pattern = self._pattern[pages]
        return self.priors.shape[pattern], self.priors.time[pattern]

    def before(self, pages: Ints) -> tuple[Floats, Floats]:
        """Return the posteriors of pages before a visit, the prior where there is no bit."""
        known, (shape, time) = self._shape[pages] > 0, self.prior(pages)
        return np.where(known, self._shape[pages], shape), np.where(known, self._time[pages], time)

    def _fitted(self) -> SiblingPriors:
        return sibling_priors(self._shape, self._time, self._host, self._pattern, self._default_time)
