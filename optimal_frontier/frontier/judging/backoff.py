"""How long a page is left alone after failures: twice as long after each, up to a day or its interval."""

from __future__ import annotations

from typing import Final

from optimal_frontier.frontier.judging.outcomes import REFUSED_CAUSES
from optimal_frontier.state.rows import Row

#: Longest wait after failures, seconds.
LONGEST_BACKOFF_S: Final = 86_400.0
#: A page that may not be fetched (robots.txt, a middleware) waits as if it had failed so often before: more than half an hour.
BEFORE_REFUSED: Final = 11
#: When to look again at a page that is gone: after this share of its interval, and after so many seconds at most.
GONE_SHARE: Final = 0.1
LONGEST_GONE_S: Final = 3600.0

#: Doublings after which it is more than a day.
_MOST_DOUBLINGS: Final = 17


def backoff_s(page: bytes, failures: int) -> float:
    """Return the least seconds between two attempts after failures in a row: between half and all of 2, 4, 8, ... up to a day.

    Parameters
    ----------
    page : bytes
        Its identity: pages that failed together do not come again together. The same page and number of failures give the same wait.
    failures : int
        So many in a row, > 0.

    Examples
    --------
    >>> [round(backoff_s(b"one page", failures), 1) for failures in (1, 2, 3, 40)]
    [1.6, 3.7, 4.3, 49882.4]
    """
    return float(min(LONGEST_BACKOFF_S, 2.0 ** min(failures, _MOST_DOUBLINGS)) * _part(page, failures))


def _part(page: bytes, failures: int) -> float:
    """Half to all of a wait."""
    jitter = (int.from_bytes(page[:4], "little") * 0.6180339887498949 + failures * 0.7548776662466927) % 1.0
    return 1.0 - 0.5 * jitter


def counted_failures(row: Row) -> int:
    """Return by how many failures in a row a page waits: one that may not be fetched is left alone for long."""
    return row.failures + BEFORE_REFUSED if row.cause in REFUSED_CAUSES else row.failures


def wait_after_failures(page: bytes, row: Row, shortest: float, interval: float | None) -> float:
    """Return the seconds until a page is looked at again that failed last time.

    Parameters
    ----------
    page : bytes
        Its identity.
    row : Row
        As it is from now on.
    shortest : float
        Its shortest wait, seconds.
    interval : float or None
        That at which it would be revisited, seconds; None where that says nothing of how urgent it is. A page that is gone is rechecked
        after its backoff or 10% of its interval (one hour at most), whichever is longer. Another one is tried again soon once, and then
        after as long as that, and twice as long each time, up to a day or its interval: it is no more urgent than if it were there, and
        takes no more of the budget.
    """
    wait = max(shortest, backoff_s(page, counted_failures(row)))
    if interval is None:
        return wait
    soon = min(LONGEST_GONE_S, GONE_SHARE * interval)
    if row.gone:
        return max(wait, soon)
    part = _part(page, row.failures)
    later = soon * 2.0 ** min(row.failures - 2, _MOST_DOUBLINGS) * part if row.failures > 1 else 0.0
    return max(wait, min(later, max(LONGEST_BACKOFF_S * part, interval)))
