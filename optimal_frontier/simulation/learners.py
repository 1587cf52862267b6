"""Learners of simulated crawls by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from optimal_frontier.simulation.last_modified_learning import LastModified, with_liars
from optimal_frontier.simulation.learning import Bits, Learner
from optimal_frontier.simulation.worlds import Realised

#: Makers of learners by name. ``live`` is what a live crawl makes of bits.
LEARNERS: Final[Mapping[str, Callable[[Realised], Bits | Learner]]] = MappingProxyType(
    {
        "live": lambda world: Bits(watches=True, has_siblings=True),
        "plain": lambda world: Bits(),
        "watching": lambda world: Bits(watches=True),
        "siblings": lambda world: Bits(has_siblings=True),
        "last-modified": LastModified,
        "last-modified-liars": with_liars,
    }
)
