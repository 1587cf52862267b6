"""A namespace whose time the test sets: no script goes behind the time of the last dispatch, so a time in the future stands still."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quick_client import make_quick

from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.dispatching.revising import DONE_NOW, forced_or_why, revise_pages
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.aliases import follow_all, locate
from optimal_frontier.state.connection import connect
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, RELEASE, REST, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Ask, add_calls, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import RETIRED, Row

#: Where tests start, seconds since the epoch: the year 2033.
START = 2_000_000_000.0


def fingerprint(name: str) -> bytes:
    """The request fingerprint of the page ``name``, host and path."""
    return hashlib.sha1(name.encode()).digest()


def settings_of(**values: Any) -> FrontierSettings:
    """Settings given without their prefix."""
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


#: Settings that leave everything as it is.
USUAL = settings_of()


def page_of(name: str, settings: FrontierSettings | None = None, **values: Any) -> NewPage:
    """The page ``name``: host and path."""
    url = f"http://{name}"
    return new_page(settings or USUAL, fingerprint(name), url, {"url": url}, **values)


class ClockedNamespace(Namespace):
    """A namespace with its own hands on the clock, and short names for what tests do."""

    def set_time(self, at: float) -> float:
        for k in range(self.partitions):
            kept = self.command("GET", self.key("d", k), partition=k)
            state = (PartitionState.stored(kept) or PartitionState())._replace(at=at * 1e6)
            self.command("SET", self.key("d", k), pack_doubles(state), partition=k)
        return at

    def advance(self, seconds: float) -> float:
        return self.set_time(self.now() + seconds)

    def add(self, *pages: NewPage) -> list[Any]:
        """Add pages; return what is said of each."""
        told: list[Any] = []
        for new in pages:
            told += self.run(add_calls(self.partition_of(new.host), [new]))[0]
        return told

    def dispatch(self, n: int = 1, partition: int = 0, **terms: Any) -> list[Handout]:
        """Hand out up to ``n`` requests of a partition."""
        handouts: list[Handout] = []
        while len(handouts) < n:
            ask = Ask(n - len(handouts), **{"lease": 1e6, **terms})
            some = parse_dispatch(partition, self.run([dispatch_call(partition, ask)])[0]).handouts
            handouts += some
            if len(some) < ask.most:
                break
        return handouts

    def end(self, handout: Handout, op: int = KEEP, **values: Any) -> int:
        """End a lease by a good visit now, or otherwise; the next one is due after ``wait`` seconds. Return whether that counted."""
        observation = self.seen(handout, op, **values)
        return int(self.run(observe_calls(handout.partition, [observation], [handout.token]))[0][0])

    def seen(
        self, handout: Handout, op: int = KEEP, wait: float = 1000.0, counters: dict[str, int] | None = None, **values: Any
    ) -> Observation:
        """What a judge could have made of a visit: a good one, unless ``values`` of the row say otherwise."""
        named = {name: values.pop(name) for name in list(values) if name in Observation.__dataclass_fields__}
        row = handout.row
        if op == RELEASE:
            return Observation(handout, op, row, **named)
        a, s, e, longest = fixed(wait)
        counted = {} if row.attempts else {"pending": -1, "fetched": 1}
        if values.get("state") == RETIRED:
            counted["retired"] = 1
        known = {"b": round(self.now(handout.partition) * 1e6), "a": a, "s": s, "e": e, "l": longest, "visits": row.visits + 1}
        row = row._replace(**{**known, **values})
        return Observation(handout, op, row, counters={**counted, "visits": 1, **(counters or {})}, **named)

    def visit(self, *names: str, **values: Any) -> None:
        """Add pages that are not known, fetch these, and a millisecond later go on."""
        self.add(*(page_of(name) for name in names))
        wanted = {fingerprint(name)[:12] for name in names}
        for k in range(self.partitions):
            for handout in self.dispatch(1000, k) if wanted else []:
                self.end(handout, **values) if handout.page in wanted else self.end(handout, RELEASE)
        self.advance(0.001)

    def retire(self, name: str, **values: Any) -> None:
        """Fetch a page, which is gone."""
        for k in range(self.partitions):
            for handout in self.dispatch(1000, k):
                if handout.page == fingerprint(name)[:12]:
                    known = {"state": RETIRED, "gone": 2, "failures": 2, "visits": handout.row.visits, "failed": 2, "unseen": 5.0, **values}
                    self.end(handout, REST, **known)
                else:
                    self.end(handout, RELEASE)

    def row(self, name: str) -> Row:
        """The row of a page by any of its names."""
        (place,) = follow_all(self, [(self.partition_of(name.partition("/")[0]), fingerprint(name)[:12])])
        assert place is not None, name
        return Row.unpack(place.value)

    def remembered(self, name: str) -> Memory:
        (place,) = follow_all(self, [(self.partition_of(name.partition("/")[0]), fingerprint(name)[:12])])
        assert place is not None, name
        return Memory.unpack(self.command("HGET", self.key("memory", place.partition), place.page, partition=place.partition))

    def score(self, name: str) -> float | None:
        k = self.partition_of(name.partition("/")[0])
        raw = self.command("ZSCORE", self.key("q", k), fingerprint(name)[:12], partition=k)
        return None if raw is None else float(raw)


def open_namespace(socket: str, name: str, partitions: int = 1) -> ClockedNamespace:
    """Open a namespace on the test server; close its ``connection`` afterwards."""
    opened = ClockedNamespace(make_quick(connect(parse_redis_url(f"unix://{socket}", Path()))), name)
    opened.open(spider="test", partitions=partitions)
    opened.set_time(START)
    return opened


def force(namespace: Namespace, fingerprints: Iterable[bytes]) -> list[int]:
    """Make pages due now, as a person does; per fingerprint 1 (due), 2 (it stays as it is), 0 (not known)."""
    told = []
    for place in locate(namespace, fingerprints):
        done = {} if place is None else revise_pages(namespace, place.partition, [place.page], lambda _, row: forced_or_why(row))
        told.append(0 if place is None else 1 if DONE_NOW in done else 2)
    return told
