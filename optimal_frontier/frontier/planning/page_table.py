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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, LAYOUT, LEAST_IMPORTANCE, MOST_IMPORTANCE
from optimal_frontier.state.soundness import is_sound
from optimal_frontier.state.visit_log import WELL

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
    "directory",
)
#: A page in the table: those, its identity, the median of its own posterior (1/s; nan: not found yet), the log price at which its place in
#: the queue was found, the number of the cycle that showed it last; by how many seconds the clock of its neighbourhood is ahead since its
#: last visit, and how much of that is in its numbers.
PAGE: Final = np.dtype(
    [(name, LAYOUT[name]) for name in _USED]
    + [("id", f"V{PAGE_BYTES}"), ("median", "f8"), ("placed", "f8"), ("cycle", "u4"), ("shift", "f4"), ("written", "f4")]
)
#: Columns that the log of visits tells, and its names of them.
_NOTED: Final = {"a": "a", "s": "s", "e": "e", "l": "l", "shape": "new_shape", "time": "new_time"}
_KEY_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_WORDS: Final = np.dtype([("first", "<u8"), ("rest", "<u4")])

Indices = NDArray[np.int64]


class Pages(Mapping[str, NDArray[Any]]):
    """Columns of pages by their names in `PAGE`, each an array of its own: plans look at few of them, of all pages."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self.columns = dict(columns)

    @classmethod
    def none(cls) -> Pages:
        """Return no pages."""
        return cls({name: np.zeros(0, PAGE[name]) for name in PAGE.names or ()})

    @classmethod
    def joined(cls, parts: Sequence[Pages]) -> Pages:
        """Return pages laid end to end."""
        if len(parts) == 1:
            return parts[0]
        return cls({name: np.concatenate([part[name] for part in parts]) for name in PAGE.names or ()})

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(next(iter(self.columns.values())))

    def take(self, at: NDArray[Any]) -> NDArray[Any]:
        """Return some of them as records of `PAGE`."""
        some = np.zeros(int(np.count_nonzero(at)) if at.dtype == bool else len(at), PAGE)
        for name, values in self.columns.items():
            some[name] = values[at]
        return some

    def some(self, at: NDArray[Any], names: Iterable[str]) -> Pages:
        """Return some columns of some pages."""
        return Pages({name: self.columns[name][at] for name in names})

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Let go of all others."""
        self.columns = {name: values[wanted] for name, values in self.columns.items()}

    def insert(self, where: NDArray[np.int64], **values: float) -> None:
        """Make room for pages in front of these positions; columns that are not named are 0."""
        self.columns = {
            name: np.insert(
                column,
                where,
                np.array(values.get(name, 0), column.dtype) if column.dtype.kind != "V" else np.zeros(len(where), column.dtype),
            )
            for name, column in self.columns.items()
        }


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
    pages : Pages
        As they were read, in no order that means anything; positions change with every `read`.
    """

    def __init__(self, namespace: Namespace, partition: int) -> None:
        self.namespace = namespace
        self.partition = partition
        self.pages = Pages.none()
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
        everything = share >= 1.0 or not self._is_whole or self.pages.count <= SMALL
        if everything:
            self._cursor = 0
        most = np.inf if everything else share * self.pages.count
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

    def note(self, visits: NDArray[Any], placed: float) -> None:
        """Note what visits left of pages, an array of `visit_log.VISIT`, as far as they are in the table, which stays in its order."""
        keys = keys_of(visits["page"])
        at = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        table = self.pages
        known = np.flatnonzero(self._keys[at] == keys) if len(self._keys) else np.zeros(0, np.int64)
        # Those that were read since they were visited are known better. Of two visits to a page the last one counts.
        known = known[(visits["until"][known] > table["b"][at[known]]) & (visits["flags"][known] & WELL > 0)]
        at = at[known]
        table["b"][at] = visits["until"][known]
        table["flags"][at] = visits["row_flags"][known]
        for name, told in _NOTED.items():
            table[name][at] = visits[told][known]
        table["state"][at], table["failures"][at], table["median"][at] = ACTIVE, 0, np.nan
        table["placed"][at], table["shift"][at], table["written"][at] = placed, 0.0, 0.0

    def _scan(self) -> tuple[int, list[bytes], list[bytes]]:
        key = self.namespace.key("pages", self.partition)
        reply = self.namespace.command("HSCAN", key, self._cursor, "COUNT", SCAN_COUNT, partition=self.partition)
        cursor, pairs = int(reply[0]), reply[1]
        items: Iterable[tuple[bytes, bytes]] = pairs.items() if isinstance(pairs, dict) else zip(pairs[::2], pairs[1::2], strict=True)
        # What is no row is left to `check`.
        rows = [(page, value) for page, value in items if len(page) == PAGE_BYTES and len(value) >= HEAD_BYTES]
        mask = is_sound(np.frombuffer(b"".join(value[:HEAD_BYTES] for _, value in rows), LAYOUT))
        if not mask.all():
            rows = [rows[at] for at in np.flatnonzero(mask)]
        return cursor, [page for page, _ in rows], [value for _, value in rows]

    def _merge(self, ids: list[bytes], heads: list[bytes], placed: float) -> Indices:
        read, names = np.frombuffer(b"".join(heads), LAYOUT), np.frombuffer(b"".join(ids), f"V{PAGE_BYTES}")
        keys = keys_of(names)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        # A page that HSCAN returned twice counts as it was last.
        last = np.append(keys[1:] != keys[:-1], True) if len(keys) else np.zeros(0, bool)
        if not last.all():
            keys, order = keys[last], order[last]
        if not np.array_equal(keys, self._keys):
            at = np.searchsorted(self._keys, keys)
            known = np.zeros(len(keys), bool)
            inside = at < len(self._keys)
            known[inside] = self._keys[at[inside]] == keys[inside]
            if not known.all():
                where = at[~known]
                self._keys = np.insert(self._keys, where, keys[~known])
                self.pages.insert(where, median=np.nan, placed=placed)
                at = np.searchsorted(self._keys, keys)
        else:
            at = np.arange(len(keys))
        table = self.pages
        visited = at[table["b"][at] != read["b"][order]]
        table["placed"][visited] = placed
        table["shift"][visited] = table["written"][visited] = 0.0
        is_learned = (table["shape"][at] != read["shape"][order]) | (table["time"][at] != read["time"][order])
        table["median"][at[is_learned]] = np.nan
        for name in _USED:
            table[name][at] = read[name][order]
        table["importance"][at] = np.clip(table["importance"][at], LEAST_IMPORTANCE, MOST_IMPORTANCE)
        table["id"][at] = names[order]
        table["cycle"][at] = self._cycle
        return np.asarray(at, np.int64)

    def _forget(self, rows: Indices) -> Indices:
        there = self.pages["cycle"] == self._cycle
        if there.all():
            return rows
        place = np.cumsum(there) - 1
        self.pages.keep(there)
        self._keys = self._keys[there]
        return np.asarray(place[rows[there[rows]]], np.int64)


def share_to_read(pages: int, touched: int) -> float:
    """Return which share of the table a plan reads, when so many pages were visited or added since the last one.

    Examples
    --------
    >>> share_to_read(1_000_000, 10_000), share_to_read(1_000_000, 10), share_to_read(10, 50)
    (0.02, 0.015625, 1.0)
    """
    return min(1.0, max(LEAST_SHARE, OVERLAP * touched / max(pages, 1)))
