"""Everything that is stored in a partition, read in replies of bounded size, for a reader that checks it.

Nothing is locked: under a running crawl parts are from slightly different moments.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from redis.exceptions import WatchError

from optimal_frontier.state.connection import translated
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import HEAD_BYTES, LAYOUT, TAIL_BYTES, split_tail
from optimal_frontier.state.scanning import BATCH, batches, read_host_names, scan_hash, scan_zsets

#: Bytes of a rank in a queue of first visits: 1 / importance and arrival.
RANK_BYTES: Final = 16
#: Identities that scripts keep apart; a reader that sees a host's queue change gives up after so many looks.
_LOOKS: Final = 5

_HOST: Final = struct.Struct(">I")


@dataclass(frozen=True)
class FirstVisits:
    """Where a host's first visits are: what its queue begins with, and what the queue of heads and the list of shut hosts say.

    Attributes
    ----------
    head : (bytes, float) or None
        First member of its queue, with its score.
    said : dict of bytes to float
        Members of the queue of heads that are of this host, without the host, and their scores.
    opens : float or None
        When it opens, us, where it is in the list of shut hosts.
    """

    head: tuple[bytes, float] | None
    said: dict[bytes, float]
    opens: float | None


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
    waiting : dict of bytes to list of (int, bytes, float)
        Page -> host, rank and score of its places in queues of first visits.
    first_visits : dict of int to FirstVisits
        Of hosts that have any trace of first visits.
    misplaced : list of bytes
        Members of a queue that are no page.
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
    counts : dict of str to int
        The counters.
    """

    partition: int
    now: float
    pages: dict[bytes, int]
    heads: np.ndarray
    stated: np.ndarray
    damaged: dict[bytes, str]
    queue: dict[bytes, float]
    waiting: dict[bytes, list[tuple[int, bytes, float]]]
    first_visits: dict[int, FirstVisits]
    misplaced: list[bytes]
    hosts: dict[int, str]
    numbers: dict[str, int]
    kept: dict[str, int]
    aliases: dict[bytes, tuple[int, bytes]]
    remembered: set[bytes]
    unreadable: list[bytes]
    counts: dict[str, int]


def read_inventory(namespace: Namespace, partition: int, now: float) -> Inventory:
    """Read everything of a partition. O(pages)."""
    counts = namespace.counts(partition)
    hosts = read_host_names(namespace, partition)
    queue = {page: score for _, page, score in scan_zsets(namespace, ["q"], partition)}
    waiting, misplaced = _read_waiting(namespace, sorted(hosts), partition)
    misplaced += [page for page in queue if len(page) != PAGE_BYTES]
    pages, heads, damaged = _read_rows(namespace, hosts, partition)
    stored = np.frombuffer(b"".join(heads), np.dtype([("head", LAYOUT), ("stated", "<f4")]))
    aliases = {
        name: (struct.unpack_from("<I", raw)[0], raw[4 : 4 + PAGE_BYTES])
        for name, raw in scan_hash(namespace, "aliases", partition)
        if len(raw) >= 4 + PAGE_BYTES
    }
    remembered, unreadable = _read_memories(namespace, partition)
    return Inventory(
        partition,
        now * 1e6,
        pages,
        stored["head"],
        stored["stated"].astype(np.float64),
        damaged,
        queue,
        waiting,
        _read_heads(namespace, waiting, partition),
        misplaced,
        hosts,
        {name.decode("utf-8", "replace"): int(number) for name, number in scan_hash(namespace, "hosts", partition) if number.isdigit()},
        {field.decode("utf-8", "replace"): int(count) for field, count in scan_hash(namespace, "kept", partition)},
        aliases,
        remembered,
        unreadable,
        counts,
    )


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


def _read_waiting(
    namespace: Namespace, hosts: list[int], partition: int
) -> tuple[dict[bytes, list[tuple[int, bytes, float]]], list[bytes]]:
    waiting: dict[bytes, list[tuple[int, bytes, float]]] = {}
    misplaced = []
    for at, member, score in scan_zsets(namespace, [f"f:{host}" for host in hosts], partition):
        if len(member) != RANK_BYTES + PAGE_BYTES:
            misplaced.append(member)
            continue
        place = (hosts[at], member[:RANK_BYTES], score)
        places = waiting.setdefault(member[RANK_BYTES:], [])
        if place not in places:  # a scan may give an element twice
            places.append(place)
    return waiting, misplaced


def _read_memories(namespace: Namespace, partition: int) -> tuple[set[bytes], list[bytes]]:
    remembered, unreadable = set(), set()
    for page, raw in scan_hash(namespace, "memory", partition):
        remembered.add(page)
        try:
            Memory.unpack(raw)
        except Exception:  # whatever a damaged one makes of msgpack
            unreadable.add(page)
    return remembered, sorted(unreadable)


def _read_heads(namespace: Namespace, waiting: dict[bytes, list[tuple[int, bytes, float]]], partition: int) -> dict[int, FirstVisits]:
    said: dict[int, set[bytes]] = {host: set() for places in waiting.values() for host, _, _ in places}
    for _, member, _ in scan_zsets(namespace, ["f"], partition):
        host = _HOST.unpack(member[-4:])[0] if len(member) > _HOST.size else 0
        said.setdefault(host, set()).add(member)
    for _, suffix, _ in scan_zsets(namespace, ["w"], partition):
        if len(suffix) == _HOST.size:
            said.setdefault(_HOST.unpack(suffix)[0], set())
    found: dict[int, FirstVisits] = {}
    for hosts in batches(sorted(said), 64):
        found |= _heads_at_once(namespace, {host: said[host] for host in hosts}, partition)
    return found


def _heads_at_once(namespace: Namespace, said: dict[int, set[bytes]], partition: int) -> dict[int, FirstVisits]:
    """Read the heads of hosts and what is said of them at one moment; of hosts whose queues do not stand still nothing is returned."""

    def key(name: str) -> str:
        return namespace.key(name, partition)

    hosts = list(said)
    with translated(namespace.connection.spec), namespace.connection.client_of(namespace.prefix(partition)).pipeline() as pipe:
        for _ in range(_LOOKS):
            try:
                pipe.watch(key("f"), key("w"), *(key(f"f:{host}") for host in hosts))
                heads = [(pipe.zrange(key(f"f:{host}"), 0, 0, withscores=True) or [None])[0] for host in hosts]
                suffixes = [_HOST.pack(host) for host in hosts]
                members = [
                    sorted(said[host] | ({head[0] + suffix} if head else set()))
                    for host, head, suffix in zip(hosts, heads, suffixes, strict=True)
                ]
                asked = [member for some in members for member in some]
                pipe.multi()
                pipe.execute_command("ZMSCORE", key("w"), *suffixes)
                for part in batches(asked, BATCH):
                    pipe.execute_command("ZMSCORE", key("f"), *part)
                opens, *scores = pipe.execute()
                break
            except WatchError:
                continue
        else:
            return {}
    told = dict(zip(asked, (score for part in scores for score in part), strict=True))
    return {
        host: FirstVisits(
            None if head is None else (head[0], float(head[1])),
            {member[:-4]: float(told[member]) for member in some if told[member] is not None},
            None if opening is None else float(opening),
        )
        for host, head, some, opening in zip(hosts, heads, members, opens, strict=True)
    }
