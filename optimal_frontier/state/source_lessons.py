"""Records of sources of signals, and lessons: what visits teach of a source, as something that crawlers can add to its record in any order.

`estimation.signal_sources` makes a record from a record: two crawlers that do so at once would lose one of two visits. A lesson is what is
added, and by how much the rest fades. Lessons of a process are joined, and added by the server.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

#: Begins the name of a source that pings; and the name of one of which nothing but a hand is known.
PING: Final = "ping "
BY_HAND: Final = "ping"

#: A record: the numbers of `estimation.signal_sources.SignalSource` in a row, sums first and then logarithms of likelihoods.
Record = tuple[float, ...]
NUMBERS: Final = 16
NOTHING_KNOWN: Final[Record] = (0.0,) * NUMBERS
_RECORD: Final = struct.Struct(f"<{NUMBERS}d")
_LESSON: Final = struct.Struct(f"<{NUMBERS + 1}d")


class Lesson(NamedTuple):
    """What visits teach of a source.

    Attributes
    ----------
    keep : float
        What is left of each number of its record.
    sums : tuple of `NUMBERS` floats
        What is added to that.
    """

    keep: float
    sums: Record

    def then(self, later: Lesson) -> Lesson:
        """Return both lessons as one.

        Examples
        --------
        >>> Lesson(0.5, (4.0,)).then(Lesson(0.5, (1.0,)))
        Lesson(keep=0.25, sums=(3.0,))
        """
        sums = (one * later.keep + more for one, more in zip(self.sums, later.sums, strict=True))
        return Lesson(self.keep * later.keep, tuple(sums))

    def pack(self) -> bytes:
        """Return the lesson as the script `add_to_sources` takes it."""
        return _LESSON.pack(self.keep, *self.sums)


def is_ping(source: str) -> bool:
    """Tell whether it is by pings that a source tells, by its name."""
    return source == BY_HAND or source.startswith(PING)


def pack_record(known: Record) -> bytes:
    """Return a record as it is stored."""
    return _RECORD.pack(*known)


def read_record(raw: bytes | None) -> Record:
    """Read what is stored; None, and what is no record: nothing is known."""
    return NOTHING_KNOWN if raw is None or len(raw) != _RECORD.size else record_of(_RECORD.unpack(raw))


def record_of(numbers: Iterable[float]) -> Record:
    """Return the record of so many numbers, as an export has them; of anything else nothing is known."""
    values = tuple(float(number) for number in numbers)
    return values if len(values) == NUMBERS and all(map(math.isfinite, values)) else NOTHING_KNOWN
