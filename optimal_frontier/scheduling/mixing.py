"""One plan for pages of several update models: what a visit is worth is the same for all of them.

`plan_rates` solves for pages that change at a steady rate. Beside them stand pages whose visits are bought by another curve: at update
times (`TimedPages`), or by a heavy-tailed model. At a price each of them says what it buys; what is left of the budget goes to the
others, and their solution has a price. The two prices agree at the optimum of all: what is bought falls with the price, and the price of
the rest rises with what is bought, so there is one such point, found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.updates.repeated_times import repeated_choices
from optimal_frontier.scheduling.planning import RatePlan
from optimal_frontier.settings import Timetable

#: Relative difference of the two prices that is left.
TOLERANCE: Final = 1e-3
#: Halvings of the distance between two prices, and of the number of pages that are bought at a tie.
_HALVINGS: Final = 60
#: Share of what there is to buy that is not worth another solve.
_LITTLE: Final = 1e-4
#: Relative difference of prices that is none: solvers start from what they know, so the same plan twice has not the same last digits.
_ROUNDING: Final = 1e-5
#: A price that is 0 for all that matters, as a share of the highest one.
_NOTHING: Final = 1e-12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Buyers(Protocol):
    """Pages that say what they buy at a price.

    Attributes
    ----------
    rows : ndarray of int (k,)
        Where they stand among the pages of the plan.
    top : float
        A price at which none of them buys more than it must.
    """

    @property
    def rows(self) -> Ints:
        """Where they stand among the pages of the plan."""

    @property
    def top(self) -> float:
        """A price at which none of them buys more than it must."""

    def rates(self, price: Floats) -> Floats:
        """Return the revisit rates at a price for each, visits per second: the higher the price, the fewer."""

    def freshness(self, rates: Floats) -> Floats:
        """Return the share of time in which each copy is fresh."""


@dataclass(frozen=True)
class TimedPages:
    """Pages that are visited at update times.

    Attributes
    ----------
    rows : ndarray of int (k,)
        Where they stand among the pages of the plan.
    period : ndarray (k,)
        Of their timetables, seconds.
    worth : ndarray (k, q)
        What the first visit in a period adds to the objective per visit per second, the second, and so on; 0 where there are fewer times.
    order : ndarray of int (k, q)
        The times in this order.
    fresh : ndarray (k, q)
        Share of time in which the copy is fresh with so many visits in a period.
    least, most : ndarray of int (k,)
        Bounds on the visits in a period. (Longer intervals than a period are not its business: they cost next to nothing.)
    """

    rows: Ints
    period: Floats
    worth: Floats
    order: Ints
    fresh: Floats
    least: Ints
    most: Ints

    @classmethod
    def of_timetable(
        cls,
        timetable: Timetable,
        rows: Ints,
        probabilities: Floats,
        importance: Floats,
        min_rate: Floats,
        max_rate: Floats,
        objective: Literal["freshness", "changes"],
    ) -> TimedPages:
        """Choose the order of visits of pages that share a timetable; `probabilities` has shape (k, q), the others (k,)."""
        times, q = np.array(timetable.times), len(timetable.times)
        lengths = np.append(np.diff(times), times[0] + timetable.period - times[-1]) / timetable.period
        gains, order, fresh = repeated_choices(lengths, probabilities, objective)
        unit = timetable.period if objective == "freshness" else 1.0
        most = np.clip(np.floor(max_rate * timetable.period * (1 + 1e-9)), 1, q).astype(np.int64)
        least = np.minimum(np.floor(min_rate * timetable.period * (1 + 1e-9)), most).astype(np.int64)
        return cls(rows, np.full(len(rows), timetable.period), gains * unit * importance[:, None], order, fresh, least, most)

    @classmethod
    def together(cls, parts: Sequence[TimedPages]) -> TimedPages:
        """Join pages of several timetables."""
        width = max(part.worth.shape[1] for part in parts)

        def filled(table: NDArray[np.generic]) -> NDArray[np.generic]:
            return np.pad(table, [(0, 0), (0, width - table.shape[1])], mode="constant")

        fields = {}
        for name in ("rows", "period", "least", "most"):
            fields[name] = np.concatenate([getattr(part, name) for part in parts])
        for name in ("worth", "order", "fresh"):
            fields[name] = np.concatenate([filled(getattr(part, name)) for part in parts])
        return cls(**fields)

    @property
    def top(self) -> float:
        """A price at which nothing is bought."""
        return float(self.worth.max(initial=0.0)) * 2.0

    def visits(self, rates: Floats) -> Ints:
        """Return the visits in a period that a rate stands for."""
        return np.rint(rates * self.period).astype(np.int64)

    def rates(self, price: Floats) -> Floats:
        """Return visits per second at a price for each page."""
        # What is worth nothing is not bought, though it were free.
        count = np.count_nonzero((self.worth >= price[:, None]) & (self.worth > 0), axis=1)
        return np.asarray(np.clip(count, self.least, self.most) / self.period)

    def freshness(self, rates: Floats) -> Floats:
        """Return the share of time in which each copy is fresh."""
        count = self.visits(rates)
        return np.where(count > 0, self.fresh[np.arange(len(count)), np.maximum(count, 1) - 1], 0.0)

    def masks(self, rates: Floats) -> Floats:
        """Return which times are bought: the sum of 2^j over times j, exact in a double."""
        chosen = np.arange(self.order.shape[1]) < self.visits(rates)[:, None]
        return np.asarray((chosen * 2.0**self.order).sum(axis=1))


def mixed_plan(
    solve: Callable[[Floats], RatePlan],
    buyers: Sequence[Buyers],
    room: float,
    start: float,
    host: Ints | None = None,
    host_room: Floats | None = None,
) -> tuple[RatePlan, list[Floats]]:
    """Plan pages of several models at one price.

    Parameters
    ----------
    solve : callable
        Plans all pages, with those of the buyers pinned at the rates given, all of them in turn.
    buyers : sequence of Buyers
        At least one.
    room : float
        Most that they can have, visits per second: the planned budget less the minima of the other pages.
    start : float
        Price to start from, of the last plan; 0 for none.
    host : ndarray of int, optional
        Host of each of their pages, in turn.
    host_room : ndarray, optional
        Most visits per second that each host has for them.

    Returns
    -------
    plan : RatePlan
        Of all pages.
    rates : list of ndarray
        Of each of the buyers.

    Notes
    -----
    Prices agree to `TOLERANCE`, or until no more than a ten-thousandth of `room` depends on the rest. Visits at update times are whole: one
    that straddles the price is made if it is worth more than what it takes from the others. Solves: one while nothing moves, else about
    ten. Pages of hosts that have no room for what their pages would buy pay a price of their own, at which it fits; they go before the
    other pages of the host.
    """
    market = _Market(buyers, room, host, host_room)
    low, high = market.bottom, market.top
    price = min(max(start, low), high) if start > 0 else high
    best: tuple[float, Floats, RatePlan] | None = None
    for _ in range(_HALVINGS):
        rates = market.rates(price)
        plan = solve(rates) if price >= market.top or market.fits(rates) else None
        if plan is not None and (plan.multiplier <= price * (1 + _ROUNDING) or price >= market.top):
            # Less is bought than at the optimum, or as much: the price of the rest is too low, and that of the optimum in between.
            best, high, low = (price, rates, plan), price, max(low, min(plan.multiplier, price))
        else:
            low = price
            high = min(high, max(plan.multiplier, price)) if plan is not None else high
        if high <= low * (1 + TOLERANCE):
            if best is not None and best[0] == high:
                return market.fill(solve, best, market.rates(low))
            price = high
        elif best is not None and best[0] == high and float((market.rates(low) - best[1]).sum()) <= _LITTLE * room:
            break  # whatever the price between them, it moves next to nothing
        else:
            price = low if low <= market.bottom and price > low else float(np.sqrt(low * high))
    if best is None:
        best = market.top, market.rates(market.top), solve(market.rates(market.top))
    return best[2], market.shares(best[1])


class _Market:
    """What all buyers want at a price."""

    def __init__(self, buyers: Sequence[Buyers], room: float, host: Ints | None, host_room: Floats | None) -> None:
        self._buyers = buyers
        self._sizes = [len(buyer.rows) for buyer in buyers]
        self._host, self._host_room = host, host_room
        #: A price at which no more is bought than must be, and one at which all is that is worth anything.
        self.top = max([buyer.top for buyer in buyers] + [_NOTHING])
        self.bottom = self.top * _NOTHING
        self._room = room

    def shares(self, rates: Floats) -> list[Floats]:
        """Return the rates of each of the buyers."""
        return np.split(rates, np.cumsum(self._sizes)[:-1])

    def fits(self, rates: Floats) -> bool:
        return float(rates.sum()) <= self._room * (1 + 1e-9)

    def rates(self, price: float) -> Floats:
        rates = self._at(np.full(sum(self._sizes), price))
        if self._host is None or self._host_room is None:
            return rates
        over = np.bincount(self._host, weights=rates, minlength=len(self._host_room)) > self._host_room * (1 + 1e-9)
        if not over.any():
            return rates
        high = np.where(over, max(self.top, price), price)
        low = np.where(over, max(price, self.bottom), price)
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            fits = np.bincount(self._host, weights=self._at(middle[self._host]), minlength=len(low)) <= self._host_room * (1 + 1e-9)
            high, low = np.where(over & fits, middle, high), np.where(over & ~fits, middle, low)
        return self._at(high[self._host])

    def fill(
        self, solve: Callable[[Floats], RatePlan], best: tuple[float, Floats, RatePlan], more: Floats
    ) -> tuple[RatePlan, list[Floats]]:
        """Buy for as many pages as there is room for of what is worth the price, more or less: many pages may be worth the same."""
        price, rates, plan = best
        moved = np.flatnonzero(more > rates)
        least, most = 0, len(moved)
        while least < most:
            count = (least + most + 1) // 2
            tried = best[1].copy()
            tried[moved[:count]] = more[moved[:count]]
            found = solve(tried) if self.fits(tried) else None
            if found is None or found.multiplier > price * (1 + TOLERANCE):
                most = count - 1
            else:
                least, rates, plan = count, tried, found
        if least < len(moved):
            # A visit more or less: the others lose what lies between the prices without it and with it.
            tried = rates.copy()
            tried[moved[least]] = more[moved[least]]
            found = solve(tried) if self.fits(tried) else None
            if found is not None and (found.multiplier + plan.multiplier) / 2 <= price:
                rates, plan = tried, found
        return plan, self.shares(rates)

    def _at(self, prices: Floats) -> Floats:
        return np.concatenate([buyer.rates(own) for buyer, own in zip(self._buyers, self.shares(prices), strict=True)])
