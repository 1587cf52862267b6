"""A crawl played with dispatcher and planner on a clock that the test sets; fetches take no time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from clocked_store import START, ClockedStore, new_page
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.planner import Planner

from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import Observation


def parse(**values: object) -> FrontierSettings:
    """Settings given without their prefix."""
    values = {"MIN_INTERVAL": 1e-3, "RESOLVE_INTERVAL": 60} | values
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


class Play:
    """A crawl whose fetches take no time, of pages whose posteriors stay as they are."""

    def __init__(self, store: ClockedStore, settings: FrontierSettings) -> None:
        self.store, self.settings = store, settings
        self.planner, self.dispatcher = Planner(store, settings), Dispatcher(store, settings)
        #: Slot -> times at which it was handed out; all of these in order.
        self.visits: dict[int, list[float]] = defaultdict(list)
        self.handouts: list[float] = []
        #: What visits tell; the posteriors stay as they are.
        self.bit = -1
        self._ended: list[Observation] = []

    def add(self, n: int, hosts: int = 3, **bounds: float) -> None:
        rng = np.random.default_rng(n)
        bounds = {"max_rate": 1e3} | bounds
        self.store.add(*(new_page(f"h{i % hosts}/{i}", importance=float(rng.uniform(0.5, 2)), **bounds) for i in range(n)))
        self.posteriors = {slot: (float(rng.uniform(2, 9)), float(rng.uniform(5, 50))) for slot in range(n)}
        # All first visits at once.
        ended = [
            Observation(handout.slot, handout.token, "ok", float("inf"), -1, *self.posteriors[handout.slot])
            for handout in self.store.dispatch(n)[0]
        ]
        self.store.run(self.store.observe_calls(ended, 120.0, self.settings.policy))

    def until(self, seconds: float, settings: FrontierSettings | None = None) -> None:
        """Go on until so many seconds after START."""
        if settings is not None:
            self.settings = settings
            self.planner, self.dispatcher = Planner(self.store, settings), Dispatcher(self.store, settings)
        end = START + seconds
        now = due = self.store.time()
        while now < end:
            if now >= due:
                if (self.planner.due_in() or 0.0) <= 0:
                    self.planner.plan()
                due = now + (self.planner.due_in() or 0.0)
            outcome = self.dispatcher.exchange(Exchange(observations=self._ended, want=50))
            self._ended = []
            for handout in outcome.handouts:
                self.visits[handout.slot].append(now)
                self.handouts.append(now)
                shape, time = self.posteriors[handout.slot]
                self._ended.append(Observation(handout.slot, handout.token, "ok", float("inf"), self.bit, shape, time))
            wait = outcome.wait if outcome.wait is not None and outcome.wait >= 0 else 1e9
            step = 1e-4 if outcome.handouts else wait
            # Stored with microseconds: less would stand still.
            now = self.store.set_time(now + max(1e-5, min(step, due - now, end - now + 1e-3)))

    def gaps(self, slot: int, since: float = 0.0) -> np.ndarray:
        return np.diff([at for at in self.visits[slot] if at >= START + since])

    def rates(self) -> np.ndarray:
        return self.store.columns("plan")[0]["rate"]
