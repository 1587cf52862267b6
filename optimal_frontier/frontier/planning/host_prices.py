"""Hosts at their limits: what they leave each for revisits, and what a full host adds to the price."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.planning.budget import LEAST_REVISITS
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.published import PRICES

#: Relative distance within which a host counts as being at its limit.
_AT_LIMIT: Final = 1e-9
#: Additions to the log price below this are none.
LEAST_EXTRA: Final = 1e-3

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def host_limits(settings: FrontierSettings, capacity: Floats | None, waiting: Ints) -> Floats | None:
    """Return how many revisits per second each host admits, of hosts 0, 1, ...; None without a limit.

    Parameters
    ----------
    settings : FrontierSettings
        The share of first visits.
    capacity : ndarray (hosts,) or None
        Fetches per second that each bears, see `host_groups`.
    waiting : ndarray of int (hosts,)
        Pages of each that wait for their first visit.

    Notes
    -----
    All that a host admits is planned: to keep 3% of it free gained nothing, and cost up to 0.003 of the
    freshness (in a prototype).
    """
    if capacity is None:
        return None
    kept = np.minimum(
        (1.0 if settings.close_after is not None else settings.discovery_share) * capacity, waiting / settings.resolve_interval
    )
    return np.asarray(np.maximum(capacity - kept, LEAST_REVISITS * capacity))


def extra_prices(host: Ints, rates: Floats, is_wanted: NDArray[np.bool_], value: Floats, limit: Floats | None, log_price: float) -> Floats:
    """Return what each host adds to the log price, 0 for hosts that are not at their limits.

    Parameters
    ----------
    host : ndarray of int (n,)
        Of each page.
    rates, value : ndarray (n,)
        Planned, visits per second, and marginal values there.
    is_wanted : ndarray of bool (n,)
        Whether a page's rate is below its upper bound: that it gets no more is what the host's price says. Strictly between the bounds its
        marginal value is that price; at the lower one it is no more than that, and all that is known where no page is between.
    limit : ndarray (hosts,) or None
        Most visits per second.
    log_price : float
        Of the crawl.
    """
    hosts = int(host.max(initial=-1)) + 1 if limit is None else len(limit)
    extra = np.zeros(hosts)
    if limit is None or not len(host):
        return extra
    is_full = np.bincount(host, weights=rates, minlength=hosts) >= limit * (1 - _AT_LIMIT)
    chosen = is_wanted & is_full[host] & (value > 0)
    price = np.zeros(hosts)
    np.maximum.at(price, host[chosen], value[chosen])
    priced = price > 0
    extra[priced] = np.maximum(np.log(price[priced]) - log_price, 0.0)
    extra[extra < LEAST_EXTRA] = 0.0
    return extra


def packed_prices(extra: Floats) -> bytes:
    """Return what is published of a partition, whose hosts have the numbers 0, 1, ... here as there."""
    at = np.flatnonzero(extra > 0)
    table: NDArray[Any] = np.zeros(len(at), PRICES)
    table["host"], table["extra"] = at, extra[at]
    return table.tobytes()
