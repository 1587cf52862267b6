"""All pages of a partition, read in replies of bounded size: heads as one numpy array, and what goes with them where it is asked for.

Nothing is locked: under a running crawl parts are from slightly different moments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.rows import HEAD_BYTES, LAYOUT, TAIL_BYTES

#: Elements that a scan asks for, and commands of one round trip.
BATCH: Final = 1000
#: The number of a host has 32 bits.
_HOST_DIGITS: Final = 10
#: Identity of a page in an array.
PAGE: Final = np.dtype(f"V{PAGE_BYTES}")
#: What is kept of a stored value.
_STORED: Final = np.dtype([("head", LAYOUT), ("stated", "<f4")])


@dataclass(frozen=True)
class StoredPages:
    """The pages of a partition.

    Attributes
    ----------
    partition : int
    pages : ndarray of void, shape (n,)
        Their identities, 12 bytes each, in no order.
    heads : ndarray of `LAYOUT`, shape (n,)
        What judges and plans left.
    stated : ndarray of float, shape (n,)
        Importance that their requests stated; 0: none.
    """

    partition: int
    pages: np.ndarray
    heads: np.ndarray
    stated: np.ndarray

    def chosen(self, which: np.ndarray) -> StoredPages:
        """Return some of the pages: ``which`` is a mask, or their places."""
        return StoredPages(self.partition, self.pages[which], self.heads[which], self.stated[which])


def read_pages(namespace: Namespace, partition: int) -> StoredPages:
    """Read the heads of all pages of a partition. O(pages); 142 bytes a page are kept.

    A stored value that is too short to be a row is left out; `state.checking` finds it.
    """
    # A scan may give a page twice while the hash changes.
    heads: dict[bytes, bytes] = {}
    for page, value in scan_hash(namespace, "pages", partition):
        if len(page) == PAGE_BYTES and len(value) >= HEAD_BYTES + TAIL_BYTES:
            heads[page] = value[: HEAD_BYTES + TAIL_BYTES]
    rows = np.frombuffer(b"".join(heads.values()), _STORED)
    # Copies, so that fields stand together and the joined text goes.
    return StoredPages(partition, np.frombuffer(b"".join(heads), PAGE), rows["head"].copy(), rows["stated"].astype(np.float64))


def read_scores(namespace: Namespace, pages: Sequence[bytes], partition: int) -> list[float | None]:
    """Return where pages stand in the queue ``q``, us; None where they are not in it."""
    scores: list[float | None] = []
    for part in batches(pages):
        replies = namespace.command("ZMSCORE", namespace.key("q", partition), *part, partition=partition)
        scores += [None if score is None else float(score) for score in replies]
    return scores


def read_urls(namespace: Namespace, pages: Sequence[bytes], hosts: Sequence[str], partition: int) -> list[str]:
    """Return the URLs of pages, each on the host of the same place; empty where there is none that can be read."""
    urls = []
    for at in range(0, len(pages), BATCH):
        values = namespace.command("HMGET", namespace.key("pages", partition), *pages[at : at + BATCH], partition=partition)
        for value, host in zip(values, hosts[at : at + BATCH], strict=True):
            urls.append("" if value is None else url_of_record(value[HEAD_BYTES + TAIL_BYTES :], host))
    return urls


def read_host_names(namespace: Namespace, partition: int) -> dict[int, str]:
    """Return the names of a partition's hosts by their numbers."""
    names: dict[int, str] = {}
    for number, name in scan_hash(namespace, "hosts:names", partition):
        if of_host := host_number(number):
            names[of_host] = name.decode("utf-8", "replace")
    return names


def host_number(stored: bytes) -> int:
    """Return the number of a host that is stored as text; 0: it is none.

    Examples
    --------
    >>> host_number(b"12"), host_number(b"-1"), host_number(b"9" * 5000)
    (12, 0, 0)
    """
    number = int(stored) if stored.isdigit() and len(stored) <= _HOST_DIGITS else 0
    return number if number < 2**32 else 0


def batches(values: Sequence[Any], size: int = BATCH) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces."""
    for at in range(0, len(values), size):
        yield values[at : at + size]


def scan_hash(namespace: Namespace, name: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of a hash; one may come twice while it changes."""
    cursor, key = 0, namespace.key(name, partition)
    while True:
        cursor, found = namespace.command("HSCAN", key, cursor, "COUNT", BATCH, partition=partition)
        yield from found.items()
        if not cursor:
            return


def scan_zsets(namespace: Namespace, names: Sequence[str], partition: int) -> Iterator[tuple[int, bytes, float]]:
    """Yield place in ``names``, member and score of the elements of many sorted sets; one may come twice while they change."""
    todo: list[tuple[int, int]] = [(at, 0) for at in range(len(names))]
    while todo:
        part, todo = todo[:BATCH], todo[BATCH:]
        rows = [["ZSCAN", namespace.key(names[at], partition), cursor, "COUNT", BATCH] for at, cursor in part]
        for (at, _), (cursor, found) in zip(part, namespace.commands(rows, partition=partition), strict=True):
            for member, score in found:
                yield at, member, float(score)
            if cursor:
                todo.append((at, cursor))
