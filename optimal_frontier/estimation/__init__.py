"""Change bits and intervals -> change rate, with its uncertainty.

Pure numpy: nothing here knows of Scrapy, Frontera or Redis.
"""

from __future__ import annotations

from optimal_frontier.estimation.filtering import update_posterior
from optimal_frontier.estimation.median import posterior_median
from optimal_frontier.estimation.posterior import RatePosterior
from optimal_frontier.estimation.quantile import posterior_quantile

__all__ = ["RatePosterior", "posterior_median", "posterior_quantile", "update_posterior"]
