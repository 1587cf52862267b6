"""The records of sources of signals: what all crawlers have learned of each.

A record is in the partition of its host; those of pings are in the first one. What is learned is added by a script, so two crawlers that
learn at once lose nothing of each other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import BATCH
from optimal_frontier.state.scanning import scan_hash
from optimal_frontier.state.source_lessons import Lesson, Record, is_ping, read_record

#: The hash of a partition.
KEY: Final = "sources"


def partition_of_source(namespace: Namespace, name: str) -> int:
    """Return the partition in which the record of a source is kept."""
    return 0 if is_ping(name) else namespace.partition_of(name.partition(" ")[0])


def read_sources(namespace: Namespace, names: Iterable[str]) -> dict[str, Record]:
    """Read the records of sources; one round trip a partition."""
    wanted: dict[int, list[str]] = {}
    for name in dict.fromkeys(names):
        wanted.setdefault(partition_of_source(namespace, name), []).append(name)
    found: dict[str, Record] = {}
    for partition, some in wanted.items():
        packed = namespace.command("HMGET", namespace.key(KEY, partition), *map(_raw, some), partition=partition)
        found |= {name: read_record(raw) for name, raw in zip(some, packed, strict=True)}
    return found


def all_sources(namespace: Namespace) -> dict[str, Record]:
    """Read the records of all sources."""
    return {
        name.decode("utf-8", "replace"): read_record(raw) for k in range(namespace.partitions) for name, raw in scan_hash(namespace, KEY, k)
    }


def learn_calls(namespace: Namespace, lessons: Mapping[str, Lesson]) -> list[Call]:
    """Return the calls that add lessons to the records of sources."""
    arguments: dict[int, list[bytes]] = {}
    for name, lesson in lessons.items():
        arguments.setdefault(partition_of_source(namespace, name), []).extend((_raw(name), lesson.pack()))
    return [
        Call(partition, "add_to_sources", some[at : at + 2 * BATCH])
        for partition, some in arguments.items()
        for at in range(0, len(some), 2 * BATCH)
    ]


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
