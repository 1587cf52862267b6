"""Visits by the state layer of this checkout, and by a bare loop over Redis' commands."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from optimal_frontier.state.connection import connect
from optimal_frontier.state.messages import KEEP, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import BATCH, Ask, add_calls, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import Row, pack_numbers
from visits.cluster import ClusterNodes
from visits.server import Server, host_of, url_of

#: Visits a second that deadlines are spread over, about what one client makes.
SPREAD = 5000


class PartitionVisits:
    """All pages fetched once and queued by numbers of their own; every visit found nothing new. Partitions are asked in turn."""

    def __init__(
        self, server: Server | ClusterNodes, pages: int, hosts: int, host_delay: float = 0.0, *, is_logged: bool = True, partitions: int = 1
    ) -> None:
        self.server, self.pages, self.host_delay, self.is_logged = server, pages, host_delay, is_logged
        self.namespace = Namespace(connect(parse_redis_url(server.url, Path())), "bench")
        self.namespace.open(spider="bench", partitions=partitions)
        self.rng, self.held, self.ids = random.Random(1), list[Handout](), list[bytes]()
        self.turn, self.visits = 0, [0] * partitions
        before = server.memory()
        self.add_us = self._add(hosts)
        for k in range(partitions):
            (fence,) = self._run([Call(k, "take_planner_lock", ["bench", 1_000_000])])
            self._run([Call(k, "publish_plan", [fence, repr(2 / pages), "0", b"", b"", b"", "time", "0"])])
            if k == 0:
                self.fence = fence
        made = 0
        while made < pages:
            made += self.step(512, share=1.0)
        self.end()
        self.page_bytes = (server.memory() - before) / pages

    def _add(self, hosts: int) -> float:
        spent = 0.0
        for at in range(0, self.pages, 16 * BATCH):
            new = [self._page(i, hosts) for i in range(at, min(self.pages, at + 16 * BATCH))]
            by_partition: dict[int, list[NewPage]] = {}
            for page in new:
                by_partition.setdefault(self.namespace.partition_of(page.host), []).append(page)
            before = self.server.cpu_s()
            self._run([call for k, some in by_partition.items() for call in add_calls(k, some)])
            spent += self.server.cpu_s() - before
        return spent / self.pages * 1e6

    def _page(self, i: int, hosts: int) -> NewPage:
        host = host_of(i, hosts)
        row = Row(importance=self.rng.uniform(0.5, 2.0), pattern=i % (2 * hosts))
        self.ids.append(self.rng.randbytes(12))
        return NewPage(self.ids[-1], host, row, 0.0, pack_record({"url": url_of(i, hosts)}, host))

    def _run(self, calls: list[Call]) -> list[Any]:
        return self.namespace.run(calls)

    def step(self, n: int, share: float = 0.2) -> int:
        """End the visits under way and take n more of the next partition, in one round trip to each node."""
        most = Ask(n, share=share, host_delay=self.host_delay).most
        asks = [Ask(min(most, n - at), share=share, host_delay=self.host_delay) for at in range(0, n, most)]
        ended = self._ended()
        k = self.turn = (self.turn + 1) % self.namespace.partitions
        results = self._run([*ended, *(dispatch_call(k, ask) for ask in asks)])
        self.held = [handout for reply in results[len(ended) :] for handout in parse_dispatch(k, reply).handouts]
        self.visits[k] += len(self.held)
        return len(self.held)

    def end(self) -> None:
        self._run(self._ended())
        self.held = []

    def write_plan(self) -> None:
        """Give a batch of pages new numbers, as a planner does."""
        ids = self.rng.sample(self.ids, BATCH)
        values = self.namespace.command("HMGET", self.namespace.key("pages"), *ids)
        packed = []
        for page, row in zip(ids, map(Row.unpack, values), strict=True):
            packed.append(page + pack_numbers(row.b, (1.1 * row.a, row.s, row.e, row.l)))
        self._run([Call(0, "write_plan", [self.fence, b"".join(packed)])])

    def _ended(self) -> list[Call]:
        seen = []
        for handout in self.held:
            wait = self.rng.expovariate(1.0) * self.pages / SPREAD + 0.5
            old = handout.row
            row = old._replace(
                b=handout.server_time(time.monotonic()) * 1e6,
                a=wait,
                s=wait / 2,
                e=0.0,
                l=1e9,
                visits=old.visits + 1,
                shape=5.0,
                time=50.0,
                observations=old.visits,
                content=b"0123456789abcdef",
            )
            seen.append(
                Observation(handout, KEEP, row, lateness=0.0, counters={"visits": 1, "observations": 1}, bit=0 if old.visits else -1)
            )
        if not seen:
            return []
        return observe_calls(self.held[0].partition, seen, [handout.token for handout in self.held], is_logged=self.is_logged)


class BareLoop:
    """ZPOPMIN and HGET, then HSET and ZADD, of one page after another in a script: what no queue of pages in Redis can do without."""

    TAKE = (
        "local o = {} for i = 1, ARGV[1] do local p = redis.call('ZPOPMIN', 'z') "
        "o[2*i-1] = p[1] o[2*i] = redis.call('HGET', 'h', p[1]) end return o"
    )
    GIVE = "for i = 1, #ARGV, 3 do redis.call('HSET', 'h', ARGV[i], ARGV[i+1]) redis.call('ZADD', 'z', ARGV[i+2], ARGV[i]) end return 1"

    def __init__(self, server: Server, pages: int) -> None:
        self.client, self.rng = server.client, random.Random(1)
        self.take, self.give = (self.client.script_load(text) for text in (self.TAKE, self.GIVE))
        self.held: list[tuple[bytes, bytes]] = []
        before, spent = server.memory(), server.cpu_s()
        for at in range(0, pages, 1000):
            ids = [self.rng.randbytes(12) for _ in range(at, min(pages, at + 1000))]
            self.client.zadd("z", {page: self.rng.randrange(10**15) for page in ids})
            self.client.hset("h", mapping={page: self.rng.randbytes(185) for page in ids})
        self.add_us, self.page_bytes = (server.cpu_s() - spent) / pages * 1e6, (server.memory() - before) / pages

    def step(self, n: int) -> int:
        pipe = self.client.pipeline(transaction=False)
        parts = [min(BATCH, n - at) for at in range(0, n, BATCH)]
        for at in range(0, len(self.held), BATCH):
            given = [x for page, row in self.held[at : at + BATCH] for x in (page, row, self.rng.randrange(10**15))]
            pipe.execute_command("EVALSHA", self.give, 0, *given)
        for part in parts:
            pipe.execute_command("EVALSHA", self.take, 0, part)
        taken = [x for reply in pipe.execute()[-len(parts) :] for x in reply]
        self.held = list(zip(taken[::2], taken[1::2], strict=True))
        return len(self.held)

    def end(self) -> None:
        given = [x for page, row in self.held for x in (page, row, self.rng.randrange(10**15))]
        self.client.execute_command("EVALSHA", self.give, 0, *given)
        self.held = []
