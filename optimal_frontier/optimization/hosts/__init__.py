"""Maximum rates of hosts inside the optimum: `limited` is the way in; `surcharges` serves problems with costs per page."""

from __future__ import annotations

from optimal_frontier.optimization.hosts.limited import solve_with_hosts

__all__ = ["solve_with_hosts"]
