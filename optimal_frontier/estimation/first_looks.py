"""What first looks at new pages tell: whether pages of a pattern change more often while they are young.

Notes
-----
*Whether.* Of a page that has just appeared the first look covers its age up to t. By the visit at which it is 2 t old or older, it has
changed again or not. If its habits stay as they are, the second is at least as probable as the first, whatever its rate is, and whenever it
was visited in between. So of the pages that changed in one of both spans only, those that did so in the first are no more than the others,
but by chance: a sign test, however different the pages of the pattern are. Where changes cease, the logarithm of the likelihood ratio
``a log(2 a / n) + b log(2 b / n)`` of a and b such pages, n = a + b, passes `OPENS`; it is believed in until it is below `CLOSES`.

*How often and how long.* First looks are current status data: by its age a page has changed or not. They are counted by age, in bins of
powers of two seconds. With a rate h until the age u, and the rate r of later life from then on, a page has changed by the age t with
probability ``1 - exp(-L)``, ``L = h min(t, u) + r max(t - u, 0)``. For every u the rate h is found by expectation maximisation: of a change
that was seen ``L / (1 - exp(-L))`` changes are expected, and shared out between the two spans. Of the u whose likelihood is within a factor
of e^0.5 of the highest the middle one is found: looks that are all of one age tell little of it. Youth is taken to last twice as long.
Looks see that a page has changed, and its last change comes after its first; and some pages had theirs before the first visit, so that from
an age on no more have changed, which seems to be an end. To think youth too short costs more than to think it too long.

References
----------
For current status data: P. Groeneboom and J. A. Wellner, "Information bounds and nonparametric maximum likelihood estimation", 1992. For
pairs: Q. McNemar, Psychometrika 12, 1947.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.validation import check_vector, number_array, scalar

#: Logarithm of the likelihood ratio above which youth is believed in, and below which it no longer is.
OPENS: Final = 4.6
CLOSES: Final = 2.3
_STEPS: Final = 100
_LEAST: Final = 1e-12
#: Logarithm of a likelihood ratio that says nothing.
_NEAR: Final = 0.5

Floats = NDArray[np.float64]


def age_bins(age: Floats, bins: int) -> NDArray[np.int64]:
    """Return the bins of ages (s): the first is below 2 s, each further one twice as long; the last has all that is older too.

    Examples
    --------
    >>> age_bins(np.array([0.5, 2.0, 1e9]), 24).tolist()
    [0, 1, 23]
    """
    return np.asarray(np.clip(np.frexp(np.maximum(age, 1.0))[1] - 1, 0, bins - 1), np.int64)


def is_restless(ceased: float, begun: float, *, was_believed: bool = False) -> bool:
    """Tell whether pages change more often while they are young.

    Parameters
    ----------
    ceased, begun : float
        Pages that changed up to their first look and not in an equally long time after that; and those that did it the other way.
    was_believed : bool
        It was believed before.

    Examples
    --------
    >>> is_restless(8, 0), is_restless(30, 25), is_restless(6, 0), is_restless(6, 0, was_believed=True)
    (True, False, False, True)
    """
    n = ceased + begun
    if ceased <= begun:
        return False
    evidence = sum(count * math.log(2.0 * count / n) for count in (ceased, begun) if count > 0)
    return evidence > (CLOSES if was_believed else OPENS)


def fit_youth(looks: ArrayLike, changed: ArrayLike, later_rate: float) -> tuple[float, float] | None:
    """Return how often pages of a pattern change while they are young, and how long they are that.

    Parameters
    ----------
    looks, changed : array_like (bins,)
        First looks by age, see `age_bins`, and how many of them saw a change.
    later_rate : float
        Changes per second of later life, >= 0.

    Returns
    -------
    rate, until : float
        Changes per second while they are young, and the age (s) up to which they are taken for young, counted from their first visit.
        None where no look saw a change, or the rate of later life is the higher one.

    Raises
    ------
    InvalidProblemError
        If the shapes differ, or a number is negative or not finite; the message names it.

    Notes
    -----
    About 3 ms.

    Examples
    --------
    Of pages that were seen after a minute nine in ten had changed, of those seen after 20 seconds half, and after a day no more:

    >>> looks, changed = np.zeros(24), np.zeros(24)
    >>> looks[[4, 5, 16]], changed[[4, 5, 16]] = 40, (20, 36, 36)
    >>> rate, until = fit_youth(looks, changed, later_rate=1e-6)
    >>> round(1 / rate), until
    (34, 128.0)
    """
    n, y = number_array("looks", looks), number_array("changed", changed)
    check_vector("looks", n)
    if y.shape != n.shape:
        raise InvalidProblemError(f"changed: expected shape {n.shape} as looks, got {y.shape}")
    later = scalar("later_rate", later_rate)
    if not (n.any() and y.any()):
        return None
    # It seems to end by the age of the oldest looks, as far as they tell.
    oldest = int(np.flatnonzero(n)[-1])
    ends, age = 2.0 ** np.arange(1, max(oldest, 1) + 3), 2.0 ** (np.arange(len(n)) + 0.5)
    before = np.minimum(age, ends[:, None])
    likelihood, rate = _fitted(n, np.minimum(y, n), before, later * (age - before))
    good = np.flatnonzero(likelihood[:-1] >= likelihood[:-1].max() - _NEAR)
    twice = int(good[len(good) // 2]) + 1
    return (float(rate[twice]), float(ends[twice])) if rate[twice] > later else None


def _fitted(n: Floats, y: Floats, before: Floats, behind: Floats) -> tuple[Floats, Floats]:
    """Fit the rate of youth for each of its ends, to looks so long before it and with so many changes behind it, (ends, bins).

    Returns log likelihoods and rates, (ends,).
    """
    spans = before @ n
    rate = float(y.sum()) / spans
    for _ in range(_STEPS):
        hidden = np.maximum(rate[:, None] * before + behind, _LEAST)
        rate = rate * (y / -np.expm1(-hidden) * before).sum(axis=1) / spans
    hidden = np.maximum(rate[:, None] * before + behind, _LEAST)
    return (y * np.log(-np.expm1(-hidden)) - (n - y) * hidden).sum(axis=1), rate
