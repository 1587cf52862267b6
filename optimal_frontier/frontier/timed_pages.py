"""Pages with update times in a plan: what they buy, beside the pages that change at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from optimal_frontier.estimation.update_probabilities import stated_beta
from optimal_frontier.optimization import freshness_periodic
from optimal_frontier.scheduling import RatePlan
from optimal_frontier.scheduling.mixing import TimedPages, mixed_plan
from optimal_frontier.settings import Timetable
from optimal_frontier.state.columns import BOUGHT
from optimal_frontier.state.records import UpdateTimes
from optimal_frontier.state.update_times import StoredTimes

#: Plans all pages between bounds on their rates, visits per second.
Solve = Callable[[np.ndarray, np.ndarray], RatePlan]


def probabilities_of(learned: UpdateTimes, timetable: Timetable) -> list[float]:
    """Return with which probability a page is believed to change at each of its times."""
    betas = learned.betas or tuple(map(stated_beta, timetable.probabilities))
    return [a / (a + b) for a, b in betas]


def timed_pages(
    times: StoredTimes,
    slots: np.ndarray,
    importance: np.ndarray,
    min_rate: np.ndarray,
    max_rate: np.ndarray,
    objective: Literal["freshness", "changes"],
) -> TimedPages | None:
    """Return what pages of a plan with update times would buy; None if there are none among its `slots`, which rise."""
    parts = []
    for timetable, chosen in times.by_timetable():
        rows = np.searchsorted(slots, times.slots[chosen])
        there = np.isin(times.slots[chosen], slots)
        rows, chosen = rows[there], chosen[there]
        if len(rows):
            believed = np.array([probabilities_of(times.learned[at], timetable) for at in chosen])
            parts.append(TimedPages.of_timetable(timetable, rows, believed, importance[rows], min_rate[rows], max_rate[rows], objective))
    return TimedPages.together(parts) if parts else None


def plan_beside(
    timed: TimedPages,
    solve: Solve,
    importance: np.ndarray,
    min_rate: np.ndarray,
    max_rate: np.ndarray,
    planned: float,
    start: float,
    host: np.ndarray | None,
    host_max_rate: np.ndarray | float,
) -> RatePlan:
    """Plan pages with update times and all others at one price.

    Parameters
    ----------
    timed : TimedPages
        Among the pages of the plan.
    solve : callable
        Plans all pages, given bounds on their rates.
    importance, min_rate, max_rate : ndarray (n,)
        Of all pages.
    planned : float
        The budget, visits per second.
    start : float
        Price of the last plan; 0 for none.
    host : ndarray of int (n,) or None
        Host of each page, where hosts have limits.
    host_max_rate : ndarray or float
        Those limits, visits per second.
    """
    rows = timed.rows
    least, most = min_rate.copy(), max_rate.copy()
    others = np.minimum(min_rate, max_rate)
    others[rows] = 0.0

    def pinned(rates: np.ndarray) -> RatePlan:
        least[rows] = most[rows] = rates
        return solve(least, most)

    limits: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if host is not None:
        room = np.broadcast_to(host_max_rate, int(host.max(initial=-1)) + 1) - np.bincount(host, weights=others)
        limits = host[rows], np.maximum(room, 0.0)
    plan, (rates,) = mixed_plan(pinned, [timed], max(planned - float(others.sum()), 0.0), start, *limits)
    # The solver took them for pages that change at any time.
    taken, weight = plan.rates[rows], importance[rows]
    fresh = float(weight @ timed.freshness(rates))
    return replace(
        plan,
        freshness=plan.freshness - freshness_periodic(weight, plan.change_rate[rows], taken) + fresh,
        believed=plan.believed - freshness_periodic(weight, plan.median[rows], taken) + fresh,
    )


def bought_column(size: int, timed: TimedPages | None, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the column group *bought* of a plan with these rates."""
    column = np.zeros(size, BOUGHT)
    if timed is not None:
        column["times"][slots[timed.rows]] = timed.masks(rates[timed.rows])
    return column
