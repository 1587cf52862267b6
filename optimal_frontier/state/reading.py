"""Queries for readers: what a person or a monitor asks, in a few round trips, without changing anything.

What is read is given as it is stored; judging it (change rates, deadlines) is the caller's.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.state.clocks import StoredClocks, group_keys, read_clocks_of
from optimal_frontier.state.downloader_limits import unserved
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.layouts import HostTurns, PartitionState
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.published import PRIORS, TABLES, Published, stored_table
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import HEAD_BYTES, TAIL_BYTES, Row, host_bytes, split_tail
from optimal_frontier.state.scanning import host_number, scan_hash
from optimal_frontier.state.source_lessons import Record
from optimal_frontier.state.source_records import read_sources

#: Moves that are followed from one name of a page to the next.
_MOST_MOVES: Final = 16

#: Revisits whose lateness is told: the last ones.
_LATENESS: Final = 1000

_TARGET: Final = struct.Struct(f"<I{PAGE_BYTES}s")


@dataclass(frozen=True)
class PartitionReading:
    """The state of one partition at a glance.

    Attributes
    ----------
    now : float
        Its time, seconds since the epoch; it never runs backwards.
    log_price : float or None
        Logarithm of what a visit has to be worth now; None before anything was handed out or planned.
    counts : dict of int
        The counters.
    due : int
        Pages whose deadline has passed and that are not leased.
    hosts : int
        Hosts.
    flagged : tuple of bytes
        Names of contents that were found to be no page's own, of changes of templates, and of noise that pages share.
    lateness : ndarray
        Of the last revisits, seconds.
    published : Published
        The last plan; its priors are left out.
    words : dict of HostWords
        Name of a host -> what is known of its own word, where anything is.
    """

    now: float
    log_price: float | None
    counts: dict[str, int]
    due: int
    hosts: int
    flagged: tuple[bytes, ...]
    lateness: np.ndarray
    published: Published
    words: dict[str, HostWords]

    @property
    def in_flight(self) -> int:
        """Requests under way: leases that did not end."""
        dispatched, *over = (self.counts.get(name, 0) for name in ("dispatched", "ended", "leases_expired"))
        return max(0, dispatched - sum(over))


@dataclass(frozen=True)
class StatusReading:
    """The state of a namespace at a glance: its hash ``meta``, each partition, and those of which no crawler fetches pages."""

    meta: dict[str, str]
    partitions: list[PartitionReading]
    unserved: Sequence[int] = ()

    @property
    def now(self) -> float:
        """The latest of the partitions' times, seconds since the epoch."""
        return max(reading.now for reading in self.partitions)

    def counts(self) -> dict[str, int]:
        """Return the sums of the counters."""
        sums: dict[str, int] = {}
        for reading in self.partitions:
            for name, count in reading.counts.items():
                sums[name] = sums.get(name, 0) + count
        return sums


@dataclass(frozen=True)
class PageReading:
    """All that is stored of one page.

    Attributes
    ----------
    now : float
        Time of its partition, seconds since the epoch.
    partition : int
    page : bytes
        Its identity, 12 bytes: another than the one that was asked for if that is an alias.
    row : Row
    stated : float
        Importance that its request stated; 0: none.
    record : dict
        What a fetch needs.
    host : str
        Name of its host.
    words : HostWords
        What is known of its host's own word.
    memory : Memory
        What its last responses left for the next fetch.
    score : float or None
        Where it stands in the queue ``q``, us: even: when it is looked at; odd: leased until then. None: not there.
    host_opens : float
        When its host is free, seconds since the epoch; 0: it is.
    log_price : float
        Of a visit to a page of a host that is not at its limit, now.
    published : Published
        The last plan of its partition.
    aliases : tuple of str
        URLs from which it has moved, newest first.
    siblings : int
        Pages that taught the prior of its pattern; 0 where there is none of its own.
    sources : dict of Record
        Records of the sources of signals that watch it.
    clocks : StoredClocks
        Of its groups and its host.
    """

    now: float
    partition: int
    page: bytes
    row: Row
    stated: float
    record: dict[Any, Any]
    host: str
    words: HostWords
    memory: Memory
    score: float | None
    host_opens: float
    log_price: float
    published: Published
    aliases: tuple[str, ...] = ()
    siblings: int = 0
    sources: Mapping[str, Record] = field(default_factory=dict)
    clocks: StoredClocks = field(default_factory=StoredClocks)

    @property
    def is_leased(self) -> bool:
        """Whether a request for it is under way."""
        return self.score is not None and self.score % 2 == 1 and self.score > self.now * 1e6


def is_empty(namespace: Namespace) -> bool:
    """Tell whether nothing was ever stored in the namespace."""
    return not namespace.command("EXISTS", namespace.key("meta"))


def read_status(namespace: Namespace) -> StatusReading:
    """Read the state at a glance: two round trips a partition, and one per 1,000 hosts of which something is known."""
    readings = [_read_partition(namespace, k) for k in range(namespace.partitions)]
    return StatusReading(namespace.hash("meta"), readings, unserved(namespace))


def _read_partition(namespace: Namespace, k: int) -> PartitionReading:
    def key(name: str) -> str:
        return namespace.key(name, k)

    clock, d, prices, hosts, flagged, lateness = namespace.commands(
        [
            ["TIME"],
            ["GET", key("d")],
            ["GET", key("prices")],
            ["HLEN", key("hosts")],
            ["ZRANGE", key("flagged"), 0, -1],
            ["LRANGE", key("lateness"), 0, -1],
        ],
        partition=k,
    )
    now, log_price = _time_and_price(clock, d)
    due = namespace.command("ZCOUNT", key("q"), "-inf", f"({now * 1e6 + 1:.0f}", partition=k)
    words = {at: HostWords.unpack(raw) for number, raw in scan_hash(namespace, "hosts:words", k) if (at := host_number(number))}
    names = namespace.command("HMGET", key("hosts:names"), *words, partition=k) if words else []
    return PartitionReading(
        now,
        log_price,
        namespace.counts(k),
        int(due),
        int(hosts),
        tuple(flagged),
        _numbers(lateness),
        Published.parse(namespace.hash("plan", k), None, prices),
        {name.decode("utf-8", "replace"): said for name, said in zip(names, words.values(), strict=True) if name is not None},
    )


def _numbers(texts: Sequence[bytes]) -> np.ndarray:
    """Return the numbers in texts; a damaged one is passed over."""
    found: list[float] = []
    for value in (value for text in texts for value in text.split()):
        with contextlib.suppress(ValueError):
            found.append(float(value))
    return np.array([value for value in found if math.isfinite(value)][:_LATENESS])


def read_now(namespace: Namespace, partition: int = 0) -> float:
    """Return the time of a partition, seconds since the epoch; it never runs backwards."""
    clock, d = namespace.commands([["TIME"], ["GET", namespace.key("d", partition)]], partition=partition)
    return _time_and_price(clock, d)[0]


def read_published(namespace: Namespace, partition: int) -> tuple[Published, float]:
    """Return the last plan of a partition, and the log price of a visit now: the plan's before the first request."""
    d, *packed = namespace.command("MGET", *(namespace.key(name, partition) for name in ("d", *TABLES)), partition=partition)
    published = Published.parse(namespace.hash("plan", partition), *packed)
    state = PartitionState.stored(d)
    return published, published.log_price if state is None else state.log_price


def find_page(namespace: Namespace, page: bytes, host: str) -> tuple[int, bytes] | None:
    """Return partition and identity of the page that is known by ``page``, now or before it moved; None if there is none.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    page : bytes
        12 bytes.
    host : str
        Of its URL; its partition is asked first.
    """
    first = namespace.partition_of(host)
    others = (k for k in range(namespace.partitions) if k != first)
    # A fingerprinter of the user's may know a URL as one of another host.
    return next((found for k in (first, *others) if (found := _follow(namespace, k, page)) is not None), None)


def _follow(namespace: Namespace, partition: int, page: bytes) -> tuple[int, bytes] | None:
    for _ in range(_MOST_MOVES):
        rows = [["HEXISTS", namespace.key("pages", partition), page], ["HGET", namespace.key("aliases", partition), page]]
        is_known, alias = namespace.commands(rows, partition=partition)
        if is_known:
            return partition, page
        if alias is None or len(alias) < _TARGET.size:
            return None
        partition, page = _TARGET.unpack_from(alias)
        if partition >= namespace.partitions:
            return None
    return None


def read_page(namespace: Namespace, page: bytes, host: str) -> PageReading | None:
    """Read one page by its identity and the host of its URL, also under a name that it had; None if it is not known. O(1).

    Raises
    ------
    StateError
        What is stored of it cannot be read.
    """
    found = find_page(namespace, page, host)
    if found is None:
        return None
    k, page = found

    def key(name: str) -> str:
        return namespace.key(name, k)

    rows: list[list[Any]] = [
        ["HGET", key("pages"), page],
        ["ZSCORE", key("q"), page],
        ["HGET", key("memory"), page],
        ["TIME"],
        ["GET", key("d")],
    ]
    value, score, remembered, clock, d = namespace.commands(rows, partition=k)
    if value is None:
        return None
    try:
        row, (stated, record), memory = Row.unpack(value), split_tail(value), Memory.unpack(remembered)
    except (ValueError, TypeError, struct.error) as error:
        raise _damaged(page, error) from error
    name, words, opens = namespace.commands(
        [
            ["HGET", key("hosts:names"), row.host],
            ["HGET", key("hosts:words"), row.host],
            ["HGET", key("opens"), host_bytes(row.host)],
        ],
        partition=k,
    )
    host = name.decode("utf-8", "replace") if name else ""
    try:
        unpacked = unpack_record(record, host)
    except ValueError as error:
        raise _damaged(page, error) from error
    now, _ = _time_and_price(clock, d)
    published, log_price = read_published(namespace, k)
    return PageReading(
        now,
        k,
        page,
        row,
        stated,
        unpacked,
        host,
        HostWords.unpack(words),
        memory,
        None if score is None else float(score),
        (HostTurns.stored(opens) or HostTurns()).free / 1e6,
        log_price,
        published,
        _former_urls(namespace, memory.aliases),
        _siblings(namespace.command("GET", key("priors"), partition=k), row.pattern),
        read_sources(namespace, [told.source for told in memory.signals]),
        read_clocks_of(namespace, k, row.host, group_keys([row.host], [row.directory], [row.pattern])[0].tolist()),
    )


def record_of(value: bytes) -> bytes:
    """Return the record of a stored value (``head | tail``)."""
    return value[HEAD_BYTES + TAIL_BYTES :]


def _former_urls(namespace: Namespace, names: Sequence[bytes]) -> tuple[str, ...]:
    """Return the URLs of other names (partition and page, 16 bytes) that a page had, the last one first."""
    urls = []
    for raw in reversed(names):
        if len(raw) != _TARGET.size:
            continue
        k, name = _TARGET.unpack(raw)
        value = namespace.command("HGET", namespace.key("aliases", k), name, partition=k) if k < namespace.partitions else None
        if value is not None:
            urls.append(value[_TARGET.size :].decode("utf-8", "replace"))
    return tuple(urls)


def _siblings(priors: bytes | None, pattern: int) -> int:
    taught = stored_table(priors, PRIORS)
    return int(taught["siblings"][taught["pattern"] == pattern].sum())


def _time_and_price(clock: tuple[int, int], d: bytes | None) -> tuple[float, float | None]:
    now = int(clock[0]) * 1e6 + int(clock[1])
    state = PartitionState.stored(d)
    return (now / 1e6, None) if state is None else (state.now(now) / 1e6, state.log_price)


def _damaged(page: bytes, error: Exception) -> StateError:
    return StateError(f"what is stored of page {page.hex()} cannot be read ({error}); see what `optimal-frontier check` says")
