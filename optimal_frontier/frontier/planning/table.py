"""The pages of a partition as the planner last read them: arrays that stay in the process, brought up to date a part at a time.

A judge writes exact numbers after each visit, so a plan need not see every visit. What it needs of each page moves slowly: importance,
bounds, posterior. Hence a plan reads the part of the table that is about as large as the share of pages visited since the last one, twice
over, and goes on at the next plan where it stopped. A page is known as it was at most about half a round ago. Small tables are read whole.

Notes
-----
Reading is ``HSCAN pages``, `SCAN_COUNT` rows at a time: 2 us of the server a row, so that no dispatch waits longer than a millisecond.
HSCAN returns every page that is there throughout a cycle, whatever happens meanwhile; a page that a whole cycle did not show is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import HEAD_BYTES, LAYOUT

#: Rows that one HSCAN asks for.
SCAN_COUNT: Final = 500
#: Tables of up to so many pages are read whole at each plan.
SMALL: Final = 20_000
#: A plan reads so many times the share of pages that were visited since the last one, and at least `LEAST_SHARE`.
OVERLAP: Final = 2.0
LEAST_SHARE: Final = 1.0 / 64.0

#: Fields of the head that plans use.
_USED: Final = (
    "host",
    "state",
    "flags",
    "b",
    "a",
    "s",
    "e",
    "l",
    "importance",
    "min_interval",
    "max_interval",
    "shape",
    "time",
    "visits",
    "failed",
    "failures",
    "pattern",
)
#: A page in the table: those, its identity, the median of its own posterior (1/s; 0 without a bit), the log price at which its place in the
#: queue was found, and the number of the cycle that showed it last.
PAGE: Final = np.dtype(
    [(name, LAYOUT[name]) for name in _USED] + [("id", f"S{PAGE_BYTES}"), ("median", "f8"), ("placed", "f8"), ("cycle", "u4")]
)
_KEY_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_WORDS: Final = np.dtype([("first", "<u8"), ("rest", "<u4")])

Rows = NDArray[Any]
Indices = NDArray[np.int64]


def keys_of(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Return one number for each page, from which it is found again; two pages have the same one with a chance of 5e-20."""
    words = np.ascontiguousarray(ids).view(_WORDS)
    with np.errstate(over="ignore"):
        return np.asarray((words["first"] * _KEY_FACTOR) ^ (words["rest"].astype(np.uint64) << np.uint64(13)) ^ words["rest"])


class PageTable:
    """The pages of one partition.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Which one.

    Attributes
    ----------
    pages : ndarray of `PAGE`
        As they were read, in no order that means anything; positions change with every `read`.
    """

    def __init__(self, namespace: Namespace, partition: int) -> None:
        self.namespace = namespace
        self.partition = partition
        self.pages: Rows = np.zeros(0, PAGE)
        self._keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._cursor = 0
        self._cycle = 0
        self._is_whole = False

    def read(
        self,
        share: float,
        placed: float,
        each: Callable[[], None] = lambda: None,
        see: Callable[[list[bytes], list[bytes]], list[bytes]] | None = None,
    ) -> Indices:
        """Read a part of the partition, and return where the pages stand that were read.

        Parameters
        ----------
        share : float
            Of the pages; 1 or more, and the first time: all of them.
        placed : float
            Log price by which pages were placed in the queue that have been visited since they were read.
        each : callable
            Called between two calls to the server.
        see : callable, optional
            Gets pages and stored values of every call, and returns the values that are stored from then on.
        """
        everything = share >= 1.0 or not self._is_whole or len(self.pages) <= SMALL
        if everything:
            self._cursor = 0
        most = np.inf if everything else share * len(self.pages)
        ids: list[bytes] = []
        heads: list[bytes] = []
        is_done = False
        while not is_done and len(ids) < most:
            if self._cursor == 0:
                self._cycle += 1
            cursor, found, values = self._scan()
            if see is not None:
                values = see(found, values)
            ids += found
            heads += [value[:HEAD_BYTES] for value in values]
            is_done = cursor == 0
            self._cursor = cursor
            each()
        rows = self._merge(ids, heads, placed)
        if is_done:
            self._is_whole = True
            rows = self._forget(rows)
        return rows

    def _scan(self) -> tuple[int, list[bytes], list[bytes]]:
        key = self.namespace.key("pages", self.partition)
        reply = self.namespace.command("HSCAN", key, self._cursor, "COUNT", SCAN_COUNT, partition=self.partition)
        cursor, pairs = int(reply[0]), reply[1]
        items: Iterable[tuple[bytes, bytes]] = pairs.items() if isinstance(pairs, dict) else zip(pairs[::2], pairs[1::2], strict=True)
        # What is no row is left to `check`.
        sound = [(page, value) for page, value in items if len(page) == PAGE_BYTES and len(value) >= HEAD_BYTES]
        return cursor, [page for page, _ in sound], [value for _, value in sound]

    def _merge(self, ids: list[bytes], heads: list[bytes], placed: float) -> Indices:
        read = np.frombuffer(b"".join(heads), LAYOUT)
        names = np.frombuffer(b"".join(ids), f"S{PAGE_BYTES}")
        keys, first = np.unique(keys_of(names), return_index=True)
        read, names = read[first], names[first]
        at = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), bool)
        inside = at < len(self._keys)
        known[inside] = self._keys[at[inside]] == keys[inside]
        if not known.all():
            added = keys[~known]
            where = at[~known]
            self._keys = np.insert(self._keys, where, added)
            new = np.zeros(len(added), PAGE)
            new["median"] = np.nan
            new["placed"] = placed
            self.pages = np.insert(self.pages, where, new)
            at = np.searchsorted(self._keys, keys)
        table = self.pages
        moved = table["b"][at] != read["b"]
        is_learned = (table["shape"][at] != read["shape"]) | (table["time"][at] != read["time"])
        table["median"][at[is_learned]] = np.nan
        table["placed"][at[moved]] = placed
        for name in _USED:
            table[name][at] = read[name]
        table["id"][at] = names
        table["cycle"][at] = self._cycle
        return at

    def _forget(self, rows: Indices) -> Indices:
        there = self.pages["cycle"] == self._cycle
        if there.all():
            return rows
        place = np.cumsum(there) - 1
        self.pages, self._keys = self.pages[there], self._keys[there]
        return np.asarray(place[rows[there[rows]]], np.int64)


def share_to_read(pages: int, touched: int) -> float:
    """Return which share of the table a plan reads, when so many pages were visited or added since the last one.

    Examples
    --------
    >>> share_to_read(1_000_000, 10_000), share_to_read(1_000_000, 10), share_to_read(10, 50)
    (0.02, 0.015625, 1.0)
    """
    return min(1.0, max(LEAST_SHARE, OVERLAP * touched / max(pages, 1)))
