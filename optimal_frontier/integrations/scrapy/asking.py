"""How much a crawl asks for at once, and how often: MAX_NEXT_REQUESTS and DELAY_ON_EMPTY, as with Frontera's own scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from optimal_frontier.integrations.frontera.configuration import number_of, whole_number_of
from optimal_frontier.integrations.scrapy.compatibility import call_later


class Asking:
    """Bounds what is asked of Redis. Without the two settings nothing is bounded: Redis says when to ask again.

    Parameters
    ----------
    settings : ScrapySettingsAdapter
        What counts is set by the project; Frontera's defaults are for backends that are asked every few seconds.
    look : callable
        Lets the engine ask again when the delay is over.

    Raises
    ------
    ConfigurationError
        One of the two is no number of 0 or more.
    """

    def __init__(self, settings: Any, look: Callable[[], None]) -> None:
        self._most = whole_number_of(settings, "MAX_NEXT_REQUESTS") or 0
        self._delay_s = number_of(settings, "DELAY_ON_EMPTY") or 0.0
        self._look = look
        self._empty_looks = 0
        self._until = 0.0

    def bounded(self, wanted: int, empty_looks: int) -> int:
        """Return how many requests to ask for.

        Parameters
        ----------
        wanted : int
            Those that the downloader has room for.
        empty_looks : int
            Grows whenever Redis had nothing to hand out.
        """
        if self._delay_s > 0:
            now = time.monotonic()
            if empty_looks != self._empty_looks:
                self._empty_looks, self._until = empty_looks, now + self._delay_s
                call_later(self._delay_s, self._look)
            if now < self._until:
                return 0
        return min(wanted, self._most) if self._most else wanted
