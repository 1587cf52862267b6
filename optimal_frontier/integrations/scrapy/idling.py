"""What the engine is told when nothing is due: spider_idle is sent, so that its handlers can feed requests, and the spider stays open."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from optimal_frontier.frontier.dispatching.courier import Courier

#: Least seconds between two times that spider_idle is sent.
EVERY_S: Final = 1.0


class Idling:
    """Lets the engine send spider_idle now and then while nothing is due.

    Parameters
    ----------
    crawler : Crawler
    courier : Courier
        Knows whether anything is due.
    is_over : callable
        Tells whether the spider may close: CLOSE_AFTER or Frontera's MAX_REQUESTS is reached.
    """

    def __init__(self, crawler: Any, courier: Courier, is_over: Callable[[], bool]) -> None:
        self._courier, self._is_over = courier, is_over
        self._next = 0.0
        crawler.signals.connect(self._stay_open, signals.spider_idle)

    @property
    def is_idle(self) -> bool:
        """Whether the engine may take the spider for idle; what is under way is the caller's to know."""
        return self._is_over() or (self._courier.nothing_left.is_idle and time.monotonic() >= self._next)

    def _stay_open(self) -> None:
        self._next = time.monotonic() + EVERY_S
        if not self._is_over():
            raise DontCloseSpider
