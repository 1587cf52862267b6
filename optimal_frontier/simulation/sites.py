"""Where the pages of a world live, since when and until when: hosts, sections of hosts, and pages that arrive during the crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.simulation.ragged import Floats, Ints

#: Hosts of a drawn world, and sections of each.
HOSTS: Final = 8
SECTIONS: Final = 5


@dataclass(frozen=True)
class Sites:
    """Neighbourhoods, arrival and end of pages.

    Attributes
    ----------
    groups : ndarray of int (n, 4)
        Groups that pages belong to, from wide to narrow, as in `path_groups`; each column is numbered through from 0.
    arrival : ndarray (n,)
        When the page is found; 0 for one that is there from the start.
    gone : ndarray (n,)
        When the page ceases to exist; inf for one that stays. A visit from then on finds that out, and is the last one.
    """

    groups: Ints
    arrival: Floats
    gone: Floats

    @property
    def host(self) -> Ints:
        """Host of each page, from 0."""
        return self.groups[:, 0]

    @property
    def pattern(self) -> Ints:
        """The narrowest group of each page, from 0: what siblings share."""
        return self.groups[:, -1]


@dataclass(frozen=True)
class SiteHabits:
    """How much the pages of a site have in common.

    Attributes
    ----------
    host_spread, section_spread : float
        Standard deviations of the logarithms of the factors that all pages of a host, and all of a section, have on their change rates.
        0 for groups that mean nothing.
    newcomers : float
        Share of the pages that arrive during the crawl, evenly over its time.
    """

    host_spread: float = 0.0
    section_spread: float = 0.0
    newcomers: float = 0.0

    def draw(self, rng: np.random.Generator, n: int, horizon: float) -> tuple[Sites, Floats]:
        """Return the groups and arrivals of pages, and the factor on the change rate of each."""
        pattern = rng.integers(0, HOSTS * SECTIONS, n)
        host = pattern // SECTIONS
        hosts, sections = rng.standard_normal(HOSTS), rng.standard_normal(HOSTS * SECTIONS)
        late = rng.random(n) < self.newcomers
        arrival = np.where(late, horizon * rng.random(n), 0.0)
        groups = np.column_stack([host, pattern, pattern, pattern])
        return Sites(groups, arrival, np.full(n, np.inf)), np.exp(self.host_spread * hosts[host] + self.section_spread * sections[pattern])
