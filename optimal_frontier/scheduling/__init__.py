"""Revisit rates -> deadlines and orders of visits. Pure."""

from __future__ import annotations

from optimal_frontier.scheduling.credit import backoff, carry_after_visit, credit_at, deadline
from optimal_frontier.scheduling.planning import LOAD, PRIOR_SHAPE, RatePlan, plan_rates

__all__ = ["LOAD", "PRIOR_SHAPE", "RatePlan", "backoff", "carry_after_visit", "credit_at", "deadline", "plan_rates"]
