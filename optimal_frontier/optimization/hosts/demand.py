"""Visits that the pages of each host would like, at one price for all or at a price of each host's own.

A sweep goes block by block on all cores; the sums by host are one `numpy.bincount` over all pages afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.priced_pages import PricedPages, block_of
from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.response import ResponseKernel
from optimal_frontier.optimization.sweeps import BLOCK, blockwise


class HostDemand(NamedTuple):
    """Sums by host."""

    visits: Floats  #: (hosts,) visits per unit of time
    slope: Floats  #: (hosts,) d visits / d log(price), <= 0; empty if not asked for


@dataclass(slots=True)
class HostedPages:
    """Pages, numbered by host, with room for what they would do.

    Attributes
    ----------
    pages : PricedPages
        Without costs.
    host : ndarray (n,) of int64
        Below `hosts`.
    hosts : int
        Number of hosts; some may have no pages.
    rates : ndarray (n,)
        Rates at the last price asked for, between the bounds.
    bend : ndarray (n,)
        d rates / d log(price) at that price, 0 for a page at a bound; as it was if no slope was asked for.
    """

    pages: PricedPages
    host: Integers
    hosts: int
    rates: Floats
    bend: Floats

    def chosen(self, chosen: NDArray[np.bool_]) -> tuple[HostedPages, NDArray[np.int64]]:
        """The pages of some hosts (a mask, hosts numbered anew), and their places among these pages."""
        number = np.cumsum(chosen) - 1
        number[~chosen] = -1
        width = min(self.host.size, BLOCK)

        def search(blocks: Iterator[slice]) -> Iterator[tuple[NDArray[np.int64], Integers]]:
            ids, inside = np.empty(width, np.int64), np.empty(width, np.bool_)
            for block in blocks:
                m = block.stop - block.start
                here = np.take(number, self.host[block], out=ids[:m], mode="clip")
                local = np.flatnonzero(np.greater_equal(here, 0, out=inside[:m]))
                yield local + block.start, here[local]

        picks, hosts = zip(*blockwise(self.host.size, search, BLOCK), strict=True)
        pick, host = np.concatenate(picks), np.concatenate(hosts)
        del picks, hosts
        rates, bend = np.empty(pick.size), np.empty(pick.size)
        return HostedPages(_picked(self.pages, pick), host, int(np.count_nonzero(chosen)), rates, bend), pick

    def sums(self, values: Floats) -> Floats:
        """(hosts,) sums of per-page values."""
        totals: Floats = np.bincount(self.host, weights=values, minlength=self.hosts).astype(np.float64, copy=False)
        return totals

    def at(self, price: Floats | float, *, slope: bool = True, tiny: bool = False) -> HostDemand:
        """Rates of the pages and sums by host at a price for all (float) or one for each host (hosts,), > 0."""
        pages, rates, bends = self.pages, self.rates, self.bend
        width = min(pages.size, BLOCK)

        def work(blocks: Iterator[slice]) -> Iterator[None]:
            kernel = ResponseKernel(width)
            values, raws, paid = np.empty((3, width))
            insides = np.empty(width, np.bool_)
            for block in blocks:
                m = block.stop - block.start
                raw, change_rate = raws[:m] if pages.bounded else rates[block], pages.change_rate[block]
                bend = bends[block] if slope else None
                here = np.take(price, self.host[block], out=paid[:m], mode="clip") if isinstance(price, np.ndarray) else price
                kernel.visits_per_change(pages.value(block, values[:m]), here, raw, bend, tiny=tiny)
                np.multiply(raw, change_rate, out=raw)
                if bend is not None:
                    np.multiply(bend, change_rate, out=bend)
                if pages.bounded:
                    rate = rates[block]
                    low, high = block_of(pages.low, block), block_of(pages.high, block)
                    if low is not None:
                        np.maximum(raw, low, out=rate)
                    if high is not None:
                        np.minimum(raw if low is None else rate, high, out=rate)
                    if bend is not None:
                        np.multiply(bend, np.equal(raw, rate, out=insides[:m]), out=bend)
                yield None

        blockwise(pages.size, work, BLOCK)
        return HostDemand(self.sums(rates), self.sums(bends) if slope else np.empty(0))


def _picked(pages: PricedPages, pick: NDArray[np.int64]) -> PricedPages:
    """Some pages of a problem without costs; their values are worked out once and for all."""
    value, change_rate = np.empty((2, pick.size))

    def gather(blocks: Iterator[slice]) -> Iterator[None]:
        for block in blocks:
            np.take(pages.importance, pick[block], out=value[block], mode="clip")
            np.take(pages.change_rate, pick[block], out=change_rate[block], mode="clip")
            if pages.freshness:
                np.divide(value[block], change_rate[block], out=value[block])
            yield None

    with np.errstate(divide="ignore", invalid="ignore"):
        blockwise(pick.size, gather, BLOCK)
    if pages.freshness and pages.some_static:
        value[change_rate == 0] = 0.0
    low, high = (bound[pick] if isinstance(bound, np.ndarray) else bound for bound in (pages.low, pages.high))
    return PricedPages(value, change_rate, False, None, low, high)
