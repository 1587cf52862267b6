"""Checks of what callers hand to the estimators; the kernels behind them trust their input."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError


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
        raise InvalidProblemError(f"{name}{_first(good)} must be positive and finite, got {array[~good].flat[0]!r}")
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
        raise InvalidProblemError(f"{name}{_first(good)} must lie strictly between 0 and 1, got {array[~good].flat[0]!r}")
    return array


def bit_array(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return `values` (booleans, or the numbers 0 and 1) as a bool array, any shape.

    Raises
    ------
    InvalidProblemError
        If one is anything else, such as the None of a visit that gave no bit; the message names the first.
    """
    array = np.asarray(values)
    if array.dtype == np.bool_:
        return array
    if array.size == 0:
        return array.astype(np.bool_)
    ones = np.asarray(array == 1)
    good = ones | np.asarray(array == 0)
    if not good.all():
        raise InvalidProblemError(f"{name}{_first(good)} must be a boolean, got {array[~good].flat[0]!r}")
    return ones


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
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name} must be numbers: {error}") from error


def _first(good: NDArray[np.bool_]) -> str:
    """``[i]`` (``[i, j]`` in more dimensions, nothing for a scalar) of the first False."""
    if good.ndim == 0:
        return ""
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    return "[" + ", ".join(str(int(i)) for i in index) + "]"
