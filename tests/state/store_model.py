"""What the scripts of the store promise, in plain Python: one dict of pages, no queues, every choice made by looking at all pages."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from optimal_frontier.scheduling import carry_after_visit, credit_at, deadline, least_wait, memoryless_wait
from optimal_frontier.state.columns import ACTIVE, DONE, FREE, ONCE, RETIRED, TRANSIENT
from optimal_frontier.state.health import is_held

SILENCE_S = 15.0
DAY_S = 86_400.0
ROUND_TRIP_S = 0.02


def rounded(seconds: float) -> float:
    """What is left of a time that a script writes with microseconds."""
    return float(f"{seconds:.6f}")


@dataclass
class Lease:
    token: bytes
    owner: str
    at: float
    due: float
    first: float | None
    expires: float


@dataclass
class Page:
    slot: int
    generation: int = 0
    state: int = FREE
    name: str = ""
    host: str = ""
    importance: float = 0.0
    stated: bool = False
    gap: float = 0.0
    pinned: bool = False
    last_attempt: float = 0.0
    carry: float = 0.0
    settled: float = 0.0
    visits: int = 0
    observations: int = 0
    changes: int = 0
    bits: int = 0
    failures: int = 0
    gone: int = 0
    attempts: int = 0
    rate: float = 0.0
    base_time: float = 0.0
    base_credit: float = 0.0
    #: Score and member in the queue of first visits.
    first: tuple[float, bytes] | None = None
    due: float | None = None
    lease: Lease | None = None
    #: The time before which it had to be queued when that was last decided; None: bounds or rate were changed since.
    limit: float | None = None

    def deadline(self, rate: float | None = None) -> float:
        own_rate = self.rate if rate is None else rate
        if self.gone > 0 or self.visits == 0:
            return self.may_return(own_rate)
        times = (self.carry, self.settled, own_rate, self.base_time, self.base_credit, self.last_attempt, self.gap, self.failures)
        return float(deadline(*times, self.slot))

    def may_return(self, rate: float | None = None) -> float:
        """The time before which it is never fetched again."""
        own_rate = self.rate if rate is None else rate
        return self.last_attempt + float(least_wait(self.gap, self.failures, self.slot, self.gone, own_rate))


@dataclass
class Model:
    now: float
    pages: list[Page] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    #: Former name -> the name that its page has now.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Host -> faded counts of pages seen and of pages found gone; slots retired last, newest first.
    health: dict[str, tuple[float, float]] = field(default_factory=dict)
    retired: dict[str, list[int]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    blocked: dict[str, float] = field(default_factory=dict)
    owners: dict[str, float] = field(default_factory=dict)
    stats: Counter[str] = field(default_factory=Counter)
    arrivals: int = 0
    tokens: float | None = None
    bucket_at: float = 0.0
    discovery: float = 0.0

    def leased(self) -> list[Page]:
        return [page for page in self.pages if page.lease]

    def add(self, name: str, kind: int, importance: float, gap: float, priority: float, pinned: bool = False) -> int:
        if kind != TRANSIENT and name in self.ids:
            if importance > 0:
                known = self.pages[self.ids[name]]
                known.importance, known.stated = importance, True
            if kind == ACTIVE:
                self._revive(self.pages[self.ids[name]])
            return 0
        if self.free:
            page = self.pages[self.free.pop(0)]
        else:
            page = Page(len(self.pages))
            self.pages.append(page)
        host_name = name.partition("/")[0]
        page.host = self.hosts.setdefault(host_name, str(len(self.hosts) + 1))
        page.name, page.state, page.importance, page.gap = name, kind, importance or 1.0, gap
        page.pinned, page.stated = pinned, importance > 0
        if kind != TRANSIENT:
            self.ids[name] = page.slot
        self.stats["pages"] += kind == ACTIVE
        self.stats["pending"] += 1
        self.arrivals += 1
        page.first = (-priority, struct.pack(">ddI", 1 / page.importance, self.arrivals, page.slot))
        return 1

    def _revive(self, page: Page) -> None:
        if page.state == RETIRED and self.now >= page.last_attempt + min(30 * DAY_S, DAY_S * 2 ** (max(2, min(page.failures, 17)) - 2)):
            page.state, page.due = ACTIVE, self.now
            page.last_attempt = self.now - float(least_wait(page.gap, page.failures, page.slot, page.gone, page.rate))
            self.stats["retired"] -= 1
            self.stats["revived"] += 1

    def requeue(self, page: Page) -> None:
        lease, page.lease = page.lease, None
        assert lease is not None
        if lease.first is not None:
            page.first = (lease.first, struct.pack(">ddI", 1 / page.importance, 0, page.slot))
        elif page.state == ACTIVE:
            page.due = lease.due

    def dispatch(
        self,
        owner: str,
        n: int,
        lease_s: float,
        budget: float,
        share: float,
        host_delay: float,
        host_period: float,
        per_host: int,
        groups: Any,
    ) -> tuple[list[tuple[Page, float | None]], float]:
        """Return what is handed out, with its deadline (None: first visit), and the wait; leases are the caller's to write."""
        now = self.now
        self.owners[owner] = now
        for silent in [o for o, at in self.owners.items() if at <= now - SILENCE_S]:
            del self.owners[silent]
            for page in self.leased():
                if page.lease.owner == silent:
                    self.requeue(page)
                    self.stats["leases_expired"] += 1
        for page in self.leased():
            if page.lease.expires <= now:
                self.requeue(page)
                self.stats["leases_expired"] += 1
        late = {host: now - opens for host, opens in self.blocked.items() if opens <= now}
        self.blocked = {host: opens for host, opens in self.blocked.items() if opens > now}
        tokens = math.inf
        if budget > 0:
            tokens = 1.0 if self.tokens is None else min(max(1.0, 0.1 * budget), self.tokens + budget * (now - self.bucket_at))

        group_of = {self.hosts[host]: group for host, group, _ in groups if host in self.hosts}
        room = {group: left for host, group, left in groups if host in self.hosts}

        def visible(page: Page) -> bool:
            return page.host not in self.blocked and room.get(group_of.get(page.host, ""), 1) >= 1

        def most_urgent() -> Page | None:
            there = [p for p in self.pages if p.due is not None and p not in aside and visible(p)]
            # Redis breaks ties by the bytes of members: first of hosts, then of slots.
            return min(there, key=lambda p: (p.due, p.host, str(p.slot)), default=None)

        def first_in_line() -> Page | None:
            return min((p for p in self.pages if p.first and visible(p)), key=lambda p: (*p.first, p.host), default=None)

        out: list[tuple[Page, float | None]] = []
        aside: list[Page] = []
        while len(out) < n and tokens >= 1:
            page, first = most_urgent(), first_in_line()
            if page and page.due > now and (budget > 0 or first):
                page = None
            if page and first:
                self.discovery = min(1 + share, self.discovery + share)
            if first and (page is None or self.discovery >= 1):
                self.discovery -= page is not None
                chosen, due = first, None
            elif page is None:
                break
            else:
                due = page.due
                if page.base_time > 0 or page.visits == 0 or page.gone > 0:
                    due = page.deadline()
                if budget > 0 and due > now:
                    page.due = due if due < 1e300 else None
                    continue
                if budget == 0 and due > now and page.may_return() > now:
                    page.due = due
                    aside.append(page)
                    continue
                chosen = page
            out.append((chosen, due))
            score = chosen.first[0] if chosen.first else None
            chosen.first = chosen.due = None
            expires = rounded(now + lease_s)
            chosen.lease = Lease(b"", owner, rounded(now), now if due is None else due, score, expires)
            tokens -= 1
            pause = max(host_delay, host_period - min(host_period, late.pop(chosen.host, 0.0), ROUND_TRIP_S))
            if pause > 0:
                self.blocked[chosen.host] = rounded(now + pause)
            if per_host > 0:
                group = group_of.setdefault(chosen.host, f"host {chosen.host}")
                room[group] = room.get(group, per_host) - 1
        self.stats["dispatched"] += len(out)

        wait = math.inf
        page, first = most_urgent(), first_in_line()
        if page:
            wait = max(0.0, page.due - now) if budget > 0 else 0.0
        if first:
            wait = 0.0
        wait = min([wait, *(p.may_return() - now for p in aside if visible(p) or p.host in self.blocked)])
        if budget > 0:
            self.tokens, self.bucket_at = tokens, rounded(now)
            if tokens < 1:
                wait = max(wait, (1 - tokens) / budget)
        wait = min([wait, *(max(0.0, opens - now) for opens in self.blocked.values())])
        wait = min([wait, *(max(0.001, p.lease.expires - now) for p in self.leased())])
        if len(self.owners) > 1:
            wait = min(wait, SILENCE_S)
        return out, -1.0 if wait == math.inf else wait

    def observe(self, page: Page, token: bytes, outcome: str, bit: int, rate: float, horizon: float, policy: str = "periodic") -> int:
        if page.lease is None or page.lease.token != token:
            self.stats["observations_refused"] += 1
            return 0
        if outcome == "released":
            self.requeue(page)
            self.stats["leases_released"] += 1
            return 1
        lease, page.lease = page.lease, None
        self.stats["pending"] -= page.attempts == 0
        if page.state == TRANSIENT:
            self.clear(page)
            return 1
        page.attempts = max(page.attempts, page.visits) + 1
        if page.state == ONCE:
            page.state = DONE
            return 1
        never = page.visits == 0
        speed = page.rate if page.base_time > 0 else rate
        left = float(carry_after_visit(credit_at(lease.at, page.carry, page.settled, speed, page.base_time, page.base_credit)))
        page.carry = 0.0 if never else left + speed * (self.now - lease.at)
        page.settled, page.last_attempt = self.now, lease.at
        if policy == "poisson" and not page.pinned:
            page.carry += 1 - memoryless_wait(page.slot, page.generation, page.attempts)
        if outcome == "ok":
            page.visits, page.failures, page.gone = page.visits + 1, 0, 0
            self._note_health(page.host, 1, 0)
            self.stats["visits"] += 1
            self.stats["fetched"] += never
            if bit >= 0:
                page.observations, page.changes = page.observations + 1, page.changes + bit
                page.bits = (page.bits * 2 + bit) % 2**32
                self.stats["observations"] += 1
                self.stats["changes"] += bit
        else:
            page.failures = max(page.failures + 1, 12) if outcome == "refused" else page.failures + 1
            if outcome == "gone":
                self._judge_gone(page)
            else:
                page.gone = 0
            self.stats["failures"] += 1
            self.stats[f"failures_{outcome}"] += 1
        page.limit = self.now + horizon
        if page.state == ACTIVE:
            due = page.deadline(speed)
            if due < 1e300 and (due <= page.limit or page.visits == 0 or page.gone > 0):
                page.due = due
        return 1

    def _is_held(self, host: str) -> bool:
        return host in self.health and is_held(*self.health[host])

    def _note_health(self, host: str, good: int, gone: int) -> None:
        if host not in self.health and not gone:
            return
        before = self.health.pop(host, (5.0, 0.0))
        after = (before[0] * 0.9 + good, before[1] * 0.9 + gone)
        if after[1] < 0.05:
            self.retired.pop(host, None)
        else:
            self.health[host] = (float(f"{after[0]:.6g}"), float(f"{after[1]:.6g}"))

    def _judge_gone(self, page: Page) -> None:
        page.gone += 1
        if page.visits > 0:
            was_held = self._is_held(page.host)
            if page.gone == 1:
                self._note_health(page.host, 0, 1)
            if self._is_held(page.host) and page.failures < 22:
                page.failures = max(page.failures, 9)
                self.stats["gone_held"] += 1
                if not was_held:
                    self._bring_back(page.host)
                return
        if page.gone > 1 and page.state == ACTIVE:
            page.state = RETIRED
            self.stats["retired"] += 1
            if page.visits > 0:
                self.retired[page.host] = [page.slot, *self.retired.get(page.host, [])][:32]

    def _bring_back(self, host: str) -> None:
        for slot in self.retired.pop(host, []):
            page = self.pages[slot]
            if page.state == RETIRED and page.host == host and self.now - page.last_attempt <= DAY_S:
                page.state, page.failures = ACTIVE, max(page.failures, 9)
                page.due = page.may_return()
                self.stats["retired"] -= 1
                self.stats["gone_held"] += 1

    def clear(self, page: Page) -> None:
        self.pages[page.slot] = Page(page.slot, page.generation + 1)
        self.free.append(page.slot)

    def forget(self, name: str) -> int:
        if name not in self.ids:
            return 0
        page = self.pages[self.ids.pop(self.aliases.get(name, name))]
        for alias in [alias for alias, main in self.aliases.items() if main == self.aliases.get(name, name)]:
            del self.ids[alias], self.aliases[alias]
        self.stats["pending"] -= page.attempts == 0
        self.stats["pages"] -= page.state in (ACTIVE, RETIRED)
        self.stats["retired"] -= page.state == RETIRED
        self.stats["fetched"] -= page.visits > 0
        self.clear(page)
        return 1

    def move(self, name: str, target: str, importance: float, gap: float) -> int:
        """The target is what `new_page` makes of these: nothing stated, no pinned rate."""
        if name == target or name not in self.ids or name in self.aliases:
            return 0
        page = self.pages[self.ids[name]]
        if page.state != ACTIVE or (page.attempts == 0 and not page.lease):
            return 0
        if self.ids.get(target, page.slot) == page.slot:
            self.aliases.pop(target, None)
            self._rename(name, target)
            self.ids[target] = page.slot
            page.host = self.hosts.setdefault(target.partition("/")[0], str(len(self.hosts) + 1))
            page.importance = page.importance if page.stated else importance or page.importance
            page.name, page.gap, page.pinned, page.limit = target, gap, False, None
            self.stats["moved"] += 1
            return 1
        target = self.aliases.get(target, target)
        other = self.pages[self.ids[target]]
        if other.state not in (ACTIVE, RETIRED):
            return 0
        other.stated |= page.stated
        other.importance = max(other.importance, page.importance)
        if other.state == RETIRED:
            other.state, other.carry, other.settled, other.failures, other.gone = ACTIVE, 1.0, self.now, 0, 0
            other.last_attempt = other.last_attempt if other.visits else 0.0
            other.due = rounded(max(self.now, other.last_attempt + other.gap))
            self.stats["retired"] -= 1
        if other.visits == 0 and page.visits > 0 and not other.lease:
            other.visits, other.observations, other.changes, other.bits = page.visits, page.observations, page.changes, page.bits
            self.stats["fetched"] += 1
        self._rename(name, target)
        self.stats["pages"] -= 1
        self.stats["pending"] -= page.attempts == 0
        self.stats["fetched"] -= page.visits > 0
        self.stats["merged"] += 1
        self.clear(page)
        return 2

    def _rename(self, name: str, target: str) -> None:
        """``name`` and all that was called so lead to ``target``."""
        self.aliases[name] = target
        for alias, main in self.aliases.items():
            if main == name:
                self.aliases[alias] = target
        for alias, main in self.aliases.items():
            if main == target and target in self.ids:
                self.ids[alias] = self.ids[target]

    def force(self, name: str) -> int:
        if name not in self.ids:
            return 0
        page = self.pages[self.ids[name]]
        if page.lease or page.attempts == 0 or page.state == DONE:
            return 2
        if page.state == RETIRED:
            page.state = ACTIVE
            self.stats["retired"] -= 1
        page.carry, page.settled, page.failures, page.gone = 1.0, self.now, 0, 0
        if page.visits == 0:
            page.last_attempt = 0.0
        page.due = rounded(max(self.now, page.last_attempt + page.gap))
        return 1

    def leave(self, owner: str) -> int:
        held = [page for page in self.leased() if page.lease.owner == owner]
        for page in held:
            self.requeue(page)
        self.owners.pop(owner, None)
        return len(held)

    def set_bounds(self, page: Page, importance: float, gap: float, kind: int) -> int:
        if page.state != ACTIVE:
            return 0
        page.importance = page.importance if page.stated else importance or page.importance
        page.gap, page.limit = gap, None
        page.pinned = False
        if kind == ONCE:
            self.stats["pages"] -= 1
            page.state = DONE if page.attempts else ONCE
            if page.state == DONE:
                page.due = None
        return 1

    def queue_due(self, page: Page, generation: int, horizon: float) -> int:
        if page.state != ACTIVE or page.generation != generation or page.lease or page.visits == 0 or page.attempts == 0:
            return 0
        due, page.limit = page.deadline(), self.now + horizon
        page.due = due if due <= page.limit else None
        return int(page.due is not None)
