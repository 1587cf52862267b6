"""What the last responses of a page left for its next fetch: one msgpack map per page, read at dispatch, replaced by an observation.

A field that has its default is not stored; one that an other version wrote is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import msgpack


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a page between two fetches.

    Attributes
    ----------
    etag, last_modified : bytes
        Validators of the last response that was judged, as the server sent them; empty where it sent none.
    size : int
        Bytes of the last full body, as it came; 0 where there are no validators.
    misses : int
        Full answers in a row to requests with the ETag, of content that had not changed.
    unchecked : int
        304s since the last full answer.
    unseen : float
        Seconds from the last full answer to the last 304.
    check : bool
        The next fetch is to bring a full answer, to check the last 304.
    entries : bytes
        Of a page that is a source: what its entries were, 8 bytes each; see `detection.announcements`.
    lies : int
        304s of the page that were found to be lies since it last told a change.
    noise : bytes
        Of a page that changed on each of its last visits: what is known of its sections; see `frontier.noisy_pages`.
    """

    etag: bytes = b""
    last_modified: bytes = b""
    size: int = 0
    misses: int = 0
    unchecked: int = 0
    unseen: float = 0.0
    check: bool = False
    lies: int = 0
    entries: bytes = b""
    noise: bytes = b""

    @classmethod
    def unpack(cls, raw: bytes | None) -> Memory:
        """Read what is stored; None: nothing is.

        Examples
        --------
        >>> Memory.unpack(Memory(etag=b'"1"').pack()).etag
        b'"1"'
        """
        if not raw:
            return NOTHING_REMEMBERED
        stored = msgpack.unpackb(raw, strict_map_key=False)
        return cls(**{name: stored[name] for name in _NAMES if name in stored})

    def pack(self) -> bytes:
        """Return what is stored; nothing where there is nothing to remember."""
        kept = {name: value for name in _NAMES if (value := getattr(self, name)) != getattr(NOTHING_REMEMBERED, name)}
        return bytes(msgpack.packb(kept)) if kept else b""


_NAMES: Final = tuple(field.name for field in fields(Memory))
NOTHING_REMEMBERED: Final = Memory()
