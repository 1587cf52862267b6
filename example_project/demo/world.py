"""The fixed world of the example: which pages there are, what they are worth, and when each of them changes.

Everything is drawn from a seed before the run, so the site is a pure function of the time since its start and the report can hold
the crawl against the truth.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

#: Number of pages and of hosts (ports on 127.0.0.1); page p lives on host p % HOSTS.
PAGES = 300
HOSTS = 10
#: Fetches per second that the crawler may spend; OPTIMAL_FRONTIER_CRAWL_RATE of the example's settings.
BUDGET = 50.0
#: Length of a run in seconds.
SECONDS = 90.0
#: Mean change rate of the changing pages, per second. Log-uniform over two decades has a mean of 0.215 of its maximum, so the hottest
#: page changes 12 times as often as uniform revisiting would fetch it.
MEAN_CHANGE_RATE = 12 * 0.215 * BUDGET / PAGES
#: Change times are drawn for this many seconds beyond the run: time for the crawler to start and to stop.
MARGIN_S = 120.0

_NEVER_CHANGING_SHARE = 0.1
_DYING = 5
_DECADES = 2.0
_ZIPF_EXPONENT = 0.8
_HUBS = 12  # linked from the start page; all other pages are linked from a hub
_EXTRA_LINKS = 3


@dataclass(frozen=True)
class World:
    """Pages with their importance, change times, deaths and links.

    Attributes
    ----------
    importance : ndarray of shape (n,)
        Zipf weights k**-0.8, independent of the change rates.
    change_rate : ndarray of shape (n,)
        Changes per second; 0 for pages that never change.
    death : ndarray of shape (n,)
        Seconds after the site's start from which the page answers 404; inf for pages that live on.
    changes : tuple of n ndarrays
        Change times in ascending order, seconds after the site's start: one Poisson process per page.
    links : tuple of n tuples
        Pages that each page links to. All pages can be reached from page 0, also without those that die.
    paths : tuple of n str
        Where each page is on its host; empty: ``/page/N``.
    homes : tuple of n int
        Host of each page; empty: the page's number modulo `HOSTS`.
    notices : tuple of (float, int)
        Times and pages that the feeds of the hosts tell of, in ascending order; empty: there are no feeds.
    """

    importance: np.ndarray
    change_rate: np.ndarray
    death: np.ndarray
    changes: tuple[np.ndarray, ...]
    links: tuple[tuple[int, ...], ...]
    paths: tuple[str, ...] = ()
    homes: tuple[int, ...] = ()
    notices: tuple[tuple[float, int], ...] = ()

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return 1 + max(self.homes) if self.homes else HOSTS

    def path(self, page: int) -> str:
        """Where a page is on its host."""
        return self.paths[page] if self.paths else f"/page/{page}"

    def host(self, page: int) -> int:
        """Number of the host of a page."""
        return self.homes[page] if self.homes else page % HOSTS

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.importance)

    def version(self, page: int, time_s: float) -> int:
        """Version that `page` shows at a time: 1 plus the number of its changes up to then."""
        return 1 + bisect_right(self.changes[page], time_s)


def make_world(seed: int = 1, seconds: float = SECONDS) -> World:
    """Draw the world; the same arguments give the same world.

    Parameters
    ----------
    seed : int
        Which world.
    seconds : float
        Length of the run; deaths lie between its 25 % and 75 %.
    """
    rng = np.random.default_rng(seed)
    importance = rng.permutation(np.arange(1, PAGES + 1, dtype=float) ** -_ZIPF_EXPONENT)

    never = round(_NEVER_CHANGING_SHARE * PAGES)
    changing = 10.0 ** (_DECADES * (np.arange(PAGES - never) + 0.5) / (PAGES - never))
    changing *= MEAN_CHANGE_RATE / changing.mean()
    change_rate = rng.permutation(np.concatenate([changing, np.zeros(never)]))

    death = np.full(PAGES, np.inf)
    leaves = np.arange(1 + _HUBS, PAGES)
    death[rng.choice(leaves, _DYING, replace=False)] = rng.uniform(0.25, 0.75, _DYING) * seconds

    links = []
    for page in range(PAGES):
        down = range(1, 1 + _HUBS) if page == 0 else leaves[page - 1 :: _HUBS] if page <= _HUBS else ()
        links.append(tuple(int(p) for p in (*down, *rng.choice(PAGES, _EXTRA_LINKS, replace=False))))

    horizon = seconds + MARGIN_S
    changes = tuple(_poisson_times(np.random.default_rng([seed, page]), rate, horizon) for page, rate in enumerate(change_rate))
    return World(importance, change_rate, death, changes, tuple(links))


def _poisson_times(rng: np.random.Generator, rate: float, horizon: float) -> np.ndarray:
    return np.sort(rng.uniform(0.0, horizon, rng.poisson(rate * horizon)))
