"""One simulated crawl by live price: each slot goes to the page whose visit is worth most, among the first of a queue.

The queue has every page at the time when it will reach the price that was live when the page was put there. What is looked at for a
visit and not chosen is put back by the price of that moment, so the queue follows the price at a dozen evaluations a visit.
"""

from __future__ import annotations

import heapq
import math
from typing import Final

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.scheduling.index import (
    CANDIDATES,
    LOOK_ROUNDS,
    claim,
    deadline_by_price,
    price_after_visit,
    value_reached_after,
    visit_value,
)
from optimal_frontier.simulation.bandwidth import BandwidthChange
from optimal_frontier.simulation.crawl import Visits, visits_of_plans
from optimal_frontier.simulation.learning import Learner
from optimal_frontier.simulation.policies import Knowledge, Planner, Solver
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised

#: An interval that was worked out at a price within this share of the live one is good enough for a place in the queue.
_SAME_PRICE: Final = 0.01


def indexed_visits(
    world: Realised,
    planner: Planner,
    learner: Learner,
    horizon: float,
    replan: float,
    rng: np.random.Generator,
    bandwidth: BandwidthChange | None = None,
) -> Visits:
    """Return the visits of a policy that plans every so often, by live price.

    Parameters
    ----------
    world, planner, learner, horizon, replan, rng, bandwidth
        As in `planned_visits`; the planner one that can say what its rates were solved from.

    Returns
    -------
    Visits

    Raises
    ------
    InvalidProblemError
        The planner has rates only.
    """
    return visits_of_plans(ByPrice(len(world)), world, planner, learner, horizon, replan, rng, bandwidth)


class ByPrice:
    """Dispatch by live price.

    Parameters
    ----------
    pages : int
        How many there are.

    Attributes
    ----------
    price : float
        What visits are worth at present; 0 before the first plan.
    evaluations : int
        Values of visits that were worked out.
    """

    def __init__(self, pages: int) -> None:
        self.price = 0.0
        self.evaluations = 0
        self._pages = pages
        self._queue: list[tuple[float, int]] = []
        self._importance, self._change_rate, self._least, self._most, self._last = ([0.0] * pages for _ in range(5))
        # The interval after which each page reaches a price, and that price.
        self._wait, self._priced = [math.inf] * pages, [0.0] * pages
        self._look = math.inf

    def plan(self, planner: Planner, what: Knowledge, known: Ints, last: Floats) -> None:
        """Take over what a plan was solved from; the price goes on."""
        if not isinstance(planner, Solver):
            raise InvalidProblemError("planner has rates only; dispatch by price needs one that can say what they were solved from")
        plan = planner.plan(what)
        values = (what.importance, plan.change_rate, plan.least, plan.most)
        for kept, new in zip((self._importance, self._change_rate, self._least, self._most), values, strict=True):
            row = np.array(kept)
            row[known] = new
            kept[:] = row.tolist()
        self._last[:] = last.tolist()
        self._look = LOOK_ROUNDS * len(known) / what.budget
        self.price = self.price or plan.multiplier
        wait = deadline_by_price(0.0, 0.0, 0.0, 0, *values, self.price)
        self._priced = [self.price] * self._pages
        for page, after in zip(known.tolist(), wait.tolist(), strict=True):
            self._wait[page] = after
        # Not all in the same moment: looking again is to be a little work all the time.
        look = what.now + self._look * np.linspace(0.0, 1.0, len(known))
        self._queue = list(zip(np.minimum(last[known] + wait, look).tolist(), known.tolist(), strict=True))
        heapq.heapify(self._queue)

    def visits(self, times: Floats) -> tuple[Ints, Floats]:
        """Return visits in slots."""
        pages = [self._visit(at) for at in times.tolist()] if self._queue else []
        return np.array(pages, dtype=np.int64), times[: len(pages)]

    def _visit(self, now: float) -> int:
        """Visit the page with the highest claim among the first of the queue."""
        looked: list[tuple[float, int, float]] = []
        best, highest = -1, -math.inf
        while self._queue and len(looked) < CANDIDATES:
            key, page = heapq.heappop(self._queue)
            elapsed = now - self._last[page]
            value = visit_value(self._importance[page], self._change_rate[page], elapsed)
            self.evaluations += 1
            asked = claim(value, self.price, elapsed, self._least[page], self._most[page])
            if elapsed * self._most[page] < 1.0:
                asked = elapsed * self._most[page] - 1.0  # too early, unless there is nothing else
            looked.append((key, page, asked))
            if asked > highest:
                best, highest, worth = page, asked, value
        if highest == worth:
            self.price = price_after_visit(self.price, worth)
        self._last[best] = now
        for key, page, asked in looked:
            if page == best or asked < self.price or key > now:
                key = min(self._last[page] + self._interval(page), now + self._look)
            heapq.heappush(self._queue, (key, page))
        return best

    def _interval(self, page: int) -> float:
        """Time after a visit at which the page reaches the live price."""
        if abs(self._priced[page] - self.price) > _SAME_PRICE * self.price:
            weight, rate = self._importance[page], self._change_rate[page]
            self._wait[page] = value_reached_after(weight, rate, self.price, least_rate=self._least[page], most_rate=self._most[page])
            self._priced[page] = self.price
        return self._wait[page]
