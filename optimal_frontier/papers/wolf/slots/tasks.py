"""Tasks as the solvers of slots see them: checked, and in units of slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.validation import numeric_array, page_array, scalar, whole_number

#: Powers of ten, either way, within which the interval must lie.
_DECADES: Final = 100.0


@dataclass(frozen=True)
class Tasks:
    """Crawls to be made once each in an interval."""

    #: Ideal place of each task in units of slots, (n,), from 0 to slots - 1: beyond that all slots are on one side.
    place: Floats
    #: First slot of each task that is not before its ideal time; for a two-sided one the last slot if there is none.
    ready: Integers
    not_before: NDArray[np.bool_]
    crawlers: int
    slots: int

    @property
    def n(self) -> int:
        """Number of tasks."""
        return self.place.size


def checked_tasks(ideal_times: ArrayLike, not_before: ArrayLike, crawlers: int, slots: int, interval: float) -> Tasks:
    """Return the tasks in units of slots.

    Raises
    ------
    InvalidProblemError
        An argument is unusable, there are more tasks than slots, or tasks that may not be early do not fit.
    """
    times = page_array("ideal_times", ideal_times)
    wrong = np.flatnonzero(~np.isfinite(times))
    if wrong.size:
        raise InvalidProblemError(f"ideal_times[{wrong[0]}] is {times[wrong[0]]}; expected a finite number")
    later = flags("not_before", not_before, (times.size,))
    many, count = whole_number("crawlers", crawlers, 1), whole_number("slots", slots, 1)
    length = scalar("interval", interval, positive=True, decades=_DECADES)
    if times.size > many * count:
        raise InvalidProblemError(f"ideal_times has {times.size} entries, but there are {many} x {count} = {many * count} slots")
    ready = first_slot_at(times, count, length)
    with np.errstate(over="ignore"):
        place = np.clip(np.clip(times * (count / length), ready - 1.0, ready), 0.0, count - 1.0)
    _check_fit(times, later, ready, many, count, length)
    return Tasks(place, np.minimum(ready, count - 1), later, many, count)


def first_slot_at(times: Floats, slots: int, interval: float) -> Integers:
    """Return the first slot at or after each time, by slot times as floats have them; `slots` where there is none."""
    with np.errstate(over="ignore"):
        guess = np.clip(np.ceil(times * (slots / interval)), 0, slots)
    guess -= (guess > 0) & ((guess - 1) * interval / slots >= times)
    guess += (guess < slots) & (guess * interval / slots < times)
    return guess.astype(np.int64)


def flags(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return an array of truth values of this shape; one value stands for all."""
    array = numeric_array(name, values)
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise InvalidProblemError(f"{name}: expected True or False, got an array of type {array.dtype}")
    if array.ndim and array.shape != shape:
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected {shape}")
    return np.broadcast_to(array.astype(np.bool_), shape)


def _check_fit(times: Floats, later: NDArray[np.bool_], ready: Integers, crawlers: int, slots: int, interval: float) -> None:
    """Refuse tasks that may not be early if more of them are ready with some slot or later than there are places from there on."""
    too_late = np.flatnonzero(later & (ready == slots))
    if too_late.size:
        at = int(too_late[0])
        last = (slots - 1) * interval / slots
        raise InvalidProblemError(f"ideal_times[{at}] is {times[at]}, after the last slot, at {last}, and not_before[{at}] is True")
    asked = np.cumsum(np.bincount(ready[later], minlength=slots)[::-1])
    short = np.flatnonzero(asked > crawlers * np.arange(1, slots + 1))
    if short.size:
        left = int(short[0]) + 1
        raise InvalidProblemError(
            f"not_before is True for {asked[left - 1]} tasks that are ready after {(slots - left - 1) * interval / slots}, "
            f"but only {crawlers * left} slots begin after that"
        )
