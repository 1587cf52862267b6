"""Requests that cannot be stored: they wait in memory, and are fetched once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from optimal_frontier.integrations.scrapy.compatibility import call_later

#: Identities that are remembered; the oldest are forgotten, and fetched once more if they are yielded again.
_MOST_SEEN: Final = 200_000


class UnstoredRequests:
    """First in, first out, at most `rate` of them per second.

    Parameters
    ----------
    rate : float or None
        The budget, fetches per second; None: no limit.
    look : callable
        Lets the engine ask again when the next one may go.
    """

    def __init__(self, rate: float | None, look: Callable[[], None]) -> None:
        self._rate, self._look = rate, look
        self._waiting: deque[Any] = deque()
        self._seen: dict[bytes, None] = {}
        self._free_at = 0.0
        self._called = False

    def __bool__(self) -> bool:
        """Whether any wait."""
        return bool(self._waiting)

    def add(self, request: Any, identity: bytes, *, again: bool) -> bool:
        """Take a request; False if one of its identity was taken before, unless it is to be fetched `again`."""
        if identity in self._seen and not again:
            return False
        if len(self._seen) >= _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._seen[identity] = None
        self._waiting.append(request)
        return True

    def take(self) -> Any:
        """Return the next one, or None if none waits or the budget has none left for it."""
        return self._waiting.popleft() if self._waiting and self._may_go() else None

    def _may_go(self) -> bool:
        if self._rate is None:
            return True
        now = time.monotonic()
        if now < self._free_at:
            if not self._called:
                self._called = True
                call_later(self._free_at - now, self._called_back)
            return False
        self._free_at = max(self._free_at, now - 1 / self._rate) + 1 / self._rate
        return True

    def _called_back(self) -> None:
        self._called = False
        self._look()
