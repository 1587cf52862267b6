"""The largest so many entries of sorted columns, after Frederickson and Johnson: in time that is linear in the number of pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.papers.wolf.allocation.first_differences import Columns

Mask = NDArray[np.bool_]


def select(columns: Columns, low: Integers, high: Integers, total: int) -> Integers:
    """Return how many entries of each column are among the best, `total` over all, between `low` and `high` in each.

    Parameters
    ----------
    columns : Columns
    low, high : ndarray of int (n,)
        Fewest and most of each page; their sums are at most and at least `total`.
    total : int

    Notes
    -----
    Entries are ranked by worth, then page, then position, so that the answer is one. Three stages, as in the paper:

    1. `cut` looks at entries whose distance doubles, and leaves O(spare + n) candidates, ``spare = total - sum of low``.
    2. `narrow` looks at every step-th candidate: those that are certainly among the best raise `low`, those that certainly are not
       lower `high`, and O(n step) are left. The step starts at the power of two below spare / n and is halved each time, so O(n) entries
       are looked at in each of the log2(spare / n) rounds.
    3. At step 1 these are all candidates that are left, O(n), and the best of them are selected.

    With the linear-time selection of `numpy.partition` this is O(max(n, n log(total / n))).
    """
    spare = total - int(low.sum())
    high = np.minimum(high, low + spare)
    if spare == 0:
        return low
    step = 1 << max(0, (spare // columns.n).bit_length() - 1)
    high = cut(columns, low, high, spare, step)
    while step > 1:
        low, high = narrow(columns, low, high, total - int(low.sum()), step)
        step //= 2
    return finish(columns, low, high, total - int(low.sum()))


def finish(columns: Columns, low: Integers, high: Integers, spare: int) -> Integers:
    """Return `low` and the `spare` best of the entries between `low` and `high`, all of which are looked at."""
    pages, _, worth = entries(columns, low, high - low, 1)
    return low + np.bincount(pages[best(worth, spare)], minlength=columns.n)


def cut(columns: Columns, low: Integers, high: Integers, spare: int, step: int) -> Integers:
    """Return a `high` that leaves O(spare + n step) candidates, of which the `spare` best are the same.

    Entry ``step 2^t`` of a column stands for the half of them before it, which are worth no less. If entries that stand for `spare`
    together are worth a price, then what is worth less than that is not wanted; and what is left of a column is at most twice what its
    entries stood for, and a step.
    """
    alive = np.flatnonzero(high - low >= step)
    found: list[tuple[Integers, Integers, Floats]] = []
    reach = step
    while alive.size:
        worth = columns.worth(alive, low[alive] + (reach - 1))
        stands_for = reach if reach == step else reach // 2
        found.append((alive, np.full(alive.size, stands_for), worth))
        alive = alive[best(worth, -(-spare // reach))]  # the others cannot reach so far, as those that come before fill it all
        reach *= 2
        alive = alive[high[alive] - low[alive] >= reach]
    if not found:
        return high
    # Page after page, as ranks have it; stable sorting merges the few sorted runs.
    order = np.argsort(np.concatenate([pages for pages, _, _ in found]), kind="stable")
    pages, weight, worth = (np.concatenate(parts)[order] for parts in zip(*found, strict=True))
    if int(weight.sum()) <= spare:
        return high
    passed = np.bincount(pages[heaviest(worth, weight, spare)], minlength=columns.n)
    doublings = np.minimum(passed, 62 - step.bit_length())
    nearer: Integers = np.minimum(high, low + (np.int64(step) << doublings) - 1)
    return nearer


def narrow(columns: Columns, low: Integers, high: Integers, spare: int, step: int) -> tuple[Integers, Integers]:
    """Return `low` and `high` at most O(n step) apart, in sum, by looking at every step-th entry."""
    pages, _, worth = entries(columns, low, (high - low) // step, step)
    # So many steps hold `spare` entries, all of them worth as much as the last step's end or more: what is worth less is not wanted.
    passed = np.bincount(pages[best(worth, -(-spare // step))], minlength=columns.n)
    if worth.size >= -(-spare // step):
        high = np.minimum(high, low + (passed + 1) * step - 1)
    # Each column holds less than a step besides its whole steps: where these and so many steps are `spare` at most, all are wanted.
    certain = (spare - int(np.minimum(high - low, step - 1).sum())) // step
    if certain > 0:
        low = low + step * np.bincount(pages[best(worth, certain)], minlength=columns.n)
    return low, high


def entries(columns: Columns, low: Integers, counts: Integers, step: int) -> tuple[Integers, Integers, Floats]:
    """Return page, position and worth of the entries at ``low + step``, ``low + 2 step``, ...: `counts` of each page, in order.

    The position is how many crawls a page has with that entry.
    """
    pages = np.repeat(np.arange(columns.n), counts)
    position = np.arange(1, pages.size + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    position *= step
    position += low[pages]
    return pages, position, columns.worth(pages, position - 1)


def best(worth: Floats, wanted: int) -> Mask:
    """Return which are the `wanted` largest; of equal ones the first."""
    size = worth.size
    if wanted >= size:
        return np.ones(size, np.bool_)
    if wanted <= 0:
        return np.zeros(size, np.bool_)
    price = np.partition(worth, size - wanted)[size - wanted]
    chosen: Mask = worth > price
    chosen[np.flatnonzero(worth == price)[: wanted - int(np.count_nonzero(chosen))]] = True
    return chosen


def heaviest(worth: Floats, weight: Integers, wanted: int) -> Mask:
    """Return which of the largest, of equal ones the first, are needed to weigh `wanted` or more together; not all of them do.

    Linear: each round halves what is left.
    """
    left, above = np.arange(worth.size), 0
    while True:
        mine = worth[left]
        middle = np.partition(mine, mine.size // 2)[mine.size // 2]
        larger = left[mine > middle]
        heavier = above + int(weight[larger].sum())
        if heavier >= wanted:
            left = larger
            continue
        equal = left[mine == middle]
        sums = heavier + np.cumsum(weight[equal])
        if sums[-1] >= wanted:
            chosen: Mask = worth > middle
            chosen[equal[: int(np.searchsorted(sums, wanted)) + 1]] = True
            return chosen
        left, above = left[mine < middle], int(sums[-1])
