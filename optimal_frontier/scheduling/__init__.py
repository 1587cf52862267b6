"""Revisit rates -> deadlines and orders of visits. Pure.

`edf_schedule`, `EdfCarousel` and `assign_slots` are in `papers`, and loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimal_frontier.reexports import from_papers
from optimal_frontier.scheduling.credit import backoff, carry_after_visit, credit_at, deadline, least_wait, memoryless_wait
from optimal_frontier.scheduling.planning import LOAD, PRIOR_SHAPE, RatePlan, believed_rates, plan_rates
from optimal_frontier.scheduling.price import CarriedPrice

if TYPE_CHECKING:
    from optimal_frontier.papers.azar.edf import EdfCarousel, edf_schedule
    from optimal_frontier.papers.wolf.slots import assign_slots
else:
    __getattr__, __dir__ = from_papers(__name__, {"EdfCarousel": "azar.edf", "edf_schedule": "azar.edf", "assign_slots": "wolf.slots"})

__all__ = [
    "LOAD",
    "PRIOR_SHAPE",
    "CarriedPrice",
    "EdfCarousel",
    "RatePlan",
    "assign_slots",
    "backoff",
    "believed_rates",
    "carry_after_visit",
    "credit_at",
    "deadline",
    "edf_schedule",
    "least_wait",
    "memoryless_wait",
    "plan_rates",
]
