"""How often should each page be visited? Importance, change rates and a budget in, revisit rates out.

Pure numpy. `solve_periodic` is what a crawl wants (evenly spaced visits; bounds, costs, host limits); `solve_poisson` and `solve_discrete`
are Azar's Algorithms 2 and 1; `BinnedDual` finds the price of a visit from mergeable sums; `OptimalSolver` has crawlfrontier's interface.
Update models (`Exponential`, `Weibull`, `Pareto`, `QuasiDeterministic`, `Renewal`) say how stale a copy is after so many crawls, and
`embarrassment_weights` how much that matters (Wolf et al.).
"""

from optimal_frontier.optimization.allocation import allocate_crawls
from optimal_frontier.optimization.binned import BinnedDual
from optimal_frontier.optimization.crawlfrontier import OptimalSolver, WCluster
from optimal_frontier.optimization.discrete import solve_discrete
from optimal_frontier.optimization.embarrassment import embarrassment_weights
from optimal_frontier.optimization.golden import golden_section_search
from optimal_frontier.optimization.objectives import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.optimization.periodic import periodic_rates_at, solve_periodic
from optimal_frontier.optimization.poisson import solve_poisson
from optimal_frontier.optimization.posterior import solve_posterior
from optimal_frontier.optimization.single import periodic_rate_at
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.updates import Exponential, Pareto, QuasiDeterministic, Renewal, UpdateModel, Weibull

__all__ = [
    "BinnedDual",
    "Exponential",
    "OptimalSolver",
    "Pareto",
    "QuasiDeterministic",
    "Renewal",
    "Solution",
    "UpdateModel",
    "WCluster",
    "Weibull",
    "allocate_crawls",
    "changes_periodic",
    "embarrassment_weights",
    "freshness_periodic",
    "freshness_poisson",
    "golden_section_search",
    "periodic_rate_at",
    "periodic_rates_at",
    "solve_discrete",
    "solve_periodic",
    "solve_poisson",
    "solve_posterior",
]
