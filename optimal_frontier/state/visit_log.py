"""The stream ``visited``: visits that gave a bit, as they were counted, for whoever learns from many pages together.

One entry holds the visits of one call of `observe`, packed one after the other. Of a page it says what was known before the visit, for
those who learn from it, and the numbers and the posterior that the visit left, so that nobody needs to read the row again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.state.memory import Birth
from optimal_frontier.state.messages import PAGE_BYTES, Observation
from optimal_frontier.state.rows import ACTIVE, KEPT_BITS, SIGNALLED, UNCONDITIONAL, Row

#: Bits of `VISIT.flags`: the page had changed; nothing but its own deadline chose when it was visited; it is active, and did not fail.
CHANGED: Final = 1
SAMPLED: Final = 2
WELL: Final = 4
#: Of a page that appeared: its first look; the one that makes it twice as old as it was then, where it changed in the first half of its
#: life and not in the second, or in the second alone. See `judging.young`.
FIRST_LOOK: Final = 8
CEASED: Final = 16
BEGUN: Final = 32
#: Entries that the stream keeps, about.
KEPT_ENTRIES: Final = 4000
#: A visit, as Redis keeps it: number of its lease in the call, page, the last good visit before and this one (us since the epoch), shape
#: and time (s) of the posterior before it (0: no bit yet), host, directory and pattern as in its row, flags; numbers, posterior and flags
#: of the row after it.
VISIT: Final = np.dtype(
    [("lease", "<u2"), ("page", f"V{PAGE_BYTES}"), ("since", "<f8"), ("until", "<f8"), ("shape", "<f4"), ("time", "<f4")]
    + [(name, "<u4") for name in ("host", "directory", "pattern")]
    + [("flags", "u1")]
    + [(name, "<f4") for name in ("a", "s", "e", "l", "new_shape", "new_time")]
    + [("row_flags", "u1")]
)
_VISIT: Final = struct.Struct(f"<H{PAGE_BYTES}sddffIIIBffffffB")
#: Seconds by which a visit may lie in the future.
_AHEAD_S: Final = 60.0


def pack_visits(observations: Sequence[Observation]) -> bytes:
    """Return the visits of one call of `observe` that gave a bit, as it takes them. About 1 us each."""
    return b"".join(
        _VISIT.pack(
            lease,
            seen.handout.page,
            (before := seen.handout.row).b - before.unseen * 1e6,
            (row := seen.row).b,
            before.shape,
            before.time,
            row.host,
            row.directory,
            row.pattern,
            seen.bit * CHANGED
            + (SAMPLED if before.l > 0 and not before.flags & (SIGNALLED | UNCONDITIONAL) else 0)
            + (WELL if row.state == ACTIVE and not row.failures else 0)
            + (0 if (birth := seen.handout.memory.birth) is None else _look(birth, before, row, seen.bit)),
            row.a,
            row.s,
            row.e,
            row.l,
            row.shape,
            row.time,
            row.flags,
        )
        for lease, seen in enumerate(observations, 1)
        if seen.bit >= 0
    )


def _look(birth: Birth, before: Row, row: Row, bit: int) -> int:
    """Return what a visit says of the youth of a page that appeared, as flags."""
    if before.visits == 1:
        return FIRST_LOOK
    ages = before.b / 1e6 - before.unseen - birth.at, row.b / 1e6 - birth.at
    told = before.observations
    if not (birth.looked and ages[0] < 2.0 * (birth.looked - birth.at) <= ages[1] and told == before.visits - 1 <= KEPT_BITS):
        return 0
    first, later = before.bits >> told - 1 & 1, bit or before.bits & (1 << told - 1) - 1
    return 0 if bool(first) == bool(later) else CEASED if first else BEGUN


def sound_visits(packed: Sequence[bytes], now: float) -> NDArray[Any]:
    """Return the visits of some entries, an array of `VISIT`, without what nobody who counts visits can have written.

    Parameters
    ----------
    packed : sequence of bytes
        Entries; those that are no visits are passed over.
    now : float
        Server's time, seconds since the epoch.
    """
    visits = np.frombuffer(b"".join(one for one in packed if len(one) % VISIT.itemsize == 0), VISIT)
    times = (visits["until"] > 0) & (visits["until"] <= (now + _AHEAD_S) * 1e6) & (visits["since"] <= visits["until"])
    beliefs = [(visits[name] >= 0) & (visits[name] < np.inf) for name in ("shape", "time", "new_shape", "new_time")]
    numbers = ~np.isnan(visits["a"]) & np.isfinite(visits["s"]) & (visits["e"] >= 0) & (visits["l"] >= visits["e"])
    sound = times & numbers & np.logical_and.reduce(beliefs)
    return visits if sound.all() else visits[sound]
