"""Everything that is stored in a namespace, read in chunks, for a reader that checks it.

Nothing is locked, so under a running crawl the parts are from slightly different moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from optimal_frontier.state import columns
from optimal_frontier.state.reading import BATCH, batches, scan_hash, scan_sets
from optimal_frontier.state.records import decode_record
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import StoredTimes, read_update_times

#: Stands for a slot that is no number; no slot has it.
NO_SLOT = -1


@dataclass(frozen=True)
class Heads:
    """What a host's queues begin with, and what the sets of heads say; None where there is nothing."""

    host: int
    blocked: bool
    due: float | None
    due_said: float | None
    first: bytes | None
    first_said: bytes | None
    first_listed: bool


@dataclass(frozen=True)
class Lease:
    """A lease as stored; ``owner`` is empty if it cannot be read."""

    slot: int
    owner: str


@dataclass(frozen=True)
class Snapshot:
    """All of a namespace.

    Attributes
    ----------
    slots : int
        Number of slots.
    lengths : dict
        Column group -> bytes of each of its chunks.
    page, seen, plan, index : ndarray, shape (slots,)
        See `state.columns`.
    ids : dict
        Fingerprint -> slot.
    aliases : dict
        Fingerprint before a move -> the one since.
    records, unreadable : ndarray of int
        Slots with a record, and those among them whose record cannot be read.
    free : ndarray of int
        Slots of the free list.
    leases : list of Lease
    expiry : set of int
        Slots with a time of expiry.
    owned : dict
        Owner -> slots in its set.
    due, first : tuple of ndarray
        Slots in the queues and the host of each.
    heads : list of Heads
    hosts : ndarray of int
        Host numbers.
    counts : dict
        The counters before everything else was read.
    published, price : dict
        The last plan; the live price, empty unless pages are dispatched by it.
    times : StoredTimes
        Of pages with update times.
    put_forward : dict
        Slot of a page that a source put forward -> the announcer.
    waiting : dict
        Announcer -> how many such pages it is said to have.
    events : int
        How many changes at most happened while reading: recounts may be off by as many.
    """

    slots: int
    lengths: dict[str, list[int]]
    page: np.ndarray
    seen: np.ndarray
    plan: np.ndarray
    index: np.ndarray
    ids: dict[bytes, int]
    aliases: dict[bytes, bytes]
    records: np.ndarray
    unreadable: np.ndarray
    free: np.ndarray
    leases: list[Lease]
    expiry: set[int]
    owned: dict[str, set[int]]
    due: tuple[np.ndarray, np.ndarray]
    first: tuple[np.ndarray, np.ndarray]
    heads: list[Heads]
    hosts: np.ndarray
    counts: dict[str, int]
    published: dict[str, str]
    price: dict[str, str]
    times: StoredTimes
    put_forward: dict[int, str]
    waiting: dict[str, int]
    events: int


def read_snapshot(store: Store) -> Snapshot:
    """Read everything. O(pages), in replies of bounded size."""
    before = _activity(store)
    counts, published, price = store.counts(), store.hash("published"), store.hash("price")
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    leases = [_lease(slot, text) for slot, text in dict(scan_hash(store, "leases")).items()]
    hosts = _slots(number for number, _ in dict(scan_hash(store, "hosts:names")).items())
    due = _queue(store, "due", hosts, lambda member: _integer(member))
    first = _queue(store, "first", hosts, lambda member: int.from_bytes(member[16:20], "big") if len(member) == 20 else NO_SLOT)
    ids = {fingerprint: _integer(slot) for fingerprint, slot in scan_hash(store, "ids")}
    aliases = {fingerprint: value[:20] for fingerprint, value in scan_hash(store, "aliases")}
    records, unreadable = _records(store)
    return Snapshot(
        len(page),
        _lengths(store, len(page)),
        page,
        seen,
        plan,
        index,
        ids,
        aliases,
        records,
        unreadable,
        _free(store),
        leases,
        {_integer(member) for _, (member, _) in scan_sets(store, "ZSCAN", ["leases:expiry"])},
        _owned(store, leases),
        due,
        first,
        _heads(store, hosts),
        hosts,
        counts,
        published,
        price,
        read_update_times(store),
        {_integer(slot): text.decode("utf-8", "replace").split(" ", 4)[-1] for slot, text in scan_hash(store, "announced")},
        {name: _integer((text.split() + [b""] * 5)[4]) for name, text in _decoded_names(scan_hash(store, "announcers"))},
        _events(before, _activity(store)),
    )


def _integer(raw: bytes | str) -> int:
    try:
        return int(raw)
    except ValueError:
        return NO_SLOT


def _decoded_names(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, bytes]]:
    return ((name.decode("utf-8", "replace"), value) for name, value in pairs)


def _slots(raw: Iterable[bytes | str]) -> np.ndarray:
    return np.fromiter((_integer(value) for value in raw), np.int64)


def _lease(slot: bytes, text: bytes) -> Lease:
    parts = text.decode("utf-8", "replace").split(" ")
    return Lease(_integer(slot), parts[1] if len(parts) == 5 else "")


def _records(store: Store) -> tuple[np.ndarray, np.ndarray]:
    slots, unreadable = [], []
    for slot, raw in scan_hash(store, "records"):
        slots.append(_integer(slot))
        try:
            readable = isinstance(decode_record(raw)["url"], str)
        except Exception:  # whatever a damaged record makes of msgpack
            readable = False
        if not readable:
            unreadable.append(slots[-1])
    return np.unique(np.array(slots, np.int64)), np.unique(np.array(unreadable, np.int64))


def _queue(store: Store, kind: str, hosts: np.ndarray, slot_of: Callable[[bytes], int]) -> tuple[np.ndarray, np.ndarray]:
    # A scan may give an element twice while the queue changes.
    found = {(at, member) for at, (member, _) in scan_sets(store, "ZSCAN", [f"{kind}:{host}" for host in hosts])}
    ordered = sorted(found)
    at = np.array([at for at, _ in ordered], np.int64)
    return np.array([slot_of(member) for _, member in ordered], np.int64), hosts[at] if len(ordered) else at


def _free(store: Store) -> np.ndarray:
    raw: list[bytes] = []
    while part := store.command("LRANGE", store.key("free"), len(raw), len(raw) + 10 * BATCH - 1):
        raw += part
    return _slots(raw)


def _owned(store: Store, leases: list[Lease]) -> dict[str, set[int]]:
    owners = {member.decode("utf-8", "replace") for _, (member, _) in scan_sets(store, "ZSCAN", ["owners"])}
    owners |= {lease.owner for lease in leases if lease.owner}
    names = sorted(owners)
    owned: dict[str, set[int]] = {name: set() for name in names}
    for at, member in scan_sets(store, "SSCAN", [f"owner:{name}" for name in names]):
        owned[names[at]].add(_integer(member))
    return owned


def _heads(store: Store, hosts: np.ndarray) -> list[Heads]:
    heads = []
    for part in batches(hosts.tolist(), 200):
        for host, (blocked, due, due_said, first, first_said, listed) in zip(part, store.run([("read_heads", part)])[0], strict=True):
            times = [None if value is None else float(value) for value in (due, due_said)]
            heads.append(Heads(host, bool(blocked), times[0], times[1], first, first_said, bool(listed)))
    return heads


def _lengths(store: Store, slots: int) -> dict[str, list[int]]:
    chunks = -(-slots // columns.CHUNK)
    return {
        name: [size for part in batches(range(chunks)) for size in store.commands([["STRLEN", store.key(f"{name}:{c}")] for c in part])]
        for name in columns.LAYOUTS
    }


def _activity(store: Store) -> tuple[dict[str, str], dict[str, str], int]:
    meta = store.hash("meta")
    # Every look of an idle dispatcher moves the clock.
    meta.pop("clock", None)
    return meta, store.hash("stats"), int(store.command("HLEN", store.key("leases")))


def _events(before: tuple[dict[str, str], dict[str, str], int], after: tuple[dict[str, str], dict[str, str], int]) -> int:
    if before == after:
        return 0
    moved = sum(
        abs(_integer(new.get(name, "0")) - _integer(old.get(name, "0")))
        for old, new, names in (
            (before[0], after[0], ("arrivals", "lease_seq", "epoch")),
            (before[1], after[1], ("visits", "failures", "retired", "pages", "pending")),
        )
        for name in names
    )
    return moved + before[2]
