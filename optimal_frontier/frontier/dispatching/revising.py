"""What is done to stored pages from outside of their visits: somebody wants one now, or not any more; a held host gets its pages back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from optimal_frontier.frontier.admitting.announcing import drop_announcement
from optimal_frontier.frontier.admitting.revival import due_at, forced
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.gone import HELD_FAILURES
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import ACTIVE, HELD, RETIRED, Row

#: Other names of a page that are followed, one to the next.
_MOST_HOPS: Final = 32
#: What `retired:H` has comes back if it was retired within so many seconds.
LATELY_S: Final = 86_400.0
_PARTITION_BYTES: Final = 4


class Place(NamedTuple):
    """Where a page is: its partition, its present name, its stored value (head and tail)."""

    partition: int
    page: bytes
    value: bytes


def pack_alias(partition: int, page: bytes) -> bytes:
    """Return a page of a partition in 16 bytes, as the hash ``aliases`` has it in front of the URL, and `Memory.aliases` alone."""
    return partition.to_bytes(_PARTITION_BYTES, "little") + page


def split_alias(raw: bytes) -> tuple[int, bytes]:
    """Return partition and page of what `pack_alias` made, whatever follows it."""
    return int.from_bytes(raw[:_PARTITION_BYTES], "little"), raw[_PARTITION_BYTES : _PARTITION_BYTES + PAGE_BYTES]


def drop_aliases(namespace: Namespace, names: Iterable[bytes]) -> None:
    """Forget former names of a page, packed by `pack_alias`: a link to one of them makes a page of it again."""
    for partition, page in map(split_alias, names):
        namespace.command("HDEL", namespace.key("aliases", partition), page, partition=partition)


def follow(namespace: Namespace, partition: int, page: bytes) -> Place | None:
    """Return where a page of a partition is now, over its other names; None: it is not known."""
    for _ in range(_MOST_HOPS):
        value, alias = namespace.commands(
            [["HGET", namespace.key(name, partition), page] for name in ("pages", "aliases")], partition=partition
        )
        if value is not None:
            return Place(partition, page, value)
        if alias is None:
            return None
        partition, page = split_alias(alias)
    return None


def locate(namespace: Namespace, fingerprints: Iterable[bytes]) -> list[Place | None]:
    """Return where pages are, by fingerprints (of any length from 12 bytes) of the pages or of any of their former names.

    A fingerprint does not say the host, so each partition is asked.
    """
    found = []
    for fingerprint in fingerprints:
        page = fingerprint[:PAGE_BYTES]
        places = (follow(namespace, partition, page) for partition in range(namespace.partitions))
        found.append(next((place for place in places if place is not None), None))
    return found


def forget(namespace: Namespace, fingerprints: Sequence[bytes]) -> int:
    """Forget pages: estimate, history, place in the queues, lease, and all of their names; return how many were known."""
    forgotten = 0
    for place in locate(namespace, fingerprints):
        if place is None:
            continue
        raw = namespace.command("HGET", namespace.key("memory", place.partition), place.page, partition=place.partition)
        memory = Memory.unpack(raw)
        drop_aliases(namespace, memory.aliases)
        known = namespace.run([Call(place.partition, "forget", [place.page, b""])])[0][0]
        counters = {"held": -known} if Row.unpack(place.value).flags & HELD else {}
        if memory.lost is not None:
            counters[f"lost_{memory.lost.cause}"] = -known
        if counters:
            namespace.run([Call(place.partition, "count", [value for pair in counters.items() for value in pair])])
        forgotten += known
        if memory.announced is not None:
            drop_announcement(namespace, memory.announced.announcer)
    return forgotten


def force(namespace: Namespace, fingerprints: Sequence[bytes]) -> list[int]:
    """Make pages due now, with a full answer and a callback; retired ones come back, and no earlier failures count.

    Returns
    -------
    list of int
        Per fingerprint 1 (due), 2 (under way, waiting for its first visit, or fetched once only), 0 (not known).
    """
    results = []
    for place in locate(namespace, fingerprints):
        if place is None:
            results.append(0)
            continue
        row = Row.unpack(place.value)
        if row.state not in (ACTIVE, RETIRED):
            results.append(2)
            continue
        counters = "retired=-1" if row.state == RETIRED else ""
        ((done,),) = namespace.run(revise_calls(place.partition, [(place.page, row.b, forced(row), None)], counters))
        results.append(done or 2)
    return results


def bring_back(namespace: Namespace, partition: int, host: int) -> int:
    """Bring back what was retired of a host within the last day, as it is held for mass deletion now; return how many pages."""
    key, now = namespace.key(f"retired:{host}", partition), namespace.now(partition)
    pages = list(dict.fromkeys(namespace.command("LRANGE", key, 0, -1, partition=partition)))
    values = namespace.command("HMGET", namespace.key("pages", partition), *pages, partition=partition) if pages else []
    revisions: list[tuple[bytes, float, Row, Memory | None]] = []
    for page, value in zip(pages, values, strict=True):
        row = Row.unpack(value) if value is not None else Row(state=0)
        if row.state != RETIRED or row.host != host or now - row.b / 1e6 > LATELY_S:
            continue
        failures = max(row.failures, HELD_FAILURES)
        due = row.b / 1e6 + max(row.min_interval, backoff_s(page, failures))
        revisions.append((page, row.b, due_at(row._replace(state=ACTIVE, failures=failures), due), None))
    namespace.command("DEL", key, partition=partition)
    return sum(reply.count(1) for reply in namespace.run(revise_calls(partition, revisions, "retired=-1 gone_held=1")))
