"""Best thresholds of doubt within a budget, where noisy signals tell of changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.periodic import solve_periodic
from optimal_frontier.optimization.problem import DECADES, Floats
from optimal_frontier.optimization.signal_response import Signals, responses, signals_of, thresholds_at
from optimal_frontier.validation import page_or_scalar, page_values, scalar

#: Accepted miss of the budget, relative.
_TOLERANCE: Final = 1e-8
_STEPS: Final = 100
#: Prices this close, relative, are the same.
_ROUNDING: Final = 1e-9
#: Most that the log price is moved at once.
_STRIDE: Final = 3.0
#: A visit that would be worth this share of the most that it can be is not made: its doubt would be infinite.
_WORTHLESS: Final = 1.0 - 1e-12
#: The least share of the most that a visit can be worth which is told from nothing.
_LEAST: Final = 1e-200


@dataclass(frozen=True, slots=True, eq=False)
class SignalSolution:
    """Optimal thresholds, and what comes of them.

    Attributes
    ----------
    thresholds : ndarray (n,)
        A page is visited when its doubt, unannounced changes since the last visit + evidence x signals since then, reaches this; inf:
        never.
    rates : ndarray (n,)
        Visits per unit of time that result, on average.
    freshness : ndarray (n,)
        Share of time in which the copy of each page is current.
    objective : float
        Sum of importance x freshness.
    multiplier : float
        What a visit is worth: d objective / d bandwidth.
    unused : float
        Bandwidth that is left: rounding, less than a page takes whose visits are worth just the multiplier, or all if no page is worth any.
    """

    thresholds: Floats
    rates: Floats
    freshness: Floats
    objective: float
    multiplier: float
    unused: float


def solve_signals(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_rate: ArrayLike,
    bandwidth: float,
    *,
    start: float | None = None,
) -> SignalSolution:
    """Best rule of when to visit pages whose changes are announced, not always and not always truly.

    Parameters
    ----------
    importance, change_rate : array_like (n,)
        Weight of each page (>= 0), and its changes per unit of time (>= 0). A page of importance 0, or one that never changes, gets no
        visit; one that never changes counts as fresh.
    recall : float or array_like (n,)
        Share of the changes that a signal tells of, from 0 to 1.
    false_rate : float or array_like (n,)
        Signals per unit of time that no change caused, >= 0.
    bandwidth : float
        Budget, >= 0: visits per unit of time.
    start : float, optional
        Multiplier of an earlier solution of nearly the same problem, to start the search from.

    Returns
    -------
    SignalSolution

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.

    Notes
    -----
    Maximises ``sum importance x w(X) / psi(X)`` over thresholds X with ``sum 1 / psi(X) = bandwidth``, see `signal_response`. As doubt
    never falls between two visits, no rule that knows signals and times does better. At the optimum a visit at the threshold is worth
    the multiplier on every page. One number is searched for, from what it is without signals; some seconds for 100,000 pages. Without
    signals the rates are those of `solve_periodic`.

    A page of which every change is told counts as one of which one change in a million is not.

    References
    ----------
    Busa-Fekete, Zimmert, Gyorgy et al., A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals, WWW 2025.

    Examples
    --------
    Two pages alike, but half of the changes of the second are announced, with one false alarm for every true one:

    >>> plan = solve_signals([1.0, 1.0], [1.0, 1.0], [0.0, 0.5], [0.0, 0.5], 1.0)
    >>> plan.freshness.round(3), plan.rates.round(3), plan.thresholds.round(3)
    (array([0.408, 0.479]), array([0.46, 0.54]), array([2.174, 2.009]))
    """
    weights = page_values("importance", importance, decades=DECADES)
    n = weights.size
    changes = page_values("change_rate", change_rate, n, decades=DECADES)
    told = np.broadcast_to(np.asarray(page_or_scalar("recall", recall, n), np.float64), (n,))
    false = np.broadcast_to(np.asarray(page_or_scalar("false_rate", false_rate, n, decades=DECADES), np.float64), (n,))
    if n and told.max() > 1.0:
        at = int(np.argmax(told > 1.0))
        raise InvalidProblemError(f"recall[{at}] is {told[at]}; expected a share from 0 to 1")
    budget = scalar("bandwidth", bandwidth, decades=DECADES)
    thresholds, rates = np.full(n, np.inf), np.zeros(n)
    freshness = np.where(changes > 0.0, 0.0, 1.0)
    multiplier = 0.0
    warm = None if start is None else scalar("start", start)
    # Refuses what no double can hold, and is where the search begins.
    alone = solve_periodic(weights, changes, budget, start=warm).multiplier
    live = np.flatnonzero((weights > 0.0) & (changes > 0.0))
    if len(live) and budget > 0.0:
        search = _Search(weights[live], changes[live], signals_of(changes[live], told[live], false[live]))
        multiplier = search.run(budget, math.log(warm or alone))
        thresholds[live], rates[live], freshness[live] = search.thresholds, search.rates, search.freshness
    elif len(live):
        multiplier = float((weights[live] / changes[live]).max())
    return SignalSolution(thresholds, rates, freshness, float(weights @ freshness), multiplier, max(budget - float(rates.sum()), 0.0))


class _Search:
    """For the price of a visit at which all visits take the budget."""

    def __init__(self, importance: Floats, change_rate: Floats, signals: Signals) -> None:
        n = len(importance)
        self.log_worth = np.log(importance) - np.log(change_rate)
        self.change_rate, self.signals = change_rate, signals
        self.thresholds, self.rates, self.freshness = np.full(n, np.inf), np.zeros(n), np.zeros(n)

    def run(self, budget: float, log_price: float) -> float:
        """Return the price; leave thresholds and rates at it. Secants on logarithms, safeguarded by bisection.

        Where pages are worth either all of their visits or none, spending jumps over the budget. Then pages are taken as long as it lasts.
        """
        dear, cheap = math.inf, -math.inf
        last: tuple[float, float] | None = None
        for _ in range(_STEPS):
            spent = self._spend(log_price)
            miss = math.log(spent / budget) if spent > 0.0 else -math.inf
            if abs(miss) <= _TOLERANCE:
                break
            if dear - cheap <= _ROUNDING:
                self._mix(cheap, dear, budget)
                break
            if miss > 0.0:
                cheap = log_price
            else:
                dear = log_price
            slope = -1.0
            if last is not None and math.isfinite(miss) and miss != last[1]:
                slope = min((miss - last[1]) / (log_price - last[0]), -1e-3)
            last = (log_price, miss) if math.isfinite(miss) else None
            at = log_price + min(max(-miss / slope, -_STRIDE), _STRIDE)
            if not cheap < at < dear:
                at = 0.5 * (cheap + dear)
            log_price = at
        return math.exp(log_price)

    def _mix(self, cheap: float, dear: float, budget: float) -> None:
        """Take the first pages as at the lower of two neighbouring prices, as long as the budget lasts, and the others as at the higher."""
        self._spend(cheap)
        of_cheap = self.thresholds.copy(), self.rates.copy(), self.freshness.copy()
        left = budget - self._spend(dear)
        more = np.cumsum(of_cheap[1] - self.rates) <= left
        for mine, other in zip((self.thresholds, self.rates, self.freshness), of_cheap, strict=True):
            mine[more] = other[more]

    def _spend(self, log_price: float) -> float:
        log_share = log_price - self.log_worth
        rows = np.flatnonzero(log_share < math.log(_WORTHLESS))
        share = np.exp(np.maximum(log_share[rows], math.log(_LEAST)))
        signals = Signals(*(of[rows] for of in self.signals))
        before = self.thresholds[rows]
        start = before if np.isfinite(before).all() else None
        thresholds, _, used = thresholds_at(share, signals, start)
        found = responses(thresholds, used)
        self.thresholds[:], self.rates[:], self.freshness[:] = np.inf, 0.0, 0.0
        self.thresholds[rows] = thresholds
        self.rates[rows] = self.change_rate[rows] / found.interval
        self.freshness[rows] = found.fresh / found.interval
        return float(self.rates.sum())
