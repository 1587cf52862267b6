"""Which heads are sound: what nothing that runs can have stored is damage, and neither planned nor handed out.

One rule for all who read rows: crawlers, planners, `check`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from optimal_frontier.state.rows import ACTIVE, DONE, HEAD_BYTES, LAYOUT, Row

#: Microseconds by which a visit may lie in the future.
_AHEAD_US: Final = 60e6
#: Fields that are finite numbers in every row. `a` and `s` are looked at apart, as a rank stands there before the first attempt.
_NUMBERS: Final = {
    name: f"has {name} that is no number"
    for name in ("shape", "time", "unseen", "watch_shape", "watch_time", "evidence", "surprise", "score", "variance", "spread")
}
#: Fields that are looked at.
CHECKED: Final = (*_NUMBERS, "state", "b", "importance", "min_interval", "max_interval", "a", "s", "e", "l")

#: So many rows are looked at one by one in less time than all at once.
_FEW: Final = 16

#: Heads, an array of `LAYOUT`; or columns of them by name, those of `CHECKED` at least.
Heads: TypeAlias = "np.ndarray | Mapping[str, np.ndarray[Any, Any]]"


def faults_of(heads: Heads, now_us: float = np.inf) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what can be wrong with heads, and a mask of those that it is true of.

    Parameters
    ----------
    heads : ndarray of `LAYOUT`, shape (n,), or mapping of str to ndarray
    now_us : float
        Server's time, microseconds; inf: visits in the future are not looked for.
    """
    with np.errstate(invalid="ignore"):
        for message, sound in _rule(heads.__getitem__, now_us):
            yield message, ~sound


def _rule(of: Callable[[str], Any], now_us: float = math.inf) -> Iterator[tuple[str, Any]]:
    """Yield what can be wrong, and whether it is not; ``of`` gives a field, of one row or of many. No comparison holds for NaN."""
    state, b, importance = of("state"), of("b"), of("importance")
    yield "has an unknown state", (state >= ACTIVE) & (state <= DONE)
    yield "has an importance that is not above 0", (importance > 0) & (importance < math.inf)
    shortest = of("min_interval")
    yield "has bounds that are no interval", (shortest >= 0) & (of("max_interval") >= shortest)
    yield "was visited in the future, or never", (b >= 0) & (b <= now_us + _AHEAD_US) & (b < math.inf)
    a, s, e = of("a"), of("s"), of("e")
    # a alone may be infinite: no visit is worth the price.
    is_deadline = (a == a) & (s > -math.inf) & (s < math.inf) & (e >= 0) & (of("l") >= e)
    yield "has numbers that are no deadline", (b <= 0) | (state != ACTIVE) | is_deadline
    for name, message in _NUMBERS.items():
        number = of(name)
        yield message, (number > -math.inf) & (number < math.inf)
    shape, time = of("shape"), of("time")
    yield "has half of a posterior", (shape >= 0) & (time >= 0) & ((shape > 0) == (time > 0))


def _fault_of_row(row: Row) -> str:
    for message, sound in _rule(partial(getattr, row)):
        if not sound:
            return message
    return ""


def rows_of(values: Sequence[bytes | None]) -> tuple[list[Row | None], dict[int, str]]:
    """Return the rows of stored values (None where there is no value, or it is too short to be one), and the places of those that are
    damaged, with what is wrong with each.

    Examples
    --------
    >>> values = [Row().pack(), None, b"short", Row(importance=float("nan")).pack(), Row(state=77).pack()]
    >>> rows, faults = rows_of(values)
    >>> [row and row.state for row in rows], faults
    ([1, None, None, 1, 77], {3: 'has an importance that is not above 0', 4: 'has an unknown state'})
    """
    rows = [None if value is None or len(value) < HEAD_BYTES else Row.unpack(value) for value in values]
    whole = [at for at, row in enumerate(rows) if row is not None]
    if len(whole) > _FEW:
        heads = np.frombuffer(b"".join([(values[at] or b"")[:HEAD_BYTES] for at in whole]), LAYOUT)
        whole = [whole[place] for place in np.flatnonzero(~is_sound(heads)).tolist()]
    told = {at: _fault_of_row(row) for at in whole if (row := rows[at]) is not None}
    return rows, {at: fault for at, fault in told.items() if fault}


def is_sound(heads: Heads) -> np.ndarray:
    """Return a mask of the heads that are not damaged. Of columns in a third of the time."""
    broken = np.zeros(len(heads["state"]), bool)
    for _, one in faults_of(heads):
        broken |= one
    return ~broken


def sound_rows(values: Sequence[bytes | None]) -> list[Row | None]:
    """Return the rows of stored values; None where there is no value, or it is damaged.

    Examples
    --------
    >>> [row and row.state for row in sound_rows([Row().pack(), None, b"short", Row(state=77).pack()])]
    [1, None, None, None]
    """
    rows, faults = rows_of(values)
    return [None if at in faults else row for at, row in enumerate(rows)]


def fault_of(head: bytes) -> str:
    """Return what is wrong with one packed head; empty: nothing."""
    return _fault_of_row(Row.unpack(head))
