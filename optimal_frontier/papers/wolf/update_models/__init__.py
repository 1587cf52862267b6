"""How pages change, and how stale their copies are after so many crawls (Wolf et al. 2002, section 2.3)."""

from optimal_frontier.papers.wolf.update_models.exponential import Exponential
from optimal_frontier.papers.wolf.update_models.model import UpdateModel
from optimal_frontier.papers.wolf.update_models.pareto import Pareto
from optimal_frontier.papers.wolf.update_models.quasi_deterministic import QuasiDeterministic
from optimal_frontier.papers.wolf.update_models.renewal import Renewal
from optimal_frontier.papers.wolf.update_models.weibull import Weibull

__all__ = ["Exponential", "Pareto", "QuasiDeterministic", "Renewal", "UpdateModel", "Weibull"]
