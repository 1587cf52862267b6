"""What the engine is told when nothing is due: spider_idle is sent, so that its handlers can feed requests, and the spider stays open."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.integrations.scrapy.incoming import IncomingRequests

logger = logging.getLogger(__name__)

#: Scrapy's count of requests that were sent: some are fetched from memory, and become no pages.
_SENT: Final = "downloader/request_count"
#: Least seconds between two times that spider_idle is sent.
EVERY_S: Final = 1.0


class Idling:
    """Lets the engine send spider_idle now and then while nothing is due.

    Parameters
    ----------
    crawler : Crawler
    courier : Courier
        Knows whether anything is due.
    incoming : IncomingRequests
        Knows whether pages that are wanted now have still to be handed out.
    manager : FronteraManager
        Knows whether MAX_REQUESTS is reached.
    """

    def __init__(self, crawler: Any, courier: Courier, incoming: IncomingRequests, manager: Any) -> None:
        self._crawler, self._courier, self._incoming, self._manager = crawler, courier, incoming, manager
        self._settings, self._has_told = courier.dispatcher.settings, False
        self._next = 0.0
        crawler.signals.connect(self._stay_open, signals.spider_idle)

    @property
    def is_ending(self) -> bool:
        """Whether nothing more is to be handed out: CLOSE_AFTER or MAX_REQUESTS is reached, unless a link that is on its way proves new."""
        return (self._courier.nothing_left.looks_complete and not self._incoming.awaits_any) or self._manager.finished

    @property
    def _is_over(self) -> bool:
        """Whether the spider may close."""
        return self.is_ending and (self._courier.nothing_left.is_complete or self._manager.finished)

    @property
    def is_idle(self) -> bool:
        """Whether the engine may take the spider for idle; what is under way is the caller's to know."""
        return self._is_over or (self._courier.nothing_left.is_idle and time.monotonic() >= self._next)

    def _stay_open(self) -> None:
        self._next = time.monotonic() + EVERY_S
        self._tell_if_empty()
        if not self._is_over:
            raise DontCloseSpider

    def _tell_if_empty(self) -> None:
        """Say once that there is nothing to crawl: it would be waited for in silence."""
        left = self._courier.nothing_left
        if self._has_told or not left.is_empty or self._crawler.stats.get_value(_SENT):
            return
        if self._incoming or left.has_added:  # other handlers of the signal have yielded some
            return
        if self._settings.close_after is not None and not left.looks_complete:
            return
        self._has_told = True
        keys, close_after = self._settings.url_keys, self._settings.close_after
        if close_after is not None:
            then = "CLOSE_AFTER is reached with that, and the spider closes"
        elif keys:
            then = f"it waits for URLs in {', '.join(keys)} (URL_KEYS)"
        else:
            then = "it stays open for pages that others add (`optimal-frontier import`, another crawler); CLOSE_AFTER would close it"
        logger.log(
            logging.INFO if keys or close_after is not None else logging.WARNING,
            "The spider has yielded no request that became a page, and namespace %s knows none: %s",
            self._settings.namespace,
            then,
        )
