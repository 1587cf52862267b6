"""What a partition promises, in plain Python: where each page is, who holds it, and what is counted. No queues, no scores, no packing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.state.layouts import BELIEVED_S, REMEMBERED_S
from optimal_frontier.state.rows import ACTIVE, RETIRED, TRANSIENT, Row
from optimal_frontier.state.scripts import LONGEST_TURN_S


class Where(Enum):
    """Where a page is; of `LEASED` the token is known."""

    FIRST = "waits for its first visit"
    QUEUED = "queued by its numbers"
    LEASED = "under way"
    IDLE = "in no queue"


@dataclass
class Page:
    name: str
    row: Row
    stated: float
    where: Where = Where.FIRST
    token: float = 0.0
    #: A release made it due at once, whatever its numbers say.
    released: bool = False

    @property
    def host(self) -> str:
        return self.name.partition("/")[0]

    def is_eligible(self, now: float, log_price: float, is_spared: bool = False) -> bool:
        """Whether it may be handed out, if its host is open."""
        if self.where is Where.LEASED:
            return self.token <= now and not is_spared
        return self.where is Where.FIRST or (self.where is Where.QUEUED and self.row.b + self.row.e * 1e6 <= now)

    def due(self, log_price: float) -> float:
        """When it is due, microseconds."""
        return deadline(self.row.b, Numbers(self.row.a * 1e6, self.row.s * 1e6, self.row.e * 1e6, self.row.l * 1e6), log_price)


@dataclass
class Partition:
    """The model; times in microseconds as in rows."""

    pages: dict[bytes, Page] = field(default_factory=dict)
    #: When a host is free again, and until when the start of a fetch of it is awaited.
    free_at: dict[str, float] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)
    #: Names that pages had before they moved.
    aliases: set[bytes] = field(default_factory=set)
    tokens: float = 1.0
    asked_at: float = 0.0
    #: What the server's own clock said then.
    clock: float = 0.0
    #: Calls of crawlers that said which run they are of, and what the last one said that had just read it.
    dispatches: int = 0
    run: float = 0.0
    #: The planner that holds the lock, and the token that it was given last.
    planner: str = ""
    fence: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, key: bytes, name: str, row: Row, stated: float) -> int:
        self.count("arrivals", 0)
        known = self.pages.get(key)
        if known is not None:
            if stated and stated != known.stated:
                known.stated = stated
                return 2
            return 0
        if key in self.aliases:
            return 0
        self.pages[key] = Page(name, row, stated)
        self.count("pending")
        if row.state == ACTIVE:
            self.count("pages")
        return 1

    def adopt(self, key: bytes, name: str, row: Row, stated: float) -> None:
        """Take in a page that arrives by a move, in place of one that waits for its first visit."""
        known = self.pages.get(key)
        if known is not None:
            self.count("pending", -1)
            self.note(known.row, -1)
        self.aliases.discard(key)
        self.pages[key] = Page(name, row, stated, Where.QUEUED)
        self.note(row, 1)

    def become_alias(self, key: bytes, token: float) -> bool:
        """End a lease, as the page has moved; False where it is not this token's any more."""
        page = self.pages.get(key)
        if page is None or page.where is not Where.LEASED or page.token != token:
            return False
        del self.pages[key]
        self.aliases.add(key)
        self.count("ended")
        self.note(page.row, -1)
        return True

    def refill(self, now: float, budget: float) -> None:
        self.asked_at = self.asked_at or now
        if budget > 0:
            self.tokens = min(max(0.1 * budget, min(1.9, 1.0 + 0.1 * budget)), self.tokens + budget * (now - self.asked_at) / 1e6)
        self.asked_at = now

    def may_go(self, now: float, log_price: float, is_spared: bool = False) -> list[bytes]:
        """All that may be handed out now."""
        return [key for key, page in self.pages.items() if page.is_eligible(now, log_price, is_spared) and self.is_open(page.host, now)]

    def is_open(self, host: str, now: float) -> bool:
        return max(self.free_at.get(host, 0.0), self.awaited.get(host, 0.0)) <= now

    def time_of(self, clock: float, expected: float = 0.0, within: float = 0.0) -> float:
        """The time of a call: the server's clock, unless the caller knows better; it never runs back."""
        since = clock - self.clock
        if not expected and 0 <= since < REMEMBERED_S * 1e6 and clock > self.asked_at:
            expected, within = self.asked_at + since, BELIEVED_S * 1e6
        return max(self.asked_at, expected if expected and abs(clock - expected) > within else clock)

    def hand_out(self, key: bytes, token: float, now: float, delay: float, awaited: float) -> None:
        page = self.pages[key]
        if page.where is Where.LEASED:
            self.count("leases_expired")
        page.where, page.token, page.released = Where.LEASED, token, False
        self.count("dispatched")
        if delay > 0:
            self.free_at[page.host] = now + delay * 1e6
            self.awaited[page.host] = now + awaited * 1e6 if awaited > 0 else 0.0

    def end(self, key: bytes, token: float) -> Page | None:
        """End a lease; None where it is not this token's any more."""
        page = self.pages.get(key)
        if page is None or page.where is not Where.LEASED or page.token != token:
            self.count("observations_refused")
            return None
        self.count("ended")
        return page

    def release(self, page: Page) -> None:
        page.where = Where.FIRST if page.row.b == 0 else Where.QUEUED
        page.released = True

    def forget(self, key: bytes) -> bool:
        page = self.pages.pop(key, None)
        if page is None:
            self.aliases.discard(key)
            return False
        if page.where is Where.LEASED:
            self.count("ended")
        if page.row.b == 0 and page.row.state < RETIRED:
            self.count("pending", -1)
        self.note(page.row, -1)
        return True

    def lock(self, owner: str, clock: float) -> int:
        """Take or renew the planner's lock; 0: another holds it. No two planners are ever given the same token."""
        if self.planner not in ("", owner):
            return 0
        if not self.planner:
            self.planner, self.fence = owner, max(self.fence + 1, int(clock))
        return self.fence

    def take_turn(self, host: str, now: float, pause: float, awaited: float) -> tuple[float, float]:
        """Take the next turn of a host: how long until then, or -1 as another fetch is awaited; and until when its start is."""
        at = max(now, self.free_at.get(host, 0.0))
        if self.awaited.get(host, 0.0) > now:
            return -1.0, at + awaited
        if at - now <= max(LONGEST_TURN_S * 1e6, 2 * pause):
            self.free_at[host], self.awaited[host] = at + pause, at + awaited
        return at - now, at + awaited

    def start(self, host: str, began: float, pause: float, turn: float) -> None:
        """Take in that a fetch began, or that it never will (0): what is awaited of a later turn stays awaited."""
        if began > 0:
            self.free_at[host] = max(self.free_at.get(host, 0.0), began + pause)
        if abs(self.awaited.get(host, 0.0) - turn) <= 2:
            self.awaited[host] = 0.0

    def note(self, row: Row, by: int) -> None:
        """Count a page among those that are known, or no more."""
        if row.state in (ACTIVE, RETIRED):
            self.count("pages", by)
            if row.visits:
                self.count("fetched", by)
        if row.state == RETIRED:
            self.count("retired", by)

    def known_of(self, host: str) -> int:
        return sum(page.host == host and page.row.state != TRANSIENT for page in self.pages.values())
