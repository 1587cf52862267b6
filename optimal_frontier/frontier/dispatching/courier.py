"""The courier: runs the dispatcher's round trips on a thread of its own, so that Redis never stops a reactor.

Work that comes in while a round trip is under way is collected and goes with the next one. An outage stops nothing for good: work that was
not acknowledged is sent again (pages, observations and moves are idempotent). So is work that was acknowledged in the last two seconds,
because a server that died may have lost up to one second of its log: its renewals first, so that observations name a token that the server
knows. An observation whose lease was lost with the log is refused; its page is due again, and visited once more.

The observation of a revisit whose links go with an exchange goes with the next one: which of them are new is in the replies, and counts for
the page (`judging.hubs`). A crawler that dies in between has stored the links; the page is visited again when its lease ends.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from optimal_frontier.errors import OptimalFrontierError, StateForbiddenError, StateUnavailableError
from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.frontier.admitting.traps import TrapLog
from optimal_frontier.frontier.dispatching.acknowledged import Acknowledged, Renewal
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease, Moving, Outcome, SlotRoom, Start, Turn
from optimal_frontier.frontier.dispatching.found_links import with_links
from optimal_frontier.frontier.dispatching.held_leases import HeldLeases
from optimal_frontier.frontier.dispatching.nothing_left import NothingLeft
from optimal_frontier.frontier.dispatching.outages import OutageLog
from optimal_frontier.frontier.dispatching.pages_again import pages_again
from optimal_frontier.frontier.dispatching.round_trips import RoundTrips
from optimal_frontier.frontier.dispatching.server_watch import loss_of
from optimal_frontier.frontier.judging.judge import Context
from optimal_frontier.state.downloader_limits import DownloaderLimits
from optimal_frontier.state.messages import Handout, Move, NewPage, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.records import url_of_record

logger = logging.getLogger(__name__)

#: Longest time between two renewals of a lease, seconds; and as a share of the lease.
HEARTBEAT_S: Final = 5.0
_HEARTBEAT_SHARE: Final = 1 / 3
#: Seconds after which to look again whatever the last reply said: another process may have planned, forced or added something.
_LONGEST_WAIT_S: Final = 1.0
#: Seconds between attempts to reach Redis again, first and longest.
_RETRY_FIRST_S: Final = 0.1
_RETRY_LONGEST_S: Final = 2.0
#: Seconds until a turn is asked for again.
_TURN_AGAIN_S: Final = 0.02
#: Moves and signals that wait for the end of another visit are tried again after so many seconds.
_LATER_S: Final = 1.0


class Courier:
    """Carries work to the dispatcher and requests back.

    Parameters
    ----------
    dispatcher : Dispatcher
        Used by the courier's thread alone once it has started.
    wake : callable
        Called from the courier's thread when there is something new to look at; must only pass the word to the caller's own loop.
    complete_when : callable, optional
        Looked at now and then on the courier's thread: whether the crawl is complete.
    longest_s : float or None
        Seconds from a handout after which its lease is renewed no more; None: it is while the process lives. For callers that cannot say
        whether a request is still under way.

    Attributes
    ----------
    ready : deque of Handout
        Requests handed out and not yet taken. Appending and popping are atomic.
    lost : deque of Handout
        Requests whose lease was lost, or is renewed no more. One that was not sent yet is to be dropped; the page was handed out to
        somebody else, or will be.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        wake: Callable[[], None],
        complete_when: Callable[[], bool] | None = None,
        *,
        longest_s: float | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self._longest_s = longest_s
        self.ready: deque[Handout] = deque()
        self.lost: deque[Handout] = deque()
        #: Why the thread stopped for good, if it did.
        self.failure: OptimalFrontierError | None = None
        #: Grows when pages were forgotten or the connection was lost: what was known to be stored may not be any more.
        self.generation = 0
        #: Grows when the server lost what it knew: what a crawl begins with is to be sent again.
        self.beginnings = 0
        #: Grows with every exchange after which no partition has anything to hand out.
        self.idle_exchanges = 0
        #: Links that were not followed, as far as this process has seen them.
        self.traps = TrapLog()
        self._wake = wake
        self._condition = threading.Condition()
        #: Collected for the next exchange.
        self._next = Exchange()
        self.nothing_left = NothingLeft(
            self._condition, lambda: bool(self._next.pages), dispatcher.pending, dispatcher.arrivals, complete_when
        )
        self._leases = HeldLeases(dispatcher.lease_s, has_turns=dispatcher.pause_s > 0)
        self._later: list[tuple[float, Moving | NewPage | Turn]] = []
        self._next_dispatch = 0.0
        self._trips = RoundTrips()
        self._waits_for_room = True
        self._busy = False
        self._stopping = False
        #: The process ends without `stop`, and the embedded server with it.
        self._exits = False
        #: When the outage that is going on began, 0 if none is.
        self._lost_at = 0.0
        self._outages = OutageLog(dispatcher)
        #: Visits were counted: a permission that is missing later was taken away, and may be given back.
        self._had_rights = False
        self._acknowledged = Acknowledged()
        self._heartbeat_s = min(HEARTBEAT_S, _HEARTBEAT_SHARE * dispatcher.lease_s)
        self._thread = threading.Thread(target=self._run_to_the_end, name="optimal_frontier-courier", daemon=True)

    @property
    def live(self) -> int:
        """Number of leases that this process holds."""
        return len(self._leases)

    @property
    def ahead(self) -> int:
        """How many requests to ask for beyond what can be started now: what will be, until the next round trip but one."""
        return self._trips.ahead

    def context(self, handout: Handout) -> Context:
        """Return what a visit of a handout is judged by: the settings, its partition's last plan, what this process remembers."""
        return self.dispatcher.context(handout)

    def published(self, partition: int = 0) -> Published:
        """Return the last plan of a partition."""
        return self.dispatcher.published(partition)

    def start(self) -> None:
        """Start the thread."""
        atexit.register(self._note_exit)
        self._thread.start()

    def add(self, pages: Sequence[NewPage], stored: Callable[[], None] | None = None) -> None:
        """Store pages, soon; ``stored`` is called on the courier's thread when they are."""
        with self._condition:
            self.nothing_left.note_added()
            self._next.pages.extend(pages)
            if stored is not None:
                self._next.stored.append(stored)
            self._condition.notify()

    def observe(self, observation: Observation) -> None:
        """End a lease, soon."""
        with self._condition:
            self._next.ended.append((observation, self._end(observation.handout)))
            self._carry_out(observation)
            self._condition.notify()

    def move(self, move: Move) -> None:
        """Give a page another identity and end its lease, soon, and not before the observations that came before."""
        with self._condition:
            self._next.moves.append(Moving(move, self._leases.of(move.observation.handout)))
            self._carry_out(move.observation)
            self._condition.notify()

    def _carry_out(self, observation: Observation) -> None:
        """Tell all crawlers what an observation says of other pages than its own."""
        if observation.flag:
            self._next.flags.append(observation.flag)
        if observation.hold > 0.0:
            self._next.holds.append((observation.handout.host, observation.hold))

    def draw(self, fetches: int = 1, host: str = "") -> None:
        """Pay for fetches that were not dispatched: from the budget of the partition of ``host``."""
        with self._condition:
            self._next.draws[host] += fetches
            self._condition.notify()

    def hold(self, host: str, seconds: float) -> None:
        """Leave a host alone for a while, in every crawler."""
        with self._condition:
            self._next.holds.append((host, seconds))
            self._condition.notify()

    @property
    def pause_s(self) -> float:
        """Least seconds between two starts of fetches of a host; 0: starts need not be told."""
        return self.dispatcher.pause_s

    def note_start(self, host: str, turn: float, *, is_never: bool = False) -> None:
        """Say that a fetch of a host begins now, or that it never will; ``turn`` is what `use_turn` returned, or `Turn.awaited`."""
        with self._condition:
            self._next.starts.append(Start(host, 0.0 if is_never else time.monotonic(), turn))
            self._condition.notify()

    def use_turn(self, host: str) -> float | None:
        """Use the turn that came with a handout of a host, for a fetch that begins soon; return its name, or None: there was none."""
        with self._condition:
            return self._leases.use_turn(host)

    def take_turn(self, host: str) -> Turn:
        """Ask for the next turn of a host, for a fetch that was not dispatched; the caller looks at it until it has a time."""
        turn = Turn(host)
        with self._condition:
            self._next.turns.append(turn)
            self._condition.notify()
        return turn

    def holds(self, handout: Handout) -> bool:
        """Tell whether a lease is held still, as far as this process can know: it may have slept for longer than one lasts."""
        with self._condition:
            return self._leases.is_sure(handout)

    def trap(self, reason: str, url: str, links: int = 1) -> None:
        """Count links that are not followed; see `traps.REASONS`."""
        self.traps.note(reason, url, links)
        with self._condition:
            # It goes along with the next work: a number is no reason for a round trip.
            self._next.counters[f"trapped_{reason}"] += links

    def ask(self, want: int, slots: Mapping[str, SlotRoom], per_host: int, ahead: int = 0) -> None:
        """Say how many requests the downloader could take now, beyond those in `ready`, and the room of its busy slots.

        ``ahead`` of those it can take later only; while there are any, round trips are fewer.
        """
        with self._condition:
            self._trips.note_asked(want, ahead, len(self.ready))
            before = self._next
            grown = want > before.want or (before.want > 0 and slots != before.slots)
            before.want, before.slots, before.per_host = want, slots, per_host
            if grown:
                # Room that was not there when the last wait was worked out, nor for the one on its way; else a wait for a deadline stands.
                before.has_room = True
                if self._waits_for_room:
                    self._next_dispatch = 0.0
                self._condition.notify()

    def tell_limits(self, limits: DownloaderLimits) -> None:
        """Tell planners what the downloader admits; it goes along with the next round trip."""
        with self._condition:
            self._next.limits = limits

    def look_again(self) -> None:
        """Ask for requests before the last wait is over: a plan may have brought deadlines forward."""
        with self._condition:
            self._next_dispatch = 0.0
            self._next.looks_again = True
            self._condition.notify()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything added and observed so far is stored; return whether that was so in time."""
        with self._condition:
            return self._condition.wait_for(
                lambda: not (self._next.is_any or self._busy) or self.failure is not None,
                timeout_s,
            )

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Send what is left, give back every lease, and end the thread; return whether that was done in time."""
        atexit.unregister(self._note_exit)
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _note_exit(self) -> None:
        self._exits = True

    def _end(self, handout: Handout) -> Lease:
        """Return the lease of a handout, which is renewed no more; a turn that came with it and was not used is given back."""
        lease, unused = self._leases.end(handout)
        self._next.starts += unused
        return lease

    def _give_up(self, now: float) -> None:
        """Let leases run out whose result has not come for too long."""
        if self._longest_s is None:
            return
        for lease in [lease for lease in self._leases.all() if now - lease.handout.received > self._longest_s]:
            self.lost.append(lease.handout)
            self._end(lease.handout)
            logger.warning("no result of %s came within %g s: it is due again", shown(lease.handout.record["url"]), self._longest_s)

    def _run_to_the_end(self) -> None:
        try:
            self._run()
        except Exception as error:
            # A thread that ends without a word would leave the spider waiting for ever.
            logger.critical("the courier cannot go on", exc_info=True)
            self._fail(OptimalFrontierError(f"internal error: {error!r}"))

    def _run(self) -> None:
        retry_s = _RETRY_FIRST_S
        heartbeat = 0.0
        carried = Exchange()
        while True:
            carried = self._collect(carried, heartbeat)
            if time.monotonic() >= heartbeat:
                heartbeat = time.monotonic() + self._heartbeat_s
            renewals = [(lease.handout.page, lease.token, lease) for lease in carried.renewals]
            try:
                outcome = self.dispatcher.exchange(carried)
                # One that began before it was told to stop may have put off what only the last one makes at once.
                if carried.is_last and not self._next.is_any:
                    if self._lost_at:
                        logger.error("stopping without Redis; what was under way will be handed out again")
                    self._leave(carried, outcome)
                    return
            except OptimalFrontierError as error:
                if self._exits:
                    return  # nor may it start that server again
                if not self._may_pass(error):
                    logger.critical("%s", error)
                    self._fail(error)
                    return
                if self._stopping:
                    logger.error("stopping without Redis: %s; what was under way will be handed out again", error)
                    return
                self._outages.note_failure(error, retry_s, is_long=retry_s >= _RETRY_LONGEST_S)
                self._lost_at = self._lost_at or time.monotonic()
                time.sleep(retry_s)  # the thread has nothing else to do
                retry_s = min(_RETRY_LONGEST_S, 2 * retry_s)
                heartbeat = 0.0  # nobody heard it
                with self._condition:
                    self.nothing_left.note_lost()
                self._reconnect(carried)
                continue
            retry_s = _RETRY_FIRST_S
            if self._lost_at:
                heartbeat = 0.0  # the renewals that went through are as old as the outage
            self._lost_at = 0.0
            self._outages.note_answer()
            self._had_rights |= bool(carried.ended)
            done = [(page, before, lease.token, lease.handout.partition) for page, before, lease in renewals if lease.token != before]
            self._deliver(carried, outcome, done)
            if outcome.is_other_server:
                try:
                    self._begin_anew(carried)
                except StateUnavailableError as error:
                    logger.debug("%s", error)  # the next exchange meets the same outage, and then the same server
                except OptimalFrontierError as error:
                    logger.critical("%s", error)
                    self._fail(error)
                    return
                heartbeat = 0.0
            carried = Exchange()
            if self.nothing_left.look(outcome):
                self._wake()
            if not self._stopping:
                self._trips.rest()

    def _may_pass(self, error: OptimalFrontierError) -> bool:
        return isinstance(error, StateUnavailableError) or (self._had_rights and isinstance(error, StateForbiddenError))

    def _begin_anew(self, carried: Exchange) -> None:
        """Go on with a server that has lost something: tell it again what this process holds, and have the caller begin again."""
        behind, partitions = self.dispatcher.behind, self.dispatcher.namespace.partitions
        is_empty = self.dispatcher.reopen()
        if is_empty is None:
            return
        with self._condition:
            ended = [observation for observation, _ in (*carried.ended, *self._next.ended)]
            held = [lease.handout for lease in self._leases.all()]
            pages = pages_again([*held, *(one.handout for one in ended), *(moving.move.observation.handout for moving in carried.moves)])
            known = {page.page for page in self._next.pages}
            self._next.pages[:0] = [page for page in (*carried.pages, *pages) if page.page not in known]
            if is_empty and partitions == 1:  # of several the renewals tell which leases are lost
                self.lost.extend(held)
                self._leases.clear()
                self._acknowledged.forget()
            self.nothing_left.begin_anew(self.dispatcher.quiet_s)
            self.generation += 1
            self.beginnings += 1
            self._next_dispatch = 0.0
        logger.warning(
            "Redis at %s is not where it was: it %s; start requests and %d pages under way are sent to it again",
            self.dispatcher.namespace.connection.spec.display,
            loss_of(behind, partitions, is_empty=is_empty),
            len(pages),
        )
        self._wake()

    def _leave(self, carried: Exchange, outcome: Outcome) -> None:
        """Give every lease back."""
        with self._condition:
            for moving in carried.moves:
                self._end(moving.move.observation.handout)
            self._leases.take(outcome.handouts)
            leases, never = self._leases.all(), [*outcome.never, *self._leases.unused()]
        self.dispatcher.leave(leases, never)

    def _fail(self, error: OptimalFrontierError) -> None:
        with self._condition:
            self.failure = error
            self._condition.notify_all()
        self._wake()

    def _collect(self, carried: Exchange, heartbeat: float) -> Exchange:
        """Wait for work; return it, added to what was not acknowledged."""
        with self._condition:
            while not (self._stopping or self._next.is_any or carried.is_any):
                now = time.monotonic()
                until = min(heartbeat, self._next_dispatch) if self._next.want > 0 else heartbeat
                until = min([until, self.nothing_left.next_look, *(at for at, _ in self._later)])
                if until <= now:
                    break
                self._condition.wait(until - now)
            now, new = time.monotonic(), self._next
            if now >= heartbeat:
                self._give_up(now)
            new.ended, held = with_links(new.ended, [*carried.pages, *new.pages], self.published, self.dispatcher.settings)
            carried.add(new)
            carried.want = 0 if self._stopping else new.want
            carried.slots, carried.per_host = new.slots, new.per_host
            carried.under_way = self._leases.of_hosts(self.dispatcher.recent.silent_hosts.hosts())
            carried.is_last = self._stopping
            if now >= heartbeat:
                carried.renewals = list({id(lease): lease for lease in (*carried.renewals, *self._leases.all())}.values())
            for due in [one for one in self._later if one[0] <= now or self._stopping]:
                self._later.remove(due)
                if isinstance(due[1], Moving):
                    carried.moves.append(due[1])
                elif isinstance(due[1], Turn):
                    carried.turns += [due[1]] if due[1].is_wanted else []
                else:
                    carried.pages.append(due[1])
            self._next = Exchange(ended=held, want=new.want, slots=new.slots, per_host=new.per_host)
            self._busy = True
        return carried

    def _deliver(self, carried: Exchange, outcome: Outcome, renewals: Sequence[Renewal]) -> None:
        now = time.monotonic()
        for stored in carried.stored:
            stored()
        later = {id(moving) for moving in outcome.later}
        moves = [moving for moving in carried.moves if id(moving) not in later]
        self._acknowledged.note(now, carried, moves, renewals)
        with self._condition:
            self._busy = False
            self.nothing_left.note_stored(outcome.new)
            self._condition.notify_all()
            for reason, page in outcome.trapped:
                pattern = pattern_of(url_of_record(page.record, page.host)) if reason == "pattern" else ""
                self.traps.note(reason, page.host + pattern)
                self._next.counters[f"trapped_{reason}"] += 1
            for moving in moves:
                self._end(moving.move.observation.handout)
            for moving in outcome.later:
                moving.tries += 1
                self._later.append((now + _LATER_S, moving))
            self._later += [(now + _LATER_S, page) for page in outcome.told_again]
            self._later += [(now + _TURN_AGAIN_S, turn) for turn in outcome.turns]
            for lease in outcome.lost:
                if self._leases.is_held(lease):
                    self._end(lease.handout)
                    self.lost.append(lease.handout)
            self.generation += outcome.has_forgotten
            if carried.want:
                self._trips.note_given(now, carried.want, outcome)
            if outcome.wait is not None:
                self._next.want = max(0, self._next.want - len(outcome.handouts))
                self._waits_for_room = outcome.waits_for_room
                is_late = outcome.waits_for_room and self._next.has_room  # the room came while that was being worked out
                self._next_dispatch = 0.0 if is_late else now + min(outcome.wait, _LONGEST_WAIT_S)
            elif outcome.new or carried.ended:
                self._next_dispatch = 0.0  # something may be due sooner than the last wait said
            self._leases.take(outcome.handouts)
            self._next.starts += outcome.never + self._leases.give_turns_back(outcome.unfetched)
        self.ready.extend(outcome.handouts)
        if outcome.wait and not outcome.handouts:
            self.idle_exchanges += 1
        self._wake()

    def _reconnect(self, carried: Exchange) -> None:
        try:
            self.dispatcher.namespace.connection.reconnect()
        except OptimalFrontierError as error:
            self._outages.note_no_connection(error)
            return
        self._acknowledged.send_again(carried, self._lost_at)
        self.generation += 1
