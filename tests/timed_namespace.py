"""A namespace whose time the test sets: its scripts read the key ``clock`` of their partition where they read the server's clock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quick_client import make_quick

from optimal_frontier.state.connection import connect
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.messages import KEEP, PAGE_BYTES, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import (
    HEAVY_BATCH,
    Ask,
    Dispatched,
    add_calls,
    dispatch_call,
    hold_call,
    observe_calls,
    parse_dispatch,
    renew_call,
    revise_calls,
)
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import Row, pack_numbers
from optimal_frontier.state.scripts import source

#: Where tests start, seconds since the epoch: the year 2033.
START = 2_000_000_000.0
#: The one place where scripts ask for the time, and what stands there in tests.
_ASKS, _ASKS_US = "call('TIME')", "call('LRANGE', P .. 'clock', 0, 1)"
#: The script that sets it.
_SETS_CLOCK = "redis.call('DEL', KEYS[1] .. 'clock') redis.call('RPUSH', KEYS[1] .. 'clock', ARGV[1], ARGV[2])"


def page_of(name: str) -> bytes:
    """The identity of the page ``name``."""
    return hashlib.sha1(name.encode()).digest()[:PAGE_BYTES]


def new_page(name: str, *, priority: float = 0.0, stated: float = 0.0, limits: tuple[int, int] = (0, 0), **row: Any) -> NewPage:
    """A page whose host is what stands before the slash in ``name``; ``row`` are fields of its head."""
    host = name.partition("/")[0]
    record = pack_record({"url": f"http://{name}"}, host)
    return NewPage(page_of(name), host, Row(**row), stated, record, priority, *limits)


def name_of(handout: Handout) -> str:
    return str(handout.record["url"]).removeprefix("http://")


def stored_state(kept: bytes) -> PartitionState:
    state = PartitionState.stored(kept)
    assert state is not None
    return state


class TimedNamespace(Namespace):
    """A namespace with its own hands on the clock, and short names for what tests do."""

    #: Partitions that do not know the time yet.
    _late: frozenset[int] = frozenset()

    def start(self, partitions: int = 1) -> TimedNamespace:
        self.open(spider="test", partitions=partitions)
        for k in range(self.partitions):
            self.write_state(PartitionState(START * 1e6), k)
        self.set_time(START)
        return self

    def set_time(self, at: float) -> None:
        """Set the clock of all partitions, seconds since the epoch."""
        self.set_time_of_calls(at)
        super().run(self._clocks(self._late))

    def set_time_of_calls(self, at: float) -> None:
        """The same, without a round trip: partitions learn of it with their next script, and other connections not before."""
        self._micros = float(round(at * 1e6))
        self._late = frozenset(range(self.partitions))

    def run(self, calls: Sequence[Call]) -> list[Any]:
        clocks = self._clocks({call.partition for call in calls})
        return super().run([*clocks, *calls])[len(clocks) :]

    def _clocks(self, partitions: Iterable[int]) -> list[Call]:
        late = self._late.intersection(partitions)
        self._late -= late
        return [Call(k, "clock", divmod(int(self._micros), 1_000_000)) for k in sorted(late)]

    def now(self, partition: int = 0) -> float:
        return self._micros / 1e6

    def time_of(self, partition: int, clock: tuple[int, int], stored: bytes | None) -> float:
        return self.now(partition)

    def state(self, k: int = 0) -> PartitionState:
        kept = self.command("GET", self.key("d", k), partition=k)
        return PartitionState() if kept is None else stored_state(kept)

    def write_state(self, state: PartitionState, k: int = 0) -> None:
        self.command("SET", self.key("d", k), pack_doubles(state), partition=k)

    @property
    def at(self) -> float:
        """Microseconds since the epoch."""
        return self._micros

    def advance(self, seconds: float) -> None:
        self.set_time(self._micros / 1e6 + seconds)

    def set_price(self, log_price: float, step: float = 0.0, k: int = 0) -> None:
        self.write_state(self.state(k)._replace(log_price=log_price, step=step), k)

    def add(self, *pages: NewPage, k: int = 0) -> list[Any]:
        return [one for reply in self.run(add_calls(k, pages)) for one in reply]

    def ask(self, n: int = 1, *, k: int = 0, lease: float = 1e6, **asked: Any) -> Dispatched:
        return parse_dispatch(k, self.run([dispatch_call(k, Ask(n, lease=lease, **asked))])[0])

    def dispatch(self, n: int = 1, *, k: int = 0, **asked: Any) -> list[Handout]:
        return self.ask(n, k=k, **asked).handouts

    def names(self, n: int = 1, **asked: Any) -> list[str]:
        return [name_of(handout) for handout in self.dispatch(n, **asked)]

    def send(self, *seen: Observation) -> list[int]:
        """End leases; all of one partition."""
        calls = observe_calls(seen[0].handout.partition, seen, [one.handout.token for one in seen])
        return [int(one) for reply in self.run(calls) for one in reply]

    def observe(self, handout: Handout, wait: float = 10.0, slope: float = 0.0, *, op: int = KEEP, **row: Any) -> int:
        """End a lease by a visit now, whose next one is worth the price after so many seconds; return whether that counted."""
        return self.send(self.observation(handout, wait, slope, op=op, **row))[0]

    def observation(
        self, handout: Handout, wait: float = 10.0, slope: float = 0.0, *, op: int = KEEP, e: float = 0.0, longest: float = 1e9, **row: Any
    ) -> Observation:
        at = self._micros
        values = {"b": at, "a": wait, "s": slope, "e": e, "l": longest, "visits": handout.row.visits + 1, **row}
        return Observation(handout, op, handout.row._replace(**values))

    def visit(self, *names: str, wait: float = 10.0, slope: float = 0.0, **row: Any) -> None:
        """Fetch new pages once, so that they stand in the queue by their numbers."""
        self.add(*(new_page(name) for name in names))
        for at in range(0, len(names), HEAVY_BATCH):
            for handout in self.dispatch(len(names[at : at + HEAVY_BATCH]), share=1.0):
                assert self.observe(handout, wait, slope, **row) == 1

    def renew(self, handout: Handout, token: float) -> int:
        return int(self.run([renew_call(handout.partition, [(handout.page, handout.token, token)])])[0][0])

    def revise(self, page: bytes, b: float, row: Row, memory: Any = None, k: int = 0, counters: str = "") -> int:
        return int(self.run(revise_calls(k, [(page, b, row, memory)], counters))[0][0])

    def call(self, script: str, *arguments: Any, k: int = 0) -> Any:
        return self.run([Call(k, script, arguments)])[0]

    def hold(self, host: str, seconds: float, k: int = 0) -> int:
        return int(self.run([hold_call(k, host, seconds)])[0])

    def lock(self, k: int = 0) -> int:
        return int(self.call("take_planner_lock", "planner", 10_000_000, k=k))

    def publish(self, fence: int, log_price: str = "", step: float = 0.001, priors: bytes = b"", prices: bytes = b"", k: int = 0) -> int:
        return int(self.call("publish_plan", fence, repr(step), log_price, priors, prices, b"", "time", "1.5", k=k))

    def write_plan(self, fence: int, *rows: tuple[bytes, float, tuple[float, float, float, float]], k: int = 0) -> int:
        return int(self.call("write_plan", fence, b"".join(page + pack_numbers(b, numbers) for page, b, numbers in rows), k=k))

    def row(self, page: bytes, k: int = 0) -> Row:
        return Row.unpack(self.command("HGET", self.key("pages", k), page, partition=k))

    def score(self, page: bytes, k: int = 0) -> float | None:
        """Where a page stands on the queue, microseconds; None where it is not there."""
        told = self.command("ZSCORE", self.key("q", k), page, partition=k)
        return None if told is None else float(told)

    def due_in(self, name: str, k: int = 0) -> float | None:
        """Seconds until a page is due, as it is queued."""
        score = self.score(page_of(name), k)
        return None if score is None else (score - self._micros) / 1e6

    def _load(self, client: Any, names: Iterable[str]) -> None:
        loaded = self.connection.scripts_of(client)
        for name in sorted(set(names) - loaded):
            text = _SETS_CLOCK if name == "clock" else source(name)
            assert text.count(_ASKS) == (name != "clock")
            self._digests[name] = str(client.script_load(text.replace(_ASKS, _ASKS_US)))
            loaded.add(name)

    def first_queue(self, k: int = 0) -> dict[int, list[bytes]]:
        """Pages that wait for their first visit, in order, by host."""
        hosts = self.command("HVALS", self.key("hosts", k), partition=k)
        found: dict[int, list[bytes]] = {}
        for host in map(int, hosts):
            members: Sequence[bytes] = self.command("ZRANGE", self.key(f"f:{host}", k), 0, -1, partition=k)
            if members:
                found[host] = [member[-PAGE_BYTES:] for member in members]
        return found


def open_namespace(socket: str, name: str, partitions: int = 1) -> TimedNamespace:
    """Open a namespace on the test server; close its ``connection`` afterwards."""
    return TimedNamespace(make_quick(connect(parse_redis_url(f"unix://{socket}", Path()))), name).start(partitions)
