"""Checking what callers pass in: the public solvers validate here, the private kernels trust.

Every check raises `InvalidProblemError` with the name of the argument and the index of the first offending entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.sweeps import blockwise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def numeric_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """`values` as an array of numbers (bool, integer or float), of any shape."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidProblemError(f"{name}: expected an array of numbers ({error})") from error
    if array.dtype == object:  # None, Decimal, Fraction, ragged lists
        for index, entry in enumerate(array.flat):
            try:
                float(entry)
            except (ValueError, TypeError, OverflowError):
                raise InvalidProblemError(f"{name}[{index}] is {entry!r}, not a number") from None
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf" and array.size:
        raise InvalidProblemError(f"{name}: expected numbers, got an array of type {array.dtype}; the first entry is {array.flat[0]!r}")
    return array


def page_values(name: str, values: ArrayLike, n: int | None = None, *, positive: bool = False, infinite: bool = False) -> Floats:
    """One number per page, float64, checked.

    Parameters
    ----------
    name : str
        The argument, for the message.
    values : array_like (n,)
        Read-only, strided and list inputs are fine; nothing is written to them.
    n : int, optional
        Required length.
    positive : bool
        Refuse zeros as well as negative numbers.
    infinite : bool
        Accept +inf.
    """
    pages = page_array(name, values, n)
    check_values(name, pages, positive=positive, infinite=infinite)
    return pages


def page_array(name: str, values: ArrayLike, n: int | None = None) -> Floats:
    """One number per page, float64; the values themselves are still to be checked."""
    array = numeric_array(name, values)
    if array.ndim != 1:
        raise InvalidProblemError(f"{name}: expected one number per page, an array of shape (n,), got shape {array.shape}")
    if n is not None and array.size != n:
        raise InvalidProblemError(
            f"{name} has {array.size} entries for {n} pages; index {min(array.size, n)} is the first without a counterpart"
        )
    pages: Floats = array.astype(np.float64, copy=False)
    return pages


def check_values(name: str, pages: Floats, *, positive: bool = False, infinite: bool = False) -> None:
    """Refuse NaN, negative numbers, zeros if `positive`, and inf unless `infinite`."""
    if pages.size:
        lows, highs = zip(*blockwise(pages.size, lambda blocks: ((pages[at].min(), pages[at].max()) for at in blocks)), strict=True)
        low, high = float(np.min(lows)), float(np.max(highs))  # NaN comes through all of these
        if not ((low > 0 if positive else low >= 0) and (high < np.inf or (infinite and high == np.inf))):
            good = (pages > 0 if positive else pages >= 0) & (pages <= np.inf if infinite else pages < np.inf)
            index = int(np.argmin(good))
            kind = ("positive" if positive else "non-negative") + ("" if infinite else ", finite")
            raise InvalidProblemError(f"{name}[{index}] is {pages[index]}; expected a {kind} number")


def scalar(name: str, value: Any, *, positive: bool = False, infinite: bool = False) -> float:
    """One finite (unless `infinite`) number >= 0 (> 0 if `positive`)."""
    if isinstance(value, float):  # the usual case, kept cheap
        number = value
    else:
        array = numeric_array(name, value)
        if array.ndim != 0:
            raise InvalidProblemError(f"{name}: expected one number, got an array of shape {array.shape}")
        number = float(array)
    if not ((number > 0 if positive else number >= 0) and (infinite or number < np.inf)):
        raise InvalidProblemError(
            f"{name} is {number}; expected a {'positive' if positive else 'non-negative'}{'' if infinite else ', finite'} number"
        )
    return number


def page_or_scalar(name: str, value: ArrayLike | None, n: int, *, positive: bool = False, infinite: bool = False) -> Floats | float | None:
    """A scalar that holds for every page, one number per page, or None."""
    if value is None:
        return None
    if isinstance(value, float | int) or np.ndim(value) == 0:
        return scalar(name, value, positive=positive, infinite=infinite)
    return page_values(name, value, n, positive=positive, infinite=infinite)


def host_limits(host: ArrayLike | None, host_max_rate: ArrayLike | None, n: int) -> tuple[Integers, Floats] | None:
    """Host id of every page, and maximum rate of every host; None if there are no limits.

    Ids may be any non-negative integers if `host_max_rate` is a scalar; a per-host array is indexed by them.
    """
    if host_max_rate is None:
        return None
    if host is None:
        raise InvalidProblemError("host_max_rate is given, but host is not: which page is on which host?")
    ids = numeric_array("host", host)
    if ids.shape != (n,):
        raise InvalidProblemError(f"host has shape {ids.shape}; expected one integer for each of {n} pages")
    if ids.dtype.kind not in "iu" and n:
        whole = ids == np.floor(ids)
        if ids.dtype.kind == "b" or not whole.all():
            index = int(np.argmin(whole))
            raise InvalidProblemError(f"host[{index}] is {ids[index]}; expected an integer host id")
    if n and ids.min() < 0:
        index = int(np.argmax(ids < 0))
        raise InvalidProblemError(f"host[{index}] is {ids[index]}; host ids are non-negative integers")
    integers: Integers = ids.astype(np.int64, copy=False)
    if np.ndim(host_max_rate) == 0:
        limit = scalar("host_max_rate", host_max_rate, infinite=True)
        if n and int(integers.max()) >= 2 * n + 1024:  # hashes, not numbers in a row
            integers = np.unique(integers, return_inverse=True)[1].astype(np.int64, copy=False)
        return integers, np.full(int(integers.max()) + 1 if n else 0, limit)
    limits = page_values("host_max_rate", host_max_rate, infinite=True)
    if n and int(integers.max()) >= limits.size:
        index = int(np.argmax(integers >= limits.size))
        raise InvalidProblemError(f"host[{index}] is {integers[index]}, but host_max_rate has {limits.size} entries")
    return integers, limits
