"""Which stored numbers a plan makes anew: those of pages whose deadline has moved, and of no other.

A judge makes exact numbers at each visit, and they are right to first order at any price. So a plan has something to say only of pages that
it has just read, whose prior or host's price has changed, that were not worth a visit and are now, or whose place in the queue was found at
a price that is far above today's. Of these the deadlines are computed, and those that moved by more than `MOVED` of the wait are written. A
price that has risen moves none: dispatch puts pages back that come up early.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.judging.waits import Terms, are_given_up, change_rates_of, goes_by_price, priced_numbers
from optimal_frontier.frontier.planning.page_columns import Pages, find_medians
from optimal_frontier.scheduling.clocked import is_noticeable, on_clock
from optimal_frontier.scheduling.exploration import NEVER_S
from optimal_frontier.scheduling.numbers import ManyNumbers, waits
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.rows import NUMBERS_BYTES

#: A deadline has moved when it did by more than this share of the wait.
MOVED: Final = 0.05
#: A clock that has moved by less than this share of the wait moves no deadline noticeably: slopes are half of the wait at least.
_LEAST_SHIFT: Final = 0.0499
#: RESOLVE_INTERVALs until the plan after next.
AHEAD: Final = 2.0
#: Seconds from now within which a deadline may be in the past.
_SOON: Final = 1.0
#: What a row cannot hold in 32 bits.
_FAR: Final = 3e38
#: A page and its numbers, as `write_plan` takes them.
WRITTEN: Final = np.dtype([("page", f"V{PAGE_BYTES}"), ("b", "<f8"), ("a", "<f4"), ("s", "<f4"), ("e", "<f4"), ("l", "<f4")], align=False)
if WRITTEN.itemsize != PAGE_BYTES + NUMBERS_BYTES:
    raise AssertionError("write_plan takes another layout")

#: Pages of which is made at once what is sent.
_AT_ONCE: Final = 64 * 128

#: Columns of pages by which the price may go; what numbers are made of beside these, and what they are compared with.
GOES_BY: Final = ("state", "visits", "failures", "min_interval", "max_interval", "a", "l", "flags")
_MADE_OF: Final = ("id", "b", "importance", "shape", "time", "median", "pattern", "host", "failed", "shift")
_COMPARED: Final = (*GOES_BY, *_MADE_OF, "s", "e", "placed")

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Moved(NamedTuple):
    """Pages that are written: where they stand in the table, and what is sent of each, an array of `WRITTEN`."""

    at: Indices
    rows: NDArray[Any]


#: A plan sends another call for each so many seconds of the quickest round trip, and no more than so many at once: that holds dispatch up
#: for a small part of the time that its own way takes.
_WAY_OF_A_CALL_S: Final = 0.008
_MOST_AT_ONCE: Final = 32


def calls_at_once(trip_s: float) -> int:
    """Return how many calls that write numbers go in one round trip: one, and more where that takes long, as the server is far away.

    Parameters
    ----------
    trip_s : float
        Seconds of the quickest one so far; 0: not known. The quickest, as one that a busy server has held up says nothing of the way.

    Examples
    --------
    >>> [calls_at_once(trip_s) for trip_s in (0.0, 0.001, 0.02, 0.1, 1.0)]
    [1, 1, 3, 13, 32]
    """
    return min(1 + int(trip_s / _WAY_OF_A_CALL_S), _MOST_AT_ONCE)


def is_displaced(pages: Pages, terms: Terms, now: float) -> NDArray[np.bool_]:
    """Tell of each page whether it may have moved without being visited: the price has, or a visit has become worth while.

    Parameters
    ----------
    pages : Pages
        As they are known.
    terms : Terms
        The price by which the partition dispatches from now on, and the plan.
    now : float
        Server's time, seconds since the epoch.

    Notes
    -----
    Where the price has risen, pages come up early and dispatch puts them back. Where it fell, they would come up late; those that are due
    before the plan after next are placed anew.
    """
    price = terms.log_price
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # Column by column only of the pages that are left: nearly all of them are where they belong.
        wait = np.minimum(np.maximum(pages["a"] + pages["s"] * price, pages["e"]), pages["l"])
        drifted = np.flatnonzero((pages["placed"] - price) * pages["s"] > MOVED * wait)
        drifted = drifted[pages["b"][drifted] / 1e6 + wait[drifted] <= now + AHEAD * terms.settings.resolve_interval]
        worthless = np.flatnonzero(np.isinf(pages["a"]))
        worth = np.log(pages["importance"][worthless])
        if terms.settings.objective == "freshness":
            worth = worth - np.log(pages["median"][worthless])
    # What has no bit has no number here.
    some = np.concatenate([drifted, worthless[~(worth <= min(price, terms.published.lasting))]])
    found = np.zeros(pages.count, bool)
    found[some] = goes_by_price(pages.some(some, GOES_BY))
    return found


def given_up(pages: Pages) -> int:
    """Return how many pages are given up, as their numbers have it."""
    some = np.flatnonzero(pages["a"] >= NEVER_S)
    return int(np.count_nonzero(are_given_up(pages.some(some, ("state", "visits", "failures", "flags", "a")))))


def moved_deadlines(
    pages: Pages, at: Indices, terms: Terms, now: float, displaced: NDArray[np.bool_], yielded: Floats | None = None
) -> Moved:
    """Make numbers anew, and choose the pages whose deadlines they move.

    Parameters
    ----------
    pages : Pages
        As they are known.
    at : ndarray of int
        Which of them to look at, rising.
    terms : Terms
        The price by which the partition dispatches from now on, and the plan.
    now : float
        Server's time, seconds since the epoch.
    displaced : ndarray of bool
        Of those: whether they stand elsewhere in the queue than their numbers say at this price, see `is_displaced`. Of the others only
        other numbers count.
    yielded : ndarray, optional
        Of those: importance of the new pages that each yields a second; None: no page does.
    """
    some = pages.some(_as_run(at), _COMPARED)
    priced = goes_by_price(some)
    if not priced.all():
        at, some, displaced = at[priced], some.some(priced, _COMPARED), displaced[priced]
        yielded = None if yielded is None else yielded[priced]
    if not len(at):
        return Moved(at[:0], np.zeros(0, WRITTEN))
    log_price, b, longest = terms.log_price, some["b"] / 1e6, some["l"].astype(np.float64)
    plain = priced_numbers(some, some["id"], terms, -np.inf, yielded, some["shift"].astype(np.float64))
    with np.errstate(invalid="ignore"):
        was = waits(ManyNumbers(some["a"], some["s"], some["e"], longest), np.where(displaced, some["placed"], np.float64(log_price)))
        wait = waits(plain, log_price)
        is_other = np.abs(wait - was) > MOVED * np.maximum(wait, 1e-6)
        is_other |= np.abs(plain.l - longest) > MOVED * plain.l
        is_other |= np.abs(plain.e - some["e"]) > MOVED * plain.e
    chosen = np.flatnonzero(is_other)
    # What is due is due: to be told so again by every plan would put it behind all others.
    chosen = chosen[~((b[chosen] + was[chosen] <= now) & (b[chosen] + wait[chosen] <= now))]
    made = ManyNumbers(*(values[chosen] for values in plain))
    # What would be due in the past is made anew, so that it is due now; `_SOON` is more than what rounding hides.
    late = np.flatnonzero(b[chosen] + made.a + made.s * max(log_price, -_FAR) <= now + _SOON)
    some, at = some.some(chosen, _COMPARED), at[chosen]
    anew = some.some(late, (*GOES_BY, *_MADE_OF))
    again = priced_numbers(
        anew, anew["id"], terms, now, None if yielded is None else yielded[chosen][late], anew["shift"].astype(np.float64)
    )
    for values, newer in zip(made, again, strict=True):
        values[late] = newer
    return Moved(at, _written(some["id"], some["b"], made))


def _as_run(at: Indices) -> Indices | slice:
    """Return the same pages, which rise, as a slice where they stand one behind the other: of these nothing has to be copied."""
    return slice(int(at[0]), int(at[-1]) + 1) if len(at) and at[-1] - at[0] == len(at) - 1 else at


def written_rows(pages: Pages, at: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield what is sent of pages that have moved, as the table has them, some thousands at a time."""
    for start in range(0, len(at), _AT_ONCE):
        some = at[start : start + _AT_ONCE]
        rows = np.zeros(len(some), WRITTEN)
        rows["page"] = pages["id"][some]
        for name in ("b", "a", "s", "e", "l"):
            rows[name] = pages[name][some]
        yield rows


def shifted_pages(pages: Pages, terms: Terms, now: float, ahead: float, spread: float, most: int) -> Moved:
    """Choose the pages whose deadline the clocks of their neighbourhoods have moved since it was written, and move it.

    Parameters
    ----------
    pages : Pages
        As they are known; ``shift`` is what the clocks say now, ``written`` what is in the numbers.
    terms : Terms
        The price by which the partition dispatches now, and the last plan.
    now : float
        Server's time, seconds since the epoch.
    ahead : float
        Only pages are written that are due within so many seconds, by the old deadline or the new one: the others are looked at again.
    spread : float
        Slope of the pages that are late, seconds, see `clocked.on_clock`.
    most : int
        How many at most: those that are due first.
    """
    log_price = terms.log_price
    # By the numbers as they stand, whose clocks have moved noticeably, and which of these may be due soon. A column of a large table is a
    # tenth of a gigabyte, so only the first step looks at all pages.
    with np.errstate(invalid="ignore", over="ignore"):
        stored, ran_ahead = pages["a"] + pages["s"] * np.float32(log_price), pages["shift"] - pages["written"]
        is_moved = np.abs(ran_ahead) > _LEAST_SHIFT * np.maximum(stored, pages["e"])
        moves = np.flatnonzero(is_moved & np.isfinite(pages["a"]))
        soonest = np.minimum(stored[moves], stored[moves] - ran_ahead[moves])
        soonest = np.minimum(np.maximum(soonest, pages["e"][moves]), pages["l"][moves])
    moves = moves[soonest < now - pages["b"][moves] / 1e6 + ahead]
    moves = moves[goes_by_price(pages.some(moves, GOES_BY))]
    find_medians(pages, moves, terms.published.alike)
    some = pages.take(moves)
    if not len(some):
        return Moved(moves, np.zeros(0, WRITTEN))
    rate = change_rates_of(some, terms.published)
    plain = priced_numbers(some, np.ascontiguousarray(some["id"]), terms, -np.inf, rate=rate)
    since, shift = now - some["b"] / 1e6, some["shift"].astype(np.float64)
    with np.errstate(invalid="ignore"):  # no slope, at a price of 0
        old, wait = (values["a"] + values["s"] * log_price for values in (some, plain._asdict()))
    wait, slope = on_clock(wait, plain.s, rate, since, shift, plain.e, spread)
    was, becomes = (np.minimum(np.maximum(values, plain.e), plain.l) for values in (old, wait))
    left = np.minimum(was, becomes) - since
    chosen = np.flatnonzero((left < ahead) & is_noticeable(becomes - was, some["s"], slope, spread) & np.isfinite(wait))
    if len(chosen) > most:
        chosen = np.sort(chosen[np.argpartition(left[chosen], most)[:most]])
    numbers = ManyNumbers(*(values[chosen] for values in (wait - slope * log_price, slope, plain.e, plain.l)))
    moves = moves[chosen]
    return Moved(moves, _written(pages["id"][moves], pages["b"][moves], numbers))


def _written(ids: NDArray[Any], b: NDArray[Any], numbers: ManyNumbers) -> NDArray[Any]:
    """Return pages, the visits that their new numbers are about, and these, as they are sent."""
    rows = np.zeros(len(b), WRITTEN)
    rows["page"], rows["b"] = ids, b
    for name, values in zip(("a", "s", "e", "l"), numbers, strict=True):
        rows[name] = np.minimum(values, np.where(np.isinf(values), np.inf, _FAR))
    return rows
