"""A callback got another name: the requests that are stored follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from optimal_frontier.frontier.dispatching.held_pages import bring_back_replaced
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import REPLACED, add_calls
from optimal_frontier.state.records import callbacks_of, pack_record, renamed_callback, unpack_record
from optimal_frontier.state.rows import DONE, HEAD_BYTES, TAIL_BYTES, Row, split_tail
from optimal_frontier.state.scanning import BATCH, read_host_names, scan_hash


class Renamed(NamedTuple):
    """How many pages were rewritten, and how many of them were held and are due now."""

    pages: int
    back: int


def stored_callbacks(namespace: Namespace) -> Counter[str]:
    """Return the names of callbacks and errbacks that are stored, and by how many requests each. O(pages)."""
    found: Counter[str] = Counter()
    for k in range(namespace.partitions):
        for *_, record in _records(namespace, k):
            found.update(set(callbacks_of(record)))
    return found


def rename_callback(namespace: Namespace, old: str, new: str) -> Renamed:
    """Rewrite the stored requests that have ``old`` as their callback or errback; those that were held come back.

    O(pages), in chunks of bounded size, also under a running crawl: a page that is being fetched is rewritten when it is back.
    """
    pages = back = 0
    for k in range(namespace.partitions):
        some: list[NewPage] = []
        for page, row, host, record in _records(namespace, k):
            if old in callbacks_of(record):
                some.append(NewPage(page, host, row, 0.0, pack_record(renamed_callback(record, old, new), host)))
            if len(some) == BATCH:
                done = _rewrite(namespace, k, some)
                pages, back, some = pages + done.pages, back + done.back, []
        done = _rewrite(namespace, k, some)
        pages, back = pages + done.pages, back + done.back
    return Renamed(pages, back)


def _records(namespace: Namespace, partition: int) -> Iterator[tuple[bytes, Row, str, dict[Any, Any]]]:
    """Yield page, head, host and record of all that is stored and may be fetched again."""
    hosts = read_host_names(namespace, partition)
    for page, value in scan_hash(namespace, "pages", partition):
        if len(value) < HEAD_BYTES + TAIL_BYTES:
            continue  # `check` says so
        row = Row.unpack(value)
        host = hosts.get(row.host, "")
        if row.state == DONE or not host:
            continue
        try:
            yield page, row, host, unpack_record(split_tail(value)[1], host)
        except ValueError:
            continue


def _rewrite(namespace: Namespace, partition: int, pages: list[NewPage]) -> Renamed:
    if not pages:
        return Renamed(0, 0)
    told = [reply for replies in namespace.run(add_calls(partition, pages)) for reply in replies]
    back = bring_back_replaced(namespace, partition, [page.page for page in pages])
    # Of a page that is in no queue the reply is its value.
    return Renamed(sum(reply == REPLACED or isinstance(reply, bytes) for reply in told), back)
