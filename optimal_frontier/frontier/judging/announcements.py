"""Pages that a source put forward: whether a visit was the one that is owed, and whether the announcer was right."""

from __future__ import annotations

from typing import Final

from optimal_frontier.state.memory import Announced

#: Failures in a row (an hour or two of them) after which the page loses its announced priority: it would take its place in the window of
#: its announcer for good.
GIVEN_UP: Final = 12


def verdict_of(mark: Announced, dispatched: float, seen: float, outcome: str, bit: int, failures: int) -> int | None:
    """Return what a visit says of an announcement.

    Parameters
    ----------
    mark : Announced
        The announcement.
    dispatched, seen : float
        When the visit was handed out, and when its response came, seconds since the epoch.
    outcome : str
        Of the visit.
    bit, failures : int
        What it showed; and how often in a row the page has failed with it.

    Returns
    -------
    int or None
        1: the announcer was right. 0: it was wrong. -1: nobody can tell. None: the page was in flight already, or the visit failed; another
        one is owed.

    Examples
    --------
    >>> mark = Announced(100.0, 102.0, False, "example.org sitemap")
    >>> verdict_of(mark, 101.0, 101.5, "ok", 0, 0), verdict_of(mark, 99.0, 101.0, "ok", 1, 0)
    (0, None)
    """
    if outcome == "failed" and failures < GIVEN_UP:
        return None
    if outcome != "ok":
        return -1
    if mark.at > dispatched and not (bit == 1 and seen > mark.seen_by):
        return None
    return bit if bit == 1 or (bit == 0 and not mark.is_unsure) else -1
