"""What must hold of a chaos crawl, from the record of its site and what the server has in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from chaos_crawl.site import Fetch
from optimal_frontier.state.rows import Row

#: Seconds by which a gap may be shorter than a host's delay; the share of gaps that may be shorter still.
SLACK_S, MOST_SHORT = 0.02, 0.001
#: What was handed out before a wipe may begin so long after it, seconds.
UNDER_WAY_S = 1.0
#: A window of the budget, seconds, and fetches in it that were handed out before and began late: the crawlers' concurrency.
WINDOW_S = 5.0


def short_gaps(fetches: Sequence[Fetch], delay_s: float, wipes: Sequence[float]) -> tuple[int, int, float]:
    """Return gaps between fetches of a host that are too short, all gaps, and the shortest; a wiped server has forgotten some."""
    by_host: dict[str, list[float]] = {}
    for fetch in fetches:
        by_host.setdefault(fetch.host, []).append(fetch.at)
    gaps = [
        after - before
        for times in by_host.values()
        for before, after in pairwise(sorted(times))
        if not any(before - UNDER_WAY_S <= wipe <= after for wipe in wipes)
    ]
    return sum(gap < delay_s - SLACK_S for gap in gaps), len(gaps), min(gaps, default=0.0)


def fullest_window(fetches: Sequence[Fetch], wipes: Sequence[float]) -> int:
    """Return the most fetches within a window; windows with a wipe in them are left out."""
    times, most, begin = sorted(fetch.at for fetch in fetches), 0, 0
    for end, at in enumerate(times):
        while times[begin] < at - WINDOW_S:
            begin += 1
        if not any(times[begin] - WINDOW_S <= wipe <= at for wipe in wipes):
            most = max(most, end - begin + 1)
    return most


def fetched_twice_at_once(fetches: Sequence[Fetch], wipes: Sequence[float]) -> int:
    """Return how often two crawlers had a page under way at the same time: two live leases. Answered fetches of pages count."""
    by_path: dict[str, list[Fetch]] = {}
    for fetch in fetches:
        if fetch.done and fetch.path.startswith("/p/"):
            by_path.setdefault(fetch.path, []).append(fetch)
    return sum(
        after.at < before.done and after.crawler != before.crawler and not any(abs(after.at - wipe) < WINDOW_S for wipe in wipes)
        for of_page in by_path.values()
        for before, after in pairwise(sorted(of_page, key=lambda fetch: fetch.at))
    )


def counted_twice(rows: Iterable[tuple[str, Row]], fetches: Sequence[Fetch]) -> int:
    """Return how many pages have more attempts than fetches."""
    seen = Counter(fetch.path for fetch in fetches)
    return sum(row.visits > seen[path] for path, row in rows)
