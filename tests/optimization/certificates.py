"""Independent judges of a solution: scipy's Gamma quantile, root finder and optimisers, and the weak-duality bound.

The bound needs nothing from the solver to be right: for any prices, the sum over pages of the best (value - price x rate), plus price x
budget, is at least the optimum. A solution whose objective comes within 1e-9 of it is optimal to 1e-9, however it was found.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainccinv, gammaincinv


def worth(importance, change_rate, objective):
    with np.errstate(divide="ignore", invalid="ignore"):
        w = importance / change_rate if objective == "freshness" else importance.astype(float)
    return np.where(change_rate > 0, w, 0.0)


def rate_at(w, change_rate, price, low=0.0, high=np.inf):
    """Best rates at given prices, by scipy's Gamma(2) quantile."""
    with np.errstate(all="ignore"):
        q = price / w
        r = np.where(q < 0.5, gammaincinv(2, np.minimum(q, 1)), gammainccinv(2, np.maximum((w - price) / w, 0)))
        rates = np.where((w > price) & (change_rate > 0), change_rate / r, 0.0)
    return np.clip(rates, low, high)


def utility(importance, change_rate, rates, objective):
    """Per page, from the definition."""
    with np.errstate(all="ignore"):
        r = np.where(rates > 0, change_rate / rates, np.inf)
        caught = -np.expm1(-r)
        if objective == "changes":
            return np.where(rates > 0, importance * rates * caught, 0.0)
        share = np.where(r > 1e-300, caught / r, 1.0)
        return importance * np.where(change_rate == 0, 1.0, np.where(rates > 0, share, 0.0))


def dual_bound(
    importance, change_rate, budget, objective, multiplier, *, low=0.0, high=np.inf, cost=1.0, host=None, limits=None, rates=None
):
    """Upper bound on the optimum from any multiplier; surcharges of the hosts are read off `rates`, and any surcharge >= 0 is valid."""
    n = importance.size
    w = worth(importance, change_rate, objective)
    low, high, cost = (np.broadcast_to(np.asarray(x, float), n) for x in (low, high, cost))
    price = multiplier * cost
    bound = multiplier * budget
    if host is not None:
        with np.errstate(all="ignore"):
            r = np.where(rates > 0, change_rate / rates, np.inf)
            q = np.where(np.isfinite(r), np.where(r < 1e-4, r * r / 2 - r**3 / 3, -np.expm1(-r) - r * np.exp(-r)), 1.0)
        inside = (rates > low) & (rates < high)
        surcharge = np.zeros(limits.size)
        np.maximum.at(surcharge, host[inside], (w * q - price)[inside])
        used = np.bincount(host, weights=rates, minlength=limits.size)
        surcharge[used < limits * (1 - 1e-6)] = 0.0
        bound += float(surcharge @ np.where(np.isfinite(limits), limits, 0.0))
        price = price + surcharge[host]
    best = rate_at(w, change_rate, price, low, high)
    return bound + float(np.sum(utility(importance, change_rate, best, objective) - price * best))


def random_problem(rng, n, decades=12.0):
    """Weights and rates over many decades, with ties and zeros."""
    importance = 10.0 ** rng.uniform(-decades / 2, decades / 2, n)
    change_rate = 10.0 ** rng.uniform(-decades / 2, decades / 2, n)
    kind = rng.integers(0, 6)
    if kind == 1:
        importance[:] = importance[0]
    elif kind == 2:
        change_rate[:] = change_rate[0]
    elif kind == 3:
        importance = change_rate * 10.0 ** rng.integers(-2, 3, n)  # the values tie
    elif kind == 4 and n > 1:
        importance[rng.random(n) < 0.2] = 0.0
        change_rate[rng.random(n) < 0.2] = 0.0
        importance[0] = change_rate[0] = 1.0
    elif kind == 5:
        importance, change_rate = rng.random(n) + 1e-9, rng.random(n) + 1e-9
    return importance, change_rate
