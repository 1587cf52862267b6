"""The dispatcher: adds pages, hands out the requests that are due, takes in how they ended, in one round trip.

It knows neither Scrapy nor Frontera; both are faces of it. `courier.Courier` runs it on a thread of its own. Each exchange asks
partitions in turn, until their buckets hold the requests that are wanted: without a budget that is one. The next exchange goes on with the
next ones. Everything else goes to the partitions that it is about, in the same pipeline.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.dispatching.ask_terms import AskTerms, KnownPartition
from optimal_frontier.frontier.dispatching.following_up import FollowUp, is_in_doubt
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch, local_clock
from optimal_frontier.frontier.dispatching.setting_aside import fault_of_handout, in_pieces
from optimal_frontier.frontier.dispatching.starts import add_starts
from optimal_frontier.frontier.dispatching.work import Ended, Exchange, Lease, Moving, Outcome, SlotRoom, Start, Turn, grouped
from optimal_frontier.frontier.judging.judge import Context
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.settings.frontier_settings import check_served
from optimal_frontier.state.downloader_limits import tell_limits
from optimal_frontier.state.flagged import flag_calls
from optimal_frontier.state.mending import can_go_on
from optimal_frontier.state.messages import RELEASE, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace, texts
from optimal_frontier.state.partition import (
    BATCH,
    FULL_HOST,
    FULL_PATTERN,
    NEW,
    REPLACED,
    Dispatched,
    add_calls,
    count_calls,
    dispatch_call,
    draw_call,
    hold_call,
    observe_calls,
    parse_dispatch,
    renew_call,
    renewed,
)
from optimal_frontier.state.published import TABLES, Published
from optimal_frontier.state.rows import TRANSIENT

__all__ = ["Dispatcher", "Ended", "Exchange", "Lease", "Moving", "Outcome", "SlotRoom", "Start", "Turn"]

logger = logging.getLogger(__name__)

#: Longest lease that is taken, seconds; it is renewed while the request is alive.
LONGEST_LEASE_S: Final = 15.0
#: Seconds between two looks at what others have noted: contents that are flagged and changes of templates.
FLAGS_S: Final = 10.0
#: Seconds after which a partition is looked at whose requests nobody wants: whether it is the one it was, and that somebody lives.
_WATCH_S: Final = 5.0
#: Least seconds until a partition that had nothing is asked again.
_SHORTEST_WAIT_S: Final = 0.002
#: Most seconds until then: another process may have imported, forced or told something.
LOOK_S: Final = 1.0
#: What `add_pages` says of a page that it does not take.
_TRAPS: Final = {FULL_HOST: "host", FULL_PATTERN: "pattern"}


class _Pipeline:
    """Script calls of one round trip, and who reads their replies."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._readers: list[tuple[int, int, Callable[[list[Any]], None]]] = []

    def add(self, calls: Sequence[Call], read: Callable[[list[Any]], None] | None = None) -> None:
        start = len(self._calls)
        self._calls += calls
        if read is not None:
            self._readers.append((start, len(self._calls), read))

    def run(self, namespace: Namespace) -> bool:
        results = namespace.run(self._calls) if self._calls else []
        for start, stop, read in self._readers:
            read(results[start:stop])
        self._calls, self._readers = [], []
        return bool(results)


class Dispatcher:
    """Joins the settings with the state for one process.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Parsed settings.
    watch : ServerWatch, optional
        Of a crawler that lives for long, and tells when its fetches begin.
    """

    def __init__(self, namespace: Namespace, settings: FrontierSettings, watch: ServerWatch | None = None) -> None:
        self.namespace = namespace
        self.settings = settings
        self.watch = watch
        #: Opens the namespace as this process has opened it.
        self.join: Callable[[], None] = namespace.open
        self.lease_s = min(settings.lease_seconds, LONGEST_LEASE_S)
        #: What judging remembers from visit to visit.
        self.recent = Recent()
        self._partitions: list[KnownPartition] = []
        #: SERVE_PARTITIONS, and all others.
        self._served: Sequence[int] = ()
        self._others: Sequence[int] = ()
        #: Each process starts elsewhere, so that many do not go from partition to partition together.
        self._turn = secrets.randbelow(namespace.partitions)
        self.terms = AskTerms(namespace, settings, watch, self.lease_s, self.recent.silent_hosts)
        self._follow_up = FollowUp(namespace, settings, self.recent, self.terms_of)
        #: Where the local clock stood when the round trip under way began.
        self._sent = 0.0
        #: Until when nothing is asked for, local monotonic time: hosts of this server know nothing of the last fetches.
        self._quiet_until = 0.0
        self.forget()
        #: Under which it tells what its downloader admits.
        self._name = secrets.token_bytes(8)

    def forget(self) -> None:
        """Forget what the server has told: it is another one.

        Raises
        ------
        ConfigurationError
            It has not the partitions of SERVE_PARTITIONS.
        """
        count, served = self.namespace.partitions, self.settings.serve_partitions
        check_served(served, count)
        self._partitions = [KnownPartition() for _ in range(count)]
        self._served = range(count) if served is None else served
        self._others = sorted(set(range(count)) - set(self._served))
        self._turn %= count
        self.terms.begin(self._partitions)
        if self.watch is not None:
            self.watch.forget()

    @property
    def pause_s(self) -> float:
        """Least seconds between two starts of fetches of a host whose starts are told; 0: they are not."""
        return self.terms.pause_s

    @property
    def quiet_s(self) -> float:
        """Seconds after a loss of the server in which nothing is asked for.

        By then all crawlers have seen what has happened, and what they had started before is long enough ago for every host.
        """
        return LOOK_S + self.pause_s if self.pause_s > 0 else 0.0

    @property
    def is_cluster(self) -> bool:
        """Whether there are several servers, any of which may be away for a moment."""
        return self.namespace.connection.spec.cluster

    @property
    def behind(self) -> frozenset[int]:
        """Partitions of which the server was seen to have lost something."""
        return frozenset() if self.watch is None else frozenset(self.watch.behind)

    def reopen(self) -> bool | None:
        """Join the namespace of a server that may be another one, made anew where it is not there.

        Returns
        -------
        bool or None
            Whether the namespace is another one; None: nothing has changed, it is others who have to learn.

        Raises
        ------
        StateError
            See `Namespace.open`.
        """
        assert self.watch is not None  # who else would know
        before, is_behind = self.namespace.run_id, self.watch.is_behind
        self.join()
        self.watch.note_opened()
        is_empty = self.namespace.run_id != before
        if not is_empty and not is_behind:
            return None
        self.forget()
        self._quiet_until = time.monotonic() + self.quiet_s
        return is_empty

    def published(self, partition: int) -> Published:
        """Return the last plan of a partition, as far as this process has read it."""
        return self._partitions[partition].published

    def context(self, handout: Handout) -> Context:
        """Return what a visit of a handout is judged by."""
        return Context(self.settings, self._partitions[handout.partition].published, self.recent)

    def exchange(self, work: Exchange) -> Outcome:
        """Do everything in ``work``, or all of it but what nothing can be made of, as what is stored is damaged.

        Raises
        ------
        StateError
            Redis cannot be reached, or refuses for another reason.
        """
        try:
            return self._exchange(work)
        except Exception as error:
            if not can_go_on(self.namespace, error):
                raise
        outcome = Outcome(wait=LOOK_S if work.want > 0 else None)
        for piece in in_pieces(work):
            try:
                outcome.take(self._exchange(piece))
            except Exception as error:
                # What the piece has counted is left to the repetition, unless it is what nothing can be made of.
                work.counted += (left := [seen for seen in piece.counted if all(seen is not known for known in work.counted)])
                if not can_go_on(self.namespace, error):
                    raise
                del work.counted[len(work.counted) - len(left) :]
        return outcome

    def _exchange(self, work: Exchange) -> Outcome:
        """Do everything in ``work``.

        Pages come first, so that what a page links to is safe before the page is done; renewals before observations, which name the new
        token; moves after observations, so that these count. One round trip to each node. Retired pages that are linked to, known ones that
        are wanted now, words and records of sources, moves and a new plan take further ones.
        """
        outcome, begun = Outcome(), local_clock()
        pipeline = _Pipeline()
        idle: list[tuple[int, bytes, bytes]] = []
        self._add(pipeline, work, outcome, idle)
        if self.is_cluster and work.pages:
            pipeline.run(self.namespace)  # nodes run side by side
        self._renew(pipeline, work, outcome)
        self._observe(pipeline, work)
        self._tell(pipeline, work, outcome)
        asked = self._ask(pipeline, work, outcome)
        self._sent = local_clock()
        is_any = pipeline.run(self.namespace)
        outcome.is_other_server = self.watch is not None and (self.watch.is_behind or self.watch.is_doubted)
        if outcome.is_other_server and self.pause_s > 0:
            self._give_back(work, outcome)
        if work.pages:
            self.terms.note_added()
        for partition in asked:
            self._read_plan(partition)
        self._follow_up.run(work, outcome, idle)
        if is_any:
            self.terms.note_exchange(local_clock() - begun)
        now = time.monotonic()
        served = [self._partitions[k] for k in self._served]
        if work.want > 0:
            outcome.wait = max(0.0, min(min(known.open_at, known.look_at) for known in served) - now, self._quiet_until - now)
        outcome.waits_for_room = any(known.waits_for_room for known in served)
        return outcome

    def pending(self) -> int:
        """Return how many pages wait for their first visit, in all partitions that are served."""
        return sum(self.namespace.counts(k).get("pending", 0) for k in self._served)

    def arrivals(self) -> int:
        """Return how many pages were ever added, in all partitions."""
        return self.namespace.counts().get("arrivals", 0)

    def leave(self, leases: Sequence[Lease], unused: Sequence[Start] = ()) -> None:
        """Give leases back at once, and the turns of hosts that came with them."""
        released = [(Observation(lease.handout, RELEASE, lease.handout.row, counters={"leases_released": 1}), lease) for lease in leases]
        self.exchange(Exchange(ended=released, starts=list(unused), is_last=True))

    # What goes into the pipeline.

    def _add(self, pipeline: _Pipeline, work: Exchange, outcome: Outcome, idle: list[tuple[int, bytes, bytes]]) -> None:
        for partition, pages in grouped(work.pages, lambda new: self.namespace.partition_of(new.host)).items():

            def read(replies: list[Any], partition: int = partition, pages: list[NewPage] = pages) -> None:
                told = [value for reply in replies for value in reply]
                outcome.new += told.count(NEW)
                for new, value in zip(pages, told, strict=True):
                    new.is_wanted &= value != NEW  # a new one is due anyway
                    if value == REPLACED:
                        outcome.replaced.append((partition, new.page))
                    if value == NEW and new.found_on is not None and new.row.state != TRANSIENT:
                        new.found_on.new_links += 1
                        new.found_on.new_importance += new.row.importance
                    elif isinstance(value, bytes):
                        idle.append((partition, new.page, value))
                    elif value in _TRAPS:
                        outcome.trapped.append((_TRAPS[value], new))

            pipeline.add(add_calls(partition, pages), read)
            self._partitions[partition].open_at = 0.0

    def _renew(self, pipeline: _Pipeline, work: Exchange, outcome: Outcome) -> None:
        for partition, again in grouped(work.again, lambda renewal: renewal[3]).items():
            pipeline.add([renew_call(partition, [renewal[:3] for renewal in again[at : at + BATCH]]) for at in range(0, len(again), BATCH)])
        now = time.monotonic()
        for lease in work.renewals:
            if not lease.next:
                lease.next, lease.asked_at = renewed(lease.token, now - lease.renewed_at), now
        for partition, leases in grouped(work.renewals, lambda lease: lease.handout.partition).items():
            asked = [(lease.handout.page, lease.token, lease.next) for lease in leases]

            def read(replies: list[Any], leases: list[Lease] = leases) -> None:
                for lease, is_held in zip(leases, (value for reply in replies for value in reply), strict=True):
                    if is_held:
                        # Not from now on where an outage has held the renewal up.
                        lease.token, lease.renewed_at = lease.next, lease.asked_at
                    else:
                        outcome.lost.append(lease)
                    lease.next = 0.0

            pipeline.add([renew_call(partition, asked[at : at + BATCH]) for at in range(0, len(asked), BATCH)], read)

    def _observe(self, pipeline: _Pipeline, work: Exchange) -> None:
        for partition, ended in grouped([one for one in work.ended if not one[0].aside], lambda one: one[0].handout.partition).items():
            observations = [observation for observation, _ in ended]

            def read(replies: list[Any], observations: list[Observation] = observations) -> None:
                told = zip(observations, (value for reply in replies for value in reply), strict=True)
                work.counted.extend([seen for seen, is_counted in told if is_counted or is_in_doubt(seen, work.counted)])

            tokens, is_logged = [lease.present for _, lease in ended], self.settings.has_clocks
            pipeline.add(observe_calls(partition, observations, tokens, is_logged=is_logged), read)
            self._partitions[partition].open_at = 0.0

    def _tell(self, pipeline: _Pipeline, work: Exchange, outcome: Outcome) -> None:
        of = self.namespace.partition_of
        pipeline.add([hold_call(of(host), host, seconds, self.terms.belief(of(host))) for host, seconds in work.holds])
        if work.counters:
            pipeline.add(count_calls(0, work.counters))
        for partition, hosts in grouped(work.draws, of).items():
            fetches = sum(work.draws[host] for host in hosts)
            terms = self.terms.budget(partition), fetches, self.lease_s, self.terms.belief(partition), self.terms.depth_s
            pipeline.add([draw_call(partition, *terms)])
        if self.watch is not None:
            if time.monotonic() < self._quiet_until:
                outcome.turns += work.turns
                work = replace(work, turns=[])
            add_starts(pipeline.add, work, outcome, self.watch, self.settings.host_delay, self.terms.host_period, self.lease_s)
        if work.limits is not None:
            tell_limits(self.namespace, self._name, replace(work.limits, served=self.settings.serve_partitions))
        for partition, names in grouped(work.flags, lambda name: of(name.decode("utf-8", "replace").rpartition(" ")[0])).items():
            self._flag(pipeline, partition, names)

    def _flag(self, pipeline: _Pipeline, partition: int, names: Sequence[bytes]) -> None:
        known = self._partitions[partition]

        def read(replies: list[Any]) -> None:
            flagged, passed = replies[-2:]
            known.flagged = dict.fromkeys(flagged, True) | dict.fromkeys(passed, False)
            everywhere = {name: flagged for one in self._partitions for name, flagged in one.flagged.items()}
            self.recent.blocks.learn(everywhere)
            self.recent.templates.learn(everywhere)
            self.recent.noise.learn(everywhere)

        expected = self.terms.belief(partition).expected / 1e6
        pipeline.add(flag_calls(partition, expected or self.namespace.now(partition), names), read)
        known.next_flags = time.monotonic() + FLAGS_S

    def _ask(self, pipeline: _Pipeline, work: Exchange, outcome: Outcome) -> list[int]:
        """Ask partitions that are worth it, in turn, until their buckets hold what is wanted, or all that are only to be looked at; return
        which."""
        now = time.monotonic()
        for known in self._partitions:
            if work.looks_again or (work.has_room and known.waits_for_room):
                known.open_at = 0.0
        if work.want <= 0 or now < self._quiet_until:
            return self._look_after(pipeline, range(len(self._partitions)), outcome)
        looked = self._look_after(pipeline, self._others, outcome)
        served, partitions = self._served, self._partitions
        at = bisect.bisect_left(served, self._turn)
        order = [*served[at:], *served[:at]]
        first = next((k for k in order if min(partitions[k].open_at, partitions[k].look_at) <= now), None)
        if first is None:
            return looked
        if partitions[first].open_at > now:
            # Together with those that are to be looked at soon, so that many partitions cost one round trip a second.
            asked = [k for k in order if partitions[k].look_at <= now + LOOK_S / 2 and now < partitions[k].open_at][: work.want]
            wanted = [work.want // len(asked)] * len(asked)
            self._turn = (first + 1) % len(partitions)
        else:
            asked, wanted = self._share_out(work.want, [k for k in order[order.index(first) :] if partitions[k].open_at <= now])
            self._turn = (asked[-1] + 1) % len(partitions)
        for partition, want in zip(asked, wanted, strict=True):
            self._ask_for(pipeline, partition, want, work, outcome)
        return [*looked, *asked]

    def _share_out(self, want: int, order: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return which partitions are asked, and for how many requests: no more than their buckets can hold."""
        asked: list[int] = []
        wanted: list[int] = []
        for partition in order:
            asked.append(partition)
            wanted.append(min(want - sum(wanted), self.terms.most_at_once(partition)))
            if sum(wanted) >= want:
                break
        return asked, wanted

    def _look_after(self, pipeline: _Pipeline, partitions: Sequence[int], outcome: Outcome) -> list[int]:
        """Look at partitions of which nothing is wanted, if it is time to; return at which."""
        now, looked = time.monotonic(), []
        for partition in partitions if self.watch is not None else ():
            if now >= self._partitions[partition].asked_at + _WATCH_S:
                self._partitions[partition].asked_at = now
                looked.append(partition)

                def read(replies: list[Any], partition: int = partition) -> None:
                    self._note(partition, [parse_dispatch(partition, reply) for reply in replies], outcome)

                pipeline.add([dispatch_call(partition, self.terms.look(partition))], read)
        return looked

    def _ask_for(self, pipeline: _Pipeline, partition: int, want: int, work: Exchange, outcome: Outcome) -> None:
        self._partitions[partition].asked_at = time.monotonic()
        if time.monotonic() >= self._partitions[partition].next_flags:
            self._flag(pipeline, partition, [])
        ask = self.terms.ask(work, partition)
        # A second call of the same pipeline would not know what hosts the first one has filled.
        most = min(want, ask.most) if ask.room or ask.per_host else want
        calls = [dispatch_call(partition, replace(ask, n=min(ask.most, most - at))) for at in range(0, most, ask.most)]
        pipeline.add(calls, lambda replies: self._read_dispatch(partition, replies, (want, most), work, outcome))

    # What comes out of it.

    def _read_dispatch(self, partition: int, replies: list[Any], wanted: tuple[int, int], work: Exchange, outcome: Outcome) -> None:
        known, now, (want, most) = self._partitions[partition], time.monotonic(), wanted
        told = [parse_dispatch(partition, reply) for reply in replies]
        handouts = []
        for handout in (handout for reply in told for handout in reply.handouts):
            fault = fault_of_handout(handout, self.settings)
            if fault:
                outcome.damaged.append((partition, handout.page, fault))
                outcome.unfetched.append(handout)
            else:
                handouts.append(handout)
        outcome.handouts += handouts
        for reply in told:
            outcome.damaged += [(partition, page, reason) for page, reason in reply.damaged.items()]
            outcome.forgetful += [(partition, page) for page in reply.forgetful]
        self.terms.note_handouts(partition, handouts)
        last, got = told[-1], len(handouts)
        self._note(partition, told, outcome)
        # What waits for a full slot is not in the wait: `ask` says when one opens. Slots in use count as full, see `RoundTrips`.
        is_full = bool(work.slots) or (work.per_host > 0 and got > 0)
        known.waits_for_room = got >= want or is_full
        wait = last.wait if got else max(last.wait, _SHORTEST_WAIT_S)
        if most <= got < want:
            wait, outcome.is_full = 0.0, True  # there may be more
        # A partition that was asked for a part of what was wanted may have more, once it has the budget.
        known.open_at = now + min(wait, self.terms.token_s(partition)) if want <= got < work.want else now + wait
        known.look_at = now + LOOK_S

    def _note(self, partition: int, told: Sequence[Dispatched], outcome: Outcome) -> None:
        """Note what replies say of the partition and its server."""
        known, last = self._partitions[partition], told[-1]
        if self.watch is not None:
            for reply in told:
                self.watch.note(partition, reply, self._sent)
        outcome.has_forgotten |= 0 <= known.forgotten < last.forgotten
        known.forgotten, known.plan, known.log_price = last.forgotten, last.plan, last.log_price

    def _give_back(self, work: Exchange, outcome: Outcome) -> None:
        """Give back what a server gave that has lost what it knew of its hosts' last fetches: requests, and turns of hosts."""
        for turn in work.turns:
            if turn.at:
                outcome.never.append(Start(turn.host, 0.0, turn.awaited))
                turn.at = 0.0
                outcome.turns.append(turn)
        outcome.unfetched += outcome.handouts
        for partition, handouts in grouped(outcome.handouts, lambda handout: handout.partition).items():
            released = [Observation(handout, RELEASE, handout.row, counters={"leases_released": 1}) for handout in handouts]
            with contextlib.suppress(StateUnavailableError):  # else the leases run out
                self.namespace.run(observe_calls(partition, released, [handout.token for handout in handouts]))
        outcome.handouts = []

    def _read_plan(self, partition: int) -> None:
        known, name = self._partitions[partition], self.namespace.key
        if known.plan <= known.published.number:
            return
        tables = [["GET", name(table, partition)] for table in TABLES]
        flat, *packed = self.namespace.commands([["HGETALL", name("plan", partition)], *tables], partition=partition)
        published = Published.parse(texts(flat), *packed)
        # A damaged number of the plan is no reason to read it again and again.
        known.published = published if published.number >= known.plan else replace(published, number=known.plan)

    def terms_of(self, partition: int) -> Terms:
        """Return what deadlines of a partition go by now, as far as this process knows."""
        known = self._partitions[partition]
        return Terms(known.published.log_price if known.log_price is None else known.log_price, known.published, self.settings)
