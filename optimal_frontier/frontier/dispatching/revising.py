"""What is done to stored pages from outside of their visits: they are wanted now, changed, forgotten; a held host gets its pages back."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from optimal_frontier.frontier.admitting.revival import due_at, forced
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.gone import HELD_FAILURES
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES, NewPage, page_of
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import HEAVY_BATCH, count_calls, revise_calls
from optimal_frontier.state.put_aside import keep_aside
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, RETIRED, Row

#: Other names of a page that are followed, one to the next.
_MOST_HOPS: Final = 32
#: What becomes of a page that is revised.
DONE_NOW, WAITING, IN_FLIGHT, ONCE_ONLY = "done", "waiting for their first visit", "in flight", "fetched once"
UNKNOWN, UNREADABLE = "not known", "unreadable"
#: Answer of `revise`: the page is under way, or waits for its first visit.
_HELD: Final = 2
#: Times that pages are read again which were visited meanwhile.
_MOST_TURNS: Final = 5
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


def _by_partition(names: Iterable[bytes]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for partition, page in map(split_alias, names):
        found.setdefault(partition, []).append(page)
    return found


def point(namespace: Namespace, names: Iterable[bytes], to: tuple[int, bytes]) -> None:
    """Make former names of a page, packed by `pack_alias`, point to where it is now: a partition, and its identity there.

    Until then they point to a name that does (`follow`), so a crash before it loses nothing. A name that becomes a page of its own in that
    very moment stays a name beside it; `locate` finds the page.
    """
    for partition, pages in _by_partition(names).items():
        key, now = namespace.key("aliases", partition), pack_alias(*to)
        said = namespace.command("HMGET", key, *pages, partition=partition)
        words = [word for page, one in zip(pages, said, strict=True) if one is not None for word in (page, now + one[len(now) :])]
        if words:
            namespace.command("HSET", key, *words, partition=partition)


def drop_aliases(namespace: Namespace, names: Iterable[bytes]) -> None:
    """Forget former names of a page, packed by `pack_alias`: a link to one of them makes a page of it again."""
    for partition, pages in _by_partition(names).items():
        namespace.command("HDEL", namespace.key("aliases", partition), *pages, partition=partition)


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
    """Return where pages are, by fingerprints of the pages (or their 12 bytes) or of any of their former names.

    A fingerprint does not say the host, so each partition is asked: two commands each, in one round trip for all fingerprints.
    """
    pages = [page_of(fingerprint) for fingerprint in fingerprints]
    found: list[Place | None] = [None] * len(pages)
    for partition in range(namespace.partitions):
        todo = [at for at, place in enumerate(found) if place is None]
        if not todo:
            break
        rows = [["HMGET", namespace.key(name, partition), *(pages[at] for at in todo)] for name in ("pages", "aliases")]
        for at, value, alias in zip(todo, *namespace.commands(rows, partition=partition), strict=True):
            if value is not None:
                found[at] = Place(partition, pages[at], value)
            elif alias is not None:
                found[at] = follow(namespace, *split_alias(alias))
    return found


def forget(namespace: Namespace, fingerprints: Iterable[bytes]) -> int:
    """Forget pages by fingerprints of any of their names; return how many were known."""
    pages: dict[int, list[bytes]] = {}
    for place in locate(namespace, fingerprints):
        if place is not None:
            pages.setdefault(place.partition, []).append(place.page)
    return sum(forget_pages(namespace, partition, some) for partition, some in pages.items())


def forget_pages(namespace: Namespace, partition: int, pages: Sequence[bytes], reasons: Mapping[bytes, str] | None = None) -> int:
    """Forget pages of a partition: estimate, history, place in the queues, lease, and all of their names; return how many were known.

    What cannot be read is forgotten all the same; names that a page had are left then, where its memory is what cannot be read. Pages that
    have a reason are put aside: see `state.put_aside`.
    """
    if not pages:
        return 0
    memories: list[Memory] = []
    counters: Counter[str] = Counter()
    values, raws = namespace.commands(
        [["HMGET", namespace.key(name, partition), *pages] for name in ("pages", "memory")], partition=partition
    )
    for value, raw in zip(values, raws, strict=True):
        with contextlib.suppress(ValueError):
            memories.append(Memory.unpack(raw))
            lost = memories[-1].lost
            if value is not None and lost is not None:
                counters[f"lost_{lost.cause}"] -= 1
    drop_aliases(namespace, [name for memory in memories for name in memory.aliases if split_alias(name)[0] < namespace.partitions])
    why = reasons or {}
    aside = {page: (why[page], value) for page, value in zip(pages, values, strict=True) if page in why and value is not None}
    keep_aside(namespace, partition, aside)
    calls = [Call(partition, "forget", pages[at : at + HEAVY_BATCH]) for at in range(0, len(pages), HEAVY_BATCH)]
    calls += count_calls(partition, counters)
    return sum(map(sum, namespace.run(calls)[: -(-len(pages) // HEAVY_BATCH)]))


def force(namespace: Namespace, fingerprints: Iterable[bytes]) -> list[int]:
    """Make pages due now, see `forced`.

    Returns
    -------
    list of int
        Per fingerprint 1 (due), 2 (under way, waiting for its first visit, fetched once only, or unreadable), 0 (not known).
    """
    return [_force(namespace, place) for place in locate(namespace, fingerprints)]


def force_wanted(namespace: Namespace, pages: Iterable[NewPage]) -> None:
    """Make pages due now that were just added, or known, and are wanted now."""
    for new in pages:
        if new.is_wanted:
            _force(namespace, follow(namespace, namespace.partition_of(new.host), new.page))


def _force(namespace: Namespace, place: Place | None) -> int:
    if place is None:
        return 0
    done = revise_pages(namespace, place.partition, [place.page], lambda _, row: forced_or_why(row))
    return 1 if DONE_NOW in done else 2


def forced_or_why(row: Row) -> Row | str:
    """Return the row of a page that somebody wants now, or why it cannot be had."""
    return forced(row) if row.state in (ACTIVE, RETIRED) or row.b == 0 else ONCE_ONLY


def revise_pages(
    namespace: Namespace, partition: int, pages: Sequence[bytes], change: Callable[[bytes, Row], Row | str]
) -> dict[str, list[bytes]]:
    """Give pages of a partition other heads.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Of the pages.
    pages : sequence of bytes
        Their identities.
    change : callable
        From page and head to the new head, or to a text that says why it stays.

    Returns
    -------
    dict
        Pages by what became of them: `DONE_NOW`, `WAITING`, `IN_FLIGHT`, `UNKNOWN`, `UNREADABLE`, or a text of ``change``.
    """
    told: dict[str, list[bytes]] = {}
    todo = list(dict.fromkeys(pages))
    for _ in range(_MOST_TURNS):
        if not todo:
            break
        revisions: list[tuple[bytes, float, Row, Memory | None]] = []
        values = namespace.command("HMGET", namespace.key("pages", partition), *todo, partition=partition)
        for page, value in zip(todo, values, strict=True):
            if value is None or len(value) < HEAD_BYTES:
                told.setdefault(UNKNOWN if value is None else UNREADABLE, []).append(page)
                continue
            row = Row.unpack(value)
            new = change(page, row)
            if isinstance(new, str):
                told.setdefault(new, []).append(page)
            else:
                revisions.append((page, row.b, new, None))
        answers = [answer for reply in namespace.run(revise_calls(partition, revisions)) for answer in reply]
        # A page that was visited since it was read is read again.
        todo = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == 0]
        held = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == _HELD]
        scores = namespace.command("ZMSCORE", namespace.key("q", partition), *held, partition=partition) if held else []
        for page, score in zip(held, scores, strict=True):
            told.setdefault(WAITING if score is None else IN_FLIGHT, []).append(page)
        done = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == 1]
        if done:
            told.setdefault(DONE_NOW, []).extend(done)
    if todo:
        told.setdefault(IN_FLIGHT, []).extend(todo)
    return told


def bring_back(namespace: Namespace, partition: int, host: int) -> int:
    """Bring back what was retired of a host within the last day, as it is held for mass deletion now; return how many pages."""
    key, now = namespace.key(f"retired:{host}", partition), namespace.now(partition)
    pages = list(dict.fromkeys(namespace.command("LRANGE", key, 0, -1, partition=partition)))
    values = namespace.command("HMGET", namespace.key("pages", partition), *pages, partition=partition) if pages else []
    revisions: list[tuple[bytes, float, Row, Memory | None]] = []
    for page, value in zip(pages, values, strict=True):
        row = Row.unpack(value) if value is not None and len(value) >= HEAD_BYTES else Row(state=0)
        if row.state != RETIRED or row.host != host or now - row.b / 1e6 > LATELY_S:
            continue
        failures = max(row.failures, HELD_FAILURES)
        due = row.b / 1e6 + max(row.min_interval, backoff_s(page, failures))
        revisions.append((page, row.b, due_at(row._replace(state=ACTIVE, failures=failures), due), None))
    back: int = sum(reply.count(1) for reply in namespace.run(revise_calls(partition, revisions, "gone_held=1")))
    namespace.command("DEL", key, partition=partition)
    return back
