"""Spider middleware: tells the scheduler which page a request was found on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from scrapy import Request
from scrapy.exceptions import NotConfigured

from optimal_frontier.errors import LoggedOut
from optimal_frontier.integrations.scrapy.converters import forget_runtime
from optimal_frontier.integrations.scrapy.item_marks import ItemMarks
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.integrations.scrapy.sources import ANNOUNCES, rest


class FrontierSpiderMiddleware:
    """Marks requests that a callback yields with the page they come from, for Frontera's ``links_extracted``.

    A request made with ``meta=response.meta`` would carry its parent's lease; the runtime keys are taken out.
    """

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self._items: ItemMarks | None = None
        self._scheduler: OptimalScheduler | None = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> FrontierSpiderMiddleware:
        if not OptimalScheduler.is_set(crawler):
            raise NotConfigured("FrontierSpiderMiddleware needs optimal_frontier's scheduler")
        return cls(crawler)

    @property
    def scheduler(self) -> OptimalScheduler | None:
        """Ours, once it is open."""
        if self._scheduler is None:
            self._scheduler = OptimalScheduler.of(self.crawler)
        return self._scheduler

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Put the sources in front of the spider's start requests."""
        scheduler = OptimalScheduler.of(self.crawler)
        if scheduler is not None:
            for request in scheduler.sources.start():
                yield request
        if scheduler is None:
            async for element in start:
                yield element
            return
        number = scheduler.gate.starts
        try:
            async for element in start:
                scheduler.gate.note_start(number)
                yield element
        finally:
            scheduler.gate.end_start(number)

    def process_spider_output(self, response: Any, result: Iterable[Any], spider: Any = None) -> Iterator[Any]:
        """Mark the requests in ``result``."""
        for element in result:
            yield self._marked(element, response, self.scheduler)

    async def process_spider_output_async(self, response: Any, result: AsyncIterator[Any], spider: Any = None) -> AsyncIterator[Any]:
        """Mark the requests in ``result``."""
        is_source, passed_on = response.meta.get(ANNOUNCES), 0
        async for element in result:
            yield self._marked(element, response, self.scheduler)
            passed_on += 1
            if is_source:
                await rest(passed_on)

    def process_spider_exception(self, response: Any, exception: Exception, spider: Any = None) -> list[Any] | None:
        """Have the spider log in again where its callback found that it has to."""
        scheduler = OptimalScheduler.of(self.crawler)
        if not isinstance(exception, LoggedOut) or scheduler is None:
            return None
        scheduler.log_in_again(response)
        return []

    def _marked(self, element: Any, response: Any, scheduler: OptimalScheduler | None) -> Any:
        if isinstance(element, Request):
            forget_runtime(element.meta)
            if scheduler is not None:
                scheduler.incoming.note_parent(element, response.request, response)
        elif scheduler is not None and scheduler.settings.item_field is not None:
            if self._items is None:
                self._items = ItemMarks(scheduler.settings.item_field, self.crawler.stats)
            self._items.mark(element, response)
        return element
