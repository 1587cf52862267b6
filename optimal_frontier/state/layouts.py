"""Values of a partition that are packed doubles: its state ``d``, and the turns of its hosts in ``opens``.

Scripts get these layouts from here by way of `scripts.py`, docs/redis.md by way of its renderer. A value that an earlier build of this
schema wrote is shorter: what it lacks is 0.
"""

from __future__ import annotations

import math
import struct
from typing import Final, NamedTuple, TypeGuard

#: Name and meaning of each double of ``d``.
STATE_FIELDS: Final = (
    ("at", "time of the last call for fetches, microseconds since the epoch; 0: there was none yet"),
    ("tokens", "fetches that the budget allows now; below 0: it is overdrawn"),
    ("discovery", "fetches that first visits have saved up while pages were due, or their hosts were shut"),
    ("log_price", "logarithm of what a visit has to be worth now"),
    ("step", "by which a visit moves it"),
    ("plan", "number of the last plan"),
    ("forgotten", "pages forgotten so far"),
    ("run", "of the namespace, as the last crawler had it that had just read it; 0: none has"),
    ("dispatches", "calls of crawlers so far"),
    ("clock", "what the own clock of the server said at that call; 0: that is not known"),
)
#: The same of a value of ``opens``.
TURN_FIELDS: Final = (
    ("free", "when the host is free, microseconds since the epoch"),
    ("turn", "its last turn that is taken, in the same unit; one that is not after `free` says nothing"),
    ("awaited", "until when the start of a fetch is awaited; 0: none is"),
)
#: Seconds by which the server's clock may jump between two calls and is believed; for which it is remembered how far it was off.
BELIEVED_S: Final = 3
REMEMBERED_S: Final = 60
#: How many doubles a whole value has: those of earlier builds, one of this.
_OF_STATE: Final = (7, 9, len(STATE_FIELDS))
_OF_TURNS: Final = (2, len(TURN_FIELDS))
#: Bytes that a value of an earlier build lacks at most.
LACKING_BYTES: Final = 8 * max(_OF_STATE[-1] - _OF_STATE[0], _OF_TURNS[-1] - _OF_TURNS[0])


class PartitionState(NamedTuple):
    """The string ``d``: what a partition keeps of itself, at first; `STATE_FIELDS` say what the fields mean."""

    at: float = 0.0
    tokens: float = 1.0
    discovery: float = 0.0
    log_price: float = 0.0
    step: float = 0.001
    plan: float = 0.0
    forgotten: float = 0.0
    run: float = 0.0
    dispatches: float = 0.0
    clock: float = 0.0

    @classmethod
    def stored(cls, value: bytes | None) -> PartitionState | None:
        """Read what is stored; None where nothing is, or something else."""
        doubles = _unpacked(value, _OF_STATE)
        return None if doubles is None else cls(*doubles)

    def now(self, clock: float) -> float:
        """Return the time when the server's clock says ``clock`` (us), to somebody who knows no better; as scripts do."""
        if not is_sound(self):
            return clock
        since = clock - self.clock
        is_near = clock > self.at and 0 <= since < REMEMBERED_S * 1e6
        is_ahead = is_near and clock - self.at - since > BELIEVED_S * 1e6
        return max(self.at + since if is_ahead else clock, self.at)


class HostTurns(NamedTuple):
    """A value of ``opens``: when requests to a host may begin; `TURN_FIELDS` say what the fields mean."""

    free: float = 0.0
    turn: float = 0.0
    awaited: float = 0.0

    @classmethod
    def stored(cls, value: bytes | None) -> HostTurns | None:
        """Read what is stored; None where nothing is, or something else."""
        doubles = _unpacked(value, _OF_TURNS)
        return None if doubles is None else cls(*doubles)


def pack_doubles(value: PartitionState | HostTurns) -> bytes:
    """Return a value as it is stored."""
    return struct.pack(f"<{len(value)}d", *value)


def is_sound(value: PartitionState | HostTurns | None) -> TypeGuard[PartitionState | HostTurns]:
    """Tell whether a value was stored, and all of its numbers are finite."""
    return value is not None and all(map(math.isfinite, value))


def _unpacked(value: bytes | None, counts: tuple[int, ...]) -> tuple[float, ...] | None:
    """Return the doubles of a value that has as many as it may have, with 0 for those that it lacks."""
    if value is None or len(value) not in [8 * count for count in counts]:
        return None
    return struct.unpack(f"<{counts[-1]}d", value.ljust(8 * counts[-1], b"\0"))


if PartitionState._fields != tuple(name for name, _ in STATE_FIELDS) or HostTurns._fields != tuple(name for name, _ in TURN_FIELDS):
    raise AssertionError("fields of a layout are not those that are described")
