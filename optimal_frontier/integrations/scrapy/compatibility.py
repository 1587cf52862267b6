"""Everything that depends on Scrapy's version or reaches into its engine, in one place."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final, TypeVar

from scrapy import signals
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.extensions.httpcache import DummyPolicy
from scrapy.resolver import dnscache
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from scrapy.utils.conf import closest_scrapy_cfg, get_config
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

logger = logging.getLogger(__name__)
_T = TypeVar("_T")
#: Called when a request was sent.
Sent = Callable[[], None]

#: Seconds between two looks whether the engine runs.
_ENGINE_START_S: Final = 0.02


def engine_slot(engine: Any) -> Any:
    """Return the engine's slot (Scrapy 2.13 made it private), or None before the spider is open."""
    return getattr(engine, "_slot", None) or getattr(engine, "slot", None)


def in_progress(engine: Any) -> set[Any]:
    """Return the requests that the engine has and has not finished with, callback output included."""
    slot = engine_slot(engine)
    return slot.inprogress if slot is not None else set()


def forget_tree(response: Any) -> None:
    """Let go of the tree that a response was parsed into; who asks for it later has it parsed again.

    Tree and response lead to each other, so the memory of both would wait for a collection.
    """
    if getattr(response, "_cached_selector", None) is not None:
        response._cached_selector = None


def schedule_next_call(engine: Any) -> None:
    """Let the engine ask the scheduler at once instead of at its next heartbeat."""
    slot = engine_slot(engine)
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def jitter_of_slot(slot: Any) -> float:
    """Return the share by which the delay of a downloader's slot is random, either way (up to Scrapy 2.18 a half, or nothing)."""
    jitter = getattr(slot, "jitter", None)
    return float(jitter) if jitter is not None else 0.5 * bool(slot.randomize_delay)


def middlewares_of(crawler: Any) -> dict[str, Sequence[Any]]:
    """Return the middlewares that run, by the setting that names them."""
    engine = crawler.engine
    return {
        "DOWNLOADER_MIDDLEWARES": engine.downloader.middleware.middlewares,
        "SPIDER_MIDDLEWARES": engine.scraper.spidermw.middlewares,
    }


def is_taken(crawler: Any, request: Any, status: int) -> bool:
    """Tell whether callbacks are given a response of this status, which is no success, as `HttpErrorMiddleware` decides that."""
    filters = [each for each in middlewares_of(crawler)["SPIDER_MIDDLEWARES"] if isinstance(each, HttpErrorMiddleware)]
    if not filters or request.meta.get("handle_httpstatus_all"):
        return True
    if "handle_httpstatus_list" not in request.meta and filters[0].handle_httpstatus_all:
        return True
    allowed = getattr(crawler.spider, "handle_httpstatus_list", filters[0].handle_httpstatus_list)
    with contextlib.suppress(TypeError):  # a number in place of a list: Scrapy tells of that
        return status in request.meta.get("handle_httpstatus_list", allowed)
    return False


def http_cache(crawler: Any) -> Any:
    """Return the crawler's HttpCacheMiddleware, or None where it is not enabled."""
    found = (each for each in middlewares_of(crawler)["DOWNLOADER_MIDDLEWARES"] if isinstance(each, HttpCacheMiddleware))
    return next(found, None)


def dummy_cache(crawler: Any) -> Any:
    """Return the crawler's HttpCacheMiddleware if it never validates what it holds (DummyPolicy), or None."""
    cache = http_cache(crawler)
    return cache if cache is not None and isinstance(cache.policy, DummyPolicy) else None


def project_dir() -> Path:
    """Return the directory that holds ``.scrapy``: that of scrapy.cfg, or where the process stands.

    As `scrapy.utils.project.data_path` has it, which makes ``.scrapy``: a project may lie where nobody can write, with its state in Redis.
    """
    scrapy_cfg = closest_scrapy_cfg()
    if not scrapy_cfg:
        return Path.cwd()
    config = get_config()
    if config.has_option("datadir", "default"):
        return Path(config.get("datadir", "default")).absolute().parent
    return Path(scrapy_cfg).parent


def forget_addresses() -> None:
    """Have the addresses of all hosts looked up again; else Scrapy's resolvers go by the first answer until the process ends."""
    dnscache.clear()


def thread_safe_caller() -> Callable[[Callable[[], Any]], Any]:
    """Return what passes a function to the loop that runs the crawl; call it on that loop."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        call: Callable[[Callable[[], Any]], Any] = _reactor().callFromThread
        return call


def call_later(seconds: float, function: Callable[[], Any]) -> None:
    """Call ``function`` on the loop that runs the crawl, after a while."""
    try:
        asyncio.get_running_loop().call_later(seconds, function)
    except RuntimeError:
        _reactor().callLater(seconds, function)


def looks_at_one_page(crawler: Any) -> bool:
    """Tell whether this is ``scrapy fetch``, ``view``, ``parse``, ``check`` or ``shell``, and not a crawl."""
    # Scrapy says so nowhere: the first four replace the start of the spider's class, the shell brings defaults of its own.
    for name in ("start", "start_requests"):
        if str(getattr(getattr(type(crawler.spider), name, None), "__module__", "")).startswith("scrapy.commands."):
            return True
    names = ("DUPEFILTER_CLASS", "REMOTE_CONTROL_ENABLED", "KEEP_ALIVE")
    return any(crawler.settings.getpriority(name) == SETTINGS_PRIORITIES["command"] for name in names)


def _reactor() -> Any:
    from twisted.internet import reactor

    return reactor


def close_spider(engine: Any, spider: Any, reason: str) -> None:
    """Close the spider as soon as its engine runs; nothing happens if it is closing already."""
    if engine.spider is None:
        return
    if not engine.running:
        # Up to Scrapy 2.18 a spider that closes before the engine has started ends in a traceback.
        call_later(_ENGINE_START_S, lambda: close_spider(engine, spider, reason))
        return
    if hasattr(engine, "close_spider_async"):
        deferred_from_coro(engine.close_spider_async(reason=reason))
    else:
        engine.close_spider(spider, reason)


def fail_crawl(crawler: Any) -> None:
    """Let ``scrapy crawl`` exit with 1 once the crawl has ended: it does so for a crawler that is left without a spider."""

    def leave_without_spider() -> None:
        crawler.spider = None

    crawler.signals.connect(leave_without_spider, signals.engine_stopped, weak=False)


def is_closing(engine: Any) -> bool:
    """Tell whether the spider is closed, or about to be."""
    slot = engine_slot(engine)
    return slot is None or slot.closing is not None


async def start_of(crawler: Any) -> AsyncIterator[Any]:
    """Return what the spider's ``start()`` yields when it is asked anew, through all spider middlewares."""
    process_start = crawler.engine.scraper.spidermw.process_start
    # Up to Scrapy 2.13 the spider is an argument.
    argument = inspect.signature(process_start).parameters.get("spider")
    is_needed = argument is not None and argument.default is inspect.Parameter.empty
    start: AsyncIterator[Any] = await (process_start(crawler.spider) if is_needed else process_start())
    return start


def run_soon(coroutine: Coroutine[Any, Any, None]) -> Any:
    """Run a coroutine on the loop that runs the crawl; return what has ``cancel``. Its errors are logged."""
    running = deferred_from_coro(coroutine)
    running.addErrback(_log_error)
    return running


async def in_thread(threads: Executor, function: Callable[[], _T]) -> _T:
    """Run a function on another thread, and return what it returns, or raise what it raises."""
    call = thread_safe_caller()
    done: Deferred[_T] = Deferred()

    def run() -> None:
        try:
            result = function()
        except Exception as error:
            failure = Failure(error)  # type: ignore[no-untyped-call]  # twisted has no types there
            call(lambda: done.errback(failure))
        else:
            call(lambda: done.callback(result))

    threads.submit(run)
    return await maybe_deferred_to_future(done)


def _log_error(failure: Any) -> None:
    if not failure.check(CancelledError, asyncio.CancelledError):
        logger.error("start() failed when it was asked anew", exc_info=(failure.type, failure.value, failure.getTracebackObject()))


async def breathe() -> None:
    """Let the loop that runs the crawl do what else it has to."""
    await pause(0)


async def pause(seconds: float) -> None:
    """Wait on the loop that runs the crawl."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        over: Deferred[None] = Deferred()
        _reactor().callLater(seconds, over.callback, None)
        await over
    else:
        over = Deferred()
        asyncio.get_running_loop().call_later(seconds, over.callback, None)
        await maybe_deferred_to_future(over)


def look_before_downloads(downloader: Any, before: Callable[..., Coroutine[Any, Any, Sent | None]]) -> None:
    """Have ``before`` run, and waited for, between the slots of a downloader and the network; what it raises is the request's failure.

    What it returns is called when the request is sent, which may be long after if there is no connection yet. Twisted sends a request
    again by itself, over a new connection, when one that was kept open is lost before the answer. Where ``before`` has returned anything
    it runs before that, too, with ``is_again=True``.
    """
    handlers, starts = downloader.handlers, _Starts(before)
    if hasattr(handlers, "download_request_async"):
        download = handlers.download_request_async

        async def after_look(request: Any) -> Any:
            starts.expect(handlers, request, await before(request))
            return await download(request)

        handlers.download_request_async = after_look
        return
    download_request = handlers.download_request

    async def look_first(request: Any, *arguments: Any) -> Any:
        starts.expect(handlers, request, await before(request))
        return await maybe_deferred_to_future(download_request(request, *arguments))

    handlers.download_request = lambda request, *arguments: deferred_from_coro(look_first(request, *arguments))


def look_after_fetches(downloader: Any, after: Callable[[Any, Any], None]) -> None:
    """Call ``after`` with each request and what the engine gets for it: a response, a request to make instead, or a failure."""
    fetch = downloader.fetch

    def fetch_and_look(request: Any, *arguments: Any) -> Any:
        def look(result: Any) -> Any:
            after(request, result)
            return result

        return fetch(request, *arguments).addBoth(look)

    downloader.fetch = fetch_and_look


class _Starts:
    """Calls back when a request is sent: it asks the pool of its handler for a connection, right after it was expected."""

    def __init__(self, before: Callable[..., Coroutine[Any, Any, Sent | None]]) -> None:
        self._before = before
        #: The request that comes next, and who is told when it is sent.
        self._expected: tuple[Any, Sent] | None = None
        self._pools: list[Any] = []

    def expect(self, handlers: Any, request: Any, sent: Sent | None) -> None:
        """Take note that a request is handed to its handler next."""
        self._give_up(self._expected)
        if sent is None:
            return
        self._expected = expected = (request, sent)
        pool: Any = getattr(handlers._get_handler(urlparse_cached(request).scheme), "_pool", None)
        if hasattr(pool, "getConnection") and pool not in self._pools:
            pool.getConnection = self._watching(pool.getConnection)
            self._pools.append(pool)
        # A handler of another kind asks for none.
        call_later(0.0, lambda: self._give_up(expected))

    def _watching(self, get_connection: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def get(key: Any, endpoint: Any) -> Any:
            expected, self._expected = self._expected, None
            connection = get_connection(key, endpoint)
            if expected is None:
                return connection
            request, sent = expected
            return connection.addCallback(self._send_again_in_turn, request).addBoth(_and_then, sent)

        return get

    def _send_again_in_turn(self, connection: Any, request: Any) -> Any:
        """Have a kept connection that is lost be replaced when it is the request's turn again, not at once."""
        connect = getattr(connection, "_newConnection", None)  # of the wrapper that Twisted puts around a connection that was kept
        if connect is not None:

            async def in_turn() -> Any:
                sent = await self._before(request, is_again=True)
                new = connect()
                return await maybe_deferred_to_future(new if sent is None else new.addBoth(_and_then, sent))

            connection._newConnection = lambda: deferred_from_coro(in_turn())
        return connection

    def _give_up(self, expected: tuple[Any, Sent] | None) -> None:
        if expected is not None and self._expected is expected:
            self._expected = None
            _after_rounds(expected[1])


def _and_then(connection: Any, sent: Sent) -> Any:
    _after_rounds(sent)
    return connection


def _after_rounds(sent: Sent, rounds: int = 2) -> None:
    """Call ``sent`` when the loop has come round so often: with a connection a request is written in the first one or the second."""
    if rounds:
        call_later(0.0, lambda: _after_rounds(sent, rounds - 1))
    else:
        sent()
