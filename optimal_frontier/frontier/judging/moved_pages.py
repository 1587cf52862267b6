"""What a page is under another name, and what two pages are that become one."""

from __future__ import annotations

from typing import Final, NamedTuple

from optimal_frontier.frontier.admitting.revival import brought_back
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.state.rows import CHECKED, MOST_FAILED, RETIRED, SIGNALLED, TIMED, UNCONDITIONAL, Row

#: Pages with one of these flags keep their numbers: they are not about the interval.
_OF_ANOTHER_CAUSE: Final = UNCONDITIONAL | SIGNALLED | CHECKED | TIMED


def rebounded(row: Row, like: Row) -> Row:
    """Return a row with the importance, bounds and timetable flag of another, and its numbers within the new bounds.

    Until its next visit, or the next plan, a page that was pinned keeps its interval where the new bounds allow it.
    """
    flags = row.flags & ~TIMED | like.flags & TIMED
    changed = row._replace(flags=flags, importance=like.importance, min_interval=like.min_interval, max_interval=like.max_interval)
    if row.failures or row.b == 0 or (row.flags | flags) & _OF_ANOTHER_CAUSE:
        return changed
    shortest, longest = like.min_interval, like.max_interval
    if like.is_pinned:
        a, s, e, longest = fixed(shortest)
        return changed._replace(a=a, s=s, e=e, l=longest)
    # A longest wait below the longest interval was chosen to learn.
    return changed._replace(e=shortest, l=max(shortest, longest if row.l >= row.max_interval else min(row.l, longest)))


class Merged(NamedTuple):
    """What two pages that become one are.

    Attributes
    ----------
    row : Row
    takes_over : bool
        The row has the history of the page that moved, as the one that was there was never seen.
    """

    row: Row
    takes_over: bool


def merge(there: Row, moved: Row, now: float) -> Merged:
    """Return the row of a page onto which another one has moved.

    It keeps its history; one that was never seen takes over what is known of the other. It has the larger importance. A retired one comes
    back.

    Parameters
    ----------
    there, moved : Row
        Of the page that was there, and of the one that moved onto it.
    now : float
        Server's time, seconds since the epoch.
    """
    importance = max(there.importance, moved.importance)
    takes_over = there.visits == 0 and moved.visits > 0
    if takes_over:
        like = there._replace(importance=importance)
        row = moved._replace(
            host=there.host,
            pattern=there.pattern,
            directory=there.directory,
            failed=min(MOST_FAILED, there.failed + moved.failed),
        )
        return Merged(rebounded(row, like), True)
    row = there._replace(importance=importance)
    if there.state == RETIRED:
        row = brought_back(row, max(now, row.b / 1e6 + row.min_interval) if row.visits else now)
    return Merged(row, False)
