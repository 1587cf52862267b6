"""Crawls of the first edition's two dispatchers, one JSON line each.

`price_against_first_edition.py` runs this with that edition on the path. Credit (``edf``) and the live price (``index``) are the
edition's own classes. Three things are added round them, as its simulation has none: bounds of pages, which its plans take and both
dispatchers follow; fetches in flight, where a page that was handed out is out of the queue until it comes back; and, for ``edf``, hosts
with a limit, whose earliest page goes when its host is open. ``index`` has no hosts to simulate: its queue is one for all pages.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections import deque

import numpy as np
from dispatch_cells import HORIZON, Case, Floats, chosen_cells
from numpy.typing import NDArray
from optimal_frontier.scheduling.index import CANDIDATES, claim, price_after_visit, visit_value
from optimal_frontier.simulation.index_crawl import ByPrice

from optimal_frontier.scheduling.exploration import Choice, choose
from optimal_frontier.scheduling.planning import LOAD, RatePlan, plan_rates
from optimal_frontier.simulation.crawl import EarliestDeadline, credit_after, deadline_after, visits_of_plans
from optimal_frontier.simulation.learners import LEARNERS
from optimal_frontier.simulation.policies import Knowledge, Planner


class Bounded:
    """The edition's plan: the median of posteriors, or the known rates, with bounds and hosts."""

    def __init__(self, case: Case, known: bool) -> None:
        self.case, self.known = case, known

    def __call__(self, what: Knowledge) -> Floats:
        rates: Floats = self.plan(what).rates
        return rates

    def plan(self, what: Knowledge) -> RatePlan:
        n = len(what.importance)
        if self.known:
            rates = what.known_rates(what.now)
            choice = Choice(rates, np.zeros(n), np.full(n, np.inf))
        else:
            choice = choose("median", *what.believed(), what.budget, np.full(n, 0.5), what.now * what.budget / n)
        hosts = {} if self.case.host is None else {"host": self.case.host, "host_max_rate": LOAD * self.case.host_rate}
        bounds = (self.case.least, self.case.most)
        asked = {"change_rate": choice.change_rate, "least_rate": choice.least_rate, "most_rate": choice.most_rate}
        return plan_rates(what.importance, what.shape, what.time, what.budget, *bounds, **asked, **hosts)


class Credit(EarliestDeadline):
    """Credit, with fetches in flight and hosts that are paced."""

    def __init__(self, case: Case, flight: int) -> None:
        super().__init__(len(case.world))
        self._host = np.zeros(len(case.world), np.int64) if case.host is None else case.host
        self._gap = [0.0] if case.host_rate is None else (1.0 / case.host_rate).tolist()
        self._opens = [0.0] * len(self._gap)
        self._flight, self._slot = flight, 0
        self._away: deque[tuple[int, int]] = deque()

    def visits(self, times: Floats) -> tuple[NDArray[np.int64], Floats]:
        due, credit, rate, host = (values.tolist() for values in (self._due, self._base_credit, self._rate, self._host))
        since = [self._now] * len(rate)
        out = {page for _, page in self._away}
        queues: list[list[tuple[float, int]]] = [[] for _ in self._gap]
        for page, at in enumerate(due):
            if at < math.inf and page not in out:
                queues[host[page]].append((at, page))
        for queue in queues:
            heapq.heapify(queue)
        pages, taken = [], []
        for at in times.tolist():
            self._slot += 1
            while self._away and self._away[0][0] <= self._slot:
                page = self._away.popleft()[1]
                if due[page] < math.inf:
                    heapq.heappush(queues[host[page]], (due[page], page))
            open_ = [(queue[0], number) for number, queue in enumerate(queues) if queue and self._opens[number] <= at + 1e-9]
            if not open_:
                continue
            number = min(open_)[1]
            page = heapq.heappop(queues[number])[1]
            left = credit_after(credit[page] + rate[page] * (at - since[page]))
            credit[page], since[page] = left, at
            due[page] = deadline_after(left, at, rate[page]) if rate[page] > 0 else math.inf
            if self._flight > 1:
                self._away.append((self._slot + self._flight, page))
            elif due[page] < math.inf:
                heapq.heappush(queues[number], (due[page], page))
            gap = self._gap[number]
            self._opens[number] = (self._opens[number] if at - self._opens[number] < gap else at) + gap
            pages.append(page)
            taken.append(at)
        visited = np.array(pages, dtype=np.int64)
        self._carry[visited] = np.array(credit)[visited]
        return visited, np.array(taken)


class LivePrice(ByPrice):
    """The live price, with fetches in flight."""

    price: float
    _queue: list[tuple[float, int]]

    def __init__(self, case: Case, flight: int) -> None:
        super().__init__(len(case.world))
        self._flight, self._slot = flight, 0
        self._away: deque[tuple[int, int]] = deque()

    def plan(self, planner: Planner, what: Knowledge, known: NDArray[np.int64], last: Floats) -> None:
        super().plan(planner, what, known, last)
        out = {page for _, page in self._away}
        if out:
            self._queue = [entry for entry in self._queue if entry[1] not in out]
            heapq.heapify(self._queue)

    def _visit(self, now: float) -> int:
        self._slot += 1
        while self._away and self._away[0][0] <= self._slot:
            page = self._away.popleft()[1]
            heapq.heappush(self._queue, (min(self._last[page] + self._interval(page), now + self._look), page))
        looked: list[tuple[float, int, float]] = []
        best, highest, worth = -1, -math.inf, 0.0
        while self._queue and len(looked) < CANDIDATES:
            key, page = heapq.heappop(self._queue)
            elapsed = now - self._last[page]
            value = visit_value(self._importance[page], self._change_rate[page], elapsed)
            asked = claim(value, self.price, elapsed, self._least[page], self._most[page])
            if elapsed * self._most[page] < 1.0:
                asked = elapsed * self._most[page] - 1.0
            looked.append((key, page, asked))
            if asked > highest:
                best, highest, worth = page, asked, value
        if highest == worth:
            self.price = price_after_visit(self.price, worth)
        self._last[best] = now
        for key, page, asked in looked:
            if page == best and self._flight > 1:
                self._away.append((self._slot + self._flight, page))
                continue
            if page == best or asked < self.price or key > now:
                key = min(self._last[page] + self._interval(page), now + self._look)
            heapq.heappush(self._queue, (key, page))
        return best


def main() -> None:
    parser, walk = chosen_cells()
    options = parser.parse_args()
    for seed, name, cell, case in walk(options):
        for flight in options.flights:
            for run, dispatcher in (("edf", Credit), ("index", LivePrice)):
                if run == "index" and case.host is not None:
                    continue
                begun, learner, rng = time.process_time(), LEARNERS["live"](case.world), np.random.default_rng([seed, 1])
                planner = Bounded(case, options.known)
                visits = visits_of_plans(dispatcher(case, flight), case.world, planner, learner, HORIZON, case.replan, rng, case.bandwidth)
                about = {"world": name, "cell": cell, "flight": flight, "seed": seed, "known": options.known, "run": run}
                spent = round(time.process_time() - begun, 2)
                print(json.dumps({**about, "fraction": round(case.fraction(visits), 6), "cpu_s": spent}), flush=True)


if __name__ == "__main__":
    main()
