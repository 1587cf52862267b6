"""Checks of arguments: public functions validate with these, private kernels trust.

Every check takes the name of the argument and its value. `InvalidProblemError` has one form: ``name[3] is -1.0; expected a positive
number`` for the first offending entry, ``name: expected one number, got ...`` where the whole is of the wrong kind or shape.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Entries that are looked at together, so that they stay in the processor's cache.
_BLOCK = 32768


def numeric_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """`values` as an array of numbers (bool, integer or float), of any shape."""
    array = _any_array(name, values, "numbers")
    if array.dtype == object:  # None, Decimal, Fraction, integers beyond 64 bits
        return _numbers_of_objects(name, array)
    if array.dtype.kind not in "biuf" and array.size:  # text, complex numbers and times would be converted without a word
        raise InvalidProblemError(f"{name}: expected numbers, got an array of type {array.dtype}; the first entry is {array.flat[0]!r}")
    return array


def float_array(name: str, values: ArrayLike) -> Floats:
    """Numbers of any shape as float64; the values themselves are still to be checked."""
    array = numeric_array(name, values)
    if array.dtype == np.float64:
        floats: Floats = array.astype(np.float64, copy=False)
        return floats
    with np.errstate(over="ignore"):  # longdouble: inf is refused with its index later
        return array.astype(np.float64)


def check_values(
    name: str, values: Floats, *, positive: bool = False, infinite: bool = False, decades: float | None = None
) -> tuple[float, float]:
    """Refuse NaN, negative numbers, zeros if `positive`, inf unless `infinite`, and what is out of the range of `decades`.

    Returns
    -------
    tuple of float
        The smallest entry (with `decades` the smallest above 0) and the largest; zeros if there is none.
    """
    if not values.size:
        return 0.0, 0.0
    low, high = float(values.min()), float(values.max())  # NaN comes through both
    if not ((low > 0 if positive else low >= 0) and (high < np.inf or (infinite and high == np.inf))):
        good = (values > 0 if positive else values >= 0) & (values <= np.inf if infinite else values < np.inf)
        _refuse(name, values, ~np.asarray(good), _kind(positive, infinite))
    if decades is not None and high > 0:
        least, most = 10.0**-decades, 10.0**decades
        low = low or _smallest_positive(values)
        if not (low >= least and high <= most):
            _refuse(name, values, ((values < least) & (values > 0)) | (values > most), _range(positive, decades))
    return low, high


def number_array(
    name: str, values: ArrayLike, *, positive: bool = False, infinite: bool = False, unknown: bool = False, decades: float | None = None
) -> Floats:
    """Numbers >= 0 of any shape, float64, checked as by `check_values`; with `unknown` NaN is allowed and stands for what is not known."""
    array = float_array(name, values)
    if unknown:
        good = np.isnan(array) | ((array > 0 if positive else array >= 0) & (array <= np.inf if infinite else array < np.inf))
        if not good.all():
            _refuse(name, array, ~np.asarray(good), f"{_kind(positive, infinite)}, or NaN")
        return array
    check_values(name, array, positive=positive, infinite=infinite, decades=decades)
    return array


def page_array(name: str, values: ArrayLike, n: int | None = None, *, alone: bool = False) -> Floats:
    """One number per page, float64; the values themselves are still to be checked. `alone`: one number is one page."""
    array = float_array(name, values)
    if alone and array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise InvalidProblemError(f"{name}: expected one number per page, an array of shape (n,), got shape {array.shape}")
    if n is not None and array.size != n:
        raise InvalidProblemError(
            f"{name} has {array.size} entries for {n} pages; index {min(array.size, n)} is the first without a counterpart"
        )
    return array


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


def broadcast_values(name: str, values: ArrayLike, shape: tuple[int, ...], *, positive: bool = False, infinite: bool = False) -> Floats:
    """One number for all pages or one for each, as a float64 array of the given shape."""
    array = float_array(name, values)
    if array.shape not in ((), shape):
        raise InvalidProblemError(f"{name}: expected one number{f' or shape {shape}' if shape else ''}, got shape {array.shape}")
    check_values(name, array, positive=positive, infinite=infinite)
    return np.broadcast_to(array, shape)


def probability_array(name: str, values: ArrayLike) -> Floats:
    """Numbers strictly between 0 and 1, any shape, float64."""
    array = float_array(name, values)
    good = np.asarray((array > 0.0) & (array < 1.0))
    if not good.all():
        _refuse(name, array, ~good, "a number strictly between 0 and 1")
    return array


def bit_array(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Booleans, or the numbers 0 and 1, any shape, as bool. None, as of a visit that gave no bit, is refused."""
    array = _any_array(name, values, "booleans")
    if array.dtype == np.bool_:
        return array
    if array.size == 0:
        return array.astype(np.bool_)
    ones = np.asarray(array == 1)
    good = ones | np.asarray(array == 0)
    if not good.all():
        _refuse(name, array, ~good, "a boolean")
    return ones


def id_array(name: str, values: ArrayLike, n: int) -> Integers:
    """One id per page, an integer from 0 to 2 ** 63 - 1; 3.0 is one, True is none."""
    ids = numeric_array(name, values)
    if ids.shape != (n,):
        raise InvalidProblemError(f"{name}: expected one integer for each of {n} pages, got shape {ids.shape}")
    if ids.dtype.kind not in "iu":
        whole = (ids == np.floor(ids)) & (ids.dtype.kind == "f")
        if not whole.all():
            _refuse(name, ids, ~whole, f"an integer {name} id")
    if n and not (ids.min() >= 0 and ids.max() < 2**63):
        _refuse(name, ids, (ids < 0) | (ids >= 2**63), f"a {name} id, an integer from 0 to 2 ** 63 - 1")
    return ids.astype(np.int64, copy=False)


def check_order(low_name: str, low: Floats | float, high_name: str, high: Floats | float) -> None:
    """Refuse a lower bound above its upper one."""
    crossed = np.asarray(np.greater(low, high))
    if crossed.any():
        lows, highs = (np.broadcast_to(bound, crossed.shape) for bound in (low, high))
        raise InvalidProblemError(
            f"{_entry(low_name, crossed)} is {lows[crossed].flat[0]}, above {_entry(high_name, crossed)}, {highs[crossed].flat[0]}"
        )


def check_vector(name: str, array: NDArray[Any]) -> None:
    """Refuse an array that does not have exactly one dimension."""
    if array.ndim != 1:
        raise InvalidProblemError(f"{name}: expected one dimension, got shape {array.shape}")


def broadcast_shape(**arrays: NDArray[Any]) -> tuple[int, ...]:
    """The common shape of named arrays; the message names each with its shape if there is none."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidProblemError(f"shapes do not go together: {shapes}") from error


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
        raise InvalidProblemError(f"{name} is {number}; expected {_range(positive, decades)}")
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


def _any_array(name: str, values: ArrayLike, kind: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidProblemError(f"{_entry(name, np.ma.getmaskarray(values))} is masked; expected {kind}")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:  # rows of different lengths, for one
        raise InvalidProblemError(f"{name}: expected an array of {kind} ({error})") from error


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


def _refuse(name: str, values: NDArray[Any], wrong: NDArray[np.bool_], expected: str) -> None:
    raise InvalidProblemError(f"{_entry(name, wrong)} is {values[wrong].flat[0]}; expected {expected}")


def _entry(name: str, wrong: NDArray[np.bool_]) -> str:
    """What to call the first entry that is wrong: ``name`` if there is only one number, ``name[3]``, or ``name[3, 0]``."""
    if wrong.ndim == 0:
        return name
    return f"{name}[{', '.join(str(int(at)) for at in np.unravel_index(int(np.argmax(wrong)), wrong.shape))}]"


def _shown(value: object) -> str:
    """A value in a message; a few characters of it, if there are thousands."""
    if isinstance(value, int) and value.bit_length() > 1024:  # too long to be printed
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _smallest_positive(values: Floats) -> float:
    """The smallest entry above 0, by the bits: less 1, those of 0 and of -0 are larger than those of any number."""
    flat = values.ravel()
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    lowest = min((block.view(np.uint64) - np.uint64(1)).min() for block in blocks)
    return float((np.array([lowest], np.uint64) + np.uint64(1)).view(np.float64)[0])


def _kind(positive: bool, infinite: bool) -> str:
    return f"a {'positive' if positive else 'non-negative'}{'' if infinite else ', finite'} number"


def _range(positive: bool, decades: float) -> str:
    return f"{'' if positive else '0, or '}a number from 1e-{decades:g} to 1e{decades:g}: choose other units"
