"""Pages whose changes come in bursts: a test of their bits against the Poisson model.

Notes
-----
Under the Poisson model bits are independent, given what is believed of the rate: the *surprise* of a visit, its bit less the probability
p that the posterior before it gave a change, has mean 0 whatever came before. Where a change makes another one soon likelier (a hazard
that falls, as of a Weibull process with shape below 1 or a Pareto process), surprises of one sign follow each other. With r the surprise
of a visit and r' that of the one before, the score ``S = sum r' r`` is a martingale under the Poisson model, with variance
``V = sum p (1 - p) r'^2``, so ``z = S / sqrt(V)`` is about standard normal. `Bursts.is_bursty` says yes from z = `REJECTED` on, once V
shows enough bits. Three sums and the last surprise are all that is kept.

``S / sum p (1 - p)`` is the correlation of neighbouring bits.

A page whose rate has jumped looks the same for a while: the test tells that it is not Poisson at one rate, not why.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: z from which on the Poisson model is rejected: of Poisson pages about one in 100 ever gets there in 1,000 visits.
REJECTED: Final = 3.2
#: Least variance of the score, about 50 visits that might as well show a change as not: before, z is not normal.
LEAST_VARIANCE: Final = 3.0


class Bursts(NamedTuple):
    """What is kept of a page.

    Attributes
    ----------
    last : float
        Surprise of the last visit.
    score, variance, spread : float
        Sums S, V, and of p (1 - p) over visits that had one before.
    """

    last: float = 0.0
    score: float = 0.0
    variance: float = 0.0
    spread: float = 0.0

    @property
    def z(self) -> float:
        """The statistic of the test; 0 before the second bit."""
        return self.score / math.sqrt(self.variance) if self.variance > 0 else 0.0

    @property
    def is_bursty(self) -> bool:
        """Whether the Poisson model is rejected in favour of bursts."""
        return bool(are_bursty(self.score, self.variance))


def are_bursty(score: ArrayLike, variance: ArrayLike) -> NDArray[np.bool_]:
    """Tell of each page whether the Poisson model is rejected, from S and V of `Bursts`; trusts its input."""
    s, v = np.asarray(score, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    return np.asarray((v >= LEAST_VARIANCE) & (s >= REJECTED * np.sqrt(v)))


def follow_bursts(bursts: Bursts, probability: float, changed: bool) -> Bursts:
    """Take in one bit; ``probability`` is what the posterior before it gave a change.

    Examples
    --------
    >>> bursts = Bursts()
    >>> for bit in 30 * (4 * [True] + 4 * [False]):
    ...     bursts = follow_bursts(bursts, 0.5, bit)
    >>> round(bursts.z, 2), round(bursts.score / bursts.spread, 2), bursts.is_bursty
    (7.83, 0.51, True)
    """
    surprise, spread = changed - probability, probability * (1.0 - probability)
    if bursts.last == 0.0:
        return bursts._replace(last=surprise)
    return Bursts(
        surprise,
        bursts.score + bursts.last * surprise,
        bursts.variance + spread * bursts.last * bursts.last,
        bursts.spread + spread,
    )
