"""What is stored of clocks of neighbourhoods: the hash ``clocks``, and how groups of pages are known there; and the visits since.

A group has a number of 64 bits, eight bytes as a field of the hash: its level in the highest byte, below it what it is known by. What the
values mean is said in `estimation.neighbourhoods`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.state.layouts import PartitionState
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import BATCH
from optimal_frontier.state.scanning import scan_hash
from optimal_frontier.state.visit_log import sound_visits

#: Levels of groups: pages of a host; with the same first two path segments; of a directory; of a pattern.
LEVELS: Final = ("host", "section", "directory", "pattern")
#: Field of the id of the last entry of the stream ``visited`` that was learned from.
_LAST: Final = b"last"
#: The id in front of all entries.
BEGINNING: Final = "0-0"
#: Entries that one call reads.
_READ_COUNT: Final = 200
#: Of a number as a field.
_KEY_BYTES: Final = 8
#: Of a packed group and of a packed host.
GROUP_BYTES: Final = 272
HOST_BYTES: Final = 216
_ID: Final = re.compile(rb"[0-9]{1,19}-[0-9]{1,19}")
_LEVEL_BITS: Final = np.uint64(56)

Keys = NDArray[np.uint64]


class VisitsRead(NamedTuple):
    """Visits in the order in which they were counted, an array of `VISIT`; the id of the last entry that was read; the log price now."""

    visits: NDArray[Any]
    last: str
    log_price: float


@dataclass(frozen=True)
class StoredClocks:
    """What a planner stored.

    Attributes
    ----------
    last : str
        Id of the last entry of ``visited`` that is in it.
    groups : dict of int to bytes
        By number of the group, as `Neighbourhoods.pack_groups` returns them.
    hosts : dict of int to bytes
        By number of the host, as `Neighbourhoods.pack_hosts` does.
    """

    last: str = BEGINNING
    groups: dict[int, bytes] = field(default_factory=dict)
    hosts: dict[int, bytes] = field(default_factory=dict)


def fault_of_field(name: bytes, value: bytes) -> str:
    """Return what is wrong with a field of ``clocks`` by its size; empty: nothing."""
    if name == _LAST:
        return "" if _ID.fullmatch(value) else "is no id of an entry"
    if len(name) != _KEY_BYTES:
        return "is neither a group nor a host"
    level = int.from_bytes(name, "little") >> int(_LEVEL_BITS)
    if level > len(LEVELS):
        return "is of no level"
    expected = GROUP_BYTES if level else HOST_BYTES
    return "" if len(value) == expected else f"has {len(value)} bytes, expected {expected}"


def group_keys(host: ArrayLike, directory: ArrayLike, pattern: ArrayLike) -> Keys:
    """Return the groups of pages, (n, levels), from the fields of their rows; 0 where a page has none.

    Examples
    --------
    >>> keys = group_keys(np.array([7, 7]), np.array([0x20001, 0]), np.array([9, 0]))
    >>> [hex(key) for key in keys[0].tolist()], keys[1].tolist()[1:]
    (['0x100000000000007', '0x200000000070001', '0x300000000070002', '0x400000000000009'], [0, 0, 0])
    """
    of, within, kind = (np.asarray(values).astype(np.uint64) for values in (host, directory, pattern))
    on_host, half = of << np.uint64(16), np.uint64(0xFFFF)
    bodies = (of, on_host | (within & half), on_host | (within >> np.uint64(16)), kind)
    known = (of, within, within, kind)
    keys = np.zeros((len(of), len(LEVELS)), np.uint64)
    for level, (body, told) in enumerate(zip(bodies, known, strict=True)):
        keys[:, level] = np.where(told > 0, body | (np.uint64(level + 1) << _LEVEL_BITS), np.uint64(0))
    return keys


def hosts_of_groups(keys: Keys) -> Keys:
    """Return the numbers of the hosts that groups of all pages of a host are of; of any other group a number that no host has.

    Examples
    --------
    >>> hosts_of_groups(group_keys(np.array([7]), np.array([0x20001]), np.array([9])))[0, 0]
    np.uint64(7)
    """
    return keys ^ (np.uint64(1) << _LEVEL_BITS)


def read_visits(namespace: Namespace, after: Mapping[int, str], now: float) -> dict[int, VisitsRead]:
    """Read what was counted after the entries with these ids, by partition; what streams no longer keep, or is damaged, is passed over.

    ``now`` is the server's time, seconds since the epoch. One round trip a node for 200 entries of each.
    """
    last, found = dict(after), {k: list[bytes]() for k in after}
    prices: dict[int, float] = {}
    while partitions := sorted(last.keys() - prices.keys()):
        calls = [Call(k, "XRANGE", ["visited", f"({last[k]}", "+", "COUNT", _READ_COUNT]) for k in partitions]
        replies = namespace.run([*calls, *(Call(k, "GET", ["d"]) for k in partitions)])
        for k, entries, kept in zip(partitions, replies, replies[len(calls) :], strict=False):
            for name, fields in entries:
                last[k] = name.decode()
                found[k].append(next(iter(fields.values())) if isinstance(fields, dict) else fields[1])
            if len(entries) < _READ_COUNT:
                log_price = (PartitionState.stored(kept) or PartitionState()).log_price
                prices[k] = log_price if math.isfinite(log_price) else 0.0
    return {k: VisitsRead(sound_visits(found[k], now), last[k], prices[k]) for k in after}


def newest_visit(namespace: Namespace, partition: int) -> str:
    """Return the id of the newest entry of ``visited``."""
    entries = namespace.command("XREVRANGE", namespace.key("visited", partition), "+", "-", "COUNT", 1, partition=partition)
    return entries[0][0].decode() if entries else BEGINNING


def order_of_entry(entry: str) -> tuple[int, ...]:
    """Return by what entries of a stream are in order, from the id of one.

    Examples
    --------
    >>> order_of_entry("12-3") < order_of_entry("12-10")
    True
    """
    return tuple(map(int, entry.split("-")))


def read_clocks(namespace: Namespace, partition: int) -> StoredClocks:
    """Read all that is stored in a partition."""
    return _parsed(scan_hash(namespace, "clocks", partition))


def read_clocks_of(namespace: Namespace, partition: int, host: int, groups: Iterable[int]) -> StoredClocks:
    """Read what is stored of some groups and of their host, one round trip."""
    fields = [_LAST, host.to_bytes(_KEY_BYTES, "little"), *(group.to_bytes(_KEY_BYTES, "little") for group in groups)]
    values = namespace.command("HMGET", namespace.key("clocks", partition), *fields, partition=partition)
    return _parsed((name, value) for name, value in zip(fields, values, strict=True) if value is not None)


def store_calls(
    partition: int, fence: int, last: str, groups: Mapping[int, bytes], hosts: Mapping[int, bytes], gone: Iterable[int]
) -> list[Call]:
    """Return the calls that store what has changed, and drop what is ``gone``; each yields -1 if another planner has taken over."""
    dropped = list(gone)
    keys = np.array([*hosts, *groups, *dropped], "<u8").view(f"V{_KEY_BYTES}").tolist()
    values = [*hosts.values(), *groups.values()]
    pairs: list[Any] = [b""] * (2 * len(values))
    pairs[::2], pairs[1::2] = keys[: len(values)], values
    calls = []
    for at in range(0, max(len(keys), 1), BATCH):
        leaving = msgpack.packb(keys[max(at, len(values)) : at + BATCH], use_bin_type=False)
        is_last = last and at + BATCH >= len(keys)
        stored = [*pairs[2 * at : 2 * (at + BATCH)], *((_LAST, last) if is_last else ())]
        calls.append(Call(partition, "store_clocks", [fence, leaving, *stored]))
    return calls


def _parsed(pairs: Iterable[tuple[bytes, bytes]]) -> StoredClocks:
    last = BEGINNING
    groups: dict[int, bytes] = {}
    hosts: dict[int, bytes] = {}
    for name, value in pairs:
        if name == _LAST:
            last = value.decode() if _ID.fullmatch(value) else BEGINNING
        elif len(name) == _KEY_BYTES:
            key = int.from_bytes(name, "little")
            (groups if key >> int(_LEVEL_BITS) else hosts)[key] = value
    return StoredClocks(last, groups, hosts)
