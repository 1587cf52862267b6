"""Deadlines of stored pages: the columns put into the formulas of `scheduling.credit` and `scheduling.index`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import StateError
from optimal_frontier.scheduling import deadline, least_wait
from optimal_frontier.scheduling.index import deadline_by_price
from optimal_frontier.scheduling.update_times import visit_deadline
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import StoredTimes

#: Credit from which on somebody wants the page now (`force`); no page earns it.
FORCED: Final = 1e12


@dataclass(frozen=True)
class LivePrice:
    """What pages are dispatched by under DISPATCH "index".

    Attributes
    ----------
    price : float
        Of a visit, at present.
    at : float
        When it last moved, seconds since the epoch.
    objective : str
        What values are in units of: ``freshness`` or ``changes``.
    look_s : float
        Most seconds until a page on the queue is looked at again.
    highest : float
        Highest price since the last plan, hosts at their limits included.
    hosts : dict
        Host number -> price of a visit to it, of hosts at their limit.
    """

    price: float
    at: float
    objective: Literal["freshness", "changes"]
    look_s: float
    highest: float
    hosts: dict[int, float]

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> LivePrice | None:
        """Read the hash ``P.price``; None if pages are not dispatched by price.

        Raises
        ------
        StateError
            It holds something else.
        """
        if "price" not in fields:
            return None
        try:
            hosts = {int(name[2:]): float(value) for name, value in fields.items() if name.startswith("h:")}
            price, at, look_s, highest = (float(fields[name]) for name in ("price", "at", "look", "highest"))
        except (KeyError, ValueError) as error:
            raise StateError(f"the live price cannot be read ({error}); a plan under DISPATCH edf takes it away") from error
        return cls(price, at, "changes" if fields.get("objective") == "changes" else "freshness", look_s, highest, hosts)

    @classmethod
    def read(cls, store: Store) -> LivePrice | None:
        """Read it from a store."""
        return cls.of(store.hash("price"))

    def of_hosts(self, host: np.ndarray) -> np.ndarray:
        """Return the price of a visit to each host."""
        prices = np.full(int(host.max(initial=0)) + 1, self.price)
        for number, price in self.hosts.items():
            if number < len(prices):
                prices[number] = max(self.price, price)
        found: np.ndarray = prices[host]
        return found


def goes_by_price(page: np.ndarray, seen: np.ndarray, plan: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Tell of each page whether a live price says when it is visited.

    Not before its first plan, where its bounds leave one rate only, after it failed or was gone, and while somebody wants it now.
    """
    have = np.where(plan["base_time"] > seen["settled"], plan["base_credit"], seen["carry"])
    choosable = (index["most_rate"] > 0) & (index["least_rate"] < index["most_rate"]) & (page["min_rate"] < page["max_rate"])
    is_well = (seen["visits"] > 0) & (seen["gone"] == 0) & (seen["failures"] == 0)
    answer: np.ndarray = choosable & is_well & (have < FORCED)
    return answer


def deadlines(
    page: np.ndarray,
    seen: np.ndarray,
    plan: np.ndarray,
    index: np.ndarray | None = None,
    live: LivePrice | None = None,
    slots: np.ndarray | None = None,
) -> np.ndarray:
    """Return when pages are due, seconds since the epoch; nan before the first attempt, inf for never.

    A page that never succeeded, or was gone at the last visit, is tried again after its backoff, whatever its rate. With a live price
    pages that go by it are due when a visit is worth it. ``slots`` are those of the pages; unless given, they are the whole table.
    """
    slots = np.arange(len(page)) if slots is None else slots
    due = deadline(
        seen["carry"],
        seen["settled"],
        plan["rate"],
        plan["base_time"],
        plan["base_credit"],
        seen["last_attempt"],
        page["gap"],
        seen["failures"],
        slots,
    )
    again = (seen["visits"] == 0) | (seen["gone"] > 0)
    wait = least_wait(page["gap"], seen["failures"], slots, seen["gone"], plan["rate"])
    due = np.where(again, seen["last_attempt"] + wait, due)
    if index is not None and live is not None:
        priced = deadline_by_price(
            seen["last_seen"],
            seen["last_attempt"],
            page["gap"],
            seen["failures"],
            index["weight"],
            index["change_rate"],
            index["least_rate"],
            index["most_rate"],
            live.of_hosts(page["host"]),
            live.objective,
            slots,
        )
        due = np.where(goes_by_price(page, seen, plan, index), priced, due)
    return np.where(seen["attempts"] > 0, due, np.nan)


def times_of(bought: ArrayLike, count: int) -> np.ndarray:
    """Return which of so many update times are in a mask, shape (n, count)."""
    chosen: np.ndarray = np.floor(np.asarray(bought)[:, None] / 2.0 ** np.arange(count)) % 2 == 1
    return chosen


def with_update_times(
    due: np.ndarray, times: StoredTimes, slots: np.ndarray, page: np.ndarray, seen: np.ndarray, plan: np.ndarray, bought: np.ndarray
) -> np.ndarray:
    """Return deadlines with those of pages that go by update times put in.

    Parameters
    ----------
    due : ndarray (n,)
        As `deadlines` has them.
    times : StoredTimes
        Of all pages that have update times.
    slots : ndarray of int (n,)
        Of the pages, rising; `page`, `seen` and `plan` are theirs.
    bought : ndarray
        Which times are bought, of each page of `times`.
    """
    due = due.copy()
    for timetable, chosen in times.by_timetable():
        at = np.searchsorted(slots, times.slots[chosen])
        there = (
            (at < len(slots)) & (slots[np.minimum(at, len(slots) - 1)] == times.slots[chosen]) if len(slots) else np.zeros(len(at), bool)
        )
        at, mask = at[there], times_of(bought[chosen[there]], len(timetable.times))
        p, s, q = page[at], seen[at], plan[at]
        mask |= (q["base_time"] == 0)[:, None]
        covered = np.where(s["failures"] == 0, s["last_attempt"], s["last_seen"])
        earliest = s["last_attempt"] + least_wait(p["gap"], s["failures"], slots[at])
        with np.errstate(divide="ignore"):
            longest = np.where(p["min_rate"] > 0, 1.0 / p["min_rate"], np.inf)
        have = np.where(q["base_time"] > s["settled"], q["base_credit"], s["carry"])
        by_times = (s["visits"] > 0) & (s["gone"] == 0) & (have < FORCED)
        due[at[by_times]] = visit_deadline(timetable, mask, covered, earliest, longest)[by_times]
    return due


def deadlines_at_most(
    page: np.ndarray, seen: np.ndarray, plan: np.ndarray, index: np.ndarray, price: Mapping[str, str], times: StoredTimes
) -> np.ndarray:
    """Return the latest deadlines that pages can have been queued by since the last plan, for `check_state`: at the highest price."""
    live = LivePrice.of(price)
    if live is None:
        due = deadlines(page, seen, plan)
    else:
        due = deadlines(page, seen, plan, index, LivePrice(live.highest, live.at, live.objective, live.look_s, live.highest, {}))
    return with_update_times(due, times, np.arange(len(page)), page, seen, plan, times.bought)
