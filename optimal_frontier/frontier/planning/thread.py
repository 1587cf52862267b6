"""The planner in the background of a crawler."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import traceback
from collections.abc import Callable
from typing import Final

from optimal_frontier.errors import StateError, StateUnavailableError
from optimal_frontier.frontier.planning.clock_keeper import CATCH_UP_S
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.state.mending import can_go_on

logger = logging.getLogger(__name__)

#: Seconds by which another planner than that of the last plan waits longer; it plans when that one is gone.
_GRACE_S: Final = 0.5


class PlannerThread:
    """Plans in the background until stopped; any number may run, the lock lets one plan at a time.

    Parameters
    ----------
    planner : Planner
        Used by the thread alone once it has started.
    planned : callable, optional
        Called on the thread after every plan, another process's included: pages may be due sooner than was thought.
    beforehand : callable, optional
        Called on the thread at each turn, before it plans.
    """

    def __init__(self, planner: Planner, planned: Callable[[], None] | None = None, beforehand: Callable[[], object] | None = None) -> None:
        self.planner = planner
        self._planned = planned
        self._beforehand = beforehand
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="optimal_frontier-planner", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """End the thread, after the plan that it is making; one that takes longer than this is given up, and waited for as long again."""
        self._stop.set()
        if self._thread.ident is None:
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.planner.lock.is_given_up = True
            self._thread.join(timeout_s)

    def _run(self) -> None:
        interval = self.planner.settings.resolve_interval
        last_due = 0.0
        while True:
            wait = min(interval, 1.0)
            try:
                if self._beforehand is not None:
                    self._beforehand()
                due, look = self.planner.due_in(), self.planner.look_in()
                if due is not None and not self.planner.is_incumbent:
                    due += _GRACE_S  # who made the last plan knows most of what the next one needs
                if look is not None and look <= 0 and (due is None or due > 0):
                    if self.planner.look() and self._planned is not None:
                        self._planned()
                    look = self.planner.keeper.look_s if self.planner.keeper is not None else None
                elif look is not None:
                    self.planner.catch_up()
                if due is not None:
                    # A crawl that has grown wants its next plan sooner than the last one knew.
                    wait = min(due, max(1.0, 0.1 * interval), math.inf if look is None else min(look, CATCH_UP_S))
                    if self._planned is not None and due > last_due:
                        self._planned()
                    last_due = due
                if due is not None and not due > 0:  # a damaged time is no number
                    # Not planned: another holds the lock, and publishes soon.
                    wait = 0.0 if self.planner.plan(if_due=True) is not None else min(interval, 1.0)
            except StateUnavailableError:
                wait = 1.0  # the courier reports outages and reconnects
            except Exception as error:
                # A plan that fails must not end the crawl: the old rates go on being used.
                with contextlib.suppress(StateUnavailableError):
                    if not can_go_on(self.planner.namespace, error):
                        logger.error("planning failed: %s", error)
                    elif not isinstance(error, StateError):
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        logger.error("planning failed: %r in %s, line %s", error, where.name, where.lineno)
                wait = interval
            if self._stop.wait(max(wait, 0.02)):
                break
