"""Where the search for the price starts: from a formula, or from a sample of the pages."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from optimal_frontier.optimization.priced_pages import PricedPages
from optimal_frontier.optimization.sweeps import inner

#: Problems from this size on get their first guess of the price from a sample of the pages.
_LARGE = 20_000
_SAMPLE = 16_384
#: A price that spends the budget to this accuracy is refined by one last secant, and no more.
_CLOSE = 1e-3
_STEPS = 25
#: Miss of the budget that a sample's answer may have left; beyond it, the guess takes a second look at all pages.
_CLOSE_ENOUGH = 1.5e-4


def initial_price(pages: PricedPages, budget: float, least: float, start: float | None = None) -> tuple[float, float]:
    """A price to start from, and the highest price at which any page is worth more than its minimum.

    Parameters
    ----------
    pages : PricedPages
    budget, least : float
        The latter is what the minimum rates spend.
    start : float, optional
        A price that is likely to be close.

    Notes
    -----
    A sample of 16,384 pages meets its share of the budget at a price that is off by half a percent or so. What *all* pages spend there
    says by how much, and as sample and pages spend in nearly constant proportion, the sample's price for a budget that much larger or
    smaller is off by 1e-4 at most in most worlds. (A derivative would not do: it is dominated by the few pages whose value is next to
    the price.)
    """
    if start or pages.size < _LARGE:
        top = pages.top()
        if start and start < top:
            return start, top
        return _small_interval_price(pages, budget - least, top) if top else 0.0, top
    sample = pages.part(slice(None, None, max(1, pages.size // min(_SAMPLE, pages.size // 16))))
    price = _price_of_sample(sample, (budget - least) * sample.size / pages.size)
    if price == 0.0:
        top = pages.top()
        return 0.5 * top, top
    spent, top = pages.rough_total(price)
    if spent > least:
        factor = (budget - least) / (spent - least)
        first = price
        sampled = sample.rough_total(price)[0] - sample.minimum_spending()
        price = _refined(sample, price, sampled, sampled * factor) if sampled > 0 else price
        if abs(log(factor)) * 3 / sqrt(sample.size) > _CLOSE_ENOUGH and 0 < price < top:
            again = pages.rough_total(price)[0]
            slope = log((again - least) / (spent - least)) / log(price / first) if again > least and price != first else 0.0
            if slope < -1e-3:
                price *= exp(max(-1.0, min(1.0, log((budget - least) / (again - least)) / slope)))
    return min(price, top * (1 - 1e-9)), top


def _price_of_sample(sample: PricedPages, budget: float) -> float:
    """Price at which a sample spends about a budget beyond its minima; 0 if none was found."""
    few = sample.part(slice(None, None, 16))
    top = few.top()
    if not 0 < top < np.inf:
        return 0.0
    price = _small_interval_price(few, budget * few.size / sample.size, top)
    for part, target in ((few, budget * few.size / sample.size), (sample, budget)):
        spent = part.rough_total(price)[0] - part.minimum_spending()
        if not (spent > 0 and target > 0):
            return 0.0
        price = _refined(part, price, spent, target)
    return price


def _refined(sample: PricedPages, price: float, spent: float, target: float) -> float:
    """Price at which a sample spends `target` beyond its minima, from one nearby at which it spends `spent`; the best found.

    Secants on log(spending) over log(price).
    """
    least = sample.minimum_spending()
    miss, slope = log(spent / target), -1.0
    for _ in range(_STEPS):
        step = min(2.0, max(-2.0, -miss / slope))
        price *= exp(step)
        if abs(miss) < _CLOSE:
            break
        now = sample.rough_total(price)[0] - least
        if now <= 0:
            price *= exp(-step / 2)
            continue
        before, miss = miss, log(now / target)
        if step and (miss - before) / step < -1e-3:
            slope = (miss - before) / step
    return price


def _small_interval_price(pages: PricedPages, budget: float, top: float) -> float:
    """First guess of the price: right if every page were visited many times between two changes, and below `top` in any case.

    Then the rate is ``change_rate sqrt(value / (2 price))``.
    """
    if budget <= 0:
        return 0.5 * top
    total = 0.0
    buffer = np.empty(pages.size)
    for block in pages.blocks():
        value = pages.value(block, buffer[block])
        if pages.cost is not None:
            value = value * pages.cost[block]
        total += inner(np.sqrt(value), pages.change_rate[block])
    odds = total / budget / (2 * top) * (total / budget)
    share = odds / (1 + odds) if odds < 1e9 else 1 - 1e-9
    return top * max(share, 1e-300)
