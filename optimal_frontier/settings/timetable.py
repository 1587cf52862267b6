"""When pages are republished: ``update_times`` in RULES."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from optimal_frontier.settings.parsing import fail, number

DAY_S: Final = 86_400.0
#: Update times of a page at most: a bit mask of them fits a double.
MOST_UPDATE_TIMES: Final = 48
#: Least seconds between two update times of a page.
LEAST_BETWEEN_UPDATES_S: Final = 1.0


@dataclass(frozen=True)
class Timetable:
    """When a page may be republished (``update_times``).

    Attributes
    ----------
    period : float
        Seconds after which the times come again; periods are counted from 1970-01-01 00:00 UTC.
    times : tuple of float
        Update times, seconds from the start of a period, rising, in [0, period).
    probabilities : tuple of float
        With which the page changes at each, as RULES have it: what is believed before its bits have said something.
    """

    period: float
    times: tuple[float, ...]
    probabilities: tuple[float, ...]

    @property
    def text(self) -> str:
        """What is stored: the period, then time and probability in turn, separated by blanks."""
        pairs = (value for pair in zip(self.times, self.probabilities, strict=True) for value in pair)
        return " ".join(map(repr, (self.period, *pairs)))


def parse_timetable(where: str, entry: Mapping[str, Any]) -> Timetable:
    """Return the timetable that an entry of RULES states; ``where`` names the entry."""
    period = number(f"{where}['period']", entry.get("period", DAY_S), "a number of seconds, 1 or more", lambda x: 1 <= x < math.inf)
    name, given = f"{where}['update_times']", entry["update_times"]
    if not isinstance(given, list | tuple) or not 0 < len(given) <= MOST_UPDATE_TIMES:
        raise fail(name, given, f"a list of 1 to {MOST_UPDATE_TIMES} times, each seconds or (seconds, probability)")
    times, probabilities = [], []
    for at, item in enumerate(given):
        pair = item if isinstance(item, list | tuple) else (item, 1.0)
        if len(pair) != 2:
            raise fail(f"{name}[{at}]", item, "seconds or (seconds, probability)")
        within = f"seconds within the period, from 0 to below {period:g}"
        times.append(number(f"{name}[{at}]", pair[0], within, lambda x: 0 <= x < period))
        probabilities.append(number(f"{name}[{at}]", pair[1], "a probability from 0 to 1", lambda x: 0 <= x <= 1))
        if at and times[-1] < times[-2] + LEAST_BETWEEN_UPDATES_S:
            raise fail(f"{name}[{at}]", item, f"rising times, {LEAST_BETWEEN_UPDATES_S:g} s or more after {times[-2]:g}")
    if len(times) > 1 and times[0] + period < times[-1] + LEAST_BETWEEN_UPDATES_S:
        raise fail(name, given, f"a last time {LEAST_BETWEEN_UPDATES_S:g} s or more before the first one of the next period")
    return Timetable(period, tuple(times), tuple(probabilities))
