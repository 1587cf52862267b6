"""Rates that are asked for, made to fit a budget and hosts' limits. Planner and simulation share it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Share of the revisit budget that even visits to all pages take: at load 1 a queue never drains.
LOAD: Final = 0.97
#: Shape of the prior of a page without a bit; its time is pages / budget, so that its mean is the mean revisit rate.
PRIOR_SHAPE: Final = 1.0
#: Largest number that solvers are given, and the inverse of the smallest above 0.
FAR: Final = 1e99

Floats = NDArray[np.float64]


def fit_minima(
    min_rate: Floats, max_rate: Floats, budget: float, host: NDArray[np.int64], host_max_rate: float | Floats
) -> tuple[Floats, bool]:
    """Scale minima down, each host's to its limit and all of them to the budget, where they do not fit.

    Returns
    -------
    tuple of ndarray and bool
        The minima, and whether they fitted as they were.
    """
    low = np.minimum(min_rate, max_rate)
    feasible = True
    if np.isfinite(host_max_rate).all() and len(low):
        sums = np.bincount(host, weights=low, minlength=np.size(host_max_rate))
        limits = np.broadcast_to(np.asarray(host_max_rate, dtype=np.float64), sums.shape)
        scale = limits / np.maximum(sums, limits)
        if np.any(sums > limits * (1 + 1e-9)):
            feasible = False
        low = low * scale[host]
    total = float(low.sum())
    if total > budget:
        feasible = feasible and total <= budget * (1 + 1e-9)
        low = low * (budget / total)
    return low, feasible


def fit_beside(
    low: Floats, asked: Floats, budget: float, host: NDArray[np.int64] | None = None, host_max_rate: float | Floats = np.inf
) -> Floats:
    """Raise minima that fit to what is asked for, as far as hosts and budget have room: what is asked beyond is scaled down.

    Parameters
    ----------
    low, asked : ndarray, shape (n,)
        Minima that are kept, and what is asked for, no less, visits per second.
    budget : float
        Most that all may have, visits per second.
    host : ndarray of int, shape (n,), optional
        Host of each page, from 0.
    host_max_rate : float or ndarray, shape (hosts,)
        Most visits per second to one host, or to each.
    """
    more = asked - low
    if host is not None and np.isfinite(host_max_rate).all() and len(low):
        hosts = np.size(host_max_rate)  # the last ones may have no page
        room = np.maximum(host_max_rate - np.bincount(host, weights=low, minlength=hosts), 0.0)
        wanted = np.bincount(host, weights=more, minlength=hosts)
        more = more * (room / np.maximum(np.maximum(wanted, room), 1 / FAR))[host]
    total, room = float(more.sum()), max(0.0, budget - float(low.sum()))
    return low + (more * (room / total) if total > room else more)
