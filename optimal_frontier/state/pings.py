"""The stream of pings: other programs add entries, a crawler reads them, takes them in, and removes them.

Nothing is removed before it is taken in, so a process that is killed in between loses none; what it had taken in already is no news the
second time, as the time of an entry is that of the change. One process at a time takes entries, by the lock of `url_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from optimal_frontier.state.namespace import Namespace

#: The stream, a key of the first partition.
KEY: Final = "pings"
#: Entries that `write_pings` leaves in the stream, about; the oldest ones go first.
MOST_WAITING: Final = 100_000


class RawPing(NamedTuple):
    """An entry as it is kept: its number in the stream (``milliseconds-n``), and its fields."""

    number: bytes
    fields: Mapping[bytes, bytes]

    @property
    def at(self) -> float:
        """When it was added, by the server's clock, seconds since the epoch."""
        return int(self.number.partition(b"-")[0]) / 1e3


def write_pings(namespace: Namespace, urls: Sequence[str], source: str | None = None) -> int:
    """Add pings to the stream; return how many."""
    named = [] if source is None else ["source", source]
    rows: list[list[Any]] = [["XADD", namespace.key(KEY), "MAXLEN", "~", MOST_WAITING, "*", "url", url, *named] for url in urls]
    return len(namespace.commands(rows)) if rows else 0


def read_pings(namespace: Namespace, n: int) -> list[RawPing]:
    """Return the ``n`` oldest pings; they stay where they are."""
    found = namespace.command("XRANGE", namespace.key(KEY), "-", "+", "COUNT", n)
    return [RawPing(number, _fields(fields)) for number, fields in found]


def remove_pings(namespace: Namespace, numbers: Sequence[bytes], counters: Mapping[str, int]) -> None:
    """Remove pings, and count what became of them."""
    rows: list[list[Any]] = [["HINCRBY", namespace.key("stats"), name, by] for name, by in counters.items() if by]
    if numbers:
        rows.append(["XDEL", namespace.key(KEY), *numbers])
    if rows:
        namespace.commands(rows)


def _fields(fields: Any) -> dict[bytes, bytes]:
    if isinstance(fields, dict):
        return fields
    flat = fields or []
    return dict(zip(flat[::2], flat[1::2], strict=True))
