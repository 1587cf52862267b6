"""What a partition promises, in plain Python: where each page is, who holds it, and what is counted. No queues, no scores, no packing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.state.rows import ACTIVE, RETIRED, TRANSIENT, Row


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
    #: When a host is free again.
    free_at: dict[str, float] = field(default_factory=dict)
    tokens: float = 1.0
    asked_at: float = 0.0
    #: Calls of crawlers that said which run they are of.
    dispatches: int = 0
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
        self.pages[key] = Page(name, row, stated)
        self.count("pending")
        if row.state == ACTIVE:
            self.count("pages")
        return 1

    def refill(self, now: float, budget: float) -> None:
        self.asked_at = self.asked_at or now
        if budget > 0:
            self.tokens = min(max(0.1 * budget, min(1.9, 1.0 + 0.1 * budget)), self.tokens + budget * (now - self.asked_at) / 1e6)
        self.asked_at = now

    def may_go(self, now: float, log_price: float, is_spared: bool = False) -> list[bytes]:
        """All that may be handed out now."""
        free = self.free_at
        return [key for key, page in self.pages.items() if page.is_eligible(now, log_price, is_spared) and free.get(page.host, 0.0) <= now]

    def time_of(self, clock: float, expected: float, within: float) -> float:
        """The time of a call: the server's clock, unless the caller knows better; it never runs back."""
        return max(self.asked_at, expected if expected and abs(clock - expected) > within else clock)

    def hand_out(self, key: bytes, token: float, now: float, delay: float) -> None:
        page = self.pages[key]
        if page.where is Where.LEASED:
            self.count("leases_expired")
        page.where, page.token, page.released = Where.LEASED, token, False
        self.count("dispatched")
        if delay > 0:
            self.free_at[page.host] = now + delay * 1e6

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
            return False
        if page.where is Where.LEASED:
            self.count("ended")
        if page.row.b == 0 and page.row.state < RETIRED:
            self.count("pending", -1)
        self.note(page.row, -1)
        return True

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
