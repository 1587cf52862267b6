"""Gates: a model of the clock is used where it has predicted bits better than its rival, and only there.

Notes
-----
For each host the logarithm D of the likelihood ratio of the two models is summed over visits. It is kept within `LEAST` and `MOST`. The
gate opens above `OPENS` and closes below `CLOSES`. If the rival is right, exp(D) without the bounds is a martingale of mean 1, so it ever
passes 10,000 with a chance of 1 in 10,000 (Ville's inequality). The lower bound lets a model that was wrong for long be tried again. The
upper one is little above the threshold: what a model owes to a prior that was wrong at first is no evidence for long, and a model that goes
on being right has it again at once.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: D is kept within these bounds ...
LEAST: Final = -7.0
MOST: Final = 10.6
#: ... the gate opens above the one, the logarithm of 10,000, and closes below the other.
OPENS: Final = 9.2
CLOSES: Final = 7.1
#: Least probability of a bit: one visit says no more than its logarithm.
_LEAST_CHANCE: Final = 1e-9
_MOST_HAZARD: Final = -math.log(_LEAST_CHANCE)


class LikelihoodGates:
    """One gate for each host; all are closed at first.

    Attributes
    ----------
    evidence : ndarray (hosts,)
        D, the logarithm of the likelihood ratio.
    is_open : ndarray of bool (hosts,)
        Which gates are open.
    """

    def __init__(self) -> None:
        self.evidence: Floats = np.zeros(0)
        self.is_open: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def grow(self, hosts: int) -> None:
        """Make room for so many hosts; those that are there stay."""
        more = hosts - len(self.evidence)
        if more > 0:
            self.evidence = np.append(self.evidence, np.zeros(more))
            self.is_open = np.append(self.is_open, np.zeros(more, np.bool_))

    def count(self, host: Ints, gain: Floats) -> None:
        """Take in by how much the model predicted visits better than its rival.

        Parameters
        ----------
        host : ndarray of int (n,)
            Host of each visit.
        gain : ndarray (n,)
            Difference of the log-likelihoods of its bit. The sum of a batch is bounded as a whole.
        """
        gained = np.bincount(host, weights=gain, minlength=len(self.evidence))
        self.evidence = np.minimum(np.maximum(self.evidence + gained, LEAST), MOST)
        self.is_open = (self.evidence > OPENS) | (self.is_open & (self.evidence >= CLOSES))

    def set(self, host: int, evidence: float) -> None:
        """Put evidence in the place of that of a host. Between the bounds the gate is closed."""
        self.evidence[host] = min(max(evidence, LEAST), MOST)
        self.is_open[host] = self.evidence[host] > OPENS


def gains(shape: Floats, time: Floats, model: Floats, rival: Floats, changed: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return by how much better one clock predicted bits than another, and the chance of a change that it gave.

    Parameters
    ----------
    shape, time : ndarray (n,)
        Gamma posteriors of the change rates before the visits.
    model, rival : ndarray (n,)
        Time between the visits on the two clocks, >= 0.
    changed : ndarray of bool (n,)
        The bits.

    Returns
    -------
    gain, chance : ndarray (n,)
        Difference of the log-likelihoods; the probability of a change by the clock of the model.

    Examples
    --------
    >>> one = np.ones(1)
    >>> gain, chance = gains(one, one, 3.0 * one, one, np.array([True]))
    >>> float(gain[0].round(3)), float(chance[0])
    (0.405, 0.75)
    """
    with_model, without = shape * np.log1p(model / time), shape * np.log1p(rival / time)
    chance, other = -np.expm1(-with_model), -np.expm1(-without)
    gain = np.where(
        changed,
        np.log(np.maximum(chance, _LEAST_CHANCE) / np.maximum(other, _LEAST_CHANCE)),
        np.minimum(without, _MOST_HAZARD) - np.minimum(with_model, _MOST_HAZARD),
    )
    return gain, chance
