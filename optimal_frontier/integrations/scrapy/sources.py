"""Sitemaps and feeds in Scrapy: pages of their own, whose changes announce those of their entries."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from scrapy import Request
from scrapy.http import Response

from optimal_frontier.detection.source_documents import Source, read_source
from optimal_frontier.detection.source_entries import Entry
from optimal_frontier.detection.source_streams import is_zipped
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.admitting.addresses import UNREADABLE, shown
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.speakers import Speaker
from optimal_frontier.frontier.judging.judge import after_entries
from optimal_frontier.integrations.scrapy.compatibility import in_thread, is_closing, pause
from optimal_frontier.integrations.scrapy.lease import ANNOUNCED, LEASE, Lease
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.settings.parsing import fail, number
from optimal_frontier.settings.urls import parse_sources
from optimal_frontier.state.messages import KEEP, Announcement

logger = logging.getLogger(__name__)

#: In the meta of a request: it is a source, and its entries are pages.
ANNOUNCES: Final = "announces"
#: There too, of sources that another one names: how many steps away from one that the spider or SOURCES name, and the registered domains
#: that vouch for it.
NESTING: Final = "source_nesting"
VOUCHED: Final = "source_for"
#: Domains that vouch for a source, at most, and sources of which that is remembered.
_MOST_VOUCHERS: Final = 16
_MOST_VOUCHED: Final = 10_000
#: Seconds.
_LONGEST_PAUSE_S: Final = 0.02
#: Priorities of first visits: of sources, and of what was not there when the source was read before.
_SOURCE_PRIORITY: Final = 100
_NEWS_PRIORITY: Final = 10
#: Bytes of a source that takes milliseconds to read, if it is no zip.
_SMALL: Final = 2**16
#: Entries that are passed on between two rests, and how long one is, seconds: about as long as they take.
_BREATH: Final = 8
_REST_S: Final = 0.004


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
        Importance of a source, where RULES say nothing, beside what it is found to tell, see `judging.hubs`.
    source_priorities : bool
        Whether the ``priority`` of a sitemap's entry is its importance.
    """

    source_urls: Sequence[str] = ()
    source_rules: Sequence[tuple[str, str]] = (("", "parse"),)
    source_importance: float = 1.0
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
        SOURCES, SOURCE_LIMITS, SOURCE_HOSTS, PRIVATE_LINKS and RULES.
    trap : callable
        Reason, URL, number -> counts entries that are not followed.

    Raises
    ------
    ConfigurationError
        What the spider says cannot be used: a rule names no method, an expression cannot be read, a URL is none.
    """

    def __init__(self, spider: Any, settings: FrontierSettings, trap: Callable[[str, str, int], None]) -> None:
        self._spider, self._rules, self._settings = spider, settings.rules, settings
        self._trap = trap
        #: One large document at a time: what is unzipped of it is held in memory. Small ones do not wait for it.
        self._large = ThreadPoolExecutor(1, "optimal_frontier-large-sources")
        self._small = ThreadPoolExecutor(1, "optimal_frontier-sources")
        #: Sources that a robots.txt names, and the registered domains of those that do.
        self._vouched: dict[str, set[str]] = {}
        of_spider = f"of spider {spider.name!r}"
        self._urls = (*settings.sources, *parse_sources(f"source_urls {of_spider}", _said(spider, "source_urls")))
        importance = _said(spider, "source_importance")
        self._importance = number(f"source_importance {of_spider}", importance, "a number above 0", lambda given: 0 < given < math.inf)
        self._has_priorities = bool(_said(spider, "source_priorities"))
        self._filter = getattr(spider, "source_filter", iter)
        self._callbacks: list[tuple[re.Pattern[str], Any]] = []
        self._warned: set[str] = set()
        rules = _said(spider, "source_rules")
        if not isinstance(rules, list | tuple) or not all(isinstance(rule, list | tuple) and len(rule) == 2 for rule in rules):
            raise fail(f"source_rules {of_spider}", rules, "a list of pairs, a regular expression and the name of a method")
        for pattern, name in rules:
            callback = getattr(spider, name, None) if isinstance(name, str) else None
            if not callable(callback):
                raise ConfigurationError(f"source_rules {of_spider}: {name!r} is the name of none of its methods")
            try:
                self._callbacks.append((re.compile(pattern), callback))
            except (re.error, TypeError) as error:
                raise ConfigurationError(f"source_rules {of_spider}: {pattern!r} is no regular expression ({error})") from error

    def start(self) -> Iterator[Request]:
        """Yield the requests of the sources that were named."""
        for url in self._urls:
            yield self._source_request(url, self._importance, _SOURCE_PRIORITY)

    def _source_request(self, url: str, importance: float, priority: int, **meta: Any) -> Request:
        meta[ANNOUNCES] = True
        if self._rules.of(url).importance is None:
            meta["importance"] = importance
        return Request(url, meta=meta, priority=priority)

    @property
    def most_bytes(self) -> int:
        """Bytes of a response to a source that are taken, by SOURCE_LIMITS."""
        return self._settings.source_limits.bytes

    def close(self) -> None:
        """End the threads."""
        for thread in (self._small, self._large):
            thread.shutdown(wait=False, cancel_futures=True)

    async def read(self, lease: Lease, request: Any, response: Any) -> Source | None:
        """Read a good response to a source, on a thread; None if it cannot be read."""
        body, url = response.body, response.url
        speaker, remembered = self._speaker(lease, request, url), lease.handout.memory.entries

        def read_there() -> Source | None:
            source = read_source(body, url, self._settings.source_limits, speaker.refusal, _Pauses())
            return None if source is None else source.since(remembered)

        try:
            is_small = len(body) <= _SMALL and not is_zipped(body)
            source = await in_thread(self._small if is_small else self._large, read_there)
        except Exception as error:  # whatever a parser makes of it
            logger.debug("%s cannot be read: %r", url, error)
            source = None
        if source is None:
            self._warn_once("unreadable", "%s is neither a sitemap nor a feed that can be read; it announces nothing", shown(url))
            return None
        if source.limit:
            self._trap("source", url, 1)
        elif not source.is_whole:
            self._warn_once("damaged", "%s is damaged: what could be read of it announces pages", url)
        for reason, (entries, example) in source.dropped.items():
            self._trap(reason, example, entries)
        return source

    def _speaker(self, lease: Lease, request: Any, url: str) -> Speaker:
        vouched_for = {str(domain) for domain in request.meta.get(VOUCHED, ())} | self._vouched.get(lease.handout.record["url"], set())
        urls = [lease.handout.record["url"], url]
        return Speaker(urls, vouched_for, self._settings, names_sources=_is_robots(url))

    def _warn_once(self, topic: str, message: str, url: str) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning(message + " (further ones are counted, not logged)", shown(url))

    def announce(self, response: Any, **_: Any) -> Iterator[Request]:
        """Take the callback's place for a source: yield its entries that are new or have changed since it was read before."""
        lease: Lease = response.meta[LEASE]
        source, handout = lease.source, lease.handout
        if source is None:
            return
        unread = handout.elapsed + time.monotonic() - handout.received if handout.row.visits and handout.memory.entries else -1.0
        announcement = Announcement(f"{host_of(response.url)} {source.kind}", unread)
        child = self._child_meta(lease, response, source)
        is_done = False
        try:
            for entry in self._filter(source.news(handout.memory.entries)):
                try:
                    request = self._request(entry, source, announcement, handout.row.importance, child)
                except ValueError:  # Scrapy makes no request of it
                    self._trap(UNREADABLE, entry.url, 1)
                    continue
                if request is not None:
                    yield request
                if self._is_closing():
                    return  # the rest is news at the next visit
            is_done = True
        finally:
            if lease.observation is not None and lease.observation.op == KEEP:
                lease.observation = after_entries(lease.observation, source.remembered if is_done else None)

    def _is_closing(self) -> bool:
        engine = getattr(getattr(self._spider, "crawler", None), "engine", None)
        return engine is not None and is_closing(engine)

    def _child_meta(self, lease: Lease, response: Any, source: Source) -> dict[str, Any] | None:
        """Return what goes with the sources that a source names: how deep they are, and who vouches for them; None: they are too deep."""
        if source.kind not in ("index", "robots"):
            return {}
        nesting = int(response.meta.get(NESTING, 0)) + 1
        if nesting > self._settings.source_limits.nesting:
            self._trap("source", response.url, len(source.entries))
            return None
        domains = sorted(self._speaker(lease, response.request, response.url).domains)[:_MOST_VOUCHERS]
        if source.kind == "robots":
            for entry in source.entries:
                if len(self._vouched) < _MOST_VOUCHED or entry.url in self._vouched:
                    self._vouched.setdefault(entry.url, set()).update(domains)
        return {NESTING: nesting, VOUCHED: domains}

    def _request(
        self, entry: Entry, source: Source, announcement: Announcement, importance: float, child: dict[str, Any] | None
    ) -> Request | None:
        if child is None:
            return None
        meta: dict[str, Any] = {}
        if entry.modified is not None:
            meta = {"lastmod": entry.lastmod, ANNOUNCED: announcement}
        if source.kind in ("index", "robots"):
            return self._source_request(entry.url, importance, _SOURCE_PRIORITY, **meta, **child)
        if self._has_priorities and entry.priority:
            meta["importance"] = entry.priority
        priority = _NEWS_PRIORITY if announcement.unread >= 0 else 0
        for pattern, callback in self._callbacks:
            if pattern.search(entry.url):
                return Request(entry.url, callback=callback, meta=meta, priority=priority)
        return None


class _Pauses:
    """Lets the other threads run for as long as this one has run since the pause before."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def __call__(self) -> None:
        time.sleep(min(time.monotonic() - self._since, _LONGEST_PAUSE_S))
        self._since = time.monotonic()


async def rest(number: int) -> None:
    """Leave some time for the rest of the crawl, now and then, while the entries of a source are passed on; ``number`` of them were."""
    if number % _BREATH == 0:
        await pause(_REST_S)


def without_body(response: Response) -> Response:
    """Return a response to a source that was read, as Scrapy gets it; the same one where its class cannot be made without a body.

    While a callback yields, its body counts: beside a long one no request is started (SCRAPER_SLOT_MAX_ACTIVE_SIZE).
    """
    # To find the true encoding takes reading all of the body.
    known: dict[str, Any] = {"body": b"", "encoding": "utf-8"}
    try:
        return type(response)(**{name: known[name] if name in known else getattr(response, name) for name in response.attributes})
    except Exception as error:  # of a class of the user's
        logger.debug("%s keeps its body: %r", response, error)
        return response


def _is_robots(url: str) -> bool:
    return url.partition("?")[0].endswith("/robots.txt")


def _said(spider: Any, name: str) -> Any:
    return getattr(spider, name, getattr(AnnouncedPages, name))
