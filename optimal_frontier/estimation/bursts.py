"""Pages whose changes come in bursts: a test of their bits against the Poisson model, and the heavy-tailed model that fits them.

Notes
-----
Under the Poisson model bits are independent, given what is believed of the rate: the *surprise* of a visit, its bit less the probability
p that the posterior before it gave a change, has mean 0 whatever came before. Where a change makes another one soon likelier (a hazard
that falls, as of a Weibull process with shape below 1 or a Pareto process), surprises of one sign follow each other. With r the surprise
of a visit and r' that of the one before, the score ``S = sum r' r`` is a martingale under the Poisson model, with variance
``V = sum p (1 - p) r'^2``, so ``z = S / sqrt(V)`` is about standard normal. `Bursts.is_bursty` says yes from z = `REJECTED` on, once V
shows enough bits. Three sums and the last surprise are all that is kept.

``S / sum p (1 - p)`` is the correlation rho of neighbouring bits. For a renewal process that has been going on for long, with
``E(t) = lambda int_0^t G`` the probability of a change within t, visits a time I apart that see a change with probability p have
``rho = ((1 - E(2 I)) - (1 - p)^2) / (p (1 - p))`` with ``E(I) = p``. It falls with the shape of a Weibull process, and is 0 at shape 1,
so p and rho say which shape and mean fit (`fit_weibull`).

What is learned beside that is the Poisson rate x that explains the bits: visits that see a change with probability p are
``-log(1 - p) / x`` apart, by the Poisson model. That is the interval which `fit_weibull` has in means, so it gives the mean in seconds
(`weibull_of_bits`): no interval needs to be kept. Pages are taken for bursty because their correlation came out large, so it is too large
on average; what is fitted is ``rho (1 - (z0 / z)^2)`` with z0 = `REJECTED` (`sure_correlation`): nothing at the moment of rejection, so
that no plan jumps then, and nearly all of it once z is large.

A page whose rate has jumped looks the same for a while: the test tells that it is not Poisson at one rate, not why.

References
----------
Wolf et al. 2002, eq. 3 and section 2.3.2.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.validation import broadcast_shape, number_array

Floats = NDArray[np.float64]

#: z from which on the Poisson model is rejected: of Poisson pages about one in 100 ever gets there in 1,000 visits.
REJECTED: Final = 3.2
#: Least variance of the score, about 50 visits that might as well show a change as not: before, z is not normal.
LEAST_VARIANCE: Final = 3.0
#: Least shape that is fitted; the most is 1.
LEAST_SHAPE: Final = 0.25
#: Share of visits that saw a change, at least, and one minus it at most: what is fitted to fewer says nothing.
_LEAST_CHANCE: Final = 0.01
#: Shapes of the table, and the ages, in mean times between changes, at which `E` is summed.
_SHAPES: Final = np.linspace(1.0, LEAST_SHAPE, 31)
_AGES: Final = np.geomspace(1e-12, 1e5, 6000)
_CHANCES: Final = np.linspace(0.005, 0.995, 199)


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
    def correlation(self) -> float:
        """Correlation of neighbouring bits, at most 1."""
        return min(self.score / self.spread, 1.0) if self.spread > 0 else 0.0

    @property
    def is_bursty(self) -> bool:
        """Whether the Poisson model is rejected in favour of bursts."""
        return bool(are_bursty(self.score, self.variance))


def are_bursty(score: ArrayLike, variance: ArrayLike) -> NDArray[np.bool_]:
    """Tell of each page whether the Poisson model is rejected, from S and V of `Bursts`; trusts its input."""
    s, v = np.asarray(score, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    return np.asarray((v >= LEAST_VARIANCE) & (s >= REJECTED * np.sqrt(v)))


def sure_correlation(score: ArrayLike, variance: ArrayLike, spread: ArrayLike) -> Floats:
    """Return the correlation that is fitted to pages with these sums of `Bursts`, all > 0: shrunk by its uncertainty; trusts its input.

    Examples
    --------
    >>> bursts = Bursts(0.0, 20.0, 9.0, 50.0)
    >>> round(bursts.z, 2), bursts.correlation, round(float(sure_correlation(20.0, 9.0, 50.0)), 3)
    (6.67, 0.4, 0.308)
    """
    s, v, p = (np.asarray(values, dtype=np.float64) for values in (score, variance, spread))
    return np.asarray(np.clip((s - REJECTED**2 * v / s) / p, 0.0, 1.0))


def follow_bursts(bursts: Bursts, probability: float, changed: bool) -> Bursts:
    """Take in one bit; ``probability`` is what the posterior before it gave a change.

    Examples
    --------
    >>> bursts = Bursts()
    >>> for bit in 30 * (4 * [True] + 4 * [False]):
    ...     bursts = follow_bursts(bursts, 0.5, bit)
    >>> round(bursts.z, 2), round(bursts.correlation, 2), bursts.is_bursty
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


def follow_many(bursts: ArrayLike, probability: ArrayLike, changed: ArrayLike) -> Floats:
    """`follow_bursts` of many pages, shape (4, n), one bit each; trusts its input."""
    last, score, variance, total = np.asarray(bursts, dtype=np.float64)
    chance = np.asarray(probability, dtype=np.float64)
    surprise, spread = np.asarray(changed, dtype=np.float64) - chance, chance * (1.0 - chance)
    return np.array([surprise, score + last * surprise, variance + spread * last * last, total + np.where(last != 0.0, spread, 0.0)])


def fit_weibull(chance: ArrayLike, correlation: ArrayLike) -> tuple[Floats, Floats]:
    """Return the Weibull models that give neighbouring bits this correlation.

    Parameters
    ----------
    chance : array_like (n,)
        Probability that a visit sees a change, > 0; beyond 0.005 and 0.995 these are taken.
    correlation : array_like (n,)
        Of the bits of visits that are evenly spaced, >= 0.

    Returns
    -------
    shape : ndarray (n,)
        In [`LEAST_SHAPE`, 1].
    interval : ndarray (n,)
        The interval between visits, in mean times between changes.

    Raises
    ------
    InvalidProblemError
        An argument is out of range; the message names it and the first offending index.

    Notes
    -----
    By a table of 31 shapes and 199 probabilities, made once in 20 ms, linear in between: shapes are right to 0.005.

    Examples
    --------
    >>> shape, interval = fit_weibull([0.5, 0.5], [0.0, 0.3])
    >>> shape.round(2).tolist(), interval.round(2).tolist()
    ([1.0, 0.44], [0.69, 1.76])
    """
    p, rho = number_array("chance", chance, positive=True), number_array("correlation", correlation)
    broadcast_shape(chance=p, correlation=rho)
    correlations, intervals = _table()
    step = _CHANCES[1] - _CHANCES[0]
    place = (np.clip(p, _CHANCES[0], _CHANCES[-1]) - _CHANCES[0]) / step
    left = np.minimum(place.astype(np.int64), len(_CHANCES) - 2)
    part = place - left
    by_shape = correlations[:, left] * (1.0 - part) + correlations[:, left + 1] * part
    lengths = intervals[:, left] * (1.0 - part) + intervals[:, left + 1] * part
    row = np.clip((by_shape <= rho).sum(axis=0) - 1, 0, len(_SHAPES) - 2)
    column = np.arange(len(row))
    low, high = by_shape[row, column], by_shape[row + 1, column]
    within = np.clip((rho - low) / np.maximum(high - low, np.finfo(np.float64).tiny), 0.0, 1.0)
    shape = _SHAPES[row] * (1.0 - within) + _SHAPES[row + 1] * within
    return shape, lengths[row, column] * (1.0 - within) + lengths[row + 1, column] * within


def weibull_of_bits(changes: ArrayLike, observations: ArrayLike, correlation: ArrayLike, change_rate: ArrayLike) -> tuple[Floats, Floats]:
    """Return the Weibull models that explain what is kept of pages.

    Parameters
    ----------
    changes, observations : array_like (n,)
        Bits that said "changed", and all bits, > 0.
    correlation : array_like (n,)
        Of neighbouring bits, >= 0; see `sure_correlation`.
    change_rate : array_like (n,)
        The Poisson rate that explains the bits, such as the posterior median, > 0, changes per unit of time.

    Returns
    -------
    shape : ndarray (n,)
        In [`LEAST_SHAPE`, 1].
    mean : ndarray (n,)
        Mean time between changes, in the unit of 1 / `change_rate`.

    Raises
    ------
    InvalidProblemError
        An argument is out of range; the message names it and the first offending index.

    Examples
    --------
    A page that had changed at half of its visits, which were ln 2 / 0.1 = 6.9 apart, with bits that follow each other:

    >>> shape, mean = weibull_of_bits([50], [100], [0.3], [0.1])
    >>> shape.round(2).tolist(), mean.round(2).tolist()
    ([0.44], [3.93])
    """
    seen, bits = number_array("changes", changes), number_array("observations", observations, positive=True)
    rate = number_array("change_rate", change_rate, positive=True)
    broadcast_shape(changes=seen, observations=bits, change_rate=rate)
    chance = np.clip(seen / bits, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    shape, interval = fit_weibull(chance, correlation)
    return shape, -np.log1p(-chance) / (rate * interval)


@cache
def _table() -> tuple[Floats, Floats]:
    """Correlations, which rise, and intervals, each (shapes, chances)."""
    rows = [_row(float(shape)) for shape in _SHAPES]
    return np.maximum.accumulate([row[0] for row in rows], axis=0), np.array([row[1] for row in rows])


def _row(shape: float) -> tuple[Floats, Floats]:
    tail = np.exp(-((_AGES * math.gamma(1.0 + 1.0 / shape)) ** shape))
    steps = np.diff(np.log(_AGES)) * (tail[1:] * _AGES[1:] + tail[:-1] * _AGES[:-1]) / 2
    changed = np.append(_AGES[0], _AGES[0] + np.cumsum(steps))
    interval = np.interp(_CHANCES, changed, _AGES)
    twice = np.interp(2.0 * interval, _AGES, changed)
    return ((1.0 - twice) - (1.0 - _CHANCES) ** 2) / (_CHANCES * (1.0 - _CHANCES)), interval
