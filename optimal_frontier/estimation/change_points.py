"""Pages whose habits change: a second, forgetful posterior stands by, and takes over when it foretells the bits clearly better.

Notes
-----
A page's posterior keeps every bit it ever had, which is best as long as the change rate stays what it is. Beside it goes a *recent* one
that forgets: before each visit its two numbers move by 1 - `MEMORY` of the way towards `RESIDUE` of the page's prior, so it knows about the
last 1/(1 - `MEMORY`) visits. Both foretell the next bit: under Gamma(a, b) a page stays unchanged over an interval I with probability
(b/(b+I))^a. The sum of log(recent's probability / the other's), never below 0, is the *evidence* that habits have changed (Page's CUSUM
with predictive likelihoods). When it passes a threshold, the recent posterior becomes the page's own, and the evidence is 0 again.

Started at 0, evidence ever passes h with probability at most exp(-h) while the page keeps its habits (Wald); as it starts again whenever it
is at 0, there are false alarms. Each throws away what the page's posterior knows, its shape in changes. So the threshold is `ALARM` plus
log(shape/`KNOWN`) where that is above 0: the more is lost, the more seldom, and a page of a thousand visits is not learned anew as often
as ten of a hundred are.

References
----------
E. S. Page, "Continuous inspection schemes", Biometrika 41 (1954), 100-115.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.estimation.filtering import update_one, update_posterior
from optimal_frontier.validation import bit_array, broadcast_shape, number_array

#: Weight of the prior that the recent posterior falls back to: a page of which all is forgotten is learned more quickly than a new one.
RESIDUE: Final = 0.5
#: What the recent posterior keeps from one visit to the next.
MEMORY: Final = 0.9
#: Evidence at which the recent posterior takes over from one that knows no more than so many changes.
ALARM: Final = 4.0
KNOWN: Final = 20.0
#: Smallest probability whose logarithm is taken.
_LEAST: Final = 1e-300
_LOG_LEAST: Final = math.log(_LEAST)

Floats = NDArray[np.float64]


class Watch(NamedTuple):
    """What stands by of each page.

    Attributes
    ----------
    shape, time : ndarray (n,)
        Recent posterior; shape 0 where there is none yet.
    evidence : ndarray (n,)
        Of changed habits, 0 to `alarm_of` the posterior's shape.
    """

    shape: Floats
    time: Floats
    evidence: Floats


def alarm_of(shape: float) -> float:
    """Return the evidence at which the recent posterior takes over from one of this shape."""
    return ALARM + math.log(shape / KNOWN) if shape > KNOWN else ALARM


def watch_habits(
    watch: tuple[ArrayLike, ArrayLike, ArrayLike],
    shape: ArrayLike,
    time: ArrayLike,
    prior_shape: ArrayLike,
    prior_time: ArrayLike,
    intervals: ArrayLike,
    changed: ArrayLike,
) -> tuple[Watch, NDArray[np.bool_]]:
    """Take in one visit to each of many pages.

    Parameters
    ----------
    watch : tuple of three array_like (n,)
        What stands by: shape, time and evidence as in `Watch`; three zeros at the beginning.
    shape, time : array_like (n,)
        Posteriors of the pages before the visit, > 0.
    prior_shape, prior_time : array_like (n,)
        Their priors, > 0.
    intervals : array_like (n,)
        Time since the last successful visit, > 0, in the unit of `time`.
    changed : array_like of bool (n,)
        Whether the page had changed. A visit that gave no bit must be left out.

    Returns
    -------
    watch : Watch
        After the visit.
    alarm : ndarray of bool (n,)
        Where habits have changed: shape and time of `watch` are the posterior of the page from now on.

    Raises
    ------
    InvalidProblemError
        An argument is out of range; the message names it and the first offending index.

    Notes
    -----
    O(n), about 0.3 us a page. `watch_one` is the same for one page in plain floats.

    Examples
    --------
    A page that had not changed in 40 visits begins to change all the time:

    >>> posterior, watch, visits = (1.0, 41.0), (0.0, 0.0, 0.0), 0
    >>> alarm = False
    >>> while not alarm:
    ...     watch, alarm = watch_habits(watch, *posterior, 1.0, 1.0, 1.0, True)
    ...     posterior, visits = update_posterior(*posterior, 1.0, True), visits + 1
    >>> visits
    2
    """
    recent_shape, recent_time, evidence = (number_array(f"watch.{name}", values) for values, name in zip(watch, Watch._fields, strict=True))
    a, b = number_array("shape", shape, positive=True), number_array("time", time, positive=True)
    a0, b0 = (
        RESIDUE * number_array("prior_shape", prior_shape, positive=True),
        RESIDUE * number_array("prior_time", prior_time, positive=True),
    )
    interval, bits = number_array("intervals", intervals, positive=True), bit_array("changed", changed)
    broadcast_shape(shape=a, time=b, prior_shape=a0, prior_time=b0, intervals=interval, changed=bits, watch=recent_shape)
    known = recent_shape > 0
    recent_shape = np.where(known, a0 + MEMORY * (recent_shape - a0), a0)
    recent_time = np.where(known, b0 + MEMORY * (recent_time - b0), b0)
    more = _log_probability(recent_shape, recent_time, interval, bits) - _log_probability(a, b, interval, bits)
    evidence = np.maximum(evidence + more, 0.0)
    alarm = evidence > ALARM + np.log(np.maximum(a / KNOWN, 1.0))
    return Watch(*update_posterior(recent_shape, recent_time, interval, bits), np.where(alarm, 0.0, evidence)), alarm


def watch_one(
    watch: tuple[float, float, float],
    shape: float,
    time: float,
    prior_shape: float,
    prior_time: float,
    interval: float,
    changed: bool,
) -> tuple[tuple[float, float, float], bool]:
    """`watch_habits` of one page in plain floats, about 3 us; trusts its input."""
    recent_shape, recent_time, evidence = watch
    a0, b0 = RESIDUE * prior_shape, RESIDUE * prior_time
    if recent_shape > 0:
        recent_shape, recent_time = a0 + MEMORY * (recent_shape - a0), b0 + MEMORY * (recent_time - b0)
    else:
        recent_shape, recent_time = a0, b0
    more = _log_probability_of_one(recent_shape, recent_time, interval, changed) - _log_probability_of_one(shape, time, interval, changed)
    evidence = evidence + more if evidence + more > 0.0 else 0.0
    alarm = evidence > alarm_of(shape)
    return (*update_one(recent_shape, recent_time, interval, changed), 0.0 if alarm else evidence), alarm


def _log_probability(shape: Floats, time: Floats, interval: Floats, changed: NDArray[np.bool_]) -> Floats:
    """Logarithm of what Gamma posteriors give the bits."""
    with np.errstate(over="ignore"):
        unchanged = -shape * np.log1p(interval / time)
    return np.asarray(np.where(changed, np.log(np.maximum(-np.expm1(unchanged), _LEAST)), np.maximum(unchanged, _LOG_LEAST)))


def _log_probability_of_one(shape: float, time: float, interval: float, changed: bool) -> float:
    unchanged = -shape * math.log1p(interval / time)
    return math.log(max(-math.expm1(unchanged), _LEAST)) if changed else max(unchanged, _LOG_LEAST)
