"""Pages that were put aside: forgotten, as what is stored of them is damaged, with what it was kept for whoever looks into it.

`check` names them, `check --repair` mends them: a page whose URL can still be read is added anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import count_calls
from optimal_frontier.state.scanning import scan_hash

#: Counter of pages that are put aside now.
COUNTER: Final = "set_aside"
#: Pages that are kept in a partition, and most bytes of one.
MOST_PUT_ASIDE: Final = 10_000
MOST_BYTES: Final = 65_536
#: Most characters of a reason.
MOST_REASON: Final = 200


class PutAside(NamedTuple):
    """One page: its partition and identity, why it was put aside, and its stored value (head and tail)."""

    partition: int
    page: bytes
    reason: str
    value: bytes


def reason_text(reason: str) -> str:
    """Return a reason as it is stored: one line without the byte that ends it.

    Examples
    --------
    >>> reason_text("no\\x00 good\\n"), reason_text("")
    ('no good', 'damaged')
    """
    return " ".join(reason.replace("\0", " ").split())[:MOST_REASON] or "damaged"


def keep_aside(namespace: Namespace, partition: int, pages: Mapping[bytes, tuple[str, bytes]]) -> None:
    """Keep the stored values of pages that are about to be forgotten, and why, while there is room."""
    key = namespace.key("damaged", partition)
    room = MOST_PUT_ASIDE - namespace.command("HLEN", key, partition=partition) if pages else 0
    kept = [
        word
        for page, (reason, value) in list(pages.items())[: max(0, room)]
        for word in (page, reason_text(reason).encode("utf-8", "replace") + b"\0" + value[:MOST_BYTES])
    ]
    if kept:
        namespace.run(count_calls(partition, {COUNTER: namespace.command("HSET", key, *kept, partition=partition)}))


def read_put_aside(namespace: Namespace, partition: int) -> Iterator[PutAside]:
    """Yield what was put aside in a partition."""
    for page, raw in dict(scan_hash(namespace, "damaged", partition)).items():
        reason, _, value = raw.partition(b"\0")
        yield PutAside(partition, page, reason.decode("utf-8", "replace"), value)
