"""Values that scripts and planners share, where one that is damaged stops them all: what is wrong with them, and what puts it right.

A crawler whose script fails looks here and goes on; `check --repair` uses the same commands. Each removes a value that nothing can be made
of. What it stood for is learned anew: a host's turn, a counter, the price, the last plan. A key of another type is renamed, not removed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

from optimal_frontier.errors import OptimalFrontierError, StateError, StateUnavailableError
from optimal_frontier.state.clocks import fault_of_field
from optimal_frontier.state.keys import KEYS
from optimal_frontier.state.layouts import HostTurns, PartitionState, is_sound
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import SCHEMA, UNFINISHED, Namespace, number_of, partitions_of
from optimal_frontier.state.published import is_sound_field
from optimal_frontier.state.scanning import host_number, scan_hash, scan_zsets
from optimal_frontier.state.visit_log import VISIT, sound_visits

logger = logging.getLogger(__name__)

#: Lines of the log about damage, of one process.
_MOST_LINES: Final = 100
_lines = count(1)
#: Words by which a script says that a value was damaged, and not, for one, that a permission is missing.
_DAMAGE: Final = (
    "not an integer",
    "not a valid float",
    "WRONGTYPE",
    "data string",
    "bad argument",
    "attempt to",
    "invalid order function",
    "another type",
)
_MOST: Final = 10_000
#: The schema of a later version has fewer.
_SCHEMA_DIGITS: Final = 5
#: Entries of a stream that one call reads, and keys whose types one asks for.
_ENTRIES: Final = 200
_ASKED: Final = 1000

#: Of a host, decoded or as it is stored.
Name = TypeVar("Name", str, bytes)


class Damage(NamedTuple):
    """A damaged value: which, what is wrong with it, and the command that puts it right (keys are marked by a leading ``@``)."""

    subject: str
    message: str
    repair: tuple[Any, ...]


def damages(namespace: Namespace, partition: int) -> Iterator[Damage]:
    """Yield what is damaged among the shared values of a partition. O(hosts), in replies of bounded size."""
    yield from misfits(namespace, partition)
    kept = _read(namespace, partition, "GET", "d")
    if kept is not None and not is_sound(PartitionState.stored(kept)):
        yield Damage("d", "is no state of a partition", ("DEL", "@d"))
    for name in ("stats", "kept"):
        for field, value in _fields(namespace, partition, name):
            if not _is_whole(value):
                yield Damage(f"{name} {_text(field)}", f"is {_text(value)!r}, which is no counter", ("HDEL", f"@{name}", field))
    for field, value in _fields(namespace, partition, "opens"):
        if len(field) != 4 or not is_sound(HostTurns.stored(value)):
            yield Damage(f"opens {field.hex()}", "is no time of a host", ("HDEL", "@opens", field))
    yield from host_damages(namespace, partition)
    yield from _of_clocks(namespace, partition)
    for field, value in _fields(namespace, partition, "plan"):
        if not is_sound_field(_text(field), value):
            yield Damage(f"plan {_text(field)}", f"is {_text(value)!r}, which no plan publishes there", ("HDEL", "@plan", field))
    try:
        for _, member, _ in scan_zsets(namespace, ["f"], partition):
            if not member.isdigit() or len(member) > 10:
                yield Damage(f"f {_text(member)}", "is no number of a host", ("ZREM", "@f", member))
        for _, member, _ in scan_zsets(namespace, ["q"], partition):
            if len(member) != PAGE_BYTES:
                yield Damage(f"q {member.hex()}", "is no page", ("ZREM", "@q", member))
    except StateUnavailableError:
        raise
    except StateError:
        return  # of another type, which was told


def mend(namespace: Namespace, partitions: range | None = None, find: Callable[[Namespace, int], Iterable[Damage]] = damages) -> list[str]:
    """Put right what is damaged among the shared values, all of it or what is found; return what that was, a line each.

    What another version of the schema keeps is none of it.
    """
    told: list[str] = []
    if _is_of_another_schema(namespace):
        return told
    for k in partitions if partitions is not None else range(namespace.partitions):
        for damage in find(namespace, k):
            if len(told) >= _MOST:
                return told
            words = [namespace.key(word[1:], k) if isinstance(word, str) and word.startswith("@") else word for word in damage.repair]
            namespace.command(*words, partition=k)
            told.append(f"{damage.subject} {damage.message}")
    return told


def is_damage(error: StateError) -> bool:
    """Tell whether an error of Redis may come of a damaged value."""
    return not isinstance(error, StateUnavailableError) and any(word in str(error) for word in _DAMAGE)


def can_go_on(namespace: Namespace, error: Exception) -> bool:
    """Tell whether what was tried may have failed at what is stored; shared values that are damaged are put right, and said to be."""
    is_of_data = is_damage(error) if isinstance(error, StateError) else not isinstance(error, OptimalFrontierError)
    if isinstance(error, StateUnavailableError) or not is_of_data:
        return False
    tell("what is stored made an exchange fail: %r", error)
    try:
        for line in mend(namespace):
            tell("put right: %s", line)
    except StateUnavailableError:
        raise
    except StateError as other:
        tell("what is stored cannot be put right: %s", other)
    return True


def tell(message: str, *arguments: object) -> None:
    """Log damage; of a process that meets much of it the first lines only."""
    number = next(_lines)
    if number <= _MOST_LINES:
        logger.error(message, *arguments)
    if number == _MOST_LINES:
        logger.error("further damage is not logged; `optimal-frontier check` names it all")


def wrong_types(namespace: Namespace, partition: int) -> Iterator[Damage]:
    """Yield keys of a partition that are of another type than ours; they are renamed."""
    names = [(key.name, key.type) for key in KEYS if not key.name.endswith(":H") and key.name != "meta"]
    numbers = [_text(number) for number, _ in _fields(namespace, partition, "hosts:names") if number.isdigit()]
    names += [(f"{key.name[:-1]}{number}", key.type) for key in KEYS if key.name.endswith(":H") for number in numbers]
    for at in range(0, len(names), _ASKED):
        some = names[at : at + _ASKED]
        found = namespace.commands([["TYPE", namespace.key(name, partition)] for name, _ in some], partition=partition)
        for (name, expected), kind in zip(some, found, strict=True):
            if kind.decode() not in (expected, "none"):
                yield Damage(name, f"is a {kind.decode()}, expected a {expected}", ("RENAME", f"@{name}", f"@{name}:damaged"))
                if name == "pages":  # a state that counts no calls tells crawlers that the server has lost something
                    yield Damage("d", "counts calls for pages that are gone", ("DEL", "@d"))


def misfits(namespace: Namespace, partition: int) -> Iterator[Damage]:
    """Yield what would have a namespace be taken for another program's: keys of other types, and what ``meta`` says. A few calls."""
    yield from wrong_types(namespace, partition)
    if partition == 0:
        yield from _of_meta(namespace)


def _is_of_another_schema(namespace: Namespace) -> bool:
    if namespace.command("TYPE", namespace.key("meta")) != b"hash":
        return False
    schema = namespace.command("HGET", namespace.key("meta"), "schema")
    return schema == UNFINISHED.encode() or (_is_schema(schema) and schema != SCHEMA.encode())


def _is_schema(stored: bytes | None) -> bool:
    return stored is not None and stored.isdigit() and len(stored) < _SCHEMA_DIGITS


def _of_meta(namespace: Namespace) -> Iterator[Damage]:
    """Of a namespace that was opened before, so that it is ours."""
    kind = namespace.command("TYPE", namespace.key("meta")).decode()
    if kind not in ("hash", "none"):
        yield Damage("meta", f"is a {kind}, expected a hash", ("RENAME", "@meta", "@meta:damaged"))
    meta = dict(_fields(namespace, 0, "meta"))
    schema = meta.get(b"schema", SCHEMA.encode())
    if not _is_schema(schema) and schema != UNFINISHED.encode():
        yield Damage("meta schema", f"is {_text(schema)!r}, which no version has", ("HSET", "@meta", "schema", SCHEMA))
    if b"schema" in meta and not partitions_of(meta.get(b"partitions")):
        yield Damage("meta partitions", "is no number of partitions", ("HSET", "@meta", "partitions", namespace.partitions))
    for name in (b"run", b"opened"):
        if name in meta and not number_of(meta[name]):
            yield Damage(f"meta {_text(name)}", f"is {_text(meta[name])!r}, which is no number", ("HDEL", "@meta", name))


def unnamed_hosts(numbers: Mapping[Name, int], names: Mapping[int, Name]) -> set[Name]:
    """Return the hosts whose numbers have lost their names, so that they can have them back.

    Requests go to the host that its number names. So a number that names another host gets its name back only where it is the number of
    one host alone, which no number names: else it may be ``hosts`` that is damaged.

    Parameters
    ----------
    numbers : mapping of str or bytes to int
        The hash ``hosts``.
    names : mapping of int to str or bytes
        The hash ``hosts:names``.
    """
    owners, named = Counter(numbers.values()), set(names.values())
    return {name for name, number in numbers.items() if number not in names or (owners[number] == 1 and name not in named)}


def host_damages(namespace: Namespace, partition: int) -> Iterator[Damage]:
    """Yield what is damaged among names and numbers of hosts. O(hosts)."""
    names = {host_number(number): name for number, name in _fields(namespace, partition, "hosts:names")}
    numbers: dict[bytes, int] = {}
    for name, number in _fields(namespace, partition, "hosts"):
        if at := host_number(number):
            numbers[name] = at
        else:
            yield Damage(f"host {_text(name)}", f"has the number {_text(number)!r}, which is none", ("HDEL", "@hosts", name))
    for name in sorted(unnamed_hosts(numbers, names)):
        yield Damage(f"host {_text(name)}", "is not named by its number", ("HSET", "@hosts:names", numbers[name], name))


def _of_clocks(namespace: Namespace, partition: int) -> Iterator[Damage]:
    now = namespace.now(partition)
    for name, value in _fields(namespace, partition, "clocks"):
        if fault := fault_of_field(name, value):
            yield Damage(f"clocks {name.hex()}", fault, ("HDEL", "@clocks", name))
    after = "-"
    while True:
        entries = _read(namespace, partition, "XRANGE", "visited", after, "+", "COUNT", _ENTRIES) or []
        for entry, fields in entries:
            packed = next(iter(fields.values())) if isinstance(fields, dict) else fields[1]
            if len(packed) % VISIT.itemsize or len(sound_visits([packed], now)) * VISIT.itemsize != len(packed):
                yield Damage(f"visited {_text(entry)}", "is no visits", ("XDEL", "@visited", entry))
            after = f"({_text(entry)}"
        if len(entries) < _ENTRIES:
            return


def _fields(namespace: Namespace, partition: int, name: str) -> Iterator[tuple[bytes, bytes]]:
    try:
        yield from scan_hash(namespace, name, partition)
    except StateUnavailableError:
        raise
    except StateError:
        return  # of another type, which was told


def _read(namespace: Namespace, partition: int, command: str, name: str, *arguments: Any) -> Any:
    try:
        return namespace.command(command, namespace.key(name, partition), *arguments, partition=partition)
    except StateUnavailableError:
        raise
    except StateError:
        return None


def _is_whole(value: bytes) -> bool:
    try:
        return -(2**63) <= int(value) < 2**63 and value.strip() == value and not value.startswith(b"+")
    except ValueError:
        return False


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")[:100]
