"""The step of the filter where a page says when it last changed: more than one bit.

Notes
-----
A page changes at the times of a Poisson process of unknown rate x ~ Gamma(shape a, time b). It is visited at t, was visited before at s,
I = t - s, and says that its last change was at L: its age is A = t - L.

* Changed, 0 <= A <= I: one change at L, none in (L, t], nothing known of (s, L). Likelihood x e^(-Ax), so the posterior is
  Gamma(a + 1, b + A), exactly: no filtering is needed.
* Unchanged: L <= s is what the bit says already. Likelihood e^(-Ix), posterior Gamma(a, b + I).
* First visit: backwards in time the same process, so A is exponential with rate x as well: Gamma(a + 1, b + A). A page that was
  created at L and never changed since gets that change for its creation: what is believed of it is one change too many. So a first
  age may be given less than its full weight.

An age is told with a resolution (a second in HTTP). Cutting both times to whole seconds leaves its mean as it is and spreads it by 0.41 s,
which does no harm after intervals of `RESOLVED` times the resolution or more. After shorter ones the bit alone is used.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.estimation.filtering import update_one, update_posterior
from optimal_frontier.validation import bit_array, broadcast_shape, number_array, scalar

#: An age is used after an interval of at least so many times its resolution.
RESOLVED: Final = 100.0
#: Weight of a first age. In simulated crawls 0, 1/2 and 1 do equally well, and after 10 visits the error is up to 19% smaller with 1/2
#: than with 0; a page that was only ever created, not changed, is thought half a change too quick.
FIRST_WEIGHT: Final = 0.5
_LARGEST: Final = float(np.finfo(np.float64).max)


def update_with_age(
    shape: ArrayLike, time: ArrayLike, intervals: ArrayLike, ages: ArrayLike, changed: ArrayLike, *, resolution: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Posteriors of many pages after one visit to each, at which some of them say how long ago they changed.

    Parameters
    ----------
    shape : array_like, (n,)
        Gamma shapes before the visit, > 0.
    time : array_like, (n,)
        Gamma inverse scales before the visit, > 0, in the unit of `intervals` (seconds, say).
    intervals : array_like, (n,)
        Time since the last successful visit, > 0.
    ages : array_like, (n,)
        Time since the last change, >= 0, as the page has it; NaN where it says nothing.
    changed : array_like of bool, (n,)
        Whether the content had changed. A visit that gave no bit must be left out.
    resolution : float
        Of the ages, >= 0, in the unit of `intervals`.

    Returns
    -------
    shape, time : ndarray, (n,)
        New arrays; neither is ever below its value before. The inputs, which broadcast against each other, stay as they are.

    Raises
    ------
    InvalidProblemError
        If a shape, time or interval is not positive and finite, an age or the resolution negative or infinite, or a bit not boolean (the
        message names the argument and the first offending index), or the array shapes do not go together.

    Notes
    -----
    O(n), about 0.2 us a page. An age counts where the page changed, the age is no longer than the interval, and the interval at least
    `RESOLVED` times the resolution; elsewhere this is `update_posterior`. It believes what it is told: see `trust`.

    Examples
    --------
    >>> shape, time = update_with_age([1.0, 1.0, 1.0], 5.0, 3.0, [0.5, 40.0, float("nan")], [True, False, False])
    >>> shape.tolist(), time.tolist()
    ([2.0, 1.0, 1.0], [5.5, 8.0, 8.0])
    """
    a, b = number_array("shape", shape, positive=True), number_array("time", time, positive=True)
    interval, age = number_array("intervals", intervals, positive=True), number_array("ages", ages, unknown=True)
    bits = bit_array("changed", changed)
    step = scalar("resolution", resolution)
    broadcast_shape(shape=a, time=b, intervals=interval, ages=age, changed=bits)
    plain_shape, plain_time = update_posterior(a, b, interval, bits)
    used = bits & (age <= interval) & (interval >= RESOLVED * step)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(used, a + 1.0, plain_shape), np.where(used, np.minimum(b + age, _LARGEST), plain_time)


def update_with_first_age(
    shape: ArrayLike, time: ArrayLike, ages: ArrayLike, *, weight: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Posteriors of many pages after a first visit to each, at which some of them say how long ago they changed.

    Parameters
    ----------
    shape, time : array_like, (n,)
        Gamma prior before the visit, > 0.
    ages : array_like, (n,)
        Time since the last change, >= 0, as the page has it; NaN where it says nothing.
    weight : float
        Between 0 (none) and 1 (full): the power of the likelihood, as its first change may be its creation.

    Returns
    -------
    shape, time : ndarray, (n,)
        shape + weight and time + weight x age; new arrays. The inputs, which broadcast against each other, stay as they are.

    Raises
    ------
    InvalidProblemError
        If a shape or time is not positive and finite, an age or the weight negative or infinite (the message names the argument and the
        first offending index), or the array shapes do not go together.

    Examples
    --------
    >>> shape, time = update_with_first_age([1.0, 1.0], 5.0, [20.0, float("nan")], weight=0.5)
    >>> shape.tolist(), time.tolist()
    ([1.5, 1.0], [15.0, 5.0])
    """
    a, b, age = (
        number_array("shape", shape, positive=True),
        number_array("time", time, positive=True),
        number_array("ages", ages, unknown=True),
    )
    part = scalar("weight", weight)
    broadcast_shape(shape=a, time=b, ages=age)
    told = ~np.isnan(age)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(told, a + part, a), np.where(told, np.minimum(b + part * age, _LARGEST), b)


def update_one_with_age(shape: float, time: float, interval: float, age: float | None, changed: bool) -> tuple[float, float]:
    """`update_with_age` of one page in plain floats, for an age that is resolved; trusts its input. None: it says nothing."""
    if changed and age is not None and age <= interval:
        return shape + 1.0, min(time + age, _LARGEST)
    return update_one(shape, time, interval, changed)


def update_one_with_first_age(shape: float, time: float, age: float, weight: float) -> tuple[float, float]:
    """`update_with_first_age` of one page in plain floats; trusts its input."""
    return shape + weight, min(time + weight * age, _LARGEST)
