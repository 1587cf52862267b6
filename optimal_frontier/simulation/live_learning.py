"""The learner of a live crawl: siblings give the prior, and what stands by takes over when habits change."""

from __future__ import annotations

from optimal_frontier.simulation.learning import Seen, Standby
from optimal_frontier.simulation.sibling_learning import Siblings
from optimal_frontier.simulation.worlds import Realised


class Live(Siblings):
    """All that a live crawl makes of bits; ages (`LastModified`) are apart, as not every site tells them.

    Parameters
    ----------
    world : Realised
        Its size and budget give the default prior, its sites the groups.
    """

    def __init__(self, world: Realised) -> None:
        super().__init__(world)
        self._standby = Standby(len(world))

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        other, shape, time = self._standby.look(seen, self.before(seen.pages), self.prior(seen.pages))
        super().learn(seen)
        self._shape[other], self._time[other] = shape, time
