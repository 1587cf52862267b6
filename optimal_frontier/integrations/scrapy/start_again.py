"""Asks ``start()`` anew, for a server that has lost what the crawl began with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from scrapy import Request

from optimal_frontier.integrations.scrapy.compatibility import breathe, is_closing, run_soon, start_of
from optimal_frontier.integrations.scrapy.lease import GATE

#: Elements of ``start()`` between two pauses for the rest of the process.
_BREATH: Final = 100


class StartAgain:
    """Sends start requests again; those that log in are left out, as the session goes on.

    Parameters
    ----------
    crawler : Crawler
        Its spider's ``start()`` is asked.
    note : callable
        Called when it is.
    """

    def __init__(self, crawler: Any, note: Callable[[], None]) -> None:
        self._crawler, self._note = crawler, note
        self._beginnings = 0
        self._running: Any = None

    def look(self, beginnings: int) -> None:
        """Begin again if ``beginnings`` has grown."""
        if beginnings != self._beginnings:
            self._beginnings = beginnings
            self.stop()
            self._running = run_soon(self._send())

    def stop(self) -> None:
        """Take nothing more of a ``start()`` that was asked anew."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    async def _send(self) -> None:
        seen = 0
        self._note()
        async for element in await start_of(self._crawler):
            if is_closing(self._crawler.engine):
                return
            if isinstance(element, Request) and not element.meta.get(GATE):
                self._crawler.engine.crawl(element)
            seen += 1
            if seen % _BREATH == 0:
                await breathe()
