"""Checking what callers pass in: the public solvers validate here, the private kernels trust.

Every check raises `InvalidProblemError` with the name of the argument and the index of the first offending entry.
"""

from __future__ import annotations

from decimal import Decimal
from math import log10
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.sweeps import blockwise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Powers of ten, either way, that numbers other than 0 may have, and those that prices made of them may have: doubles have 308, and sums
#: over many pages, and what is near the price, need some of them.
DECADES: Final = 290.0
#: Numbers within so many powers of ten, either way, make no product that leaves the range of doubles.
_ORDINARY_DECADES: Final = 30.0
#: Minimum rates up to this add up to a number.
_MOST_RATE: Final = 1e100


def numeric_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """`values` as an array of numbers (bool, integer or float), of any shape."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidProblemError(f"{_entry(name, np.ma.getmaskarray(values))} is masked; expected a number")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:  # ragged lists
        raise InvalidProblemError(f"{name}: expected an array of numbers ({error})") from error
    if array.dtype == object:  # None, Decimal, Fraction, integers beyond 64 bits
        return _numbers_of_objects(name, array)
    if array.dtype.kind not in "biuf" and array.size:
        raise InvalidProblemError(f"{name}: expected numbers, got an array of type {array.dtype}; the first entry is {array.flat[0]!r}")
    return array


def _numbers_of_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Integers if all entries are, so that host ids keep their digits. Text that reads like a number is none."""
    for index, entry in enumerate(array.flat):
        if not _is_number(entry):
            wrong = np.arange(array.size).reshape(array.shape) == index
            raise InvalidProblemError(f"{_entry(name, wrong)} is {_shown(entry)}; expected a number that a float can hold")
    if array.size and all(isinstance(entry, Integral) and -(2**63) <= int(entry) < 2**63 for entry in array.flat):
        return array.astype(np.int64)
    return array.astype(np.float64)


def _is_number(entry: object) -> bool:
    if not isinstance(entry, Real | Decimal | np.bool_):
        return False
    try:
        float(entry)
    except (ValueError, OverflowError):  # Decimal("sNaN"); 10 ** 400
        return False
    return True


def _entry(name: str, wrong: NDArray[np.bool_]) -> str:
    """What to call the first entry that is wrong: ``name`` if there is only one number, ``name[3]``, or ``name[3, 0]``."""
    if wrong.ndim == 0:
        return name
    return f"{name}[{', '.join(map(str, np.unravel_index(int(np.argmax(wrong)), wrong.shape)))}]"


def _shown(value: object) -> str:
    """A value in a message; a few characters of it, if there are thousands."""
    if isinstance(value, int) and value.bit_length() > 1024:  # too long to be printed
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def page_values(
    name: str,
    values: ArrayLike,
    n: int | None = None,
    *,
    positive: bool = False,
    infinite: bool = False,
    decades: float | None = None,
    alone: bool = False,
) -> Floats:
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
    decades : float, optional
        Refuse numbers outside ``10 ** -decades ... 10 ** decades``, but for 0: their products and sums may be no doubles.
    alone : bool
        Accept one number, for one page.
    """
    pages = page_array(name, values, n, alone=alone)
    check_values(name, pages, positive=positive, infinite=infinite, decades=decades)
    return pages


def page_array(name: str, values: ArrayLike, n: int | None = None, *, alone: bool = False) -> Floats:
    """One number per page, float64; the values themselves are still to be checked."""
    array = numeric_array(name, values)
    if alone and array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise InvalidProblemError(f"{name}: expected one number per page, an array of shape (n,), got shape {array.shape}")
    if n is not None and array.size != n:
        raise InvalidProblemError(
            f"{name} has {array.size} entries for {n} pages; index {min(array.size, n)} is the first without a counterpart"
        )
    if array.dtype == np.float64:
        pages: Floats = array.astype(np.float64, copy=False)
        return pages
    with np.errstate(over="ignore"):  # longdouble: inf is refused with its index later
        return array.astype(np.float64)


def check_values(
    name: str, pages: Floats, *, positive: bool = False, infinite: bool = False, decades: float | None = None
) -> tuple[float, float]:
    """Refuse NaN, negative numbers, zeros if `positive`, inf unless `infinite`, and what is out of the range of `decades`.

    Returns
    -------
    tuple of float
        The smallest entry (with `decades` the smallest above 0) and the largest; zeros if there is none.
    """
    if not pages.size:
        return 0.0, 0.0
    lows, highs = zip(*blockwise(pages.size, lambda blocks: ((pages[at].min(), pages[at].max()) for at in blocks)), strict=True)
    low, high = float(np.min(lows)), float(np.max(highs))  # NaN comes through all of these
    if not ((low > 0 if positive else low >= 0) and (high < np.inf or (infinite and high == np.inf))):
        good = (pages > 0 if positive else pages >= 0) & (pages <= np.inf if infinite else pages < np.inf)
        index = int(np.argmin(good))
        raise InvalidProblemError(f"{name}[{index}] is {pages[index]}; expected {_kind(positive, infinite)}")
    if decades is not None and high > 0:
        least, most = 10.0**-decades, 10.0**decades
        low = low or _smallest_positive(pages)
        if not (low >= least and high <= most):
            index = int(np.argmax(((pages < least) & (pages > 0)) | (pages > most)))
            raise InvalidProblemError(f"{name}[{index}] is {pages[index]}; {_range(positive, decades)}")
    return low, high


def check_prices(
    importance: Floats,
    change_rate: Floats,
    bandwidth: float,
    cost: Floats | float | None = None,
    *,
    ranges: tuple[tuple[float, float], tuple[float, float]],
    freshness: bool = True,
    by_share: bool = True,
    names: tuple[str, str, str] = ("importance", "change_rate", "bandwidth"),
) -> None:
    """Refuse numbers so far apart that no double holds the price of a visit, or what it is made of.

    Parameters
    ----------
    importance, change_rate, cost : ndarray (n,)
        Checked; the last may be one number, or None: 1.
    bandwidth : float
    ranges : tuple
        Of importance and change rate, from `check_values`: numbers of ordinary size are not looked at again.
    freshness : bool
        Otherwise the objective is changes seen.
    by_share : bool
        The price is searched for as a share of what a visit can be worth at most, so that this has to be a double as well.
    names : tuple of str
        What to call the first three.
    """
    low, high = 10.0**-_ORDINARY_DECADES, 10.0**_ORDINARY_DECADES
    cheap, dear = (1.0, 1.0) if cost is None or np.size(cost) == 0 else (float(np.min(cost)), float(np.max(cost)))
    spans = (*ranges, (bandwidth or 1.0, bandwidth), (cheap, dear))
    live = (importance > 0) & (change_rate > 0) if any(span[0] < low or span[1] > high for span in spans) else np.zeros(0, bool)
    if not live.any():
        return
    weight, change = np.log10(importance[live]), np.log10(change_rate[live])
    price = np.log10(cost[live]) if isinstance(cost, np.ndarray) else np.full(weight.size, log10(cheap))
    spend = log10(bandwidth) if bandwidth > 0 else float((change + price).min())
    worth = weight - price - (change if freshness else 0.0)  # of a visit that sees a change
    often = np.maximum(spend - price, change)
    least = float((weight - price + (1 if freshness else 2) * change - 2 * often).max())  # what the price is if one page gets all
    powers = [least, float(worth.max()), (float(worth.max()) - least) if by_share else 0.0]
    powers += [float(np.abs(power).max()) for power in (change + price, change - weight, spend - price)]
    powers += [float((weight if freshness else weight + np.minimum(change, often)).max())]
    powers += [float((0.5 * (weight + change - price)).max()) - spend]  # the inverse of the level of the water
    if max(map(abs, powers)) > DECADES:
        listed = ", ".join(names if cost is None else (*names, "cost"))
        raise InvalidProblemError(f"{listed} are too far apart, or too far from 1: no float holds the price of a visit; choose other units")


def _smallest_positive(pages: Floats) -> float:
    """The smallest entry above 0, by the bits: less 1, those of 0 and of -0 are larger than those of any number."""
    lows = blockwise(pages.size, lambda blocks: ((pages[at].view(np.uint64) - np.uint64(1)).min() for at in blocks))
    return float((np.array([min(lows)], np.uint64) + np.uint64(1)).view(np.float64)[0])


def _kind(positive: bool, infinite: bool) -> str:
    return f"a {'positive' if positive else 'non-negative'}{'' if infinite else ', finite'} number"


def _range(positive: bool, decades: float) -> str:
    return f"expected {'' if positive else '0, or '}a number from 1e-{decades:g} to 1e{decades:g}: choose other units"


def one_number(name: str, value: Any) -> float:
    """One number of any size, NaN and inf included."""
    if isinstance(value, float):  # the usual case, kept cheap
        return value
    array = numeric_array(name, value)
    if array.ndim != 0:
        raise InvalidProblemError(f"{name}: expected one number, got an array of shape {array.shape}")
    return float(array)


def scalar(name: str, value: Any, *, positive: bool = False, infinite: bool = False, decades: float | None = None) -> float:
    """One finite (unless `infinite`) number >= 0 (> 0 if `positive`), within so many `decades` of 1 if it is not 0 or inf."""
    number = value if isinstance(value, float) else one_number(name, value)
    if not ((number > 0 if positive else number >= 0) and (infinite or number < np.inf)):
        raise InvalidProblemError(f"{name} is {number}; expected {_kind(positive, infinite)}")
    if decades is not None and not (10.0**-decades <= number <= 10.0**decades) and 0 < number < np.inf:
        raise InvalidProblemError(f"{name} is {number}; {_range(positive, decades)}")
    return number


def signed_scalar(name: str, value: Any, *, infinite: bool = False) -> float:
    """One number, positive or negative; finite unless `infinite`."""
    number = one_number(name, value)
    if not (abs(number) <= np.inf if infinite else abs(number) < np.inf):
        raise InvalidProblemError(f"{name} is {number}; expected a {'' if infinite else 'finite '}number")
    return number


def whole_number(name: str, value: Any, least: int) -> int:
    """One whole number, `least` or more; 3.0 is one."""
    number = one_number(name, value)
    if not (least <= number <= 2.0**53 and number.is_integer()):
        raise InvalidProblemError(f"{name} is {number:g}; expected a whole number, at least {least}")
    return int(number)


def choice(name: str, value: Any, allowed: tuple[str, str]) -> None:
    """One of two words."""
    if not (isinstance(value, str) and value in allowed):
        raise InvalidProblemError(f"{name} is {_shown(value)}; expected {allowed[0]!r} or {allowed[1]!r}")


def page_or_scalar(
    name: str, value: ArrayLike | None, n: int, *, positive: bool = False, infinite: bool = False, decades: float | None = None
) -> Floats | float | None:
    """A scalar that holds for every page, one number per page, or None."""
    if value is None:
        return None
    array = value if isinstance(value, float | int) else numeric_array(name, value)
    if np.ndim(array) == 0:
        return scalar(name, array, positive=positive, infinite=infinite, decades=decades)
    return page_values(name, array, n, positive=positive, infinite=infinite, decades=decades)


def rate_bounds(min_rate: ArrayLike | None, max_rate: ArrayLike | None, n: int) -> tuple[Floats | float | None, Floats | float | None]:
    """Minimum and maximum rate of every page: finite minima, none above its maximum."""
    low = page_or_scalar("min_rate", min_rate, n)
    high = page_or_scalar("max_rate", max_rate, n, infinite=True)
    if low is not None and np.max(low, initial=0.0) > _MOST_RATE:
        at = int(np.argmax(np.atleast_1d(low) > _MOST_RATE))
        raise InvalidProblemError(f"min_rate[{at}] is {np.broadcast_to(low, n)[at]}; expected at most {_MOST_RATE}: choose other units")
    if low is not None and high is not None:
        crossed = np.flatnonzero(np.less(high, low))
        if crossed.size:
            at = int(crossed[0])
            raise InvalidProblemError(
                f"min_rate[{at}] is {np.broadcast_to(low, n)[at]}, above max_rate[{at}], {np.broadcast_to(high, n)[at]}"
            )
    return low, high


def host_limits(host: ArrayLike | None, host_max_rate: ArrayLike | None, n: int) -> tuple[Integers, Floats] | None:
    """Host id of every page, and maximum rate of every host; None if there are no limits.

    Ids may be any non-negative integers if `host_max_rate` is a scalar; a per-host array is indexed by them.
    """
    if host_max_rate is None:
        return None
    if host is None:
        raise InvalidProblemError("host_max_rate is given, but host is not: which page is on which host?")
    integers = _host_ids(host, n)
    rates = numeric_array("host_max_rate", host_max_rate)
    if rates.ndim == 0:
        limit = scalar("host_max_rate", rates, infinite=True)
        if n and int(integers.max()) >= 2 * n + 1024:  # hashes, not numbers in a row
            integers = np.unique(integers, return_inverse=True)[1].astype(np.int64, copy=False)
        return integers, np.full(int(integers.max()) + 1 if n else 0, limit)
    limits = page_values("host_max_rate", rates, infinite=True)
    if n and int(integers.max()) >= limits.size:
        index = int(np.argmax(integers >= limits.size))
        raise InvalidProblemError(f"host[{index}] is {integers[index]}, but host_max_rate has {limits.size} entries")
    return integers, limits


def _host_ids(host: ArrayLike, n: int) -> Integers:
    ids = numeric_array("host", host)
    if ids.shape != (n,):
        raise InvalidProblemError(f"host has shape {ids.shape}; expected one integer for each of {n} pages")
    if ids.dtype.kind not in "iu":
        whole = (ids == np.floor(ids)) & (ids.dtype.kind == "f")
        if not whole.all():
            index = int(np.argmin(whole))
            raise InvalidProblemError(f"host[{index}] is {ids[index]}; expected an integer host id")
    if n and not (ids.min() >= 0 and ids.max() < 2**63):
        index = int(np.argmax((ids < 0) | (ids >= 2**63)))
        raise InvalidProblemError(f"host[{index}] is {ids[index]}; host ids are integers from 0 to 2 ** 63 - 1")
    return ids.astype(np.int64, copy=False)
