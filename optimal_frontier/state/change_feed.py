"""The change feed, read: which pages changed, when, and from what to what."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optimal_frontier.state.namespace import Namespace

#: Where the feed of each partition was read up to: the identifier of an entry of its stream.
Places = list[str]


@dataclass(frozen=True)
class FeedEntry:
    """One page that changed.

    Attributes
    ----------
    id : str
        Of the entry in the stream of its partition.
    partition : int
    time : float
        When the response came, seconds since the epoch.
    page : str
        Its identity, 24 hexadecimal digits.
    url : str
    previous, fingerprint : str
        Of the content before and now, 32 hexadecimal digits each.
    """

    id: str
    partition: int
    time: float
    page: str
    url: str
    previous: str
    fingerprint: str


def last_changes(namespace: Namespace, limit: int) -> list[FeedEntry]:
    """Return the last entries of all partitions, up to ``limit``, oldest first."""
    if limit <= 0:
        return []
    found = []
    for k in range(namespace.partitions):
        rows = namespace.command("XREVRANGE", namespace.key("changes", k), "+", "-", "COUNT", limit, partition=k)
        found += _entries(k, rows)
    return sorted(found, key=_order)[-limit:]


def changes_after(namespace: Namespace, places: Places, limit: int = 1000) -> list[FeedEntry]:
    """Return entries that follow, up to ``limit`` of each partition, oldest first, and move ``places`` on to the last of each."""
    found, ends = [], list(places)
    for k in range(namespace.partitions):
        rows = namespace.command("XRANGE", namespace.key("changes", k), f"({places[k]}", "+", "COUNT", limit, partition=k)
        if rows:
            found += _entries(k, rows)
            ends[k] = rows[-1][0].decode()
    places[:] = ends  # all or none: one partition that cannot be reached loses no entry of the others
    return sorted(found, key=_order)


def feed_ends(namespace: Namespace) -> Places:
    """Return where the feeds end now."""
    ends = []
    for k in range(namespace.partitions):
        last = namespace.command("XREVRANGE", namespace.key("changes", k), "+", "-", "COUNT", 1, partition=k)
        ends.append(last[0][0].decode() if last else "0-0")
    return ends


def _order(entry: FeedEntry) -> tuple[int, int, int]:
    millis, _, number = entry.id.partition("-")
    return int(millis), int(number), entry.partition


def _entries(partition: int, rows: Any) -> list[FeedEntry]:
    """Read entries; those that somebody else has written, or that are damaged, are passed over."""
    found = []
    for row in rows:
        with contextlib.suppress(KeyError, ValueError):
            found.append(_entry(partition, *row))
    return found


def _entry(partition: int, entry_id: bytes, fields: Any) -> FeedEntry:
    said = fields if isinstance(fields, dict) else _pairs(fields)
    texts = [said.get(name, b"").decode("utf-8", "replace") for name in (b"url", b"previous", b"fingerprint")]
    return FeedEntry(entry_id.decode(), partition, float(said[b"time"]), said[b"page"].hex(), *texts)


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
