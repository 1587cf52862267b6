"""Which heads are sound: what nothing that runs can have stored is damage, and neither planned nor handed out.

One rule for all who read rows: crawlers, planners, `check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from optimal_frontier.state.rows import ACTIVE, DONE, HEAD_BYTES, LAYOUT, Row

#: Microseconds by which a visit may lie in the future.
_AHEAD_US: Final = 60e6
#: Fields that are finite numbers in every row. `a` and `s` are looked at apart, as a rank stands there before the first attempt.
_NUMBERS: Final = ("shape", "time", "unseen", "watch_shape", "watch_time", "evidence", "surprise", "score", "variance", "spread")
#: Fields that are looked at.
CHECKED: Final = (*_NUMBERS, "state", "b", "importance", "min_interval", "max_interval", "a", "s", "e", "l")

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
    state, b, importance = heads["state"], heads["b"], heads["importance"]
    visited = (b > 0) & (state == ACTIVE)
    with np.errstate(invalid="ignore"):
        yield "has an unknown state", (state < ACTIVE) | (state > DONE)
        yield "has an importance that is not above 0", ~(importance > 0) | np.isinf(importance)
        yield "has bounds that are no interval", ~(heads["min_interval"] >= 0) | ~(heads["max_interval"] >= heads["min_interval"])
        yield "was visited in the future, or never", ~(b >= 0) | (b > now_us + _AHEAD_US) | np.isinf(b)
        # a alone may be infinite: no visit is worth the price.
        broken = np.isnan(heads["a"]) | ~np.isfinite(heads["s"]) | ~(heads["e"] >= 0) | ~(heads["l"] >= heads["e"])
        yield "has numbers that are no deadline", visited & broken
        shape, time = heads["shape"], heads["time"]
        yield "has half of a posterior", (shape < 0) | (time < 0) | ((shape > 0) != (time > 0))
        for name in _NUMBERS:
            yield f"has {name} that is no number", ~np.isfinite(heads[name])


def unsound(heads: np.ndarray) -> dict[int, str]:
    """Return the places of heads that are damaged, and what is wrong with each.

    Examples
    --------
    >>> from optimal_frontier.state.rows import Row
    >>> rows = [Row().pack(), Row(importance=float("nan")).pack(), Row(state=77).pack()]
    >>> unsound(np.frombuffer(b"".join(rows), LAYOUT))
    {2: 'has an unknown state', 1: 'has an importance that is not above 0'}
    """
    found: dict[int, str] = {}
    if not len(heads) or is_sound(heads).all():
        return found
    for message, broken in faults_of(heads):
        for at in np.flatnonzero(broken).tolist() if broken.any() else ():
            found.setdefault(at, message)
    return found


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
    whole = [at for at, value in enumerate(values) if value is not None and len(value) >= HEAD_BYTES]
    broken = unsound(np.frombuffer(b"".join([(values[at] or b"")[:HEAD_BYTES] for at in whole]), LAYOUT))
    rows: list[Row | None] = [None] * len(values)
    for place, at in enumerate(whole):
        if place not in broken:
            rows[at] = Row.unpack(values[at] or b"")
    return rows


def fault_of(head: bytes) -> str:
    """Return what is wrong with one packed head; empty: nothing."""
    return unsound(np.frombuffer(head, LAYOUT, 1)).get(0, "")
