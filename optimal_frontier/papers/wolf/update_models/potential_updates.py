"""Potential update times and their probabilities, as callers write them: arrays, lists of different lengths, one number for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.papers.wolf.update_models.model import WIDEST
from optimal_frontier.validation import numeric_array


def potential_updates(times: ArrayLike, probabilities: ArrayLike) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Return times and probabilities, (n, Q), and () for a single page, (n,) for several."""
    ragged = _rows("times", times)
    at, chances = (numeric_array("times", times), None) if ragged is None else _filled(ragged, _rows("probabilities", probabilities))
    if at.ndim not in (1, 2):
        raise InvalidProblemError(f"times has shape {at.shape}; expected (Q,) for one page, or (n, Q)")
    if chances is None:
        chances = numeric_array("probabilities", probabilities)
        if chances.ndim and chances.shape != at.shape and chances.shape != at.shape[1:]:
            raise InvalidProblemError(f"probabilities has shape {chances.shape}; expected that of times, {at.shape}, or one number")
        chances = np.broadcast_to(chances, at.shape)
    pages = at.shape[:-1]
    rows, shares = np.atleast_2d(np.asarray(at, np.float64)), np.atleast_2d(np.asarray(chances, np.float64))
    wrong = ~((rows >= 0) & (rows <= 10.0**WIDEST))
    if wrong.any():
        raise InvalidProblemError(f"{entry('times', wrong, pages)} is {rows[wrong][0]}; expected a finite number, 0 or more")
    wrong[:, 1:] = rows[:, 1:] < rows[:, :-1]
    if wrong.any():
        raise InvalidProblemError(
            f"{entry('times', wrong, pages)} is {rows[wrong][0]}, before the one in front of it; expected rising times"
        )
    check_shares("probabilities", shares if pages else shares[0])
    return rows, shares, pages


def _rows(name: str, values: Any) -> list[Floats] | None:
    """Return rows of different lengths as arrays; None if they make up an array."""
    if isinstance(values, np.ndarray) or not hasattr(values, "__len__") or not any(hasattr(row, "__len__") for row in values):
        return None
    rows = [numeric_array(f"{name}[{index}]", row) for index, row in enumerate(values)]
    for index, row in enumerate(rows):
        if row.ndim != 1:
            raise InvalidProblemError(f"{name}[{index}] has shape {row.shape}; expected a list of numbers")
    return rows


def _filled(times: list[Floats], probabilities: list[Floats] | None) -> tuple[Floats, Floats | None]:
    """Fill rows up with their last time, at probability 0."""
    width = max(map(len, times), default=0)
    if probabilities is None and all(len(row) == width for row in times):
        return np.array(times).reshape(len(times), width), None
    lengths = None if probabilities is None else [len(row) for row in probabilities]
    if lengths is None:
        raise InvalidProblemError("probabilities: expected a list for each page, as times has lists of different lengths")
    if len(lengths) != len(times):
        raise InvalidProblemError(f"probabilities has {len(lengths)} rows for {len(times)} pages")
    at, chances = np.zeros((len(times), width)), np.zeros((len(times), width))
    for index, (row, shares) in enumerate(zip(times, probabilities or (), strict=True)):
        if len(row) != len(shares):
            raise InvalidProblemError(f"probabilities[{index}] has {len(shares)} entries for {len(row)} times")
        at[index, : len(row)], chances[index, : len(row)] = row, shares
        at[index, len(row) :] = row[-1] if len(row) else 0.0
    return at, chances


def check_shares(name: str, values: Floats) -> None:
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise InvalidProblemError(f"{entry(name, wrong, values.shape[:1])} is {values[wrong].flat[0]}; expected a probability, 0 to 1")


def entry(name: str, wrong: NDArray[np.bool_], pages: tuple[int, ...]) -> str:
    """What to call the first entry that is wrong: ``times[2, 3]``, or ``times[3]`` if there is one page."""
    index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return name if not index else f"{name}[{', '.join(map(str, index if pages else index[-1:]))}]"
