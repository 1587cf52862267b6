"""A small crawl as it is stored: two hosts, four pages, one plan."""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import redis
from judged_crawl import SETTINGS, JudgedCrawl, scrapys

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.moving import carry_out
from optimal_frontier.frontier.dispatching.work import Lease, Moving
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.scheduling.numbers import deadline
from optimal_frontier.state.messages import Observation
from optimal_frontier.state.reading import read_published

__all__ = ["HOT", "SETTINGS", "UNSEEN", "VISITED", "WARM", "WORTHLESS", "Crawl"]

HOT = "http://a.example/hot"
WARM = "http://a.example/warm?x=1"
WORTHLESS = "http://b.example:8080/worthless"
UNSEEN = "http://b.example:8080/unseen"
#: URL -> importance, bits, posterior shape and time (s).
VISITED: dict[str, tuple[float, list[int], float, float]] = {
    HOT: (4.0, [1, 1, 0], 3.0, 10.0),
    WARM: (1.0, [0, 1], 2.0, 20.0),
    WORTHLESS: (0.001, [1], 5.0, 2.0),
}
#: Logarithm of the price by the plan: 1, of which WORTHLESS is worth at most 0.0004.
LOG_PRICE = 0.0


def _dumped(client: redis.Redis, name: str) -> dict[bytes, bytes]:
    """Return what stands in the keys of a namespace, by their names without its own."""
    prefix = f"{name}:".encode()
    return {key.removeprefix(prefix): client.dump(key) for key in client.scan_iter(prefix + b"*", count=1000)}


def _restore(client: redis.Redis, name: str, values: dict[bytes, bytes]) -> None:
    """Put it into another namespace, which has its own number of the run."""
    pipeline = client.pipeline(transaction=False)
    for key, value in values.items():
        pipeline.restore(f"{name}:".encode() + key, 0, value)
    pipeline.hdel(f"{name}:{{0}}:meta", "run")
    pipeline.execute()


@dataclass(frozen=True)
class Left:
    """What a crawl left: in Redis, by the names of keys without that of the namespace, and in its process."""

    values: dict[bytes, bytes]
    recent: Recent
    contents: dict[str, int]
    time: float


class Crawl(JudgedCrawl):
    """A stored crawl of four pages on two hosts. The first one with the usual settings is played, those after it are copies."""

    _first: ClassVar[Left | None] = None

    def __init__(self, socket: str, name: str, **values: Any) -> None:
        first = None if values else Crawl._first
        with redis.Redis(unix_socket_path=socket) as client:
            if first is not None:
                _restore(client, name, first.values)
            super().__init__(socket, name, **values)
            if first is not None:
                self.recent, self.contents = copy.deepcopy(first.recent), dict(first.contents)
                self.set_time(first.time)
                return
            self._play()
            if not values:
                Crawl._first = Left(_dumped(client, name), copy.deepcopy(self.recent), dict(self.contents), self.time)

    def _play(self) -> None:
        self.contents: dict[str, int] = {}
        for url, (importance, *_) in VISITED.items():
            self.add(url, importance=importance)
        for handout in self.dispatch(4):
            self.see(handout, handout.record["url"])
        for turn in range(3):
            self.advance(10.0)
            for url, (_, bits, _, _) in VISITED.items():
                if turn < len(bits):
                    self.visit(url, bit=bits[turn], lateness=0.1 * (turn + 1))
        for url, (_, _, shape, time) in VISITED.items():
            self.rewrite(url, shape=shape, time=time)
        self.replan()
        self.add(UNSEEN)
        self.advance(0.5)

    def replan(self, log_price: float = LOG_PRICE, **fields: Any) -> None:
        """Publish a plan at a price, and give the pages that were seen their numbers, as the planner does."""
        crawlwide = {"multiplier": math.exp(log_price), "estimated_freshness": 0.75, "feasible": 1, "unused": 0.0, "stretch": 1.0}
        rates = {"change_rate_p10": 0.05, "change_rate_p50": 0.1, "change_rate_p90": 2.0}
        ways = {"policy": self.settings.policy, "exploration": "median", "exploration_rounds": 3.0, "exploration_held": 0}
        counts = {"pages": 3, "seconds": 0.01, "planned_rate": 0.97, "hosts_at_limit": 0}
        self.publish(log_price, **{**crawlwide, **rates, **ways, **counts, **fields})
        for url in VISITED:
            self.renumber(url)

    def renumber(self, url: str) -> None:
        """Give a page its numbers by the last plan."""
        k, row = self.partition(url), self.row(url)
        published, price = read_published(self.namespace, k)
        numbers = numbers_of(row, self.page(url), Terms(price, published, self.settings), since=self.time - row.b / 1e6)
        a, s, e, longest = numbers
        self.rewrite(url, a=a, s=s, e=e, l=longest)
        due = deadline(row.b / 1e6, numbers, price)
        place = min(int(due * 1e6 / 2) * 2, 9_000_000_000_000_000)
        self.namespace.command("ZADD", self.key("q", k), "XX", place, self.page(url), partition=k)

    def visit(self, url: str, *, bit: int, **values: Any) -> Observation:
        """Fetch a page now, with a content that makes this bit."""
        self.make_due(url)
        self.contents[url] = self.contents.get(url, 0) + bit
        turn = self.contents[url]
        return self.see(self.lease(url), url if not turn else f"{url} {turn}", **values)

    def fail_at(self, url: str, error: str) -> Observation:
        """Fetch a page in vain, a little later."""
        self.advance(0.001)
        self.make_due(url)
        return self.fail(self.lease(url), error)

    def host_number(self, url: str) -> int:
        return int(self.namespace.command("HGET", self.key("hosts", self.partition(url)), host_of(url), partition=self.partition(url)))

    def move(self, url: str, target: str) -> None:
        """Fetch a page, which is at ``target`` from now on."""
        self.make_due(url)
        handout = self.lease(url)
        digest = hashlib.md5(url.encode()).digest()
        observation = self.judged(handout, Visit(handout.received, fingerprint=Fingerprint(digest, 1)))
        arrived = move_of(self.settings, observation, scrapys(target), target)
        assert carry_out(self.namespace, [Moving(arrived, Lease.of(handout))])[0]
