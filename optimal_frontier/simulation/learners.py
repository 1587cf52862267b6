"""Learners of simulated crawls by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from optimal_frontier.simulation.last_modified_learning import LastModified, with_liars
from optimal_frontier.simulation.learning import Filtering, Forgetting, Learner, Watching
from optimal_frontier.simulation.live_learning import Live
from optimal_frontier.simulation.sibling_learning import Siblings
from optimal_frontier.simulation.worlds import Realised

#: Makers of learners by name.
LEARNERS: Final[Mapping[str, Callable[[Realised], Learner]]] = MappingProxyType(
    {
        "live": Live,
        "plain": Filtering,
        "watching": Watching,
        "forgetting": Forgetting,
        "siblings": Siblings,
        "last-modified": LastModified,
        "last-modified-liars": with_liars,
    }
)
