"""From stored columns to what they stand for: change rates and the worth of a visit."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from optimal_frontier.estimation import posterior_median
from optimal_frontier.scheduling import PRIOR_SHAPE


def prior_of(published: Mapping[str, str]) -> tuple[float, float] | None:
    """Return shape and time (s) of the prior that the last plan used; None before the first plan."""
    time = float(published.get("prior_time", 0))
    return (float(published.get("prior_shape", PRIOR_SHAPE)), time) if time > 0 else None


def change_rates(seen: np.ndarray, prior: tuple[float, float] | None) -> np.ndarray:
    """Return posterior medians, per second; nan for a page without a bit while there is no prior.

    Parameters
    ----------
    seen : ndarray, shape (n,)
        The column group of that name.
    prior : tuple of float or None
        Shape and time (s) for pages without a bit.
    """
    known = (seen["shape"] > 0) & (seen["time"] > 0) & np.isfinite(seen["shape"]) & np.isfinite(seen["time"])
    shape, time = prior or (1.0, 1.0)
    rates = posterior_median(np.where(known, seen["shape"], shape), np.where(known, seen["time"], time))
    return rates if prior is not None else np.where(known, rates, np.nan)


def marginal_value(importance: float, change_rate: float, rate: float, objective: str, policy: str = "periodic") -> float:
    """Return what one more visit per second would add to the objective at ``rate`` visits per second, evenly spaced or memoryless.

    Notes
    -----
    With x = change_rate / rate: importance / change_rate x (1 - (1 + x) exp(-x)) for freshness, the derivative of Azar et al. 2018,
    eq. 6; importance x (1 - (1 + x) exp(-x)) for changes. At rate 0 it is largest: importance / change_rate, or importance.
    Memoryless visits (``poisson``): importance x change_rate / (rate + change_rate)^2, the derivative of Azar's eq. 5.

    Examples
    --------
    >>> marginal_value(2.0, 4.0, 0.0, "freshness")
    0.5
    >>> round(marginal_value(2.0, 4.0, 4.0, "freshness"), 4)
    0.1321
    """
    if change_rate <= 0:
        return 0.0
    value = importance / change_rate if objective == "freshness" else importance
    if rate <= 0:
        return value
    if policy == "poisson":
        return importance * (change_rate / (rate + change_rate)) / (rate + change_rate)
    x = min(change_rate / rate, 700.0)
    share = x * x * (0.5 - x / 3) if x < 1e-4 else -math.expm1(-x) - x * math.exp(-x)
    return value * share
