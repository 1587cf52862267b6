"""What the pages of each host would like, at one price for all or at a price of each host's own.

The exact answer comes from `ResponseKernel`; a rough one, for finding out where to look, from `RoughKernel` at less than half the cost.
Both go block by block on all cores; the sums by host are one `numpy.bincount` over all pages afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.pages import PricedPages, block_of
from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.response import ResponseKernel, RoughKernel
from optimal_frontier.optimization.sweeps import BLOCK, blockwise


class HostDemand(NamedTuple):
    """Sums by host."""

    visits: Floats  #: (hosts,) visits per unit of time
    slope: Floats  #: (hosts,) d visits / d log(price), <= 0; empty if not asked for
    near: NDArray[np.int64]  #: pages whose value is near their price, if asked for


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

    @classmethod
    def of(cls, pages: PricedPages, host: Integers, hosts: int) -> HostedPages:
        return cls(pages, host, hosts, np.empty(pages.size), np.empty(pages.size))

    def chosen(self, chosen: NDArray[np.bool_], buffers: tuple[Floats, Floats] | None = None) -> tuple[HostedPages, NDArray[np.int64]]:
        """The pages of some hosts (a mask, hosts numbered anew), and their places among these pages.

        `buffers`, if given, are at least as large as these pages' and become the rates and bends of those.
        """
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
        rates, bend = (np.empty(pick.size), np.empty(pick.size)) if buffers is None else (each[: pick.size] for each in buffers)
        return HostedPages(picked(self.pages, pick), host, int(np.count_nonzero(chosen)), rates, bend), pick

    def sums(self, values: Floats) -> Floats:
        """(hosts,) sums of per-page values."""
        totals: Floats = np.bincount(self.host, weights=values, minlength=self.hosts).astype(np.float64, copy=False)
        return totals

    def at(self, price: Floats | float, *, rough: bool = False, slope: bool = True, tiny: bool = False, near: float = 0.0) -> HostDemand:
        """Rates of the pages and sums by host at a price for all (float) or one for each host (hosts,), > 0.

        Pages whose value is within a share of `near` of their price are listed in the answer.
        """
        pages, rates, bends = self.pages, self.rates, self.bend
        width = min(pages.size, BLOCK)

        def work(blocks: Iterator[slice]) -> Iterator[NDArray[np.int64]]:
            kernel = None if rough else ResponseKernel(width)
            rough_kernel = RoughKernel(width) if rough else None
            nobody = np.empty(0, np.int64)
            values, raws, paid = np.empty((3, width))
            insides = np.empty(width, np.bool_)
            for block in blocks:
                m = block.stop - block.start
                raw, change_rate = raws[:m] if pages.bounded else rates[block], pages.change_rate[block]
                bend = bends[block] if slope else None
                here = np.take(price, self.host[block], out=paid[:m], mode="clip") if isinstance(price, np.ndarray) else price
                value = pages.value(block, values[:m])
                if rough_kernel is not None:
                    rough_kernel.visits_per_change(value, here, raw)
                elif kernel is not None:
                    kernel.visits_per_change(value, here, raw, bend, tiny=tiny)
                close = nobody
                if near:
                    distance = np.divide(value, here, out=paid[:m])
                    distance -= 1.0
                    np.abs(distance, out=distance)
                    close = np.flatnonzero(np.less(distance, near, out=insides[:m])) + block.start
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
                yield close

        lists = blockwise(pages.size, work, BLOCK)
        return HostDemand(self.sums(rates), self.sums(bends) if slope else np.empty(0), np.concatenate(lists))


def picked(pages: PricedPages, pick: NDArray[np.int64]) -> PricedPages:
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
