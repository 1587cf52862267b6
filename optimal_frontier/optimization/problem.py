"""What a problem must be beyond the shape of its arguments: prices that a double holds, bounds that fit, limits of known hosts."""

from __future__ import annotations

from math import log10
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.validation import check_order, id_array, numeric_array, page_or_scalar, page_values, scalar

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Powers of ten, either way, that numbers other than 0 may have, and those that prices made of them may have: doubles have 308, and sums
#: over many pages, and what is near the price, need some of them.
DECADES: Final = 290.0
#: Numbers within so many powers of ten, either way, make no product that leaves the range of doubles.
_ORDINARY_DECADES: Final = 30.0
#: Minimum rates up to this add up to a number.
_MOST_RATE: Final = 1e100


class PriceSearch(NamedTuple):
    """How a price is searched for.

    Attributes
    ----------
    of_freshness : bool
        Otherwise the objective is changes seen.
    by_share : bool
        As a share of what a visit can be worth at most, so that this has to be a double as well.
    """

    of_freshness: bool = True
    by_share: bool = True


#: Of evenly spaced visits and freshness.
_USUAL: Final = PriceSearch()


def check_prices(
    importance: Floats,
    change_rate: Floats,
    bandwidth: float,
    cost: Floats | float | None = None,
    *,
    ranges: tuple[tuple[float, float], tuple[float, float]],
    search: PriceSearch = _USUAL,
    names: tuple[str, str, str] = ("importance", "change_rate", "bandwidth"),
) -> None:
    """Refuse numbers so far apart that no double holds the price of a visit, or what it is made of.

    Parameters
    ----------
    importance, change_rate, cost : ndarray (n,)
        Checked; the last may be one number, or None: 1.
    bandwidth : float
    ranges : tuple
        Of importance and change rate, from `check_values`: numbers of ordinary size are not looked at again.
    search : PriceSearch
        How the price is searched for.
    names : tuple of str
        What to call the first three.
    """
    low, high = 10.0**-_ORDINARY_DECADES, 10.0**_ORDINARY_DECADES
    cheap, dear = (1.0, 1.0) if cost is None or np.size(cost) == 0 else (float(np.min(cost)), float(np.max(cost)))
    spans = (*ranges, (bandwidth or 1.0, bandwidth), (cheap, dear))
    live = (importance > 0) & (change_rate > 0) if any(span[0] < low or span[1] > high for span in spans) else np.zeros(0, bool)
    if not live.any():
        return
    weight, change = np.log10(importance[live]), np.log10(change_rate[live])
    price = np.log10(cost[live]) if isinstance(cost, np.ndarray) else np.full(weight.size, log10(cheap))
    spend = log10(bandwidth) if bandwidth > 0 else float((change + price).min())
    worth = weight - price - (change if search.of_freshness else 0.0)  # of a visit that sees a change
    often = np.maximum(spend - price, change)
    least = float((weight - price + (1 if search.of_freshness else 2) * change - 2 * often).max())  # what the price is if one page gets all
    powers = [least, float(worth.max()), (float(worth.max()) - least) if search.by_share else 0.0]
    powers += [float(np.abs(power).max()) for power in (change + price, change - weight, spend - price)]
    powers += [float((weight if search.of_freshness else weight + np.minimum(change, often)).max())]
    powers += [float((0.5 * (weight + change - price)).max()) - spend]  # the inverse of the level of the water
    if max(map(abs, powers)) > DECADES:
        listed = ", ".join(names if cost is None else (*names, "cost"))
        raise InvalidProblemError(f"{listed} are too far apart, or too far from 1: no float holds the price of a visit; choose other units")


def rate_bounds(min_rate: ArrayLike | None, max_rate: ArrayLike | None, n: int) -> tuple[Floats | float | None, Floats | float | None]:
    """Minimum and maximum rate of every page: finite minima, none above its maximum."""
    low = page_or_scalar("min_rate", min_rate, n)
    high = page_or_scalar("max_rate", max_rate, n, infinite=True)
    if low is not None and np.max(low, initial=0.0) > _MOST_RATE:
        at = int(np.argmax(np.atleast_1d(low) > _MOST_RATE))
        raise InvalidProblemError(f"min_rate[{at}] is {np.broadcast_to(low, n)[at]}; expected at most {_MOST_RATE}: choose other units")
    if low is not None and high is not None:
        check_order("min_rate", np.broadcast_to(low, n), "max_rate", np.broadcast_to(high, n))
    return low, high


def host_limits(host: ArrayLike | None, host_max_rate: ArrayLike | None, n: int) -> tuple[Integers, Floats] | None:
    """Host id of every page, and maximum rate of every host; None if there are no limits.

    Ids may be any non-negative integers if `host_max_rate` is a scalar; a per-host array is indexed by them.
    """
    if host_max_rate is None:
        return None
    if host is None:
        raise InvalidProblemError("host_max_rate is given, but host is not: which page is on which host?")
    integers = id_array("host", host, n)
    rates = numeric_array("host_max_rate", host_max_rate)
    if rates.ndim == 0:
        limit = scalar("host_max_rate", rates, infinite=True)
        if n and int(integers.max()) >= 2 * n + 1024:  # hashes, not numbers in a row
            integers = np.unique(integers, return_inverse=True)[1].astype(np.int64, copy=False)
        return integers, np.full(int(integers.max()) + 1 if n else 0, limit)
    limits = page_values("host_max_rate", rates, infinite=True)
    if n and int(integers.max()) >= limits.size:
        index = int(np.argmax(integers >= limits.size))
        raise InvalidProblemError(f"host[{index}] is {integers[index]}, but host_max_rate has {limits.size} entries")
    return integers, limits
