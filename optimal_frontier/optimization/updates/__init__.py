"""How pages change, and how stale their copies are after so many crawls (Wolf et al. 2002, section 2.3)."""

from optimal_frontier.optimization.updates.exponential import Exponential
from optimal_frontier.optimization.updates.model import UpdateModel
from optimal_frontier.optimization.updates.pareto import Pareto
from optimal_frontier.optimization.updates.quasi_deterministic import QuasiDeterministic
from optimal_frontier.optimization.updates.renewal import Renewal
from optimal_frontier.optimization.updates.weibull import Weibull

__all__ = ["Exponential", "Pareto", "QuasiDeterministic", "Renewal", "UpdateModel", "Weibull"]
