"""Notices a server that is not the one it was: wiped, restored, replaced; and one whose clock has jumped.

Every call of a crawler for requests counts in its partition, and the reply says how many were counted before it. Fewer than this crawler
has seen: the server has lost something. The time goes on as the crawlers' own clocks have it, as long as the server's is more than a few
seconds off: it is believed again when it comes back, or when no crawler was there for a minute. A crawler that begins while the clock is
ahead goes by what the partition keeps of that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass

from optimal_frontier.state.layouts import BELIEVED_S
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Belief, Dispatched

logger = logging.getLogger(__name__)


def local_clock() -> float:
    """Return the seconds of a clock that nobody sets, and that goes on while the machine sleeps."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def loss_of(behind: Collection[int], partitions: int, *, is_empty: bool) -> str:
    """Return what is said of a server that has lost something.

    Parameters
    ----------
    behind : collection of int
        Partitions in which that was seen.
    partitions : int
        Of the namespace.
    is_empty : bool
        The namespace is gone, which the first partition keeps.

    Examples
    --------
    >>> loss_of([3], 16, is_empty=False)
    'has an earlier state of partition 3 at least, and the crawl goes on from there'
    """
    where = f" of partition {min(behind, default=0)} at least" if partitions > 1 else ""
    if not is_empty:
        return f"has an earlier state{where}, and the crawl goes on from there"
    return f"{f'has lost the state{where}' if where else 'is empty'}, and the namespace was made anew"


@dataclass(slots=True)
class _Known:
    """What the last reply of a partition said (us), between which two times of the local clock it was made, calls that it has counted."""

    at: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    dispatches: int = 0
    is_off: bool = False


class ServerWatch:
    """What a crawler knows of its server; used by the courier's thread, and read by others.

    Parameters
    ----------
    namespace : Namespace
        Opened; its `now` is bounded from here on.

    Attributes
    ----------
    behind : set of int
        Partitions of which the server has lost something, as far as they were asked.
    is_doubted : bool
        Somebody has another namespace of this name in mind: one that was there before, or the one that is there by now.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._known: dict[int, _Known] = {}
        #: Partitions that have been told which namespace this is, since it was opened.
        self._knowing: set[int] = set()
        self.behind: set[int] = set()
        self.is_doubted = False
        namespace.bounded = self.bounded

    @property
    def is_behind(self) -> bool:
        """The server has lost something."""
        return bool(self.behind)

    def belief(self, partition: int) -> Belief:
        """Return what goes with a call."""
        known, run = self._known.get(partition), self.namespace.run_id
        if partition not in self._knowing:
            run = -run  # it was read a moment ago, whatever the partition has been told since
        if known is None:
            return Belief(0.0, 0.0, run)
        since = local_clock() - known.received
        return Belief(known.at + since * 1e6, (BELIEVED_S + known.received - known.sent) * 1e6, run)

    def latest(self, partition: int) -> float:
        """Return what the server's time is at most, seconds since the epoch; 0: it is not known."""
        known = self._known.get(partition)
        return 0.0 if known is None else known.at / 1e6 + local_clock() - known.sent

    def bounded(self, partition: int, clock: float) -> float:
        """Return what the server's clock says (us), or where that is not to be believed what it should say."""
        expected, within, _ = self.belief(partition)
        return expected if expected and abs(clock - expected) > within else clock

    def note(self, partition: int, told: Dispatched, sent: float) -> None:
        """Take in a reply to a call that was sent at a time of the local clock."""
        known, received = self._known.setdefault(partition, _Known()), local_clock()
        self._knowing.add(partition)
        now, off = told.now, told.server_time - told.now
        if abs(off) <= BELIEVED_S + received - sent:
            now, off = told.server_time, 0.0  # what the call has taken on its way is no jump
        expected = known.at / 1e6 + received - known.received
        # Each reply is late by what it took on its way, so the quickest one tells the time best, for as long as no other contradicts it.
        # While the server's clock is off, the time is kept from when it was right: by each reply it would lose what that took.
        is_right, is_worse = abs(off) <= BELIEVED_S, 0.0 <= expected - now <= received - sent
        if not known.at or (is_right and not is_worse) or abs(now - expected) > BELIEVED_S:
            known.at, known.sent, known.received = now * 1e6, sent, received
        if told.dispatches < known.dispatches:
            self.behind.add(partition)
        self.is_doubted |= told.run not in (0.0, self.namespace.run_id)
        known.dispatches = told.dispatches + 1
        if abs(off) > BELIEVED_S and not known.is_off:
            logger.warning(
                "the clock of %s has jumped, to %.0f s %s the time of the crawl, which goes on as before",
                self.namespace.connection.spec.display,
                abs(off),
                "ahead of" if off > 0 else "behind",
            )
        known.is_off = abs(off) > BELIEVED_S

    def note_opened(self) -> None:
        """Note that the namespace was opened anew; partitions are told which one it is."""
        self.is_doubted = False
        self._knowing.clear()

    def forget(self) -> None:
        """Begin with another server."""
        self._known.clear()
        self.behind.clear()
        self.is_doubted = False
