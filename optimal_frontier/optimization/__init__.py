"""How often should each page be visited? Importance, change rates and a budget in, revisit rates out.

Pure numpy. `solve_periodic` is what a crawl wants (evenly spaced visits; bounds, costs, host limits); `solve_poisson` is Azar's Algorithm
2; `solve_posterior` takes whole posteriors instead of change rates; `solve_signals` is for pages whose changes are announced, not always
and not always truly. The live crawl does not need the other methods of the sources. Their code is in `papers`, and loaded when it is asked
for: `solve_discrete` (Azar's Algorithm 1), `OptimalSolver` (crawlfrontier's interface), and of Wolf et al. the update models
(`Exponential`, `Weibull`, `Pareto`, `QuasiDeterministic`, `Renewal`), which say how stale a copy is after so many crawls,
`allocate_crawls`, and `embarrassment_weights`, which say how much that matters.
"""

from typing import TYPE_CHECKING

from optimal_frontier.optimization.objectives import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.optimization.periodic import periodic_rates_at, solve_periodic
from optimal_frontier.optimization.poisson import solve_poisson
from optimal_frontier.optimization.posterior_solver import solve_posterior
from optimal_frontier.optimization.signal_solver import SignalSolution, solve_signals
from optimal_frontier.optimization.single import periodic_rate_at
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.reexports import from_papers

if TYPE_CHECKING:
    from optimal_frontier.papers.azar.discrete import solve_discrete
    from optimal_frontier.papers.crawlfrontier.golden_section import golden_section_search
    from optimal_frontier.papers.crawlfrontier.optimal_solver import OptimalSolver, WCluster
    from optimal_frontier.papers.wolf.allocation import allocate_crawls
    from optimal_frontier.papers.wolf.embarrassment import embarrassment_weights
    from optimal_frontier.papers.wolf.update_models import Exponential, Pareto, QuasiDeterministic, Renewal, UpdateModel, Weibull
else:
    __getattr__, __dir__ = from_papers(
        __name__,
        {
            "solve_discrete": "azar.discrete",
            "golden_section_search": "crawlfrontier.golden_section",
            "OptimalSolver": "crawlfrontier.optimal_solver",
            "WCluster": "crawlfrontier.optimal_solver",
            "allocate_crawls": "wolf.allocation",
            "embarrassment_weights": "wolf.embarrassment",
            "Exponential": "wolf.update_models",
            "Pareto": "wolf.update_models",
            "QuasiDeterministic": "wolf.update_models",
            "Renewal": "wolf.update_models",
            "UpdateModel": "wolf.update_models",
            "Weibull": "wolf.update_models",
        },
    )

__all__ = [
    "Exponential",
    "OptimalSolver",
    "Pareto",
    "QuasiDeterministic",
    "Renewal",
    "SignalSolution",
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
    "solve_signals",
]
