"""What a partition is asked for, and on what terms: its budget, the share of first visits, room in slots, the pauses of hosts."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.dispatching.work import Exchange
from optimal_frontier.frontier.judging.silent_hosts import SilentHosts
from optimal_frontier.frontier.planning.budget import SOON_PLANS, is_soon_done
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import BUCKET_S, NO_BELIEF, Ask, Belief, bucket_of
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import HUB, Row

#: Seconds between two looks at how many pages wait for their first visit.
PENDING_S: Final = 5.0
#: Least share of first visits beside pinned pages that are due, in a crawl that is to end.
_CLOSING_SHARE: Final = 0.5
#: Share of revisits in a pass of first visits that lasts for longer than that, however few wait at a time. Where each page has a link to a
#: new one (a calendar) it is for ever, and revisits would never have a turn; a pass that ends takes a quarter longer at most.
_LONG_PASS_REVISITS: Final = 0.2
#: Budget of a partition that has no share by the last plan, as a share of CRAWL_RATE: 0 would be no limit.
_LEAST_SHARE: Final = 1e-9
#: What comes in during so many exchanges is saved up where that is more than usual, and the share of the last one in how long they take.
_EXCHANGES: Final = 3.0
_LAST_EXCHANGE: Final = 0.2
#: Longest exchange that counts, seconds: what is saved up in an outage is not spent at once.
_LONGEST_EXCHANGE_S: Final = 1.0 / _EXCHANGES
#: Hosts whose numbers are remembered.
_MOST_HOSTS: Final = 100_000


@dataclass(slots=True)
class KnownPartition:
    """What this process knows of one partition; local monotonic times."""

    published: Published = field(default_factory=Published)
    #: When it is worth asking by its last reply, and when it is looked at whatever that said.
    open_at: float = 0.0
    look_at: float = 0.0
    #: By its last reply.
    log_price: float | None = None
    asked_at: float = 0.0
    #: Number of its last plan.
    plan: int = 0
    waits_for_room: bool = False
    forgotten: int = -1
    pending: int = 0
    next_pending: float = 0.0
    #: Since when nothing but first visits went out, and pages that keep their times in a pass; inf: others do, or no first visit waits.
    pass_since: float = math.inf
    is_long_pass: bool = False
    #: Handouts that a long pass owes to revisits; 1 at most.
    owed: float = 0.0
    next_flags: float = 0.0
    flagged: dict[bytes, bool] = field(default_factory=dict)


class AskTerms:
    """Makes the terms of asks for requests, from the settings and what is known of a partition.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Parsed settings.
    watch : ServerWatch or None
        Of a crawler that tells when its fetches begin.
    lease_s : float
        Seconds of a lease; a host waits as long to be told of a start.
    silent_hosts : SilentHosts
        Hosts that take one request at a time.
    """

    def __init__(
        self, namespace: Namespace, settings: FrontierSettings, watch: ServerWatch | None, lease_s: float, silent_hosts: SilentHosts
    ) -> None:
        self._namespace = namespace
        self._settings = settings
        self._watch = watch
        self._lease_s = lease_s
        self._silent_hosts = silent_hosts
        self._exchange_s = 0.0
        self._partitions: Sequence[KnownPartition] = []
        self._numbers: dict[str, tuple[int, int]] = {}
        #: Hosts without a number, until pages are added.
        self._unknown: set[str] = set()

    def begin(self, partitions: Sequence[KnownPartition]) -> None:
        """Begin with a server, and with what will be known of its partitions."""
        self._partitions = partitions
        self._numbers.clear()
        self._unknown.clear()

    @property
    def pause_s(self) -> float:
        """Least seconds between two starts of fetches of a host whose starts are told; 0: they are not."""
        return 0.0 if self._watch is None else max(self._settings.host_delay, self.host_period)

    @property
    def host_period(self) -> float:
        """Mean seconds between two starts to a host; 0: no limit."""
        rate = self._settings.host_max_rate
        return 0.0 if rate is None else 1.0 / rate

    @property
    def depth_s(self) -> float:
        """Seconds of a budget that are saved up, so that nothing is lost to the way to a server that is far away."""
        return max(BUCKET_S, _EXCHANGES * self._exchange_s)

    def note_exchange(self, seconds: float) -> None:
        """Note how long an exchange took, with all its round trips: nothing is asked for meanwhile."""
        self._exchange_s += _LAST_EXCHANGE * (min(seconds, _LONGEST_EXCHANGE_S) - self._exchange_s)

    def belief(self, partition: int) -> Belief:
        """Return within what bounds a partition's clock is believed."""
        return NO_BELIEF if self._watch is None else self._watch.belief(partition)

    def note_added(self) -> None:
        """Note that pages were added: hosts may have numbers by now."""
        self._unknown.clear()

    def note_handouts(self, partition: int, handouts: Iterable[Handout]) -> None:
        """Remember the numbers of hosts of which something was handed out, and when pages that were seen before had a turn."""
        known = self._partitions[partition]
        for handout in handouts:
            if handout.row.attempts and not _keeps_its_times(handout.row):
                known.pass_since = math.inf
                known.owed -= 1.0
            known.owed = min(1.0, known.owed + _LONG_PASS_REVISITS) if known.is_long_pass else 0.0
            if len(self._numbers) >= _MOST_HOSTS:
                self._numbers.clear()
            self._numbers[handout.host] = partition, handout.row.host

    def ask(self, work: Exchange, partition: int) -> Ask:
        """Return what is asked of a partition, but for the number of requests."""
        settings, budget = self._settings, self.budget(partition)
        rooms = {host: int(host not in work.under_way) for host in self._silent_hosts.hosts()}
        for slot in work.slots.values():
            # It may be shared with other hosts, who may fill it for ever: that a silent one has a request there it does not say.
            rooms |= {host: min(slot.room, rooms.get(host, slot.room)) for host in slot.hosts}
        self._learn_numbers(partition, rooms)
        found = [(self._numbers.get(host, (-1, 0)), room) for host, room in rooms.items()]
        room = {number: room for (of, number), room in found if of == partition}
        share = self._first_visit_share(partition, budget)
        awaited = self._lease_s if self.pause_s > 0 else 0.0
        belief = self.belief(partition)
        paced = settings.host_delay, self.host_period
        return Ask(0, work.per_host, self._lease_s, budget, share, *paced, room, awaited, belief, depth=self.depth_s)

    def look(self, partition: int) -> Ask:
        """Return what is asked of a partition of which nothing is wanted."""
        return Ask(0, lease=self._lease_s, budget=self.budget(partition), belief=self.belief(partition), depth=self.depth_s)

    def _learn_numbers(self, partition: int, hosts: Iterable[str]) -> None:
        """Look up the numbers of hosts of which this process was handed out nothing yet; unknown ones are asked for once."""
        new = [host for host in hosts if host not in self._numbers and host not in self._unknown]
        new = [host for host in new if self._namespace.partition_of(host) == partition]
        if not new:
            return
        found = self._namespace.command("HMGET", self._namespace.key("hosts", partition), *new, partition=partition)
        for host, number in zip(new, found, strict=True):
            if number is None:
                self._unknown.add(host)
            else:
                self._numbers[host] = partition, int(number)

    def budget(self, partition: int) -> float:
        """Return the fetches per second of a partition; 0: no limit."""
        rate, published = self._settings.crawl_rate, self._partitions[partition].published
        if rate is None:
            return 0.0
        return rate * max(_LEAST_SHARE, published.share if published.number else 1.0 / len(self._partitions))

    def most_at_once(self, partition: int) -> int:
        """Return how many fetches the bucket of a partition can hold."""
        budget = self.budget(partition)
        return int(bucket_of(budget, self.depth_s)) if budget > 0 else sys.maxsize

    def token_s(self, partition: int) -> float:
        """Return the seconds that the budget of a partition takes for a fetch."""
        budget = self.budget(partition)
        return 1.0 / budget if budget > 0 else 0.0

    def _first_visit_share(self, partition: int, budget: float) -> float:
        """Return the share of first visits, 1 more while they come first: as long as those that wait could be finished soon.

        None while a long pass owes a turn to what is due.
        """
        settings, known = self._settings, self._partitions[partition]
        if settings.close_after is not None:
            return 1.0 + max(settings.discovery_share, _CLOSING_SHARE)
        now = time.monotonic()
        if now >= known.next_pending:
            counted = self._namespace.command("HGET", self._namespace.key("stats", partition), "pending", partition=partition)
            known.pending, known.next_pending = int(counted or 0), now + PENDING_S
            known.pass_since = min(known.pass_since, now) if known.pending else math.inf
            # Once it is long it ends when nothing waits: revisits have turns in it.
            known.is_long_pass = known.pending > 0 and (
                known.is_long_pass or now - known.pass_since > SOON_PLANS * settings.resolve_interval
            )
        speed = min(budget or known.published.budget, known.published.first_visit_rate)
        is_soon = is_soon_done(known.pending, settings, speed)
        if is_soon and known.owed >= 1.0:
            return 0.0
        return (1.0 if is_soon else 0.0) + settings.discovery_share


def _keeps_its_times(row: Row) -> bool:
    """Tell whether a page is fetched on time in a pass of first visits, too, as `dispatch.lua` has it: pinned, a hub, or asked for now."""
    return row.is_pinned or bool(row.flags & HUB) or row.l == 0.0
