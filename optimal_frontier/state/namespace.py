"""A namespace: its partitions, and the round trips to them. Errors of Redis are translated here and in `connection`, nowhere else."""

from __future__ import annotations

import math
import secrets
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, NamedTuple

from redis.exceptions import NoScriptError, RedisError

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError, StateError
from optimal_frontier.settings.table import MOST_PARTITIONS
from optimal_frontier.state.connection import Connection
from optimal_frontier.state.keys import KEY_TYPES
from optimal_frontier.state.layouts import PartitionState
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.scan_ahead import Scan, scan_ahead
from optimal_frontier.state.scripts import source

#: Version of everything that ``docs/redis.md`` describes. Another one is refused.
SCHEMA: Final = "4"
#: Stands in its place while an import fills the namespace.
UNFINISHED: Final = "import"
#: What `Namespace.open` and crawlers put there; a hash with no more than that is what a wiped server has got since.
_OURS: Final = frozenset({b"opened", b"partitions", b"run", b"spider", b"identity"})
#: Ends the name under which a migration writes, beside the namespace.
BESIDE: Final = "~migration"
#: Partitions that are looked for together.
_AT_ONCE: Final = 256
#: Redirections by a cluster that are followed for one call.
_MOST_MOVES: Final = 5
#: Names of keys that are asked for at once.
_SCAN_COUNT: Final = 1000


class Call(NamedTuple):
    """One call of a script, or one plain command.

    Attributes
    ----------
    partition : int
    script : str
        Its name; in capitals the name of a command, whose first argument is a key without the prefix of the partition.
    arguments : sequence
    beside : sequence of Call
        Plain commands that go right behind it, whose replies nobody reads: statistics and hints, of which one that is lost, or counted
        twice after an outage, does no harm.
    """

    partition: int
    script: str
    arguments: Sequence[Any]
    beside: Sequence[Call] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is a command, and no script."""
        return self.script.isupper()


class Namespace:
    """All partitions of a crawl.

    Parameters
    ----------
    connection : Connection
        Where the server, or the cluster, is.
    name : str
        Prefix of all keys.

    Attributes
    ----------
    partitions : int
        How many there are; 1 until it is opened.
    run_id : float
        A random number that was written when the namespace was created, so that another one of its name is known for another; 0 until it
        is opened.
    bounded : callable
        Partition and what its server's clock says (us) -> that, or what it should say. A crawler that lives for long sets it.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.partitions = 1
        self.run_id = 0.0
        self.bounded: Callable[[int, float], float] = _as_told
        self._digests: dict[str, str] = {}
        #: Partitions of the node that was called last and has not answered.
        self._doubted: set[int] = set()

    def prefix(self, partition: int) -> str:
        """Return what all keys of a partition begin with; the braces are its hash tag in a Redis Cluster."""
        return f"{self.name}:{{{partition}}}:"

    def key(self, name: str, partition: int = 0) -> str:
        """Return the full name of the key ``name``."""
        return self.prefix(partition) + name

    def partition_of(self, host: str) -> int:
        """Return the partition of a host."""
        return zlib.crc32(host.encode()) % self.partitions if self.partitions > 1 else 0

    def open(
        self, *, spider: str | None = None, create: bool = True, partitions: int | None = None, former: str = "", mends: bool = False
    ) -> None:
        """Check the schema and the types of our keys; claim the namespace for ``spider``.

        Parameters
        ----------
        spider : str, optional
            Whose it is to be, or must be.
        create : bool
            Whether to create it where it is not there.
        partitions : int, optional
            PARTITIONS of a new namespace; of one that is there, what the settings say (None: nothing).
        former : str
            Name under which an earlier version may have kept the pages of ``spider``; while it does, this one is not created.
        mends : bool
            Whether the caller puts right what is damaged: keys of another type do not count then, if the schema is ours.

        Raises
        ------
        SchemaMismatchError
            The namespace belongs to another spider, was written by another schema, or another program's key is in the way.
        ConfigurationError
            It has another number of partitions than ``partitions``, or the pages are under ``former``.
        StateUnavailableError
            Redis cannot be reached.
        """
        meta = self.key("meta")
        found = self._types(mends)
        is_new = found[0] == "none" or set(self.command("HKEYS", meta)) <= _OURS
        if is_new and not create:
            return
        if is_new:
            if former and spider is not None and self._owner_of(former) == spider:
                raise ConfigurationError(
                    f"the pages of spider {spider!r} are in namespace {former!r}, which was the default before: set "
                    f"OPTIMAL_FRONTIER_NAMESPACE = {former!r} to go on with them, or = {self.name!r} to start afresh"
                )
            seconds, micros = self.command("TIME")  # the server's, as all times that are stored
            self.commands(
                [
                    ["HSETNX", meta, "schema", SCHEMA],
                    ["HSETNX", meta, "opened", f"{int(seconds)}.{int(micros):06d}"],
                    ["HSETNX", meta, "partitions", partitions or 1],
                ]
            )
        schema, stored, run = self.command("HMGET", meta, "schema", "partitions", "run")
        if schema == UNFINISHED.encode():
            raise SchemaMismatchError(
                f"an import into namespace {self.name!r} has not ended, so there is only a part of it: let it end, or run the same "
                "`optimal-frontier import` again"
            )
        if schema is None or schema != SCHEMA.encode():
            shown = "no schema version" if schema is None else f"schema {schema.decode('utf-8', 'backslashreplace')!r}"
            raise SchemaMismatchError(
                f"namespace {self.name!r} holds {shown}; this version of optimal_frontier reads schema {SCHEMA!r}. Nothing was "
                "changed. Run `optimal-frontier migrate`, choose another OPTIMAL_FRONTIER_NAMESPACE, or the version that wrote it"
            )
        self.partitions = partitions_of(stored) or max(self.count_partitions(), partitions or 1)
        if partitions is not None and partitions != self.partitions:
            raise ConfigurationError(
                f"OPTIMAL_FRONTIER_PARTITIONS = {partitions}: expected {self.partitions}, which namespace {self.name!r} was made with; "
                "a new number needs a new OPTIMAL_FRONTIER_NAMESPACE, or an export and import"
            )
        if create and not partitions_of(stored):
            self.command("HSET", meta, "partitions", self.partitions)
        if create and not number_of(run):
            self.command("HSETNX" if run is None else "HSET", meta, "run", 1 + secrets.randbelow(2**52))
            run = self.command("HGET", meta, "run")
        if spider is not None:
            self.command("HSETNX", meta, "spider", spider)
            owner = self.command("HGET", meta, "spider").decode("utf-8", "backslashreplace")
            if owner != spider:
                raise SchemaMismatchError(
                    f"namespace {self.name!r} belongs to the spider {owner!r}, this one is {spider!r}; "
                    "give it an OPTIMAL_FRONTIER_NAMESPACE of its own. One that was renamed takes its pages along by `optimal-frontier "
                    "export`, and `import` with `--spider`"
                )
        self.run_id = number_of(run)  # not of one that was refused: `is_there` would take it for ours

    def is_there(self) -> bool:
        """Tell whether it is still the namespace that was opened: a server that was wiped, or another one, has none or another."""
        return number_of(self.command("HGET", self.key("meta"), "run")) == self.run_id

    def _types(self, mends: bool) -> list[str]:
        """Return the types of our keys; refuse those of other programs."""
        meta = self.key("meta")
        found = [kind.decode() for kind in self.commands([["TYPE", self.key(name)] for name in KEY_TYPES])]
        if mends and found[0] == "hash" and self.command("HGET", meta, "schema") == SCHEMA.encode():
            return found
        for (name, expected), actual in zip(KEY_TYPES.items(), found, strict=True):
            if actual not in (expected, "none"):
                raise SchemaMismatchError(
                    f"the key {self.key(name)} holds a {actual}, where optimal_frontier keeps a {expected}; nothing was changed. "
                    f"Choose another OPTIMAL_FRONTIER_NAMESPACE than {self.name!r}, or remove that key; "
                    "where it is damage of a crawl of ours, `optimal-frontier check --repair` sets it aside"
                )
        return found

    def count_partitions(self) -> int:
        """Return the number of partitions of which there is anything, 1 at least: for a namespace that has lost what it was made with."""
        if self.connection.spec.cluster:
            return max((k for k in range(MOST_PARTITIONS) if self.command("EXISTS", *self._of(k), partition=k)), default=0) + 1
        # Many partitions at once first, as nearly all of these are not there.
        parts = [range(at, min(at + _AT_ONCE, MOST_PARTITIONS)) for at in range(0, MOST_PARTITIONS, _AT_ONCE)]
        some = self.commands([["EXISTS", *(key for k in part for key in self._of(k))] for part in parts])
        last = max((part for part, there in zip(parts, some, strict=True) if there), key=max, default=range(1))
        found = self.commands([["EXISTS", *self._of(k)] for k in last])
        return max((k for k, there in zip(last, found, strict=True) if there), default=0) + 1

    def _of(self, partition: int) -> tuple[str, str]:
        """What is there of every partition that was dispatched from, and of every one that has pages."""
        return self.key("d", partition), self.key("pages", partition)

    def _owner_of(self, name: str) -> str | None:
        spider = self.command("HGET", Namespace(self.connection, name).key("meta"), "spider")
        return None if spider is None else str(spider.decode("utf-8", "replace"))

    # Round trips.

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Run scripts and commands in order, in one round trip a node, and return their results, without those of what goes beside.

        A server that was restarted has forgotten the scripts; they are loaded again, and the refused calls repeated. So are calls that a
        cluster has sent elsewhere: neither has run.

        Raises
        ------
        StateError, StateUnavailableError
            What Redis reports. Calls of other nodes may have run all the same.
        """
        own: list[int] = []  # where calls stand among all that is sent
        sent: list[Call] = []
        for call in calls:
            own.append(len(sent))
            sent += (call, *call.beside)
        results: list[Any] = [None] * len(sent)
        todo = list(range(len(sent)))
        with translated(self.connection.spec) as called:
            for tries in range(_MOST_MOVES):
                again: list[int] = []
                has_moved = False
                for client, chosen in self._by_client([(i, sent[i].partition) for i in todo]):
                    self._doubted, called[:] = {sent[i].partition for i in chosen}, [client]
                    self._load(client, {sent[i].script for i in chosen if not sent[i].is_plain})
                    pipe = client.pipeline(transaction=False)
                    for i in chosen:
                        pipe.execute_command(*self._words(sent[i]))
                    for i, result in zip(chosen, pipe.execute(raise_on_error=False), strict=True):
                        results[i] = result
                        if isinstance(result, NoScriptError):
                            self.connection.forget_scripts()
                            again.append(i)
                        elif self.connection.has_moved(result):
                            has_moved = True
                            again.append(i)
                self._doubted = set()
                called.clear()
                if not again:
                    break
                if has_moved:
                    self.connection.read_map(tries)
                todo = again
            for result in results:
                if isinstance(result, RedisError):
                    raise result
        return [results[at] for at in own]

    def _words(self, call: Call) -> tuple[Any, ...]:
        prefix = self.prefix(call.partition)
        if call.is_plain:
            key, *values = call.arguments
            return call.script, prefix + key, *values
        return "EVALSHA", self._digests[call.script], 1, prefix, *call.arguments

    def command(self, *arguments: Any, partition: int = 0) -> Any:
        """Run one plain command on the node of a partition."""
        return self.commands([list(arguments)], partition=partition)[0]

    def commands(self, rows: Iterable[Sequence[Any]], *, partition: int = 0, at: str | None = None) -> list[Any]:
        """Run plain commands on the node of a partition, or of the key ``at``, in one round trip."""
        rows = list(rows)
        with translated(self.connection.spec) as called:
            for tries in range(_MOST_MOVES):
                called[:] = [self.connection.client_of(self.prefix(partition) if at is None else at)]
                pipe = called[0].pipeline(transaction=False)
                for row in rows:
                    pipe.execute_command(*row)
                results: list[Any] = pipe.execute(raise_on_error=False)
                if not any(self.connection.has_moved(result) for result in results):
                    break
                self.connection.read_map(tries)
            for result in results:
                if isinstance(result, RedisError):
                    raise result
        return results

    def scan(self, scan: Scan, *, partition: int = 0) -> Generator[tuple[int, list[bytes]]]:
        """Yield replies of HSCAN, see `scan_ahead`. A hash that a cluster moves meanwhile is gone on with where it is then."""
        tries = 0
        with translated(self.connection.spec):
            while True:
                try:
                    for cursor, found in scan_ahead(self.connection.client_of(self.prefix(partition)), scan):
                        scan = scan._replace(cursor=cursor, most=scan.most - len(found) // 2)
                        yield cursor, found
                    return
                except RedisError as error:
                    if tries >= _MOST_MOVES or not self.connection.has_moved(error):
                        raise
                    self.connection.read_map(tries)
                    tries += 1

    def hash(self, name: str, partition: int = 0) -> dict[str, str]:
        """Read a hash of texts."""
        return texts(self.command("HGETALL", self.key(name, partition), partition=partition))

    def counts(self, partition: int | None = None) -> dict[str, int]:
        """Read the counters of a partition, or the sums of all.

        Raises
        ------
        StateError
            Something else stands there.
        """
        sums: dict[str, int] = {}
        for k in range(self.partitions) if partition is None else (partition,):
            for name, value in self.hash("stats", k).items():
                try:
                    sums[name] = sums.get(name, 0) + int(value)
                except ValueError as error:
                    raise StateError(f"{self.key('stats', k)} holds something that is not a counter: {error}") from error
        return sums

    def now(self, partition: int = 0) -> float:
        """Return the time of a partition, seconds since the epoch: its server's, and never before that of its last dispatch."""
        return self.time_of(partition, *self.commands(self.clock_commands(partition), partition=partition))

    def clock_commands(self, partition: int) -> list[list[str]]:
        """Return the plain commands whose replies `time_of` takes, for those who ask for more at once."""
        return [["TIME"], ["GET", self.key("d", partition)]]

    def time_of(self, partition: int, clock: tuple[int, int], stored: bytes | None) -> float:
        """Return what `now` does, of the replies to `clock_commands`."""
        seconds, micros = clock
        told = self.bounded(partition, int(seconds) * 1e6 + int(micros))
        state = PartitionState.stored(stored)
        return (told if state is None else state.now(told)) / 1e6

    def _by_client(self, partitions: Sequence[tuple[int, int]]) -> Iterable[tuple[Any, list[int]]]:
        chosen: dict[int, tuple[Any, list[int]]] = {}
        for i, partition in partitions:
            client = self.connection.client_of(self.prefix(partition))
            chosen.setdefault(id(client), (client, []))[1].append(i)
        # A node that was lost is called first: while it is, the others do nothing whose replies nobody would read.
        lost = {i for i, partition in partitions if partition in self._doubted}
        return sorted(chosen.values(), key=lambda one: lost.isdisjoint(one[1]))

    def _load(self, client: Any, names: Iterable[str]) -> None:
        loaded = self.connection.scripts_of(client)
        # Namespaces may share a connection: another may have loaded what this one has no digest of.
        for name in sorted(name for name in set(names) if name not in loaded or name not in self._digests):
            digest = client.script_load(source(name))
            self._digests[name] = digest if isinstance(digest, str) else digest.decode()
            loaded.add(name)


def texts(flat: dict[bytes, bytes] | list[bytes]) -> dict[str, str]:
    """Return a hash of texts as HGETALL replies it.

    Examples
    --------
    >>> texts([b"time", b"1.5", b"policy", b"periodic"])
    {'time': '1.5', 'policy': 'periodic'}
    """
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {field.decode("utf-8", "replace"): value.decode("utf-8", "replace") for field, value in pairs}


def partitions_of(stored: bytes | None) -> int:
    """Return the number of partitions that is stored; 0: that is none.

    Examples
    --------
    >>> [partitions_of(stored) for stored in (b"12", b"-1", b"x", None)]
    [12, 0, 0, 0]
    """
    count = int(stored) if stored is not None and stored.isdigit() and len(stored) < 6 else 0
    return count if count <= MOST_PARTITIONS else 0


def number_of(stored: bytes | str | None) -> float:
    """Return a number above 0 that is stored as text; 0: it is none, or not finite.

    Examples
    --------
    >>> [number_of(stored) for stored in (b"1.5", b"nan", b"-1", "x", None)]
    [1.5, 0.0, 0.0, 0.0, 0.0]
    """
    try:
        number = float(stored or 0.0)
    except ValueError:
        return 0.0
    return number if 0.0 < number < math.inf else 0.0


def _as_told(_: int, clock: float) -> float:
    return clock


def namespaces_of(connection: Connection, bot_name: str) -> list[str]:
    """Return the namespaces that begin with a BOT_NAME, in order: its own, which was the default before, and those of its spiders. What a
    migration writes beside one is none.

    Goes through the names of all keys of the node that has first partitions, in small steps.
    """
    ending = Namespace(connection, "").key("meta").encode()
    escaped = bot_name.replace("\\", "\\\\")
    with connection.translated():
        client = connection.client_of(ending.decode())
        found = {
            key.removesuffix(ending).decode("utf-8", "backslashreplace")
            for key in client.scan_iter(match=f"{escaped}*{ending.decode()}", count=_SCAN_COUNT)
        }
    return sorted(name for name in found if name == bot_name or (name.startswith(f"{bot_name}:") and not name.endswith(BESIDE)))
