"""Events over sections of sites: one moment in which many pages of a section, or of a host, change together, mostly in working hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.simulation.processes import Drawn
from optimal_frontier.simulation.ragged import Floats, Ragged
from optimal_frontier.simulation.sites import Sites

#: Columns of `Sites.groups` whose groups have events: whole hosts, and directories.
_HOST: Final = 0
_SECTION: Final = 2


@dataclass(frozen=True)
class SectionEvents:
    """How pages change together.

    Attributes
    ----------
    share : float
        Share of a page's changes that come with events; the others are its own.
    of_hosts : float
        Share of these that come with events of the whole host; the others with events of the section.
    joined : float
        Share of the events that the page with the most changes of its group takes part in. The others take part in proportion to their
        change rates.
    busy : float
        Share of the events that fall into working hours.
    hours : float
        Working hours, of 24. Each host has them at a time of day of its own.
    """

    share: float = 0.8
    of_hosts: float = 0.25
    joined: float = 0.8
    busy: float = 0.9
    hours: float = 10.0

    def added_to(self, own: Drawn, rng: np.random.Generator, rates: Floats, horizon: float, sites: Sites) -> Drawn:
        """Return the changes of pages with those that come with events.

        Parameters
        ----------
        own : Drawn
            Their own changes.
        rng : numpy.random.Generator
            For the events.
        rates : ndarray (n,)
            Changes per day of each page with those of events.
        horizon : float
            Length of the crawl, days.
        sites : Sites
            Groups of the pages.
        """
        opens = rng.random(int(sites.host.max()) + 1)
        pages, times = [], []
        for column, share in ((_HOST, self.share * self.of_hosts), (_SECTION, self.share * (1.0 - self.of_hosts))):
            for group in np.unique(sites.groups[:, column]):
                members = np.flatnonzero(sites.groups[:, column] == group)
                with_events = share * rates[members]
                pace = float(with_events.max()) / self.joined
                if pace <= 0.0:
                    continue
                at = horizon * rng.random(rng.poisson(pace * horizon))
                at = self._in_rhythm(at, float(opens[sites.host[members[0]]]))
                event, member = np.nonzero(rng.random((len(at), len(members))) < with_events / pace)
                pages.append(members[member])
                times.append(at[event])
        pages.append(np.repeat(np.arange(len(rates)), own.changes.counts))
        times.append(own.changes.times)
        changed, when = np.concatenate(pages), np.concatenate(times)
        inside = when < horizon
        return Drawn(Ragged.joined(changed[inside], when[inside], len(rates)), None, rates)

    def _in_rhythm(self, at: Floats, opens: float) -> Floats:
        """Move times within their day, so that most lie in working hours, which begin at a share ``opens`` of the day."""
        days, place = np.divmod(at, 1.0)
        work = self.hours / 24.0
        quiet = work + (place - self.busy) * (1.0 - work) / max(1.0 - self.busy, 1e-9)
        moved = np.where(place < self.busy, place * work / max(self.busy, 1e-9), quiet)
        return np.asarray(days + (moved + opens) % 1.0)
