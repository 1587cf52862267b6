"""Forgetting: what was learned long ago counts less, at a half-life that is chosen."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.validation import broadcast_shape, number_array, scalar

#: Weight of the prior that posteriors fall back to: a page of which all is forgotten is learned more quickly than a new one.
RESIDUE: Final = 0.5


def forget(
    shape: ArrayLike, time: ArrayLike, elapsed: ArrayLike, half_life: float, prior_shape: ArrayLike, prior_time: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what is left of Gamma posteriors after some time.

    Parameters
    ----------
    shape, time : array_like (n,)
        Posteriors, > 0.
    elapsed : array_like (n,)
        Time since they were made, >= 0, in the unit of `time`.
    half_life : float
        Time in which half of what distinguishes them from what they fall back to is lost, > 0.
    prior_shape, prior_time : array_like (n,)
        The prior, > 0. They fall back to `RESIDUE` of it.

    Returns
    -------
    shape, time : ndarray (n,)
        New arrays.

    Raises
    ------
    InvalidProblemError
        An argument is out of range; the message names it and the first offending index.

    Notes
    -----
    The numbers of a Gamma posterior are its natural parameters up to constants, so this is exponential forgetting: every earlier
    bit's logarithmic likelihood is weighted with 2^(-age / `half_life`).

    Examples
    --------
    >>> shape, time = forget([9.0], [101.0], 30.0, half_life=30.0, prior_shape=1.0, prior_time=1.0)
    >>> shape.tolist(), time.tolist()
    ([4.75], [50.75])
    """
    a, b = number_array("shape", shape, positive=True), number_array("time", time, positive=True)
    a0, b0 = (
        RESIDUE * number_array("prior_shape", prior_shape, positive=True),
        RESIDUE * number_array("prior_time", prior_time, positive=True),
    )
    since = number_array("elapsed", elapsed)
    broadcast_shape(shape=a, time=b, elapsed=since, prior_shape=a0, prior_time=b0)
    kept = np.exp2(-since / scalar("half_life", half_life, positive=True))
    return a0 + kept * (a - a0), b0 + kept * (b - b0)


def forget_one(shape: float, time: float, elapsed: float, half_life: float, prior_shape: float, prior_time: float) -> tuple[float, float]:
    """`forget` of one page in plain floats; trusts its input."""
    kept = 2.0 ** (-elapsed / half_life)
    return RESIDUE * prior_shape + kept * (shape - RESIDUE * prior_shape), RESIDUE * prior_time + kept * (time - RESIDUE * prior_time)
