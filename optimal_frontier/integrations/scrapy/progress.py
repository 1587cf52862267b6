"""Extension: a line of progress as often as Scrapy's own LogStats."""

from __future__ import annotations

from typing import Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from optimal_frontier.frontier.dispatching.progress_line import ProgressLog
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler


class FrontierStats:
    """Logs how the frontier is doing, every LOGSTATS_INTERVAL seconds; 0 turns it off, as it does LogStats.

    Parameters
    ----------
    crawler : Crawler
    interval_s : float
        LOGSTATS_INTERVAL.
    """

    def __init__(self, crawler: Any, interval_s: float) -> None:
        self._crawler, self._interval_s = crawler, interval_s
        self._log: ProgressLog | None = None
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> FrontierStats:
        interval_s = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval_s <= 0 or not OptimalScheduler.is_set(crawler):
            raise NotConfigured
        return cls(crawler, interval_s)

    def _opened(self, spider: Any) -> None:
        scheduler = OptimalScheduler.of(self._crawler)
        if scheduler is not None:
            self._log = scheduler.progress_log(self._interval_s)
            self._log.start()

    def _closed(self) -> None:
        if self._log is not None:
            self._log.stop()
