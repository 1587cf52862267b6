"""What is known of sources of signals: one record a source and one a kind, sums that all crawlers add to.

A record is in the partition of its host, those of kinds and of pings are in the first one. An addition is one script call, and additions
commute: two crawlers lose nothing of each other's, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from optimal_frontier.estimation.signal_sources import MOST, NOTHING_LEARNED, Lesson, kind_of
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.scanning import scan_hash

#: Begins the name of a source that pings.
PING: Final = "ping "
#: The hash of a partition.
KEY: Final = "sources"


def partition_of_source(namespace: Namespace, name: str) -> int:
    """Return the partition in which the record of a source, or of a kind, is kept."""
    host, _, kind = name.partition(" ")
    return namespace.partition_of(host) if kind and not name.startswith(PING) else 0


def read_sources(namespace: Namespace, names: Iterable[str]) -> dict[str, Lesson]:
    """Read what is known of sources, and of their kinds; one round trip a partition."""
    wanted: dict[int, list[str]] = {}
    asked = dict.fromkeys(names)
    for name in dict.fromkeys([*asked, *map(kind_of, asked)]):
        wanted.setdefault(partition_of_source(namespace, name), []).append(name)
    found: dict[str, Lesson] = {}
    for partition, some in wanted.items():
        packed = namespace.command("HMGET", namespace.key(KEY, partition), *map(_raw, some), partition=partition)
        found |= {name: Lesson.unpack(raw) for name, raw in zip(some, packed, strict=True)}
    return found


def all_sources(namespace: Namespace) -> dict[str, Lesson]:
    """Read what is known of all sources, and of their kinds."""
    return {
        name.decode("utf-8", "replace"): Lesson.unpack(raw)
        for k in range(namespace.partitions)
        for name, raw in scan_hash(namespace, KEY, k)
    }


def add_calls_of(namespace: Namespace, lessons: Mapping[str, Lesson]) -> list[Call]:
    """Return the calls that add lessons to the records of sources, and of their kinds."""
    sums = dict(lessons)
    for name, lesson in lessons.items():
        kind = kind_of(name)
        sums[kind] = sums.get(kind, NOTHING_LEARNED) + lesson
    arguments: dict[int, list[bytes | str]] = {}
    for name, lesson in sums.items():
        arguments.setdefault(partition_of_source(namespace, name), [repr(MOST)]).extend((_raw(name), lesson.pack()))
    return [Call(partition, "add_to_sources", some) for partition, some in arguments.items()]


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
