"""The Lua store against a plain Python model of it, over long random histories with many owners."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page, open_store
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from store_model import Model

from optimal_frontier.state.columns import ACTIVE, DONE, FREE, ONCE, PLAN, RETIRED, TRANSIENT
from optimal_frontier.state.records import Move, Observation

NAMES = st.sampled_from([f"{host}/{page}" for host in ("a", "b", "c") for page in range(4)])
OWNERS = st.sampled_from(["one", "two"])
GAPS = st.sampled_from([0.0, 1.0, 5.0])
RATES = st.sampled_from([0.0, 0.001, 0.05, 0.3, 2.0])
#: Long histories of 60 steps; some ten seconds in all.
EXAMPLES = 100
COUNTERS = (
    "pages",
    "pending",
    "fetched",
    "retired",
    "revived",
    "gone_held",
    "moved",
    "merged",
    "observations",
    "changes",
    "visits",
    "failures",
    "dispatched",
)
COUNTERS += ("leases_expired",)


class Machine(RuleBasedStateMachine):
    """Each rule does one thing to store and model; after it all that is stored is compared."""

    socket: str
    serial = 0

    @initialize(auto=st.booleans())
    def begin(self, auto: bool) -> None:
        type(self).serial += 1
        self.store: ClockedStore = open_store(self.socket, f"model-{self.serial}")
        self.model = Model(START)
        self.horizon = 1e15 if auto else 30.0
        self.budgets = (0.0,) if auto else (0.5, 3.0, 40.0)
        self.budget = self.budgets[0]
        self.tokens: list[tuple[int, bytes]] = []
        self.counted: set[bytes] = set()
        self.plan: dict[str, Any] | None = None
        self.fence = b"0"
        for page in range(4):
            for host in "ab":
                self.add(f"{host}/{page}", ACTIVE, 0.0, 0.0, 0.0, pinned=False)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.connection.close()

    @rule(seconds=st.sampled_from([0.001, 0.2, 1.0, 4.0, 16.0, 90.0, 2e5]))
    def pass_time(self, seconds: float) -> None:
        self.model.now = self.store.set_time(self.model.now + seconds)

    @rule(
        name=NAMES,
        kind=st.sampled_from([ACTIVE, ACTIVE, ACTIVE, ONCE, TRANSIENT]),
        importance=st.sampled_from([0.0, 1.0, 2.5]),
        gap=GAPS,
        priority=st.sampled_from([0.0, 10.0, -3.0]),
        pinned=st.sampled_from([False, False, True]),
    )
    def add(self, name: str, kind: int, importance: float, gap: float, priority: float, pinned: bool) -> None:
        bounds = {"min_rate": 0.5, "max_rate": 0.5} if pinned else {}
        page = new_page(name, kind=kind, importance=importance, gap=gap, priority=priority, **bounds)
        assert self.store.add(page) == [self.model.add(name, kind, importance, gap, priority, pinned)]

    @rule(
        owner=OWNERS,
        n=st.integers(1, 5),
        lease_s=st.sampled_from([2.0, 60.0]),
        budget=st.integers(0, 2),
        share=st.sampled_from([0.0, 0.2, 0.5]),
        host_delay=st.sampled_from([0.0, 0.0, 1.5]),
        host_period=st.sampled_from([0.0, 0.0, 0.01, 0.7, 4.0]),
        per_host=st.sampled_from([0, 0, 1, 2]),
        groups=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=3, unique_by=lambda pair: pair[0]),
        rooms=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    )
    def dispatch(self, owner, n, lease_s, budget, share, host_delay, host_period, per_host, groups, rooms) -> None:
        self.budget = self.budgets[budget % len(self.budgets)]
        limits = tuple((host, group, rooms["xy".index(group)]) for host, group in groups)
        expected, wait = self.model.dispatch(owner, n, lease_s, self.budget, share, host_delay, host_period, per_host, limits)
        handouts, waited = self.store.dispatch(
            n,
            owner=owner,
            lease_s=lease_s,
            budget=self.budget,
            share=share,
            host_delay=host_delay,
            host_period=host_period,
            per_host=per_host,
            groups=limits,
        )
        assert [handout.slot for handout in handouts] == [page.slot for page, _ in expected]
        for handout, (page, due) in zip(handouts, expected, strict=True):
            assert page.lease is not None
            page.lease.token = handout.token
            self.tokens.append((page.slot, handout.token))
            lateness = None if due is None else max(0.0, self.model.now - due)
            assert handout.lateness == (None if lateness is None else pytest.approx(lateness, abs=1e-5))
            assert (handout.visits, handout.attempts, handout.kind) == (page.visits, page.attempts, page.state)
        assert len({token for _, token in self.tokens}) == len(self.tokens)
        assert waited == pytest.approx(wait, rel=1e-9, abs=1e-5)

    @precondition(lambda self: self.tokens)
    @rule(
        which=st.integers(0, 10**6),
        late=st.sampled_from([False, False, False, True]),
        outcome=st.sampled_from(["ok", "ok", "ok", "ok", "failed", "refused", "gone", "gone", "gone", "released"]),
        bit=st.sampled_from([-1, 0, 1]),
        rate=RATES,
        twice=st.booleans(),
        seconds=st.sampled_from([0.0, 0.0, 0.3, 1.7]),
        policy=st.sampled_from(["periodic", "poisson"]),
    )
    def observe(self, which: int, late: bool, outcome: str, bit: int, rate: float, twice: bool, seconds: float, policy: str) -> None:
        """Of any token that there ever was; most often of one that still holds."""
        self.pass_time(seconds)
        live = [(page.slot, page.lease.token) for page in self.model.leased() if page.lease]
        choice = self.tokens if late or not live else live
        slot, token = choice[which % len(choice)]
        observation = Observation(slot, token, outcome, float("inf"), bit, 1.0, 1.0, b"", rate)
        calls = self.store.observe_calls([observation] * (1 + twice), self.horizon, policy)
        page = self.model.pages[slot]
        expected = [self.model.observe(page, token, outcome, bit, rate, self.horizon, policy) for _ in range(1 + twice)]
        counted = self.store.run(calls)[0]
        assert counted == expected
        if sum(counted) and outcome != "released":
            assert token not in self.counted, "an observation was counted twice"
            assert sum(counted) == 1
            self.counted.add(token)

    @rule(owner=OWNERS, lease_s=st.sampled_from([2.0, 60.0]))
    def renew(self, owner: str, lease_s: float) -> None:
        """An owner gives a sign of life; tokens that no longer hold are ignored."""
        arguments = [value for pair in self.tokens[-20:] for value in pair]
        renewed = self.store.run([("renew_leases", [owner, repr(lease_s), *arguments])])[0]
        held = [page for page in self.model.leased() if (page.slot, page.lease.token) in self.tokens[-20:]]
        for page in held:
            page.lease.expires = float(f"{self.model.now + lease_s:.6f}")
        self.model.owners[owner] = self.model.now
        assert renewed == len(held)

    @rule(owner=OWNERS)
    def leave(self, owner: str) -> None:
        assert self.store.run([("leave", [owner])])[0] == self.model.leave(owner)

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        assert self.store.run([("forget_page", [fingerprint(name)])])[0] == self.model.forget(name)

    @rule(name=NAMES, onto=NAMES, importance=st.sampled_from([0.0, 3.0]), gap=GAPS)
    def move(self, name: str, onto: str, importance: float, gap: float) -> None:
        """Also of pages in flight, to pages in flight, and back."""
        move = Move(fingerprint(name), f"http://{name}", new_page(onto, importance=importance, gap=gap, is_stated=False))
        assert self.store.run(self.store.move_calls([move])) == [self.model.move(name, onto, importance, gap)]

    @rule(name=NAMES)
    def force(self, name: str) -> None:
        assert self.store.run([("force_page", [fingerprint(name)])])[0] == self.model.force(name)

    @rule(fetches=st.integers(1, 4), budget=st.integers(0, 2))
    def draw(self, fetches: int, budget: int) -> None:
        rate = self.budgets[budget % len(self.budgets)]
        wait = float(self.store.run([("draw_tokens", [repr(rate), fetches])])[0])
        if rate == 0:
            assert wait == 0
            return
        had = 1.0 if self.model.tokens is None else self.model.tokens + rate * (self.model.now - self.model.bucket_at)
        self.model.tokens, self.model.bucket_at = min(max(1.0, 0.1 * rate), had) - fetches, self.model.now
        assert wait == pytest.approx(max(0.0, -self.model.tokens / rate))

    @rule(name=NAMES, importance=st.sampled_from([0.0, 4.0]), gap=GAPS, kind=st.sampled_from([ACTIVE, ACTIVE, ONCE]))
    def change_bounds(self, name: str, importance: float, gap: float, kind: int) -> None:
        slot = self.model.ids.get(name)
        if slot is not None:
            page = self.model.pages[slot]
            arguments = [slot, page.generation, importance, 0, 10, gap, kind, ""]
            assert self.store.run([("set_bounds", arguments)])[0] == self.model.set_bounds(page, importance, gap, kind)

    # A plan takes time: anything may happen between its three steps.

    @rule(rates=st.lists(RATES, min_size=12, max_size=12), fresh=st.booleans())
    def plan_reads(self, rates: list[float], fresh: bool) -> None:
        """A planner takes the lock (``fresh``: from another, whose fence is then worth nothing) and computes."""
        if fresh:
            self.store.command("DEL", self.store.key("planner"))
        self.fence = self.store.run([("take_planner_lock", ["planner", 10**7])])[0]
        rows = np.zeros(len(self.model.pages), PLAN)
        chosen = [page for page in self.model.pages if page.state == ACTIVE and page.visits > 0]
        for page in chosen:
            rate = rates[page.slot % 12]
            first = page.carry + rate * (self.model.now - page.settled)
            earned = page.base_credit + page.rate * (self.model.now - page.base_time)
            if page.base_time <= page.settled:
                earned = page.carry + page.rate * (self.model.now - page.settled)
            rows[page.slot] = (rate, self.model.now, earned if page.base_time > 0 else first)
        pairs = [(page.slot, page.generation) for page in chosen]
        self.plan = {"fence": self.fence, "rows": rows, "pairs": pairs, "written": False}

    @precondition(lambda self: self.plan)
    @rule()
    def plan_writes(self) -> None:
        plan, valid = self.plan, self.plan["fence"] == self.fence
        assert self.store.run([("write_plan", [plan["fence"], "plan", 0, 0, plan["rows"].tobytes()])])[0] == valid
        if valid:
            plan["written"] = True
            for slot, row in enumerate(plan["rows"]):
                page = self.model.pages[slot]
                page.rate, page.base_time, page.base_credit = map(float, row)
                page.limit = None

    @precondition(lambda self: self.plan and (self.plan["written"] or self.plan["fence"] != self.fence))
    @rule()
    def plan_queues(self) -> None:
        plan, valid = self.plan, self.plan["fence"] == self.fence
        packed = np.array(plan["pairs"], "<u4").tobytes()
        queued = self.store.run([("queue_due", [plan["fence"], repr(self.horizon), packed])])[0]
        if valid:
            expected = sum(self.model.queue_due(self.model.pages[slot], generation, self.horizon) for slot, generation in plan["pairs"])
            assert queued == expected
        else:
            assert queued == -1
        self.plan = None

    @precondition(lambda self: self.plan)
    @rule()
    def plan_is_overtaken(self) -> None:
        """The planner's lock ran out, and another planner took it."""
        self.store.command("DEL", self.store.key("planner"))
        self.fence = self.store.run([("take_planner_lock", ["another", 10**7])])[0]
        self.store.run([("release_planner_lock", ["another"])])

    # What must hold after every step.

    @invariant()
    def what_is_stored_is_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        store, model = self.store, self.model
        hosts = [*model.hosts.values()]
        names = ["ids", "aliases", "health", "leases", "stats", "bucket", "hosts:firsthead", "hosts", "hosts:pages"]
        zsets = ["leases:expiry", "owners", "hosts:due", "hosts:first", "hosts:blocked"]
        per_host = [f"{kind}:{host}" for host in hosts for kind in ("due", "first")]
        rows = [["HGETALL", store.key(name)] for name in names]
        rows += [["ZRANGE", store.key(name), 0, -1, "WITHSCORES"] for name in zsets + per_host]
        rows += [["LRANGE", store.key("free"), 0, -1], ["HGET", store.key("meta"), "clock"], ["HKEYS", store.key("records")]]
        rows += [["SMEMBERS", store.key(f"owner:{owner}")] for owner in ("one", "two")]
        replies = store.commands(rows)
        hashes = dict(zip(names, (as_dict(reply) for reply in replies), strict=False))
        sets = dict(zip(zsets + per_host, (as_scores(reply) for reply in replies[len(names) :]), strict=False))
        free, clock, records, held_one, held_two = replies[-5:]

        assert float(clock) == model.now
        assert {id_: int(slot) for id_, slot in hashes["ids"].items()} == {fingerprint(name): slot for name, slot in model.ids.items()}
        assert hashes["aliases"] == {
            fingerprint(alias): fingerprint(main) + f"http://{alias}".encode() for alias, main in model.aliases.items()
        }
        assert {host.decode(): tuple(map(float, text.split())) for host, text in hashes["health"].items()} == model.health
        assert [int(slot) for slot in free] == model.free
        leases = {b"%d" % page.slot: page.lease for page in model.leased()}
        assert {slot: text.split(b" ")[:2] for slot, text in hashes["leases"].items()} == {
            slot: [lease.token, lease.owner.encode()] for slot, lease in leases.items()
        }
        assert sets["leases:expiry"] == {slot: lease.expires for slot, lease in leases.items()}
        for owner, held in (("one", held_one), ("two", held_two)):
            assert set(held) == {slot for slot, lease in leases.items() if lease.owner == owner}
        assert sets["owners"] == {owner.encode(): at for owner, at in model.owners.items()}
        assert sets["hosts:blocked"] == {host.encode(): at for host, at in model.blocked.items()}
        # Queues, and of every open host its heads and nothing else.
        heads_due, heads_first, members = {}, {}, {}
        for host in hosts:
            own = [page for page in model.pages if page.host == host]
            due = {b"%d" % page.slot: page.due for page in own if page.due is not None}
            first = {page.first[1]: page.first[0] for page in own if page.first}
            assert sets[f"due:{host}"] == pytest.approx(due, rel=1e-12)
            assert sets[f"first:{host}"] == first
            if host not in model.blocked:
                if due:
                    heads_due[host.encode()] = min(sets[f"due:{host}"].values())
                if first:
                    head = min(first, key=lambda member, first=first: (first[member], member))
                    heads_first[head + host.encode()], members[host.encode()] = first[head], head
        assert sets["hosts:due"] == heads_due
        assert sets["hosts:first"] == heads_first
        assert hashes["hosts:firsthead"] == members
        # Counters, and the same numbers recounted.
        counts = {name.decode(): int(value) for name, value in hashes["stats"].items()}
        for name in COUNTERS:
            assert counts.get(name, 0) == model.stats[name], name
        used = [page for page in model.pages if page.name]
        assert counts.get("pages", 0) == sum(page.state in (ACTIVE, RETIRED) for page in used)
        assert counts.get("pending", 0) == sum(page.attempts == 0 and page.state in (ACTIVE, ONCE, TRANSIENT) for page in used)
        assert counts.get("fetched", 0) == sum(page.visits > 0 for page in used)
        assert counts.get("retired", 0) == sum(page.state == RETIRED for page in used)
        kept = Counter(page.host for page in used if page.state not in (FREE, TRANSIENT))
        assert {host.decode(): int(pages) for host, pages in hashes["hosts:pages"].items() if int(pages)} == kept
        assert {int(slot) for slot in records} >= {page.slot for page in used if page.state != DONE}
        # Columns.
        page, seen, plan = store.columns("page", "seen", "plan")
        for p in model.pages:
            assert page[p.slot][["importance", "gap", "generation", "state"]].item() == (p.importance, p.gap, p.generation, p.state)
            row = (p.last_attempt, p.visits, p.observations, p.changes, p.bits, p.failures, p.gone, p.attempts, p.settled)
            fields = ["last_attempt", "visits", "observations", "changes", "bits", "failures", "gone", "attempts", "settled"]
            assert tuple(seen[p.slot][fields].item()) == row
            assert seen["carry"][p.slot] == pytest.approx(p.carry, rel=1e-12, abs=1e-12)
            assert plan[p.slot].item() == (p.rate, p.base_time, p.base_credit)

    @invariant()
    def no_page_is_lost(self) -> None:
        """Wherever a page stands, something will bring it back."""
        for page in self.model.pages if hasattr(self, "model") else ():
            there = page.lease is not None or page.first is not None or page.due is not None
            assert not (page.lease and (page.first or page.due is not None)), "leased and queued"
            if page.state in (ONCE, TRANSIENT):
                assert there
            if page.state == ACTIVE and not there:
                assert page.visits > 0
                assert page.gone == 0
                assert page.limit is None or page.deadline() > page.limit

    @invariant()
    def the_bucket_never_holds_more_than_its_depth(self) -> None:
        if hasattr(self, "store"):
            tokens = self.store.command("HGET", self.store.key("bucket"), "tokens")
            assert float(tokens or 0) <= max(1.0, 0.1 * max(self.budgets))
            if tokens is not None:
                assert float(tokens) == pytest.approx(self.model.tokens, abs=1e-9)


def as_dict(reply: list[bytes]) -> dict[bytes, bytes]:
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def as_scores(reply: list[Any]) -> dict[bytes, float]:
    pairs = reply if reply and isinstance(reply[0], tuple) else zip(reply[::2], reply[1::2], strict=True)
    return {member: float(score) for member, score in pairs}


def test_the_scripts_do_what_the_model_does(redis_socket: str):
    """Any order of calls by two owners and a planner: no page lost, none counted twice, queues, heads, columns and counters right."""
    machine = type("BoundMachine", (Machine,), {"socket": redis_socket})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
