"""The price at which a host spends just its limit: exact, for many hosts at once, whatever their pages are like.

Visits to a host fall as the price rises, and have a kink at the value of every page: just below its value a page that changes often goes
from no visits to many within a few roundings of the price. The search first takes Newton steps inside a bracket; hosts that resist are
searched kink by kink. Where the price is a page's value to within 5e-8, the price is settled and the page gets what the limit leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.optimization.hosts.demand import HostDemand, HostedPages
from optimal_frontier.optimization.problem import Floats

#: Accepted error of log(price): the loss of objective is its square, the KKT residual as large; scaling then meets the limit.
PRECISION: Final = 1e-8
#: Relative width of a bracket at which the rates at its two ends are mixed: as close to a kink as the search goes.
_NARROW: Final = 5e-8
#: Steps before kinks are looked for.
_PLAIN_STEPS: Final = 3
_MOST_STEPS: Final = 300
#: Largest change of a logit in one step.
_STRIDE: Final = 30.0


@dataclass(slots=True)
class _Hunt:
    """What is known about the hosts still looked for; every array is (hosts,)."""

    place: NDArray[np.int64]  #: number of the host in the caller's arrays
    limit: Floats
    least: Floats  #: visits at the minimum rates
    price: Floats  #: to be tried next
    low: Floats  #: highest price known to be too low; 0: none
    low_visits: Floats  #: inf: not known
    low_slope: Floats
    high: Floats  #: lowest price known to be high enough
    base: Floats  #: visits at `high`

    def of(self, chosen: NDArray[np.bool_]) -> _Hunt:
        return _Hunt(*(getattr(self, each.name)[chosen] for each in fields(self)))


def settle_prices(crowd: HostedPages, limits: Floats, floor: Floats | float, start: Floats, *, tiny: bool) -> Floats:
    """Price at which each host spends its limit; `crowd.rates` are set to what its pages do there, scaled to meet the limit.

    Parameters
    ----------
    crowd : HostedPages
        Every host spends more than its limit at `floor` and has room for its minimum rates.
    limits : ndarray (hosts,)
    floor : float or ndarray (hosts,)
        A price known to be too low; 0 if there is none.
    start : ndarray (hosts,)
        Guesses.
    tiny : bool
        Odds may be below the table of `ResponseKernel`.

    Returns
    -------
    ndarray (hosts,)
    """
    hosts = crowd.hosts
    values = _values(crowd)
    top = np.zeros(hosts)
    np.maximum.at(top, crowd.host, values)
    top = np.where(top > 0, top, 1.0)
    least = crowd.at(top, slope=False, tiny=tiny).visits
    prices = top.copy()
    rates, bend = crowd.rates.copy(), np.zeros(crowd.rates.size)  # at `top`: the minima
    low = np.broadcast_to(np.asarray(floor, float), hosts).copy()
    hunt = _Hunt(np.arange(hosts), limits, least, np.array(start), low, np.full(hosts, np.inf), np.zeros(hosts), top, least)
    active = limits - least > 1e-14 * limits
    outer, places = crowd, np.arange(crowd.rates.size)
    for step in range(_MOST_STEPS):
        if not active.all():
            if not active.any():
                break
            if step == 0 or np.count_nonzero(active) < 0.7 * active.size:
                crowd, pick = crowd.chosen(active)
                places, values = places[pick], values[pick]
                hunt = hunt.of(active)
                active = np.ones(hunt.limit.size, bool)
        _keep_inside(hunt)
        demand = crowd.at(hunt.price, tiny=tiny)
        settled, narrow = _learn(hunt, demand)
        settled &= active
        narrow &= active & ~settled
        if settled.any():
            inside = settled[crowd.host]
            rates[places[inside]], bend[places[inside]] = crowd.rates[inside], crowd.bend[inside]
            prices[hunt.place[settled]] = hunt.price[settled]
        if narrow.any():
            few, pick = crowd.chosen(narrow)
            ends = hunt.of(narrow)
            rates[places[pick]] = _mixture(few, ends, tiny)
            prices[ends.place] = ends.high
        active &= ~(settled | narrow)
        if active.any():
            proposal = _plain_step(hunt, demand) if step < _PLAIN_STEPS else _kinked_step(hunt, demand, crowd, values, step)
            hunt.price = np.where(active, proposal, hunt.price)
    else:
        raise ConvergenceError("the host prices did not settle")
    outer.rates[:], outer.bend[:] = rates, bend
    meet_limits(outer, limits, least)
    return prices


def _values(crowd: HostedPages) -> Floats:
    values = np.empty(crowd.pages.size)
    for block in crowd.pages.blocks():
        value = crowd.pages.value(block, values[block])
        if value.base is not values:
            values[block] = value
    return values


def _keep_inside(hunt: _Hunt) -> None:
    price = hunt.price
    inside = (price > hunt.low) & (price <= hunt.high)
    middle = np.where(hunt.low > 0, np.sqrt(hunt.low) * np.sqrt(hunt.high), 0.25 * hunt.high)
    middle = np.where((middle > hunt.low) & (middle < hunt.high), middle, hunt.low + 0.5 * (hunt.high - hunt.low))
    hunt.price = np.where(inside, price, middle)


def _learn(hunt: _Hunt, demand: HostDemand) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Narrow the brackets; return which prices are settled, and which brackets are so narrow that their ends are to be mixed."""
    visits, slope, price = demand.visits, demand.slope, hunt.price
    miss = np.abs(visits - hunt.limit)
    room = hunt.limit - hunt.least
    settled = (miss <= PRECISION * np.minimum(room, -slope)) | (miss <= 1e-14 * room)
    over = visits > hunt.limit
    hunt.low = np.where(over, price, hunt.low)
    hunt.low_visits = np.where(over, visits, hunt.low_visits)
    hunt.low_slope = np.where(over, slope, hunt.low_slope)
    hunt.high = np.where(over, hunt.high, price)
    hunt.base = np.where(over, hunt.base, visits)
    narrow = (hunt.high - hunt.low <= _NARROW * hunt.high) & (hunt.low > 0)
    return settled, narrow


def _plain_step(hunt: _Hunt, demand: HostDemand) -> Floats:
    """Next prices to try: log(visits - least) against log(price) is straight, nearly."""
    excess = demand.visits - hunt.least
    move = (np.log(excess) - np.log(hunt.limit - hunt.least)) * excess / demand.slope
    step: Floats = hunt.price * np.exp(-np.clip(move, -3.0, 3.0))
    return np.where(np.isfinite(step), step, -1.0)


def _kinked_step(hunt: _Hunt, demand: HostDemand, crowd: HostedPages, values: Floats, step: int) -> Floats:
    """Next prices to try: the highest kink inside the bracket; with the kink at its upper end, towards it; without any, Newton.

    Towards a kink, log(visits - visits at the kink) against logit(price / kink) is straight, nearly.
    """
    kink = np.zeros(hunt.price.size)
    np.maximum.at(kink, crowd.host, np.where(values <= hunt.high[crowd.host], values, 0.0))
    kinked = kink > hunt.low
    ceiling = np.where(kinked, hunt.high, np.inf)
    base = np.where(kinked, hunt.base, hunt.least)
    # with a kink above, the lower end of the bracket is the point to go on from; without, the last one tried
    at, visits, slope = (
        np.where(kinked, low, last)
        for low, last in ((hunt.low, hunt.price), (hunt.low_visits, demand.visits), (hunt.low_slope, demand.slope))
    )
    share = at / ceiling
    excess = visits - base
    move = np.clip((np.log(excess) - np.log(hunt.limit - base)) * excess / (slope * (1 - share)), -_STRIDE, _STRIDE)
    odds = at / (1 - share) * np.exp(-move)  # p / (1 - p / ceiling)
    proposal = np.minimum(odds / (1 + odds / ceiling), ceiling * (1 - 0.9 * _NARROW))
    # every third time, or if that leads nowhere, halve the bracket in the same coordinate
    far = hunt.low / np.maximum(1 - hunt.low / ceiling, _NARROW)
    near = np.where(kinked, ceiling / _NARROW, hunt.high)
    halved = np.sqrt(far) * np.sqrt(near)
    halved = halved / (1 + halved / ceiling)
    good = (proposal > hunt.low) & (proposal < hunt.high)
    proposal = np.where(good & (step % 3 != 2), proposal, halved)
    return np.where(kinked & (kink < hunt.high), kink, proposal)


def _mixture(few: HostedPages, ends: _Hunt, tiny: bool) -> Floats:
    """Rates of hosts whose visits jump over the limit between two prices next to each other."""
    visits_dear = few.at(ends.high, slope=False, tiny=tiny).visits
    dear = few.rates.copy()
    visits_cheap = few.at(ends.low, slope=False, tiny=tiny).visits
    between = visits_cheap - visits_dear
    share = np.clip(np.where(between > 0, (ends.limit - visits_dear) / between, 0.0), 0.0, 1.0)
    result: Floats = dear + share[few.host] * (few.rates - dear)
    return result


def meet_limits(crowd: HostedPages, limits: Floats, least: Floats) -> None:
    """Bring each host to its limit, which it all but meets, by a first-order step of its price; never above it.

    Scaling the rates would do less well: a page that changes often, just below its value, takes what is missing almost without a step.
    """
    rates, pages = crowd.rates, crowd.pages
    slope = crowd.sums(crowd.bend)
    for _ in range(2):  # a page that reaches its bound leaves the others a little more to do
        step = np.where(slope < 0, (limits - crowd.sums(rates)) / slope, 0.0)
        rates += crowd.bend * step[crowd.host]
        pages.clip(slice(None), rates)
    visits = crowd.sums(rates)
    over = visits > limits * (1 + 1e-12)
    if over.any():
        above = np.where(over, (limits - least) / (visits - least), 1.0)
        low = 0.0 if pages.low is None else pages.low
        shrink = np.maximum(above, 0.0)[crowd.host]
        rates[:] = np.where(shrink < 1, low + (rates - low) * shrink, rates)
