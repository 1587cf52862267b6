"""From what is believed of pages to the one price: revisit rates, hosts' prices, the response of the crawl to the price, its stretch.

The planner solves with it for the crawl, and `curve` for budgets that the crawl does not have.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.frontier.planning.host_prices import extra_prices
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.optimization import freshness_periodic, freshness_poisson, solve_periodic
from optimal_frontier.optimization.discovering import Discovering, Limits, discovering_waits, discovery_values, solve_discovering
from optimal_frontier.optimization.objectives import fresh_share, marginal_values
from optimal_frontier.optimization.poisson_bounded import solve_poisson_bounded
from optimal_frontier.scheduling.numbers import MOST_SLOPE
from optimal_frontier.scheduling.planning import FAR, fit_beside, fit_minima

#: Where the budget serves all pages as often as they may be visited: the price lies so far below the median of what their visits are worth
#: at most, in logarithms.
_FREE: Final = 20.0
#: Pages with update times and all others are at one price when what the former buy moves by less than this share of the budget.
_LITTLE: Final = 3e-5
_HALVINGS: Final = 20
#: Relative difference of two prices that is none.
_TIE: Final = 3e-4
_ROUNDING: Final = 1e-12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """What a plan is made from; n pages.

    Attributes
    ----------
    importance, change_rate : ndarray (n,)
        Weights, and the believed rates, per second.
    min_rate, max_rate : ndarray (n,)
        Bounds of the crawl, visits per second; equal for pinned pages.
    asked : ndarray (n,)
        Least rate that exploration asks for beside them, visits per second.
    is_even : bool
        Exploration visits all pages at just that rate.
    host : ndarray of int (n,)
        From 0.
    limit : ndarray (hosts,) or None
        Most revisits per second of each host.
    objective, policy : str
        OBJECTIVE and POLICY.
    timed : TimedPages or None
        Those among the pages that have update times.
    discovery : ndarray (n,) or None
        What the new pages of a second are worth that each yields, see `scheduling.discovery`; None: no page does.
    """

    importance: Floats
    change_rate: Floats
    min_rate: Floats
    max_rate: Floats
    asked: Floats
    is_even: bool
    host: Ints
    limit: Floats | None
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]
    timed: TimedPages | None = None
    discovery: Floats | None = None

    @classmethod
    def joined(cls, parts: Sequence[Problem]) -> Problem:
        """Return the pages of all parts, of which there is one at least, as one problem."""
        first = parts[0]
        if len(parts) == 1:
            return first
        names = ("importance", "change_rate", "min_rate", "max_rate", "asked", "host")
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        starts = np.cumsum([0, *(len(part.importance) for part in parts)]).tolist()
        timed = [replace(p.timed, rows=p.timed.rows + start) for start, p in zip(starts, parts, strict=False) if p.timed is not None]
        discovery = None
        if any(part.discovery is not None for part in parts):
            discovery = np.concatenate([np.zeros(len(p.importance)) if p.discovery is None else p.discovery for p in parts])
        return replace(first, **columns, timed=TimedPages.together(timed) if timed else None, discovery=discovery)


class Sums(NamedTuple):
    """Of the planned pages of a partition: their number, visits per second, and visits' worth of waits that answer to the log price."""

    pages: int
    rate: float
    response: float


@dataclass(frozen=True)
class Solved:
    """A plan.

    Attributes
    ----------
    rates : ndarray (n,)
        Revisit rates, visits per second; empty where a crawl was solved in parts.
    multiplier : float
        What one more fetch per second would add to the objective; 0 where the budget serves all.
    log_price : float
        Its logarithm; where it is 0, a price low enough for all pages to be visited as often as they may be.
    extra : ndarray (hosts,)
        What each host adds to that.
    response : ndarray (n,)
        By how many visits' worth of waits each page answers to the log price: slope over wait, 0 at a bound; empty as `rates` are.
    freshness : float
        Sum of importance x expected freshness.
    unused : float
        Budget that limits of pages and hosts leave, fetches per second.
    stretch : float
        Factor on longest intervals while the budget cannot hold them.
    feasible : bool
        False where intervals asked for had to be scaled down.
    held : int
        Pages that are at a bound which exploration asks for.
    least : float
        What the least rates of the crawl ask for, visits per second.
    by_partition : mapping of int to Sums
        Of the pages of each partition; empty where `solve` was asked, which does not know of partitions.
    """

    rates: Floats
    multiplier: float
    log_price: float
    extra: Floats
    response: Floats
    freshness: float
    unused: float
    stretch: float
    feasible: bool
    held: int
    least: float = 0.0
    by_partition: Mapping[int, Sums] = field(default_factory=dict)


def solve(problem: Problem, budget: float, start: float = 0.0) -> Solved:
    """Return the plan of a budget for revisits.

    Parameters
    ----------
    problem : Problem
        The pages.
    budget : float
        Fetches per second, all of which are planned: the price follows what visits take, so that none have to be kept free.
    start : float
        Multiplier of the last plan, to start from; 0: none.
    """
    n = len(problem.importance)
    hosts = 0 if problem.limit is None else len(problem.limit)
    if n == 0 or budget <= 0:
        none = np.zeros(n)
        return Solved(none, 0.0, 0.0, np.zeros(hosts), none, 0.0, max(budget, 0.0), 1.0, True, 0)
    limit: Floats | float = np.inf if problem.limit is None else problem.limit
    least = np.minimum(problem.min_rate, problem.max_rate)
    minima, feasible = fit_minima(least, problem.max_rate, budget, problem.host, limit)
    stretch = max(1.0, float(least.sum()) / budget)
    own_low, own_high, pinned = own_bounds(problem, minima)
    low = fit_beside(own_low, asked_beside(problem, own_low, own_high), budget, None if problem.limit is None else problem.host, limit)
    high = most_beside(problem, low, own_high, pinned)
    pages = known_pages(problem)
    importance, change_rate = pages.importance, pages.change_rate

    def steady(least: Floats, most: Floats) -> tuple[Floats, float, float]:
        if problem.discovery is None:
            # Of the faster solvers one may give up on hosts whose spending is all kinks.
            with contextlib.suppress(ConvergenceError):
                return _without_hubs(pages, Limits(least, most, problem.host, problem.limit), budget, start)
        return solve_discovering(pages, Limits(least, most, problem.host, problem.limit), budget, start)

    if problem.timed is None:
        rates, multiplier, unused = steady(low, high)
    else:
        rates, multiplier, unused = _beside(problem, problem.timed, steady, (low, high), (budget, start))
    value = np.zeros(0)
    if problem.limit is not None or multiplier <= 0:
        value = marginal_values(importance, change_rate, rates, problem.objective, problem.policy)
        if problem.discovery is not None:
            value = value + discovery_values(pages, rates)
    is_free = free_pages(problem, pages, rates, (low, high))
    log_price = math.log(multiplier) if multiplier > 0 else low_price(np.log(value[(rates > 0) & (value > 0)]))
    freshness = freshness_of(problem, pages, rates, pinned)
    # One that is at its upper bound but for rounding is worth more than its host asks.
    is_wanted = (rates < high * (1 - _ROUNDING)) & ((change_rate > 0) | (pages.discovery > 0))
    if problem.timed is not None:
        is_wanted[problem.timed.rows] = False
    extra = extra_prices(problem.host, rates, is_wanted, value, problem.limit, log_price)
    # Pages of hosts at their limits do not answer to the price of the crawl.
    answers = is_free if problem.limit is None else is_free & ~(extra > 0)[problem.host]
    return Solved(
        rates,
        multiplier,
        log_price,
        extra,
        responses_of(problem, pages, rates, answers),
        freshness,
        unused,
        stretch,
        feasible,
        held_pages(rates, (low, high), (own_low, own_high)),
        float(least.sum()),
    )


def _without_hubs(pages: Discovering, limits: Limits, budget: float, start: float) -> tuple[Floats, float, float]:
    """Return what `solve_discovering` does, of pages of which none yields new ones."""
    if pages.policy == "poisson":
        host = None if limits.most is None else limits.host
        memoryless = solve_poisson_bounded(pages.importance, pages.change_rate, budget, limits.low, limits.high, host, limits.most)
        return memoryless.rates, memoryless.multiplier, memoryless.unused
    found = solve_periodic(
        pages.importance,
        pages.change_rate,
        budget,
        pages.objective,
        min_rate=limits.low,
        max_rate=limits.high,
        host=None if limits.most is None else limits.host,
        host_max_rate=limits.most,
        start=start if start > 0 else None,
    )
    return found.rates, found.multiplier, found.unused


def own_bounds(problem: Problem, minima: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the bounds of the crawl on the rates of pages whose minima were made to fit, and which pages are pinned."""
    low = np.where(minima < 1 / FAR, 0.0, minima)
    pinned = problem.min_rate >= problem.max_rate
    most = problem.max_rate
    if not 1 / FAR <= most.min(initial=1.0) <= most.max(initial=1.0) <= FAR:
        most = np.where(most > FAR, np.inf, np.where(most < 1 / FAR, 0.0, most))
    # A pinned page stays pinned when its minimum had to be scaled down.
    return low, np.where(pinned, low, most) if pinned.any() else most, pinned


def asked_beside(problem: Problem, low: Floats, high: Floats) -> Floats:
    """Return the least rates that exploration asks for within the bounds of the crawl."""
    return np.asarray(np.clip(problem.asked, low, np.maximum(low, high)))


def most_beside(problem: Problem, low: Floats, high: Floats, pinned: NDArray[np.bool_]) -> Floats:
    """Return the highest rates when exploration has raised the least ones to ``low``."""
    most = low if problem.is_even else np.maximum(low, high)
    return np.where(pinned, low, most) if pinned.any() else most


def known_pages(problem: Problem) -> Discovering:
    """Return what is believed of the pages, within numbers that solvers take."""
    importance = np.clip(problem.importance, 1 / FAR, FAR)
    change_rate = np.where(problem.change_rate < 1 / FAR, 0.0, np.minimum(problem.change_rate, FAR))
    discovery = np.zeros(len(importance))
    if problem.discovery is not None:
        discovery = np.where(problem.discovery < 1 / FAR, 0.0, np.minimum(problem.discovery, FAR))
    return Discovering(importance, change_rate, discovery, problem.objective, problem.policy)


def low_price(logs: Floats) -> float:
    """Return a log price at which pages whose marginal values at their highest rates have these logarithms are all visited at them."""
    return float(max(logs.min(), np.median(logs) - _FREE)) - 1.0 if len(logs) else 0.0


def free_pages(problem: Problem, pages: Discovering, rates: Floats, bounds: tuple[Floats, Floats]) -> NDArray[np.bool_]:
    """Tell which pages are between their bounds by the price; here and below ``pages`` are those of `known_pages`."""
    is_free = (rates > bounds[0]) & (rates < bounds[1]) & ((pages.change_rate > 0) | (pages.discovery > 0))
    if problem.timed is not None:
        is_free[problem.timed.rows] = False
    return is_free


def held_pages(rates: Floats, bounds: tuple[Floats, Floats], own: tuple[Floats, Floats]) -> int:
    """Return how many pages are at a bound that exploration has moved from the crawl's ``own``."""
    return int(np.count_nonzero(((rates <= bounds[0]) & (bounds[0] > own[0])) | ((rates >= bounds[1]) & (bounds[1] < own[1]))))


def responses_of(problem: Problem, pages: Discovering, rates: Floats, is_free: NDArray[np.bool_]) -> Floats:
    """Return slope over wait of each page at the price, 0 for those that are not free; see `scheduling.numbers.wait_at_price`."""
    if problem.discovery is None:
        return _responses(pages.change_rate, rates, is_free, problem.policy)
    answers = _responses(pages.change_rate, rates, is_free & (pages.discovery <= 0), problem.policy)
    hubs = np.flatnonzero(is_free & (pages.discovery > 0))
    some = pages._replace(importance=pages.importance[hubs], change_rate=pages.change_rate[hubs], discovery=pages.discovery[hubs])
    value = marginal_values(some.importance, some.change_rate, rates[hubs], pages.objective, pages.policy)
    value += discovery_values(some, rates[hubs])
    answers[hubs] = np.minimum(discovering_waits(np.log(value), some)[1], MOST_SLOPE)
    return answers


def _responses(change_rate: Floats, rates: Floats, is_free: NDArray[np.bool_], policy: str) -> Floats:
    answers = np.zeros(len(rates))
    x, rate = change_rate[is_free], rates[is_free]
    if policy == "poisson":
        answers[is_free] = np.minimum(0.5 * (rate + x) / rate, MOST_SLOPE)
        return answers
    r = x / rate
    with np.errstate(over="ignore"):
        # q / (r^2 exp(-r)) with q = 1 - (1 + r) exp(-r).
        answers[is_free] = np.where(r < 1e-3, 0.5 + r / 6.0, np.minimum((np.expm1(r) - r) / (r * r), MOST_SLOPE))
    return answers


def freshness_of(problem: Problem, pages: Discovering, rates: Floats, pinned: NDArray[np.bool_]) -> float:
    """Return the sum of importance x expected freshness at these rates."""
    importance, change_rate = pages.importance, pages.change_rate
    if problem.timed is None and problem.policy == "periodic":
        return float(np.sum(importance * fresh_share(change_rate, rates)))
    apart = np.zeros(len(rates), bool)
    total = 0.0
    if problem.timed is not None:
        rows = problem.timed.rows
        apart[rows] = True
        total += float(importance[rows] @ problem.timed.freshness(rates[rows]))
    if problem.policy == "poisson":
        free = ~pinned & ~apart
        total += freshness_poisson(importance[free], change_rate[free], rates[free])
        apart |= free
    rest = ~apart
    return total + freshness_periodic(importance[rest], change_rate[rest], rates[rest])


def _beside(
    problem: Problem,
    timed: TimedPages,
    steady: Callable[[Floats, Floats], tuple[Floats, float, float]],
    bounds: tuple[Floats, Floats],
    most: tuple[float, float],
) -> tuple[Floats, float, float]:
    """Solve with what pages with update times buy at a price, until the others, which take the rest of the budget, have that price.

    What is bought falls with the price, and the price of the others rises with it, so there is one such point. ``most`` has the budget and
    the price to start from.
    """
    rows, (budget, start) = timed.rows, most
    low, high = (bound.copy() for bound in bounds)
    low[rows] = 0.0
    room = max(budget - float(low.sum()), 0.0)
    admitted = None if problem.limit is None else np.maximum(problem.limit - np.bincount(problem.host, low, len(problem.limit)), 0.0)

    def bought_at(price: float) -> Floats:
        bought = timed.rates(np.full(len(rows), price))
        if admitted is not None:
            asked = np.bincount(problem.host[rows], bought, len(admitted))
            bought = bought * (admitted / np.maximum(np.maximum(asked, admitted), 1 / FAR))[problem.host[rows]]
        total = float(bought.sum())
        return bought if total <= room else bought * (room / total)

    def solved(bought: Floats) -> tuple[Floats, float, float]:
        low[rows] = high[rows] = bought
        return steady(low, high)

    below, above = 0.0, timed.top
    price = min(start, above) if start > 0 else above
    for _ in range(_HALVINGS):
        found = solved(bought_at(price))
        multiplier = found[1]
        if multiplier > price and price < above:
            below = price
        else:
            above = price
        if float(np.abs(bought_at(price) - bought_at(min(max(multiplier, below), above))).sum()) <= _LITTLE * budget:
            return found  # whatever the price between them, it moves next to nothing
        if above <= below * (1 + _TIE):
            break
        price = multiplier if below < multiplier < above else math.sqrt(max(below, 1e-12 * above) * above)
    # Visits are whole: of the pages that are worth just the price so many are bought for as leave the others at it.
    few, many = bought_at(above), timed.rates(np.full(len(rows), below if below > 0 else 1e-12 * above))
    moved = np.flatnonzero(many > few)
    least, most_pages, best = 0, len(moved), solved(few)
    while least < most_pages:
        count = (least + most_pages + 1) // 2
        tried = few.copy()
        tried[moved[:count]] = many[moved[:count]]
        asked = np.zeros(1) if admitted is None else np.bincount(problem.host[rows], tried, len(admitted)) - admitted * (1 + _ROUNDING)
        is_too_much = float(tried.sum()) > room * (1 + _ROUNDING) or float(asked.max(initial=0.0)) > 0
        found = best if is_too_much else solved(tried)
        if is_too_much or found[1] > above * (1 + _TIE):
            most_pages = count - 1
        else:
            least, best = count, found
    return best
