"""The Lua of a partition against a plain model of it, in any order of calls: every page in one place, every lease in one pair of hands."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from model import Page, Partition, Where
from timed_namespace import START, TimedNamespace, new_page, open_namespace, page_of

from optimal_frontier.state.messages import DROP, KEEP, RELEASE, REST, Handout
from optimal_frontier.state.partition import Belief, renewed
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, RETIRED, TRANSIENT, Row, split_tail

HOSTS = ("a", "b", "c")
NAMES = [f"{host}/{i}" for host in HOSTS for i in range(5)]
SOCKET: list[str] = []
#: Which namespace it is to those who say so, and how long a lease is, seconds.
RUN, LEASE_S = 12345.0, 20.0

numbers = st.sampled_from([(0.0, 0.0, 0.0, 1e9), (5.0, 2.0, 0.0, 1e9), (5.0, 2.0, 8.0, 1e9), (30.0, 10.0, 1.0, 60.0), (7.0, 0.0, 7.0, 7.0)])


@pytest.fixture(scope="module", autouse=True)
def socket(redis_socket: str) -> None:
    SOCKET[:] = [redis_socket]


def partition_of(name: str) -> int:
    return HOSTS.index(name[0]) % 2


class Crawl(RuleBasedStateMachine):
    """Two partitions; hosts a and c in the first, b in the second."""

    leases = Bundle("leases")

    @initialize()
    def open(self) -> None:
        self.space: TimedNamespace = open_namespace(SOCKET[0], f"test-{uuid.uuid4().hex[:12]}", 2)
        self.models = [Partition(asked_at=START * 1e6), Partition(asked_at=START * 1e6)]

    def teardown(self) -> None:
        if hasattr(self, "space"):
            self.space.connection.close()

    @rule(
        names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6),
        stated=st.sampled_from([0.0, 0.0, 2.0, 3.0]),
        state=st.sampled_from([ACTIVE, ACTIVE, ONCE, TRANSIENT]),
        priority=st.sampled_from([0.0, 1.0]),
    )
    def add(self, names: list[str], stated: float, state: int, priority: float) -> None:
        for k, model in enumerate(self.models):
            mine = [name for name in names if partition_of(name) == k]
            told = self.space.add(*(new_page(name, priority=priority, stated=stated, state=state) for name in mine), k=k)
            for name, one in zip(mine, told, strict=True):
                known = model.pages.get(page_of(name))
                if known is not None and known.row.state >= RETIRED:
                    assert Row.unpack(one).state == known.row.state
                    if known.row.state != DONE and stated:
                        known.stated = stated
                else:
                    assert one == model.add(page_of(name), name, as_stored(Row(state=state)), stated)

    @rule(
        target=leases,
        k=st.sampled_from([0, 1]),
        n=st.integers(1, 8),
        per_host=st.sampled_from([0, 1, 2]),
        delay=st.sampled_from([0.0, 0.0, 2.0]),
        budget=st.sampled_from([0.0, 0.0, 1.0, 30.0]),
        share=st.sampled_from([0.0, 0.3, 1.0]),
        ahead=st.sampled_from([None, None, None, 0.0, 1.0, 3600.0, -3600.0]),
    )
    def dispatch(self, k: int, n: int, per_host: int, delay: float, budget: float, share: float, ahead: float | None):  # type: ignore[no-untyped-def]
        """By a caller who does not say what time it is, or whose server's clock is ahead of what it knows by so many seconds."""
        model = self.models[k]
        belief = Belief() if ahead is None else Belief(max(1.0, self.space.at - ahead * 1e6), 3e6, RUN)
        now = model.time_of(self.space.at, belief.expected, belief.within)
        is_outage = ahead is not None and model.dispatches > 0 and now - model.asked_at > LEASE_S / 2 * 1e6
        # Redis' own clock ends it, which the test does not move.
        is_spared = is_outage or (ahead is not None and self.space.command("EXISTS", self.space.key("grace", k), partition=k) == 1)
        model.refill(now, budget)
        want = min(n, int(model.tokens + 1e-9)) if budget > 0 else n
        price = self.space.state(k).log_price
        may_go = model.may_go(now, price, is_spared)
        terms: dict[str, Any] = {"per_host": per_host, "host_delay": delay, "budget": budget, "share": share, "lease": LEASE_S}
        told = self.space.ask(n, k=k, belief=belief, **terms)
        assert not told.damaged
        assert told.now * 1e6 == pytest.approx(now, abs=1.0)
        assert (told.run, told.dispatches) == (RUN if model.dispatches else 0.0, model.dispatches)
        model.dispatches += ahead is not None
        handed = [handout.page for handout in told.handouts]
        assert len(set(handed)) == len(handed) <= want
        assert set(handed) <= set(may_go)
        hosts = [model.pages[page].host for page in handed]
        most = 1 if delay > 0 else per_host or 64
        assert all(hosts.count(host) <= most for host in HOSTS)
        of_host = [sum(model.pages[page].host == host for page in may_go) for host in HOSTS]
        assert len(handed) == min(max(want, 0), sum(min(most, count) for count in of_host)), "idle while something could go"
        for handout in told.handouts:
            page = model.pages[handout.page]
            assert handout.row._replace(host=0, **rank_fields(handout.row)) == page.row
            assert (handout.stated, handout.host, handout.record) == (page.stated, page.host, {"url": f"http://{page.name}"})
            model.hand_out(handout.page, handout.token, now, delay)
        model.tokens = model.tokens - len(handed) if budget > 0 else 1.0
        if not handed and told.wait > 0:
            assert told.wait > 1e-7
        return multiple(*told.handouts)

    @rule(
        handout=leases, op=st.sampled_from([KEEP, KEEP, KEEP, RELEASE, DROP, REST]), numbers=numbers, state=st.sampled_from([RETIRED, DONE])
    )
    def observe(self, handout: Handout, op: int, numbers: tuple[float, float, float, float], state: int) -> None:
        model, space = self.models[handout.partition], self.space
        page = model.end(handout.page, handout.token)
        a, s, e, longest = numbers
        fields = {"state": state} if op == REST else {}
        seen = space.observation(handout, a, s, op=op, e=e, longest=longest, **fields)
        assert space.send(seen) == [int(page is not None)]
        if page is None:
            return
        if op == RELEASE:
            model.release(page)
        elif op == DROP:
            del model.pages[handout.page]
        else:
            page.row = as_stored(seen.row._replace(host=0))
            page.where = Where.QUEUED if op == KEEP else Where.IDLE
            if op == KEEP:
                score = space.score(handout.page, handout.partition)
                assert score == pytest.approx(page.due(space.state(handout.partition).log_price), abs=3.0)

    @rule(handout=leases)
    def renew(self, handout: Handout) -> None:
        page = self.models[handout.partition].pages.get(handout.page)
        token = renewed(handout.token, 20.0)
        is_held = page is not None and page.where is Where.LEASED and page.token == handout.token
        was_renewed = page is not None and page.where is Where.LEASED and page.token == token
        assert self.space.renew(handout, token) == int(is_held or was_renewed)
        if is_held:
            assert page is not None
            page.token = handout.token = token

    @rule(name=st.sampled_from(NAMES), numbers=numbers, state=st.sampled_from([ACTIVE, RETIRED]), is_stale=st.booleans())
    def revise(self, name: str, numbers: tuple[float, float, float, float], state: int, is_stale: bool) -> None:
        k, key = partition_of(name), page_of(name)
        page = self.models[k].pages.get(key)
        b = page.row.b if page else 0.0
        a, s, e, longest = numbers
        row = (page.row if page else Row())._replace(a=a, s=s, e=e, l=longest, state=state, b=b or self.space.at)
        stored = self.space.row(key, k) if page else row
        told = self.space.revise(key, b + is_stale, row._replace(host=stored.host), k=k)
        if page is None or is_stale:
            assert told == 0
        elif page.where is Where.LEASED or page.where is Where.FIRST:
            assert told == 2
        else:
            assert told == 1
            self.models[k].note(page.row, -1)
            self.models[k].note(row, 1)
            page.row, page.released = as_stored(row._replace(host=0)), False
            page.where = Where.QUEUED if state == ACTIVE else Where.IDLE

    @rule(name=st.sampled_from(NAMES), numbers=numbers, is_stale=st.booleans())
    def plan(self, name: str, numbers: tuple[float, float, float, float], is_stale: bool) -> None:
        k, key = partition_of(name), page_of(name)
        page = self.models[k].pages.get(key)
        b = (page.row.b if page else 0.0) + is_stale
        told = self.space.write_plan(self.space.lock(k), (key, b, numbers), k=k)
        assert told == int(page is not None and page.where is Where.QUEUED and not is_stale)
        if told:
            assert page is not None
            a, s, e, longest = numbers
            page.row, page.released = page.row._replace(a=a, s=s, e=e, l=longest), False

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name: str) -> None:
        k = partition_of(name)
        assert self.space.call("forget", page_of(name), b"", k=k) == [int(self.models[k].forget(page_of(name)))]

    @rule(host=st.sampled_from(HOSTS), seconds=st.sampled_from([0.5, 3.0, 30.0]))
    def hold(self, host: str, seconds: float) -> None:
        k = HOSTS.index(host) % 2
        if self.space.call("hold_host", host, seconds, k=k):
            free = self.models[k].free_at
            # By the partition's time, which never runs back.
            free[host] = max(free.get(host, 0.0), self.models[k].time_of(self.space.at, 0.0, 0.0) + seconds * 1e6)
        else:
            assert not self.models[k].known_of(host)

    @rule(k=st.sampled_from([0, 1]))
    def wipe(self, k: int) -> None:
        """The server loses a partition: nothing of it is left, and it says so."""
        keys = self.space.command("KEYS", self.space.prefix(k) + "*", partition=k)
        self.space.commands([["DEL", key] for key in keys if not key.endswith((b"clock", b"meta"))], partition=k)
        self.models[k] = Partition()
        self.space.host_names.forget()

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 21.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.space.advance(seconds)

    @rule(k=st.sampled_from([0, 1]), log_price=st.sampled_from([-3.0, 0.0, 2.0]))
    def price(self, k: int, log_price: float) -> None:
        assert self.space.publish(self.space.lock(k), repr(log_price), 0.01, k=k) >= 1

    @invariant()
    def pages_are_in_one_place(self) -> None:
        if not hasattr(self, "space"):
            return
        for k, model in enumerate(self.models):
            queued = dict(queue_of(self.space, k))
            waiting = [page for pages in self.space.first_queue(k).values() for page in pages]
            stored = self.space.command("HGETALL", self.space.key("pages", k), partition=k)
            assert set(stored) == set(model.pages)
            assert len(waiting) == len(set(waiting))
            for key, page in model.pages.items():
                self.is_as_stored(key, page, stored[key], queued, waiting)
            assert set(queued) | set(waiting) <= set(stored)

    def is_as_stored(self, key: bytes, page: Page, value: bytes, queued: dict[bytes, float], waiting: list[bytes]) -> None:
        row = Row.unpack(value)
        assert row._replace(host=0, **rank_fields(row)) == page.row
        assert split_tail(value)[0] == page.stated
        assert (key in waiting) == (page.where is Where.FIRST)
        assert (key in queued) == (page.where in (Where.QUEUED, Where.LEASED))
        if page.where is Where.QUEUED:
            assert queued[key] % 2 == 0
        elif page.where is Where.LEASED:
            # One that has run out may be put behind its shut host; it stays odd, and is nobody's.
            assert queued[key] == page.token or (page.token <= self.space.at and queued[key] % 2 == 1)
            page.token = queued[key]

    @invariant()
    def counters_are_true(self) -> None:
        if not hasattr(self, "space"):
            return
        for k, model in enumerate(self.models):
            counts = self.space.counts(k)
            for name in ("pages", "pending", "dispatched", "ended", "leases_expired", "observations_refused"):
                assert counts.get(name, 0) == model.counts.get(name, 0), name
            under_way = sum(page.where is Where.LEASED for page in model.pages.values())
            assert counts.get("dispatched", 0) - counts.get("ended", 0) - counts.get("leases_expired", 0) == under_way

    @invariant()
    def hosts_with_first_visits_stand_in_one_queue(self) -> None:
        if not hasattr(self, "space"):
            return
        for k in range(2):
            key = self.space.key("f", k)
            firsts = self.space.first_queue(k)
            assert {int(host) for host in self.space.command("ZRANGE", key, 0, -1, partition=k)} == set(firsts)
            for host in firsts:
                rank = float(self.space.command("ZSCORE", key, host, partition=k))
                ((_, best),) = pairs_of(self.space.command("ZRANGE", self.space.key(f"f:{host}", k), 0, 0, "WITHSCORES", partition=k))
                # Of a host that is shut it is the time when it opens.
                assert rank == best or rank > 0


def as_stored(row: Row) -> Row:
    return Row.unpack(row.pack())


def rank_fields(row: Row) -> dict[str, float]:
    """In front of a first visit the numbers hold the rank and `unseen` the priority; the model has none."""
    return {"a": 0.0, "s": 0.0, "e": 0.0, "l": 0.0, "unseen": 0.0} if row.b == 0 else {}


def queue_of(space: TimedNamespace, k: int) -> list[tuple[bytes, float]]:
    return pairs_of(space.command("ZRANGE", space.key("q", k), 0, -1, "WITHSCORES", partition=k))


def pairs_of(flat: list[Any]) -> list[tuple[bytes, float]]:
    pairs = flat if flat and isinstance(flat[0], list | tuple) else list(zip(flat[::2], flat[1::2], strict=True))
    return [(page, float(score)) for page, score in pairs]


TestCrawl = Crawl.TestCase
TestCrawl.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
