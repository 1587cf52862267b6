"""How fresh pages are in the time after they arrive."""

from __future__ import annotations

import numpy as np

from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.worlds import Realised


def freshness_when_new(world: Realised, visits: Visits, rounds: float, horizon: float) -> float:
    """Return the share of the importance of new pages that is up to date.

    Parameters
    ----------
    world : Realised
        Pages and changes.
    visits : Visits
        To them.
    rounds : float
        For how long a page is new, in rounds (the time in which the budget visits every page once).
    horizon : float
        Length of the crawl.

    Returns
    -------
    float
        Over pages that arrive during the crawl, from arrival on; NaN if none do. Not fresh before the first visit.
    """
    until = np.minimum(world.arrival + rounds * len(world) / world.budget, horizon)
    late = world.arrival > 0.0
    time = np.where(late, until - world.arrival, 0.0)
    if not time.any():
        return float("nan")
    order = np.argsort(visits.pages, kind="stable")
    pages, fetched = visits.pages[order], visits.times[order]
    next_visit = np.append(fetched[1:], horizon)
    next_visit[np.append(pages[1:] != pages[:-1], True)] = horizon
    begin, end = np.clip(fetched, world.arrival[pages], until[pages]), np.clip(next_visit, world.arrival[pages], until[pages])
    used = late[pages] & (end > begin)
    fresh = world.fresh_time(pages[used], fetched[used], begin[used], end[used])
    return float(fresh @ world.importance[pages[used]] / (time @ world.importance))
