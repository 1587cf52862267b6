"""Traces: change events of real pages, as CSV with the columns page and time (seconds)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation.path_groups import path_groups
from optimal_frontier.simulation.ragged import Ragged
from optimal_frontier.simulation.worlds import TraceWorld

#: What the first line of a file may be.
HEADER = ("page", "time")


@dataclass(frozen=True)
class Trace:
    """Change events.

    Attributes
    ----------
    names : tuple of str
        Pages, in the order in which they first come.
    changes : Ragged
        Times in seconds, from 0 for the first event of all.
    length : float
        Seconds from the first to the last event of all.
    """

    names: tuple[str, ...]
    changes: Ragged
    length: float

    def first(self, count: int) -> Trace:
        """Return the trace of the first pages only; its time stays."""
        end = min(count, len(self.names))
        starts = self.changes.starts[: end + 1]
        return Trace(self.names[:end], Ragged(self.changes.times[: starts[-1]], starts), self.length)

    def last(self, seconds: float) -> Trace:
        """Return the last part of the trace; pages that do not change in it stay."""
        begin = self.length - seconds
        if begin <= 0.0:
            return self
        inside = self.changes.times >= begin
        pages = np.repeat(np.arange(len(self.names)), self.changes.counts)[inside]
        return Trace(self.names, Ragged.joined(pages, self.changes.times[inside] - begin, len(self.names)), seconds)

    def world(self, name: str, budget: float) -> TraceWorld:
        """Return its pages, equally important, with so many visits per second; neighbourhoods are those of their paths."""
        return TraceWorld(name, self.changes, budget, np.ones(len(self.names)), path_groups(self.names))


def read_trace(lines: Iterable[str], name: str = "trace") -> Trace:
    """Return the change events of a CSV file.

    Parameters
    ----------
    lines : iterable of str
        ``page,time`` each, with or without that as a header; times in seconds, in any order and from any origin.
    name : str
        For messages.

    Raises
    ------
    ConfigurationError
        A line is none, or there are not two different times; the message says where and what was expected.

    Examples
    --------
    >>> trace = read_trace(["page,time", "a,100", "b,150", "a,400"])
    >>> trace.names, trace.changes.times.tolist(), trace.length
    (('a', 'b'), [0.0, 300.0, 50.0], 300.0)
    """
    numbers: dict[str, int] = {}
    pages: list[int] = []
    times: list[float] = []
    reader = csv.reader(lines, strict=True)
    try:
        for row in reader:
            if not row or (reader.line_num == 1 and tuple(cell.strip().lower() for cell in row) == HEADER):
                continue
            pages.append(numbers.setdefault(row[0], len(numbers)))
            times.append(_time(row, name, reader.line_num))
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: expected page,time as CSV ({error})") from error
    if len(set(times)) < 2:
        raise ConfigurationError(f"{name}: expected change events at two different times at least, got {len(times)} events")
    at = np.array(times)
    return Trace(tuple(numbers), Ragged.joined(np.array(pages), at - at.min(), len(numbers)), float(np.ptp(at)))


def write_trace(events: Iterable[tuple[str, float]], file: IO[str]) -> int:
    """Write change events as CSV that `read_trace` reads; return how many there were."""
    writer = csv.writer(file)
    writer.writerow(HEADER)
    count = 0
    for page, time in events:
        writer.writerow((page, int(time) if float(time).is_integer() else repr(float(time))))
        count += 1
    return count


def events_of(trace: Trace) -> Iterator[tuple[str, float]]:
    """Yield page and time of every event, page by page."""
    for page, name in enumerate(trace.names):
        for time in trace.changes.times[trace.changes.starts[page] : trace.changes.starts[page + 1]].tolist():
            yield name, time


def _time(row: list[str], name: str, line: int) -> float:
    expected = f"{name}, line {line}: expected page,time (seconds)"
    if len(row) != 2:
        raise ConfigurationError(f"{expected}, got {len(row)} columns")
    try:
        time = float(row[1])
    except ValueError as error:
        raise ConfigurationError(f"{expected}, got {row[1][:80]!r} as the time") from error
    if not math.isfinite(time):
        raise ConfigurationError(f"{expected}, got {row[1][:80]!r} as the time")
    return time
