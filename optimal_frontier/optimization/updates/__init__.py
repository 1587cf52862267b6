"""How pages change, and how stale their copies are after so many crawls; the models that only Wolf et al. need are in `papers`."""

from optimal_frontier.optimization.updates.model import UpdateModel
from optimal_frontier.optimization.updates.weibull import Weibull

__all__ = ["UpdateModel", "Weibull"]
