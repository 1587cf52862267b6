"""How often should each page be visited? Importance, change rates and a budget in, revisit rates out."""

from optimal_frontier.optimization.objectives import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.optimization.periodic import periodic_rates_at, solve_periodic
from optimal_frontier.optimization.solution import Solution

__all__ = [
    "Solution",
    "changes_periodic",
    "freshness_periodic",
    "freshness_poisson",
    "periodic_rates_at",
    "solve_periodic",
]
