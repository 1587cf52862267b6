"""The price of a visit, carried from plan to plan: where the next solve starts.

Between two plans little moves: posteriors, some importances, a few new pages, the budget. The pages that are not at a bound or on a full
host, or would leave it at a lower price, set the price; their sums are kept in a `BinnedDual`, brought up to date page by page. What the
others spend is taken as it was. The price that follows is not quite the answer (a page may meet a bound, a host may
fill), so the exact solver starts from it and says the rest.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization import BinnedDual

#: The sums are made anew when more than this share of the pages moved, and after so many plans against rounding.
REBUILD_SHARE: Final = 1 / 3
REBUILD_PLANS: Final = 100
#: What the dual is corrected by at most, relative: more is no bias, but something that happened.
_MOST_BIAS: Final = 1e-3
#: Relative distance within which a host counts as being at its limit.
_AT_LIMIT: Final = 1e-9

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


class CarriedPrice:
    """The price of a visit from one plan to the next.

    Parameters
    ----------
    objective : {"freshness", "changes"}
        What plans maximise; evenly spaced visits only.
    last : float
        The multiplier of a plan made before, by another process perhaps; 0 for none.

    Attributes
    ----------
    dual : BinnedDual
        Of the pages that set the price.
    moved : int
        Pages that went in or out at the last estimate; all of them when the sums were made anew.
    """

    def __init__(self, objective: Literal["freshness", "changes"] = "freshness", last: float = 0.0) -> None:
        self.objective = objective
        self.dual = BinnedDual(objective)
        self.moved = 0
        self._last = last
        self._said, self._bias = 0.0, 1.0
        self._plans = 0
        # Of the pages of the last plan: numbers, what the dual has of those that it counts, what they spend whatever the next price, and
        # which of them are not to be counted.
        self._slots: Slots = np.zeros(0, np.int64)
        self._importance = self._change_rate = self._held = np.zeros(0)
        self._counted = self._bound = np.zeros(0, bool)

    def estimate(self, slots: Slots, importance: Floats, change_rate: Floats, bandwidth: float) -> float | None:
        """Return the price to start from; None before any is known.

        Parameters
        ----------
        slots : ndarray of int, shape (n,)
            Rising numbers that name the pages from plan to plan.
        importance, change_rate : ndarray, shape (n,)
            As the solver is about to get them. They are kept, not copied, and must not be written to afterwards.
        bandwidth : float
            The budget of the plan, visits per second.
        """
        last = self._last if self._last > 0 else None
        if self._plans == 0:
            self._slots, self._importance, self._change_rate = slots, importance, change_rate
            self._counted = np.zeros(slots.size, bool)
            return last
        if not np.array_equal(slots, self._slots):
            self._turn_to(slots)
        self._bring_in_line(importance, change_rate)
        left = bandwidth - float(self._held.sum())
        if left <= 0 or self.dual.pages == 0:
            return last
        self._said = self.dual.multiplier(left, start=last)
        return self._said * self._bias or last

    def settle(self, rates: Floats, answers: Answers, multiplier: float) -> None:
        """Take in what the plan said of the pages of the last `estimate`.

        Parameters
        ----------
        rates : ndarray, shape (n,)
            Planned, visits per second.
        answers : Answers
            How they answer to the price.
        multiplier : float
            Of the plan.
        """
        # Bins are off by the same little from plan to plan.
        self._bias = multiplier / self._said if abs(multiplier - self._said) < _MOST_BIAS * self._said else 1.0
        self._last = multiplier
        self._said = 0.0
        self._plans += 1
        self._held = np.where(answers.moving, 0.0, rates)
        self._bound = answers.bound

    def _turn_to(self, slots: Slots) -> None:
        """Let go of pages that are no longer there, and make room for those that came."""
        place = np.searchsorted(slots, self._slots)
        stay = np.zeros(place.size, bool)
        inside = place < slots.size
        stay[inside] = slots[place[inside]] == self._slots[inside]
        gone = self._counted & ~stay
        self.dual.remove(self._importance[gone], self._change_rate[gone])
        place = place[stay]

        def moved(old: NDArray[Any]) -> NDArray[Any]:
            new = np.zeros(slots.size, old.dtype)
            new[place] = old[stay]
            return new

        self._slots = slots
        self._importance, self._change_rate, self._held = (moved(old) for old in (self._importance, self._change_rate, self._held))
        self._counted, self._bound = moved(self._counted), moved(self._bound)

    def _bring_in_line(self, importance: Floats, change_rate: Floats) -> None:
        """Make the dual that of the pages that are not bound, as they are now."""
        differs = self._importance != importance
        differs |= self._change_rate != change_rate
        wanted = ~self._bound
        gone = self._counted & (differs | self._bound)
        come = wanted & (differs | ~self._counted)
        count = int(np.count_nonzero(wanted))
        self.moved = max(int(np.count_nonzero(gone)), int(np.count_nonzero(come)))
        if self.moved > REBUILD_SHARE * count or self._plans % REBUILD_PLANS == 0:
            self.dual = BinnedDual(self.objective)
            self.moved, come = count, wanted
        else:
            self.dual.remove(self._importance[gone], self._change_rate[gone])
        self.dual.add(importance[come], change_rate[come])
        self._importance, self._change_rate, self._counted = importance, change_rate, wanted


class Answers(NamedTuple):
    """How pages answer to a price a little above or below."""

    moving: NDArray[np.bool_]  #: their rates move: strictly between their bounds, on a host that is not full
    bound: NDArray[np.bool_]  #: they do not: at a bound, or on a full host. Pages in neither start to be visited if the price falls


def answers_to_price(
    importance: Floats,
    change_rate: Floats,
    rates: Floats,
    low: Floats,
    high: Floats,
    host: Slots | None,
    host_max_rate: float | Floats,
    multiplier: float,
    objective: Literal["freshness", "changes"] = "freshness",
) -> Answers:
    """Tell how the pages of a plan answer to the price; arguments as of the solver, and what it said."""
    above = rates > low  # the solver clips to the bounds themselves
    bound = rates >= high
    if host is not None:
        full = np.bincount(host, weights=rates) >= np.asarray(host_max_rate) * (1 - _AT_LIMIT)
        bound |= full[host]
    moving = above & ~bound
    # At its minimum: not worth a visit now, or held above what it is worth.
    worthless = importance <= multiplier * (change_rate if objective == "freshness" else 1.0)
    bound |= ~(above | worthless)
    return Answers(moving, bound)
