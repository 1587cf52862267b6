"""The invariants of what is stored, whether they hold, and the repairs that cannot do harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from redis.exceptions import WatchError

from optimal_frontier.state.inventory import Inventory, read_inventory, whole_counts
from optimal_frontier.state.mending import damages, unnamed_hosts, wrong_types
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.put_aside import COUNTER
from optimal_frontier.state.reading import read_now
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.rows import ACTIVE, DONE, HELD, LAYOUT, NUMBERS_AT, ONCE, RETIRED, TRANSIENT
from optimal_frontier.state.soundness import faults_of

#: Seconds before a second look: what a running crawl only seemed to break is whole by then.
PAUSE_S: Final = 0.3
#: Looks after the first.
LOOKS: Final = 2
#: Invariants that no page breaks which can be read: it is put aside.
UNSOUND: Final = frozenset({"rows", *(message for message, _ in faults_of(np.zeros(0, LAYOUT)))})
#: Repairs of one transaction, so that it does not block the server for long; another round repairs the rest.
MOST_REPAIRS: Final = 2000

#: Scores of a page that is in no queue: to be looked at now; a first visit whose lease was lost.
_NOW: Final = 2
_LOST: Final = 1
#: What longest waits may be longer than longest intervals, as a factor: both are stored in 32 bits.
_ROUNDED: Final = 1.0 + 1e-5
_SECOND_US: Final = 1e6

#: In front of the first attempt a row has its rank where the first two numbers stand.
_RANKS: Final = np.dtype({"names": ["rank"], "formats": ["<f8"], "offsets": [NUMBERS_AT + 8], "itemsize": LAYOUT.itemsize})

#: A command of a repair; keys are names within the partition, marked by a leading `@`.
Command = tuple[Any, ...]


@dataclass(frozen=True)
class Finding:
    """Something that should not be: where, the invariant, what breaks it, how, and the commands that put it right (or none)."""

    partition: int
    invariant: str
    subject: str
    message: str
    repair: tuple[Command, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """What a check found, at every look; and of these what was repaired."""

    pages: int
    violations: list[Finding]
    repaired: list[Finding]


def check_state(namespace: Namespace, *, repair: bool = False, sleep: Callable[[float], None] = time.sleep) -> CheckReport:
    """Check the stored state of a namespace, also under a running crawl.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    repair : bool
        Put right what can be, where nothing else changes the state meanwhile.
    sleep : callable
        Waits between two looks.

    Returns
    -------
    CheckReport
        Only what was found at every look.
    """
    pages, violations = _look(namespace)
    for _ in range(LOOKS):
        if not violations:
            break
        sleep(PAUSE_S)
        known = {_name(finding) for finding in violations}
        pages, again = _look(namespace)
        violations = [finding for finding in again if _name(finding) in known]
    repaired: list[Finding] = []
    if repair:
        for partition in sorted({finding.partition for finding in violations if finding.repair}):
            repaired += _repair(namespace, partition, {_name(finding) for finding in violations})
        done = {_name(finding) for finding in repaired}
        violations = [finding for finding in violations if _name(finding) not in done]
    return CheckReport(pages, violations, repaired)


def inspect(inventory: Inventory, *, in_motion: int = 0) -> list[Finding]:
    """Check one partition.

    Parameters
    ----------
    inventory : Inventory
        All of it, but that aliases may lead to another one.
    in_motion : int
        By how much counters may be off, as the state changes while it is read.
    """
    return [
        *_check_rows(inventory),
        *_check_places(inventory),
        *_check_queues(inventory),
        *_check_first_visits(inventory),
        *_check_counters(inventory, in_motion),
        *_check_memories(inventory),
        *(
            Finding(inventory.partition, "put aside", f"page {one.page.hex()}", f"was put aside: {one.reason}")
            for one in inventory.put_aside
        ),
    ]


def _name(finding: Finding) -> tuple[int, str, str]:
    return finding.partition, finding.invariant, finding.subject


def _look(namespace: Namespace) -> tuple[int, list[Finding]]:
    found: list[Finding] = []
    known: list[set[bytes]] = []
    aliases: list[tuple[int, dict[bytes, tuple[int, bytes]]]] = []
    pages, is_whole = 0, True
    for k in range(namespace.partitions):
        types = [Finding(k, "values", one.subject, one.message, (one.repair,)) for one in wrong_types(namespace, k)]
        if types:  # what else is there can be read when they are renamed
            found, is_whole = found + types, False
            continue
        before = whole_counts(namespace, "stats", k)
        found += [Finding(k, "values", one.subject, one.message, (one.repair,)) for one in damages(namespace, k)]
        inventory = read_inventory(namespace, k, read_now(namespace, k))
        found += inspect(inventory, in_motion=_motion(before, whole_counts(namespace, "stats", k)))
        state = inventory.heads["state"]
        pages += int(((state == ACTIVE) | (state == RETIRED)).sum())
        known.append(set(inventory.pages))
        aliases.append((k, inventory.aliases))
    for k, named in aliases if is_whole else ():
        found += _check_aliases(k, named, known)
    return pages, found


def _motion(before: dict[str, int], after: dict[str, int]) -> int:
    """Return by how much counts may be off: 0 where nothing is under way and nothing was counted meanwhile."""
    names = ("pages", "pending", "fetched", "retired", "held", "dispatched", "ended", "visits", "failures")
    moved = sum(abs(after.get(name, 0) - before.get(name, 0)) for name in names)
    return moved + max(0, before.get("dispatched", 0) - before.get("ended", 0) - before.get("leases_expired", 0))


def _of_pages(
    s: Inventory, invariant: str, pages: Iterable[bytes], message: str, repair: Callable[[bytes], Command] | None = None
) -> Iterator[Finding]:
    for page in pages:
        yield Finding(s.partition, invariant, f"page {page.hex()}", message, () if repair is None else (repair(page),))


def _check_rows(s: Inventory) -> Iterator[Finding]:
    heads, names = s.heads, list(s.pages)
    for page, message in s.damaged.items():
        yield Finding(s.partition, "rows", f"page {page.hex()}", message)
    state = heads["state"]
    # Of a request that is fetched once the rank stays where numbers stand; so it does in front of a first visit.
    visited = (heads["b"] > 0) & (state == ACTIVE)
    # Held pages wait for their callback; those that came back are due, however long they were away.
    planned = visited & (heads["flags"] & HELD == 0) & (heads["b"] + heads["l"].astype(np.float64) * 1e6 > s.now + _SECOND_US)
    for message, broken in faults_of(heads, s.now):
        yield from _of_pages(s, message, (names[at] for at in np.flatnonzero(broken).tolist()), message)
    with np.errstate(invalid="ignore"):
        rules = {
            "states an importance below 0": ~(s.stated >= 0) | np.isinf(s.stated),
            "is planned later than its longest interval allows": planned & (heads["l"] > heads["max_interval"] * (s.stretch * _ROUNDED)),
            "has more changes than observations": heads["changes"] > heads["observations"],
            "has more observations than visits": heads["observations"] > heads["visits"],
        }
    for message, broken in rules.items():
        yield from _of_pages(s, message, (names[at] for at in np.flatnonzero(broken).tolist()), message)
    numbers = np.unique(heads["host"])
    nameless = numbers[~np.isin(numbers, np.fromiter(s.hosts, np.int64, len(s.hosts)))]
    at_nameless = np.flatnonzero(np.isin(heads["host"], nameless)).tolist()
    yield from _of_pages(s, "hosts", (names[at] for at in at_nameless), "is of a host without a name")
    unnamed = unnamed_hosts(s.numbers, s.hosts)  # `damages` tells of these, with what puts them right
    for name, number in s.numbers.items():
        if s.hosts.get(number) != name and name not in unnamed:
            yield Finding(s.partition, "hosts", f"host {name}", f"has the number {number}, which is another's")


def _check_places(s: Inventory) -> Iterator[Finding]:
    """Each page is in exactly one of q and the queues of first visits, those that are retired or done in none."""
    state, b = s.heads["state"].tolist(), s.heads["b"].tolist()
    for page, at in s.pages.items():
        places = (page in s.queue) + len(s.waiting.get(page, ()))
        where = f"page {page.hex()}"
        if state[at] in (RETIRED, DONE):
            if page in s.queue:
                yield Finding(s.partition, "places", where, "is retired or done, and queued all the same", (("ZREM", "@q", page),))
            continue
        if places == 1:
            continue
        if places > 1:
            yield Finding(s.partition, "places", where, f"is in {places} queues", tuple(_leave_first(s, page)) if page in s.queue else ())
        elif b[at] == 0:
            # A first visit whose lease was lost is just that, and dispatch hands it out again.
            lost = (("ZADD", "@q", "NX", _LOST, page), ("HINCRBY", "@stats", "dispatched", 1))
            yield Finding(s.partition, "places", where, "waits for its first visit in no queue", lost)
        else:
            yield Finding(s.partition, "places", where, "is in no queue", (("ZADD", "@q", "NX", _NOW, page),))


def _leave_first(s: Inventory, page: bytes) -> Iterator[Command]:
    """Take a page out of queues of first visits; where their hosts stand then is found by the next check."""
    for host in s.waiting[page]:
        yield ("ZREM", f"@f:{host}", page)


def _check_queues(s: Inventory) -> Iterator[Finding]:
    first = {page for page, at in s.pages.items() if s.heads["b"][at] == 0}
    strangers = [page for page in s.queue if page not in s.pages and page not in s.damaged]
    yield from _of_pages(s, "queue", strangers, "is queued, and not known", lambda page: ("ZREM", "@q", page))
    for page, score in s.queue.items():
        where = f"page {page.hex()}"
        if not score.is_integer() or score < 0:
            yield Finding(s.partition, "scores", where, f"stands at {score!r}, which is no time", (("ZADD", "@q", "XX", _NOW, page),))
        elif page in first and score % 2 == 0:
            lost = (("ZADD", "@q", "XX", _LOST, page),)
            yield Finding(s.partition, "scores", where, "was never visited, and is queued as if it had been", lost)
    for page in s.misplaced:
        yield Finding(s.partition, "queue", f"member {page.hex()}", "is no page and no host")


def _check_first_visits(s: Inventory) -> Iterator[Finding]:
    ranks = np.frombuffer(s.heads.tobytes(), _RANKS)["rank"]
    for page, places in s.waiting.items():
        at, where = s.pages.get(page), f"page {page.hex()}"
        for host, rank in places.items():
            if at is None:
                yield Finding(
                    s.partition, "first visits", where, "waits for its first visit, and is not known", (("ZREM", f"@f:{host}", page),)
                )
            elif s.heads["host"][at] != host:
                yield Finding(s.partition, "first visits", where, f"waits for its first visit at host {host}, which is not its own")
            elif s.heads["b"][at] == 0 and rank != ranks[at]:
                yield Finding(s.partition, "first visits", where, "waits for its first visit under another rank than its own")
    for host, seen in s.first_visits.items():
        # A host that is shut stands by the time when it opens.
        if seen.stands == seen.first or (seen.first is not None and seen.stands is not None and seen.stands > 0):
            continue
        is_over = seen.first is None
        what = "has no first visits, and stands among the hosts that have" if is_over else "does not stand by the rank of its first visits"
        repair: Command = ("ZREM", "@f", host) if is_over else ("ZADD", "@f", seen.first, host)
        yield Finding(s.partition, "heads", f"host {host}", what, (repair,))


def _check_counters(s: Inventory, in_motion: int) -> Iterator[Finding]:
    state, heads = s.heads["state"], s.heads
    recounts = {
        "pages": (state == ACTIVE) | (state == RETIRED),
        "pending": ((state == ACTIVE) | (state == ONCE) | (state == TRANSIENT)) & (heads["b"] == 0),
        "fetched": ((state == ACTIVE) | (state == RETIRED)) & (heads["visits"] > 0),
        "retired": state == RETIRED,
        "held": heads["flags"] & HELD != 0,
    }
    yield from _off(s, "counters", "stats", COUNTER, (s.counts.get(COUNTER, 0), len(s.put_aside)), in_motion)
    for name, counted in recounts.items():
        yield from _off(s, "counters", "stats", name, (s.counts.get(name, 0), int(counted.sum())), in_motion)
    for name in sorted(s.lost.keys() | {name for name in s.counts if name.startswith("lost_")}):
        yield from _off(s, "counters", "stats", name, (s.counts.get(name, 0), s.lost.get(name, 0)), in_motion)
    known = state != TRANSIENT
    real = {
        f"{kind}{number}": count
        for kind, column in (("h", "host"), ("p", "pattern"))
        for number, count in zip(*(values.tolist() for values in np.unique(heads[column][known], return_counts=True)), strict=True)
    }
    for name in sorted(real.keys() | s.kept.keys()):
        yield from _off(s, "kept", "kept", name, (s.kept.get(name, 0), real.get(name, 0)), in_motion)


def _off(s: Inventory, invariant: str, key: str, name: str, counts: tuple[int, int], in_motion: int) -> Iterator[Finding]:
    said, real = counts
    if abs(said - real) > in_motion:
        repair = (("HINCRBY", f"@{key}", name, real - said),) if in_motion == 0 else ()
        yield Finding(s.partition, invariant, name, f"the counter says {said}, the pages say {real}", repair)


def _check_memories(s: Inventory) -> Iterator[Finding]:
    yield from _of_pages(s, "memory", s.unreadable, "has a memory that cannot be read", lambda page: ("HDEL", "@memory", page))
    strangers = sorted(page for page in s.remembered - set(s.unreadable) if page not in s.pages and page not in s.damaged)
    yield from _of_pages(s, "memory", strangers, "has a memory, and is not known", lambda page: ("HDEL", "@memory", page))


def _check_aliases(partition: int, aliases: dict[bytes, tuple[int, bytes]], known: list[set[bytes]]) -> Iterator[Finding]:
    for name, (at, page) in aliases.items():
        where, remove = f"alias {name.hex()}", (("HDEL", "@aliases", name),)
        if name in known[partition]:
            yield Finding(partition, "aliases", where, "is a page as well", remove)
        elif not (at < len(known) and page in known[at]):
            yield Finding(partition, "aliases", where, f"leads to {page.hex()}, which is not known", remove)


def _repair(namespace: Namespace, partition: int, names: set[tuple[int, str, str]]) -> list[Finding]:
    """Repair what a last look finds again, in one transaction that fails if anything was handed out, observed or added since that look."""
    key = {"@stats": namespace.key("stats", partition), "@d": namespace.key("d", partition)}
    with translated(namespace.connection.spec), namespace.connection.client_of(namespace.prefix(partition)).pipeline() as pipe:
        pipe.watch(*key.values())
        _, found = _look(namespace)
        of_here = (finding for finding in found if finding.partition == partition and _name(finding) in names)
        todo = [finding for finding in of_here if finding.repair][:MOST_REPAIRS]
        pipe.multi()
        for finding in todo:
            for command in finding.repair:
                pipe.execute_command(*(_full(namespace, partition, word) for word in command))
        try:
            pipe.execute()
        except WatchError:
            return []
    return todo


def _full(namespace: Namespace, partition: int, word: Any) -> Any:
    return namespace.key(word[1:], partition) if isinstance(word, str) and word.startswith("@") else word
