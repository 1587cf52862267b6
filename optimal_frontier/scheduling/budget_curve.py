"""Freshness as a function of the budget, with its slope, and the budget that a freshness takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

#: Relative step of a slope that has to be measured.
_STEP: Final = 1e-3
#: Accepted miss of a freshness that is asked for, relative.
_TOLERANCE: Final = 1e-12
_MOST_STEPS: Final = 200
#: Longest step, on the logarithm of the budget.
_LONGEST_STEP: Final = 5.0
#: Factor between two looks for the end of the curve, and their largest number.
_GROWTH: Final = 8.0
_MOST_LOOKS: Final = 40


class Planned(Protocol):
    """What is asked of a plan: rates and unused budget (visits per second), multiplier, sum of importance x freshness, pages that
    exploration holds at a bound, and whether minima fitted."""

    @property
    def rates(self) -> NDArray[np.float64]: ...
    @property
    def multiplier(self) -> float: ...
    @property
    def freshness(self) -> float: ...
    @property
    def unused(self) -> float: ...
    @property
    def feasible(self) -> bool: ...
    @property
    def held(self) -> int: ...


@dataclass(frozen=True)
class CurvePoint:
    """What one budget buys.

    Attributes
    ----------
    budget : float
        For revisits, fetches per second.
    value : float
        Sum of importance x expected freshness.
    slope : float
        d value / d budget.
    multiplier : float
        The plan's: d objective / d planned rate.
    planned_rate, unused : float
        Sum of the rates, and what bounds and host limits leave of what is planned, fetches per second.
    feasible : bool
        False where minima had to be scaled down.
    """

    budget: float
    value: float
    slope: float
    multiplier: float
    planned_rate: float
    unused: float
    feasible: bool


class BudgetCurve:
    """The freshness of the best plan against its budget.

    Parameters
    ----------
    plan : callable
        Revisit budget (fetches per second) -> plan, the same pages and estimates each time. A prior that goes by the budget must be
        filled in beforehand, or the pages would change with the budget.
    most : float
        A budget that surely cannot be used up, fetches per second; inf if there is none.
    of_freshness : bool
        Whether freshness is what the plan maximises. Then the slope is its multiplier; else it is measured, as where pages are
        held by exploration, whose bounds move with the budget.

    Notes
    -----
    Where minimum rates fit and freshness is maximised the curve is concave, and its slope is the multiplier: one more fetch per
    second goes where it is worth most. Below, minima are scaled down in proportion, and the curve rises more slowly than from the kink on.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from optimal_frontier.optimization import solve_periodic
    >>> def plan(budget):
    ...     found = solve_periodic([1.0, 1.0], [1.0, 0.5], budget, max_rate=4.0)
    ...     return SimpleNamespace(
    ...         rates=found.rates, multiplier=found.multiplier, freshness=found.objective, unused=found.unused, feasible=True, held=0
    ...     )
    >>> curve = BudgetCurve(plan, most=10.0)
    >>> value = curve.at(2.0).value
    >>> round(value, 3), round(curve.budget_for(value), 6)
    (1.424, 2.0)
    >>> round(curve.end().budget, 3), curve.budget_for(1.9) is None
    (8.0, True)
    """

    def __init__(self, plan: Callable[[float], Planned], most: float = math.inf, *, of_freshness: bool = True) -> None:
        self._plan = plan
        self._most = most
        self._of_freshness = of_freshness
        self._end: CurvePoint | None = None
        self._known: dict[float, CurvePoint] = {}

    def at(self, budget: float) -> CurvePoint:
        """Return what a revisit budget above 0 buys; what was asked once is remembered."""
        if budget not in self._known:
            self._known[budget] = self._point(budget)
        return self._known[budget]

    def _point(self, budget: float) -> CurvePoint:
        plan = self._plan(budget)
        if plan.unused > _TOLERANCE * budget and not plan.held:
            slope = 0.0
        elif plan.feasible and self._of_freshness and not plan.held:
            slope = plan.multiplier
        else:
            less, more = (self._plan(budget * (1 + step)).freshness for step in (-_STEP, _STEP))
            slope = max(0.0, (more - less) / (2 * _STEP * budget))
        return CurvePoint(budget, plan.freshness, slope, plan.multiplier, float(plan.rates.sum()), plan.unused, plan.feasible)

    def end(self) -> CurvePoint:
        """Return the point beyond which more budget buys nothing; where there is none, one that is near the limit."""
        if self._end is None:
            point = self._far_point()
            if point.unused > 0:
                point = CurvePoint(
                    point.budget - point.unused,
                    point.value,
                    0.0,
                    point.multiplier,
                    point.planned_rate,
                    0.0,
                    point.feasible,
                )
            self._end = point
        return self._end

    def budget_for(self, value: float, start: float | None = None) -> float | None:
        """Return the least revisit budget that buys a value above 0; None if none does.

        Parameters
        ----------
        value : float
            Sum of importance x expected freshness.
        start : float, optional
            A first guess, fetches per second.

        Notes
        -----
        Newton's method on the logarithm of the budget, kept inside a bracket and replaced by halving it where it does not
        help: some ten plans, fewer where others were asked for nearby.
        """
        end = self.end()
        if value > end.value * (1 + _TOLERANCE):
            return None
        if value >= end.value * (1 - _TOLERANCE) or value <= 0:
            return end.budget if value > 0 else 0.0
        low = max((point.budget for point in self._known.values() if point.value < value), default=0.0)
        high = min((point.budget for point in self._known.values() if point.value >= value), default=end.budget)
        high = min(high, end.budget)
        budget = low if low > 0 else high  # from below Newton's method cannot overshoot on a concave curve
        if start is not None and low < start < high:
            budget = start
        last_miss = math.inf
        for _ in range(_MOST_STEPS):
            point = self.at(budget)
            miss = point.value - value
            if miss < 0:
                low = budget
            else:
                high = budget
            if abs(miss) <= _TOLERANCE * value or high - low <= _TOLERANCE * high:
                return budget
            middle = math.sqrt(low * high) if low > 0 else high / _GROWTH
            step = -miss / (point.slope * budget) if point.slope > 0 else math.inf
            newton = budget * math.exp(max(-_LONGEST_STEP, min(_LONGEST_STEP, step)))
            helps = low < newton < high and abs(miss) <= 0.5 * last_miss
            if helps and abs(newton - budget) <= _TOLERANCE * budget:
                return newton
            budget = newton if helps else middle
            last_miss = abs(miss) if helps else math.inf
        return budget

    def _far_point(self) -> CurvePoint:
        if math.isfinite(self._most):
            return self.at(self._most)
        point, before = self.at(1.0), 0.0
        for _ in range(_MOST_LOOKS):
            if point.unused > 0 or point.value - before <= _TOLERANCE * point.value:
                break
            before = point.value
            point = self.at(_GROWTH * point.budget)
        return point
