"""Dispatch by price: a page is visited when the value of a visit reaches the price that visits have at present.

What one more visit is worth grows from 0 with the time since the last one towards a bound. Visiting every page whenever its value
reaches one and the same price is the optimum at the bandwidth that this takes. So a dispatcher that always visits the page that is worth
most, and lets the price follow what it visits, is near the optimum whatever the bandwidth is, also if it is not the one that was planned
with. The price itself only says in which order to look: when a page is put on the queue, it is put where it will reach the price of that
moment, and about a dozen of the queue's first are looked at for a visit. The Lua scripts use the same formulas; a test holds them equal.

Notes
-----
For freshness the value is ``(importance / rate) (1 - (1 + r) exp(-r))`` with ``r = rate t`` changes expected since the last visit: the
derivative of the term of Azar et al. 2018, eq. 6, by visits per unit of time, at visits every ``t``. For crawlfrontier's T the factor is
``importance``. Its inverse is the interval that `periodic_rate_at` gives at the price.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.optimization.response import changes_between_visits
from optimal_frontier.optimization.single import periodic_rate_at
from optimal_frontier.scheduling.credit import least_wait

#: Pages of the queue that are looked at for one visit.
CANDIDATES: Final = 12
#: And for each further one that is asked for at the same time.
FURTHER_CANDIDATES: Final = 4
#: Visits that the live price remembers: each moves its logarithm by one part in so many towards that of the visit's value.
PRICE_MEMORY: Final = 100
#: A page on the queue is looked at again after this many rounds at the latest; a round is the time in which the budget visits every page.
LOOK_ROUNDS: Final = 0.5
#: A page that waited longer than this share of the time since its last visit was not visited at its shortest interval.
PROMPT: Final = 0.05
#: From here on exp(-r) is nothing.
_MOST_CHANGES: Final = 700.0

Floats = NDArray[np.float64]
Objective = Literal["freshness", "changes"]


def visit_bound(importance: float, change_rate: float, objective: Objective = "freshness") -> float:
    """Return what the value of a visit tends to: importance / rate, or the importance where changes are counted; 0 without changes."""
    if change_rate <= 0.0:
        return 0.0
    return importance / change_rate if objective == "freshness" else importance


def visit_value(importance: float, change_rate: float, elapsed: float, objective: Objective = "freshness") -> float:
    """Return what a visit is worth some time after the last one.

    Parameters
    ----------
    importance, change_rate : float
        Weight, and changes per second.
    elapsed : float
        Seconds since the last visit.
    objective : {"freshness", "changes"}
        Azar et al. 2018, eq. 6, or crawlfrontier's T.

    Returns
    -------
    float
        What one more visit per second adds to the objective if visits come at this interval.

    See Also
    --------
    value_reached_after : its inverse.

    Examples
    --------
    >>> round(visit_value(1.0, 0.1, 20.0), 4), round(visit_value(1.0, 0.1, 20.0, "changes"), 4)
    (5.9399, 0.594)
    """
    return visit_bound(importance, change_rate, objective) * value_share(change_rate * elapsed)


def value_share(changes: float) -> float:
    """Return ``1 - (1 + r) exp(-r)`` at so many expected changes: `marginal_share` in plain floats, a test holds them equal."""
    if changes < 0.03:
        r = max(changes, 0.0)
        return r * r * (1 / 2 - r * (1 / 3 - r * (1 / 8 - r * (1 / 30 - r * (1 / 144 - r * (1 / 840 - r * (1 / 5760 - r / 45360)))))))
    if changes > _MOST_CHANGES:
        return 1.0
    decay = math.exp(-changes)
    return 1.0 - decay - changes * decay


def value_reached_after(
    importance: float,
    change_rate: float,
    price: float,
    objective: Objective = "freshness",
    *,
    least_rate: float = 0.0,
    most_rate: float = math.inf,
) -> float:
    """Return how long after a visit the next one is worth the price.

    Parameters
    ----------
    importance, change_rate, objective
        As in `visit_value`.
    price : float
        What a visit must be worth; 0: any time is as good.
    least_rate, most_rate : float
        Bounds, visits per second.

    Returns
    -------
    float
        Seconds, from 1 / `most_rate` to 1 / `least_rate`; inf if a visit never is worth the price and there is no `least_rate`.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it.

    Examples
    --------
    >>> round(value_reached_after(1.0, 0.1, 5.9399), 2), value_reached_after(1.0, 0.1, 10.0), value_reached_after(1.0, 0.1, 0.0)
    (20.0, inf, 0.0)
    """
    if price == 0.0:
        return 1.0 / most_rate if most_rate > 0.0 else math.inf
    rate = periodic_rate_at(importance, change_rate, price, objective, min_rate=least_rate, max_rate=most_rate)
    return 1.0 / rate if rate > 0.0 else math.inf


def deadline_by_price(
    last_seen: ArrayLike,
    last_attempt: ArrayLike,
    gap: ArrayLike,
    failures: ArrayLike,
    importance: ArrayLike,
    change_rate: ArrayLike,
    least_rate: ArrayLike,
    most_rate: ArrayLike,
    price: ArrayLike,
    objective: Objective = "freshness",
    slot: ArrayLike = 0,
) -> Floats:
    """Return the time at which pages that were seen before are worth the price.

    Parameters
    ----------
    last_seen, last_attempt : array_like
        Times of the last success and of the last attempt, seconds.
    gap : array_like
        Least seconds between two visits.
    failures : array_like
        Failed attempts since the last success.
    importance, change_rate : array_like
        Weights, and changes per second.
    least_rate, most_rate : array_like
        Bounds, visits per second.
    price : array_like
        What a visit must be worth.
    objective : {"freshness", "changes"}
        As in `visit_value`.
    slot : array_like
        Of the page, as in `backoff`.

    Returns
    -------
    ndarray of float64
        Seconds on the same clock; inf for a page that never is, and has no least rate.

    Examples
    --------
    >>> deadline_by_price(100.0, 99.0, 1.0, 0, [1.0, 1.0], 0.1, [0.0, 0.001], 1.0, [5.9399, 10.0]).round(1).tolist()
    [120.0, 1100.0]
    """
    seen = _floats(last_seen)
    weight, changes, least, most = _floats(importance), _floats(change_rate), _floats(least_rate), _floats(most_rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bound = np.where(changes > 0.0, weight / changes if objective == "freshness" else weight, 0.0)
        bound, changes, paid = np.broadcast_arrays(bound, changes, _floats(price))
        worth_it = bound > paid
        wait = np.full(bound.shape, np.inf)
        odds = paid[worth_it] / (bound[worth_it] - paid[worth_it])
        wait[worth_it] = changes_between_visits(odds) / changes[worth_it]
        wait = np.where(least > 0.0, np.minimum(wait, 1.0 / least), wait)
        due = seen + np.maximum(wait, 1.0 / most)
    later: Floats = np.maximum(due, _floats(last_attempt) + least_wait(gap, failures, slot))
    return later


def claim(value: float, price: float, elapsed: float, least_rate: float, most_rate: float) -> float:
    """Return by what pages are ranked for a visit: its value, and the price or more for a page that is past its longest interval.

    Parameters
    ----------
    value : float
        Of a visit now.
    price : float
        That visits have at present; 0 if they have none.
    elapsed : float
        Seconds since the last visit.
    least_rate, most_rate : float
        Bounds, visits per second. Where they are one, the page is visited evenly, whatever a visit is worth.

    Examples
    --------
    >>> claim(0.5, 2.0, 90.0, 0.01, 1.0), claim(0.5, 2.0, 110.0, 0.01, 1.0), round(claim(9.0, 2.0, 90.0, 0.01, 0.01), 9)
    (0.5, 2.2, 1.8)
    """
    turns = elapsed * least_rate
    if least_rate >= most_rate:
        return (price or 1.0) * turns
    return max(value, price * turns) if turns >= 1.0 else value


def price_after_visit(price: float, value: float) -> float:
    """Return the live price after a visit: its logarithm goes one part in `PRICE_MEMORY` towards that of the visit's value.

    Parameters
    ----------
    price : float
        Before; 0 if there is none yet.
    value : float
        What the visit was worth. Visits that were not made for their worth (to a page at its least or most rate, to a host at its limit)
        tell nothing of the price, and do not count.

    Examples
    --------
    >>> round(price_after_visit(2.0, 4.0), 4), price_after_visit(0.0, 4.0), price_after_visit(2.0, 0.0)
    (2.0139, 4.0, 2.0)
    """
    if price <= 0.0 or value <= 0.0:
        return price if price > 0.0 else max(value, 0.0)
    return price * math.exp((math.log(value) - math.log(price)) / PRICE_MEMORY)


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
