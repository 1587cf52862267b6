"""Revisit rates -> deadlines and orders of visits. Pure."""

from __future__ import annotations

from optimal_frontier.scheduling.credit import backoff, carry_after_visit, credit_at, deadline, least_wait, memoryless_wait
from optimal_frontier.scheduling.edf import EdfCarousel, edf_schedule
from optimal_frontier.scheduling.planning import LOAD, PRIOR_SHAPE, RatePlan, believed_rates, plan_rates
from optimal_frontier.scheduling.price import CarriedPrice
from optimal_frontier.scheduling.slots import assign_slots

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
