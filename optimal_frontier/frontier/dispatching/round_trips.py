"""How long the courier rests between two round trips, and how much is asked for in advance meanwhile."""

from __future__ import annotations

import threading
import time
from typing import Final

from optimal_frontier.frontier.dispatching.work import Outcome

#: Pause between two exchanges: work that comes in meanwhile shares the next round trip, and the caller's thread keeps the interpreter.
_SPACING_S: Final = 0.004
#: The same while everything that is asked for is given: such a crawl is as fast as its downloader, and loses nothing by fewer round trips,
#: as what it starts until the next one is asked for in advance (`RoundTrips.ahead`).
_BUSY_SPACING_S: Final = 0.02
#: While more is due than is asked for, no deadline is met, so that they may be fewer still: a round trip then carries so many requests,
#: unless that takes longer, or the downloader runs out of them.
_REQUESTS_A_TRIP: Final = 32
_LONGEST_SPACING_S: Final = 0.15
#: For how many round trips what is asked for in advance lasts, at the speed of late, and over how many seconds that is taken.
_TRIPS_AHEAD: Final = 2
_SPEED_S: Final = 0.5


def busy_spacing_s(speed: float, *, is_behind: bool) -> float:
    """Return the seconds between two exchanges of a crawl that gets all that it asks for, at so many requests a second.

    Examples
    --------
    >>> busy_spacing_s(100.0, is_behind=False), [busy_spacing_s(speed, is_behind=True) for speed in (10.0, 800.0, 5000.0)]
    (0.02, [0.15, 0.04, 0.02])
    """
    longest = _LONGEST_SPACING_S if is_behind else _BUSY_SPACING_S
    return min(max(_BUSY_SPACING_S, _REQUESTS_A_TRIP / max(speed, 1.0)), longest)


class RoundTrips:
    """What is known of the speed of a crawl; told by both threads, `rest` is the courier's.

    A crawl that has slots of its downloader in use counts as one that waits for room: its round trips are fewer, each with more. To count
    full slots alone made half as many again, and a visit cost the server 1.5 to 1.9 times as much.
    """

    def __init__(self) -> None:
        #: Requests a second that were handed out of late, while all that was asked for is given; else 0.
        self._speed = 0.0
        self._is_behind = False
        self._counted_at = 0.0
        self._asks_ahead = False
        #: The downloader could start a request, and there is none.
        self._ran_out = threading.Event()

    @property
    def ahead(self) -> int:
        """How many requests to ask for beyond what can be started now: what will be, until the next round trip but one."""
        return int(self._speed * self._busy_s * _TRIPS_AHEAD)

    def note_asked(self, want: int, ahead: int, ready: int) -> None:
        """Take in what is asked for, ``ahead`` of it in advance, and how many requests wait to be started."""
        self._asks_ahead = ahead > 0
        if want > ahead and not ready:
            self._ran_out.set()

    def note_given(self, now: float, want: int, outcome: Outcome) -> None:
        """Take in what was handed out of what was wanted, and whether there would have been more for more room."""
        self._ran_out.clear()
        self._is_behind = not outcome.wait and (outcome.is_full or len(outcome.handouts) >= want)
        since, self._counted_at = min(now - self._counted_at, _SPEED_S), now
        share, got = since / _SPEED_S, len(outcome.handouts)
        self._speed = (1.0 - share) * self._speed + share * got / max(since, _SPACING_S) if outcome.waits_for_room else 0.0

    def rest(self) -> None:
        """Wait until the next round trip."""
        if not (self._asks_ahead and self.ahead):
            time.sleep(_SPACING_S)
            return
        longest = self._busy_s
        time.sleep(_BUSY_SPACING_S)
        if longest > _BUSY_SPACING_S:
            self._ran_out.wait(longest - _BUSY_SPACING_S)

    @property
    def _busy_s(self) -> float:
        return busy_spacing_s(self._speed, is_behind=self._is_behind)
