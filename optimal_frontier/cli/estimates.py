"""From stored columns to what they stand for: change rates and the worth of a visit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.exploring import Pages, Progress, choice_of, is_committed
from optimal_frontier.scheduling import PRIOR_SHAPE
from optimal_frontier.scheduling.exploration import uniform_rate
from optimal_frontier.state.columns import COMMITTED, PAGE
from optimal_frontier.state.reading import PageReading


def prior_of(published: Mapping[str, str]) -> tuple[float, float] | None:
    """Return shape and time (s) of the prior that the last plan used; None before the first plan."""
    time = float(published.get("prior_time", 0))
    return (float(published.get("prior_shape", PRIOR_SHAPE)), time) if time > 0 else None


def change_rates(seen: np.ndarray, prior: tuple[float, float] | None, taught: np.ndarray) -> np.ndarray:
    """Return posterior medians, per second; nan for a page without a bit while there is no prior.

    Parameters
    ----------
    seen : ndarray, shape (n,)
        The column group of that name.
    prior : tuple of float or None
        Shape and time (s) for pages without a bit.
    taught : ndarray, shape (n,)
        What siblings taught of each page, rows of `state.columns.PRIOR`; it goes before `prior`, where its shape is not 0.
    """
    known = (seen["shape"] > 0) & (seen["time"] > 0) & np.isfinite(seen["shape"]) & np.isfinite(seen["time"])
    default_shape, default_time = prior or (1.0, 1.0)
    shape = np.where(taught["shape"] > 0, taught["shape"], default_shape)
    time = np.where(taught["shape"] > 0, taught["time"], default_time)
    rates = posterior_median(np.where(known, seen["shape"], shape), np.where(known, seen["time"], time))
    return rates if prior is not None else np.where(known, rates, np.nan)


class Chosen(NamedTuple):
    """What the last plan's exploration says of a page, from the estimate as it stands."""

    change_rate: float  #: to plan with, per second
    least_rate: float  #: that it asks for, visits per second
    uniform_rate: float  #: what every page would get if all got the same, visits per second
    progress: Progress  #: of the plan
    is_committed: bool  #: ``explore-then-commit``: the rate is one that was committed to

    @property
    def is_explored(self) -> bool:
        """Whether ``epsilon`` has picked the page."""
        return self.progress.exploration == "epsilon" and self.least_rate >= self.uniform_rate


def chosen_of(reading: PageReading, shape: float, time: float) -> Chosen | None:
    """Return what a plan with the last one's draw, phase or commitment makes of a page; None before the first plan.

    Parameters
    ----------
    reading : PageReading
        What is stored.
    shape, time : float
        Its posterior or the prior, time in seconds.
    """
    published = reading.published
    pages, budget = int(published.get("pages", 0)), float(published.get("revisit_budget", 0))
    if pages == 0 or budget <= 0 or "exploration" not in published:
        return None
    progress = Progress.of_plan(published)
    page = np.array([tuple(reading.page[name] for name in PAGE.names or ())], PAGE)
    committed = np.array([tuple(reading.committed[name] for name in COMMITTED.names or ())], COMMITTED)
    bounds = (page["min_rate"], page["max_rate"])
    one = Pages(np.array([reading.slot]), page["generation"], *bounds, np.array([shape]), np.array([time]), committed)
    choice = choice_of(progress, one, budget, of=pages)
    rates = (float(choice.change_rate[0]), float(choice.least_rate[0]), uniform_rate(1, budget / pages))
    return Chosen(*rates, progress, bool(is_committed(progress, one)[0]))


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
