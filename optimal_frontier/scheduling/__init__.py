"""Price and belief -> numbers of a deadline, and who goes first. Pure.

`edf_schedule`, `EdfCarousel` and `assign_slots` are in `papers`, and loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimal_frontier.reexports import from_papers
from optimal_frontier.scheduling.planning import LOAD, PRIOR_SHAPE

if TYPE_CHECKING:
    from optimal_frontier.papers.azar.edf import EdfCarousel, edf_schedule
    from optimal_frontier.papers.wolf.slots import assign_slots
else:
    __getattr__, __dir__ = from_papers(__name__, {"EdfCarousel": "azar.edf", "edf_schedule": "azar.edf", "assign_slots": "wolf.slots"})

__all__ = [
    "LOAD",
    "PRIOR_SHAPE",
    "EdfCarousel",
    "assign_slots",
    "edf_schedule",
]
