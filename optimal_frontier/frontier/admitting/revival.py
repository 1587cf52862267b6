"""Retired pages that are linked to again."""

from __future__ import annotations

from typing import Final

from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.state.rows import ACTIVE, RETIRED, UNCONDITIONAL, Row

#: Seconds after which a link brings a retired page back the first time; twice as long each further time.
REVIVED_AFTER_S: Final = 86_400.0
LONGEST_RETIREMENT_S: Final = 30 * 86_400.0
#: Failures that a page has when it is retired, and from which on it stays so for the longest time.
_FIRST, _LAST = 2, 17


def due_at(row: Row, due: float, flags: int = 0) -> Row:
    """Return the row of a page that is due at ``due`` (seconds since the epoch) whatever the price, with flags that are added."""
    a, s, e, longest = fixed(max(0.0, due - row.b / 1e6))
    return row._replace(flags=row.flags | flags, a=a, s=s, e=e, l=longest)


def brought_back(row: Row, due: float, flags: int = 0) -> Row:
    """Return the row of a page that is active again, has not failed, and is due at ``due`` (seconds since the epoch)."""
    return due_at(row._replace(state=ACTIVE, failures=0, gone=0, cause=0), due, flags)


def revived(row: Row, now: float) -> Row | None:
    """Return the row of a retired page that a link brings back, or None: it stays as it is.

    Parameters
    ----------
    row : Row
        Of a page in no queue.
    now : float
        Server's time, seconds since the epoch.

    Notes
    -----
    Not at every visit of the pages that have the link: after a day, and twice as long each time, 30 days at most. The page keeps its
    failures, so one that is gone once more is retired at once. It is due now, not since the day on which it was retired.

    Examples
    --------
    >>> row = Row(state=RETIRED, b=0.0, failures=3, gone=2)
    >>> revived(row, 1.9 * REVIVED_AFTER_S), revived(row, 2.0 * REVIVED_AFTER_S).a / REVIVED_AFTER_S
    (None, 2.0)
    """
    retired_s = min(LONGEST_RETIREMENT_S, REVIVED_AFTER_S * 2.0 ** (max(_FIRST, min(row.failures, _LAST)) - _FIRST))
    if row.state != RETIRED or now < row.b / 1e6 + retired_s:
        return None
    return due_at(row._replace(state=ACTIVE), now)


def forced(row: Row) -> Row:
    """Return the row of a page that somebody wants now: it comes before all others, whatever was stored of it. A retired one comes back.

    Its next fetch brings a full answer and a callback.
    """
    return brought_back(row, 0.0, UNCONDITIONAL)
