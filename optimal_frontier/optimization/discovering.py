"""Pages that yield new pages: how often is each worth a visit at a price, and what is the price of a budget?

A page that yields new pages worth ``d`` a second (their number times their importance) is worth a visit for two reasons. After a time t
the visit is worth ``A (1 - (1 + x t) exp(-x t))`` for its own changes, as that of any page (`response`), and ``d t^2 / 2`` for what waits
to be found: pages that nobody has found are stale ones. The sum rises without end in t, so such a page is visited at every price.
Memoryless visits at rate f are worth ``w x / (x + f)^2 + d / f^2``.

Only a few pages of a crawl are such pages, so they are answered one by one, beside the table that answers all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.priced_pages import PricedPages
from optimal_frontier.optimization.response import marginal_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Accepted miss of a budget or limit, relative, before the last step makes it exact.
_TOLERANCE: Final = 1e-12
#: Accepted miss of the logarithm of what a visit is worth: rounding.
_ROUNDING: Final = 4e-15
_STEPS: Final = 200
#: Logarithm of the largest ratio of two values that is told from infinity.
_MOST: Final = 600.0


class Discovering(NamedTuple):
    """Pages of which some yield new ones.

    Attributes
    ----------
    importance, change_rate, discovery : ndarray (n,)
        Weights, changes per unit of time, and what the new pages of a unit of time are worth; 0 for most pages.
    objective : {"freshness", "changes"}
    policy : {"periodic", "poisson"}
    """

    importance: Floats
    change_rate: Floats
    discovery: Floats
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]


class Limits(NamedTuple):
    """What rates have to keep to: bounds (n,), host of each page (n,), and most visits of each host (hosts,); None: no such limit."""

    low: Floats
    high: Floats
    host: Ints | None = None
    most: Floats | None = None


class Found(NamedTuple):
    """Best rates (n,), the price of a visit (0: the budget serves all), and what bounds and limits leave of the budget."""

    rates: Floats
    multiplier: float
    unused: float


def discovering_waits(log_price: Floats | float, pages: Discovering) -> tuple[Floats, Floats]:
    """Return after which time a visit is worth the price, and by what share that grows with the log price; all `discovery` above 0.

    Notes
    -----
    In units of the wait that discovery alone would give, ``sqrt(2 price / d)``, the wait y solves ``y^2 + alpha m(beta y) = 1`` with
    ``m(r) = 1 - (1 + r) exp(-r)``; the rate of memoryless visits ``1 / y^2 + gamma / (kappa + y)^2 = 1``, in units of ``sqrt(d / price)``.
    Newton's method on logarithms, inside a bracket: 5 to 10 steps.
    """
    w, x, d = pages.importance, pages.change_rate, pages.discovery
    price = np.broadcast_to(np.asarray(log_price, np.float64), d.shape)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        if pages.policy == "poisson":
            alone = 0.5 * (np.log(d) - price)
            gamma, kappa = w * x / d, np.exp(np.log(x) - alone)

            def worth(v: Floats) -> tuple[Floats, Floats]:
                y = np.exp(v)
                found, own = 1.0 / (y * y), gamma / (kappa + y) ** 2
                return np.log(found + own), -2.0 * (found + own * y / (kappa + y)) / (found + own)

            v, steepness = _root(worth, np.zeros(d.shape), 0.5 * np.log1p(gamma))
            return np.exp(-(alone + v)), -1.0 / steepness
        alone = 0.5 * (np.log(2.0) + price - np.log(d))
        log_value = np.log(w) - (np.log(x) if pages.objective == "freshness" else 0.0)
        moves = (x > 0.0) & (w > 0.0)
        alpha = np.where(moves, np.exp(np.minimum(log_value - price, _MOST)), 0.0)
        beta = np.where(moves, np.exp(np.log(x) + np.where(moves, np.maximum(alone, alone + log_value - price - _MOST), 0.0)), 0.0)

        def worth(v: Floats) -> tuple[Floats, Floats]:
            y = np.exp(v)
            r = beta * y
            own = alpha * marginal_share(r)
            total = y * y + own
            return np.log(total), (2.0 * y * y + alpha * r * r * np.exp(-np.minimum(r, 700.0))) / total

        v, steepness = _root(worth, -0.5 * np.log1p(alpha * beta * beta), np.zeros(d.shape))
        return np.exp(alone + v), 1.0 / steepness


def _root(worth: Callable[[Floats], tuple[Floats, Floats]], below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Return where the logarithm of a worth is 0, between two bounds, and its derivative there."""
    falls = worth(below)[1] < 0
    v = below.copy()
    for _ in range(_STEPS):
        miss, steepness = worth(v)
        is_low = (miss < 0) != falls
        below, above = np.where(is_low, v, below), np.where(is_low, above, v)
        step = v - miss / steepness
        step = np.where((step > below) & (step < above), step, 0.5 * (below + above))
        if np.all((np.abs(miss) <= _ROUNDING) | (step == v)):
            break
        v = step
    return v, worth(v)[1]


def discovery_values(pages: Discovering, rates: Floats) -> Floats:
    """Return what one more visit per unit of time is worth for what it finds, at given rates; inf at rate 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1.0 if pages.policy == "poisson" else 0.5
        return np.asarray(np.where(pages.discovery > 0, share * pages.discovery / rates**2, 0.0))


def solve_discovering(pages: Discovering, limits: Limits, budget: float, start: float = 0.0) -> Found:
    """Return the best rates within a budget, bounds and limits of hosts.

    Parameters
    ----------
    pages : Discovering
        Importance and change rates that are known to be valid.
    limits : Limits
        Minima fit the budget and the limits of their hosts.
    budget : float
        Visits per unit of time, above 0.
    start : float
        Price of an earlier solution of nearly the same problem; 0: none.

    Returns
    -------
    Found

    Notes
    -----
    Without limits of hosts one price, at which all pages together spend the budget. A host at its limit has the price at which its pages
    spend that; it does not depend on the budget, so these are found first, all together. Where spending jumps at a price, the rates on
    both sides of it are mixed. About 10 sweeps over the pages, each 10 ns a page and 20 us for each thousand of pages that yield.
    """
    response = PricedResponse(pages, limits)
    least = float(limits.low.sum())
    if least >= budget * (1.0 - _TOLERANCE):
        return Found(limits.low.copy(), response.best_marginal(limits.low), 0.0)
    guess = float(np.log(start)) if start > 0 else response.guess(budget)
    most, host = limits.most, limits.host
    if most is None or host is None:
        most, host = np.array([np.inf]), np.zeros(len(limits.low), np.int64)
    can = np.bincount(host, weights=response.highest(), minlength=len(most))
    own = np.full(len(most), -np.inf)
    full = can > most
    rates = response.highest()
    if full.any():
        own[full], rates = prices_of_full_hosts(response, host, most, full, guess)
    usable = float(np.minimum(can, most).sum())
    if usable <= budget:
        return Found(rates, 0.0, budget - usable)

    def spend(log_price: float) -> tuple[float, float]:
        found, bend = response.at(log_price)
        by_host = np.bincount(host, weights=found, minlength=len(most))
        slopes = np.bincount(host, weights=bend, minlength=len(most))
        return float(np.minimum(by_host, most).sum()), float(slopes[by_host < most].sum())

    low, high = _bracket(spend, budget, guess)
    cheap, dear = response.at(low)[0], response.at(high)[0]
    open_ = ~(own > high)[host]
    missing = budget - float(np.minimum(np.bincount(host, weights=dear, minlength=len(most)), most).sum())
    between = float((cheap - dear)[open_].sum())
    share = min(max(missing / between, 0.0), 1.0) if between > 0 else 0.0
    rates = np.where(open_, dear + share * (cheap - dear), rates)
    return Found(rates, float(np.exp(high)), 0.0)


def _bracket(spend: Callable[[float], tuple[float, float]], budget: float, guess: float) -> tuple[float, float]:
    """Return two log prices, as near as rounding lets them be, of which the lower one spends the budget or more, the higher one less."""
    low, high, at, reach = -np.inf, np.inf, guess, 1.0
    for _ in range(_STEPS):
        total, slope = spend(at)
        if total >= budget:
            low = at
        else:
            high = at
        if abs(total - budget) <= _TOLERANCE * budget:
            # A hair further the other side is met too, so that what is mixed is next to nothing.
            other = at + (1.0 if total >= budget else -1.0) * max(1e-9, 1e-12 * abs(at))
            low, high = (at, min(other, high)) if total >= budget else (max(other, low), at)
            return low, high
        step = at + np.log(total / budget) * -total / slope if slope < 0 and total > 0 else np.nan
        if low < step < high and np.isfinite(step) and abs(step - at) <= 30.0:
            at = float(step)
        elif np.isinf(low) or np.isinf(high):
            at, reach = (high - reach if np.isinf(low) else low + reach), 2.0 * reach
        else:
            at = 0.5 * (low + high)
        if not low < at < high:
            break
    return low, high


class RatesAtPrice(Protocol):
    """Pages that answer to a price."""

    def at(self, log_price: Floats) -> tuple[Floats, Floats]:
        """Return rates at a log price of each page, and their derivatives by it; 0 at a bound."""

    def highest(self) -> Floats:
        """Return the highest rates that pages may want."""


def prices_of_full_hosts(response: RatesAtPrice, host: Ints, most: Floats, full: NDArray[np.bool_], guess: float) -> tuple[Floats, Floats]:
    """Return the log prices at which hosts spend just their limits, and the rates of all pages at these.

    Parameters
    ----------
    response : RatesAtPrice
        The pages.
    host : ndarray of int (n,)
        Of each page, from 0.
    most : ndarray (hosts,)
        Most visits per unit of time.
    full : ndarray of bool (hosts,)
        Hosts whose highest rates are above that; the prices are of these.
    guess : float
        Log price to begin with.
    """
    hosts = len(most)
    low, high = np.full(hosts, -np.inf), np.full(hosts, np.inf)
    at, reach = np.full(hosts, guess), np.ones(hosts)
    done, met = ~full, np.zeros(hosts, bool)
    for _ in range(_STEPS):
        rates, bend = response.at(at[host])
        total, slope = np.bincount(host, weights=rates, minlength=hosts), np.bincount(host, weights=bend, minlength=hosts)
        low, high = np.where(~done & (total >= most), at, low), np.where(~done & (total < most), at, high)
        met |= ~done & (np.abs(total - most) <= _TOLERANCE * most)
        done |= met
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where((slope < 0) & (total > 0), at - np.log(total / most) * total / slope, np.nan)
            good = (step > low) & (step < high) & (np.abs(step - at) <= 30.0)
            middle = np.where(np.isinf(low), high - reach, np.where(np.isinf(high), low + reach, 0.5 * (low + high)))
        reach = np.where(good, reach, 2.0 * reach)
        step = np.where(good, step, middle)
        done |= ~((step > low) & (step < high))
        if done.all():
            break
        at = np.where(done, at, step)
    # On both sides of a jump, and where there is none next to each other.
    apart = 1e-9 + 1e-12 * np.abs(at)
    low, high = np.where(met | np.isinf(low), at - apart, low), np.where(met | np.isinf(high), at + apart, high)
    cheap, dear = response.at(np.where(full, low, at)[host])[0], response.at(np.where(full, high, at)[host])[0]
    spent = np.bincount(host, weights=dear, minlength=hosts)
    between = np.bincount(host, weights=cheap - dear, minlength=hosts)
    share = np.clip(np.divide(most - spent, between, out=np.zeros(hosts), where=full & (between > 0)), 0.0, 1.0)
    highest = response.highest()
    return high[full], np.where(full[host], dear + share[host] * (cheap - dear), highest)


class PricedResponse:
    """Rates of all pages at a log price, or at one of each page."""

    def __init__(self, pages: Discovering, limits: Limits) -> None:
        self.pages, self.limits = pages, limits
        self.hubs = np.flatnonzero(pages.discovery > 0)
        self._some = pages._replace(
            importance=pages.importance[self.hubs], change_rate=pages.change_rate[self.hubs], discovery=pages.discovery[self.hubs]
        )
        self._plain = PricedPages(
            pages.importance, pages.change_rate, pages.objective == "freshness", None, limits.low, limits.high, np.arange(len(limits.low))
        )

    def at(self, log_price: Floats | float) -> tuple[Floats, Floats]:
        """Return rates and their derivatives by the log price; 0 at a bound."""
        pages, (low, high) = self.pages, self.limits[:2]
        rates, bend = np.empty(len(low)), np.empty(len(low))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            price = np.exp(np.clip(log_price, -_MOST, _MOST))
            if pages.policy == "poisson":
                speed = np.sqrt(pages.importance * pages.change_rate / price)
                rates[:], bend[:] = np.where(pages.change_rate > 0, np.maximum(speed - pages.change_rate, 0.0), 0.0), -0.5 * speed
                bend[rates <= 0] = 0.0
            elif price.ndim:
                self._plain.spend(0.0, price, rates, bend, tiny=True)
            else:
                self._plain.spend(float(price), None, rates, bend, tiny=True)
            if len(self.hubs):
                own = log_price[self.hubs] if isinstance(log_price, np.ndarray) else log_price
                wait, share = discovering_waits(np.clip(own, -_MOST, _MOST), self._some)
                rates[self.hubs] = 1.0 / wait
                bend[self.hubs] = -share / wait
        inside = (rates > low) & (rates < high)
        return np.minimum(np.maximum(rates, low), high), np.where(inside, bend, 0.0)

    def highest(self) -> Floats:
        """Return the maxima of pages that are worth a visit, the minima of all others."""
        pages, (low, high) = self.pages, self.limits[:2]
        is_worth = (pages.discovery > 0) | ((pages.importance > 0) & (pages.change_rate > 0))
        return np.where(is_worth, np.maximum(high, low), low)

    def best_marginal(self, rates: Floats) -> float:
        """Return the highest finite worth of one more visit at given rates."""
        pages = self.pages
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if pages.policy == "poisson":
                own = pages.importance * pages.change_rate / (rates + pages.change_rate) ** 2
            else:
                value = pages.importance / pages.change_rate if pages.objective == "freshness" else pages.importance
                own = value * marginal_share(pages.change_rate / rates)
            worth = np.where(pages.change_rate > 0, own, 0.0) + discovery_values(pages, rates)
        worth = worth[np.isfinite(worth) & (self.limits.high > rates)]
        return float(worth.max(initial=0.0))

    def guess(self, budget: float) -> float:
        """Return about the log price of a budget: the one of visits that are many times as frequent as changes."""
        pages = self.pages
        worth = (pages.importance * pages.change_rate) if pages.objective == "freshness" else pages.importance * pages.change_rate**2
        root = float(np.sqrt(0.5 * (worth + pages.discovery)).sum())
        return 2.0 * float(np.log(root / budget)) if root > 0 else 0.0
