"""Where the search for the price starts: from a summary, a sample, or a formula."""

from __future__ import annotations

from optimal_frontier.optimization.binned import binned_pages, small_interval_price
from optimal_frontier.optimization.market import clearing_price
from optimal_frontier.optimization.pages import PricedPages

#: Problems from this size on get their first guess of the price from a summary or a sample of the pages.
_LARGE = 20_000
_SAMPLE = 16_384


def first_guess(pages: PricedPages, budget: float, least: float) -> tuple[float, float]:
    """A price to start from, and the highest price at which any page is worth more than its minimum."""
    if pages.size < _LARGE:
        top = pages.top()
        return small_interval_price(pages, budget - least, top) if top else 0.0, top
    if not pages.bounded:
        summary, top = binned_pages(pages)
        if summary.size == 0:
            return 0.0, top
        return _price_of(summary, budget, 0.0, summary.top()) or top * 0.5, top
    top = pages.top()
    sample = pages.part(slice(None, None, -(-pages.size // _SAMPLE)))
    share = sample.size / pages.size
    sample_least = sample.minimum_spending()
    sample_top = sample.top()
    guess = _price_of(sample, sample_least + (budget - least) * share, sample_least, sample_top) if sample_top else 0.0
    return guess or 0.5 * top, top


def _price_of(pages: PricedPages, budget: float, least: float, top: float) -> float:
    """Price at which `pages` spend about the budget; 0 if they cannot."""
    floor = top * 2.0**-100
    if pages.spend(floor).total <= budget or budget <= least:
        return 0.0
    return clearing_price(pages.spend, budget, least, top, max(small_interval_price(pages, budget - least, top), floor), 1e-8).price
