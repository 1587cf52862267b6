"""The dispatcher: adds pages, hands out the requests that are due, takes in what became of them, one round trip for all of it.

It knows neither Scrapy nor Frontera; both are faces of it. `courier.Courier` runs it on a thread of its own.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from optimal_frontier.frontier.block_pages import BlockPages
from optimal_frontier.frontier.patterns import pattern_of
from optimal_frontier.scheduling.index import CANDIDATES
from optimal_frontier.settings import FrontierSettings, PageRule
from optimal_frontier.state.columns import ACTIVE, ONCE
from optimal_frontier.state.records import Announcement, Handout, Move, NewPage, Observation, Published, encode_record
from optimal_frontier.state.store import Call, Store

#: Seconds between two looks at what contents other crawlers have flagged.
FLAGS_S: Final = 10.0

_DEFAULT_PORTS = {"http": 80, "https": 443}
#: What `add_pages` says of a page that it does not take.
_TRAPS = {-1: "host", -2: "pattern"}
_PRIVATE_HEADERS = frozenset({b"authorization", b"cookie"})


def host_of(url: str) -> str:
    """Return the lower-case host name of ``url``, with the port where it is not the default of its scheme.

    Examples
    --------
    >>> host_of("http://Example.org:80/a"), host_of("https://example.org:8443/")
    ('example.org', 'example.org:8443')
    """
    return names_of(url)[1]


def names_of(url: str) -> tuple[str, str]:
    """Return the host name of ``url``, which Scrapy's downloader takes for one slot, and the host as in `host_of`."""
    # Few origins, many URLs: up to the path they are the same text.
    end = url.find("/", url.find("://") + 3)
    return _names_of_origin(url if end < 0 else url[:end])


@lru_cache(maxsize=4096)
def _names_of_origin(origin: str) -> tuple[str, str]:
    parts = urlsplit(origin)
    name = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = None
    return name, name if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f"{name}:{port}"


def horizon_s(settings: FrontierSettings) -> float:
    """Return the seconds ahead for which pages are queued: two plan intervals, four where deadlines are anticipated.

    They are with an ``auto`` budget, and by price: where the budget is more than the plan knew. A choice by price needs some pages to
    choose from, however slow the crawl.
    """
    ahead = (2 if settings.crawl_rate is not None and settings.dispatch == "edf" else 4) * settings.resolve_interval
    if settings.crawl_rate is not None and settings.dispatch == "index":
        return max(ahead, 2 * CANDIDATES / settings.crawl_rate)
    return ahead


@dataclass(frozen=True)
class SlotRoom:
    """How many more requests one slot of the downloader takes, and the hosts that share it."""

    hosts: Sequence[str]
    room: int


@dataclass
class Exchange:
    """What one round trip carries. ``want`` 0 asks for no requests; ``holds`` are hosts to leave alone and for how many seconds; ``flags``
    names of contents that are no page's own."""

    pages: list[NewPage] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    draws: int = 0
    live: list[tuple[int, bytes]] | None = None
    want: int = 0
    slots: Mapping[str, SlotRoom] = field(default_factory=dict)
    per_host: int = 0
    holds: list[tuple[str, float]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    flags: list[bytes] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)


@dataclass
class Outcome:
    """What came back. ``wait`` is None where no requests were asked for, -1 where there is nothing to wait for; ``trapped`` are pages that
    were not taken, and why (see `traps.REASONS`)."""

    handouts: list[Handout] = field(default_factory=list)
    wait: float | None = None
    epoch: bytes = b""
    new: int = 0
    trapped: list[tuple[str, NewPage]] = field(default_factory=list)


class Dispatcher:
    """Joins the settings with the store for one owner of leases.

    Parameters
    ----------
    store : Store
        Opened before first use.
    settings : FrontierSettings
        Parsed settings.
    """

    def __init__(self, store: Store, settings: FrontierSettings) -> None:
        self.store = store
        self.settings = settings
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}".replace(" ", "_")
        #: The last plan's multiplier and prior, as the last dispatch reply had them.
        self.published = Published()
        #: What contents are no page's own, as all crawlers have found.
        self.blocks = BlockPages()
        self._next_flags = 0.0

    def new_page(
        self,
        fingerprint: bytes,
        url: str,
        record: bytes,
        *,
        kind: int = ACTIVE,
        importance: float | None = None,
        priority: float = 0.0,
        lastmod: tuple[float, float] | None = None,
        announcement: Announcement | None = None,
        is_link: bool = False,
    ) -> NewPage:
        """Return the page to add, with what RULES and the interval bounds say of ``url``.

        ``importance`` None: not stated by the request; then RULES, then 1. ``lastmod``, ``announcement``: see `NewPage`.
        ``is_link``: it was found on a page, so HOST_MAX_PAGES and PATTERN_MAX_PAGES hold for it.
        """
        rule = self.settings.rules.of(url)
        if kind == ACTIVE and not rule.revisit:
            kind = ONCE
        min_rate, max_rate, gap = rate_bounds(rule, self.settings)
        weight = importance if importance is not None else rule.importance or 0.0
        stated = importance is not None
        bounds = (weight, min_rate, max_rate, gap, priority, stated)
        limits = (self.settings.host_max_pages or 0, self.settings.pattern_max_pages or 0) if is_link else (0, 0)
        return NewPage(fingerprint, host_of(url), record, kind, *bounds, lastmod, pattern_of(url), rule.update_times, *limits, announcement)

    def move_of(self, handout: Handout, fingerprint: bytes, url: str, target: bytes) -> Move:
        """Return the move of a page to ``url``, with what RULES and the interval bounds say of it.

        Parameters
        ----------
        handout : Handout
            The page, as it was handed out.
        fingerprint : bytes
            Its identity: that of its request, 20 bytes.
        url : str
            Where it is now.
        target : bytes
            The identity of a request of that, otherwise like its own.
        """
        record = handout.record
        before = str(record["url"])
        moved = {**record, "url": url}
        if url.partition("://")[0] != before.partition("://")[0] or host_of(url) != host_of(before):
            # What one site was trusted with is nothing for another.
            moved.pop("cookies", None)
            moved["headers"] = {k: v for k, v in record.get("headers", {}).items() if k.lower() not in _PRIVATE_HEADERS}
        return Move(fingerprint, before, self.new_page(target, url, encode_record(moved)))

    def exchange(self, work: Exchange) -> Outcome:
        """Do everything in ``work`` in one round trip.

        Pages come first, so that what a page links to is safe before the page is done; moves after observations, so that these count.
        """
        calls: list[Call] = []
        calls += self.store.add_calls(work.pages)
        adding = len(calls)
        calls += self.store.lastmod_calls(work.pages)
        calls += self.store.observe_calls(work.observations, horizon_s(self.settings), self.settings.policy)
        calls += self.store.move_calls(work.moves)
        settings = self.settings
        budget = settings.crawl_rate or 0.0
        calls += [("hold_host", [host, repr(seconds)]) for host, seconds in work.holds]
        if work.counters:
            calls.append(("count", [value for counted in work.counters.items() for value in counted]))
        if work.draws:
            calls.append(("draw_tokens", [repr(budget), work.draws]))
        if work.live is not None:
            leases = [value for lease in work.live for value in lease]
            calls.append(("renew_leases", [self.owner, repr(settings.lease_seconds), *leases]))
        flagging = None
        if work.flags or (work.want > 0 and time.monotonic() >= self._next_flags):
            flagging = len(calls)
            calls.append(("flag_contents", work.flags))
        if work.want > 0:
            room = [v for name, slot in work.slots.items() for host in slot.hosts for v in (host, name, max(0, slot.room))]
            period = 1.0 / settings.host_max_rate if settings.host_max_rate is not None else 0.0
            limits = [repr(budget), repr(settings.first_visit_share), repr(settings.host_delay), repr(period), work.per_host]
            calls.append(("dispatch", [self.owner, work.want, repr(settings.lease_seconds), *limits, *room]))
        results = self.store.run(calls) if calls else []
        outcome = Outcome()
        added = [number for result in results[:adding] for number in result]
        outcome.new = added.count(1)
        outcome.trapped = [(_TRAPS[number], page) for number, page in zip(added, work.pages, strict=True) if number in _TRAPS]
        if flagging is not None:
            said = results[flagging]
            self.blocks.learn({name: bool(flagged) for name, flagged in zip(said[::2], said[1::2], strict=True)})
            self._next_flags = time.monotonic() + FLAGS_S
        if work.want > 0:
            outcome.wait, outcome.epoch, self.published, outcome.handouts = self.store.parse_dispatch(results[-1])
        return outcome

    def leave(self) -> None:
        """Give back at once whatever is still leased."""
        self.store.run([("leave", [self.owner])])


def rate_bounds(rule: PageRule, settings: FrontierSettings) -> tuple[float, float, float]:
    """Return the least and most revisit rate (1/s) and the least seconds between two visits that a page's rule and the settings allow.

    The bounds of a rule go before MIN_INTERVAL and MAX_INTERVAL. A pinned page may come back after half its interval, so that a visit
    that was late does not push all later ones.
    """
    longest = rule.max_interval if rule.max_interval is not None else settings.max_interval
    shortest = rule.min_interval if rule.min_interval is not None else settings.min_interval
    # Where they exclude each other, what the rule says stands, and its max_interval before its min_interval.
    if rule.max_interval is None:
        longest = max(longest, shortest)
    shortest = min(shortest, longest)
    gap = shortest / 2 if rule.min_interval is not None and rule.min_interval == rule.max_interval else shortest
    return 1 / longest, 1 / shortest, gap
