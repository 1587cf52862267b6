"""The pages of a partition as the planner last read them: arrays that stay in the process, brought up to date a part at a time.

A judge writes exact numbers after each visit, so a plan need not see every visit. What it needs of each page moves slowly: importance,
bounds, posterior. Hence a plan reads the part of the table that is about as large as the share of pages visited since the last one, twice
over, and goes on at the next plan where it stopped. A page is known as it was at most about half a round ago. Small tables are read whole.

Notes
-----
Reading is ``HSCAN pages``, `SCAN_COUNT` rows at a time: 1.5 to 3 us of the server a row, most of it the time of its memory, so that no
dispatch waits longer than that of one call. Whole rows come, and are cut here: a script that sent only what is needed took twice as long.
HSCAN returns every page that is there throughout a cycle, unless the server is started anew meanwhile, or another one takes its place: that
has them in another order. So a page is forgotten that two cycles did not show, or one read of the whole table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.planning.page_columns import USED, Pages
from optimal_frontier.frontier.planning.page_index import PageIndex, keys_of
from optimal_frontier.optimization.sweeps import ahead
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, LAYOUT, LEAST_IMPORTANCE, MOST_IMPORTANCE
from optimal_frontier.state.scan_ahead import Scan
from optimal_frontier.state.soundness import CHECKED, is_sound
from optimal_frontier.state.visit_log import WELL

#: Rows that one HSCAN asks for.
SCAN_COUNT: Final = 500
#: Rows that are held as they came, before they are taken into the table: 2 MB, which stay in a cache of the processor.
CHUNK: Final = 16_384
#: Room for pages that join soon, beside those that are there.
_SPARE: Final = 1.05
#: Tables of up to so many pages are read whole at each plan.
SMALL: Final = 20_000
#: A plan reads so many times the share of pages that were visited since the last one, and at least `LEAST_SHARE`.
OVERLAP: Final = 2.0
LEAST_SHARE: Final = 1.0 / 64.0

#: Columns that the log of visits tells, and its names of them.
_NOTED: Final = {"a": "a", "s": "s", "e": "e", "l": "l", "shape": "new_shape", "time": "new_time"}

_head_of: Final = itemgetter(slice(HEAD_BYTES))

Indices = NDArray[np.int64]
#: Pages and stored values -> the values that are stored from then on.
See = Callable[[list[bytes], list[bytes]], list[bytes]]


class _Chunk(NamedTuple):
    """Rows as they came: where HSCAN goes on, how many, their pages and heads end to end."""

    cursor: int
    rows: int
    ids: bytes
    heads: bytes


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
        As they were read, in no order that means anything. New ones come at the end; all others stay where they are, but for a `read` by
        which pages are forgotten.
    turnover : int
        How many joined or were forgotten with the last `read`.
    """

    def __init__(self, namespace: Namespace, partition: int) -> None:
        self.namespace = namespace
        self.partition = partition
        self.pages = Pages.none()
        self.turnover = 0
        self._index = PageIndex()
        self._key = namespace.key("pages", partition)
        self._cursor = 0
        self._is_whole = False

    def read(
        self,
        share: float,
        placed: float,
        each: Callable[[], None] = lambda: None,
        see: See | None = None,
    ) -> int:
        """Read a part of the partition, and return how many pages that are; they are ``fresh`` until the next time.

        Parameters
        ----------
        share : float
            Of the pages; 1 or more, the first time, and where most of them are gone: all that are there.
        placed : float
            Log price by which pages were placed in the queue that have been visited since they were read.
        each : callable
            Called between two calls to the server, on the thread that makes them.
        see : callable, optional
            Gets pages and stored values of every call, on the same thread, and returns the values that are stored from then on.
        """
        stored = self.namespace.command("HLEN", self._key, partition=self.partition)
        # Where most pages are gone, the server has lost them.
        everything = share >= 1.0 or not self._is_whole or self.pages.count <= SMALL or 2 * stored < self.pages.count
        if everything:
            self._cursor = 0
        most = np.inf if everything else share * self.pages.count
        if not self._is_whole:
            # Growing step by step would leave holes in the memory of the process as large as the table.
            self.pages.reserve(int(_SPARE * stored))
        self.pages["fresh"][:] = False
        count, is_done, self.turnover = 0, False, 0
        chunks = self._chunks(most, each, see)
        # While one is taken in the server and another thread are at the next.
        with contextlib.closing(ahead(chunks) if min(stored, most) > CHUNK else chunks) as chunks:
            for chunk in chunks:
                if self._cursor == 0:
                    self.pages["seen"][:] = 0 if everything else self.pages["seen"] >> 1
                self._merge(chunk, placed)
                count += chunk.rows
                # After an error the next read begins with what this one has not taken in.
                self._cursor, is_done = chunk.cursor, chunk.cursor == 0
        if is_done:
            self._is_whole = True
            self._forget()
        return int(np.count_nonzero(self.pages["fresh"]))

    def forget(self) -> None:
        """Forget all pages: the next `read` is of all that are there."""
        self.pages["seen"][:] = 0
        self._forget()
        self._is_whole = False

    def note(self, visits: NDArray[Any], placed: float) -> None:
        """Note what visits left of pages, an array of `visit_log.VISIT`, as far as they are in the table, which stays in its order."""
        table, ids = self.pages, visits["page"]
        at = self._index.find(ids, keys_of(ids), table)
        known = np.flatnonzero(at >= 0)
        # Those that were read since they were visited are known better. Of two visits to a page the last one counts.
        known = known[(visits["until"][known] > table["b"][at[known]]) & (visits["flags"][known] & WELL > 0)]
        at = at[known]
        table["b"][at] = visits["until"][known]
        table["flags"][at] = visits["row_flags"][known]
        for name, told in _NOTED.items():
            table[name][at] = visits[told][known]
        table["state"][at], table["failures"][at], table["median"][at] = ACTIVE, 0, np.nan
        table["placed"][at], table["shift"][at], table["written"][at] = placed, 0.0, 0.0

    def _chunks(self, most: float, each: Callable[[], None], see: See | None) -> Generator[_Chunk]:
        """Read on from where the last read stopped: so many rows, or all that are left of the cycle."""
        ids: list[bytes] = []
        heads: list[bytes] = []
        cursor, count = self._cursor, 0
        with contextlib.closing(self.namespace.scan(Scan(self._key, cursor, SCAN_COUNT, most), partition=self.partition)) as replies:
            for cursor, flat in replies:
                found, values, cut = _rows_of(flat)
                if see is not None:
                    found, values = _sound(found, values)
                    cut = b"".join(map(_head_of, see(found, values)))
                ids.append(b"".join(found))
                heads.append(cut)
                count, most = count + len(found), most - len(found)
                each()
                if count >= CHUNK or most <= 0 or cursor == 0:
                    yield _Chunk(cursor, count, b"".join(ids), b"".join(heads))
                    ids, heads, count = [], [], 0
                if most <= 0:
                    break
        if ids:  # as many entries as were asked for, of which some are no rows
            yield _Chunk(cursor, count, b"".join(ids), b"".join(heads))

    def _merge(self, chunk: _Chunk, placed: float) -> None:
        table, heads, names = self.pages, np.frombuffer(chunk.heads, LAYOUT), np.frombuffer(chunk.ids, f"V{PAGE_BYTES}")
        # Column by column from here on: to go through an array of rows takes several times as long.
        read = {name: heads[name].copy() for name in {*USED, *CHECKED}}
        sound = is_sound(read)
        # Numbers of hosts are given in order, and a plan has a column of each: a large one that is damaged would take all memory.
        most_hosts = table.count + len(heads)
        if read["host"].max(initial=0) > most_hosts:
            hosts = self.namespace.command("HLEN", self.namespace.key("hosts", self.partition), partition=self.partition)
            sound &= read["host"] <= hosts + most_hosts
        if not sound.all():
            read, names = {name: values[sound] for name, values in read.items()}, names[sound]
        keys = keys_of(names)
        # In the order of HSCAN, in which the table holds them too.
        at = self._index.find_in_order(names, keys, table)
        if not _is_run(at):
            last = _last_of_each(keys)
            if last is not None:
                keys, read, names, at = keys[last], {name: values[last] for name, values in read.items()}, names[last], at[last]
            new = np.flatnonzero(at < 0)
            if len(new):
                at[new] = np.arange(table.count, table.count + len(new))
                table.append(len(new), id=names[new], median=np.nan, placed=placed)
                self._index.add(keys[new], table)
                self.turnover += len(new)
        if not len(at):
            return
        here: Indices | slice = slice(int(at[0]), int(at[-1]) + 1) if _is_run(at) else at
        visited = at[table["b"][here] != read["b"]]
        table["placed"][visited] = placed
        table["shift"][visited] = table["written"][visited] = 0.0
        is_learned = (table["shape"][here] != read["shape"]) | (table["time"][here] != read["time"])
        table["median"][at[is_learned]] = np.nan
        np.clip(read["importance"], LEAST_IMPORTANCE, MOST_IMPORTANCE, out=read["importance"])
        for name in USED:
            table[name][here] = read[name]
        table["seen"][here], table["fresh"][here] = 2, True

    def _forget(self) -> None:
        seen = self.pages["seen"] > 0
        if not seen.all():
            self.turnover += int(np.count_nonzero(~seen))
            self.pages.keep(seen)
            self._index.rebuild(self.pages)


def _rows_of(flat: list[bytes]) -> tuple[list[bytes], list[bytes], bytes]:
    """Return pages, stored values, and heads end to end, of a reply, without what is no row: that is left to `check`."""
    pages, values = flat[::2], flat[1::2]
    heads = b"".join(map(_head_of, values))
    if len(heads) == HEAD_BYTES * len(values) and set(map(len, pages)) <= {PAGE_BYTES}:
        return pages, values, heads
    rows = [at for at, page in enumerate(pages) if len(page) == PAGE_BYTES and len(values[at]) >= HEAD_BYTES]
    values = [values[at] for at in rows]
    return [pages[at] for at in rows], values, b"".join(map(_head_of, values))


def _is_run(at: Indices) -> bool:
    """Tell whether pages stand one behind the other.

    Examples
    --------
    >>> _is_run(np.array([7, 8, 9])), _is_run(np.array([7, 9, 8])), _is_run(np.array([-1, -1]))
    (True, False, False)
    """
    return bool(len(at) and at[0] >= 0 and (np.diff(at) == 1).all())


def _last_of_each(keys: NDArray[np.uint64]) -> Indices | None:
    """Return where each page stands last, in their order; None where HSCAN has returned none twice.

    Examples
    --------
    >>> _last_of_each(np.array([7, 5, 7, 3], np.uint64)), _last_of_each(np.array([7, 5], np.uint64))
    (array([1, 2, 3]), None)
    """
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = np.argsort(keys, kind="stable")
    return np.sort(order[np.append(keys[order[1:]] != keys[order[:-1]], True)])


def _sound(pages: list[bytes], values: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return those of pages and stored values that are not damaged."""
    rows = np.flatnonzero(is_sound(np.frombuffer(b"".join([value[:HEAD_BYTES] for value in values]), LAYOUT))).tolist()
    return [pages[at] for at in rows], [values[at] for at in rows]


def share_to_read(pages: int, touched: int) -> float:
    """Return which share of the table a plan reads, when so many pages were visited or added since the last one.

    Examples
    --------
    >>> share_to_read(1_000_000, 10_000), share_to_read(1_000_000, 10), share_to_read(10, 50)
    (0.02, 0.015625, 1.0)
    """
    return min(1.0, max(LEAST_SHARE, OVERLAP * touched / max(pages, 1)))
