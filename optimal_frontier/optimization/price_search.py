"""The one-dimensional search for the price at which all pages together spend the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, log1p, nextafter

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.optimization.priced_pages import Spending

#: Accepted miss of the budget, relative to what the pages between their bounds spend; the rest is made up by scaling their rates.
TOLERANCE = 1e-9
#: Smallest price / top that is told from 0.
_SMALLEST = 1e-300
#: Step of logit(price / top) below which two points are nearby.
_NEARBY = 0.1


@dataclass(frozen=True, slots=True)
class Clearing:
    """Where demand meets the budget.

    Attributes
    ----------
    price : float
        The price, unless `cheaper` is set.
    spending : Spending
        At that price.
    cheaper : float or None
        Set if spending jumps over the budget between `cheaper` and `price`, neighbouring floats: a mixture of both meets it.
    """

    price: float
    spending: Spending
    cheaper: float | None = None


def clearing_price(
    spend: Callable[[float], Spending], budget: float, least: float, top: float, start: float, tolerance: float = TOLERANCE
) -> Clearing:
    """Find the price at which `spend` meets the budget.

    Parameters
    ----------
    spend : callable
        Price -> `Spending`, non-increasing in the price; `least` at `top` and above.
    budget : float
        Larger than `least`, and less than what is spent as the price goes to 0.
    least : float
        Spending at the minimum rates.
    top : float
        Highest price at which any page is worth more than its minimum.
    start : float
        First guess, in (0, top).
    tolerance : float
        Accepted miss of the budget, as `TOLERANCE`.

    Returns
    -------
    Clearing

    Raises
    ------
    ConvergenceError
        The price did not settle in 400 steps.

    Notes
    -----
    Safeguarded Newton on log(spending - least) as a function of logit(price / top): straight lines to one side (many visits between
    changes, slope -1/2) and slowly varying on the other (price near the top).
    """

    def price_at(logit: float) -> float:
        return top / (1.0 + exp(-logit)) if logit > -700 else top * exp(logit)

    low_logit, high_logit = -inf, inf
    low, high = 0.0, top
    low_was_tried = False
    high_spending = Spending(least, 0.0, 0.0)
    ratio = min(max(start / top, _SMALLEST), 1 - 1e-15)
    logit = log(ratio) - log1p(-ratio)
    target = log(budget - least) if budget > least else -inf
    miss = inf
    width = inf
    last, last_logit = high_spending, inf
    for iteration in range(400):
        price = price_at(logit)
        if not low < price < high:
            price = low + 0.5 * (high - low)
            if not low < price < high:
                break
            logit = log(max(price / top, _SMALLEST)) - log1p(-price / top) if price < top else high_logit
        now = spend(price)
        previous, miss = miss, now.total - budget
        if abs(miss) <= tolerance * now.free or abs(miss) <= 1e-14 * budget:
            return Clearing(price, now)
        if miss > 0:
            low, low_logit, low_was_tried = price, logit, True
        else:
            high, high_logit, high_spending = price, logit, now
        excess = now.total - least
        proposal = inf
        slope = now.slope * (1 - price / top)
        if now is not last and 0 < abs(logit - last_logit) < _NEARBY and now.total != last.total:
            # Between points nearby the chord is better: the few pages whose value is next to the price dominate the slope at a point.
            slope = min(0.0, (now.total - last.total) / (logit - last_logit)) or slope
        last, last_logit = now, logit
        if excess > 0 and slope < 0:
            proposal = logit - max(-30.0, min(30.0, (log(excess) - target) * excess / slope))
        stalled = iteration % 3 == 2 and high_logit - low_logit > 0.5 * width and abs(miss) > 0.1 * abs(previous)
        if iteration % 3 == 2:
            width = high_logit - low_logit
        if not low_logit < proposal < high_logit or stalled:
            if low_logit == -inf:
                proposal = logit - 4.0 * 2 ** min(iteration, 6)
            elif high_logit == inf:
                proposal = logit + 4.0 * 2 ** min(iteration, 6)
            else:
                proposal = 0.5 * (low_logit + high_logit)
        logit = proposal
        if nextafter(low, inf) >= high:
            break
    else:
        raise ConvergenceError(f"the price did not settle: still between {low!r} and {high!r}")
    if not low_was_tried:
        spend(low)  # callers keep what the pages do at both ends
    return Clearing(high, high_spending, low)
