"""The stream ``visited``: visits that gave a bit, as they were counted, for whoever learns from many pages together.

One entry holds the visits of one call of `observe`, packed one after the other. What is said of a page is what was known before the visit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from optimal_frontier.state.messages import PAGE_BYTES, Observation
from optimal_frontier.state.rows import SIGNALLED, UNCONDITIONAL

#: Bits of `VISIT.flags`: the page had changed; nothing but its own deadline chose when it was visited.
CHANGED: Final = 1
SAMPLED: Final = 2
#: Entries that the stream keeps, about.
KEPT_ENTRIES: Final = 4000
#: A visit, as Redis keeps it: number of its lease in the call, page, the last good visit before and this one (us since the epoch), shape
#: and time (s) of the posterior before it (0: no bit yet), host, directory and pattern as in its row, flags.
VISIT: Final = np.dtype(
    [("lease", "<u2"), ("page", f"V{PAGE_BYTES}"), ("since", "<f8"), ("until", "<f8"), ("shape", "<f4"), ("time", "<f4")]
    + [(name, "<u4") for name in ("host", "directory", "pattern")]
    + [("flags", "u1")]
)
_VISIT: Final = struct.Struct(f"<H{PAGE_BYTES}sddffIIIB")


def pack_visits(observations: Sequence[Observation]) -> bytes:
    """Return the visits of one call of `observe` that gave a bit, as it takes them. About 1 us each."""
    return b"".join(
        _VISIT.pack(
            lease,
            seen.handout.page,
            (before := seen.handout.row).b - before.unseen * 1e6,
            seen.row.b,
            before.shape,
            before.time,
            seen.row.host,
            seen.row.directory,
            seen.row.pattern,
            seen.bit * CHANGED + (SAMPLED if before.l > 0 and not before.flags & (SIGNALLED | UNCONDITIONAL) else 0),
        )
        for lease, seen in enumerate(observations, 1)
        if seen.bit >= 0
    )
