"""Requests that this process fetches itself, from memory: those that belong to its session, and those that cannot be stored.

Cookies are per process, so a request that logs in, or any other that is no GET, is of the process that yielded it. So is one whose callback
or meta cannot be stored. No queue in Redis holds it, and no other process sees it. The page that it was found on is done when it is done:
if the process is killed, the lease of that page expires, and its next visit yields the request again.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.integrations.scrapy.compatibility import call_later, forget_tree
from optimal_frontier.integrations.scrapy.lease import LOCAL, Companion, Lease
from optimal_frontier.integrations.scrapy.request_classes import copy_request

#: Identities that are remembered; the oldest are forgotten, and fetched once more if they are yielded again.
_MOST_SEEN: Final = 200_000
#: What a gated request is called whose callback raised.
CALLBACK_FAILED: Final = "its callback raised"


@dataclass(eq=False, repr=False)
class Local(Companion):
    """The runtime companion of a request that is fetched from memory.

    Attributes
    ----------
    request : scrapy Request
        The latest copy (redirects and retries replace it).
    parent : Lease or None
        Of the page that it was found on, which waits for it.
    is_gated : bool
        Nothing stored is handed out before it has ended.
    session : int
        Number of the log-in that it belongs to.
    handed : bool
        The engine has the latest copy.
    is_answered : bool
        The engine has what it gets; a later copy of the request is the spider's, not a redirect or retry.
    error : str
        Why it failed; empty: a good response came.
    is_repeated : bool
        Its session had ended: it is to be fetched again.
    repeats : int
        How often it was.
    added : frozenset of str
        Names that we put into the request's meta.
    identity : bytes
        By which it is known.
    response : scrapy Response or None
        What came.
    anew : int
        Requests that middlewares have made anew in its place.
    """

    request: Any
    parent: Lease | None = None
    is_gated: bool = False
    session: int = 0
    handed: bool = False
    is_answered: bool = False
    error: str = "it was dropped"
    is_repeated: bool = False
    repeats: int = 0
    added: frozenset[str] = frozenset()
    identity: bytes = b""
    response: Any = None
    anew: int = 0

    def __post_init__(self) -> None:
        self._first = copy_request(self.request)

    def begin_again(self) -> None:
        """Be as it was when it was yielded."""
        self.request = copy_request(self._first)
        self.request.meta[LOCAL] = self
        self.repeats, self.anew = self.repeats + 1, 0
        self.handed = self.is_answered = self.is_repeated = False

    def answer(self, error: str) -> None:
        """Note what came: nothing is wrong with it if ``error`` is empty."""
        self.is_answered, self.error = True, error

    def forget_answer(self) -> None:
        """Be as it was before the answer: the engine does not get it."""
        self.is_answered, self.response = False, None


class LocalRequests:
    """Waiting ones go by priority, at most `rate` of them a second; gated ones and copies at once.

    Parameters
    ----------
    rate : float or None
        The budget, fetches per second; None: no limit.
    host_delay : float
        Least seconds between two requests of this process to a host.
    look : callable
        Lets the engine ask again when the next one may go.
    """

    def __init__(self, rate: float | None, host_delay: float, look: Callable[[], None]) -> None:
        self._rate, self._host_delay, self._look = rate, host_delay, look
        self._first: deque[Local] = deque()
        self._waiting: dict[str, list[tuple[int, int, Local]]] = {}
        self._order = count()
        self._live: set[Local] = set()
        self._handed: set[Local] = set()
        #: How many gated ones wait, or are under way.
        self.gated = 0
        #: Number of the last log-in.
        self.session = 0
        self._seen: dict[bytes, None] = {}
        self._seen_in_session: dict[bytes, None] = {}
        self._free_at = 0.0
        self._open_at: dict[str, float] = {}
        self._called_for = float("inf")

    def __bool__(self) -> bool:
        """Whether any wait, or are under way."""
        return bool(self._live)

    def add(self, local: Local, identity: bytes, *, again: bool) -> bool:
        """Take a request; False if one of its identity was taken before (gated ones: since the last log-in), unless it is to be fetched
        ``again``."""
        seen = self._seen_in_session if local.is_gated else self._seen
        if identity in seen and not again:
            return False
        if len(seen) >= _MOST_SEEN:
            del seen[next(iter(seen))]
        seen[identity] = None
        local.identity = identity
        local.request.meta[LOCAL] = local
        self._live.add(local)
        self.gated += local.is_gated
        if local.parent is not None:
            local.parent.children += 1
        if local.is_gated:
            self._first.append(local)
        else:
            self._wait(local)
        return True

    def _wait(self, local: Local) -> None:
        heap = self._waiting.setdefault(host_of(local.request.url), [])
        heapq.heappush(heap, (-local.request.priority, next(self._order), local))

    def follow(self, request: Any) -> bool:
        """Take a redirected or retried copy of a request that is under way; False if ``request`` is none."""
        local: Local | None = request.meta.get(LOCAL)
        if local is None or local not in self._live or local.is_answered:
            return False
        local.request, local.handed = request, False
        self._handed.discard(local)
        self._first.append(local)
        return True

    def hold(self, host: str, seconds: float) -> None:
        """Leave a host alone for a while."""
        self._open_at[host] = max(self._open_at.get(host, 0.0), time.monotonic() + seconds)

    def take(self, *, is_shut: bool) -> Any:
        """Return the next request, or None if none waits that may go: while the gate is shut, gated ones and copies may."""
        local = self._first.popleft() if self._first else None if is_shut else self._next_waiting()
        if local is None:
            return None
        local.handed, local.session = True, self.session
        self._handed.add(local)
        return local.request

    def _next_waiting(self) -> Local | None:
        if not self._waiting:
            return None
        now = time.monotonic()
        opens = {host: max(self._free_at, self._open_at.get(host, 0.0)) for host in self._waiting}
        ready = [host for host, at in opens.items() if at <= now]
        if not ready:
            self._call_at(min(opens.values()), now)
            return None
        host = min(ready, key=lambda host: self._waiting[host][0][:2])
        heap = self._waiting[host]
        local = heapq.heappop(heap)[2]
        if not heap:
            del self._waiting[host]
        if self._rate is not None:
            self._free_at = max(self._free_at, now - 1 / self._rate) + 1 / self._rate
        if self._host_delay > 0:
            self.hold(host, self._host_delay)
        return local

    def _call_at(self, at: float, now: float) -> None:
        if at < self._called_for:
            self._called_for = at
            call_later(at - now, self._called_back)

    def _called_back(self) -> None:
        self._called_for = float("inf")
        self._look()

    def reap(self, alive: Collection[Any]) -> list[Local]:
        """Return those that have ended: the engine has finished with them, whichever way."""
        over = [local for local in self._handed if local.request not in alive]
        self._handed.difference_update(over)
        ended = [local for local in over if not local.is_repeated]
        for local in over:
            forget_tree(local.response)
            local.response = None
            if local.is_repeated:
                local.begin_again()
                self._wait(local)
        for local in ended:
            self._live.discard(local)
            self.gated -= local.is_gated
            if local.parent is not None:
                local.parent.children -= 1
        return ended

    def forget(self, local: Local) -> None:
        """Let a request of its identity be taken once more: what it brought was lost."""
        self._seen.pop(local.identity, None)

    def begin_session(self, number: int) -> None:
        """Let the requests of a log-in be made again; what the last session was asked for and has not answered is to be repeated."""
        self.session = number
        self._seen_in_session.clear()
        for local in self._handed:
            if not local.is_gated and not local.is_answered:
                local.is_repeated = True
