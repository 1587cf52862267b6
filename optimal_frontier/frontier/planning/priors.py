"""Priors of a stored crawl: what its pages have taught of those without a bit, by pattern of their URLs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation import posterior_median
from optimal_frontier.estimation.like_pages import LikePages, LikePatterns, priors_within
from optimal_frontier.estimation.sibling_priors import DEFAULT_SHAPE, MOST_SHAPE, TaughtPriors
from optimal_frontier.state.published import PRIORS

#: Patterns whose priors are published, those with most pages: crawlers read them with every plan.
MOST_PATTERNS: Final = 50_000
#: The fit is made anew when so large a share of the pages was read again since, or the default has moved by as much; at once in a crawl of
#: up to `FEW` pages.
STALE_SHARE: Final = 1.0 / 16.0
FEW: Final = 100_000

Floats = NDArray[np.float64]


@dataclass
class Priors:
    """Priors by pattern, and the default.

    Attributes
    ----------
    default_time : float
        Time of the default prior, seconds; its shape is 1.
    table : ndarray of `PRIORS`
        Of the patterns, rising; empty while nothing was learned, so that the default of the day holds. Shapes above `MOST_SHAPE` are of
        patterns whose pages are alike.
    """

    default_time: float = 1.0
    table: NDArray[Any] = field(default_factory=lambda: np.zeros(0, PRIORS))

    def of(self, pattern: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return shapes and times (s) of pages of these patterns."""
        shape, time = np.full(len(pattern), DEFAULT_SHAPE), np.full(len(pattern), self.default_time)
        if len(self.table):
            at = np.minimum(np.searchsorted(self.table["pattern"], pattern), len(self.table) - 1)
            known = self.table["pattern"][at] == pattern
            shape[known], time[known] = priors_within(self.table["shape"][at[known]], self.table["time"][at[known]], self.default_time)
        return shape, time

    @cached_property
    def alike(self) -> LikePatterns:
        """The patterns whose pages are alike."""
        return LikePatterns.of(self.table["pattern"], self.table["shape"], self.table["time"])

    def medians(self, pattern: NDArray[Any]) -> Floats:
        """Return the medians of these priors, changes per second."""
        of_table, default = self._medians
        median = np.full(len(pattern), default)
        if len(of_table):
            at = np.minimum(np.searchsorted(self.table["pattern"], pattern), len(of_table) - 1)
            known = self.table["pattern"][at] == pattern
            median[known] = of_table[at[known]]
        return median

    @cached_property
    def _medians(self) -> tuple[Floats, float]:
        default = float(posterior_median(DEFAULT_SHAPE, self.default_time))
        if not len(self.table):
            return np.zeros(0), default
        return posterior_median(*priors_within(self.table["shape"], self.table["time"], self.default_time)), default

    def by_pattern(self) -> dict[int, tuple[float, float]]:
        """Return shape and time (s) by pattern, as `Published` has them."""
        table = self.table
        return {
            pattern: (shape, time)
            for pattern, shape, time in zip(table["pattern"].tolist(), table["shape"].tolist(), table["time"].tolist(), strict=True)
        }

    def packed(self) -> bytes:
        """Return what is published."""
        return self.table.tobytes()


class Taught(NamedTuple):
    """Some pages of a crawl that are revisited or will be, in the order of their patterns.

    Those that were not visited yet teach nothing, but say of which host their pattern is.

    Attributes
    ----------
    pattern, shape, time : ndarray (n,)
        As in their rows; time in seconds.
    host : ndarray of int (n,)
        Numbered over all partitions.
    """

    pattern: NDArray[Any]
    shape: NDArray[Any]
    time: NDArray[Any]
    host: NDArray[np.int64]


class Teachers(NamedTuple):
    """The pages that teach priors.

    Attributes
    ----------
    patterns : callable
        Returns their patterns in parts, each of which rises.
    parts : callable
        Returns what they teach, in parts.
    """

    patterns: Callable[[], Iterable[NDArray[Any]]]
    parts: Callable[[], Iterable[Taught]]


def fit_priors(teachers: Teachers, default_time: float) -> Priors:
    """Fit the priors of all patterns.

    Parameters
    ----------
    teachers : Teachers
        The pages; each of its functions is called once.
    default_time : float
        Time of the default prior, seconds: that in which all pages can be visited once.

    Notes
    -----
    Pattern 0 stands for "none". Priors are rounded as they are published, so that planner and judges go by the same.
    """
    patterns = _distinct(np.sort(np.concatenate([np.zeros(0, np.uint32), *map(_distinct, teachers.patterns())])))
    first = 0 if len(patterns) and patterns[0] == 0 else 1
    counts = np.zeros(len(patterns) + first, np.int64)
    taught, alike = TaughtPriors(len(counts), default_time), LikePages(len(counts), default_time)
    for part in teachers.parts():
        begins = _begins(part.pattern)
        # Each pattern is searched for once a part: the pages of one stand together.
        numbers = (np.searchsorted(patterns, part.pattern[begins]) + first)[np.cumsum(begins) - 1]
        counts += np.bincount(numbers, minlength=len(counts))
        shape, time = part.shape.astype(np.float64), part.time.astype(np.float64)
        taught.add(shape, time, part.host, numbers)
        alike.add(shape, time, numbers)
    fitted, counts = taught.priors(), counts[first:]
    if not fitted.siblings.any():
        return Priors(default_time)
    chosen = np.sort(np.argpartition(-counts, MOST_PATTERNS)[:MOST_PATTERNS]) if len(patterns) > MOST_PATTERNS else np.arange(len(patterns))
    table = np.zeros(len(chosen), PRIORS)
    table["pattern"] = patterns[chosen]
    like, rate = (values[chosen + first] for values in alike.fitted())
    is_alike = (like > MOST_SHAPE) & (table["pattern"] != 0)
    table["shape"] = np.where(is_alike, like, fitted.shape[chosen + first])
    table["time"] = np.where(is_alike, like / np.where(is_alike, rate, 1.0), fitted.time[chosen + first])
    table["siblings"] = np.rint(fitted.siblings[chosen + first])
    return Priors(default_time, table)


def _distinct(rising: NDArray[Any]) -> NDArray[Any]:
    """Return the values of an array in rising order, each once: faster than `numpy.unique`."""
    return rising[_begins(rising)]


def _begins(rising: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell of each value of an array in rising order whether it is the first of its kind."""
    return np.append(True, rising[1:] != rising[:-1]) if len(rising) else np.zeros(0, bool)


class PriorFits:
    """The priors of a crawl from plan to plan; see `STALE_SHARE` for when they are fitted anew."""

    def __init__(self) -> None:
        self.priors = Priors()
        self._read = 0
        self._is_fitted = False

    def after(self, teachers: Teachers, pages: int, read: int, default_time: float) -> Priors:
        """Return the priors when so many pages were read since the last plan, of so many; see `fit_priors` for the others."""
        self._read += read
        is_stale = self._read > STALE_SHARE * pages or abs(default_time / self.priors.default_time - 1) > STALE_SHARE
        if is_stale or not self._is_fitted or pages <= FEW:
            self.priors, self._read, self._is_fitted = fit_priors(teachers, default_time), 0, True
        return self.priors
