"""Names of pages: where a page is now, by its present name or by any former one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from optimal_frontier.state.messages import PAGE_BYTES, page_of
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.steps import Steps

#: Other names of a page that are followed, one to the next.
_MOST_HOPS: Final = 32
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


def point(names: Iterable[bytes], to: tuple[int, bytes]) -> Steps[None]:
    """Make former names of a page, packed by `pack_alias`, point to where it is now: a partition, and its identity there.

    Until then they point to a name that does (`follow_all`), so a crash before it loses nothing. A name that becomes a page of its own in
    that very moment stays a name beside it; `locate` finds the page.
    """
    groups, now = _by_partition(names), pack_alias(*to)
    if not groups:
        return
    said = yield [Call(partition, "HMGET", ["aliases", *pages]) for partition, pages in groups.items()]
    pointed = [
        Call(partition, "HSET", ["aliases", *(word for page, one in known for word in (page, now + one[len(now) :]))])
        for (partition, pages), reply in zip(groups.items(), said, strict=True)
        if (known := [(page, one) for page, one in zip(pages, reply, strict=True) if one is not None])
    ]
    if pointed:
        yield pointed


def drop_calls(names: Iterable[bytes]) -> list[Call]:
    """Return the calls that forget former names of a page, packed by `pack_alias`: a link to one of them makes a page of it again."""
    return [Call(partition, "HDEL", ["aliases", *pages]) for partition, pages in _by_partition(names).items()]


def follow_all(namespace: Namespace, names: Sequence[tuple[int, bytes]]) -> list[Place | None]:
    """Return where pages are now, each by a partition and a name that it has or had there; None: it is not known.

    One round trip for those of all partitions, and another one where names lead to other names.
    """
    found: list[Place | None] = [None] * len(names)
    todo = dict(enumerate(names))
    for _ in range(_MOST_HOPS):
        groups: dict[int, list[int]] = {}
        for at, (partition, _page) in todo.items():
            groups.setdefault(partition, []).append(at)
        read = [Call(k, "HMGET", [key, *(todo[at][1] for at in some)]) for k, some in groups.items() for key in ("pages", "aliases")]
        replies = iter(namespace.run(read))
        aliases: dict[int, tuple[int, bytes]] = {}
        for some in groups.values():
            for at, value, alias in zip(some, next(replies), next(replies), strict=True):
                if value is not None:
                    found[at] = Place(*todo[at], value)
                elif alias is not None:
                    aliases[at] = split_alias(alias)
        todo = aliases
        if not todo:
            break
    return found


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
        for at, place in zip(todo, follow_all(namespace, [(partition, pages[at]) for at in todo]), strict=True):
            found[at] = place
    return found
