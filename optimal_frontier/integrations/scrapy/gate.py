"""The gate: whether stored pages may be handed out yet, or have to wait for the requests that log in."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from optimal_frontier.integrations.scrapy.compatibility import call_later
from optimal_frontier.integrations.scrapy.local_requests import LocalRequests

logger = logging.getLogger(__name__)

#: Seconds that the first request of ``start()`` is waited for.
FIRST_S: Final = 30.0
#: Where it has yielded one that is not gated, the next ones are waited for until it pauses for so long, and for so long in all, seconds.
PAUSE_S: Final = 0.05
REST_S: Final = 2.0
#: Seconds after which a shut gate is worth a warning.
SHUT_S: Final = 60.0


class Gate:
    """Shut while a gated request waits or is under way, while ``start()`` may still yield one, and while a log-in is awaited.

    Parameters
    ----------
    requests : LocalRequests
        Gated ones are among them.
    look : callable
        Lets the engine ask again.
    """

    def __init__(self, requests: LocalRequests, look: Callable[[], None]) -> None:
        self._requests, self._look = requests, look
        #: A log-in is awaited.
        self.is_held = False
        #: How often ``start()`` was asked; what an earlier one yields says nothing any more.
        self.starts = 0
        self._is_starting = False
        self._first_at = self._last_at = 0.0
        self._shut_at = 0.0
        self._has_warned = False

    @property
    def is_shut(self) -> bool:
        """Whether nothing stored may be handed out."""
        is_shut = self.is_held or self._is_starting or self._requests.gated > 0
        if not is_shut:
            self._shut_at, self._has_warned = 0.0, False
        elif not self._shut_at:
            self._shut_at = time.monotonic()
        elif self._requests.gated and not self._has_warned and time.monotonic() > self._shut_at + SHUT_S:
            self._has_warned = True
            logger.warning(
                "nothing stored has been fetched for %.0f s, as %d requests with meta frontier_gate have not ended; what their callbacks "
                "yield inherits it: set it to False in the meta of pages",
                SHUT_S,
                self._requests.gated,
            )
        return is_shut

    def begin_start(self) -> None:
        """Wait for what ``start()`` yields first."""
        self._is_starting, self._first_at = True, 0.0
        self.starts += 1
        number = self.starts

        def give_up() -> None:
            if self._is_starting and number == self.starts and not self._first_at:
                logger.warning("start() has yielded nothing for %.0f s; stored pages are fetched meanwhile", FIRST_S)
                self.end_start(number)

        call_later(FIRST_S, give_up)

    def note_start(self, number: int) -> None:
        """Note that ``start()``, asked for the ``number``-th time, has yielded something."""
        if self._is_starting and number == self.starts:
            self._last_at = time.monotonic()
            if not self._first_at:
                self._first_at = self._last_at
                call_later(PAUSE_S, lambda: self._look_whether_pausing(number))

    def _look_whether_pausing(self, number: int) -> None:
        now = time.monotonic()
        if now >= self._last_at + PAUSE_S or now >= self._first_at + REST_S:
            self.end_start(number)
        elif self._is_starting and number == self.starts:
            call_later(self._last_at + PAUSE_S - now, lambda: self._look_whether_pausing(number))

    def end_start(self, number: int) -> None:
        """Note that ``start()``, asked for the ``number``-th time, yields no more, or is not waited for."""
        if self._is_starting and number == self.starts:
            self._is_starting = False
            self._look()
