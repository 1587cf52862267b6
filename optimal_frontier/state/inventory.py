"""Everything that is stored in a partition, read in replies of bounded size, for a reader that checks it.

Nothing is locked: under a running crawl parts are from slightly different moments.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.put_aside import PutAside, read_put_aside
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.rows import HEAD_BYTES, LAYOUT, TAIL_BYTES, split_tail
from optimal_frontier.state.scanning import batches, host_number, read_host_names, scan_hash, scan_zsets


class FirstVisits(NamedTuple):
    """Where a host's first visits are: the rank of the first one in its queue, and where the host stands in ``f``; None: nowhere."""

    first: float | None
    stands: float | None


@dataclass(frozen=True)
class Inventory:
    """All of a partition.

    Attributes
    ----------
    partition : int
    now : float
        Its time, us.
    pages : dict of bytes to int
        Page -> place in ``heads``; those with a row.
    heads : ndarray of `LAYOUT`, shape (n,)
    stated : ndarray of float, shape (n,)
    damaged : dict of bytes to str
        Pages whose stored value cannot be read, and why.
    queue : dict of bytes to float
        Page -> score in ``q``.
    waiting : dict of bytes to dict of int to float
        Page -> host and rank of its places in queues of first visits.
    first_visits : dict of int to FirstVisits
        Of hosts that have any trace of first visits.
    misplaced : list of bytes
        Members of ``q`` and ``f`` that are no page and no host.
    hosts : dict of int to str
    numbers : dict of str to int
        The other way round, as stored.
    kept : dict of str to int
        Pages known by host and by pattern, as counted.
    aliases : dict of bytes to (int, bytes)
        Alias -> partition and identity of the page.
    remembered : set of bytes
        Pages that have a memory.
    unreadable : list of bytes
        Pages whose memory cannot be read.
    lost : dict of str to int
        Pages whose callback or item pipeline raised, by the name of their counter.
    counts : dict of str to int
        The counters.
    put_aside : list of PutAside
        Pages that were put aside.
    stretch : float
        The largest factor on longest intervals of the last plans.
    """

    partition: int
    now: float
    pages: dict[bytes, int]
    heads: np.ndarray
    stated: np.ndarray
    damaged: dict[bytes, str]
    queue: dict[bytes, float]
    waiting: dict[bytes, dict[int, float]]
    first_visits: dict[int, FirstVisits]
    misplaced: list[bytes]
    hosts: dict[int, str]
    numbers: dict[str, int]
    kept: dict[str, int]
    aliases: dict[bytes, tuple[int, bytes]]
    remembered: set[bytes]
    unreadable: list[bytes]
    lost: dict[str, int]
    counts: dict[str, int]
    put_aside: list[PutAside]
    stretch: float


def read_inventory(namespace: Namespace, partition: int, now: float) -> Inventory:
    """Read everything of a partition. O(pages)."""
    counts = whole_counts(namespace, "stats", partition)
    hosts = read_host_names(namespace, partition)
    queue = {page: score for _, page, score in scan_zsets(namespace, ["q"], partition)}
    waiting = _read_waiting(namespace, sorted(hosts), partition)
    standing = {host for _, host, _ in scan_zsets(namespace, ["f"], partition)}
    misplaced = [page for page in queue if len(page) != PAGE_BYTES] + sorted(host for host in standing if not host.isdigit())
    pages, heads, damaged = _read_rows(namespace, hosts, partition)
    stored = np.frombuffer(b"".join(heads), np.dtype([("head", LAYOUT), ("stated", "<f4")]))
    aliases = {
        name: (struct.unpack_from("<I", raw)[0], raw[4 : 4 + PAGE_BYTES])
        for name, raw in scan_hash(namespace, "aliases", partition)
        if len(raw) >= 4 + PAGE_BYTES
    }
    remembered, unreadable, lost = _read_memories(namespace, partition)
    return Inventory(
        partition,
        now * 1e6,
        pages,
        stored["head"],
        stored["stated"].astype(np.float64),
        damaged,
        queue,
        waiting,
        _read_first_visits(namespace, waiting, {int(host) for host in standing if host.isdigit()}, partition),
        misplaced,
        hosts,
        {name.decode("utf-8", "replace"): at for name, number in scan_hash(namespace, "hosts", partition) if (at := host_number(number))},
        whole_counts(namespace, "kept", partition),
        aliases,
        remembered,
        unreadable,
        dict(Counter(f"lost_{cause}" for page, cause in lost.items() if page in pages)),
        counts,
        list(read_put_aside(namespace, partition)),
        _largest_stretch(namespace, partition),
    )


def whole_counts(namespace: Namespace, name: str, partition: int) -> dict[str, int]:
    """Return the counters of a hash; those that are none are told of by `mending.damages`."""
    counts: dict[str, int] = {}
    for field, count in scan_hash(namespace, name, partition):
        with contextlib.suppress(ValueError):
            counts[field.decode("utf-8", "replace")] = int(count)
    return counts


def _largest_stretch(namespace: Namespace, partition: int) -> float:
    """Return the largest factor on longest intervals that any plan has had that is remembered."""
    stretches = [1.0]
    for _, flat in namespace.command("XRANGE", namespace.key("plans", partition), "-", "+", partition=partition):
        named = flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
        with contextlib.suppress(ValueError):
            stretches.append(float(named.get(b"stretch", 1.0)))
    return max(stretches)


def _read_rows(namespace: Namespace, hosts: dict[int, str], partition: int) -> tuple[dict[bytes, int], list[bytes], dict[bytes, str]]:
    pages: dict[bytes, int] = {}
    heads: list[bytes] = []
    damaged: dict[bytes, str] = {}
    for page, value in scan_hash(namespace, "pages", partition):
        if page in pages or page in damaged:
            continue
        if len(page) != PAGE_BYTES or len(value) < HEAD_BYTES + TAIL_BYTES:
            damaged[page] = f"has a row of {len(value)} bytes, which is none"
            continue
        pages[page] = len(heads)
        heads.append(value[: HEAD_BYTES + TAIL_BYTES])
        try:
            unpack_record(split_tail(value)[1], hosts.get(int.from_bytes(value[:4], "little"), ""))
        except ValueError:
            damaged[page] = "has a record that cannot be read"
    return pages, heads, damaged


def _read_waiting(namespace: Namespace, hosts: list[int], partition: int) -> dict[bytes, dict[int, float]]:
    waiting: dict[bytes, dict[int, float]] = {}
    for at, page, rank in scan_zsets(namespace, [f"f:{host}" for host in hosts], partition):
        waiting.setdefault(page, {})[hosts[at]] = rank
    return waiting


def _read_memories(namespace: Namespace, partition: int) -> tuple[set[bytes], list[bytes], dict[bytes, str]]:
    remembered, unreadable, lost = set(), set(), {}
    for page, raw in scan_hash(namespace, "memory", partition):
        remembered.add(page)
        try:
            memory = Memory.unpack(raw)
            if memory.lost is not None:
                lost[page] = memory.lost.cause
        except Exception:  # whatever a damaged one makes of msgpack
            unreadable.add(page)
    return remembered, sorted(unreadable), lost


def _read_first_visits(
    namespace: Namespace, waiting: dict[bytes, dict[int, float]], standing: set[int], partition: int
) -> dict[int, FirstVisits]:
    hosts = sorted({host for places in waiting.values() for host in places} | standing)
    found: dict[int, FirstVisits] = {}
    for part in batches(hosts, 64):
        found |= _first_visits_at_once(namespace, part, partition)
    return found


def _first_visits_at_once(namespace: Namespace, hosts: Sequence[int], partition: int) -> dict[int, FirstVisits]:
    """Read what hosts' queues begin with, and what ``f`` says of it, at one moment."""
    with translated(namespace.connection.spec), namespace.connection.client_of(namespace.prefix(partition)).pipeline() as pipe:
        for host in hosts:
            pipe.zrange(namespace.key(f"f:{host}", partition), 0, 0, withscores=True)
        pipe.execute_command("ZMSCORE", namespace.key("f", partition), *hosts)
        *firsts, stands = pipe.execute()
    return {
        host: FirstVisits(float(first[0][1]) if first else None, None if at is None else float(at))
        for host, first, at in zip(hosts, firsts, stands, strict=True)
    }
