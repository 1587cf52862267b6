"""Schedulers of other crawlers: an interval per page, longer after a visit that found no change, shorter after one that did.

Their rules and defaults as published; none takes notice of importance or budget. What is said of each was read in its
source: Apache Nutch 1 (``AdaptiveFetchSchedule``, ``nutch-default.xml``), StormCrawler (``AdaptiveScheduler``), Frontera
0.7.2 (``contrib.backends.sqlalchemy.revisiting``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable


@runtime_checkable
class IntervalRule(Protocol):
    """What the simulation asks of a scheduler. Times are in days; ``state`` is the interval and when a change was last seen."""

    @property
    def waits(self) -> bool:
        """Whether a page is never fetched before it is due, even if the budget is idle."""

    def first(self, now: float) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after its first visit, and its state."""

    def next(self, now: float, changed: bool, state: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after a later visit, and its state."""


@dataclass(frozen=True)
class Nutch:
    """Apache Nutch's AdaptiveFetchSchedule.

    An interval is multiplied by 1 + `increase` after a visit without a change and by 1 - `decrease` after one with. Then
    (`sync_delta`) it is no less than the time since a change was last seen, and the next visit is earlier than it says by `sync` of that
    time. Bounds last. So a page without a change for more than `most` / `sync` (3.3 years) is always due.

    Attributes
    ----------
    start, least, most : float
        First interval and bounds: 30 days, 60 seconds, 365 days.
    increase, decrease, sync : float
        As shipped in ``nutch-default.xml``. (The class itself has 0.2 for all three where no such file is read.)
    sync_delta : bool
        Whether that step is taken.
    """

    start: float = 30.0
    least: float = 60.0 / 86_400.0
    most: float = 365.0
    increase: float = 0.4
    decrease: float = 0.2
    sync: float = 0.3
    sync_delta: bool = True
    waits: bool = False

    def first(self, now: float) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after its first visit, and its state."""
        return now + self.start, (self.start, now)

    def next(self, now: float, changed: bool, state: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after a later visit, and its state."""
        interval, modified = state
        if changed:
            interval, modified = interval * (1.0 - self.decrease), now
        else:
            interval *= 1.0 + self.increase
        unchanged_for = now - modified if self.sync_delta else 0.0
        interval = min(max(interval, unchanged_for, self.least), self.most)
        return now - self.sync * unchanged_for + interval, (interval, modified)


@dataclass(frozen=True)
class StormCrawler:
    """StormCrawler's AdaptiveScheduler.

    In whole minutes: half as much again after a visit without a change, up to `most`; the mean of interval and `least` after one with.

    Attributes
    ----------
    start, least, most : int
        First interval and bounds, minutes: a day, an hour, two weeks.
    increase, decrease : float
        The class's own defaults.
    """

    start: int = 1440
    least: int = 60
    most: int = 20_160
    increase: float = 0.5
    decrease: float = 0.5
    waits: bool = False

    def first(self, now: float) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after its first visit, and its state."""
        return now + self.start / 1440.0, (float(self.start), now)

    def next(self, now: float, changed: bool, state: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after a later visit, and its state."""
        minutes, modified = state
        if changed:
            minutes, modified = float(int((1.0 - self.decrease) * minutes + self.decrease * self.least)), now
        else:
            minutes = float(min(int(minutes * (1.0 + self.increase)), self.most))
        return now + minutes / 1440.0, (minutes, modified)


@dataclass(frozen=True)
class Frontera:
    """Frontera's revisiting backend: one interval for every page, first come, first served; nothing is fetched before it is due.

    Attributes
    ----------
    interval : float
        Days; SQLALCHEMYBACKEND_REVISIT_INTERVAL is one.
    """

    interval: float = 1.0
    waits: bool = True

    def first(self, now: float) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after its first visit, and its state."""
        return now + self.interval, (self.interval, now)

    def next(self, now: float, changed: bool, state: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        """Return when a page is due after a later visit, and its state."""
        return now + self.interval, state


#: By name: what makes a rule for a crawl whose budget visits every page once in so many days. ``nutch`` is as shipped; ``nutch-tuned`` does
#: better under a budget: it has that interval to begin with, and no ``sync_delta``.
RULES: Final[Mapping[str, Callable[[float], IntervalRule]]] = MappingProxyType(
    {
        "nutch": lambda even: Nutch(),
        "nutch-tuned": lambda even: Nutch(start=even, sync_delta=False),
        "stormcrawler": lambda even: StormCrawler(),
        "frontera": lambda even: Frontera(),
    }
)
