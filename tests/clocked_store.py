"""A store whose time the test sets: the scripts never go behind the clock stored in Redis, so a clock in the future stands still."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from optimal_frontier.state.columns import CHUNK, PLAN
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.records import Handout, NewPage, Observation, encode_record
from optimal_frontier.state.store import Store

#: Where tests start, seconds since the epoch: the year 2033.
START = 2_000_000_000.0


def fingerprint(name: str) -> bytes:
    """The identity of the page ``name``."""
    return hashlib.sha1(name.encode()).digest()


def new_page(name: str, **values: Any) -> NewPage:
    """A page whose host is what stands before the slash in ``name``."""
    host = name.partition("/")[0]
    return NewPage(fingerprint(name), host, encode_record({"url": f"http://{name}"}), **values)


class ClockedStore(Store):
    """A store with its own hands on the clock, and short names for what tests do."""

    def start(self) -> ClockedStore:
        self.open(spider="test")
        self.set_time(START)
        return self

    def set_time(self, at: float) -> float:
        self.command("HSET", self.key("meta"), "clock", f"{at:.6f}")
        return self.time()

    def time(self) -> float:
        return float(self.command("HGET", self.key("meta"), "clock"))

    def advance(self, seconds: float) -> float:
        return self.set_time(self.time() + seconds)

    def add(self, *pages: NewPage) -> list[int]:
        return [new for reply in self.run(self.add_calls(pages)) for new in reply]

    def slot(self, name: str) -> int:
        return int(self.command("HGET", self.key("ids"), fingerprint(name)))

    def dispatch(
        self,
        n: int = 1,
        *,
        owner: str = "me",
        lease_s: float = 1e6,
        budget: float = 0.0,
        share: float = 0.2,
        host_delay: float = 0.0,
        host_period: float = 0.0,
        per_host: int = 0,
        groups: tuple[tuple[str, str, int], ...] = (),
    ) -> tuple[list[Handout], float]:
        """Return the handouts and the wait."""
        limits = [repr(budget), repr(share), repr(host_delay), repr(host_period), per_host]
        call = ("dispatch", [owner, n, repr(lease_s), *limits, *(value for group in groups for value in group)])
        wait, _, _, handouts = self.parse_dispatch(self.run([call])[0])
        return handouts, wait

    def observe(self, handout: Handout, outcome: str = "ok", *, horizon: float = 1e15, policy: str = "periodic", **values: Any) -> int:
        """End a lease; return whether that counted."""
        # A response "from the future" has age 0: no time passes between response and observation.
        observation = Observation(handout.slot, handout.token, outcome, float("inf"), **values)
        return int(self.run(self.observe_calls([observation], horizon, policy))[0][0])

    def visit_all(self, **values: Any) -> list[Handout]:
        """Fetch every page that can be handed out now, once; a millisecond later it may be planned."""
        handouts, _ = self.dispatch(100_000)
        for at in range(0, len(handouts), 200):
            ended = [Observation(h.slot, h.token, "ok", float("inf"), **values) for h in handouts[at : at + 200]]
            self.run(self.observe_calls(ended, 1e15))
        self.advance(0.001)
        return handouts

    def plan(self, slot: int, rate: float, base_credit: float = 0.0, base_time: float | None = None) -> None:
        """Write one page's plan and queue it, as the planner does."""
        fence = self.command("HGET", self.key("meta"), "fence") or b"0"
        if fence == b"0":
            fence = self.run([("take_planner_lock", ["planner", 10_000_000])])[0]
        row = np.array([(rate, self.time() if base_time is None else base_time, base_credit)], PLAN).tobytes()
        (page,) = self.records_at("page", [slot])
        pair = np.array([slot, page["generation"]], "<u4").tobytes()
        self.run([("write_plan", [fence, "plan", slot // CHUNK, slot % CHUNK, row]), ("queue_due", [fence, repr(1e15), pair])])

    def seen(self, slot: int) -> Any:
        return self.records_at("seen", [slot])[0]


def open_store(socket: str, namespace: str, kind: type[ClockedStore] = ClockedStore) -> ClockedStore:
    """Open a store on the test server; close its ``connection`` afterwards."""
    return kind(connect(parse_redis_url(f"unix://{socket}", Path())), namespace).start()
