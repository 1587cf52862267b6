"""Lines that tell of an outage of Redis, and of its end."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Final

from optimal_frontier.errors import OptimalFrontierError
from optimal_frontier.frontier.dispatching.exchange import Dispatcher

logger = logging.getLogger(__name__)

#: Seconds of an outage in which each attempt is told, and between two that are from then on. One that comes again within them goes on.
_TOLD_S: Final = 60.0
#: Least seconds between two looks whether all nodes of a cluster answer, and how many times as long as a look took.
_LOOK_S: Final = 5.0
_LOOK_SHARE: Final = 20.0


class OutageLog:
    """Tells of outages as the courier meets them.

    Some nodes of a cluster may answer while another one is away for long (``cluster-require-full-coverage no``): that is one outage.

    Parameters
    ----------
    dispatcher : Dispatcher
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        #: When the outage began that was told of, 0 if none is; when to look whether it is over; the last line. Local monotonic times.
        self._since = self._next_look = self._told_at = 0.0
        #: When the first of those outages began that came again and again, when an attempt failed last; a line told of the present one.
        self._first_since = self._failed_at = 0.0
        self._is_known = False
        self._told = ""
        #: Why the embedded server could not be started again, as was told of the present outage.
        self._told_of_start = ""

    def note_failure(self, error: OptimalFrontierError, retry_s: float, *, is_long: bool) -> None:
        """Tell that an exchange failed, and is tried again after some seconds; ``is_long``: these have become as many as they may."""
        now = time.monotonic()
        # A cluster puts a replica in the place of a node within seconds: one line tells of that.
        is_told = self._since and not is_long and self._dispatcher.is_cluster
        # One kind of call may fail for ever while others are answered: the user lacks a right, or memory is nearly full.
        if not self._since and not (self._told == str(error) and now - self._failed_at < _TOLD_S):
            self._first_since = now
        # Of an outage that lasts for a night every attempt would be tens of thousands.
        is_told = is_told or (self._told == str(error) and self._first_since < now - _TOLD_S < self._told_at)
        self._failed_at = now
        if not is_told:
            self._told, self._told_at, self._is_known = str(error), now, True
        logger.log(logging.DEBUG if is_told else logging.WARNING, "%s; trying again in %.1f s, nothing is lost", error, retry_s)
        self._since = self._since or now

    def note_no_connection(self, error: OptimalFrontierError) -> None:
        """Tell why a new connection cannot be made: of the embedded server, which a crawler starts, each reason once an outage."""
        reason = str(error).partition("\n")[0]  # its log differs by times and numbers of processes
        # Of a server of somebody else's, and of one that runs, the next attempt says so.
        is_other = self._dispatcher.namespace.connection.spec.data_dir is None or reason.startswith("Redis at ")
        is_told = is_other or reason == self._told_of_start
        if not is_told:
            self._told_of_start = reason
        logger.log(logging.DEBUG if is_told else logging.WARNING, "%s", error)

    def note_answer(self) -> None:
        """Tell that Redis answers again, if it does, after an exchange that went well."""
        if self._since and (not self._dispatcher.is_cluster or self._do_all_answer()):
            away = time.monotonic() - self._since
            level = logging.INFO if self._is_known else logging.DEBUG
            logger.log(level, "Redis at %s answers again, after %.1f s", self._dispatcher.namespace.connection.spec.display, away)
            self._since, self._next_look, self._is_known, self._told_of_start = 0.0, 0.0, False, ""

    def _do_all_answer(self) -> bool:
        began = time.monotonic()
        if began < self._next_look:
            return False
        try:
            with contextlib.suppress(ValueError):  # of a damaged counter: its node has answered
                self._dispatcher.arrivals()  # asks all partitions
        except OptimalFrontierError as error:
            logger.debug("not all of Redis answers: %s", error)
            self._next_look = began + max(_LOOK_S, _LOOK_SHARE * (time.monotonic() - began))
            return False
        return True
