"""From the lines of an export to a namespace: a new one, which holds the same afterwards, or one that gets what it does not know.

A new namespace cannot be opened before all of it is there: until then ``meta`` says that an import has not ended.
"""

from __future__ import annotations

import contextlib
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import SchemaMismatchError, StateError
from optimal_frontier.state.export_lines import (
    FORMAT,
    Line,
    from_number,
    from_text,
    head_of_line,
    page_of_text,
    record_of_line,
    to_text,
    waits,
)
from optimal_frontier.state.layouts import HostTurns, PartitionState, pack_doubles
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import SCHEMA, UNFINISHED, Namespace
from optimal_frontier.state.published import PRICES, PRIORS
from optimal_frontier.state.rows import ACTIVE, HELD, RANK_AT, RETIRED, TRANSIENT, Row, host_bytes, pack_tail
from optimal_frontier.state.source_lessons import pack_record, record_of
from optimal_frontier.state.source_records import partition_of_source

#: Pages of one round trip.
_BATCH: Final = 500
_RANK: Final = struct.Struct("<d")
_ALIAS: Final = struct.Struct("<I")
_ALIAS_BYTES: Final = 16
#: Counters that the pages themselves say.
_COUNTED: Final = ("pages", "pending", "fetched", "retired", "held", "lost_callback", "lost_item")
#: Keys of one UNLINK.
_KEYS_AT_ONCE: Final = 500


@dataclass
class Imported:
    """What became of an import: pages that are new, and known ones that stayed as they were; lines that the export could not read."""

    new: int = 0
    known: int = 0
    left_out: int = 0


@dataclass
class Names:
    """Other names of pages, as an export tells them: page that it was -> URL, and page that it is."""

    of: dict[bytes, tuple[str, bytes]] = field(default_factory=dict)
    targets: set[bytes] = field(default_factory=set)
    #: Target -> its partition here.
    partitions: dict[bytes, int] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Take an alias's line."""
        name, target = page_of_text(line["alias"]), page_of_text(line["of"])
        self.of[name] = (line["url"], target)
        self.targets.add(target)

    def rewritten(self, namespace: Namespace, raw: bytes, host_of: Callable[[str], str]) -> bytes:
        """Return a memory whose aliases have the partitions that they have here; those that are not told are left out."""
        if b"aliases" not in raw:
            return raw
        memory = Memory.unpack(raw)
        names = tuple(
            _ALIAS.pack(namespace.partition_of(host_of(self.of[name[4:]][0]))) + name[4:]
            for name in memory.aliases
            if len(name) == _ALIAS_BYTES and name[4:] in self.of
        )
        return raw if names == memory.aliases else memory._replace(aliases=names).pack()


def check_header(line: Line) -> None:
    """Check that an export can be read here.

    Raises
    ------
    SchemaMismatchError
        It was made by another version.
    """
    if line.get("format") != FORMAT or line.get("schema") != SCHEMA:
        raise SchemaMismatchError(
            f"this export has form {line.get('format')!r} and schema {line.get('schema')!r}; this version of optimal_frontier reads "
            f"form {FORMAT} and schema {SCHEMA!r}"
        )


def erase(namespace: Namespace, partitions: int, but: frozenset[str] = frozenset()) -> None:
    """Remove the keys of partitions, found by their prefix, but for some names."""
    for k in range(partitions):
        kept = {namespace.key(name, k).encode() for name in but}
        for keys in _scan_keys(namespace, k):
            doomed = [key for key in keys if key not in kept]
            if doomed:
                namespace.command("UNLINK", *doomed, partition=k)


def rename(source: Namespace, target: Namespace, k: int) -> None:
    """Give the keys of a partition the name of another namespace on the same server, ``meta`` last; what has those names is replaced."""
    old, new, meta = source.prefix(k), target.prefix(k), source.key("meta", k).encode()
    # Keys that are renamed while a scan goes on may be passed over by it.
    found = {key for keys in _scan_keys(source, k) for key in keys}
    for key in sorted(found - {meta}):
        source.command("RENAME", key, new.encode() + key[len(old.encode()) :], partition=k)
    if meta in found:
        source.command("RENAME", meta, target.key("meta", k), partition=k)


def _scan_keys(namespace: Namespace, k: int) -> Iterator[list[bytes]]:
    cursor, pattern = 0, _literally(namespace.prefix(k)) + "*"
    while True:
        cursor, keys = namespace.command("SCAN", cursor, "MATCH", pattern, "COUNT", _KEYS_AT_ONCE, partition=k)
        yield keys
        if not int(cursor):
            return


def begin(namespace: Namespace, header: Line, partitions: int) -> None:
    """Begin a new namespace, which cannot be opened before `finish`; what an import that did not end left there is removed.

    Raises
    ------
    StateError
        Something else is there.
    """
    meta = namespace.key("meta")
    schema, before = namespace.command("HMGET", meta, "schema", "partitions")
    if schema is not None and schema.decode() != UNFINISHED:
        raise StateError(
            f"namespace {namespace.name!r} is not empty, and nothing was imported: --merge adds the pages that it does not know, "
            "--namespace names another one"
        )
    if before is not None:
        erase(namespace, int(before), frozenset({"meta"}))
    namespace.partitions = partitions
    told = [word for name, value in header["meta"].items() for word in (name, value)]
    namespace.command("DEL", meta)
    namespace.command("HSET", meta, "schema", UNFINISHED, "partitions", partitions, *told)


def finish(namespace: Namespace) -> None:
    """Let the namespace be opened."""
    namespace.command("HSET", namespace.key("meta"), "schema", SCHEMA)


class Writer:
    """Writes lines into a namespace that nobody else uses.

    Parameters
    ----------
    namespace : Namespace
        Begun.
    host_of : callable
        From a URL to the name of its host.
    """

    def __init__(self, namespace: Namespace, host_of: Callable[[str], str]) -> None:
        self.namespace = namespace
        self.report = Imported()
        self._host_of = host_of
        self._names = Names()
        self._partitions: dict[int, Line] = {}
        self._hosts: list[Line] = []
        self._numbers: dict[int, dict[str, int]] = defaultdict(dict)
        self._named: dict[int, int] = defaultdict(int)
        self._kept: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._first: dict[int, dict[int, float]] = defaultdict(dict)
        self._waiting: dict[int, list[tuple[bytes, Line]]] = defaultdict(list)

    def take(self, line: Line) -> None:
        """Take a line, and write when there are many."""
        if "page" in line:
            page, k = page_of_text(line["page"]), self.namespace.partition_of(line["host"])
            if page in self._names.targets:
                self._names.partitions[page] = k
            self._waiting[k].append((page, line))
            if len(self._waiting[k]) >= _BATCH:
                self._write(k)
        elif "partition" in line and "stats" in line:
            self._partitions[int(line["partition"])] = line
        elif "alias" in line:
            self._names.add(line)
        elif "host" in line:
            self._hosts.append(line)
        elif "source" in line:
            k = partition_of_source(self.namespace, line["source"])
            packed = pack_record(record_of(line["learned"]))
            self.namespace.command("HSET", self.namespace.key("sources", k), _raw(line["source"]), packed, partition=k)
        elif "announcer" in line:
            pass  # an export of an earlier version: what it knew of sources was of another kind
        elif "flagged" in line:
            k = self.namespace.partition_of(line["flagged"].rpartition(" ")[0])
            self.namespace.command("ZADD", self.namespace.key("flagged", k), repr(line["at"]), _raw(line["flagged"]), partition=k)
        elif "end" in line:
            self.report.left_out = int(line["left_out"])
        else:
            raise ValueError(f"unknown line with {next(iter(line), 'nothing')!r}")

    def end(self) -> None:
        """Write what is left."""
        for k in list(self._waiting):
            self._write(k)
        self._write_aliases()
        prices: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for line in self._hosts:
            k = self.namespace.partition_of(line["host"])
            number = self._number(k, line["host"])
            commands: list[list[Any]] = []
            if "words" in line:
                commands.append(["HSET", self._key("hosts:words", k), number, from_text(line["words"])])
            if "opens" in line:
                commands.append(["HSET", self._key("opens", k), host_bytes(number), pack_doubles(HostTurns(*line["opens"]))])
            if "retired" in line:
                commands.append(["RPUSH", self._key(f"retired:{number}", k), *map(page_of_text, line["retired"])])
            if "price" in line:
                prices[k].append((number, from_number(line["price"])))
            self.namespace.commands(commands, partition=k)
        for k in range(self.namespace.partitions):
            self._write_partition(k, np.array(prices[k], PRICES).tobytes())

    def _write(self, k: int) -> None:
        some = self._waiting.pop(k)
        values: list[Any] = []
        queue: list[Any] = []
        memories: list[Any] = []
        first: dict[int, list[Any]] = defaultdict(list)
        for page, line in some:
            number = self._number(k, line["host"])
            row, head = head_of_line(line, number)
            values += (page, head + pack_tail(line.get("stated", 0.0), record_of_line(line)))
            if waits(row):
                (rank,) = _RANK.unpack_from(head, RANK_AT)
                first[number] += (repr(rank), page)
                self._first[k][number] = min(rank, self._first[k].get(number, 0.0))
            elif row.state < RETIRED:
                queue += (int(line["due"]), page)
            if "memory" in line:
                memories += (page, self._names.rewritten(self.namespace, from_text(line["memory"]), self._host_of))
                for name in lost_in(memories[-1]):
                    self._counts[k][name] += 1
            self._count(k, row)
        commands: list[list[Any]] = [["HSET", self._key("pages", k), *values]]
        commands += [["ZADD", self._key("q", k), *queue]] if queue else []
        commands += [["HSET", self._key("memory", k), *memories]] if memories else []
        commands += [["ZADD", self._key(f"f:{number}", k), *members] for number, members in first.items()]
        commands += self._new_hosts(k)
        self.namespace.commands(commands, partition=k)
        self.report.new += len(some)

    def _count(self, k: int, row: Row) -> None:
        counts = self._counts[k]
        if row.state in (ACTIVE, RETIRED):
            counts["pages"] += 1
            counts["fetched"] += row.visits > 0
        counts["retired"] += row.state == RETIRED
        counts["pending"] += waits(row)
        counts["held"] += row.flags & HELD > 0
        if row.state != TRANSIENT:
            self._kept[k][f"h{row.host}"] += 1
            self._kept[k][f"p{row.pattern}"] += 1

    def _number(self, k: int, host: str) -> int:
        return self._numbers[k].setdefault(host, len(self._numbers[k]) + 1)

    def _new_hosts(self, k: int) -> list[list[Any]]:
        new = list(self._numbers[k].items())[self._named[k] :]
        self._named[k] += len(new)
        numbers = [word for host, number in new for word in (host, number)]
        names = [word for host, number in new for word in (number, host)]
        return [["HSET", self._key("hosts", k), *numbers], ["HSET", self._key("hosts:names", k), *names]] if new else []

    def _write_aliases(self) -> None:
        names = self._names
        by_partition: dict[int, list[Any]] = defaultdict(list)
        for name, (url, target) in names.of.items():
            if target in names.partitions:
                at = names.partitions[target]
            elif target in names.of:
                at = self.namespace.partition_of(self._host_of(names.of[target][0]))
            else:
                continue
            by_partition[self.namespace.partition_of(self._host_of(url))] += (name, _ALIAS.pack(at) + target + _raw(url))
        for k, pairs in by_partition.items():
            for at in range(0, len(pairs), 2 * _BATCH):
                self.namespace.command("HSET", self._key("aliases", k), *pairs[at : at + 2 * _BATCH], partition=k)

    def _write_partition(self, k: int, prices: bytes) -> None:
        told = self._partitions
        is_same = len(told) == self.namespace.partitions and set(told) == set(range(len(told)))
        line = told[k] if is_same else _shared(told, self.namespace.partitions, k)
        # Counters that stand at nothing are told as they are, so that an export of the import is the same.
        stats = {name: 0 if name in _COUNTED else by for name, by in line["stats"].items()}
        stats |= {name: by for name, by in self._counts[k].items() if by or name in stats}
        # Nothing is in flight here.
        over = stats.get("dispatched", 0) - stats.get("leases_expired", 0)
        if stats.get("dispatched") and (over or "ended" in stats):
            stats["ended"] = over
        commands = self._new_hosts(k)
        for name, fields in (("stats", stats), ("plan", line["plan"]), ("kept", self._kept[k])):
            if fields:
                commands.append(["HSET", self._key(name, k), *(word for field in fields.items() for word in field)])
        if "d" in line:
            commands.append(["SET", self._key("d", k), pack_doubles(PartitionState(*map(from_number, line["d"])))])
        if "priors" in line:
            commands.append(["SET", self._key("priors", k), from_text(line["priors"])])
        if "priors" in line or prices:
            commands.append(["SET", self._key("prices", k), prices])
        if self._first[k]:
            commands.append(
                ["ZADD", self._key("f", k), *(word for number, rank in self._first[k].items() for word in (repr(rank), number))]
            )
        self.namespace.commands(commands, partition=k)

    def _key(self, name: str, k: int) -> str:
        return self.namespace.key(name, k)


def _shared(told: dict[int, Line], partitions: int, k: int) -> Line:
    """Return what partition ``k`` of another number of partitions has: its share of the plan, counters in the first one."""
    lines = [told[at] for at in sorted(told)]
    if not lines:
        return {"stats": {}, "plan": {}}
    sums: dict[str, int] = defaultdict(int)
    for line in lines:
        for name, by in line["stats"].items():
            sums[name] += by
    plan = dict(lines[0]["plan"])
    for name in ("budget", "revisit_budget", "planned_rate"):
        if name in plan:
            plan[name] = repr(sum(float(line["plan"].get(name, 0.0)) for line in lines) / partitions)
    if "share" in plan:
        plan["share"] = repr(1.0 / partitions)
    # Ranks go on behind those of all partitions.
    shared: Line = {"stats": dict(sums) if k == 0 else {"arrivals": sums["arrivals"]} if sums["arrivals"] else {}, "plan": plan}
    states = [PartitionState(*map(from_number, line["d"])) for line in lines if "d" in line]
    if states:
        latest = {name: max(getattr(state, name) for state in states) for name in ("at", "plan", "run")}
        shared["d"] = list(PartitionState(log_price=states[0].log_price, step=states[0].step, **latest))
    taught = [np.frombuffer(from_text(line["priors"]), PRIORS) for line in lines if "priors" in line]
    if taught:
        _, first = np.unique(np.concatenate(taught)["pattern"], return_index=True)
        shared["priors"] = to_text(np.concatenate(taught)[first].tobytes())
    return shared


def read_lines(lines: Iterator[Line], take: Callable[[Line], None], advance: Callable[[int], None], stopped: Callable[[], bool]) -> bool:
    """Give lines to a writer until they end; return False where somebody stopped that.

    Raises
    ------
    StateError
        The last line is missing.
    """
    for line in lines:
        if stopped():
            return False
        take(line)
        if "page" in line:
            advance(1)
        if "end" in line:
            return True
    raise StateError("the export is not whole: its last line is missing")


def lost_in(memory: bytes) -> list[str]:
    """Return the counter of pages like one with this memory whose callback or item pipeline raised; nothing of most pages."""
    lost = None
    if b"lost" in memory:
        with contextlib.suppress(ValueError):
            lost = Memory.unpack(memory).lost
    return [] if lost is None else [f"lost_{lost.cause}"]


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _literally(text: str) -> str:
    """Return a pattern of SCAN that matches a text alone."""
    return "".join("\\" + c if c in "*?[]\\^-" else c for c in text)
