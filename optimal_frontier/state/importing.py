"""From the lines of an export to a namespace: a new one, which holds the same afterwards, or one that gets what it does not know.

A new namespace cannot be opened before all of it is there: until then ``meta`` says that an import has not ended, and which one fills it.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from redis.exceptions import WatchError

from optimal_frontier.errors import SchemaMismatchError, StateError
from optimal_frontier.settings.table import MOST_PARTITIONS
from optimal_frontier.state.export_lines import (
    FORMAT,
    Line,
    from_number,
    from_text,
    head_of_line,
    page_of_text,
    record_of_line,
    to_text,
    unescaped,
    waits,
)
from optimal_frontier.state.layouts import HostTurns, PartitionState, pack_doubles
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import SCHEMA, UNFINISHED, Namespace, partitions_of
from optimal_frontier.state.published import PRICES, PRIORS
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.rows import ACTIVE, HELD, RANK_AT, RETIRED, TRANSIENT, Row, host_bytes, pack_tail
from optimal_frontier.state.source_lessons import pack_record, record_of
from optimal_frontier.state.source_records import partition_of_source

#: Pages of one round trip.
_BATCH: Final = 500
_RANK: Final = struct.Struct("<d")
_ALIAS: Final = struct.Struct("<I")
_ALIAS_BYTES: Final = 16
#: Field of ``meta`` while an import fills the namespace: a random word, by which one that goes on knows whether it is still its turn.
_TURN: Final = "import"
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


def check_header(line: Line, name: str) -> None:
    """Check that an export can be read here; ``name`` is what messages call it.

    Raises
    ------
    SchemaMismatchError
        It was made by another version.
    StateError
        The line is damaged.
    """
    if line.get("format") != FORMAT or line.get("schema") != SCHEMA:
        raise SchemaMismatchError(
            f"{name}: this export has form {line.get('format')!r} and schema {line.get('schema')!r}; this version of optimal_frontier "
            f"reads form {FORMAT} and schema {SCHEMA!r}"
        )
    for entry, least, most in (("pages", 0, 2**53), ("partitions", 1, MOST_PARTITIONS)):
        if type(line.get(entry)) is not int or not least <= line[entry] <= most:
            raise StateError(f"{name}: the header of this export is damaged: expected {least} to {most} as {entry!r}")
    meta = line.get("meta")
    if not isinstance(meta, dict) or not all(map(_is_text, (word for pair in meta.items() for word in pair))):
        raise StateError(f"{name}: the header of this export is damaged: expected texts by name as 'meta'")


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # a lone surrogate, which Redis cannot have
        return False


class Turn:
    """The right to fill a namespace, which the import has that began last.

    Parameters
    ----------
    namespace : Namespace
        Connected, not opened.
    told : mapping of str to str
        What ``meta`` is to say beside what is said of the turn.
    partitions : int
        Of the new namespace.

    Attributes
    ----------
    before : bytes or None
        The number of partitions of an import that did not end; None where there was none.
    """

    def __init__(self, namespace: Namespace, told: Mapping[str, str], partitions: int) -> None:
        self.namespace, self.before = namespace, None
        self._token = secrets.token_hex(8).encode()
        meta = {**told, "schema": UNFINISHED, "partitions": partitions, _TURN: self._token}
        words = [word for pair in meta.items() for word in pair]
        while not self._change(self._look, [["DEL", self._meta], ["HSET", self._meta, *words]]):
            pass

    def check(self) -> None:
        """See that it has not ended.

        Raises
        ------
        StateError
            Another import into this namespace has begun since, which removes what this one has written.
        """
        if self.namespace.command("HGET", self._meta, _TURN) != self._token:
            raise StateError(f"another import into namespace {self.namespace.name!r} has begun, and goes on; this one ends here")

    def finish(self) -> None:
        """Let the namespace be opened, unless the turn has ended, see `check`."""
        while not self._change(self.check, [["HDEL", self._meta, _TURN], ["HSET", self._meta, "schema", SCHEMA]]):
            pass

    @property
    def _meta(self) -> str:
        return self.namespace.key("meta")

    def _look(self) -> None:
        schema, self.before = self.namespace.command("HMGET", self._meta, "schema", "partitions")
        if schema is not None and schema != UNFINISHED.encode():
            raise StateError(
                f"namespace {self.namespace.name!r} is not empty, and nothing was imported: --merge adds the pages that it does not know, "
                "--namespace names another one"
            )

    def _change(self, look: Callable[[], None], commands: list[list[Any]]) -> bool:
        """Change ``meta`` if nobody else does between the look at it and that; return whether it was."""
        connection = self.namespace.connection
        with translated(connection.spec), connection.client_of(self._meta).pipeline() as pipe:
            pipe.watch(self._meta)
            look()
            pipe.multi()
            for command in commands:
                pipe.execute_command(*command)
            try:
                pipe.execute()
            except WatchError:
                return False
        return True


def erase(namespace: Namespace, partitions: int, but: frozenset[str] = frozenset(), check: Callable[[], None] = lambda: None) -> None:
    """Remove the keys of partitions, found by their prefix, but for some names; ``check`` is called before any of them go."""
    for k in range(partitions):
        kept = {namespace.key(name, k).encode() for name in but}
        for keys in _scan_keys(namespace, k):
            doomed = [key for key in keys if key not in kept]
            if doomed:
                check()
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


def begin(namespace: Namespace, header: Line, partitions: int) -> Turn:
    """Begin a new namespace, which cannot be opened before `Turn.finish`; what an import that did not end left there is removed.

    Raises
    ------
    StateError
        Something else is there, or another import begins meanwhile.
    """
    turn = Turn(namespace, header["meta"], partitions)
    if turn.before is not None:
        erase(namespace, partitions_of(turn.before) or namespace.count_partitions(), frozenset({"meta"}), turn.check)
    namespace.partitions = partitions
    return turn


class Writer:
    """Writes lines into a namespace that nobody else uses.

    Parameters
    ----------
    turn : Turn
        From `begin`. What is written after it has ended would spoil what another import writes, so it is looked at right before.
    host_of : callable
        From a URL to the name of its host.
    """

    def __init__(self, turn: Turn, host_of: Callable[[str], str]) -> None:
        self.namespace = turn.namespace
        self.report = Imported()
        self._host_of = host_of
        self._turn = turn
        self._names = Names()
        self._partitions: dict[int, Line] = {}
        self._hosts: list[Line] = []
        self._numbers: dict[int, dict[str, int]] = defaultdict(dict)
        self._named: dict[int, int] = defaultdict(int)
        self._kept: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._first: dict[int, dict[int, float]] = defaultdict(dict)
        self._waiting: dict[int, list[tuple[bytes, Line]]] = defaultdict(list)
        self._commands: dict[int, list[list[Any]]] = defaultdict(list)

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
            self._later(k, ["HSET", self._key("sources", k), unescaped(line["source"]), packed])
        elif "announcer" in line:
            pass  # an export of an earlier version: what it knew of sources was of another kind
        elif "flagged" in line:
            k = self.namespace.partition_of(line["flagged"].rpartition(" ")[0])
            self._later(k, ["ZADD", self._key("flagged", k), repr(line["at"]), unescaped(line["flagged"])])
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
            if "words" in line:
                self._later(k, ["HSET", self._key("hosts:words", k), number, from_text(line["words"])])
            if "opens" in line:
                self._later(k, ["HSET", self._key("opens", k), host_bytes(number), pack_doubles(HostTurns(*line["opens"]))])
            if "retired" in line:
                self._later(k, ["RPUSH", self._key(f"retired:{number}", k), *map(page_of_text, line["retired"])])
            if "price" in line:
                prices[k].append((number, from_number(line["price"])))
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
        self._send(k, commands)
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
            by_partition[self.namespace.partition_of(self._host_of(url))] += (name, _ALIAS.pack(at) + target + unescaped(url))
        for k, pairs in by_partition.items():
            for at in range(0, len(pairs), 2 * _BATCH):
                self._send(k, [["HSET", self._key("aliases", k), *pairs[at : at + 2 * _BATCH]]])

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
        commands = self._new_hosts(k) + self._commands.pop(k, [])
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
        self._send(k, commands)

    def _later(self, k: int, command: list[Any]) -> None:
        """Send a command with others, at the end at the latest."""
        self._commands[k].append(command)
        if len(self._commands[k]) >= _BATCH:
            self._send(k, self._commands.pop(k))

    def _send(self, k: int, commands: list[list[Any]]) -> None:
        self._turn.check()
        self.namespace.commands(commands, partition=k)

    def _key(self, name: str, k: int) -> str:
        return self.namespace.key(name, k)


def _shared(told: dict[int, Line], partitions: int, k: int) -> Line:
    """Return what partition ``k`` of another number of partitions has: its share of the plan; all that was counted in the first one."""
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
    for name in ("pages", "groups", "clocks_open", "rhythms_open", "young_patterns"):
        if name in plan:
            plan[name] = str(sum(int(line["plan"].get(name, 0)) for line in lines) if k == 0 else 0)
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


def read_lines(
    lines: Iterator[Line], take: Callable[[Line], None], advance: Callable[[int], None], stopped: Callable[[], bool], name: str
) -> bool:
    """Give lines to a writer until they end; return False where somebody stopped that. ``name`` is what messages call the export.

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
    raise StateError(f"{name}: the export is not whole: its last line is missing")


def lost_in(memory: bytes) -> list[str]:
    """Return the counter of pages like one with this memory whose callback or item pipeline raised; nothing of most pages."""
    lost = None
    if b"lost" in memory:
        with contextlib.suppress(ValueError):
            lost = Memory.unpack(memory).lost
    return [] if lost is None else [f"lost_{lost.cause}"]


def _literally(text: str) -> str:
    """Return a pattern of SCAN that matches a text alone."""
    return "".join("\\" + c if c in "*?[]\\^-" else c for c in text)
