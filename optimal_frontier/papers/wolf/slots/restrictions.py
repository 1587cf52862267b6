"""Which crawlers and slots a task may have: the forms that callers give it in, and which tasks it ties together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.slots.tasks import Tasks, first_slot_at
from optimal_frontier.validation import numeric_array


@dataclass(frozen=True)
class Restrictions:
    """What each task may have, with crawlers that all tasks treat alike taken together."""

    #: First and last slot of each task, (n,): by its window, and by its ideal time if it may not be early.
    first: Integers
    last: Integers
    #: Crawlers of each kind.
    kinds: list[Integers]
    #: Kinds of crawlers that each group of tasks may have.
    groups: list[tuple[int, ...]]
    #: Group of each task, (n,).
    group: Integers


def checked_restrictions(allowed: Any, tasks: Tasks, interval: float) -> Restrictions:
    """Return the restrictions of all tasks.

    Raises
    ------
    InvalidProblemError
        `allowed` has none of the accepted forms, or leaves a task no slot at all.
    """
    by_crawler, windows = _two_parts(allowed)
    first = np.where(tasks.not_before, tasks.ready, 0)
    last = np.full(tasks.n, tasks.slots - 1)
    if windows is not None:
        bounds = numeric_array("allowed", windows)
        if bounds.shape != (tasks.n, 2) or np.isnan(bounds).any():
            raise InvalidProblemError(f"allowed: expected windows of times as numbers of shape ({tasks.n}, 2), got shape {bounds.shape}")
        earliest, latest = bounds.astype(np.float64).T
        first = np.maximum(first, first_slot_at(earliest, tasks.slots, interval))
        last = np.minimum(last, first_slot_at(np.nextafter(latest, np.inf), tasks.slots, interval) - 1)
        _refuse(first > last, "a window without a slot in it, or none that its ideal time allows")
    if by_crawler is None:
        by_crawler = np.ones((tasks.n, tasks.crawlers), np.bool_)
    if by_crawler.shape != (tasks.n, tasks.crawlers):
        raise InvalidProblemError(f"allowed has shape {by_crawler.shape}; expected ({tasks.n}, {tasks.crawlers}), one column per crawler")
    _refuse(~by_crawler.any(axis=1), "no crawler")
    masks, group = np.unique(by_crawler, axis=0, return_inverse=True)
    columns, kind = np.unique(masks.T, axis=0, return_inverse=True)
    kinds = [np.flatnonzero(kind.reshape(-1) == number) for number in range(len(columns))]
    groups = [tuple(np.flatnonzero(column).tolist()) for column in columns.T]
    return Restrictions(first, last, kinds, groups, group.reshape(-1))


def _two_parts(allowed: Any) -> tuple[NDArray[np.bool_] | None, ArrayLike | None]:
    """Crawlers and windows; either may be None."""
    if isinstance(allowed, tuple) and len(allowed) == 2 and (allowed[0] is None or np.asarray(allowed[0]).dtype == np.bool_):
        crawlers, windows = allowed
    else:
        array = numeric_array("allowed", allowed)
        crawlers, windows = (array, None) if array.dtype == np.bool_ else (None, array)
    return None if crawlers is None else np.asarray(crawlers), windows


def _refuse(wrong: ArrayLike, what: str) -> None:
    if np.any(wrong):
        raise InvalidProblemError(f"allowed leaves task {int(np.argmax(wrong))} {what}")
