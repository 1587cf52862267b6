"""Checks of what callers hand to the estimators; the kernels behind them trust their input."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError

Scalar = TypeVar("Scalar", bound=np.generic)


def positive(value: float, name: str) -> float:
    """Return `value` as a float.

    Raises
    ------
    InvalidProblemError
        If it is not a number, not finite or not above zero.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0.0 < number < math.inf:
        raise InvalidProblemError(f"{name} must be a positive finite number, got {value!r}")
    return number


def positive_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array, any shape.

    Raises
    ------
    InvalidProblemError
        If they are not numbers, or one is not finite or not above zero; the message names the first.
    """
    array = _floats(values, name)
    good = (array > 0.0) & (array < np.inf)
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must be positive and finite, got {array[~good].flat[0]}")
    return array


def age_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array, any shape; NaN stands for what is not known.

    Raises
    ------
    InvalidProblemError
        If they are not numbers, or one is negative or infinite; the message names the first.
    """
    array = _floats(values, name)
    good = np.isnan(array) | ((array >= 0.0) & (array < np.inf))
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must be 0 or more and finite, or NaN, got {array[~good].flat[0]}")
    return array


def probability_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array, any shape.

    Raises
    ------
    InvalidProblemError
        If they are not numbers strictly between 0 and 1; the message names the first.
    """
    array = _floats(values, name)
    good = (array > 0.0) & (array < 1.0)
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must lie strictly between 0 and 1, got {array[~good].flat[0]}")
    return array


def bit_array(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return `values` (booleans, or the numbers 0 and 1) as a bool array, any shape.

    Raises
    ------
    InvalidProblemError
        If one is anything else, such as the None of a visit that gave no bit; the message names the first.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"{name} must be booleans: {error}") from error
    if array.dtype == np.bool_:
        return array
    if array.size == 0:
        return array.astype(np.bool_)
    ones = np.asarray(array == 1)
    good = ones | np.asarray(array == 0)
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must be a boolean, got {array[~good].flat[0]}")
    return ones


def count_array(values: ArrayLike, name: str, available: int) -> NDArray[np.int64]:
    """Return numbers of visits, one a page, that share out `available` visits, as int64, (n,).

    Raises
    ------
    InvalidProblemError
        If they are not whole numbers >= 0 in one dimension, or do not add up to `available`; the message names the first that is wrong.
    """
    array = vector(_floats(values, name), name)
    good = (array >= 0.0) & (array == np.floor(array)) & (array < np.inf)
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must be a whole number of visits, 0 or more, got {array[~good].flat[0]}")
    end = np.cumsum(array)
    good = end <= available
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} goes up to visit {end[~good].flat[0]:.0f}, but there are {available}")
    if array.sum() < available:
        raise InvalidProblemError(f"{name} adds up to {array.sum():.0f} visits, but there are {available}")
    return array.astype(np.int64)


def vector(array: NDArray[Scalar], name: str) -> NDArray[Scalar]:
    """Return `array`.

    Raises
    ------
    InvalidProblemError
        If it does not have exactly one dimension.
    """
    if array.ndim != 1:
        raise InvalidProblemError(f"{name} must have one dimension, got shape {array.shape}")
    return array


def page_array(values: ArrayLike, name: str, shape: tuple[int, ...], *, zero: bool = False, infinite: bool = False) -> NDArray[np.float64]:
    """Return `values`, one number for all pages or one for each, as a float64 array of the given shape.

    Raises
    ------
    InvalidProblemError
        If they are neither, or one is NaN, negative, zero (unless `zero`) or infinite (unless `infinite`); the message names the first.
    """
    array = _floats(values, name)
    if array.shape not in ((), shape):
        raise InvalidProblemError(f"{name} must be one number{f' or have shape {shape}' if shape else ''}, got shape {array.shape}")
    good = (array >= 0.0 if zero else array > 0.0) & (array <= np.inf if infinite else array < np.inf)
    if not good.all():
        kind = ("0 or more" if zero else "positive") + ("" if infinite else " and finite")
        raise InvalidProblemError(f"{name}{_first(good)} must be {kind}, got {array[~good].flat[0]}")
    return np.broadcast_to(array, shape)


def rate_bounds(
    lower: ArrayLike | None, upper: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds on change rates, 0 and inf where there are none, as float64 arrays of the given shape.

    Raises
    ------
    InvalidProblemError
        If one is not a rate, or a lower one exceeds its upper one; the message names the first.
    """
    low = page_array(0.0 if lower is None else lower, "lower", shape, zero=True)
    high = page_array(np.inf if upper is None else upper, "upper", shape, infinite=True)
    good = np.asarray(low <= high)
    if not good.all():
        raise InvalidProblemError(f"lower{_first(good)} must not exceed upper, got {low[~good].flat[0]} > {high[~good].flat[0]}")
    return low, high


def broadcast_shape(**arrays: NDArray[np.generic]) -> tuple[int, ...]:
    """Return the common shape of the named arrays.

    Raises
    ------
    InvalidProblemError
        If there is none; the message names each array with its shape.
    """
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidProblemError(f"shapes do not go together: {shapes}") from error


def _floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:  # rows of unequal length, for one
        raise InvalidProblemError(f"{name} must be numbers: {error}") from error
    if array.dtype == np.float64:
        return array
    if array.dtype.kind == "O":  # None, Decimal, Fraction, integers beyond 64 bits
        for index, entry in np.ndenumerate(array):
            try:
                if isinstance(entry, str | bytes):
                    raise TypeError("it is text")
                float(entry)
            except (TypeError, ValueError, OverflowError) as error:
                place = "[" + ", ".join(map(str, index)) + "]" if index else ""
                raise InvalidProblemError(f"{name}{place} must be a number, got {entry!r}: {error}") from error
    elif array.dtype.kind not in "biuf" and array.size:  # text, complex numbers and times would be converted without a word
        first = "[" + ", ".join("0" * array.ndim) + "]" if array.ndim else ""
        raise InvalidProblemError(f"{name}{first} must be a number, got {str(array.flat[0])!r}")
    with np.errstate(over="ignore"):  # a long double out of range becomes inf, which is refused by the caller
        return array.astype(np.float64)


def _first(good: NDArray[np.bool_]) -> str:
    """``[i]`` (``[i, j]`` in more dimensions, nothing for a scalar) of the first False."""
    if good.ndim == 0:
        return ""
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    return "[" + ", ".join(str(int(i)) for i in index) + "]"
