"""CLOSE_AFTER: when a crawl is complete."""

from __future__ import annotations

import threading
from typing import Final

from optimal_frontier.frontier.judging.outcomes import REFUSED_CAUSES
from optimal_frontier.frontier.judging.retry_after import is_put_off
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, HELD, Row

#: Rows that are read at once, and reads of one look.
_COUNT: Final = 500
_READS: Final = 20
#: Attempts at a page whose host has asked for fewer requests each time, and that nobody has seen yet: as many as Scrapy would make at once.
_TRIES: Final = 3


class Completion:
    """Looks whether every page was fetched so many times.

    A look reads a bounded number of rows and goes on where the last one ended. A crawl is complete when all partitions were read from end
    to end without a page that lacks visits, and none arrived meanwhile. Threads look one after another.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    wanted : int
        CLOSE_AFTER: attempts of each page that is revisited. Others are fetched once, and those that may not be fetched are asked once.
        Where a host has asked for fewer requests (429), a page that was never seen is tried three times at least.
    """

    def __init__(self, namespace: Namespace, wanted: int) -> None:
        self._namespace = namespace
        self._wanted = wanted
        self._partition = 0
        self._cursor = b"0"
        self._arrivals = ""
        self._lacking: bytes | None = None
        self._looking = threading.Lock()

    def look(self) -> bool:
        """Tell whether it is so.

        Raises
        ------
        StateError
            What Redis reports.
        """
        with self._looking:
            return self._look()

    def _look(self) -> bool:
        arrivals, is_throttled = "", False
        fields = ("pending", "failures_throttled", "arrivals", "moved", "retired")
        for partition in range(self._namespace.partitions):
            stats = self._namespace.key("stats", partition)
            pending, throttled, *arrived = self._namespace.command("HMGET", stats, *fields, partition=partition)
            if int(pending or 0) > 0:
                return False
            is_throttled |= int(throttled or 0) > 0
            arrivals += f"{arrived} "
        if self._wanted == 1 and not is_throttled:
            return True
        if arrivals != self._arrivals:
            self._arrivals, self._partition, self._cursor, self._lacking = arrivals, 0, b"0", None
        for _ in range(_READS):
            if self._lacks():
                return False
            if self._partition == self._namespace.partitions:
                # What was true of each page once is true of all: attempts only grow (a 429 that comes meanwhile counts at the next look).
                self._partition, self._cursor = 0, b"0"
                return True
        return False

    def _lacks(self) -> bool:
        """Read some rows; tell whether a page among them lacks visits. If none does, the next read goes on behind them."""
        key, partition = self._namespace.key("pages", self._partition), self._partition
        if self._lacking is not None:
            value = self._namespace.command("HGET", key, self._lacking, partition=partition)
            if value is not None and self._is_lacking(value):
                return True
            self._lacking = None
        cursor, flat = self._namespace.command("HSCAN", key, self._cursor, "COUNT", _COUNT, partition=partition)
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        self._lacking = next((page for page, value in pairs if self._is_lacking(value)), None)
        if self._lacking is not None:
            return True
        self._cursor = cursor
        if int(cursor) == 0:
            self._partition, self._cursor = self._partition + 1, b"0"
        return False

    def _is_lacking(self, value: bytes) -> bool:
        if len(value) < HEAD_BYTES:
            return False  # it is damaged
        row = Row.unpack(value)
        is_refused = row.failures > 0 and row.cause in REFUSED_CAUSES
        wanted = max(self._wanted, _TRIES) if is_put_off(row) else self._wanted
        return row.state == ACTIVE and row.attempts < wanted and not row.flags & HELD and not is_refused
