"""Change bits and intervals -> change rate, with its uncertainty.

Pure numpy: nothing here knows of Scrapy, Frontera or Redis. `moment_rate` and `moment_confidence` are in `papers`, and loaded when they are
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimal_frontier.estimation.change_points import Watch, watch_habits
from optimal_frontier.estimation.counting import bias_reduced_rate, naive_rate
from optimal_frontier.estimation.filtering import update_posterior
from optimal_frontier.estimation.last_modified import update_with_age, update_with_first_age
from optimal_frontier.estimation.likelihood import mle_rate
from optimal_frontier.estimation.posterior import RatePosterior
from optimal_frontier.estimation.quantile import posterior_median, posterior_quantile
from optimal_frontier.reexports import from_papers

if TYPE_CHECKING:
    from optimal_frontier.papers.upadhyay.moments import moment_confidence, moment_rate
else:
    __getattr__, __dir__ = from_papers(__name__, {"moment_confidence": "upadhyay.moments", "moment_rate": "upadhyay.moments"})

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
