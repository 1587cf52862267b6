"""Change bits and intervals -> change rate, with its uncertainty.

Pure numpy: nothing here knows of Scrapy, Frontera or Redis.
"""

from __future__ import annotations

from optimal_frontier.estimation.change_points import Watch, watch_habits
from optimal_frontier.estimation.counting import bias_reduced_rate, naive_rate
from optimal_frontier.estimation.filtering import update_posterior
from optimal_frontier.estimation.last_modified import update_with_age, update_with_first_age
from optimal_frontier.estimation.likelihood import mle_rate
from optimal_frontier.estimation.median import posterior_median
from optimal_frontier.estimation.moments import moment_confidence, moment_rate
from optimal_frontier.estimation.posterior import RatePosterior
from optimal_frontier.estimation.quantile import posterior_quantile

__all__ = [
    "RatePosterior",
    "Watch",
    "bias_reduced_rate",
    "mle_rate",
    "moment_confidence",
    "moment_rate",
    "naive_rate",
    "posterior_median",
    "posterior_quantile",
    "update_posterior",
    "update_with_age",
    "update_with_first_age",
    "watch_habits",
]
