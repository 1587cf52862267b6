"""Handouts as the integrations get them, without a server."""

from __future__ import annotations

import time
from typing import Any

from scrapy import Request
from scrapy.utils.request import fingerprint

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import PAGE_BYTES, Handout
from optimal_frontier.state.rows import Row

#: When pages are handed out, seconds since the epoch; by the local clock it is now.
AT = 1_700_000_000.0


def handed_out(url: str, elapsed: float = 50.0, memory: Memory = NOTHING_REMEMBERED, **values: Any) -> Handout:
    """A page that was last seen so many seconds ago, if it was; ``values`` are of its row."""
    visits = values.setdefault("visits", 4)
    row = Row(**{"host": 1, "b": (AT - elapsed) * 1e6 if visits else 0.0, **values})
    page = fingerprint(Request(url))[:PAGE_BYTES]
    return Handout(0, page, 1.0, AT, time.monotonic(), None, 0.0, row, 0.0, {"url": url}, host_of(url), memory=memory)
