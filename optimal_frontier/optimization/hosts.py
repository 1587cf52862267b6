"""Politeness inside the optimum: a maximum rate for every host, each enforced by a surcharge of its own.

A page on a host with surcharge ``s`` faces the price ``multiplier x cost + s``. A host below its limit has no surcharge; one at its limit
has the surcharge at which its pages spend just that. Without costs the full price of a capped host, multiplier + surcharge, does not
depend on the multiplier, so multiplier and all host prices are improved together, one sweep over the pages per step. With costs the
surcharges are settled afresh for every multiplier that is tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.optimization.pages import PricedPages, Spending
from optimal_frontier.optimization.problem import Floats

#: Accepted miss of a limit, relative to what the host's pages spend above their minima; the rest is made up by scaling.
TOLERANCE = 1e-7
_SWEEPS = 200


class HostSums(NamedTuple):
    """Sums over the pages of each host."""

    visits: Floats
    bend: Floats  #: d visits / d log(price of the host)


class HostMarket:
    """Pages, host limits, and the prices of the hosts.

    Parameters
    ----------
    pages : PricedPages
        With `host`.
    limits : ndarray (hosts,)
        Maximum visits per unit of time of each host; inf for none.
    rates, bend : ndarray (n,)
        Working memory; `rates` holds the rates of the last sweep.
    """

    def __init__(self, pages: PricedPages, limits: Floats, rates: Floats, bend: Floats) -> None:
        if pages.host is None:
            raise TypeError("pages without hosts")
        self.pages = pages
        self.host = pages.host
        self.limits = limits
        self.rates = rates
        self.bend = bend
        self.least = np.zeros(limits.size)
        if pages.low is not None:
            np.add.at(self.least, self.host, np.broadcast_to(np.asarray(pages.low), pages.size))
        self.most = np.full(limits.size, np.inf)
        self.top = np.zeros(limits.size)
        buffer = np.empty(pages.size if pages.size < 16384 else 16384)
        for block in pages.blocks():
            np.maximum.at(self.top, self.host[block], pages.value(block, buffer[: block.stop - block.start]))
        self.surcharge = np.zeros(limits.size)

    def sums(self, values: Floats) -> Floats:
        """Of per-page values, by host."""
        return np.bincount(self.host, weights=values, minlength=self.limits.size)

    def sweep(self, multiplier: float, surcharge: Floats) -> HostSums:
        """Rates of all pages at given prices, summed by host."""
        visits, bends = np.zeros(self.limits.size), np.zeros(self.limits.size)
        tiny = multiplier < 2.0**-100 * float(self.top.max())
        for answer in self.pages.answers(multiplier, surcharge, self.rates, self.bend, tiny=tiny):
            ids = self.host[answer.block]
            np.add.at(visits, ids, answer.rates)
            np.add.at(bends, ids, answer.bend)
        return HostSums(visits, bends)

    # --- without costs: one price per host -------------------------------------------------------------------------------------

    def clear(self, budget: float, start: float) -> float | None:
        """Find multiplier and host prices together; None if that does not settle (then nest).

        Notes
        -----
        Newton on log(visits - minimum) as a function of logit(price / top) for each host, inside a bracket that every sweep narrows; the
        multiplier follows from the hosts' power-law models. Quadratic convergence, typically four or five sweeps.
        """
        multiplier = start
        full = np.full(self.limits.size, start)  # multiplier + surcharge
        low, high = np.zeros(self.limits.size), self.top.copy()
        for _ in range(30):
            np.maximum(full, multiplier, out=full)
            now = self.sweep(multiplier, full - multiplier)
            excess = np.maximum(now.visits - self.least, 0.0)
            rider = full <= multiplier
            over = now.visits > self.limits * (1 + TOLERANCE)
            miss = budget - float(now.visits.sum())
            free = float(excess.sum(where=rider))
            tight = np.abs(now.visits - self.limits) <= TOLERANCE * excess
            if abs(miss) <= TOLERANCE * free and not (rider & over).any() and (rider | tight).all():
                self.surcharge = full - multiplier
                return multiplier
            too_cheap = now.visits > self.limits
            low = np.where(too_cheap, np.maximum(low, full), low)
            high = np.where(too_cheap, high, np.minimum(high, full))
            target = self._host_newton(full, excess, now.bend, low, high)
            multiplier = self._model_multiplier(budget, multiplier, full, target, excess, now)
            full = np.maximum(target, multiplier)
        return None

    def _host_newton(self, full: Floats, excess: Floats, bend: Floats, low: Floats, high: Floats) -> Floats:
        """Price at which each host would just reach its limit, as far as the last sweep tells."""
        room = self.limits - self.least
        share = np.clip(full / self.top, 0.0, 1.0)
        logit = np.log(share) - np.log1p(-share)
        moved = logit - np.clip((np.log(excess) - np.log(room)) * excess / (bend * (1 - share)), -30, 30)
        price = self.top / (1 + np.exp(-moved))
        good = (price > low) & (price < high)
        middle = np.where(low > 0, np.sqrt(low) * np.sqrt(high), 0.0)
        late = (low > 0) & (high < 2 * low)
        middle = np.where(late, 0.5 * (low + high), middle)
        price = np.where(good, price, middle)
        price = np.where(np.isinf(self.limits) | (self.top == 0), 0.0, price)
        result: Floats = np.where((room <= 0) & (self.top > 0), self.top, price)
        return result

    def _model_multiplier(self, budget: float, multiplier: float, full: Floats, target: Floats, excess: Floats, now: HostSums) -> float:
        """Multiplier at which the hosts spend the budget, if each one's spending is a power of its price, capped at its limit."""
        live = (excess > 0) & (full > 0)
        exponent = np.where(live, np.minimum(now.bend / np.where(live, excess, 1.0), 0.0), 0.0)
        log_full = np.log(np.where(live, full, 1.0))
        log_excess = np.log(np.where(live, excess, 1.0))
        cap = np.log(np.maximum(self.limits - self.least, 0.0))
        base = float(self.least.sum())
        x = float(np.log(multiplier))
        low, high = x - 40.0, x + 40.0
        for _ in range(60):
            model = log_excess + exponent * (x - log_full)
            spent = np.where(live, np.exp(np.minimum(model, cap)), 0.0)
            over = base + float(spent.sum()) - budget
            if over > 0:
                low = x
            else:
                high = x
            slope = float((spent * exponent).sum(where=live & (model < cap)))
            if abs(over) <= 1e-12 * budget or high - low < 1e-14:
                break
            x = x - over / slope if slope < 0 else np.inf
            if not low < x < high:
                x = 0.5 * (low + high)
        return float(np.exp(x))

    # --- any problem: surcharges settled for one multiplier ------------------------------------------------------------------

    def settle(self, multiplier: float, tolerance: float = 1e-9) -> Spending:
        """Find the surcharges that keep every host within its limit at this multiplier; warm-started from the last ones."""
        pages, hosts = self.pages, self.limits.size
        low, high = np.zeros(hosts), self.top.copy()
        surcharge = np.minimum(self.surcharge, self.top)
        cost = 1.0 if pages.cost is None else pages.cost
        # Newton runs on log(surcharge + shift), shift being the price that a typical page of the host pays without surcharge
        shift = multiplier * (1.0 if pages.cost is None else self._mean_cost())
        room = self.limits - self.least
        for _ in range(_SWEEPS):
            tiny = multiplier < 2.0**-100 * float(self.top.max())
            spending = pages.spend(multiplier, surcharge, self.rates, self.bend, tiny=tiny)
            visits = self.sums(self.rates)
            excess = np.maximum(visits - self.least, 0.0)
            within = (visits <= self.limits * (1 + 1e-12)) & (surcharge == 0)
            tight = np.abs(visits - self.limits) <= tolerance * excess
            closed = (high - low <= 4e-16 * high) | (room <= 0)
            if (within | tight | (closed & (visits <= self.limits * (1 + 1e-9)))).all():
                break
            full_price = multiplier * cost + surcharge[self.host]
            slope = self.sums(self.bend / full_price) * (surcharge + shift)  # d visits / d log(surcharge + shift)
            low = np.where(visits > self.limits, np.maximum(low, surcharge), low)
            high = np.where(visits > self.limits, high, np.minimum(high, surcharge))
            step = np.clip((np.log(excess) - np.log(room)) * excess / slope, -30, 30)
            proposal = (surcharge + shift) * np.exp(-step) - shift
            middle = np.sqrt((low + shift) * (high + shift)) - shift
            middle = np.where((middle > low) & (middle < high), middle, high)
            good = (proposal > low) & (proposal < high)
            fresh = np.where(good, proposal, middle)
            fresh = np.where((visits <= self.limits) & (proposal <= 0), 0.0, fresh)
            fresh = np.where(room <= 0, np.where(visits > self.limits, high, surcharge), fresh)
            keep = within | tight
            surcharge = np.where(keep, surcharge, np.where(np.isinf(self.limits), 0.0, fresh))
        else:
            raise ConvergenceError("the host prices did not settle")
        self.surcharge = surcharge
        return Spending(spending.total, spending.free, self._total_slope(multiplier, surcharge))

    def _mean_cost(self) -> Floats:
        count = np.bincount(self.host, minlength=self.limits.size)
        return self.sums(np.broadcast_to(np.asarray(self.pages.cost), self.pages.size)) / np.maximum(count, 1)

    def _total_slope(self, multiplier: float, surcharge: Floats) -> float:
        """d spending / d log(multiplier), with the surcharges of capped hosts following."""
        cost = np.broadcast_to(np.asarray(1.0 if self.pages.cost is None else self.pages.cost), self.pages.size)
        per_price = self.bend / (multiplier * cost + surcharge[self.host])
        by_surcharge = self.sums(per_price)
        by_multiplier = self.sums(per_price * cost)
        direct = self.sums(per_price * cost * cost)
        capped = (surcharge > 0) & (by_surcharge < 0)
        following = np.divide(by_multiplier**2, by_surcharge, out=np.zeros_like(direct), where=capped)
        fixed = (surcharge > 0) & ~capped
        return multiplier * float(np.sum(np.where(fixed, 0.0, direct - following)))

    # --- afterwards ------------------------------------------------------------------------------------------------------------

    def scale_to_limits(self, free: Floats) -> None:
        """Bring the hosts with a surcharge to exactly their limits by scaling the rates of their pages between bounds.

        `free` holds 1.0 for those pages; it is overwritten.
        """
        visits = self.sums(self.rates)
        scalable = self.sums(self.rates * free)
        capped = (self.surcharge > 0) & (scalable > 0)
        factor = np.where(capped, (self.limits - visits) / np.where(capped, scalable, 1.0), 0.0)
        np.maximum(factor, -1.0, out=factor)
        np.multiply(free, factor[self.host], out=free)
        np.multiply(free, self.rates, out=free)
        np.add(self.rates, free, out=self.rates)
        self.pages.clip(slice(None), self.rates)
