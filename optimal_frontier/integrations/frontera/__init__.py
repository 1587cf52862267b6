"""The face of the frontier towards Frontera."""

from __future__ import annotations

from optimal_frontier.integrations.frontera.backend import OptimalBackend
from optimal_frontier.integrations.frontera.content_hash import ContentHashMiddleware
from optimal_frontier.integrations.frontera.distributed import DistributedOptimalBackend

__all__ = ["ContentHashMiddleware", "DistributedOptimalBackend", "OptimalBackend"]
