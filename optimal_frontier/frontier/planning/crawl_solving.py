"""The plan of a crawl: of all pages at once, or in parts where they are many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from optimal_frontier.frontier.planning.crawl_pages import CrawlPages
from optimal_frontier.frontier.planning.solving import Problem, Solved, Sums, solve
from optimal_frontier.frontier.planning.solving_parts import ProblemParts, solve_parts

#: Crawls of up to so many pages are solved whole.
WHOLE: Final = 200_000
#: Pages of which the first price is found where none is known, and change rates are published, of a crawl that is solved in parts.
_SAMPLE: Final = 65_536


def solve_crawl(crawl: CrawlPages, previous: Mapping[str, str], now: float, each: Callable[[], None] = lambda: None) -> Solved:
    """Return the plan of the pages that were read, with sums by partition.

    Parameters
    ----------
    crawl : CrawlPages
        The pages. Those of a large crawl have no columns of their own afterwards but ``median``, which is that of a sample.
    previous : mapping of str to str
        What the last plan published.
    now : float
        Server's time, seconds since the epoch.
    each : callable
        Called now and then while a large crawl is solved.
    """
    start = float(previous.get("multiplier", 0.0))
    if crawl.count <= WHOLE:
        solved = solve(crawl.problem(previous, now), crawl.budget.revisits, start)
        rows = {k: crawl.rows_of(k) for k in crawl.partitions}
        sums = {k: Sums(len(of), float(solved.rates[of].sum()), float(solved.response[of].sum())) for k, of in rows.items()}
        return replace(solved, by_partition=sums)
    crawl.begin_problem(previous, now)
    crawl.planned = np.zeros(0, np.int64)

    def sample() -> tuple[Problem, float]:
        of = {k: _SAMPLE * crawl.tables[k].pages.count // crawl.count for k in crawl.partitions}
        some = Problem.joined([crawl.sample(k, size).problem for k, size in of.items()])
        return some, len(some.importance) / max(crawl.planned_pages, 1)

    crawl.median = sample()[0].change_rate
    spans = list(crawl.spans())
    parts = ProblemParts([span.partition for span in spans], lambda number: crawl.part(spans[number]).problem, sample, crawl.limit)
    solved = solve_parts(parts, crawl.budget.revisits, start, each)
    empty = {k: Sums(0, 0.0, 0.0) for k in crawl.partitions}
    return replace(solved, by_partition=empty | dict(solved.by_partition))
