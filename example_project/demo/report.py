"""How fresh a crawl kept its copies, held against the best and the plainest that the same number of fetches could do.

Pure functions of the world and the site's record of fetches. Conventions, the same for all figures:

- The copy of a page is the version served at its last fetch; a page counts as fresh while its present version is that one. A page
  never fetched is not fresh. A page that never changes is fresh from its first fetch on.
- A page that dies counts until its death and not after it: its weight is its importance times the share of the window it lived.
- Every fetch that the site answered counts as used, those answered with 404 too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from demo.record import FetchRecord
from demo.world import BUDGET, World
from optimal_frontier.optimization import freshness_periodic, solve_periodic

#: Width in seconds of the window in which the fetches are counted against the budget, and the seconds' worth allowed in it.
BURST_WINDOW_S = 5.0
BURST_ALLOWED_S = 5.5
#: Statuses after which the copy of a page is the version served.
SERVED = (200, 304)


@dataclass(frozen=True)
class Report:
    """The figures of one run; times in seconds after the site's start, rates per second.

    Attributes
    ----------
    start, end : float
        The window measured: the last half of the run.
    reached, uniform, optimum : float
        Importance-weighted freshness of the crawl (exact, from the site's record), of revisiting all living pages equally often, and
        of the best evenly spaced visits by one who knows every change rate (but not the change times). The last two are expectations
        at the number of fetches that the crawl used in the window.
    gap_closed : float
        (reached - uniform) / (optimum - uniform).
    fetch_rate : float
        Fetches per second in the window.
    fetches, fetches_total : int
        Fetches in the window, and from the first to the window's end.
    pages_fetched, pages : int
        Pages fetched at least once, of how many.
    burst, burst_allowed : int, float
        Most fetches in any 5 s of the whole record, and 5.5 s worth of the budget.
    optimal_rates, rates : ndarray of shape (n,)
        Visits per second while alive: the optimum's and the crawl's.
    multiplier : float
        The optimum's price of a fetch, in weight x freshness per fetch a second.
    unchanged, not_modified : int
        Revisits in the window of a page that had not changed since the fetch before; of these, those that the site answered by 304.
    bytes_saved, bytes_full : int
        Bytes of bodies that were spared in the window, and that there would have been without conditional requests.
    """

    start: float
    end: float
    reached: float
    uniform: float
    optimum: float
    gap_closed: float
    fetch_rate: float
    fetches: int
    fetches_total: int
    pages_fetched: int
    pages: int
    burst: int
    burst_allowed: float
    optimal_rates: np.ndarray
    rates: np.ndarray
    multiplier: float
    unchanged: int = 0
    not_modified: int = 0
    bytes_saved: int = 0
    bytes_full: int = 0

    def figures(self) -> dict[str, Any]:
        """The scalar figures, for JSON."""
        return {name: value for name, value in asdict(self).items() if not isinstance(value, np.ndarray)}


def fresh_seconds(world: World, record: FetchRecord, edges: np.ndarray) -> np.ndarray:
    """Exact time that each page's copy was current, within each interval between two edges.

    Parameters
    ----------
    world : World
        Knows every change.
    record : FetchRecord
        Knows every fetch.
    edges : ndarray of shape (k + 1,)
        Ascending times.

    Returns
    -------
    ndarray of shape (n, k)
        Seconds, at most the length of the interval; nothing after a page's death.
    """
    fresh = np.zeros((world.pages, len(edges) - 1))
    good = np.isin(record.status, SERVED)
    order = np.flatnonzero(good)[np.argsort(record.page[good], kind="stable")]
    bounds = np.searchsorted(record.page[order], np.arange(world.pages + 1))
    for page in range(world.pages):
        fetched = order[bounds[page] : bounds[page + 1]]
        if len(fetched) == 0:
            continue
        begin = record.time[fetched]
        # The version served is 1 + the number of changes before it: the next one ends its currency, as does the next fetch.
        stale_at = np.append(world.changes[page], np.inf)[record.version[fetched] - 1]
        end = np.minimum(np.minimum(stale_at, np.append(begin[1:], np.inf)), world.death[page])
        end = np.maximum(end, begin)
        # Intervals do not overlap, so the time fresh up to an edge is a sum of clipped lengths.
        fresh[page] = np.diff([np.clip(edge - begin, 0.0, end - begin).sum() for edge in edges])
    return fresh


def alive_seconds(world: World, edges: np.ndarray) -> np.ndarray:
    """Time that each page lived within each interval between two edges; shape (n, k)."""
    return np.diff(np.minimum(edges[None, :], world.death[:, None]), axis=1)


def freshness_over_time(world: World, record: FetchRecord, edges: np.ndarray) -> np.ndarray:
    """Importance-weighted freshness within each interval between two edges; shape (k,)."""
    fresh = world.importance @ fresh_seconds(world, record, edges)
    return fresh / (world.importance @ alive_seconds(world, edges))


def largest_burst(times: np.ndarray, window: float = BURST_WINDOW_S) -> int:
    """Most fetches in any half-open interval of the given length; `times` ascending."""
    if len(times) == 0:
        return 0
    return int((np.searchsorted(times, times + window, side="left") - np.arange(len(times))).max())


def optimum(weight: np.ndarray, change_rate: np.ndarray, bandwidth: float) -> tuple[float, np.ndarray, float]:
    """Best expected freshness of evenly spaced visits, with its rates (n,) and its multiplier; unchanging pages need no visit."""
    changing = (change_rate > 0) & (weight > 0)
    solution = solve_periodic(weight[changing], change_rate[changing], bandwidth)
    rates = np.zeros(len(weight))
    rates[changing] = solution.rates
    value = freshness_periodic(weight[changing], change_rate[changing], solution.rates) + weight[change_rate == 0].sum()
    return float(value / weight.sum()), rates, float(solution.multiplier)


def uniform(weight: np.ndarray, change_rate: np.ndarray, rate: float) -> float:
    """Expected freshness if every page, changing or not, is visited `rate` times a second, evenly spaced."""
    changing = (change_rate > 0) & (weight > 0)
    value = freshness_periodic(weight[changing], change_rate[changing], np.full(int(changing.sum()), rate))
    return float((value + weight[change_rate == 0].sum()) / weight.sum())


def measure(world: World, record: FetchRecord, start: float, end: float, budget: float = BUDGET) -> Report:
    """Hold a crawl against the optimum and against uniform revisiting.

    Parameters
    ----------
    world : World
        The truth.
    record : FetchRecord
        What the site served.
    start, end : float
        The window to measure, in seconds after the site's start.
    budget : float
        Fetches per second that were allowed.

    Raises
    ------
    ValueError
        If there was no fetch in the window.
    """
    length = end - start
    within = (record.time >= start) & (record.time < end)
    fetches = int(within.sum())
    if fetches == 0:
        raise ValueError(f"the site saw no fetch between {start:.1f} and {end:.1f} s")
    edges = np.array([start, end])
    alive = alive_seconds(world, edges)[:, 0]
    weight = world.importance * alive / length
    fetch_rate = fetches / length

    reached = float(world.importance @ fresh_seconds(world, record, edges)[:, 0] / (weight.sum() * length))
    even = uniform(weight, world.change_rate, fetch_rate / (alive.sum() / length))
    best, optimal_rates, multiplier = optimum(weight, world.change_rate, fetch_rate)

    known = record.page >= 0
    visits = np.bincount(record.page[within & known & np.isin(record.status, SERVED)], minlength=world.pages)
    unchanged = within & _is_unchanged(record)
    spared = within & (record.status == 304)
    sizes = record.size if len(record.size) else np.zeros(len(record.time), int)
    return Report(
        start=start,
        end=end,
        reached=reached,
        uniform=even,
        optimum=best,
        gap_closed=(reached - even) / (best - even),
        fetch_rate=fetch_rate,
        fetches=fetches,
        fetches_total=int((record.time < end).sum()),
        pages_fetched=len(np.unique(record.page[known & (record.version > 0)])),
        pages=world.pages,
        burst=largest_burst(record.time),
        burst_allowed=BURST_ALLOWED_S * budget,
        optimal_rates=optimal_rates,
        rates=np.divide(visits, alive, out=np.zeros(world.pages), where=alive > 0),
        multiplier=multiplier,
        unchanged=int(unchanged.sum()),
        not_modified=int((unchanged & spared).sum()),
        bytes_saved=int(sizes[spared].sum()),
        bytes_full=int(sizes[within].sum()),
    )


def _is_unchanged(record: FetchRecord) -> np.ndarray:
    """Whether each fetch was a revisit that served the version that the fetch before had served; shape (m,)."""
    served = np.flatnonzero(np.isin(record.status, SERVED) & (record.page >= 0))
    order = served[np.argsort(record.page[served], kind="stable")]
    same = (np.diff(record.page[order]) == 0) & (np.diff(record.version[order]) == 0)
    unchanged = np.zeros(len(record.time), bool)
    unchanged[order[1:][same]] = True
    return unchanged
