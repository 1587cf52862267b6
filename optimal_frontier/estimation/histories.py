"""Histories of visits, of one page or of many: ragged rows joined end to end, and sums over them without a loop over pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.validation import bit_array, broadcast_values, check_order, check_vector, float_array, number_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]

#: An interval shorter than this part of the page's longest counts as this part, so that no product leaves the range of a float.
SHORTEST = 1e-100
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Rows:
    """Values of rows of different lengths, none of them 0, joined end to end."""

    #: The values, one row after the other.
    values: Floats
    #: Length of each row.
    counts: Integers
    #: Where each row begins.
    starts: Integers

    @classmethod
    def joined(cls, values: Floats, counts: Integers) -> Rows:
        return cls(values, counts, np.cumsum(counts) - counts)

    def total(self, values: NDArray[np.generic]) -> Floats:
        """Sum over each row, of anything laid out like `values`."""
        return np.add.reduceat(values, self.starts, dtype=np.float64)

    def spread(self, row_values: NDArray[np.generic]) -> Floats:
        """One number per row, repeated for each value of it."""
        return np.repeat(row_values, self.counts)

    def only(self, keep: Bits) -> Rows:
        """The rows where `keep` is true."""
        return self if keep.all() else Rows.joined(self.values[self.spread(keep)], self.counts[keep])


@dataclass(frozen=True, slots=True)
class Histories:
    """What is known of one page or of many, in units in which the longest interval of every page is 1."""

    #: Intervals of the pages that have been visited, a row each.
    intervals: Rows
    #: Whether the page had changed, laid out like the intervals.
    changed: Bits
    #: Longest interval of each visited page, in the caller's unit.
    longest: Floats
    #: Which pages those are.
    visited: Bits
    #: () for one page, (n,) for many.
    shape: tuple[int, ...]

    def every_page(self, rates: Floats) -> Floats:
        """Rates of the visited pages, in units of 1 / their longest interval -> rates of all, in the caller's unit; 0 without visits."""
        everywhere = np.zeros(self.visited.size)
        with np.errstate(over="ignore", under="ignore"):
            everywhere[self.visited] = np.minimum(rates / self.longest, _LARGEST)
        return everywhere.reshape(self.shape)

    def pages_where(self, condition: Bits) -> Bits:
        """A condition on the visited pages -> one on all; false without visits."""
        everywhere = np.zeros(self.visited.size, dtype=np.bool_)
        everywhere[self.visited] = condition
        return everywhere.reshape(self.shape)


def read_histories(intervals: ArrayLike, changed: ArrayLike, counts: ArrayLike | None) -> Histories:
    """Check and scale what the caller gave.

    Raises
    ------
    InvalidProblemError
        If an interval is not positive and finite, a bit not boolean, or the lengths do not go together.
    """
    rows, visited, shape = read_intervals(intervals, counts)
    bits = bit_array("changed", changed)
    check_vector("changed", bits)
    if bits.size != rows.values.size:
        first = min(bits.size, rows.values.size)
        raise InvalidProblemError(
            f"changed has {bits.size} entries for {rows.values.size} intervals; index {first} is the first without a counterpart"
        )
    longest = np.maximum.reduceat(rows.values, rows.starts)
    with np.errstate(under="ignore"):
        scaled = np.maximum(rows.values / rows.spread(longest), SHORTEST)
    return Histories(Rows(scaled, rows.counts, rows.starts), bits, longest, visited, shape)


def read_intervals(intervals: ArrayLike, counts: ArrayLike | None) -> tuple[Rows, Bits, tuple[int, ...]]:
    """Check the caller's intervals; return those of the visited pages, which pages those are, and the shape of an answer.

    Raises
    ------
    InvalidProblemError
        If an interval is not positive and finite, or `counts` does not share them out.
    """
    visits = number_array("intervals", intervals, positive=True)
    check_vector("intervals", visits)
    lengths = np.array([visits.size]) if counts is None else _read_counts(counts, visits.size)
    visited = lengths > 0
    return Rows.joined(visits, lengths[visited]), visited, () if counts is None else lengths.shape


def _read_counts(counts: ArrayLike, available: int) -> Integers:
    """Numbers of visits, one a page, that share out the visits there are."""
    array = float_array("counts", counts)
    check_vector("counts", array)
    wrong = ~((array >= 0.0) & (array == np.floor(array)) & (array < np.inf))
    if wrong.any():
        index = int(np.argmax(wrong))
        raise InvalidProblemError(f"counts[{index}] is {array[index]}; expected a whole number of visits, 0 or more")
    end = np.cumsum(array)
    beyond = end > available
    if beyond.any():
        index = int(np.argmax(beyond))
        raise InvalidProblemError(f"counts[{index}] goes up to visit {end[index]:.0f}, but there are {available}")
    if array.sum() < available:
        raise InvalidProblemError(f"counts adds up to {array.sum():.0f} visits, but there are {available}")
    return array.astype(np.int64)


def read_bounds(lower: ArrayLike | None, upper: ArrayLike | None, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Check the caller's bounds on change rates; 0 and inf where there are none, as arrays of the shape of an answer.

    Raises
    ------
    InvalidProblemError
        If one is not a rate, or a lower one exceeds its upper one; the message names the first.
    """
    low = broadcast_values("lower", 0.0 if lower is None else lower, shape)
    high = broadcast_values("upper", np.inf if upper is None else upper, shape, positive=True, infinite=True)
    check_order("lower", low, "upper", high)
    return low, high


def as_answer(per_page: Floats) -> float | Floats:
    """A float for one page, the array for many."""
    return float(per_page) if per_page.ndim == 0 else per_page
