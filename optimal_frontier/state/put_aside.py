"""Pages that were put aside: forgotten, as what is stored of them is damaged, with what it was kept for whoever looks into it.

`check` names them, `check --repair` mends them: a page whose URL can still be read is added anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.scanning import scan_hash

#: Counter of pages that are put aside now.
COUNTER: Final = "set_aside"
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


def read_put_aside(namespace: Namespace, partition: int) -> Iterator[PutAside]:
    """Yield what was put aside in a partition."""
    for page, raw in dict(scan_hash(namespace, "damaged", partition)).items():
        reason, _, value = raw.partition(b"\0")
        yield PutAside(partition, page, reason.decode("utf-8", "replace"), value)
