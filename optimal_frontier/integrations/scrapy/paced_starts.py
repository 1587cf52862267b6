"""The last look at a request before it is sent: whether its lease is held, and whether its host has a turn for it.

What the frontier hands out comes with a turn of its host (see `held_leases`). Everything else (redirects, retries, robots.txt, requests
from memory) takes one. A host that paces is told when each fetch begins, in whichever process. Now and then the addresses of hosts are
forgotten here, so that they are looked up again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from scrapy.exceptions import IgnoreRequest

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.integrations.scrapy.compatibility import Sent, forget_addresses, is_closing, pause
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.state.scripts import LONGEST_TURN_S

#: Seconds for which addresses of hosts are known: sites move while a crawl runs, and balancers of load have names that last a minute.
ADDRESSES_S: Final = 300.0
#: Seconds between two looks whether a turn was given.
_LOOK_S: Final = 0.005
#: Longest wait for Redis to give one, seconds, and for the turn itself: a second less, as one that is further off was not taken.
_ANSWER_S: Final = 30.0
_LONGEST_S: Final = LONGEST_TURN_S - 1.0


class PacedStarts:
    """Stands between the downloader's slots and the network.

    Parameters
    ----------
    crawler : Crawler
        With its engine, once requests come.
    courier : Courier
        Started.
    pay : callable
        Draws the budget for a request that is sent once more.
    """

    def __init__(self, crawler: Any, courier: Courier, pay: Callable[[Any], None]) -> None:
        self._crawler = crawler
        self._courier = courier
        self._pay = pay
        self._known_until = time.monotonic() + ADDRESSES_S

    async def before(self, request: Any, *, is_again: bool = False) -> Sent | None:
        """Wait for the turn of a request's host; called right before it is sent. Return what is to be called when it was.

        ``is_again``: Twisted has lost the connection that it was sent over, and sends it over another one. That is a fetch more.

        Raises
        ------
        IgnoreRequest
            It is not to be sent: its lease is lost, or no turn came; or the spider closes, and it is a page or a robots.txt.
        """
        sent = await self._its_turn(request)
        if is_again:
            self._pay(request)
        if (now := time.monotonic()) >= self._known_until:
            self._known_until = now + ADDRESSES_S
            forget_addresses()
        if (lease := _lease_of(request)) is not None:
            lease.note_start()
        return sent

    async def _its_turn(self, request: Any) -> Sent | None:
        self._check(request)
        if self._courier.pause_s <= 0 or not request.url.startswith(("http://", "https://")):
            return None
        host = host_of(request.url)
        turn = self._courier.use_turn(host)
        if turn is None:
            while turn is None:
                try:
                    turn = await self._take_turn(host, request)
                except IgnoreRequest:
                    if not _asks_robots_txt(request) or self._is_left(request):
                        self._give_back(request)
                        raise
                    await pause(1.0)
            try:
                self._check(request)
            except IgnoreRequest:
                self._courier.note_start(host, turn, is_never=True)
                raise
        return partial(self._courier.note_start, host, turn)

    def _check(self, request: Any) -> None:
        lease = _lease_of(request)
        if lease is not None and (lease.is_lost or not self._courier.holds(lease.handout)):
            self._give_back(request)
            raise IgnoreRequest("its lease was lost")

    @staticmethod
    def _give_back(request: Any) -> None:
        """Let the page be due again: that it is not fetched is no failure of its own."""
        if (lease := _lease_of(request)) is not None:
            lease.is_given_back = True

    def _is_left(self, request: Any) -> bool:
        """Tell whether a request is left unsent, as the spider closes: a page comes again, and robots.txt is asked for pages alone.

        Everything else is finished, as Scrapy does: a callback that downloads something would raise, and an item would have no images.
        """
        return (_lease_of(request) is not None or _asks_robots_txt(request)) and is_closing(self._crawler.engine)

    async def _take_turn(self, host: str, request: Any) -> float:
        """Wait for the turn, unless that is long, and return its name."""
        turn, asked, is_used = self._courier.take_turn(host), time.monotonic(), False
        try:
            while not turn.at:
                await pause(_LOOK_S)
                # It may lie with a page that was handed out meanwhile, and that waits for this one: for its robots.txt.
                found = self._courier.use_turn(host)
                if found is not None:
                    return found
                if self._is_left(request) or time.monotonic() > asked + _ANSWER_S:
                    raise IgnoreRequest(f"{host} has given no turn")
            while (left := turn.at - time.monotonic()) > 0:
                if self._is_left(request) or left > max(_LONGEST_S, 2 * self._courier.pause_s):
                    raise IgnoreRequest(f"{host} has no turn for {left:.0f} s")
                if left > _LONGEST_S:
                    break  # of a host that is asked this seldom: what comes after this fetch waits the longer
                await pause(min(left, 1.0))
            is_used = True
            return turn.awaited
        finally:
            turn.is_wanted = False  # before the look: what is given from now on is given back by the courier
            if turn.at and not is_used:
                self._courier.note_start(host, turn.awaited, is_never=True)


def _lease_of(request: Any) -> Lease | None:
    """Return the lease under which a request is fetched; a download of a spider's own may have a copy of it in its meta."""
    lease: Lease | None = request.meta.get(LEASE)
    return lease if lease is not None and lease.request is request else None


def _asks_robots_txt(request: Any) -> bool:
    """Tell whether Scrapy asks for robots.txt: would that fail, it took all pages of the host for allowed, for as long as it runs."""
    return bool(request.meta.get("dont_obey_robotstxt")) and request.url.endswith("/robots.txt")
