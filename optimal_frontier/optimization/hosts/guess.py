"""Where the multiplier and the prices of the hosts at their limits are, to three digits: for problems of many pages.

A sample answers first: all pages of every k-th host, and every k-th page of the large hosts with a k-th of their limits, so that a k-th of
the budget is right for it. It gives the multiplier to about a percent, and what a host has to pay given how far it is above its limit. One
rough sweep over all pages corrects the multiplier and tells which hosts are above their limits; three more, over the pages of those hosts
alone, find their prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.binned import small_interval_price
from optimal_frontier.optimization.hosts.demand import HostDemand, HostedPages, picked
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.sweeps import blockwise, inner

#: Pages in the sample: enough for a percent or two.
_SAMPLE: Final = 4096
#: One page in so many, if that is more.
_THIN: Final = 48
_LARGEST_SAMPLE: Final = 100_000
#: A host with so many pages in a thinned sample can be thinned itself.
_LARGE: Final = 16
#: Search the multiplier down to exp of minus this below the highest value: far within the tables, whatever the sample has missed.
_DEPTH: Final = 40.0
#: Change of log(multiplier) for which the slope of the sample is good enough: its error is a tenth of that, squared.
_FAR: Final = 0.03
#: One page in so many makes the slope good to a percent.
_CHECK: Final = 16
#: Excess over its limit at which a host is surely above it: twenty times the error of a rough answer.
_SURE: Final = 0.01
#: Steps per host on the sample, and on all pages.
_SAMPLE_ROUNDS: Final = 4
_ROUNDS: Final = 3
#: Share of pages on hosts above their limits from which leaving out the others costs more than it saves.
_MOST: Final = 0.8


class Guess(NamedTuple):
    """Where to look."""

    multiplier: float
    prices: Floats  #: (hosts,) the multiplier for hosts below their limits
    capped: NDArray[np.bool_]  #: (hosts,) surely above their limits


class _Rule(NamedTuple):
    """What a host pays, log(price / multiplier), by how far above its limit it would be, log(excess / room)."""

    excess: Floats
    price: Floats

    def __call__(self, excess: Floats) -> Floats:
        beyond = np.maximum(excess - self.excess[-1], 0.0)
        price: Floats = np.interp(excess, self.excess, self.price)
        price += beyond
        return price


class _Sample(NamedTuple):
    log_price: float
    slope: float  #: d spending / d log(multiplier) of all pages, by the sample
    rule: _Rule


def guess_prices(crowd: HostedPages, limits: Floats, minima: Floats, budget: float) -> Guess | None:
    """Find the multiplier and the prices of the hosts roughly, or give up.

    Parameters
    ----------
    crowd : HostedPages
        All pages; its arrays are overwritten.
    limits, minima : ndarray (hosts,)
        Maximum visits, and visits at the minimum rates.
    budget : float
        In visits.

    Returns
    -------
    Guess or None
        None if the sample does not spend its share of the budget at any price that the rough table knows.
    """
    sample = _ask_sample(crowd, limits, budget)
    if sample is None:
        return None
    here = sample.log_price
    for _ in range(3):
        at = here
        visits = crowd.at(exp(at), rough=True, slope=False).visits
        here = at + max(-1.0, min(1.0, (budget - float(np.minimum(visits, limits).sum())) / sample.slope))
        if abs(here - at) <= _FAR:
            break
    here = _correct(crowd, visits <= limits, at, here, sample.slope)
    multiplier = exp(here)
    prices = np.full(limits.size, multiplier)
    room = limits - minima
    excess = np.log((visits - minima) / room) - (here - at)
    capped = (excess > 0) & (room > 0)
    if capped.any():
        everyone = float(visits[capped].sum()) > _MOST * float(visits.sum())
        part = crowd if everyone else crowd.chosen(capped, (crowd.rates, crowd.bend))[0]
        rows = slice(None) if everyone else capped
        start = here + sample.rule(excess[rows])
        found = _refine(part, room[rows], minima[rows], here, excess[rows], start, _ROUNDS)
        prices[capped] = np.exp(np.maximum(found[capped] if everyone else found, here))
    full = minima >= limits * (1 - 1e-12)
    if full.any():  # nothing above the minima: any price will do at which no page wants more
        prices[full] = inf
    return Guess(multiplier, prices, excess > _SURE)


def _correct(crowd: HostedPages, riding: NDArray[np.bool_], at: float, here: float, slope: float) -> float:
    """The second price again, with the slope between the two of many more pages than the sample has: those of hosts below their limits."""
    pick = np.arange(0, crowd.host.size, _CHECK)
    pick = pick[riding[crowd.host[pick]]]
    if here == at or pick.size < _SAMPLE // _CHECK:
        return here
    few = HostedPages(picked(crowd.pages, pick), np.zeros(pick.size, np.int64), 1, crowd.rates[: pick.size], crowd.bend[: pick.size])
    first, second = (float(few.at(exp(log_price), rough=True, slope=False).visits[0]) for log_price in (at, here))
    steeper = (second - first) * _CHECK / (slope * (here - at))
    return at + (here - at) / steeper if 0.5 < steeper < 2 else here


def _ask_sample(crowd: HostedPages, limits: Floats, budget: float) -> _Sample | None:
    n = crowd.host.size
    thin = max(2, min(n // _SAMPLE, max(_THIN, n // _LARGEST_SAMPLE)))
    part, limit = _sample(crowd, limits, thin)
    if part.pages.size == 0:
        return None
    share = budget / thin
    minima = np.zeros(part.hosts) if part.pages.low is None else part.sums(np.broadcast_to(np.asarray(part.pages.low), part.pages.size))
    least = float(minima.sum())
    top = part.pages.top()
    if least >= share or top <= 0:
        return None
    demand = HostDemand(limit, limit, np.empty(0, np.int64))
    slope = 0.0

    def excess(log_price: float) -> tuple[float, float]:
        nonlocal demand, slope
        demand = part.at(exp(log_price))
        slope = inner(demand.slope, demand.visits <= limit)
        return float(np.minimum(demand.visits, limit).sum()) - least, slope

    low, high = log(top) - _DEPTH, log(top)
    here = log(small_interval_price(part.pages, share - least, top))
    for _ in range(20):
        now, slope = excess(here)
        miss = now - (share - least)
        if abs(miss) <= -0.01 * slope:
            break
        low, high = (here, high) if miss > 0 else (low, here)
        following = here - log(now / (share - least)) * now / slope if slope < 0 < now else inf
        here = following if low < following < high else 0.5 * (low + high)
    else:
        return None
    room = limit - minima
    ratio = np.log((demand.visits - minima) / room)
    capped = (ratio > 0) & (room > 0)
    rule = _Rule(np.zeros(1), np.zeros(1))
    if np.count_nonzero(capped) >= 2 * _LARGE:
        few, _ = part.chosen(capped)
        ratio, steep = ratio[capped], (demand.slope / (demand.visits - minima))[capped]
        start = here - ratio / np.minimum(steep, -0.5)
        found = _refine(few, room[capped], minima[capped], here, ratio, start, _SAMPLE_ROUNDS)
        rule = _learn(ratio, found - here)
    return _Sample(here - miss / slope, slope * thin, rule)


def _sample(crowd: HostedPages, limits: Floats, thin: int) -> tuple[HostedPages, Floats]:
    """About one page in `thin`, and what limits their hosts."""
    hosts, thinned = crowd.hosts, np.ascontiguousarray(crowd.host[::thin])
    large = np.bincount(thinned, minlength=hosts) >= _LARGE
    whole = np.zeros(hosts, np.bool_)
    whole[::thin] = True
    whole[large] = False
    inside = np.empty(crowd.host.size, np.bool_)

    def mark(blocks: Iterator[slice]) -> Iterator[None]:
        for block in blocks:
            np.take(whole, crowd.host[block], out=inside[block], mode="clip")
            yield None

    blockwise(inside.size, mark)
    pick = np.concatenate((np.flatnonzero(inside), np.flatnonzero(large[thinned]) * thin))
    chosen = whole | large
    number = np.cumsum(chosen) - 1
    limit = np.where(large, limits / thin, limits)[chosen]
    return HostedPages.of(picked(crowd.pages, pick), number[crowd.host[pick]], limit.size), limit


def _learn(excess: Floats, price: Floats) -> _Rule:
    """The rule that most hosts of the sample follow: medians of groups alike in excess."""
    order = np.argsort(excess)
    groups = np.array_split(order, max(2, min(24, excess.size // _LARGE)))
    middle = np.array([excess[group].mean() for group in groups])
    median = np.array([np.median(price[group]) for group in groups])
    return _Rule(np.concatenate(([0.0], middle)), np.maximum.accumulate(np.concatenate(([0.0], np.maximum(median, 0.0)))))


def refine_prices(crowd: HostedPages, limits: Floats, minima: Floats, floor: float, start: Floats) -> Floats:
    """Prices at which hosts spend their limits, roughly, from poor guesses that are not below `floor`."""
    logs = np.log(np.maximum(start, floor))
    below: Floats = np.maximum(logs - 1.0, log(floor))
    room = limits - minima
    excess = np.log((crowd.at(np.exp(below), rough=True, slope=False).visits - minima) / room)
    found: Floats = np.exp(_refine(crowd, room, minima, below, excess, logs, _ROUNDS + 1))
    return found


def _refine(crowd: HostedPages, room: Floats, least: Floats, floor: Floats | float, excess: Floats, start: Floats, rounds: int) -> Floats:
    """Log prices at which hosts spend their limits, from guesses.

    Inverse quadratic interpolation of log(excess / room), inside a bracket. It does without slopes, which would cost as much again and
    mean little between the kinks of a small host.
    """
    last, last_y = np.full(room.size, floor), excess
    older, older_y = np.full((2, room.size), np.nan)
    low, high = last, np.full(room.size, inf)
    x = np.maximum(start, floor)
    for _ in range(rounds):
        y = np.log((crowd.at(np.exp(x), rough=True, slope=False).visits - least) / room)
        over = y > 0
        low = np.where(over, x, low)
        high = np.where(over, high, x)
        secant = x - y * (x - last) / (y - last_y)
        # Newton's divided differences of x as a function of y, taken at y = 0
        first, second = (x - last) / (y - last_y), (last - older) / (last_y - older_y)
        bent = secant + y * last_y * (first - second) / (y - older_y)
        older, older_y, last, last_y = last, last_y, x, y
        x = np.where((bent > low) & (bent < high), bent, secant)
        x = np.where((x > low) & (x < high), x, np.where(high < inf, 0.5 * (low + high), low + 1.0))
    return x
