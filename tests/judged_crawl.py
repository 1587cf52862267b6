"""A namespace that is filled through the real scripts and the real judge, at times that the test sets.

The scripts never go behind the time that is kept in the key ``d``, so a clock that is put into the future stands still.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quick_client import make_quick

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import Context, judge
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.messages import PAGE_BYTES, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import Ask, add_calls, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.published import PRICES, PRIORS
from optimal_frontier.state.reading import read_published
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, TIMED, TRANSIENT, Row

#: Where tests start, seconds since the epoch: the year 2033.
START = 2_000_000_000.0
SETTINGS = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": 1.0, "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10.0})


def scrapys(url: str) -> bytes:
    """The fingerprint of a GET request of ``url``, 20 bytes."""
    from scrapy import Request
    from scrapy.utils.request import fingerprint

    return bytes(fingerprint(Request(url)))


class JudgedCrawl:
    """A crawl of a namespace of its own; close it afterwards."""

    def __init__(self, socket: str, name: str, *, partitions: int = 1, settings: FrontierSettings = SETTINGS) -> None:
        self.namespace = Namespace(make_quick(connect(parse_redis_url(f"unix://{socket}", Path()))), name)
        self.namespace.open(spider="test", partitions=partitions)
        self.settings = settings
        self.recent = Recent()
        self.set_time(START)

    def close(self) -> None:
        self.namespace.connection.close()

    # The clock.

    def set_time(self, at: float) -> float:
        """Set the time of all partitions."""
        for k in range(self.namespace.partitions):
            stored = self.namespace.command("GET", self.key("d", k), partition=k)
            state = (PartitionState.stored(stored) or PartitionState())._replace(at=round(at * 1e6))
            self.namespace.command("SET", self.key("d", k), pack_doubles(state), partition=k)
        self.time = at
        return at

    def advance(self, seconds: float) -> float:
        return self.set_time(self.time + seconds)

    # Pages.

    def key(self, name: str, partition: int = 0) -> str:
        return self.namespace.key(name, partition)

    def partition(self, url: str) -> int:
        return self.namespace.partition_of(host_of(url))

    @staticmethod
    def page(url: str) -> bytes:
        return scrapys(url)[:PAGE_BYTES]

    def new_page(self, url: str, *, importance: float = 0.0, priority: float = 0.0, state: int = ACTIVE, **record: Any) -> NewPage:
        rule = self.settings.rules.of(url)
        shortest, longest = self.settings.interval_bounds(rule)
        row = Row(
            state=state,
            flags=TIMED if rule.update_times is not None else 0,
            importance=importance or rule.importance or 1.0,
            min_interval=shortest,
            max_interval=longest,
            pattern=zlib.crc32(host_of(url).encode()),
        )
        page = hashlib.sha1(url.encode()).digest()[:PAGE_BYTES] if state == TRANSIENT else self.page(url)
        return NewPage(page, host_of(url), row, importance, pack_record({"url": url, **record}, host_of(url)), priority)

    def add(self, *urls: str, **values: Any) -> list[Any]:
        """Add pages; the replies of all."""
        return [reply for url in urls for reply in self.namespace.run(add_calls(self.partition(url), [self.new_page(url, **values)]))[0]]

    def row(self, url: str) -> Row:
        k = self.partition(url)
        return Row.unpack(self.namespace.command("HGET", self.key("pages", k), self.page(url), partition=k))

    def rewrite(self, url: str, **fields: Any) -> None:
        """Change what is stored of a page's head."""
        k = self.partition(url)
        value = self.namespace.command("HGET", self.key("pages", k), self.page(url), partition=k)
        head = Row.unpack(value)._replace(**fields).pack()
        self.namespace.command("HSET", self.key("pages", k), self.page(url), head + value[len(head) :], partition=k)

    # Visits.

    def dispatch(self, n: int = 64, *, partition: int = 0, lease: float = 60.0, **values: Any) -> list[Handout]:
        """Hand out what is due now."""
        reply = self.namespace.run([dispatch_call(partition, Ask(n, lease=lease, **values))])[0]
        return parse_dispatch(partition, reply).handouts

    def lease(self, url: str) -> Handout:
        """Hand out one page that is due; what else comes up is given back."""
        mine = None
        k = self.partition(url)
        for handout in self.dispatch(partition=k):
            if handout.page == self.page(url):
                mine = handout
            else:
                self.end([self.judged(handout, Visit(handout.received, "released"))])
        assert mine is not None, f"{url} is not due"
        return mine

    def judged(self, handout: Handout, visit: Visit) -> Observation:
        published, _ = read_published(self.namespace, handout.partition)
        return judge(handout, visit, Context(self.settings, published, self.recent))

    def end(self, observations: Iterable[Observation]) -> list[int]:
        """End leases; 1 of each that was counted."""
        return [
            counted
            for seen in observations
            for counted in self.namespace.run(observe_calls(seen.handout.partition, [seen], [seen.handout.token]))[0]
        ]

    def see(self, handout: Handout, content: str = "same", *, took: float = 0.0, **values: Any) -> Observation:
        """Fetch what was handed out, with such a content."""
        digest = hashlib.md5(content.encode()).digest()
        visit = Visit(handout.received + took, fingerprint=Fingerprint(digest, 1), **values)
        observation = self.judged(handout, visit)
        assert self.end([observation]) == [1]
        return observation

    def fail(self, handout: Handout, error: str = "503") -> Observation:
        observation = self.judged(handout, Visit(handout.received, error))
        assert self.end([observation]) == [1]
        return observation

    def see_all(self, content: str = "same") -> int:
        """Fetch all that is due."""
        handouts = [handout for k in range(self.namespace.partitions) for handout in self.dispatch(partition=k)]
        for handout in handouts:
            self.see(handout, f"{handout.record['url']} {content}")
        return len(handouts)

    def make_due(self, *urls: str) -> None:
        """Put pages to the front of the queue, as if their deadlines were now."""
        for url in urls:
            self.rewrite(url, **dict.fromkeys("asel", 0.0))
            self.namespace.command("ZADD", self.key("q", self.partition(url)), "XX", 2, self.page(url), partition=self.partition(url))

    # Plans.

    def publish(
        self, log_price: float, *, priors: dict[int, tuple[float, float, int]] | None = None, prices: Any = (), **fields: Any
    ) -> None:
        """Publish a plan in every partition, as the planner does."""
        import numpy as np

        given = {"time": self.time, "log_price": log_price, "prior_time": 10.0, "budget": 1.0, "revisit_budget": 1.0} | fields
        texts = [text for name, value in given.items() for text in (name, value if isinstance(value, str) else repr(value))]
        taught = np.array([(pattern, *prior) for pattern, prior in (priors or {}).items()], PRIORS).tobytes()
        extra = np.array(list(dict(prices).items()), PRICES).tobytes()
        for k in range(self.namespace.partitions):
            fence = self.namespace.run([Call(k, "take_planner_lock", ["test", 60_000])])[0]
            call = Call(k, "publish_plan", [fence, repr(0.001), repr(log_price), taught, extra, b"", *texts])
            assert self.namespace.run([call])[0] > 0
            self.namespace.run([Call(k, "take_planner_lock", ["test", 0])])
