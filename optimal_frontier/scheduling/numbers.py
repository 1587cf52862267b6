"""The numbers of a deadline: when a visit is worth the price, to first order in the logarithm of the price.

A page's deadline at log price L is ``b + min(max(a + s L, e), l)``: b the visit that the numbers are about, a + s L how long after it the
next one is worth exp(L), e the shortest and l the longest wait. Redis evaluates this formula and no other; everything that is special about
a page is a choice of its numbers:

=====================================  ==================================================================================
pinned, at an update time, failed      s = 0, e = a = l: `fixed`
wanted now                             all 0: `fixed` of 0 seconds
between bounds                         e and l are MIN_INTERVAL and MAX_INTERVAL, or what RULES say
memoryless                             a and s are those of the mean interval times a draw
not worth the price at any time        a = inf, s = 0: l decides
=====================================  ==================================================================================
"""

from __future__ import annotations

import hashlib
import math
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.response import changes_between_visits, changes_by_table
from optimal_frontier.optimization.single import changes_per_visit

Floats = NDArray[np.float64]
Objective = Literal["freshness", "changes"]
Policy = Literal["periodic", "poisson"]

#: The slope counts up to so many times the wait: a first order that says more is of no use (docs/maths.md has the measurement).
MOST_SLOPE: Final = 2.0
#: A visit is never worth a price this close to its bound, as a share of that.
WORTHLESS: Final = 1.0 - 1e-12
#: From so many pages on their waits are found by a table.
_MANY: Final = 512


class Numbers(NamedTuple):
    """Of a deadline, seconds."""

    a: float
    s: float
    e: float
    l: float  # noqa: E741  # the name that docs/maths.md has


class ManyNumbers(NamedTuple):
    """Of the deadlines of many pages: arrays of shape (n,)."""

    a: Floats
    s: Floats
    e: Floats
    l: Floats  # noqa: E741  # the name that docs/maths.md has


def deadline(b: float, numbers: Numbers, log_price: float) -> float:
    """Return the deadline (s) of a page whose last visit was at ``b`` (s), at a log price.

    Examples
    --------
    >>> deadline(100.0, Numbers(20.0, 5.0, 1.0, 60.0), 2.0), deadline(100.0, fixed(7.0), 2.0)
    (130.0, 107.0)
    """
    return b + min(max(numbers.a + numbers.s * log_price, numbers.e), numbers.l)


def deadlines(b: Floats, numbers: Numbers | ManyNumbers, log_price: Floats | float) -> Floats:
    """Return the deadlines (s) of many pages: `deadline` for arrays."""
    due: Floats = np.asarray(b) + waits(numbers, log_price)
    return due


def waits(numbers: Numbers | ManyNumbers, log_price: Floats | float) -> Floats:
    """Return how long after their visits many pages are due, seconds; arrays."""
    a, s, e, longest = (np.asarray(value, np.float64) for value in numbers)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(np.maximum(a + s * log_price, e), longest))


def fixed(wait: float) -> Numbers:
    """Return the numbers of a page that is due so many seconds after its visit, whatever the price."""
    return Numbers(wait, 0.0, wait, wait)


def at_latest(numbers: Numbers, wait: float) -> Numbers:
    """Return the numbers of a page that is due so many seconds after its visit at the latest, at any price.

    Examples
    --------
    >>> at_latest(Numbers(50.0, 10.0, 1.0, 100.0), 8.0), at_latest(fixed(5.0), 8.0).l
    (Numbers(a=50.0, s=10.0, e=1.0, l=8.0), 5.0)
    """
    longest = min(numbers.l, wait)
    return numbers._replace(e=min(numbers.e, longest), l=longest)


def price_share(log_price: float, importance: float, change_rate: float, objective: Objective = "freshness") -> float:
    """Return the price as a share of what a visit is worth at most, after a long time; 1 also where it is more than that.

    Examples
    --------
    >>> round(price_share(math.log(5.94), 1.0, 0.1), 3), price_share(math.log(20.0), 1.0, 0.1)
    (0.594, 1.0)
    """
    log_q = log_price - math.log(importance) + (math.log(change_rate) if objective == "freshness" else 0.0)
    return math.exp(log_q) if log_q < 0.0 else 1.0


def wait_at_price(
    log_price: float, importance: float, change_rate: float, objective: Objective = "freshness", policy: Policy = "periodic"
) -> tuple[float, float]:
    """Return how long after a visit the next one is worth the price, and by how much that grows with the log price.

    Parameters
    ----------
    log_price : float
        Logarithm of what a visit must be worth.
    importance, change_rate : float
        Weight > 0, changes per second >= 0.
    objective : {"freshness", "changes"}
        Azar et al. 2018, eq. 6, or crawlfrontier's T.
    policy : {"periodic", "poisson"}
        Evenly spaced visits, or the mean interval of memoryless ones (Azar et al. 2018, eq. 11; freshness only).

    Returns
    -------
    wait, slope : float
        Seconds; (inf, 0) where a visit never is worth the price. The slope is at most `MOST_SLOPE` waits.

    Notes
    -----
    With q = price x change rate / importance ("freshness") or price / importance ("changes") the wait is r / change rate, where r solves
    1 - (1 + r) exp(-r) = q; its slope is q / (r exp(-r)) / change rate.

    Examples
    --------
    >>> wait, slope = wait_at_price(math.log(5.94), 1.0, 0.1)
    >>> round(wait, 2), round(slope, 2), wait_at_price(math.log(10.0), 1.0, 0.1)
    (20.0, 21.95, (inf, 0.0))
    """
    if change_rate <= 0.0:
        return math.inf, 0.0
    if log_price == -math.inf:
        return 0.0, 0.0
    if policy == "poisson":
        speed = math.exp(0.5 * (math.log(importance) + math.log(change_rate) - log_price))
        rate = speed - change_rate
        if rate <= change_rate * (1.0 - WORTHLESS):
            return math.inf, 0.0
        return 1.0 / rate, min(0.5 * speed / rate, MOST_SLOPE) / rate
    q = price_share(log_price, importance, change_rate, objective)
    if q >= WORTHLESS:
        return math.inf, 0.0
    r = changes_per_visit(q)
    if r <= 0.0:
        return 0.0, 0.0
    return r / change_rate, min(q / (r * math.exp(-r)), MOST_SLOPE * r) / change_rate


def waits_at_price(
    log_price: Floats | float, importance: Floats, change_rate: Floats, objective: Objective = "freshness", policy: Policy = "periodic"
) -> tuple[Floats, Floats]:
    """Return waits and slopes of many pages: `wait_at_price` for arrays of shape (n,); a test holds the two equal."""
    importance, change_rate = np.asarray(importance, np.float64), np.asarray(change_rate, np.float64)
    price = np.broadcast_to(np.asarray(log_price, np.float64), change_rate.shape)
    moves = change_rate > 0.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if policy == "poisson":
            speed = np.exp(0.5 * (np.log(importance) + np.log(change_rate) - price))
            rate = speed - change_rate
            moves &= rate > change_rate * (1.0 - WORTHLESS)
            wait, slope = np.full(change_rate.shape, np.inf), np.zeros(change_rate.shape)
            wait[moves] = 1.0 / rate[moves]
            # At a price of 0 both are infinite, and the wait is 0.
            slope[moves] = np.fmin(0.5 * speed[moves] / rate[moves], MOST_SLOPE) * wait[moves]
            return wait, slope
        log_q = price - np.log(importance) + (np.log(change_rate) if objective == "freshness" else 0.0)
        moves &= log_q < math.log(WORTHLESS)
        # Of all, as few are not worth a visit: to pick out the others takes longer than what they are spared.
        q = np.exp(np.where(moves, log_q, -1.0))
        wait = changes_by_table(q) if len(q) >= _MANY else changes_between_visits(q / (1.0 - q))
        slope = np.exp(wait)
        slope *= q
        slope /= wait
        np.minimum(slope, MOST_SLOPE * wait, out=slope)
        slope[wait <= 0.0] = 0.0
        wait /= change_rate
        slope /= change_rate
    wait[~moves], slope[~moves] = np.inf, 0.0
    return wait, slope


def waits_that_last(
    found: tuple[Floats, Floats],
    prices: tuple[Floats | float, Floats | float],
    importance: Floats,
    change_rate: Floats,
    objective: Objective = "freshness",
    policy: Policy = "periodic",
) -> tuple[Floats, Floats]:
    """Return waits and slopes in which no page is given up that is worth visits at a lower price.

    Parameters
    ----------
    found : tuple of ndarray (n,)
        Waits and slopes at the log price of now.
    prices : tuple of (ndarray (n,) or float)
        The log price of now, and the one that lasts (`price_law.lasting_log_price`).
    importance, change_rate, objective, policy
        As in `waits_at_price`.

    Notes
    -----
    Such a page waits as if it had been visited before the price rose: its deadline is that of the lower price, to first order.
    """
    wait, slope = found
    now, lasting = (np.broadcast_to(np.asarray(price, np.float64), wait.shape) for price in prices)
    some = np.flatnonzero(np.isinf(wait) & (lasting < now))
    if len(some):
        lower, slope[some] = waits_at_price(lasting[some], importance[some], change_rate[some], objective, policy)
        wait[some] = lower + slope[some] * (now[some] - lasting[some])
    return wait, slope


def numbers_at(wait: float, slope: float, log_price: float, shortest: float, longest: float) -> Numbers:
    """Return the numbers of a page whose next visit is worth the price ``exp(log_price)`` after ``wait``, within bounds.

    Parameters
    ----------
    wait, slope : float
        Seconds, as `wait_at_price` gives them.
    log_price : float
        At which they were found. Of a host at its limit, that of the crawl: what the host adds is in the wait.
    shortest, longest : float
        Bounds on the interval, seconds; where they exclude each other the longest stands.

    Examples
    --------
    >>> numbers_at(20.0, 5.0, 2.0, 1.0, 60.0)
    Numbers(a=10.0, s=5.0, e=1.0, l=60.0)
    """
    # A price of 0 has no logarithm to multiply by, and no slope.
    a = wait - slope * log_price if slope and wait < math.inf else wait
    return Numbers(a, slope, min(shortest, longest), longest)


def draw_of(page: bytes, attempts: int) -> float:
    """Return a draw from the exponential distribution of mean 1: the same for the same visit of a page, in every process.

    Examples
    --------
    >>> draw_of(b"page", 3) == draw_of(b"page", 3) != draw_of(b"page", 4)
    True
    """
    digest = hashlib.blake2b(page + attempts.to_bytes(8, "little"), digest_size=7).digest()
    return -math.log((int.from_bytes(digest, "little") + 0.5) / 2.0**56)
