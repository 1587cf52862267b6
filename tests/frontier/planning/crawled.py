"""Crawls in a real namespace, whose clock the tests set: pages that were fetched and observed through the scripts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.messages import KEEP, PAGE_BYTES, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import Ask, add_calls, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.published import Published
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, LAYOUT, Row

#: Where tests start, seconds since the epoch: the year 2033. Scripts never go behind the time that a partition was told last.
START = 2_000_000_000.0


def parse(**values: object) -> FrontierSettings:
    """Settings given without their prefix."""
    values = {"MIN_INTERVAL": 1e-3, "MAX_INTERVAL": 1e9, "RESOLVE_INTERVAL": 60} | values
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


def page_of(name: str) -> bytes:
    """Return the identity of the page ``name``."""
    return hashlib.sha1(name.encode()).digest()[:PAGE_BYTES]


def pattern_of(name: str) -> int:
    """Return a hash of what stands before the last slash."""
    return int.from_bytes(hashlib.sha1(name.rpartition("/")[0].encode()).digest()[:4], "little")


def new_page(name: str, *, state: int = ACTIVE, priority: float = 0.0, **row: Any) -> NewPage:
    """Return a page whose host is what stands before the slash in ``name``."""
    host = name.partition("/")[0]
    head = Row(state=state, **({"min_interval": 1e-3, "max_interval": 1e9, "pattern": pattern_of(name)} | row))
    return NewPage(page_of(name), host, head, 0.0, pack_record({"url": f"http://{name}"}, host), priority=priority)


class Crawl:
    """A namespace with hands on its clock."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.names: dict[bytes, str] = {}

    # Time.

    def set_time(self, at: float) -> float:
        for k in range(self.namespace.partitions):
            key = self.namespace.key("d", k)
            kept = self.namespace.command("GET", key, partition=k)
            state = (PartitionState.stored(kept) or PartitionState())._replace(at=round(at * 1e6))
            self.namespace.command("SET", key, pack_doubles(state), partition=k)
        self.at = at
        return at

    def advance(self, seconds: float) -> float:
        return self.set_time(self.at + seconds)

    def state(self, k: int = 0) -> PartitionState:
        state = PartitionState.stored(self.namespace.command("GET", self.namespace.key("d", k), partition=k))
        assert state is not None
        return state

    def log_price(self, k: int = 0) -> float:
        return self.state(k).log_price

    def step(self, k: int = 0) -> float:
        return self.state(k).step

    # Pages.

    def add(self, *pages: NewPage) -> None:
        by_partition: dict[int, list[NewPage]] = {}
        for page in pages:
            by_partition.setdefault(self.namespace.partition_of(page.host), []).append(page)
        for k, some in by_partition.items():
            self.namespace.run(add_calls(k, some))

    def dispatch(self, n: int = 64, k: int = 0, **ask: Any) -> list[Handout]:
        reply = self.namespace.run([dispatch_call(k, Ask(n, **({"lease": 1e6} | ask)))])[0]
        return parse_dispatch(k, reply).handouts

    def firsts(self) -> list[Handout]:
        """Hand out all first visits, and nothing else."""
        found: list[Handout] = []
        for k in range(self.namespace.partitions):
            left = self.namespace.counts(k).get("pending", 0)
            while left > 0:
                some = self.dispatch(min(left, 64), k, share=1.0)
                left -= len(some)
                found += some
        return found

    def take(self, name: str) -> Handout:
        """Hand one page out, as one whose lease was lost."""
        k = self.namespace.partition_of(name.partition("/")[0])
        self.namespace.command("ZADD", self.namespace.key("q", k), 1, page_of(name), partition=k)
        (handout,) = self.dispatch(1, k)
        assert handout.page == page_of(name)
        return handout

    def observe(self, handout: Handout, settings: FrontierSettings | None = None, bit: int = -1, op: int = KEEP, **row: Any) -> int:
        """End a lease now, as a judge does; ``row``: fields that the visit changed."""
        return self.observe_many([(handout, row)], settings, bit, op)[0]

    def observe_many(
        self, ended: list[tuple[Handout, dict[str, Any]]], settings: FrontierSettings | None = None, bit: int = -1, op: int = KEEP
    ) -> list[int]:
        published = {k: self.published(k) for k in range(self.namespace.partitions)}
        made: dict[int, list[Observation]] = {}
        for handout, row in ended:
            old = handout.row
            failed = row.get("failures", 0) > 0
            new = old._replace(**({"b": round(self.at * 1e6), "visits": old.visits + (not failed), "unseen": 0.0, "failures": 0} | row))
            terms = Terms(handout.log_price, published[handout.partition], settings or parse())
            if not {"a", "l"} & set(row):
                a, s, e, longest = numbers_of(new, handout.page, terms)
                new = new._replace(a=a, s=s, e=e, l=longest)
            counters = {"failures" if failed else "visits": 1}
            if old.attempts == 0:
                counters["pending"] = -1
            if old.visits == 0 and not failed:
                counters["fetched"] = 1
            if bit >= 0:
                counters["observations"] = 1
            made.setdefault(handout.partition, []).append(Observation(handout, op, new, counters=counters))
        answers: list[int] = []
        for k, some in made.items():
            for reply in self.namespace.run(observe_calls(k, some, [seen.handout.token for seen in some])):
                answers += reply
        return answers

    def crawled(self, n: int, seed: int = 0, hosts: int = 9, settings: FrontierSettings | None = None, **row: Any) -> np.random.Generator:
        """Add ``n`` pages and fetch each once, with a posterior."""
        rng = np.random.default_rng(seed)
        self.add(*(new_page(f"h{i % hosts}/{i}", **({"importance": float(rng.uniform(0.1, 5))} | row)) for i in range(n)))
        handouts = self.firsts()
        self.observe_many(
            [(handout, {"shape": rng.uniform(0.5, 9), "time": 10 ** rng.uniform(0, 4)} | row) for handout in handouts], settings
        )
        self.advance(0.001)
        return rng

    # What is stored.

    def row(self, name: str) -> Row:
        k = self.namespace.partition_of(name.partition("/")[0])
        return Row.unpack(self.namespace.command("HGET", self.namespace.key("pages", k), page_of(name), partition=k))

    def rows(self, k: int = 0) -> dict[bytes, np.void]:
        """Return the heads of all pages of a partition."""
        flat = self.namespace.command("HGETALL", self.namespace.key("pages", k), partition=k)
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        return {page: np.frombuffer(value[:HEAD_BYTES], LAYOUT)[0] for page, value in pairs}

    def due(self, name: str) -> float:
        """Return when a page is looked at, seconds since the epoch."""
        k = self.namespace.partition_of(name.partition("/")[0])
        return float(self.namespace.command("ZSCORE", self.namespace.key("q", k), page_of(name), partition=k)) / 1e6

    def plan(self, k: int = 0) -> dict[str, str]:
        return self.namespace.hash("plan", k)

    def set_plan(self, **fields: object) -> None:
        for k in range(self.namespace.partitions):
            flat = [value for pair in fields.items() for value in pair]
            self.namespace.command("HSET", self.namespace.key("plan", k), *flat, partition=k)

    def published(self, k: int = 0) -> Published:
        key = self.namespace.key
        priors, prices = self.namespace.commands([["GET", key("priors", k)], ["GET", key("prices", k)]], partition=k)
        return Published.parse(self.plan(k), priors, prices)

    def run(self, script: str, *arguments: Any, k: int = 0) -> Any:
        return self.namespace.run([Call(k, script, list(arguments))])[0]


def open_crawl(socket: str, name: str, partitions: int = 1, kind: type[Namespace] = Namespace) -> Crawl:
    """Open a namespace on the test server at the time START; close its ``connection`` afterwards."""
    namespace = kind(connect(parse_redis_url(f"unix://{socket}", Path())), name)
    namespace.open(spider="test", partitions=partitions)
    crawl = Crawl(namespace)
    crawl.set_time(START)
    namespace.command("HSET", namespace.key("meta"), "opened", repr(START))
    return crawl
