"""Estimators that count changes and ask no more of the intervals than their sum."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.estimation.histories import Floats, as_answer, read_histories


@overload
def naive_rate(intervals: ArrayLike, changed: ArrayLike, counts: None = None) -> float: ...
@overload
def naive_rate(intervals: ArrayLike, changed: ArrayLike, counts: ArrayLike) -> Floats: ...
def naive_rate(intervals: ArrayLike, changed: ArrayLike, counts: ArrayLike | None = None) -> float | Floats:
    """Changes seen over time watched, crawlfrontier's estimate of a change rate.

    Parameters
    ----------
    intervals : array_like, (m,)
        Time before each visit, > 0; with `counts` those of all pages, one page after the other.
    changed : array_like of bool, (m,)
        Whether the visit found a change.
    counts : array_like of int, (n,), optional
        Number of visits of each page, >= 0. Without it all visits are to one page.

    Returns
    -------
    float, or ndarray (n,) with `counts`
        Changes per unit of the intervals. Never changed gives 0, all changed one over the mean interval, no visits 0.

    Raises
    ------
    InvalidProblemError
        If an interval is not positive and finite, a bit not boolean, or the lengths do not go together; the message names the argument
        and the first offending index.

    Notes
    -----
    A visit counts one change at most, so the estimate is low: for equal intervals I and rate x it tends to (1 - e^(-xI))/I, 37% below x
    where xI = 1. It is for comparison; nothing in the crawl uses it.

    Examples
    --------
    >>> naive_rate([2.0, 2.0, 4.0], [True, False, True])
    0.25
    >>> naive_rate([2.0, 2.0, 4.0, 5.0], [1, 0, 1, 0], counts=[3, 1]).tolist()
    [0.25, 0.0]
    """
    histories = read_histories(intervals, changed, counts)
    rows = histories.intervals
    return as_answer(histories.every_page(rows.total(histories.changed) / rows.total(rows.values)))


@overload
def bias_reduced_rate(intervals: ArrayLike, changed: ArrayLike, counts: None = None) -> float: ...
@overload
def bias_reduced_rate(intervals: ArrayLike, changed: ArrayLike, counts: ArrayLike) -> Floats: ...
def bias_reduced_rate(intervals: ArrayLike, changed: ArrayLike, counts: ArrayLike | None = None) -> float | Floats:
    """Cho and Garcia-Molina's estimate of a change rate, with the mean interval in the place of their constant one.

    Parameters
    ----------
    intervals : array_like, (m,)
        Time before each visit, > 0; with `counts` those of all pages, one page after the other.
    changed : array_like of bool, (m,)
        Whether the visit found a change.
    counts : array_like of int, (n,), optional
        Number of visits of each page, >= 0. Without it all visits are to one page.

    Returns
    -------
    float, or ndarray (n,) with `counts`
        Changes per unit of the intervals. Never changed gives 0, all changed log(2n + 1) over the mean interval after n visits, no
        visits 0.

    Raises
    ------
    InvalidProblemError
        If an interval is not positive and finite, a bit not boolean, or the lengths do not go together; the message names the argument
        and the first offending index.

    Notes
    -----
    With S of n visits unchanged and mean interval I the estimate is -log((S + 1/2)/(n + 1/2))/I: the maximum-likelihood estimate for
    equal intervals, but for the two halves, which keep it finite and take most of its bias away. With irregular intervals it does not
    tend to the rate, however many visits there are (Jensen's inequality); `mle_rate` does.

    References
    ----------
    .. [1] J. Cho, H. Garcia-Molina, "Estimating frequency of change", ACM Transactions on Internet Technology 3(3), 2003.

    Examples
    --------
    >>> round(bias_reduced_rate([2.0, 2.0, 2.0], [True, False, True]), 6)  # log(3.5 / 1.5) / 2
    0.423649
    """
    histories = read_histories(intervals, changed, counts)
    rows = histories.intervals
    changes = rows.total(histories.changed)
    # log((n + 1/2)/(S + 1/2)), a quotient close to 1 if there are few changes
    per_visit = np.log1p(changes / (rows.counts - changes + 0.5))
    return as_answer(histories.every_page(rows.counts * per_visit / rows.total(rows.values)))
