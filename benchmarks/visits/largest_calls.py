"""The largest call that a crawler or a planner makes of each script, in a partition where it has most to do."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from optimal_frontier.frontier.dispatching.moving import MOST_ALIASES
from optimal_frontier.frontier.planning.youth import MOST_KEYS
from optimal_frontier.state.clocks import GROUP_BYTES, group_keys, store_calls
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, REST, Change, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import (
    BATCH,
    HEAVY_BATCH,
    MOST_ROOMS,
    Ask,
    add_calls,
    become_alias_call,
    dispatch_call,
    hold_call,
    observe_calls,
    parse_dispatch,
    renew_call,
    renewed,
    revise_calls,
    starts_calls,
    turns_calls,
)
from optimal_frontier.state.published import YOUTH
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.rows import RETIRED, Row, pack_numbers, pack_tail
from optimal_frontier.state.source_lessons import NUMBERS, Lesson
from optimal_frontier.state.source_records import learn_calls

#: Patterns of which a plan publishes priors, and hosts at their limit.
PATTERNS, LIMITED = 5000, 5000
#: Counters that visits may add to, more than there are.
COUNTERS = 60
#: Seconds for which starts are awaited.
_AWAITED_S = 15.0
_WORDS: Final = HostWords((1.0, 2.0, 3.0, 4.0), good=3.0, missing=1.0)


class LargestCalls:
    """A partition with pages that were visited and pages that wait for that, on many hosts; `make` makes one call of a kind.

    Parameters
    ----------
    namespace : Namespace
        Opened, with one partition that is empty.
    pages : int
        Visited, and as many that wait for their first visit.
    hosts : int
        Of these pages.
    """

    def __init__(self, namespace: Namespace, pages: int, hosts: int) -> None:
        self.namespace, self.hosts, self.rng = namespace, hosts, random.Random(1)
        self.visited: list[bytes] = []
        self.waiting: list[bytes] = []
        self._count = 0
        self._fence = int(namespace.run([Call(0, "take_planner_lock", ["largest", 10_000_000])])[0])
        for at in range(0, pages, HEAVY_BATCH):
            self._run(add_calls(0, [self.page(i) for i in range(at, min(pages, at + HEAVY_BATCH))]))
            self.observe(self.ask(Ask(HEAVY_BATCH, share=1.0)))
        # In an order that is no server's own: calls are the same each time.
        self.visited = sorted(bytes(page) for page in namespace.command("HKEYS", namespace.key("pages")))
        for at in range(0, pages, 16 * BATCH):
            some = [self.page(i) for i in range(at, min(pages, at + 16 * BATCH))]
            self.waiting += [new.page for new in some]
            self._run(add_calls(0, some))
        self._alias(self.rng.randbytes(12), self.visited[0])
        #: How each call is made, by its name: the script's, and what is special about it.
        self.kinds: dict[str, Callable[[], Call]] = {
            "add_pages: new, new hosts": self._add_new,
            "add_pages: known, other tails": self._add_known,
            "adopt": self._adopt,
            "become_alias": self._become_alias,
            "dispatch: due": lambda: self._due(Ask(BATCH, share=0.0)),
            "dispatch: due, paced": lambda: self._due(Ask(BATCH, share=0.0, host_delay=0.001, awaited=_AWAITED_S)),
            "dispatch: shut hosts": self._shut,
            "dispatch: first visits": lambda: dispatch_call(0, Ask(BATCH, share=1.0, room=self._rooms(BATCH))),
            "dispatch: first visits beside full slots": lambda: dispatch_call(0, Ask(BATCH, share=1.0, room=self._rooms(0))),
            "dispatch: first visits with room": lambda: dispatch_call(0, Ask(BATCH, share=1.0, room=self._rooms(2))),
            "forget: under way": lambda: self._forget([handout.page for handout in self.handed()[:HEAVY_BATCH]]),
            "forget: waiting": lambda: self._forget([self.waiting.pop() for _ in range(HEAVY_BATCH)]),
            "shut_hosts: asks": lambda: hold_call(0, self.host(1), 0.001),
            "shut_hosts: began": self._note,
            "observe": self._observe,
            "observe: retired": self._retire,
            "publish_plan": self._publish,
            "renew": self._renew,
            "revise": self._revise,
            "add_to_sources": self._learn,
            "store_clocks": self._store,
            "take_turns": lambda: turns_calls(0, 1e-3, 1e-3, [f"new-{self._next()}" for _ in range(BATCH)])[0],
            "write_plan": self._write,
        }

    def close(self) -> None:
        self.namespace.connection.close()

    def host(self, i: int) -> str:
        return f"www.example-{i % self.hosts:06d}.org"

    def page(self, i: int, host: str = "") -> NewPage:
        """A page with a URL of 80 characters or more, and a little meta."""
        number, host = self._next(), host or self.host(i)
        record = {"url": f"https://{host}/section/article-{number:08d}-{'x' * 40}", "meta": {b"scrapy_callback": b"parse_item"}}
        row = Row(importance=self.rng.uniform(0.5, 2.0), pattern=1 + i % PATTERNS)
        return NewPage(self.rng.randbytes(12), host, row, 0.0, pack_record(record, host), 0.0, 10**6, 10**6)

    def ask(self, ask: Ask) -> list[Handout]:
        (reply,) = self._run([dispatch_call(0, ask)])
        return parse_dispatch(0, reply).handouts

    def handed(self) -> list[Handout]:
        """Visited pages under way, as many as one call hands out."""
        self.make_due()
        return self.ask(Ask(BATCH, share=0.0))

    def make_due(self) -> None:
        """Make a few hundred visited pages due, whatever their numbers say."""
        some = [word for page in self.rng.sample(self.visited, min(600, len(self.visited))) for word in (2, page)]
        self.namespace.command("ZADD", self.namespace.key("q"), "XX", *some)

    def observe(self, handouts: Sequence[Handout]) -> None:
        self._run(observe_calls(0, [self._seen(one) for one in handouts], [one.token for one in handouts], is_logged=True))

    # One call of each kind.

    def _add_new(self) -> Call:
        return add_calls(0, [self.page(i, f"new-{self._next()}") for i in range(BATCH)])[0]

    def _add_known(self) -> Call:
        handouts = self.handed()
        pages = [
            NewPage(one.page, one.host, one.row, 2.0, pack_record({**one.record, "number": self._next()}, one.host)) for one in handouts
        ]
        return add_calls(0, pages)[0]

    def _adopt(self) -> Call:
        (new,) = [self.page(0, f"new-{self._next()}")]
        memory = Memory(etag=b'"1234"', aliases=tuple(self.rng.randbytes(16) for _ in range(MOST_ALIASES)))
        row = new.row._replace(b=1e15, a=1e6)
        return Call(0, "adopt", [new.page, new.host, row.pack(), pack_tail(0.0, new.record), memory.pack()])

    def _become_alias(self) -> Call:
        one, *rest = self.handed()
        self.observe(rest)
        self.visited = [page for page in self.visited if page != one.page]
        here = bytes(4) + self.visited[0] + b"https://www.example.org/"
        change = Change("https://www.example.org/", bytes(16), bytes(16))
        return become_alias_call(Observation(one, KEEP, one.row, change=change), one.token, here, {"visits": 1, "moved": 1})

    def _due(self, ask: Ask) -> Call:
        self.make_due()
        return dispatch_call(0, ask)

    def _shut(self) -> Call:
        self.make_due()
        shut = struct.pack("<ddd", 9e15, 0.0, 0.0)
        turns = [word for i in range(1, self.hosts + 1) for word in (i.to_bytes(4, "little"), shut)]
        self.namespace.command("HSET", self.namespace.key("opens"), *turns)
        return dispatch_call(0, Ask(BATCH, host_delay=1.0, awaited=_AWAITED_S))

    def _rooms(self, room: int) -> dict[int, int]:
        self.namespace.command("DEL", self.namespace.key("opens"))
        return dict.fromkeys(range(1, min(self.hosts, MOST_ROOMS) + 1), room)

    def _forget(self, pages: list[bytes]) -> Call:
        gone = set(pages)
        self.visited = [page for page in self.visited if page not in gone]
        return Call(0, "forget", pages)

    def _note(self) -> Call:
        hosts = [self.host(i) for i in range(BATCH)]
        (told,) = self._run(turns_calls(0, 1e-3, _AWAITED_S, hosts))
        return starts_calls(0, 1e-3, [(host, 1.0, named) for host, named in zip(hosts, told[1::2], strict=True)])[0]

    def _observe(self) -> Call:
        handouts = self.handed()
        return observe_calls(0, [self._seen(one) for one in handouts], [one.token for one in handouts], is_logged=True)[0]

    def _retire(self) -> Call:
        handouts = self.handed()
        gone = {one.page for one in handouts}
        self.visited = [page for page in self.visited if page not in gone]
        seen = [Observation(one, REST, one.row._replace(state=RETIRED, b=1e15), counters={"retired": 1}) for one in handouts]
        return observe_calls(0, seen, [one.token for one in handouts], is_logged=True)[0]

    def _publish(self) -> Call:
        fields = [word for i in range(50) for word in (f"field_{i}", repr(self.rng.random()))]
        tables = [self.rng.randbytes(16 * PATTERNS), self.rng.randbytes(8 * LIMITED), self.rng.randbytes(YOUTH.itemsize * MOST_KEYS)]
        return Call(0, "publish_plan", [self._fence, "0.001", "0.5", *tables, *fields])

    def _renew(self) -> Call:
        return renew_call(0, [(one.page, one.token, renewed(one.token, 15.0)) for one in self.handed()])

    def _revise(self) -> Call:
        pages = self.visited[:BATCH]
        values = self.namespace.command("HMGET", self.namespace.key("pages"), *pages)
        self.namespace.command("ZADD", self.namespace.key("q"), *(word for page in pages for word in (2, page)))
        rows = [
            (page, row.b, row._replace(importance=2.0), self._memory()) for page, row in zip(pages, map(Row.unpack, values), strict=True)
        ]
        return revise_calls(0, rows, "revived=1")[0]

    def _learn(self) -> Call:
        lessons = {f"{self.host(i)} sitemap": Lesson(0.9, (1.0,) * NUMBERS) for i in range(BATCH)}
        return learn_calls(self.namespace, lessons)[0]

    def _store(self) -> Call:
        keys = group_keys([self._next() for _ in range(BATCH)], [1] * BATCH, [1] * BATCH)[:, 0].tolist()
        return store_calls(0, self._fence, "1-0", {key: self.rng.randbytes(GROUP_BYTES) for key in keys}, {}, [])[0]

    def _write(self) -> Call:
        pages = self.visited[:BATCH]
        values = self.namespace.command("HMGET", self.namespace.key("pages"), *pages)
        self.namespace.command("ZADD", self.namespace.key("q"), *(word for page in pages for word in (2, page)))
        numbers = (self.rng.uniform(10.0, 20.0), 5.0, 0.0, 1e9)
        rows = b"".join(page + pack_numbers(Row.unpack(value).b, numbers) for page, value in zip(pages, values, strict=True))
        return Call(0, "write_plan", [self._fence, rows])

    # What they are made of.

    def _seen(self, handout: Handout) -> Observation:
        row = handout.row._replace(b=handout.at * 1e6, a=self.rng.uniform(0.0, 1.0), s=0.5, e=0.0, l=1e9, visits=handout.row.visits + 1)
        change = Change(f"https://{handout.host}/{'x' * 60}", bytes(16), self.rng.randbytes(16))
        counters = {"visits": 1, "observations": 1, "changes": 1, "bytes_saved": self.rng.randrange(10**6)}
        counters[f"counter_{self._next() % COUNTERS}"] = 1
        counters |= {"pending": -1, "fetched": 1} if not handout.row.attempts else {}
        bit = 1 if handout.row.visits else -1
        return Observation(handout, KEEP, row, self._memory(), _WORDS, change, 1.5, counters, bit=bit)

    def _memory(self) -> Memory:
        return Memory(etag=self.rng.randbytes(32), last_modified=b"Mon, 23 Nov 2026 03:14:13 GMT", size=1, noise=self.rng.randbytes(200))

    def _alias(self, name: bytes, page: bytes) -> None:
        self.namespace.command("HSET", self.namespace.key("aliases"), name, bytes(4) + page + b"https://www.example.org/")

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _run(self, calls: Sequence[Call]) -> list[Any]:
        return self.namespace.run(calls)
