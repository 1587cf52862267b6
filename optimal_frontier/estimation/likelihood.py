"""The maximum-likelihood estimate of a change rate from bits at irregular intervals.

Notes
-----
With U the visits that found a change and S those that did not, the log-likelihood of a rate x is

    sum over U of log(1 - e^(-x I))  -  x T,        T = sum over S of I,

concave in x, and greatest where f(x) = sum over U of I/(e^(x I) - 1) comes down to T. Each term of f is a sum of e^(-k x I) over
k = 1, 2, ..., so log f is convex, and Newton's method on log f(x) = log T, started below the root, climbs to it. Two starts are
below the root: no term of f exceeds T there, hence x >= log(1 + I/T)/I for every I in U; and y/(e^y - 1) >= 1 - y/2, hence
x >= |U|/(T + half the sum of I over U). The larger of them is at most |U| times too small.

The logarithm of a ratio near 1 and sums of positive terms are all that is evaluated, so the answer is good to rounding at any scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.estimation.histories import Bits, Floats, Rows, as_answer, read_bounds, read_histories
from optimal_frontier.estimation.newton import solve_newton

#: Interval times rate above which a term of f is far below any T.
_NEGLIGIBLE = 600.0


@overload
def mle_rate(
    intervals: ArrayLike, changed: ArrayLike, lower: ArrayLike | None = None, upper: ArrayLike | None = None, counts: None = None
) -> float: ...
@overload
def mle_rate(
    intervals: ArrayLike, changed: ArrayLike, lower: ArrayLike | None = None, upper: ArrayLike | None = None, *, counts: ArrayLike
) -> Floats: ...
def mle_rate(
    intervals: ArrayLike,
    changed: ArrayLike,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> float | Floats:
    """Change rate under which the bits seen are most probable.

    Parameters
    ----------
    intervals : array_like, (m,)
        Time before each visit, > 0; with `counts` those of all pages, one page after the other.
    changed : array_like of bool, (m,)
        Whether the visit found a change.
    lower, upper : float or array_like (n,), optional
        Bounds on the rate, 0 <= lower <= upper, upper > 0.
    counts : array_like of int, (n,), optional
        Number of visits of each page, >= 0. Without it all visits are to one page.

    Returns
    -------
    float, or ndarray (n,) with `counts`
        Changes per unit of the intervals, to a relative error of about 1e-14; the most probable rate between the bounds.

        * Never changed, or never visited: `lower`, or 0.
        * All changed: `upper`. Without it the likelihood grows for ever, and the answer is the estimate that one more visit, unchanged
          after half the shortest interval, would make: log(2n + 1)/I after n visits at equal intervals I, as `bias_reduced_rate` has it,
          and always more than if any one of the visits had found no change.

    Raises
    ------
    InvalidProblemError
        If an interval is not positive and finite, a bit not boolean, a bound no rate or above the other, or the lengths do not go
        together; the message names the argument and the first offending index.

    Notes
    -----
    See the module. A few evaluations of each visit: about 0.15 s for 100,000 pages with 20 visits each. Intervals less than 1e-100 of
    a page's longest count as that.

    References
    ----------
    .. [1] Crawlfrontier documentation, "Optimal revisiting algorithm", estimation of page change rate (the equation in e^(-x)).
    .. [2] U. Upadhyay et al., "Learning to crawl", AAAI 2020, section 4 (the log-likelihood).

    Examples
    --------
    >>> round(mle_rate([2.0, 2.0, 2.0], [True, False, True]), 6)  # log(1 + 2/1) / 2
    0.549306
    >>> mle_rate([1.0, 5.0, 1.0, 5.0, 3.0], [1, 0, 0, 1, 0], counts=[2, 2, 1]).round(6).tolist()
    [0.182322, 0.358352, 0.0]
    """
    histories = read_histories(intervals, changed, counts)
    low, high = read_bounds(lower, upper, histories.shape)
    rows, bits = histories.intervals, histories.changed
    changes = rows.total(bits)
    always = changes == rows.counts
    unchanged_time = rows.total(np.where(bits, 0.0, rows.values))
    unchanged_time[always] = 0.5 * np.minimum.reduceat(rows.values, rows.starts)[always]
    solvable = changes > 0
    rates = np.zeros(changes.size)
    equations = _LikelihoodEquations(Rows.joined(rows.values[bits], changes[solvable].astype(np.int64)), unchanged_time[solvable])
    rates[solvable] = solve_newton(equations, equations.start())
    everywhere = histories.every_page(rates)
    everywhere = np.where(histories.pages_where(always) & (high < np.inf), high, everywhere)
    return as_answer(np.clip(everywhere, low, high))


@dataclass(frozen=True, slots=True)
class _LikelihoodEquations:
    """log f(x) - log T of the module's notes."""

    #: The intervals that ended in a change.
    changed: Rows
    #: T of each page.
    unchanged_time: Floats

    def start(self) -> Floats:
        values, counts = self.changed.values, self.changed.counts
        of_one = np.log1p(values / self.changed.spread(self.unchanged_time)) / values
        return np.maximum(
            np.maximum.reduceat(of_one, self.changed.starts), counts / (self.unchanged_time + 0.5 * self.changed.total(values))
        )

    def step(self, rates: Floats) -> Floats:
        intervals = self.changed.values
        terms = intervals / np.expm1(np.minimum(intervals * self.changed.spread(rates), _NEGLIGIBLE))
        f = self.changed.total(terms)
        return np.asarray(np.log(f / self.unchanged_time) * f / self.changed.total(terms * (terms + intervals)))

    def only(self, keep: Bits) -> _LikelihoodEquations:
        return _LikelihoodEquations(self.changed.only(keep), self.unchanged_time[keep])
