"""Changed RULES, MIN_INTERVAL or MAX_INTERVAL reach stored pages: their bounds and importance, while the planner reads them.

A judge takes both from the settings at each visit. This is for pages whose next visit may be far. Pages under way and pages that wait for
their first visit are left to the judge. What a rule gave is taken back when the rule is gone: importance, bounds, update times, and that a
page is fetched once; what a request stated stays.
"""

from __future__ import annotations

import hashlib
from typing import Final

from optimal_frontier.frontier.admitting.pages import importance_of
from optimal_frontier.frontier.judging.fetched_once import is_page_again
from optimal_frontier.frontier.judging.hubs import worth_of
from optimal_frontier.frontier.judging.update_times import numbers_of_timed, republished
from optimal_frontier.frontier.judging.waits import Terms, is_early_look, numbers_of
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import (
    ACTIVE,
    DONE,
    HEAD_BYTES,
    HELD,
    HUB,
    SIGNALLED,
    TAIL_BYTES,
    TIMED,
    UNCONDITIONAL,
    Row,
    split_tail,
)

#: Hosts that one HSCAN asks for.
_SCAN_COUNT: Final = 500
_DONE: Final = 1
#: Relative difference of two numbers that rows hold in 32 bits.
_ROUNDING: Final = 1e-6


def bounds_digest(settings: FrontierSettings) -> str:
    """Return a short text that changes when bounds or importance of stored pages do."""
    told = f"{settings.min_interval!r} {settings.max_interval!r} {settings.rules.digest()}"
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


class BoundsRevision:
    """Brings the pages of one partition in line with the settings.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Which one.
    terms : Terms
        Settings, price and last plan.
    now : float
        Server's time, seconds since the epoch.

    Attributes
    ----------
    revised : int
        Pages that were rewritten.
    """

    def __init__(self, namespace: Namespace, partition: int, terms: Terms, now: float) -> None:
        self.namespace = namespace
        self.partition = partition
        self.terms = terms
        self.now = now
        self.revised = 0
        self._hosts: dict[int, str] = {}

    def see(self, pages: list[bytes], values: list[bytes]) -> list[bytes]:
        """Take in stored values as they are read, rewrite what differs, and return them as they are stored now."""
        values = list(values)
        revisions: list[tuple[int, float, Row]] = []
        for at, value in enumerate(values):
            if len(value) < HEAD_BYTES + TAIL_BYTES:
                continue
            row = Row.unpack(value)
            if row.state not in (ACTIVE, DONE) or row.b == 0:
                continue
            new = self._revised(row, pages[at], value)
            if new is not None:
                revisions.append((at, row.b, new))
        answers: list[int] = []
        for call in revise_calls(self.partition, [(pages[at], b, new, None) for at, b, new in revisions]):
            answers += self.namespace.run([call])[0]
        for (at, _, new), answer in zip(revisions, answers, strict=True):
            if answer == _DONE:
                values[at] = new.pack() + values[at][HEAD_BYTES:]
                self.revised += 1
        return values

    def _revised(self, row: Row, page: bytes, value: bytes) -> Row | None:
        settings = self.terms.settings
        stated, raw = split_tail(value)
        try:
            record = unpack_record(raw, self._name(row.host))
        except ValueError:
            return None
        rule = settings.rules.of(str(record["url"]))
        is_freed = row.state == DONE and is_page_again(record, settings)
        if row.state == DONE and not is_freed:
            return None
        if not rule.revisit:
            # Somebody wants another visit, or its callback is owed one: the judge sees to it afterwards.
            return None if row.flags & (UNCONDITIONAL | HELD) else row._replace(state=DONE)
        shortest, longest = settings.interval_bounds(rule)
        importance = importance_of(stated, rule)
        flags = row.flags | TIMED if rule.update_times is not None else row.flags & ~TIMED
        same = all(
            abs(old - new) <= _ROUNDING * new
            for old, new in ((row.min_interval, shortest), (row.max_interval, longest), (row.importance, importance))
        )
        if same and flags == row.flags and rule.update_times is None and not is_freed:
            return None
        new = row._replace(state=ACTIVE, min_interval=shortest, max_interval=longest, importance=importance, flags=flags)
        if not is_freed and row.flags & (UNCONDITIONAL | HELD):  # somebody has said when, or not until its callback is there
            return new
        new = new._replace(flags=flags & ~SIGNALLED)  # these numbers go by the price; its next visit hears its sources again
        if rule.update_times is not None and row.visits and not row.gone:
            timed = republished(rule.update_times, self._memory(page))
            a, s, e, longest = numbers_of_timed(timed, new, page, self.terms)
        else:
            yielded = worth_of(self._memory(page), settings) if row.flags & HUB else 0.0
            a, s, e, longest = numbers_of(new, page, self.terms, since=max(0.0, self.now - row.b / 1e6), yielded=yielded)
        if is_early_look(row) and rule.update_times is None:
            # An early look keeps its time, within the new bounds.
            a, s, e, longest = fixed(min(max(row.l, new.min_interval), new.max_interval))
        return new._replace(a=a, s=s, e=e, l=longest)

    def _memory(self, page: bytes) -> Memory:
        return Memory.readable(self.namespace.command("HGET", self.namespace.key("memory", self.partition), page, partition=self.partition))

    def _name(self, host: int) -> str:
        if host not in self._hosts:
            key, cursor = self.namespace.key("hosts:names", self.partition), -1
            while cursor:
                reply = self.namespace.command("HSCAN", key, max(cursor, 0), "COUNT", _SCAN_COUNT, partition=self.partition)
                cursor, found = int(reply[0]), reply[1]
                pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
                self._hosts |= {int(number): name.decode("utf-8", "replace") for number, name in pairs}
        return self._hosts.get(host, "")
