"""What must hold of a chaos crawl, from the record of its site and what the server has in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chaos_crawl.site import Fetch
from optimal_frontier.state.rows import Row

#: Seconds by which a gap may be shorter than a host's delay; the share of gaps that may be shorter still.
SLACK_S, MOST_SHORT = 0.02, 0.001
#: What was handed out before a loss may begin so long after it, seconds.
UNDER_WAY_S = 1.0
#: A window of the budget, seconds, and fetches in it that were handed out before and began late: the crawlers' concurrency.
WINDOW_S = 5.0


@dataclass(frozen=True)
class Loss:
    """What the server was told from ``since`` on is lost, and from ``until`` on it answers without it (monotonic, s)."""

    since: float
    until: float

    def explains(self, before: Fetch, after: Fetch) -> bool:
        """Tell whether the server did not know of one of two fetches when it gave the other: it has forgotten it, or gave it before."""
        return self.since <= before.at <= self.until + UNDER_WAY_S and self.until <= after.at


def short_gaps(fetches: Sequence[Fetch], delay_s: float, losses: Sequence[Loss]) -> tuple[int, int, float]:
    """Return gaps between fetches of a host that are too short, all gaps, and the shortest; but for those that a loss explains.

    A gap begins at the earliest when the first fetch may have come: a site that was held up itself saw it late.
    """
    by_host: dict[str, list[Fetch]] = {}
    for fetch in sorted(fetches, key=lambda fetch: fetch.at):
        by_host.setdefault(fetch.host, []).append(fetch)
    gaps = [
        after.at - before.at + before.late_s
        for of_host in by_host.values()
        for before, after in pairwise(of_host)
        if not any(loss.explains(before, after) for loss in losses)
    ]
    return sum(gap < delay_s - SLACK_S for gap in gaps), len(gaps), min(gaps, default=0.0)


def fullest_window(fetches: Sequence[Fetch], losses: Sequence[Loss]) -> int:
    """Return the most fetches within a window; windows with a loss in them are left out."""
    times, most, begin = sorted(fetch.at for fetch in fetches), 0, 0
    for end, at in enumerate(times):
        while times[begin] < at - WINDOW_S:
            begin += 1
        if not any(times[begin] - WINDOW_S <= loss.until <= at for loss in losses):
            most = max(most, end - begin + 1)
    return most


def fetched_twice_at_once(fetches: Sequence[Fetch], losses: Sequence[Loss]) -> int:
    """Return how often two crawlers had a page under way at the same time: two live leases. Answered fetches of pages count."""
    by_path: dict[str, list[Fetch]] = {}
    for fetch in fetches:
        if fetch.done and fetch.path.startswith("/p/"):
            by_path.setdefault(fetch.path, []).append(fetch)
    return sum(
        after.at < before.done and after.crawler != before.crawler and not any(loss.explains(before, after) for loss in losses)
        for of_page in by_path.values()
        for before, after in pairwise(sorted(of_page, key=lambda fetch: fetch.at))
    )


def asked_while_held(fetches: Sequence[Fetch], losses: Sequence[Loss]) -> int:
    """Return how many fetches came while their host had asked for none (``Retry-After``), by more than the time that word of it takes."""
    holds: dict[str, list[Fetch]] = {}
    for fetch in fetches:
        if fetch.hold_s:
            holds.setdefault(fetch.host, []).append(fetch)
    return sum(
        any(
            held.done + UNDER_WAY_S < fetch.at < held.done + held.hold_s - SLACK_S
            and not any(loss.explains(held, fetch) for loss in losses)
            for held in holds.get(fetch.host, [])
        )
        for fetch in fetches
    )


def counted_twice(rows: Iterable[tuple[str, Row]], fetches: Sequence[Fetch]) -> int:
    """Return how many pages have more attempts than fetches."""
    seen = Counter(fetch.path for fetch in fetches)
    return sum(row.visits > seen[path] for path, row in rows)
