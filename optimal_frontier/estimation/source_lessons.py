"""What one visit teaches of a source of signals, as something that crawlers can add to its record in any order.

`SignalSource.after` makes a record from a record: two crawlers that do so at once lose one of two visits. A lesson is what it adds, and by
how much it makes the rest fade. Lessons of a process are joined, and added by the server.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from optimal_frontier.estimation.signal_sources import KINDS, MEMORY, PLAIN, Kind, SignalSource, SignalVisit

#: Begins the name of a source that pings; the name of one of which nothing but a hand is known.
PING: Final = "ping "
BY_HAND: Final = "ping"
#: Who pings by hand means it, and says nothing by being silent.
_BY_HAND: Final = Kind(0.1, 0.005, 4.0, 0.0)
_RECORD: Final = struct.Struct("<6d")
_LESSON: Final = struct.Struct("<7d")
NOTHING_KNOWN: Final = SignalSource()


class Worth(NamedTuple):
    """What a source is worth for a page: the share of its changes that it tells of, and signals per second that no change caused."""

    recall: float
    false_rate: float

    def precision(self, change_rate: float) -> float:
        """Return the probability that a signal is true, for a page of this change rate (1/s)."""
        told = self.recall * change_rate
        return told / (told + self.false_rate) if told > 0.0 else 0.0


class Lesson(NamedTuple):
    """What visits teach of a source.

    Attributes
    ----------
    keep : float
        What is left of what was known before.
    sums : SignalSource
        What is added to that.
    """

    keep: float
    sums: SignalSource

    def then(self, later: Lesson) -> Lesson:
        """Return both lessons as one."""
        sums = (one * later.keep + more for one, more in zip(self.sums, later.sums, strict=True))
        return Lesson(self.keep * later.keep, SignalSource(*sums))

    def pack(self) -> bytes:
        """Return the lesson as the script `add_to_sources` takes it."""
        return _LESSON.pack(self.keep, *self.sums)


def is_ping(source: str) -> bool:
    """Tell whether it is by pings that a source tells, by its name."""
    return source == BY_HAND or source.startswith(PING)


def kind_of(source: str) -> Kind:
    """Return what is assumed of a source, by its name.

    Examples
    --------
    >>> kind_of("example.org sitemap") == KINDS["sitemap"], kind_of("ping shop") == KINDS["ping"], kind_of("ping").recall
    (True, True, 0.1)
    """
    if source == BY_HAND:
        return _BY_HAND
    return KINDS["ping"] if source.startswith(PING) else KINDS.get(source.rpartition(" ")[2], PLAIN)


def worth_of(source: str, known: SignalSource, change_rate: float) -> Worth:
    """Return what a source is worth for a page of a change rate (1/s, > 0), by its name and its record."""
    kind = kind_of(source)
    return Worth(known.recall(kind), known.false_rate(change_rate, kind))


def lesson_of(source: str, known: SignalSource, visit: SignalVisit) -> Lesson:
    """Return what a visit teaches of a source of which so much is known.

    Examples
    --------
    >>> visit = SignalVisit(10.0, 1, True, 0.1)
    >>> keep, sums = lesson_of("h feed", SignalSource(told=50.0), visit)
    >>> round(keep, 3), round(sums.told, 6), sums.time
    (0.998, 1.0, 10.0)
    """
    after = known.after(visit, kind_of(source))
    keep = 1.0 - 1.0 / MEMORY if visit.changed or visit.signals else 1.0
    return Lesson(keep, SignalSource(*(max(now - keep * before, 0.0) for now, before in zip(after, known, strict=True))))


def pack_record(known: SignalSource) -> bytes:
    """Return a record as it is stored."""
    return _RECORD.pack(*known)


def read_record(raw: bytes | None) -> SignalSource:
    """Read what is stored; None, and what is no record: nothing is known."""
    return NOTHING_KNOWN if raw is None or len(raw) != _RECORD.size else record_of(_RECORD.unpack(raw))


def record_of(numbers: Iterable[float]) -> SignalSource:
    """Return the record of six numbers, as an export has them; of anything else nothing is known."""
    values = [float(number) for number in numbers]
    is_one = len(values) == len(NOTHING_KNOWN) and all(0.0 <= value < math.inf for value in values)
    return SignalSource(*values) if is_one else NOTHING_KNOWN
