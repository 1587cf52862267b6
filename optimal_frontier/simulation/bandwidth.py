"""Bandwidth that is not what plans count with: the times at which a simulated crawl can make a visit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.simulation.ragged import Floats


@dataclass(frozen=True)
class BandwidthChange:
    """The real budget differs from the planned one for a while, and no plan knows.

    Attributes
    ----------
    factor : float
        Real visits per visit planned with, above 0.
    since, until : float
        From when to when, in the world's unit of time.

    Raises
    ------
    InvalidProblemError
        A number is out of range.
    """

    factor: float
    since: float = 0.0
    until: float = math.inf

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < math.inf:
            raise InvalidProblemError(f"factor must be positive and finite, got {self.factor!r}")
        if not 0.0 <= self.since < self.until:
            raise InvalidProblemError(f"since must be at least 0 and below until, got {self.since!r} and {self.until!r}")

    def share(self, begin: float, end: float) -> float:
        """Return the share of a stretch of time in which the budget differs."""
        return max(0.0, min(end, self.until) - max(begin, self.since)) / (end - begin)


def slot_times(budget: float, horizon: float, change: BandwidthChange | None = None, phase: float = 0.0) -> Floats:
    """Return when visits can be made: from the phase on, at equal distances as long as the budget stays the same.

    Parameters
    ----------
    budget : float
        Visits per unit of time.
    horizon : float
        Length of the crawl.
    change : BandwidthChange, optional
        When the budget is another one.
    phase : float
        Share of 1/budget by which all visits come later, below 1.

    Returns
    -------
    ndarray (m,)

    Examples
    --------
    >>> slot_times(1.0, 6.0, BandwidthChange(0.5, since=2.0, until=6.0)).tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    if phase > 0.0:
        return slot_times(budget, horizon - phase / budget, change) + phase / budget
    if change is None:
        return np.arange(slots_until(horizon, budget)) / budget
    stretches = ((0.0, change.since, budget), (change.since, change.until, budget * change.factor), (change.until, horizon, budget))
    ends = ((begin, min(end, horizon), rate) for begin, end, rate in stretches if begin < min(end, horizon))
    return np.concatenate([begin + np.arange(slots_until(end - begin, rate)) / rate for begin, end, rate in ends])


def slots_until(time: float, budget: float) -> int:
    """Return how many slots begin before a time."""
    return math.ceil(time * budget * (1.0 - 1e-12))
