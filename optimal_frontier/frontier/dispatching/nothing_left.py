"""Whether a crawl has nothing left to do: it is complete, or nothing is due and no page waits for its first visit."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from optimal_frontier.errors import OptimalFrontierError
from optimal_frontier.frontier.dispatching.work import Outcome

logger = logging.getLogger(__name__)

#: Least seconds between two looks whether the crawl is complete.
_LOOK_S: Final = 0.25
#: Least seconds between two looks whether first visits wait while nothing can be handed out.
_IDLE_S: Final = 0.5
#: Seconds after a change of the server in which a crawl is not complete: what was lost is on its way.
_ANEW_S: Final = 5.0


class NothingLeft:
    """Looks now and then, on the courier's thread; read by others.

    Parameters
    ----------
    lock : Condition
        Held by those who add pages.
    is_adding : callable
        Tells, under the lock, whether pages are to be stored still.
    pending, arrivals : callable
        Return how many pages wait for their first visit, and how many were ever added, by whomever.
    complete_when : callable, optional
        Tells whether the crawl is complete.

    Attributes
    ----------
    looks_complete : bool
        What ``complete_when`` said last; a new page takes it back.
    has_added : bool
        Pages were added, and nobody knows yet which of them are new.
    is_idle : bool
        Nothing can be handed out now, and no page waits for its first visit.
    is_empty : bool
        Nothing is left, and no page has ever been added.
    """

    def __init__(
        self,
        lock: threading.Condition,
        is_adding: Callable[[], bool],
        pending: Callable[[], int],
        arrivals: Callable[[], int],
        complete_when: Callable[[], bool] | None,
    ) -> None:
        self._lock = lock
        self._is_adding = is_adding
        self._pending, self._arrivals = pending, arrivals
        self._complete_when = complete_when
        self.looks_complete = self.is_idle = False
        self.is_empty = False
        self.has_added = False
        #: When to look next, local monotonic times.
        self._next_look = self._next_idle = 0.0

    @property
    def next_look(self) -> float:
        """Local monotonic time at which to look whether the crawl is complete."""
        return math.inf if self._complete_when is None else self._next_look

    @property
    def is_complete(self) -> bool:
        """Whether ``complete_when`` said so, and no page is on its way that may be new."""
        # In this order, as nobody holds the lock: what was added counts as such until what came of it is known.
        return not self.has_added and self.looks_complete

    def note_added(self) -> None:
        """Note that there may be more to do; under the lock."""
        self.is_idle, self.has_added = False, True

    def note_stored(self, new: int) -> None:
        """Note that what was added is stored, and how many pages of it are new; under the lock."""
        if new:
            self.looks_complete = self.is_empty = False
        self.has_added = self._is_adding()

    def note_lost(self) -> None:
        """Note that an exchange got no reply; under the lock. What it has stored is not new to the one that repeats it."""
        self.looks_complete = self.is_empty = False

    def begin_anew(self, quiet_s: float) -> None:
        """Note that the server has lost something, and that nothing is asked of it for some seconds; under the lock."""
        self.looks_complete = self.is_idle = False
        self._next_look = self._next_idle = time.monotonic() + quiet_s + _ANEW_S

    def look(self, outcome: Outcome) -> bool:
        """Look after an exchange; return whether somebody wants to know what was found."""
        return self._look_whether_idle(outcome) | self._look_whether_complete()

    def _look_whether_idle(self, outcome: Outcome) -> bool:
        began = time.monotonic()
        if outcome.handouts or outcome.wait == 0.0:
            self.is_idle = False
        elif outcome.wait is not None and not self.is_idle and began >= self._next_idle:
            self._next_idle = began + _IDLE_S
            try:
                pending = self._pending()
                self.is_empty = pending == 0 and self._arrivals() == 0
            except (OptimalFrontierError, ValueError) as error:
                logger.debug("cannot tell whether anything is due: %s", error)  # the next exchange meets the same outage
                return False
            with self._lock:
                self.is_idle = pending == 0 and not self._is_adding()
            return self.is_idle
        return False

    def _look_whether_complete(self) -> bool:
        began = time.monotonic()
        if self._complete_when is None or began < self._next_look:
            return False
        try:
            complete = self._complete_when()
            self.is_empty = complete and self._arrivals() == 0
        except (OptimalFrontierError, ValueError) as error:
            logger.debug("cannot tell whether the crawl is complete: %s", error)  # the next exchange meets the same outage
            return False
        with self._lock:
            self.looks_complete = complete
        # What it costs to look stays below a twentieth of the time.
        self._next_look = began + max(_LOOK_S, 20 * (time.monotonic() - began))
        return self.is_complete
