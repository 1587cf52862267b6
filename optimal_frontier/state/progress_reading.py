"""What the progress line of a crawl needs, read in one small round trip a partition."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.put_aside import COUNTER
from optimal_frontier.state.rows import ACTIVE, HELD, ONCE, Row

#: Counters that are read; the last two make the fetches.
_COUNTERS: Final = ("pages", "retired", "pending", COUNTER, "changes", "visits", "failures")
#: Entries of the list of lateness that are read of a partition; each has those of one call.
_LATE_CALLS: Final = 100
#: Rows that are drawn, of all partitions together, where their attempts matter.
_SAMPLE: Final = 256


@dataclass(frozen=True)
class ProgressReading:
    """How far a crawl is.

    Attributes
    ----------
    pages, waiting : int
        Pages that are known and not retired; pages and requests that wait for their first visit.
    fetches, changes : int
        Since the namespace was opened, by all crawlers.
    freshness : float or None
        Estimated by the last plan.
    lateness : ndarray
        Of the last revisits, seconds.
    done : float or None
        Share of the fetches that CLOSE_AFTER asks for, of a sample of pages; None without CLOSE_AFTER.
    lost : int
        Pages that are to be fetched, by the counters, and stand in no queue; at least so many.
    """

    pages: int
    waiting: int
    fetches: int
    changes: int
    freshness: float | None
    lateness: np.ndarray
    done: float | None
    lost: int = 0


def read_progress(namespace: Namespace, close_after: int | None = None) -> ProgressReading:
    """Read how far a crawl is; with CLOSE_AFTER a sample of rows too, 256 in all."""
    sums = dict.fromkeys(_COUNTERS, 0)
    lateness: list[float] = []
    freshness: tuple[float, float] | None = None  # of the newest plan: its time first
    done, weight, lost = 0.0, 0.0, 0
    for k in range(namespace.partitions):
        rows: list[list[Any]] = [
            # Before the counters: a page that is retired in between is not missed. Users of a crawl have no right to ZCARD.
            ["ZCOUNT", namespace.key("q", k), "-inf", "+inf"],
            ["ZCOUNT", namespace.key("f", k), "-inf", "+inf"],
            ["HMGET", namespace.key("stats", k), *_COUNTERS],
            ["LRANGE", namespace.key("lateness", k), 0, _LATE_CALLS - 1],
            ["HMGET", namespace.key("plan", k), "time", "estimated_freshness", "pages"],
        ]
        if close_after is not None:
            rows.append(["HLEN", namespace.key("pages", k)])
            rows.append(["HRANDFIELD", namespace.key("pages", k), max(16, _SAMPLE // namespace.partitions), "WITHVALUES"])
        queued, hosts, counted, late, plan, *sample = namespace.commands(rows, partition=k)
        with contextlib.suppress(ValueError, TypeError):  # what cannot be read is left out
            counts = {name: int(value or 0) for name, value in zip(_COUNTERS, counted, strict=True)}
            # Where no host has first visits, those that wait for theirs are under way, in the same queue. Rows that could not be read, and
            # were put aside, may still be counted.
            away = counts["retired"] + counts[COUNTER] + (counts["pending"] if hosts else 0)
            lost += max(0, counts["pages"] - away - queued)
            for name, value in counts.items():
                sums[name] += value
            lateness += [float(value) for text in late for value in text.split()]
            if plan[1] is not None and float(plan[2] or 0) > 0:
                freshness = max(freshness or (0.0, 0.0), (float(plan[0]), float(plan[1])))
        if close_after is not None and sample[0]:
            done += int(sample[0]) * _share_done(sample[1], close_after)
            weight += int(sample[0])
    return ProgressReading(
        sums["pages"] - sums["retired"],
        sums["pending"],
        sums["visits"] + sums["failures"],
        sums["changes"],
        None if freshness is None else freshness[1],
        np.array(lateness),
        None if close_after is None else done / weight if weight else 0.0,
        lost,
    )


def _share_done(flat: Sequence[Any], close_after: int) -> float:
    """Return the share of the fetches that pages are to have, of a reply of HRANDFIELD."""
    values = [pair[1] for pair in flat] if flat and isinstance(flat[0], list | tuple) else flat[1::2]
    wanted = had = 0
    for value in values:
        try:
            row = Row.unpack(value)
        except ValueError:
            continue
        most = {ACTIVE: close_after, ONCE: 1}.get(row.state, 0) if not row.flags & HELD else 0
        wanted, had = wanted + most, had + min(row.attempts, most)
    return had / wanted if wanted else 1.0
