"""Pages with update times among the pages of a plan: their timetables and what was learned of them, read once per visit."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.judging.update_times import Republished, bought_times, numbers_of_timed, republished
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.frontier.planning.page_columns import Pages
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.scheduling.numbers import Numbers
from optimal_frontier.settings import FrontierSettings, Timetable
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.rows import ACTIVE, CHECKED, HEAD_BYTES, HELD, SIGNALLED, TAIL_BYTES, TIMED, Row, split_tail

#: Pages read in one round trip.
_BATCH: Final = 100
#: Numbers that differ by less, seconds, are the same.
_SAME_S: Final = 0.5

Ints = NDArray[np.int64]


@dataclass(slots=True)
class _Known:
    row: Row
    page: Republished
    bought: list[bool] | None = None


class RepublishedPages:
    """The pages with update times of one partition.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Which one.
    settings : FrontierSettings
        With RULES.
    """

    def __init__(self, namespace: Namespace, partition: int, settings: FrontierSettings) -> None:
        self.namespace = namespace
        self.partition = partition
        self.settings = settings
        self._known: dict[bytes, _Known] = {}
        self._pages: list[tuple[int, bytes]] = []

    def read(self, pages: Pages) -> None:
        """Read what is stored of those among the `pages` of the table that were visited since."""
        timed = np.flatnonzero((pages["flags"] & TIMED > 0) & (pages["state"] == ACTIVE) & (pages["visits"] > 0))
        ids: list[bytes] = pages["id"][timed].tolist()
        at = dict(zip(ids, timed.tolist(), strict=True))
        self._known = {page: known for page, known in self._known.items() if page in at}
        old = [page for page in ids if page not in self._known or self._known[page].row.b != float(pages["b"][at[page]])]
        for start in range(0, len(old), _BATCH):
            self._fetch(old[start : start + _BATCH])
        self._pages = [(row, page) for page, row in at.items() if page in self._known]

    def of_plan(self, rows: Ints, importance: NDArray[np.float64], bounds: tuple[Any, Any]) -> TimedPages | None:
        """Return what they buy in a plan of some pages, as far as they are among them.

        Parameters
        ----------
        rows : ndarray of int (n,)
            Where these pages stand in the table, rising.
        importance, bounds : ndarray (n,), pair of ndarray (n,)
            Of the pages of the plan; least and most visits per second.
        """
        if not self._pages or not len(rows):
            return None
        groups: dict[Timetable, list[tuple[int, list[float]]]] = {}
        first, last = (bisect_left(self._pages, (row, b"")) for row in (int(rows[0]), int(rows[-1]) + 1))
        some = self._pages[first:last]
        places = np.searchsorted(rows, np.array([row for row, _ in some], np.int64)).tolist()
        for place, (row, page) in zip(places, some, strict=True):
            if rows[place] == row:
                known = self._known[page].page
                groups.setdefault(known.timetable, []).append((place, known.probabilities))
        parts = []
        for timetable, group in groups.items():
            at = np.array([place for place, _ in group], np.int64)
            believed = np.array([probabilities for _, probabilities in group])
            own = bounds[0][at], bounds[1][at]
            parts.append(TimedPages.of_timetable(timetable, at, believed, importance[at], own, self.settings.objective))
        return TimedPages.together(parts) if parts else None

    def moved(self, pages: Pages, terms: Terms) -> list[tuple[bytes, float, Numbers]]:
        """Return page, b and new numbers of those for which other times are bought at this price than before."""
        found = []
        for at, page in self._pages:
            known = self._known[page]
            row = known.row._replace(importance=float(pages["importance"][at]))
            bought = bought_times(known.page, row, terms)
            if bought == known.bought or row.failures or row.gone or row.l == 0 or row.flags & (SIGNALLED | CHECKED | HELD):
                continue
            known.bought = bought
            numbers = numbers_of_timed(known.page, row, page, terms)
            if abs(numbers.l - row.l) > _SAME_S or abs(numbers.a - row.a) > _SAME_S:
                found.append((page, row.b, numbers))
                known.row = known.row._replace(a=numbers.a, s=numbers.s, e=numbers.e, l=numbers.l)
        return found

    def _fetch(self, ids: list[bytes]) -> None:
        key = self.namespace.key
        stored, memories = self.namespace.commands(
            [["HMGET", key("pages", self.partition), *ids], ["HMGET", key("memory", self.partition), *ids]], partition=self.partition
        )
        rows = [Row.unpack(value) if value and len(value) >= HEAD_BYTES + TAIL_BYTES else None for value in stored]
        hosts = sorted({row.host for row in rows if row is not None})
        names = {}
        if hosts:
            found = self.namespace.command("HMGET", key("hosts:names", self.partition), *hosts, partition=self.partition)
            names = {host: name.decode("utf-8", "replace") for host, name in zip(hosts, found, strict=True) if name}
        for page, row, value, memory in zip(ids, rows, stored, memories, strict=True):
            self._known.pop(page, None)
            if row is None:
                continue
            timetable = self.settings.rules.of(url_of_record(split_tail(value)[1], names.get(row.host, ""))).update_times
            if timetable is not None:
                self._known[page] = _Known(row, republished(timetable, Memory.readable(memory)))
