"""Hubs among the pages of a plan: what the new pages that they yield are worth, read once per visit."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.judging.hubs import worth_of
from optimal_frontier.frontier.planning.page_columns import Pages
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ACTIVE, HUB, TIMED

#: Pages read in one round trip.
_BATCH: Final = 500

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class HubPages:
    """The hubs of one partition.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Which one.
    settings : FrontierSettings
        DISCOVERY_VALUE.
    """

    def __init__(self, namespace: Namespace, partition: int, settings: FrontierSettings) -> None:
        self.namespace = namespace
        self.partition = partition
        self.settings = settings
        self._known: dict[bytes, tuple[float, float]] = {}
        self._at: Ints = np.zeros(0, np.int64)
        self._yielded: Floats = np.zeros(0)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._at)

    def read(self, pages: Pages) -> None:
        """Read what is remembered of those among the `pages` of the table that were visited since."""
        if not self.settings.discovery_value:
            return
        hubs = np.flatnonzero(pages["flags"] & (HUB | TIMED) == HUB)
        if not len(hubs):
            self._known, self._at, self._yielded = {}, hubs, np.zeros(0)
            return
        hubs = hubs[pages["state"][hubs] == ACTIVE]
        ids: list[bytes] = pages["id"][hubs].tolist()
        visited: list[float] = pages["b"][hubs].tolist()
        before, self._known = self._known, {}
        old = []
        for page, b in zip(ids, visited, strict=True):
            known = before.get(page)
            if known is not None and known[0] == b:
                self._known[page] = known
            else:
                old.append((page, b))
        key = self.namespace.key("memory", self.partition)
        for start in range(0, len(old), _BATCH):
            some = old[start : start + _BATCH]
            stored = self.namespace.command("HMGET", key, *(page for page, _ in some), partition=self.partition)
            for (page, b), raw in zip(some, stored, strict=True):
                self._known[page] = b, self._worth(raw)
        self._at, self._yielded = hubs, np.array([self._known[page][1] for page in ids])

    def _worth(self, raw: bytes | None) -> float:
        try:
            return worth_of(Memory.unpack(raw), self.settings)
        except ValueError:
            return 0.0  # `check` says so

    def among(self, rows: Ints) -> Floats | None:
        """Return what the new pages of a second count that each of these pages of the table, in rising order, yields; None: none does."""
        if not self.count or not len(rows):
            return None
        near = slice(*np.searchsorted(self._at, (rows[0], rows[-1] + 1)))
        hubs = self._at[near]
        at = np.searchsorted(rows, hubs)
        there = rows[at] == hubs
        found = np.zeros(len(rows))
        found[at[there]] = self._yielded[near][there]
        return found
