"""The Lua of partitions against a plain model of them, in any order of calls: every page in one place, every lease in one pair of hands.

Two crawlers and two planners call; the server loses everything or goes back to an earlier state, its clock jumps, and calls come late.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from model import Page, Partition, Where
from timed_namespace import START, TimedNamespace, new_page, open_namespace, page_of

from optimal_frontier.frontier.dispatching import server_watch
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.state.connection import connect
from optimal_frontier.state.embedded import EmbeddedServer
from optimal_frontier.state.layouts import BELIEVED_S, REMEMBERED_S, HostTurns
from optimal_frontier.state.messages import DROP, KEEP, RELEASE, REST, Handout, Observation
from optimal_frontier.state.partition import (
    Ask,
    Belief,
    become_alias_call,
    dispatch_call,
    parse_dispatch,
    renewed,
    starts_calls,
    turns_calls,
)
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, RETIRED, TRANSIENT, Row, host_bytes, pack_tail, split_tail

HOSTS = ("a", "b", "c", "d")
NAMES = [f"{host}/{i}" for host in HOSTS for i in range(4)]
PARTITIONS = 3
SOCKET: list[str] = []
#: How long a lease is, and for how long a start is awaited, seconds.
LEASE_S = AWAITED_S = 20.0
#: What the clocks of the crawlers say, seconds; nobody sets them.
LOCAL = [0.0]

Asked = tuple[int, int, int, float, float, float, float]
#: Partition, requests, per_host, delay, awaited, budget, share.
asks: st.SearchStrategy[Asked] = st.tuples(
    st.integers(0, PARTITIONS - 1),
    st.integers(1, 8),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([0.0, 0.0, 2.0]),
    st.sampled_from([0.0, AWAITED_S]),
    st.sampled_from([0.0, 0.0, 1.0, 30.0]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
numbers = st.sampled_from([(0.0, 0.0, 0.0, 1e9), (5.0, 2.0, 0.0, 1e9), (5.0, 2.0, 8.0, 1e9), (30.0, 10.0, 1.0, 60.0), (7.0, 0.0, 7.0, 7.0)])


@pytest.fixture(scope="module", autouse=True)
def socket(runtime_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of its own, as everything on it is lost at times."""
    server = EmbeddedServer(tmp_path_factory.mktemp("model"))
    SOCKET[:] = [server.ensure()]
    with redis.Redis(unix_socket_path=SOCKET[0]) as client:
        client.config_set("appendonly", "no")  # a quarter of the time of a call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_watch, "local_clock", lambda: LOCAL[0])
        yield
    server.release()


def partition_of(name: str) -> int:
    return HOSTS.index(name[0]) % PARTITIONS


class Kept(NamedTuple):
    """An earlier state of the server, and what the model says of it."""

    values: dict[bytes, bytes]
    models: list[Partition]


@dataclass
class Crawler:
    """What a process knows of the server."""

    space: TimedNamespace
    watch: ServerWatch

    @classmethod
    def of(cls, name: str) -> Crawler:
        space = TimedNamespace(connect(parse_redis_url(f"unix://{SOCKET[0]}", Path())), name)
        space.open(spider="test", partitions=PARTITIONS)
        return cls(space, ServerWatch(space))


class Crawl(RuleBasedStateMachine):
    """Three partitions; hosts a and d in the first, b in the second, c in the third."""

    leases = Bundle("leases")
    turns = Bundle("turns")
    fences = Bundle("fences")
    states = Bundle("states")

    @initialize()
    def open(self) -> None:
        self.name = f"test-{uuid.uuid4().hex[:12]}"
        self.space: TimedNamespace = open_namespace(SOCKET[0], self.name, PARTITIONS)
        self.models = [Partition(asked_at=START * 1e6) for _ in range(PARTITIONS)]
        self.crawlers = [Crawler.of(self.name), Crawler.of(self.name)]
        #: Of each partition the time that it told last, and when that was by the crawlers' clocks; those whose clock jumped since.
        self.told: dict[int, tuple[float, float]] = {}
        self.stepped: set[int] = set()

    def teardown(self) -> None:
        if hasattr(self, "space"):
            for space in (self.space, *(crawler.space for crawler in self.crawlers)):
                space.command("FLUSHALL")
                space.connection.close()

    def now(self, k: int) -> float:
        """The time of a partition to somebody who knows nothing of it, microseconds."""
        return self.models[k].time_of(self.space.at)

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

    @rule(target=leases, asked=asks)
    def dispatch(self, asked: Asked):  # type: ignore[no-untyped-def]
        return self.hand_out(0, asked)

    @rule(target=leases, asked=asks)
    def dispatch_to_another(self, asked: Asked):  # type: ignore[no-untyped-def]
        return self.hand_out(1, asked)

    @rule(target=leases, asked=asks)
    def dispatch_to_a_stranger(self, asked: Asked):  # type: ignore[no-untyped-def]
        return self.hand_out(None, asked)

    def hand_out(self, who: int | None, asked: Asked):  # type: ignore[no-untyped-def]
        """To one of the crawlers, or to somebody who knows nothing of the server."""
        k, n, per_host, delay, awaited, budget, share = asked
        model, crawler = self.models[k], None if who is None else self.crawlers[who]
        space, belief = (self.space, Belief()) if crawler is None else (crawler.space, crawler.watch.belief(k))
        now = model.time_of(self.space.at, belief.expected, belief.within)
        is_outage = crawler is not None and model.dispatches > 0 and now - model.asked_at > LEASE_S / 2 * 1e6
        # Redis' own clock ends it, which the test does not move.
        is_spared = is_outage or (crawler is not None and self.space.command("EXISTS", self.space.key("grace", k), partition=k) == 1)
        before = model.asked_at
        model.refill(now, budget)
        model.clock = self.space.at
        want = min(n, int(model.tokens + 1e-9)) if budget > 0 else n
        price = self.space.state(k).log_price
        may_go = model.may_go(now, price, is_spared)
        ask = Ask(n, per_host, LEASE_S, budget, share, delay, awaited=awaited, belief=belief)
        told = parse_dispatch(k, space.run([dispatch_call(k, ask)])[0])
        assert not told.damaged
        assert told.now * 1e6 == pytest.approx(now, abs=1.0)
        assert (told.run, told.dispatches) == (model.run, model.dispatches)
        self.is_bounded(k, told.now, belief, before)
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
            model.hand_out(handout.page, handout.token, now, delay, awaited)
        model.tokens = model.tokens - len(handed) if budget > 0 else 1.0
        if not handed and told.wait > 0:
            assert told.wait > 1e-7
        if crawler is not None:
            self.take_note(crawler, k, told)
            model.dispatches += 1
            if belief.run < 0 or model.run == 0:  # it has just read it, or nobody has told the partition yet
                model.run = abs(belief.run)
        return multiple(*told.handouts)

    def is_bounded(self, k: int, now: float, belief: Belief, before_us: float) -> None:
        """However the server's clock jumps, the time of a partition goes on as that of the crawlers, but for a few seconds a call.

        A jump since the last call nobody can tell but who knows the time of the partition. Where a clock is behind, time stands still for
        those who do not, and for a call where it is behind what another one was told.
        """
        knows, stands = belief.expected > 0, now * 1e6 <= before_us
        assert now * 1e6 >= max(before_us, belief.expected - belief.within) - 1.0
        if not knows and k in self.stepped:
            self.told.pop(k, None)
        elif k in self.told and LOCAL[0] - self.told[k][1] < REMEMBERED_S:
            before, at = self.told[k]
            assert now - before - (LOCAL[0] - at) <= 2 * BELIEVED_S
        if not stands and (knows or k in self.told):
            self.told[k] = now, LOCAL[0]
        self.stepped.discard(k)

    def take_note(self, crawler: Crawler, k: int, told: Any) -> None:
        """A crawler finds out that the server is not the one it was, and joins the one that is there."""
        watch, model, before = crawler.watch, self.models[k], crawler.space.run_id
        known = watch._known.get(k)
        is_behind = known is not None and model.dispatches < known.dispatches
        is_doubted = model.run not in (0.0, before)
        watch.note(k, told, LOCAL[0])
        assert (watch.is_behind, watch.is_doubted) == (is_behind, is_doubted)
        if not is_behind and not is_doubted:
            return
        crawler.space.open(spider="test", partitions=PARTITIONS)
        watch.note_opened()
        assert crawler.space.is_there()
        if is_behind or crawler.space.run_id != before:
            watch.forget()

    @rule(handout=leases, numbers=numbers)
    def visit(self, handout: Handout, numbers: tuple[float, float, float, float]) -> None:
        self.observe(handout, KEEP, numbers, ACTIVE)

    @rule(handout=leases, op=st.sampled_from([KEEP, RELEASE, DROP, REST]), numbers=numbers, state=st.sampled_from([RETIRED, DONE]))
    def end(self, handout: Handout, op: int, numbers: tuple[float, float, float, float], state: int) -> None:
        self.observe(handout, op, numbers, state)

    def observe(self, handout: Handout, op: int, numbers: tuple[float, float, float, float], state: int) -> None:
        k, model, space = handout.partition, self.models[handout.partition], self.space
        now = self.now(k)
        page = model.end(handout.page, handout.token)
        a, s, e, longest = numbers
        fields = {"state": state} if op == REST else {}
        seen = space.observation(handout, a, s, op=op, e=e, longest=longest, b=now, **fields)
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
                assert space.score(handout.page, k) == pytest.approx(page.due(space.state(k).log_price), abs=3.0)

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
        row = (page.row if page else Row())._replace(a=a, s=s, e=e, l=longest, state=state, b=b or self.now(k))
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

    @rule(target=fences, k=st.integers(0, PARTITIONS - 1), owner=st.sampled_from("xy"), is_release=st.booleans())
    def lock(self, k: int, owner: str, is_release: bool):  # type: ignore[no-untyped-def]
        """A planner takes the lock, or renews it; or it gives it back, or dies so that it runs out."""
        model = self.models[k]
        if is_release:
            assert self.space.call("take_planner_lock", owner, 0, k=k) == int(model.planner == owner)
            model.planner = "" if model.planner == owner else model.planner
            return multiple()
        fence = int(self.space.call("take_planner_lock", owner, 10_000_000, k=k))
        assert fence == model.lock(owner, self.space.at)
        return (k, fence) if fence else multiple()

    @rule(held=fences, which=st.integers(0, 7), numbers=numbers, is_stale=st.booleans())
    def plan(self, held: tuple[int, int], which: int, numbers: tuple[float, float, float, float], is_stale: bool) -> None:
        """By a planner that may have slept since it took the lock: another one may have planned, or the server have lost something."""
        (k, fence), mine = held, [name for name in NAMES if partition_of(name) == held[0]]
        key = page_of(mine[which % len(mine)])
        page = self.models[k].pages.get(key)
        b = (page.row.b if page else 0.0) + is_stale
        told = self.space.write_plan(fence, (key, b, numbers), k=k)
        is_late = fence != self.models[k].fence
        assert told == (-1 if is_late else int(page is not None and page.where is Where.QUEUED and not is_stale))
        if told > 0:
            assert page is not None
            a, s, e, longest = numbers
            page.row, page.released = page.row._replace(a=a, s=s, e=e, l=longest), False

    @rule(held=fences, log_price=st.sampled_from([-3.0, 0.0, 2.0]))
    def publish(self, held: tuple[int, int], log_price: float) -> None:
        """A plan, and what was learned of clocks; a planner that slept publishes nothing."""
        k, fence = held
        before, clocks = self.space.state(k), ["HGETALL", self.space.key("clocks", k)]
        (known,) = self.space.commands([clocks], partition=k)
        told = self.space.publish(fence, repr(log_price), 0.01, k=k)
        stored = self.space.call("store_clocks", fence, msgpack.packb([]), "last", "1-0", b"x" * 8, uuid.uuid4().bytes, k=k)
        (after,) = self.space.commands([clocks], partition=k)
        if fence != self.models[k].fence:
            assert (told, stored, self.space.state(k), after) == (-1, -1, before, known)
        else:
            assert self.space.state(k) == before._replace(log_price=log_price, step=0.01, plan=before.plan + 1)
            assert (told, stored, after != known) == (before.plan + 1, 1, True)

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name: str) -> None:
        k = partition_of(name)
        assert self.space.call("forget", page_of(name), k=k) == [int(self.models[k].forget(page_of(name)))]

    @rule(host=st.sampled_from(HOSTS), seconds=st.sampled_from([0.5, 3.0, 30.0]))
    def hold(self, host: str, seconds: float) -> None:
        k = partition_of(host)
        if self.space.hold(host, seconds, k=k):
            free = self.models[k].free_at
            free[host] = max(free.get(host, 0.0), self.now(k) + seconds * 1e6)
        else:
            assert not self.models[k].known_of(host)

    @rule(target=turns, host=st.sampled_from(HOSTS))
    def take_turn(self, host: str) -> tuple[str, float]:
        k = partition_of(host)
        wait, awaited = self.space.run(turns_calls(k, 2.0, AWAITED_S, [host]))[0]
        expected = self.models[k].take_turn(host, self.now(k), 2e6, AWAITED_S * 1e6)
        assert (wait, awaited) == (pytest.approx(expected[0], abs=1.0), pytest.approx(expected[1], abs=1.0))
        return host, float(awaited)

    @rule(turn=st.one_of(turns, leases), is_never=st.booleans())
    def start(self, turn: tuple[str, float] | Handout, is_never: bool) -> None:
        """However late: a turn that somebody has taken since is left alone."""
        host, named = (turn.host, (turn.at + AWAITED_S) * 1e6) if isinstance(turn, Handout) else turn
        k = partition_of(host)
        before, began = self.turns_of(host), 0.0 if is_never else self.now(k)
        self.space.run(starts_calls(k, 2.0, [(host, began / 1e6, named)]))
        after = self.turns_of(host)
        if before is None:
            assert after is None
            return
        self.models[k].start(host, began, 2e6, named)
        assert after is not None
        assert after.awaited == (0.0 if abs(before.awaited - named) <= 2 else before.awaited)

    def turns_of(self, host: str) -> HostTurns | None:
        k = partition_of(host)
        number = self.space.command("HGET", self.space.key("hosts", k), host, partition=k)
        key = self.space.key("opens", k)
        return None if number is None else HostTurns.stored(self.space.command("HGET", key, host_bytes(int(number)), partition=k))

    @rule(handout=leases, to=st.sampled_from(NAMES), numbers=numbers)
    def move(self, handout: Handout, to: str, numbers: tuple[float, float, float, float]) -> None:
        """A page moves, to another partition as a rule; however late, nothing but its own lease ends."""
        k, there, key = handout.partition, partition_of(to), page_of(to)
        if key == handout.page or handout.row.state != ACTIVE:
            return
        a, s, e, longest = numbers
        row = handout.row._replace(b=self.now(k), a=a, s=s, e=e, l=longest, visits=handout.row.visits + 1)
        known, is_waiting = self.models[there].pages.get(key), False
        if known is not None:
            is_waiting = known.where is Where.FIRST and known.row.state == ACTIVE
        tail = pack_tail(handout.stated, pack_record({"url": f"http://{to}"}, to[0]))
        told = self.space.call("adopt", key, to[0], row.pack(), tail, b"", k=there)
        assert (told == 1) == (known is None or is_waiting)
        if told == 1:
            self.models[there].adopt(key, to, as_stored(row._replace(host=0)), handout.stated)
        alias = there.to_bytes(4, "little") + key + b"http://before"
        (ended,) = self.space.run([become_alias_call(Observation(handout, KEEP, row), handout.token, alias, {})])
        assert ended == int(self.models[k].become_alias(handout.page, handout.token))

    @rule(k=st.sampled_from([None, *range(PARTITIONS)]), are_scripts_lost=st.booleans())
    def wipe(self, k: int | None, are_scripts_lost: bool) -> None:
        """The server loses everything, or a partition; crawlers find that out by themselves, and make the namespace anew."""
        if k is None:
            self.space.command("FLUSHALL")
        else:
            keys = self.space.command("KEYS", self.space.prefix(k) + "*", partition=k)
            self.space.commands([["DEL", key] for key in keys if not key.endswith((b"clock", b"meta"))], partition=k)
        if are_scripts_lost:
            self.space.command("SCRIPT", "FLUSH")
        self.after_loss([Partition() if k in (None, at) else model for at, model in enumerate(self.models)])

    @rule(target=states)
    def save(self) -> Kept:
        keys = [key for key in self.space.command("KEYS", "*") if not key.endswith((b":clock", b":grace"))]
        dumps = self.space.commands([["DUMP", key] for key in keys])
        return Kept(dict(zip(keys, dumps, strict=True)), deepcopy(self.models))

    @rule(kept=states)
    def restore(self, kept: Kept) -> None:
        """The server goes back to an earlier state, of before a wipe as well."""
        self.space.command("FLUSHALL")
        self.space.commands([["RESTORE", key, 0, value] for key, value in kept.values.items()])
        self.after_loss(deepcopy(kept.models))

    def after_loss(self, models: list[Partition]) -> None:
        self.models = models
        self.space.set_time(self.space.at / 1e6)
        # Tokens of leases are times: no server is lost and back within two microseconds.
        LOCAL[0] += 0.001
        self.space.advance(0.001)
        self.told.clear()

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 21.0, 100.0]))
    def wait(self, seconds: float) -> None:
        LOCAL[0] += seconds
        self.space.advance(seconds)

    @rule(seconds=st.sampled_from([1.0, -1.0, 2.5, -2.5, 30.0, -30.0, 3600.0, -3600.0]))
    def step_clock(self, seconds: float) -> None:
        """Somebody sets the clock of the server, or another machine is the server now."""
        self.space.advance(seconds)
        self.stepped.update(range(PARTITIONS))

    @rule(who=st.sampled_from([0, 1]))
    def start_crawler(self, who: int) -> None:
        """One ends, and another one begins."""
        self.crawlers[who].space.connection.close()
        self.crawlers[who] = Crawler.of(self.name)

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
                self.is_as_stored(key, page, stored[key], (queued, waiting, model.asked_at))
            assert set(queued) | set(waiting) <= set(stored)

    def is_as_stored(self, key: bytes, page: Page, value: bytes, places: tuple[dict[bytes, float], list[bytes], float]) -> None:
        queued, waiting, asked_at = places
        row = Row.unpack(value)
        assert row._replace(host=0, **rank_fields(row)) == page.row
        assert split_tail(value)[0] == page.stated
        assert (key in waiting) == (page.where is Where.FIRST)
        assert (key in queued) == (page.where in (Where.QUEUED, Where.LEASED))
        if page.where is Where.QUEUED:
            assert queued[key] % 2 == 0
        elif page.where is Where.LEASED:
            # One that has run out may be put behind its shut host; it stays odd, and is nobody's.
            assert queued[key] == page.token or (page.token <= asked_at and queued[key] % 2 == 1)
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
        for k in range(PARTITIONS):
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
