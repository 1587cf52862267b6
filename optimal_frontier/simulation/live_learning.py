"""The learner of a live crawl: siblings give the prior, and what stands by takes over when habits change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimal_frontier.estimation import watch_habits
from optimal_frontier.simulation.sibling_learning import Siblings
from optimal_frontier.simulation.worlds import Realised

if TYPE_CHECKING:
    from optimal_frontier.simulation.learning import Seen  # which names this learner


class Live(Siblings):
    """All that a live crawl makes of bits; ages (`LastModified`) are apart, as not every site tells them.

    Parameters
    ----------
    world : Realised
        Its size and budget give the default prior, its sites the groups.
    """

    def __init__(self, world: Realised) -> None:
        super().__init__(world)
        self._watch = np.zeros((3, len(world)))

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        pages, prior = seen.pages, self.prior(seen.pages)
        watch, alarm = watch_habits(tuple(self._watch[:, pages]), *self.before(pages), *prior, seen.intervals, seen.changed)
        super().learn(seen)
        self._watch[:, pages] = watch
        self._shape[pages[alarm]], self._time[pages[alarm]] = watch.shape[alarm], watch.time[alarm]
