"""With which probability a page changes at each of its update times, learned from bits.

Notes
-----
A page may change at known times only, at time j with unknown probability p_j ~ Beta(a_j, b_j). Between two visits it passed time j n_j
times. The bit says whether it changed at any of them: unchanged has the likelihood ``product of (1 - p_j)^n_j``, so the posterior is
Beta(a_j, b_j + n_j), exactly; changed, after one time alone, gives Beta(a_j + 1, b_j), exactly. Changed after several has the likelihood
``1 - product of (1 - p_j)^n_j``, under which each p_j has the density ``Beta(a_j, b_j) (1 - R_j (1 - p_j)^n_j)``, with R_j the expectation
of the product over the other times. The Beta of the same mean and variance takes its place, and dependence between times is dropped
(assumed density filtering, as in `filtering`).

Habits change: when the counts of a time exceed `MOST_COUNTS`, both are scaled down to it, so what was seen so many visits ago fades.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

#: Visits that a stated probability counts for.
PRIOR_COUNTS: Final = 10.0
#: What is stated is taken to be within these bounds, or no bit could ever say otherwise.
LEAST_STATED: Final = 0.01
#: Visits that are remembered.
MOST_COUNTS: Final = 200.0

#: Parameters a (changed) and b (unchanged) of the posterior of one update time.
Beta = tuple[float, float]


def stated_beta(probability: float) -> Beta:
    """Return what is believed of an update time before any bit.

    Examples
    --------
    >>> stated_beta(0.25)
    (2.5, 7.5)
    """
    mean = min(max(probability, LEAST_STATED), 1.0 - LEAST_STATED)
    return PRIOR_COUNTS * mean, PRIOR_COUNTS * (1.0 - mean)


def learn_update(betas: Sequence[Beta], passed: Sequence[int], changed: bool) -> list[Beta]:
    """Take in one visit.

    Parameters
    ----------
    betas : sequence of tuple
        Posteriors of the update times before the visit, both parameters above 0.
    passed : sequence of int
        How often each time was passed since the last visit.
    changed : bool
        Whether the page had changed.

    Returns
    -------
    list of tuple
        Posteriors after it; those of times that were not passed are as they were. Trusts its input.

    Examples
    --------
    Changed after 06:00 alone, unchanged after both, changed after both:

    >>> learn_update([(1.0, 1.0), (1.0, 1.0)], [1, 0], True)
    [(2.0, 1.0), (1.0, 1.0)]
    >>> learn_update([(1.0, 1.0), (1.0, 1.0)], [1, 1], False)
    [(1.0, 2.0), (1.0, 2.0)]
    >>> [(round(a, 3), round(b, 3)) for a, b in learn_update([(1.0, 1.0), (1.0, 1.0)], [1, 1], True)]
    [(1.154, 0.923), (1.154, 0.923)]
    """
    if not changed:
        return [_kept(a, b + n) for (a, b), n in zip(betas, passed, strict=True)]
    if sum(passed) == 1:
        return [_kept(a + n, b) for (a, b), n in zip(betas, passed, strict=True)]
    total = sum(_log_never(beta, n) for beta, n in zip(betas, passed, strict=True))
    return [_kept(*_after_any(beta, n, total)) if n else beta for beta, n in zip(betas, passed, strict=True)]


def _kept(a: float, b: float) -> Beta:
    scale = min(1.0, MOST_COUNTS / (a + b))
    return a * scale, b * scale


def _log_never(beta: Beta, times: int) -> float:
    """Logarithm of ``E (1 - p)^n``."""
    a, b = beta
    return math.lgamma(b + times) - math.lgamma(b) + math.lgamma(a + b) - math.lgamma(a + b + times)


def _after_any(beta: Beta, times: int, total: float) -> Beta:
    """Moments of p under Beta(a, b) less its part in which nothing happened, Beta(a, b + n)."""
    a, b = beta
    none = math.exp(total)
    some = -math.expm1(total)
    if some <= 0.0:
        return beta  # it was taken for impossible
    mean, less = a / (a + b), a / (a + b + times)
    square, less_square = mean * (a + 1) / (a + b + 1), less * (a + 1) / (a + b + times + 1)
    first = (mean - none * less) / some
    spread = (square - none * less_square) / some - first * first
    if not 0.0 < spread < first * (1.0 - first):
        return beta  # rounding: nothing was learned that could be told
    strength = first * (1.0 - first) / spread - 1.0
    return first * strength, (1.0 - first) * strength
