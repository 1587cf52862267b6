"""Traces: what happened to real pages, as CSV with the columns page, time (seconds), event and importance; the last two are optional.

A page exists from ``created`` to ``gone``, and ``changed`` lies between. What is said late changes nothing: a page that is there is not
created again, but changed; one that is gone is neither changed nor gone. (Branches of a git history go on after another one has
deleted a file.) A page that is first heard of as changed or gone was there before the trace begins. One that is created again is another
page of the same name: the first copy is found to be gone, and the new page is found as new.

Without the column ``event`` all events are changes, but for a page's first one: from there on it exists, and always. With it,
what was before nobody knows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import IO, Final, NamedTuple

import numpy as np

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation.path_groups import path_groups
from optimal_frontier.simulation.ragged import Floats, Ragged
from optimal_frontier.simulation.worlds import TraceWorld

CREATED: Final = "created"
CHANGED: Final = "changed"
GONE: Final = "gone"
_EVENTS: Final = (CREATED, CHANGED, GONE)
#: Columns in the order in which they come where a file has no header.
COLUMNS: Final = ("page", "time", "event", "importance")


class Event(NamedTuple):
    """What happened to a page.

    Attributes
    ----------
    page : str
        Path or URL.
    time : float
        Seconds, from any origin. Events at the same time are of one cause, such as a commit.
    event : str
        ``created``, ``changed`` or ``gone``.
    """

    page: str
    time: float
    event: str


@dataclass(frozen=True)
class Trace:
    """Pages, when they existed, and when they changed. Times are in seconds, from 0 for the first event of all.

    Attributes
    ----------
    names : tuple of str
        Pages in the order in which they first come. A page that was created again is there twice.
    changes : Ragged
        When each changed. That it is gone is its last change.
    arrival, gone : ndarray (n,)
        From when to when each exists; inf if it is there at the end.
    importance : ndarray (n,)
        Weights, 1 where nothing else was stated.
    length : float
        Seconds from the first to the last event of all.
    """

    names: tuple[str, ...]
    changes: Ragged
    arrival: Floats
    gone: Floats
    importance: Floats
    length: float

    def first(self, count: int) -> Trace:
        """Return the trace of the first pages only; its time stays."""
        return self._of(np.arange(min(count, len(self.names))), 0.0)

    def last(self, seconds: float, *, newcomers: bool = True) -> Trace:
        """Return the last part of the trace: pages that exist when it begins, and those that come in it.

        Parameters
        ----------
        seconds : float
            Its length; the trace may be shorter.
        newcomers : bool
            Whether pages are kept that are created in it.

        Raises
        ------
        ConfigurationError
            No page is left.
        """
        begin = max(self.length - seconds, 0.0)
        kept = np.flatnonzero((self.gone > begin) & (newcomers | (self.arrival <= begin)))
        if not len(kept):
            raise ConfigurationError(f"there is no page in the last {seconds / 86_400.0:g} days")
        return self._of(kept, begin)

    def _of(self, kept: np.ndarray, begin: float) -> Trace:
        """Some of the pages, from a time on."""
        changes = self.changes.rows(kept).since(begin) if begin > 0.0 else self.changes.rows(kept)
        return Trace(
            tuple(self.names[page] for page in kept.tolist()),
            changes,
            np.maximum(self.arrival[kept] - begin, 0.0),
            self.gone[kept] - begin,
            self.importance[kept],
            self.length - begin,
        )

    def world(self, name: str, budget: float) -> TraceWorld:
        """Return its pages with so many visits per second; neighbourhoods are those of their paths."""
        return TraceWorld(name, self.changes, budget, self.importance, path_groups(self.names), self.arrival, self.gone)


def read_trace(lines: Iterable[str], name: str = "trace") -> Trace:
    """Return what a CSV file says of pages.

    Parameters
    ----------
    lines : iterable of str
        ``page,time``, ``page,time,event`` or ``page,time,event,importance`` each; with a header in any order, and event may be
        missing. Times are in seconds, in any order and from any origin; of events at the same time the first is first. An importance is
        above 0, and may be empty; the last one of a page counts.
    name : str
        For messages.

    Raises
    ------
    ConfigurationError
        A line is none, or there are not two different times; the message says where and what was expected.

    Examples
    --------
    >>> trace = read_trace(["page,time,event", "a,100,created", "b,150,changed", "a,400,changed", "b,450,gone"])
    >>> trace.names, trace.arrival.tolist(), trace.gone.tolist(), trace.changes.times.tolist(), trace.length
    (('a', 'b'), [0.0, 0.0], [inf, 350.0], [300.0, 50.0, 350.0], 350.0)
    """
    columns: tuple[str, ...] = ()
    events: list[Event] = []
    importance: dict[str, float] = {}
    reader = csv.reader(lines, strict=True)
    try:
        for row in reader:
            where = f"{name}, line {reader.line_num}"
            if row and not columns:
                columns, is_header = _columns(row, where)
                if is_header:
                    continue
            if row:
                cells = _cells(row, columns, where)
                what = _what(cells["event"], where) if "event" in cells else CHANGED
                events.append(Event(cells["page"], _time(cells["time"], where), what))
                if cells.get("importance"):
                    importance[cells["page"]] = _importance(cells["importance"], where)
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: expected page,time,event as CSV ({error})") from error
    if len({event.time for event in events}) < 2:
        raise ConfigurationError(f"{name}: expected events at two different times at least, got {len(events)} events")
    found = _trace(events, importance, begins=CHANGED if "event" in columns else CREATED)
    if not found.names:
        raise ConfigurationError(f"{name}: expected a page that exists for a while, got {len(events)} events")
    return found


def write_trace(events: Iterable[Event], file: IO[str]) -> int:
    """Write events as CSV that `read_trace` reads; return how many there were."""
    writer = csv.writer(file)
    writer.writerow(Event._fields)
    count = 0
    for page, time, event in events:
        writer.writerow((page, int(time) if float(time).is_integer() else repr(float(time)), event))
        count += 1
    return count


def events_of(trace: Trace) -> Iterator[Event]:
    """Yield what `read_trace` makes the trace of again (its importance apart), page by page."""
    for page, name in enumerate(trace.names):
        yield Event(name, float(trace.arrival[page]), CREATED)
        for time in trace.changes.times[trace.changes.starts[page] : trace.changes.starts[page + 1]].tolist():
            yield Event(name, time, GONE if time == trace.gone[page] else CHANGED)


@dataclass
class _Life:
    """A page from its creation until it is gone."""

    number: int
    name: str
    arrival: float
    changes: list[float] = field(default_factory=list)
    gone: float = math.inf


def _trace(events: list[Event], importance: dict[str, float], begins: str) -> Trace:
    """Lives of pages; ``begins`` is what a change is for a page that was not heard of before."""
    order: dict[str, int] = {}
    for event in events:
        order.setdefault(event.page, len(order))
    origin, end = min(event.time for event in events), max(event.time for event in events)
    lives: list[_Life] = []
    latest: dict[str, _Life] = {}
    for name, at, what in sorted(events, key=itemgetter(1)):
        time, life = at - origin, latest.get(name)
        if life is None or (life.gone < math.inf and what == CREATED):
            is_new = what == CREATED or (what == CHANGED and begins == CREATED)
            life = latest[name] = _Life(order[name], name, time if is_new else 0.0)
            lives.append(life)
        if life.gone == math.inf:
            if time > (life.changes[-1] if life.changes else life.arrival):
                life.changes.append(time)
            if what == GONE:
                life.gone = time
    lives = sorted((life for life in lives if life.gone > life.arrival), key=lambda life: life.number)
    pages = np.repeat(np.arange(len(lives)), [len(life.changes) for life in lives])
    return Trace(
        tuple(life.name for life in lives),
        Ragged.joined(pages, np.array([time for life in lives for time in life.changes], dtype=np.float64), len(lives)),
        np.array([life.arrival for life in lives]),
        np.array([life.gone for life in lives]),
        np.array([importance.get(life.name, 1.0) for life in lives]),
        end - origin,
    )


def _columns(row: list[str], where: str) -> tuple[tuple[str, ...], bool]:
    """What the columns are by the first line, and whether that is a header."""
    names = tuple(cell.strip().lower() for cell in row)
    if not set(COLUMNS[:2]) <= set(names):
        if 2 <= len(row) <= len(COLUMNS):
            return COLUMNS[: len(row)], False
        raise ConfigurationError(f"{where}: expected {','.join(COLUMNS)} (event and importance are optional), got {len(row)} columns")
    if len(set(names)) < len(names) or not set(names) <= set(COLUMNS):
        raise ConfigurationError(f"{where}: expected some of {','.join(COLUMNS)} as the header, each once, got {','.join(row)[:80]!r}")
    return names, True


def _cells(row: list[str], columns: tuple[str, ...], where: str) -> dict[str, str]:
    if len(row) != len(columns):
        raise ConfigurationError(f"{where}: expected {','.join(columns)}, got {len(row)} columns")
    return dict(zip(columns, row, strict=True))


def _time(cell: str, where: str) -> float:
    try:
        time = float(cell)
    except ValueError:
        time = math.nan
    if not math.isfinite(time):
        raise ConfigurationError(f"{where}: expected a number of seconds as the time, got {cell[:80]!r}")
    return time


def _what(cell: str, where: str) -> str:
    what = cell.strip().lower()
    if what not in _EVENTS:
        raise ConfigurationError(f"{where}: expected {', '.join(_EVENTS)} as the event, got {cell[:80]!r}")
    return what


def _importance(cell: str, where: str) -> float:
    try:
        importance = float(cell)
    except ValueError:
        importance = math.nan
    if not 0.0 < importance < math.inf:
        raise ConfigurationError(f"{where}: expected a number above 0 as the importance, or nothing, got {cell[:80]!r}")
    return importance
