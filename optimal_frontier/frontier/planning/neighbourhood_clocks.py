"""Clocks of neighbourhoods of a partition, as the planner keeps them: learned from the log of visits, stored with each plan.

One planner keeps them at a time: that which made the last plan. Another one that plans takes over what was stored, and reads the visits
since from the stream, so nothing is lost with a process.

Groups of fewer than three pages, and hosts of as few, are not kept; of a large crawl the largest `MOST_GROUPS`, as a group takes 650 bytes.
How many pages a group has is counted in a table that is small beside the pages, by a hash: two groups may share a count, so that at times
one is kept that need not be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.group_bins import BIN_S, fault_of_group
from optimal_frontier.estimation.neighbourhoods import BINS_A_ROUND, NO_GROUP, Neighbourhoods, VisitBatch, bin_length, fault_of_host
from optimal_frontier.frontier.planning.page_columns import Pages
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.state.clocks import (
    BEGINNING,
    LEVELS,
    Keys,
    StoredClocks,
    VisitsRead,
    group_keys,
    hosts_of_groups,
    newest_visit,
    order_of_entry,
    read_clocks,
    store_calls,
)
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.visit_log import CHANGED, SAMPLED

#: Groups and hosts of fewer pages are not kept.
FEWEST_PAGES: Final = 3
#: So many groups are kept, about: fewer pages than the smallest of them have are too few then.
MOST_GROUPS: Final = 200_000
#: Bits of a place in the table in which pages are counted, at least and at most; counts end at `_MANY`.
_COUNT_BITS: Final = (10, 24)
_MANY: Final = 255
#: Pages are counted anew when so large a share of them has joined or left since; those of a table of up to `FEW` at each plan.
STALE_SHARE: Final = 1.0 / 16.0
FEW: Final = 100_000
_BLOCK: Final = 65_536
#: Visits are learned from in parts that are no longer than so many bins, and no larger than so many visits.
_PART_BINS: Final = 0.125
_PART_VISITS: Final = 4096
#: The length of bins follows that of a round when it is off by more than so many powers of two.
_OFF: Final = 0.75
_HASH: Final = np.uint64(0x9E3779B97F4A7C15)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Groups by which pages are looked at again when a change was seen there: the two smaller ones.
_NEAR: Final = slice(2, None)


class Numbers:
    """Dense numbers of keys, from 0 on; numbers of keys that are dropped are given out again. ``version`` grows with each change.

    ``is_touched`` tells of each number whether it differs from what is stored; the last entry stands for no number, -1.
    """

    def __init__(self) -> None:
        self.keys: Keys = np.zeros(0, np.uint64)
        self.numbers: Ints = np.zeros(0, np.int64)
        self.size = self.version = 0
        self.is_touched = np.zeros(1, np.bool_)
        self._free: Ints = np.zeros(0, np.int64)

    def of(self, keys: Keys) -> Ints:
        """Return the numbers of keys, of the same shape; `NO_GROUP` for keys that have none."""
        if not len(self.keys):
            return np.full(keys.shape, NO_GROUP, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.numbers[at], NO_GROUP)

    def touch(self, keys: Keys, is_kept: NDArray[np.bool_]) -> Ints:
        """Return the numbers of keys, of the same shape, and note that they differ from what is stored; `NO_GROUP` for those not kept."""
        numbers = self.of(keys)
        new = is_kept & (numbers == NO_GROUP)
        if new.any():
            self.add(keys[new])
            numbers[new] = self.of(keys[new])
        numbers[~is_kept] = NO_GROUP
        self.is_touched[numbers] = True
        return numbers

    def touched(self) -> tuple[list[int], Ints]:
        """Return keys and numbers of those that differ from what is stored."""
        some = self.is_touched[self.numbers]
        return self.keys[some].tolist(), self.numbers[some]

    def add(self, keys: Keys) -> None:
        """Give numbers to keys that have none."""
        keys = np.unique(keys[self.of(keys) == NO_GROUP])
        reused, self._free = self._free[: len(keys)], self._free[len(keys) :]
        numbers = np.append(reused, np.arange(self.size, self.size + len(keys) - len(reused)))
        self.size += len(keys) - len(reused)
        if not len(keys):
            return
        self.version += 1
        self.is_touched = np.append(self.is_touched[:-1], np.zeros(self.size + 2 - len(self.is_touched), np.bool_))
        where = np.searchsorted(self.keys, keys)
        self.keys, self.numbers = np.insert(self.keys, where, keys), np.insert(self.numbers, where, numbers)

    def drop(self, is_kept: NDArray[np.bool_]) -> Keys:
        """Drop keys by whether their numbers are kept; return which."""
        kept = is_kept[self.numbers]
        if kept.all():
            return np.zeros(0, np.uint64)
        self.version += 1
        gone = self.keys[~kept]
        self._free = np.append(self._free, self.numbers[~kept])
        self.is_touched[self.numbers[~kept]] = False
        self.keys, self.numbers = self.keys[kept], self.numbers[kept]
        return gone


class PageGroups:
    """Groups of the pages of a table, found once for each order of the table; 16 bytes a page.

    Parameters
    ----------
    pages : Pages
        As the table has them now.
    is_kept : callable
        Tells of keys whether they are of groups that are kept.
    """

    def __init__(self, pages: Pages, is_kept: Callable[[Keys], NDArray[np.bool_]]) -> None:
        self.order, self._is_kept = pages.order, is_kept
        found = [np.unique(keys[is_kept(keys)]) for keys in _keys_of(pages, 0)]
        self.keys = np.unique(np.concatenate([np.zeros(0, np.uint64), *found]))
        self.of_page = np.zeros((len(LEVELS), 0), np.int32)
        self.extend(pages)
        #: Numbers of the groups, and of the hosts that groups of all pages of a host stand for, with the versions of which they are.
        self._numbers: dict[str, tuple[Numbers, int, Ints]] = {}

    def extend(self, pages: Pages) -> None:
        """Take in the pages that have joined since; those whose group none of the others is of have none."""
        first, known = self.of_page.shape[1], np.append(self.keys, 0)
        if first == pages.count:
            return
        grown = np.empty((len(LEVELS), pages.count), np.int32)
        grown[:, :first] = self.of_page
        for keys in _keys_of(pages, first):
            at = np.searchsorted(self.keys, keys)
            # The last one stands for no group.
            grown[:, first : first + len(keys)] = np.where(self._is_kept(keys) & (known[at] == keys), at, len(self.keys)).T
            first += len(keys)
        self.of_page = grown

    def numbers(self, groups: Numbers, at: Ints) -> Ints:
        """Return the numbers of the groups of some pages, (m, levels)."""
        numbers = self._numbers_of("groups", groups, self.keys)
        return np.array([numbers.take(column.take(at)) for column in self.of_page]).T

    def host_numbers(self, hosts: Numbers, at: Ints) -> Ints:
        """Return the numbers of the hosts of some pages, (m,)."""
        return np.asarray(self._numbers_of("hosts", hosts, hosts_of_groups(self.keys)).take(self.of_page[0].take(at)))

    def _numbers_of(self, what: str, known: Numbers, keys: Keys) -> Ints:
        """Return the numbers of keys, and `NO_GROUP` at the end; found anew when there are others."""
        found = self._numbers.get(what)
        if found is None or found[0] is not known or found[1] != known.version:
            found = self._numbers[what] = known, known.version, np.append(known.of(keys), NO_GROUP)
        return found[2]

    def touch(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell of each page whether one of these keys is that of its directory or its pattern."""
        marks = np.zeros(len(self.keys) + 1, bool)
        if len(self.keys):
            at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            marks[at[self.keys[at] == keys]] = True
        return np.asarray(np.logical_or.reduce([marks.take(column) for column in self.of_page[_NEAR]]))


class NeighbourhoodClocks:
    """The clocks of one partition.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Which one.

    Attributes
    ----------
    last : str
        Id of the last entry of the stream that was learned from.
    """

    def __init__(self, namespace: Namespace, partition: int) -> None:
        self.namespace = namespace
        self.partition = partition
        self.last = BEGINNING
        self._clocks: Neighbourhoods | None = None
        self._groups, self._hosts = Numbers(), Numbers()
        self._counts: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._fewest, self._turnover = FEWEST_PAGES, 0
        self._pages: PageGroups | None = None
        #: Groups in which a change was seen since the last look.
        self._stirred: list[Keys] = []

    def load(self, round_s: float) -> None:
        """Take over what is stored, in place of what is known here; what is damaged is learned anew."""
        now = self.namespace.now(self.partition)
        stored = _sound(read_clocks(self.namespace, self.partition), now)
        self._groups, self._hosts, self._stirred = Numbers(), Numbers(), []
        self.last = min(stored.last, newest_visit(self.namespace, self.partition), key=order_of_entry)
        self._clocks = Neighbourhoods(_bin_of(round_s))
        self._groups.add(np.array(sorted(stored.groups), np.uint64))
        self._hosts.add(np.array(sorted(stored.hosts), np.uint64))
        self._clocks.grow(self._groups.size, self._hosts.size)
        for key, number in zip(self._groups.keys.tolist(), self._groups.numbers.tolist(), strict=True):
            self._clocks.unpack_group(number, stored.groups[key], now)
        for key, number in zip(self._hosts.keys.tolist(), self._hosts.numbers.tolist(), strict=True):
            self._clocks.unpack_host(number, stored.hosts[key])

    def count(self, pages: Pages, turnover: int) -> None:
        """Count the pages of each group, of a large table only when many have joined or left since the last time: so many more now."""
        self._turnover += turnover
        if len(self._counts) and pages.count > FEW and self._turnover <= STALE_SHARE * pages.count:
            return
        bits = min(max(_COUNT_BITS[0], math.ceil(math.log2(4 * len(LEVELS) * pages.count + 1))), _COUNT_BITS[1])
        counts = np.zeros(2**bits, np.uint32)
        for keys in _keys_of(pages, 0):
            np.add.at(counts, _places(keys[keys > 0], bits), np.uint32(1))  # of the same type: 20 times as fast
        self._counts = np.minimum(counts, _MANY).astype(np.uint8)
        self._fewest = FEWEST_PAGES
        while self._fewest < _MANY and np.count_nonzero(self._counts >= self._fewest) > MOST_GROUPS:
            self._fewest += 1
        self._pages, self._turnover = None, 0

    def learn(self, read: VisitsRead, priors: Priors, round_s: float, now: float) -> None:
        """Learn from what was counted since the entry ``last``.

        Parameters
        ----------
        read : VisitsRead
            That.
        priors : Priors
            For pages without a bit before.
        round_s : float
            Seconds in which all pages can be visited once.
        now : float
            Server's time, seconds since the epoch.
        """
        visits, self.last = read.visits, read.last
        clocks = self._clocks
        if clocks is None:
            clocks = self._clocks = Neighbourhoods(_bin_of(round_s))
        if abs(math.log2(_bounded(round_s / BINS_A_ROUND) / clocks.bins.bin_s)) > _OFF:
            clocks.rescale(_bin_of(round_s), now)
        if not len(visits) or not len(self._counts):
            return
        keys = group_keys(visits["host"], visits["directory"], visits["pattern"])
        enough = self._is_kept(keys)
        kept = np.flatnonzero(enough[:, 0] & (visits["until"] > visits["since"]) & (visits["since"] > 0))
        some, keys, enough = visits[kept], keys[kept], enough[kept]
        groups = self._groups.touch(keys, enough)
        hosts = self._hosts.touch(some["host"].astype(np.uint64), np.ones(len(some), np.bool_))
        clocks.grow(self._groups.size, self._hosts.size)
        shape, time = some["shape"].astype(np.float64), some["time"].astype(np.float64)
        unknown = np.flatnonzero((shape <= 0) | (time <= 0))
        shape[unknown], time[unknown] = priors.of(some["pattern"][unknown])
        changed = some["flags"] & CHANGED > 0
        batch = VisitBatch(
            groups,
            hosts,
            some["since"] / 1e6,
            some["until"] / 1e6,
            changed,
            shape,
            time,
            some["flags"] & SAMPLED > 0,
        )
        for part in _parts(batch.until, _PART_BINS * clocks.bins.bin_s):
            clocks.fold(VisitBatch(*(values[part] for values in vars(batch).values())))
        self._stirred.append(keys[:, _NEAR][enough[:, _NEAR] & changed[:, None]])

    @property
    def is_open(self) -> bool:
        """Whether the clock of any host is another than the calendar."""
        clocks = self._clocks
        return clocks is not None and bool(clocks.runs.any())

    def running(self, pages: Pages) -> float:
        """Return the share of the pages whose clocks are another than the calendar; of a large table by some of them."""
        clocks = self._clocks
        if clocks is None or not self.is_open or not pages.count:
            return 0.0
        some = self._hosts.of(pages["host"][:: 1 + pages.count // FEW].astype(np.uint64))
        return float(np.mean(clocks.runs[some] & (some >= 0)))

    def stirred(self, pages: Pages) -> NDArray[np.bool_]:
        """Tell of each page whether a change was seen in its directory or pattern since `calm`."""
        groups = np.unique(np.concatenate([*self._stirred, np.zeros(0, np.uint64)]))
        return self._groups_of(pages).touch(groups) if len(groups) else np.zeros(pages.count, bool)

    def calm(self) -> None:
        """Forget where changes were seen."""
        self._stirred = []

    def shifts(self, pages: Pages, at: Ints, now: float) -> Floats:
        """Return by how many seconds the clocks of these pages are ahead of the calendar since their last visits."""
        clocks, found = self._clocks, np.zeros(len(at))
        if clocks is None or not self.is_open:
            return found
        host = self._host_numbers_of(pages, at)
        some = np.flatnonzero(clocks.runs[np.maximum(host, 0)] & (host >= 0))
        if not len(some):
            return found
        since = np.minimum(pages["b"][at[some]] / 1e6, now)
        groups = self._numbers_of(pages, at[some])
        found[some] = clocks.elapsed(groups, host[some], since, now) - (now - since)
        return found

    def _is_kept(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell of keys whether as many pages have them as a group needs."""
        return np.asarray((self._counts[_places(keys, int(math.log2(len(self._counts))))] >= self._fewest) & (keys > 0))

    def _numbers_of(self, pages: Pages, at: Ints) -> Ints:
        """Return the numbers of the groups of some pages: those of all are found for looks, which ask for most of them."""
        if self._pages is not None and self._pages.order == pages.order:
            return self._groups_of(pages).numbers(self._groups, at)
        keys = group_keys(pages["host"][at], pages["directory"][at], pages["pattern"][at])
        return np.where(self._is_kept(keys), self._groups.of(keys), NO_GROUP)

    def _host_numbers_of(self, pages: Pages, at: Ints) -> Ints:
        """Return the numbers of the hosts of some pages, likewise."""
        if self._pages is not None and self._pages.order == pages.order:
            return self._groups_of(pages).host_numbers(self._hosts, at)
        return self._hosts.of(pages["host"][at].astype(np.uint64))

    def _groups_of(self, pages: Pages) -> PageGroups:
        if self._pages is None or self._pages.order != pages.order:
            if not len(self._counts):
                self.count(pages, pages.count)
            self._pages = PageGroups(pages, self._is_kept)
        self._pages.extend(pages)
        return self._pages

    def store(self, fence: int) -> bool:
        """Store what has changed; False if another planner has taken over."""
        clocks = self._clocks
        if clocks is None:
            return True
        room = np.zeros(max(self._groups.size, 1), bool)
        room[: len(clocks.bins)] = clocks.bins.active[: len(room)]
        gone = np.append(self._groups.drop(room), self._drop_hosts())
        keys, numbers = self._groups.touched()
        groups = dict(zip(keys, clocks.pack_groups(numbers), strict=True))
        keys, numbers = self._hosts.touched()
        hosts = dict(zip(keys, clocks.pack_hosts(numbers), strict=True))
        for reply in self.namespace.run(store_calls(self.partition, fence, self.last, groups, hosts, gone.tolist())):
            if reply < 0:
                return False
        for known in (self._groups, self._hosts):
            known.is_touched[:] = False
        return True

    def _drop_hosts(self) -> Keys:
        """Drop hosts that have too few pages by now; return which."""
        clocks, hosts = self._clocks, self._hosts
        if clocks is None or not len(self._counts) or not len(hosts.keys):
            return np.zeros(0, np.uint64)
        kept = np.zeros(hosts.size, bool)
        kept[hosts.numbers] = self._is_kept(_groups_of_hosts(hosts.keys))
        before = hosts.numbers
        gone = hosts.drop(kept)
        if len(gone):
            clocks.forget_hosts(np.setdiff1d(before, hosts.numbers))
        return gone

    def fields(self) -> dict[str, Any]:
        """Return what a plan publishes: groups, hosts whose gates are open, and those of them that have a rhythm."""
        clocks = self._clocks
        if clocks is None:
            return {"groups": 0, "clocks_open": 0, "rhythms_open": 0}
        used = self._hosts.numbers
        gates = {"clocks_open": clocks.gates, "rhythms_open": clocks.rhythm_gates}
        return {"groups": len(self._groups.keys)} | {name: int(np.count_nonzero(gate.is_open[used])) for name, gate in gates.items()}


def _groups_of_hosts(hosts: Keys) -> Keys:
    """Return the groups of all pages of hosts."""
    return group_keys(hosts, np.zeros_like(hosts), np.zeros_like(hosts))[:, 0]


def _keys_of(pages: Pages, first: int) -> Iterator[Keys]:
    """Yield the groups of the pages of a table from ``first`` on, some at a time."""
    for start in range(first, pages.count, _BLOCK):
        some = slice(start, start + _BLOCK)
        yield group_keys(pages["host"][some], pages["directory"][some], pages["pattern"][some])


def _sound(stored: StoredClocks, now: float) -> StoredClocks:
    """Return what is not damaged."""
    groups = {key: value for key, value in stored.groups.items() if not fault_of_group(value, now)}
    return StoredClocks(stored.last, groups, {key: value for key, value in stored.hosts.items() if not fault_of_host(value)})


def _bin_of(round_s: float) -> float:
    return _bounded(bin_length(round_s))


def _bounded(bin_s: float) -> float:
    return min(max(bin_s, BIN_S[0]), BIN_S[1])


def _places(keys: Keys, bits: int) -> Ints:
    """Return where keys are counted in a table of 2**bits."""
    with np.errstate(over="ignore"):
        return np.asarray((keys * _HASH) >> np.uint64(64 - bits), np.int64)


def _parts(until: Floats, length: float) -> list[slice]:
    """Return consecutive parts of visits, each within about so many seconds; they come nearly in order.

    Examples
    --------
    >>> _parts(np.array([0.1, 0.2, 5.1, 0.3, 5.2]), 1.0)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    number = np.maximum.accumulate(np.floor(until / length))
    if 0 < len(until) <= _PART_VISITS and number[-1] == number[0]:
        return [slice(0, len(until))]  # as at most looks: in a tenth of the time
    cuts = np.flatnonzero(number[1:] > number[:-1]) + 1
    edges = np.unique(np.concatenate([[0], cuts, np.arange(0, len(until), _PART_VISITS), [len(until)]])).tolist()
    return [slice(begin, end) for begin, end in itertools.pairwise(edges)]
