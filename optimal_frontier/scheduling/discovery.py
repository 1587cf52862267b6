"""When a page that yields new pages is worth a visit: `numbers.wait_at_price` for such pages.

`wait_with_discovery` is for one page whose visit was judged, `optimization.discovering.discovering_waits` for the planner's many; a test
holds the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from optimal_frontier.optimization.discovering import Discovering, discovering_waits
from optimal_frontier.scheduling.numbers import MOST_SLOPE, Floats, Objective, Policy, wait_at_price, waits_at_price

_MOST: Final = 600.0
_STEPS: Final = 100
#: Accepted miss of the logarithm of what a visit is worth: rounding.
_ROUNDING: Final = 4e-15
#: Changes between two visits below which their share is taken from its series.
_SMALL: Final = 0.01


def discovery_rate(yielded: float, objective: Objective, newcomer_rate: float) -> float:
    """Return what new pages are worth that a page yields, in the unit of the objective.

    Parameters
    ----------
    yielded : float
        Importance of the new pages of a second.
    objective : {"freshness", "changes"}
        A page that nobody has found is a stale one; or one whose changes nobody sees.
    newcomer_rate : float
        Changes per second that a page is believed to have of which nothing is known yet.

    Examples
    --------
    >>> discovery_rate(0.5, "freshness", 0.1), discovery_rate(0.5, "changes", 0.1)
    (0.5, 0.05)
    """
    return yielded if objective == "freshness" else yielded * newcomer_rate


def wait_with_discovery(
    log_price: float,
    importance: float,
    change_rate: float,
    discovery: float,
    objective: Objective = "freshness",
    policy: Policy = "periodic",
) -> tuple[float, float]:
    """Return how long after a visit the next one is worth the price, and by how much that grows with the log price.

    Parameters
    ----------
    log_price, importance, change_rate, objective, policy
        As in `wait_at_price`.
    discovery : float
        What the new pages of a second are worth, see `discovery_rate`; with 0 it is `wait_at_price`.

    Returns
    -------
    wait, slope : float
        Seconds, always finite for `discovery` above 0. The slope is at most `MOST_SLOPE` waits.

    Notes
    -----
    Evenly spaced visits: after the wait t a visit is worth ``A (1 - (1 + x t) exp(-x t)) + d t^2 / 2``, with A as in `wait_at_price`, x
    the change rate and d the discovery. If nothing else counts t is ``sqrt(2 price / d)``.

    Examples
    --------
    >>> wait, slope = wait_with_discovery(math.log(50.0), 1.0, 1e9, 0.25)
    >>> round(wait, 6), round(slope, 6)
    (20.0, 10.0)
    """
    if discovery <= 0.0:
        return wait_at_price(log_price, importance, change_rate, objective, policy)
    if log_price == -math.inf:
        return 0.0, 0.0
    price = min(max(log_price, -_MOST), _MOST)
    if policy == "poisson":
        return _memoryless(price, importance, change_rate, discovery)
    alone = 0.5 * (math.log(2.0 / discovery) + price)
    if change_rate <= 0.0:
        return math.exp(alone), 0.5 * math.exp(alone)
    log_value = math.log(importance) - (math.log(change_rate) if objective == "freshness" else 0.0)
    alpha = math.exp(min(log_value - price, _MOST))
    beta = math.exp(min(math.log(change_rate) + max(alone, alone + log_value - price - _MOST), _MOST))

    def at(v: float) -> tuple[float, float]:
        y = math.exp(v)
        r = beta * y
        caught = math.exp(-r) if r < 700.0 else 0.0
        total = y * y + alpha * (_marginal_share_series(r) if r < _SMALL else 1.0 - (1.0 + r) * caught)
        return math.log(total), (2.0 * y * y + alpha * r * r * caught) / total

    v, steepness = _root(at, -0.5 * math.log1p(min(alpha * beta * beta, 1e300)), 0.0)
    wait = math.exp(alone + v)
    return wait, min(1.0 / steepness, MOST_SLOPE) * wait


def _memoryless(price: float, importance: float, change_rate: float, discovery: float) -> tuple[float, float]:
    """The mean interval of memoryless visits: their rate f solves ``w x / (x + f)^2 + d / f^2 = price``."""
    alone = 0.5 * (math.log(discovery) - price)
    gamma = importance * change_rate / discovery
    kappa = math.exp(min(math.log(change_rate) - alone, _MOST)) if change_rate > 0.0 else 0.0

    def at(v: float) -> tuple[float, float]:
        y = math.exp(v)
        found, own = 1.0 / (y * y), gamma / (kappa + y) ** 2
        return math.log(found + own), -2.0 * (found + own * y / (kappa + y)) / (found + own)

    v, steepness = _root(at, 0.0, 0.5 * math.log1p(gamma))
    wait = math.exp(-(alone + v))
    return wait, min(-1.0 / steepness, MOST_SLOPE) * wait


def _root(at: Callable[[float], tuple[float, float]], below: float, above: float) -> tuple[float, float]:
    """Where a monotone function is 0 between two bounds, and its derivative there; ``at`` gives both. Newton, from the lower bound."""
    v, steepness = below, 0.0
    for _ in range(_STEPS):
        miss, steepness = at(v)
        if (miss < 0.0) == (steepness > 0.0):
            below = v
        else:
            above = v
        step = v - miss / steepness
        if not below < step < above:
            step = 0.5 * (below + above)
        if abs(miss) <= _ROUNDING or step == v:
            break
        v = step
    return v, steepness


def _marginal_share_series(r: float) -> float:
    """``1 - (1 + r) exp(-r)`` for small r, to 1e-14."""
    return r * r * (1 / 2 - r * (1 / 3 - r * (1 / 8 - r * (1 / 30 - r * (1 / 144 - r / 840)))))


def waits_with_discovery(
    log_price: Floats | float,
    importance: Floats,
    change_rate: Floats,
    discovery: Floats,
    objective: Objective = "freshness",
    policy: Policy = "periodic",
) -> tuple[Floats, Floats]:
    """Return waits and slopes of many pages, arrays (n,): `wait_with_discovery` for arrays."""
    wait, slope = waits_at_price(log_price, importance, change_rate, objective, policy)
    hubs = np.flatnonzero(discovery > 0.0)
    if len(hubs):
        price = np.broadcast_to(np.asarray(log_price, np.float64), wait.shape)[hubs]
        some = Discovering(importance[hubs], change_rate[hubs], discovery[hubs], objective, policy)
        wait[hubs], share = discovering_waits(np.clip(price, -_MOST, _MOST), some)
        slope[hubs] = np.minimum(share, MOST_SLOPE) * wait[hubs]
        free = hubs[price == -np.inf]
        wait[free] = slope[free] = 0.0
    return wait, slope
