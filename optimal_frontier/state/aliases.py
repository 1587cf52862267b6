"""Names of pages: where a page is now, by its present name or by any former one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from optimal_frontier.state.messages import PAGE_BYTES, page_of
from optimal_frontier.state.namespace import Namespace

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


def follow_all(namespace: Namespace, partition: int, pages: Sequence[bytes]) -> list[Place | None]:
    """Return where pages of a partition are now, as `follow` does: in one round trip, but for those that have other names."""
    found: list[Place | None] = []
    rows = [["HMGET", namespace.key(name, partition), *pages] for name in ("pages", "aliases")]
    for page, value, alias in zip(pages, *namespace.commands(rows, partition=partition), strict=True) if pages else ():
        if value is not None:
            found.append(Place(partition, page, value))
        else:
            found.append(None if alias is None else follow(namespace, *split_alias(alias)))
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
        for at, place in zip(todo, follow_all(namespace, partition, [pages[at] for at in todo]), strict=True):
            found[at] = place
    return found
