"""What a host's answer says about when to come again: ``Retry-After``, 429 and 503."""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime
from typing import Final

from optimal_frontier.detection.modified import http_date
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.rows import ACTIVE, ONCE, Row

_TOO_MANY: Final = 429
#: Statuses with which a host asks for fewer requests.
SLOW_DOWN: Final = frozenset({_TOO_MANY, 503})
_THROTTLED: Final = CAUSES.index("throttled")
#: Seconds for which a host is left alone that asks for it without saying how long.
DEFAULT_HOLD_S: Final = 5.0
#: Longest hold that a host can ask for, seconds.
LONGEST_HOLD_S: Final = 3600.0


def hold_s(status: int, retry_after: bytes | None, date: bytes | None = None, now: float | None = None) -> float | None:
    """Return the seconds for which to send a host nothing more, or None if its answer does not ask for that.

    Parameters
    ----------
    status : int
        HTTP status.
    retry_after : bytes or None
        Value of the header ``Retry-After``: seconds, or an HTTP date (RFC 9110, 10.2.3). One that is neither counts as none.
    date : bytes or None
        Value of the header ``Date``: only the site's clock matters then.
    now : float, optional
        Seconds since the epoch, for a date in an answer without ``Date``; the local clock unless given.

    Examples
    --------
    >>> hold_s(429, b"30"), hold_s(503, None), hold_s(200, b"30")
    (30.0, 5.0, None)
    """
    if status not in SLOW_DOWN:
        return None
    told = None if date is None else http_date(date.decode("latin-1"))
    if told is None:
        told = time.time() if now is None else now
    seconds = _seconds(retry_after, told) if retry_after else None
    return DEFAULT_HOLD_S if seconds is None else min(max(0.0, seconds), LONGEST_HOLD_S)


def is_back_later(row: Row, status: int, hold: float) -> bool:
    """Tell whether a page comes again when its host takes requests, so that nobody needs to send this one again at once.

    That is so at 429 alone: 503 is often the answer of one server of several. What is forgotten after its fetch does not come again.

    Parameters
    ----------
    row : Row
        Of the page.
    status : int
        HTTP status.
    hold : float
        Of `hold_s`, seconds.
    """
    return status == _TOO_MANY and hold > 0.0 and row.state in (ACTIVE, ONCE)


def is_put_off(row: Row) -> bool:
    """Tell whether nobody has seen a page yet as its host asked for fewer requests: then it comes as soon as the host takes them."""
    return row.cause == _THROTTLED and row.failures > 0 and row.visits == 0


def _seconds(value: bytes, now: float) -> float | None:
    text = value.decode("latin-1").strip()
    try:
        if text.isascii() and text.isdigit():
            return float(text)
        at = parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return at if math.isfinite(at) else None
