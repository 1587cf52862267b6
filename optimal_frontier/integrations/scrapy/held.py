"""Pages that come up for a fetch and lack what their requests need: a callback of the spider, or a class of requests."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from optimal_frontier.frontier.dispatching.held_pages import told_of
from optimal_frontier.frontier.judging.holding import hold
from optimal_frontier.state.messages import Handout, Observation

logger = logging.getLogger(__name__)

#: Seconds from the first page that is held to the line of the log about it, and between two such lines.
FIRST_LINE_S: Final = 5.0
NEXT_LINE_S: Final = 600.0


class HeldPages:
    """Holds pages, and says in the log how many: a line for each callback or class, not one for each page.

    Parameters
    ----------
    stats : StatsCollector
        Counts them.
    listed : collection of str or None
        CALLBACKS.
    """

    def __init__(self, stats: Any, listed: Collection[str] | None) -> None:
        self._stats, self._listed = stats, listed
        self._counts: Counter[str] = Counter()
        self._untold: set[str] = set()
        self._next_line = 0.0

    def hold(self, handout: Handout, name: str) -> Observation | None:
        """Return the observation of a page that lacks ``name``, one of `needs_of`; None: it is not held, so the scheduler makes it fail."""
        observation = hold(handout)
        if observation is None:
            return None
        if not self._untold:
            self._next_line = max(self._next_line, time.monotonic() + FIRST_LINE_S)
        self._counts[name] += 1
        self._untold.add(name)
        self._stats.inc_value("optimal_frontier/held")
        return observation

    def tell(self, *, is_last: bool = False) -> None:
        """Write what is due to the log."""
        now = time.monotonic()
        if not self._untold or not (is_last or now >= self._next_line):
            return
        for name in sorted(self._untold):
            logger.warning(told_of(self._counts[name], name, self._listed))
        self._untold.clear()
        self._next_line = now + NEXT_LINE_S
