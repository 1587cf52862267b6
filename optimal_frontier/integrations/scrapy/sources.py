"""Sitemaps and feeds in Scrapy: pages of their own, whose changes announce those of their entries."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from scrapy import Request

from optimal_frontier.detection.source_documents import Source, read_source
from optimal_frontier.detection.source_formats import Entry
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.hosts import host_of
from optimal_frontier.frontier.judging.judge import after_entries
from optimal_frontier.integrations.scrapy.lease import ANNOUNCED, LEASE, Lease
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import KEEP, Announcement

logger = logging.getLogger(__name__)

#: In the meta of a request: it is a source, and its entries are pages.
ANNOUNCES: Final = "announces"
#: Priorities of first visits: of sources, and of what was not there when the source was read before.
_SOURCE_PRIORITY: Final = 100
_NEWS_PRIORITY: Final = 10


class AnnouncedPages:
    """Mixin for spiders that say more about their sources than the setting SOURCES does. All of it is optional.

    Attributes
    ----------
    source_urls : sequence of str
        Sitemaps, sitemap indexes, feeds, and robots.txt files that name sitemaps; beside those in SOURCES.
    source_rules : sequence of (str, str)
        A regular expression that is searched in the URL of an entry, and the name of the method of the spider that gets its responses. The
        first rule that matches counts; an entry that none matches is left out.
    source_importance : float
        Importance of a source, where RULES say nothing: its change stands for those of many pages, and each of them counts.
    source_priorities : bool
        Whether the ``priority`` of a sitemap's entry is its importance.
    """

    source_urls: Sequence[str] = ()
    source_rules: Sequence[tuple[str, str]] = (("", "parse"),)
    source_importance: float = 10.0
    source_priorities: bool = False

    def source_filter(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """Return the entries to announce of those that are new or have changed; override it to leave out or change some."""
        return entries


class Sources:
    """Reads what sources announce, and passes it on as requests.

    Parameters
    ----------
    spider : Spider
        Its attributes are those of `AnnouncedPages`, where it has them.
    settings : FrontierSettings
        SOURCES and RULES.

    Raises
    ------
    ConfigurationError
        A rule names no method of the spider, or an expression cannot be read.
    """

    def __init__(self, spider: Any, settings: FrontierSettings) -> None:
        self._spider, self._rules = spider, settings.rules
        self._urls = (*settings.sources, *_said(spider, "source_urls"))
        self._importance = float(_said(spider, "source_importance"))
        self._has_priorities = bool(_said(spider, "source_priorities"))
        self._filter = getattr(spider, "source_filter", iter)
        self._callbacks: list[tuple[re.Pattern[str], Any]] = []
        self._warned: set[str] = set()
        for pattern, name in _said(spider, "source_rules"):
            callback = getattr(spider, name, None) if isinstance(name, str) else None
            if not callable(callback):
                raise ConfigurationError(f"source_rules of spider {spider.name!r}: {name!r} is the name of none of its methods")
            try:
                self._callbacks.append((re.compile(pattern), callback))
            except (re.error, TypeError) as error:
                raise ConfigurationError(
                    f"source_rules of spider {spider.name!r}: {pattern!r} is no regular expression ({error})"
                ) from error

    def start(self) -> Iterator[Request]:
        """Yield the requests of the sources that were named."""
        for url in self._urls:
            yield self._source_request(url, self._importance, _SOURCE_PRIORITY)

    def _source_request(self, url: str, importance: float, priority: int, **meta: Any) -> Request:
        meta[ANNOUNCES] = True
        if self._rules.of(url).importance is None:
            meta["importance"] = importance
        return Request(url, meta=meta, priority=priority)

    def read(self, lease: Lease, request: Any, response: Any) -> Source | None:
        """Read a good response to a source; None if it cannot be read, or is no source."""
        if not request.meta.get(ANNOUNCES):
            return None
        source = read_source(response.body, response.url)
        if source is None:
            self._warn_once("unreadable", "%s is neither a sitemap nor a feed that can be read; it announces nothing", response.url)
        elif not source.is_whole:
            self._warn_once("damaged", "%s is damaged, or larger than 50 MB: what could be read of it announces pages", response.url)
        return None if source is None else source.since(lease.handout.memory.entries)

    def _warn_once(self, topic: str, message: str, url: str) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning(message + " (further ones are counted, not logged)", url)

    def announce(self, response: Any, **_: Any) -> Iterator[Request]:
        """Take the callback's place for a source: yield its entries that are new or have changed since it was read before."""
        lease: Lease = response.meta[LEASE]
        source, handout = lease.source, lease.handout
        if source is None:
            return
        unread = handout.elapsed + time.monotonic() - handout.received if handout.row.visits and handout.memory.entries else -1.0
        announcement = Announcement(f"{host_of(response.url)} {source.kind}", unread)
        is_done = False
        try:
            for entry in self._filter(source.news(handout.memory.entries)):
                request = self._request(entry, source, announcement, handout.row.importance)
                if request is not None:
                    yield request
            is_done = True
        finally:
            if lease.observation is not None and lease.observation.op == KEEP:
                lease.observation = after_entries(lease.observation, source.remembered if is_done else None)

    def _request(self, entry: Entry, source: Source, announcement: Announcement, importance: float) -> Request | None:
        meta: dict[str, Any] = {}
        if entry.modified is not None:
            meta = {"lastmod": entry.lastmod, ANNOUNCED: announcement}
        if source.kind in ("index", "robots"):
            return self._source_request(entry.url, importance, _SOURCE_PRIORITY, **meta)
        if self._has_priorities and entry.priority:
            meta["importance"] = entry.priority
        priority = _NEWS_PRIORITY if announcement.unread >= 0 else 0
        for pattern, callback in self._callbacks:
            if pattern.search(entry.url):
                return Request(entry.url, callback=callback, meta=meta, priority=priority)
        return None


def _said(spider: Any, name: str) -> Any:
    return getattr(spider, name, getattr(AnnouncedPages, name))
