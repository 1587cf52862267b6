"""Logging in again: when a response shows that the session has ended, its pages are given back, and ``start()`` is asked anew."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from scrapy import Request

from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.judging.outcomes import BLOCKED
from optimal_frontier.integrations.scrapy.compatibility import (
    breathe,
    call_later,
    close_spider,
    fail_crawl,
    in_progress,
    is_closing,
    run_soon,
    start_of,
)
from optimal_frontier.integrations.scrapy.gate import Gate
from optimal_frontier.integrations.scrapy.lease import GATE, LEASE, LOCAL, Lease
from optimal_frontier.integrations.scrapy.local_requests import Local, LocalRequests

logger = logging.getLogger(__name__)

#: Least seconds between two log-ins.
SPACING_S: Final = 1.0
#: Seconds before the next log-in, by how many in a row have changed nothing; after one more the spider is closed.
PAUSES_S = (2.0, 8.0, 32.0, 128.0)
#: Seconds that requests of the ended session are waited for: a late answer could bring a cookie that ends the new one.
DRAIN_S: Final = 30.0
#: Requests that are no page are repeated so often in a new session.
MOST_REPEATS: Final = 2
#: Reason of a spider that is closed because it cannot log in.
FAILED_REASON: Final = "optimal_frontier_log_in_failed"
#: Elements of ``start()`` between two pauses for the rest of the process.
_BREATH: Final = 100


class LogIn:
    """Starts the session over.

    A log-in has changed something if a page that was refused in the session before is good in its own, or if pages are good and none of
    those comes back refused.

    Parameters
    ----------
    crawler : Crawler
        Its spider's ``start()`` is asked for the requests that log in: those with ``meta["frontier_gate"]``.
    gate : Gate
        Shut until they have ended.
    requests : LocalRequests
        Takes them.
    leases : collection of Lease
        All that this process holds.
    look : callable
        Lets the engine ask again.
    """

    def __init__(self, crawler: Any, gate: Gate, requests: LocalRequests, leases: Collection[Lease], look: Callable[[], None]) -> None:
        self._crawler, self._gate, self._requests, self._leases, self._look = crawler, gate, requests, leases, look
        #: Number of the session: log-ins so far, but for the first.
        self.session = 0
        self._is_draining = False
        self._started: Any = None
        self._not_before = self._drain_until = 0.0
        #: Log-ins in a row that have changed nothing.
        self._failures = 0
        #: Pages that were refused in the last session, and in this one.
        self._refused_before: set[bytes] = set()
        self._refused: set[bytes] = set()
        self._is_proven = self._has_good = self._has_failed = False

    @property
    def is_under_way(self) -> bool:
        """Whether a log-in is awaited, or going on."""
        return self._is_draining or self._started is not None

    # What is found out.

    def again(self, of: Any) -> None:
        """Note that a response shows the end of the session; ``of`` is the response or its request."""
        request = getattr(of, "request", None) or of
        lease: Lease | None = request.meta.get(LEASE)
        local: Local | None = request.meta.get(LOCAL)
        if lease is not None:
            self._refuse_page(lease)
        elif local is not None and local.is_gated:
            local.answer("it is not logged in")
            if local.session == self.session and not self._is_draining:
                self._has_failed = True
                self._begin("the log-in failed")
        else:
            if local is not None:
                local.is_repeated = local.repeats < MOST_REPEATS
                if local.session < self.session or not local.is_repeated:
                    return
            if not self.is_under_way:
                self._begin(f"{shown(request.url)} is not logged in")

    def _refuse_page(self, lease: Lease) -> None:
        page = lease.handout.page
        if lease.session < self.session:
            lease.is_given_back = True
            self._refused_before.add(page)
            return
        is_second = page in self._refused_before and not self._has_failed
        if is_second and (self._is_proven or page not in self._refused):
            # It may be this page alone that the account does not get.
            self._refused.add(page)
            lease.error = BLOCKED
            logger.warning(
                "%s is not logged in right after a log-in; this counts as a failure of the page", shown(lease.handout.record["url"])
            )
            return
        self._refused.add(page)
        lease.is_given_back = True
        self._begin(f"{shown(lease.handout.record['url'])} is not logged in")

    def note_good(self, lease: Lease) -> None:
        """Note a visit that was good."""
        if lease.session == self.session:
            self._has_good = True
            if lease.handout.page in self._refused_before:
                self._refused_before.discard(lease.handout.page)
                self._is_proven = True

    def note_end(self, local: Local) -> None:
        """Note the end of a request of the process's own."""
        if local.is_gated and local.error and local.session == self.session and not self._is_draining:
            self._has_failed = True
            logger.warning("%s has meta frontier_gate, and failed (%s); the gate opens all the same", local.request, local.error)

    # What is done.

    def _begin(self, why: str) -> None:
        """End the session: give its pages back, and log in when they are."""
        came_back = self._refused & self._refused_before
        if self._is_proven or (self._has_good and not came_back and not self._has_failed):
            self._failures = 0
        else:
            self._failures += 1
        self._crawler.stats.inc_value("optimal_frontier/log_ins")
        self.stop()
        self.session += 1
        self._requests.begin_session(self.session)
        self._refused_before, self._refused = self._refused, set()
        self._is_proven = self._has_good = self._has_failed = False
        alive = in_progress(self._crawler.engine)
        for lease in self._leases:
            if lease.request in alive:
                lease.is_given_back = True
        self._gate.is_held = True
        if self._failures > len(PAUSES_S):
            self._fail(f"{why} after {self._failures} log-ins in a row")
            return
        now = time.monotonic()
        pause = PAUSES_S[self._failures - 1] if self._failures else 0.0
        self._not_before = max(now + pause, self._not_before + SPACING_S)
        self._drain_until = max(self._not_before, now + DRAIN_S)
        self._is_draining = True
        logger.info("%s: logging in again%s", why, f" in {pause:g} s" if pause else "")
        for at in (self._not_before, self._drain_until):
            call_later(max(0.0, at - now), self._look)

    def look(self) -> None:
        """Go on with what is under way, if it is time."""
        if self._is_draining:
            now = time.monotonic()
            if now >= self._not_before and (now >= self._drain_until or not any(lease.is_given_back for lease in self._leases)):
                self._is_draining, self._not_before = False, now
                self._gate.is_held = False
                self._gate.begin_start()
                self._started = run_soon(self._start_again(self.session))
        elif self._started is not None and not self._gate.is_shut:
            self.stop()

    def stop(self) -> None:
        """Take nothing more of a ``start()`` that was asked anew."""
        started, self._started = self._started, None
        if started is not None:
            started.cancel()

    async def _start_again(self, session: int) -> None:
        """Make the gated requests of ``start()`` again; the others are known."""
        has_any, seen = False, 0
        async for element in await start_of(self._crawler):
            if session != self.session or is_closing(self._crawler.engine):
                return
            if isinstance(element, Request) and element.meta.get(GATE):
                has_any = True
                self._crawler.engine.crawl(element)
            seen += 1
            if seen % _BREATH == 0:
                await breathe()
        if not has_any:
            self._gate.is_held = True
            self._fail("start() yields no request with meta frontier_gate, so nothing can log in again")

    def _fail(self, why: str) -> None:
        logger.critical("optimal_frontier: %s; the spider is closed", why)
        fail_crawl(self._crawler)
        close_spider(self._crawler.engine, self._crawler.spider, FAILED_REASON)
