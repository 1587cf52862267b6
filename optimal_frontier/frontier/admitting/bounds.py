"""RULES and interval bounds that changed: stored pages are brought in line when a session begins."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from optimal_frontier.frontier.admitting.pages import rated
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import BATCH, revise_calls
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.rows import ACTIVE, ANNOUNCED, CHECKED, DONE, TIMED, UNCONDITIONAL, Row, split_tail

logger = logging.getLogger(__name__)

#: Rows that are read at once.
_COUNT: Final = 500
#: Pages with one of these flags keep their numbers: they are not about the interval.
_OF_ANOTHER_CAUSE: Final = UNCONDITIONAL | ANNOUNCED | CHECKED | TIMED


def rebounded(row: Row, like: Row) -> Row:
    """Return a row with the importance, bounds and timetable flag of another, and its numbers within the new bounds.

    Until its next visit, or the next plan, a page that was pinned keeps its interval where the new bounds allow it.
    """
    flags = row.flags & ~TIMED | like.flags & TIMED
    changed = row._replace(flags=flags, importance=like.importance, min_interval=like.min_interval, max_interval=like.max_interval)
    if row.failures or row.b == 0 or (row.flags | flags) & _OF_ANOTHER_CAUSE:
        return changed
    shortest, longest = like.min_interval, like.max_interval
    if shortest == longest:
        a, s, e, longest = fixed(shortest)
        return changed._replace(a=a, s=s, e=e, l=longest)
    # A longest wait below the longest interval was chosen to learn.
    return changed._replace(e=shortest, l=max(shortest, longest if row.l >= row.max_interval else min(row.l, longest)))


def digest_of(settings: FrontierSettings) -> str:
    """Return what the hash ``meta`` has as ``bounds`` where pages have the bounds of ``settings``."""
    return json.dumps([settings.min_interval, settings.max_interval, settings.rules.digest()])


def apply_bounds(namespace: Namespace, settings: FrontierSettings) -> int:
    """Bring stored pages in line with RULES, MIN_INTERVAL and MAX_INTERVAL, if these changed since pages were last brought in line.

    Pages that are under way, or wait for their first visit, are brought in line by that visit.

    Returns
    -------
    int
        Number of pages that were looked at; 0 if nothing had changed.
    """
    digest = digest_of(settings)
    stored = namespace.hash("meta").get("bounds")
    if stored == digest:
        return 0
    looked_at = 0
    if stored is not None:
        for partition in range(namespace.partitions):
            looked_at += _apply(namespace, settings, partition)
        logger.info("RULES or interval bounds changed: %d pages brought in line", looked_at)
    namespace.command("HSET", namespace.key("meta"), "bounds", digest)
    return looked_at


def _apply(namespace: Namespace, settings: FrontierSettings, partition: int) -> int:
    names = {int(number): name for name, number in namespace.hash("hosts", partition).items()}
    cursor, looked_at = b"0", 0
    while True:
        cursor, flat = namespace.command("HSCAN", namespace.key("pages", partition), cursor, "COUNT", _COUNT, partition=partition)
        pairs = list(flat.items()) if isinstance(flat, dict) else list(zip(flat[::2], flat[1::2], strict=True))
        revisions: list[Any] = []
        done: list[Any] = []
        for page, value in pairs:
            row = Row.unpack(value)
            if row.state != ACTIVE:
                continue
            looked_at += 1
            stated, record = split_tail(value)
            url = url_of_record(record, names.get(row.host, ""))
            if not settings.rules.of(url).revisit:
                if row.b > 0:
                    done.append((page, row.b, row._replace(state=DONE), None))
                continue
            changed = rebounded(row, rated(row, settings, url, stated))
            if changed != row and row.b > 0:
                revisions.append((page, row.b, changed, None))
        calls: list[Call] = revise_calls(partition, revisions) + revise_calls(partition, done, "pages=-1")
        for at in range(0, len(calls), BATCH):
            namespace.run(calls[at : at + BATCH])
        if int(cursor) == 0:
            return looked_at
