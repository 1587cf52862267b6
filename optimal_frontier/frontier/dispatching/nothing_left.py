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
    counted : callable
        Returns a counter by its name: ``pending`` pages wait for their first visit, ``arrivals`` were ever added.
    complete_when : callable, optional
        Tells whether the crawl is complete.

    Attributes
    ----------
    looks_complete : bool
        What ``complete_when`` said last; a new page takes it back.
    is_idle : bool
        Nothing can be handed out now, and no page waits for its first visit.
    is_empty : bool
        Nothing is left, and no page has ever been added.
    """

    def __init__(
        self,
        lock: threading.Condition,
        is_adding: Callable[[], bool],
        counted: Callable[[str], int],
        complete_when: Callable[[], bool] | None,
    ) -> None:
        self._lock = lock
        self._is_adding = is_adding
        self._counted = counted
        self._complete_when = complete_when
        self.looks_complete = self.is_idle = False
        self.is_empty = False
        #: Pages were added, and nobody knows yet which of them are new.
        self._has_added = False
        #: When to look next, local monotonic times.
        self._next_look = self._next_idle = 0.0

    @property
    def next_look(self) -> float:
        """Local monotonic time at which to look whether the crawl is complete."""
        return math.inf if self._complete_when is None else self._next_look

    @property
    def is_complete(self) -> bool:
        """Whether ``complete_when`` said so, and no page is on its way that may be new."""
        return self.looks_complete and not self._has_added

    def note_added(self) -> None:
        """Note that there may be more to do; under the lock."""
        self.is_idle, self._has_added = False, True

    def note_stored(self, new: int) -> None:
        """Note that what was added is stored, and how many pages of it are new; under the lock."""
        if new:
            self.looks_complete = self.is_empty = False
        self._has_added = self._is_adding()

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
                pending = self._counted("pending")
                self.is_empty = pending == 0 and self._counted("arrivals") == 0
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
            self.is_empty = complete and self._counted("arrivals") == 0
        except (OptimalFrontierError, ValueError) as error:
            logger.debug("cannot tell whether the crawl is complete: %s", error)  # the next exchange meets the same outage
            return False
        with self._lock:
            self.looks_complete = complete
        # What it costs to look stays below a twentieth of the time.
        self._next_look = began + max(_LOOK_S, 20 * (time.monotonic() - began))
        return self.is_complete
