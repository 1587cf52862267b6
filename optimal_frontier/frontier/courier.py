"""The courier: runs the dispatcher's round trips on a thread of its own, so that Redis never stops a reactor.

What is to be sent is collected while a round trip is under way and goes with the next one. An outage stops nothing for good: what was
not acknowledged is sent again (pages, observations and moves are idempotent), what was acknowledged in the last two seconds too, because a
server that died may have lost up to one second of its log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from optimal_frontier.errors import OptimalFrontierError, StateUnavailableError
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange, Outcome, SlotRoom
from optimal_frontier.frontier.traps import TrapLog
from optimal_frontier.state.records import Handout, Move, NewPage, Observation, Published

logger = logging.getLogger(__name__)

#: Seconds between two signs of life; an owner silent for 15 s loses its leases.
HEARTBEAT_S: Final = 5.0
#: Seconds after which to look again whatever the last reply said: another process may have planned, forced or added something.
_LONGEST_WAIT_S: Final = 1.0
#: Seconds for which acknowledged work is kept, in case the server lost it.
REPLAY_S: Final = 2.0
#: Pause between two exchanges: what comes in meanwhile shares the next round trip, and the caller's thread keeps the interpreter.
_SPACING_S: Final = 0.004
#: Least seconds between two looks whether the crawl is complete.
_LOOK_S: Final = 0.25
#: Seconds between attempts to reach Redis again, first and longest.
_RETRY_FIRST_S: Final = 0.1
_RETRY_LONGEST_S: Final = 2.0
#: Least seconds between two exchanges that find nothing.
_SHORTEST_WAIT_S: Final = 0.01


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

    Attributes
    ----------
    ready : deque of Handout
        Requests handed out and not yet taken. Appending and popping are atomic.
    """

    def __init__(self, dispatcher: Dispatcher, wake: Callable[[], None], complete_when: Callable[[], bool] | None = None) -> None:
        self.dispatcher = dispatcher
        #: What ``complete_when`` said last; adding a page takes it back.
        self.complete = False
        self._complete_when = complete_when
        self._next_look = 0.0
        self.ready: deque[Handout] = deque()
        #: Why the thread stopped for good, if it did.
        self.failure: OptimalFrontierError | None = None
        #: Grows when pages were forgotten or the connection was lost: what was known to be stored may not be any more.
        self.generation = 0
        #: Grows with every exchange that found nothing to hand out.
        self.idle_exchanges = 0
        self._wake = wake
        self._condition = threading.Condition()
        self._pages: list[NewPage] = []
        self._observations: list[Observation] = []
        self._draws = 0
        self._holds: list[tuple[str, float]] = []
        self._moves: list[Move] = []
        self._flags: list[bytes] = []
        self._counters: Counter[str] = Counter()
        #: Links that were not followed, as far as this process has seen them.
        self.traps = TrapLog()
        self._want = 0
        self._slots: Mapping[str, SlotRoom] = {}
        self._per_host = 0
        self._live: dict[int, bytes] = {}
        self._next_dispatch = 0.0
        self._waiting_for_room = True
        self._busy = False
        self._stopping = False
        #: When the outage that is going on began, 0 if none is.
        self._lost_at = 0.0
        self._epoch = b""
        self._recent: deque[tuple[float, Sequence[NewPage], Sequence[Observation], Sequence[Move]]] = deque()
        self._thread = threading.Thread(target=self._run, name="optimal_frontier-courier", daemon=True)

    @property
    def published(self) -> Published:
        """The last plan's multiplier and prior."""
        return self.dispatcher.published

    @property
    def live(self) -> int:
        """Number of leases that this process holds."""
        return len(self._live)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, pages: Sequence[NewPage]) -> None:
        """Store pages, soon."""
        with self._condition:
            self.complete = False
            self._pages.extend(pages)
            self._condition.notify()

    def observe(self, observation: Observation) -> None:
        """End a lease, soon."""
        with self._condition:
            # The slot may be leased anew since: then this is an old lease's end.
            if self._live.get(observation.slot) == observation.token:
                del self._live[observation.slot]
            self._observations.append(observation)
            self._condition.notify()

    def draw(self, fetches: int = 1) -> None:
        """Pay for fetches that were not dispatched."""
        with self._condition:
            self._draws += fetches
            self._condition.notify()

    def hold(self, host: str, seconds: float) -> None:
        """Leave a host alone for a while, in every crawler."""
        with self._condition:
            self._holds.append((host, seconds))
            self._condition.notify()

    def move(self, move: Move) -> None:
        """Give a page another identity, soon, and not before the observations that came before."""
        with self._condition:
            self._moves.append(move)
            self._condition.notify()

    def flag(self, name: bytes) -> None:
        """Tell every crawler of a content that is no page's own, see `block_pages.name_of`."""
        with self._condition:
            self._flags.append(name)
            self._condition.notify()

    def trap(self, reason: str, url: str) -> None:
        """Count a link that is not followed; see `traps.REASONS`."""
        self.traps.note(reason, url)
        with self._condition:
            # It goes along with the next work: a number is no reason for a round trip.
            self._counters[f"trapped_{reason}"] += 1

    def ask(self, want: int, slots: Mapping[str, SlotRoom], per_host: int) -> None:
        """Say how many requests the downloader could take now, beyond those in `ready`, and the room of its busy slots."""
        with self._condition:
            grown = want > self._want or (self._want > 0 and slots != self._slots)
            self._want, self._slots, self._per_host = want, slots, per_host
            if grown:
                # Room that was not there when the last wait was worked out; a wait for a deadline still stands otherwise.
                if self._waiting_for_room:
                    self._next_dispatch = 0.0
                self._condition.notify()

    def look_again(self) -> None:
        """Ask for requests before the last wait is over: a plan may have brought deadlines forward."""
        with self._condition:
            self._next_dispatch = 0.0
            self._condition.notify()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything added and observed so far is stored; return whether that was so in time."""
        with self._condition:
            return self._condition.wait_for(
                lambda: not (self._has_work() or self._busy) or self.failure is not None,
                timeout_s,
            )

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Send what is left, give back every lease, and end the thread; return whether that was done in time."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        retry_s = _RETRY_FIRST_S
        heartbeat = 0.0
        carried = Exchange()
        while True:
            carried = self._collect(carried, heartbeat)
            if carried.live is not None:
                heartbeat = time.monotonic() + HEARTBEAT_S
            try:
                outcome = self.dispatcher.exchange(carried)
                if self._stopping and not (self._pages or self._observations or self._moves):
                    self.dispatcher.leave()
                    return
            except StateUnavailableError as error:
                if self._stopping:
                    logger.error("stopping without Redis: %s; what was under way will be handed out again", error)
                    return
                self._lost_at = self._lost_at or time.monotonic()
                logger.warning("%s; trying again in %.1f s, nothing is lost", error, retry_s)
                time.sleep(retry_s)  # the thread has nothing else to do
                retry_s = min(_RETRY_LONGEST_S, 2 * retry_s)
                heartbeat = 0.0  # nobody heard it
                self._reconnect(carried)
                continue
            except OptimalFrontierError as error:
                logger.critical("%s", error)
                self._fail(error)
                return
            except Exception as error:
                # A thread that ends without a word would leave the spider waiting for ever.
                logger.critical("the courier cannot go on", exc_info=True)
                self._fail(OptimalFrontierError(f"internal error: {error!r}"))
                return
            retry_s = _RETRY_FIRST_S
            self._lost_at = 0.0
            self._deliver(carried, outcome)
            carried = Exchange()
            self._look_whether_complete()
            time.sleep(_SPACING_S)

    def _fail(self, error: OptimalFrontierError) -> None:
        with self._condition:
            self.failure = error
            self._condition.notify_all()
        self._wake()

    def _look_whether_complete(self) -> None:
        began = time.monotonic()
        if self._complete_when is None or began < self._next_look:
            return
        try:
            complete = self._complete_when()
        except OptimalFrontierError as error:
            logger.debug("cannot tell whether the crawl is complete: %s", error)  # the next exchange meets the same outage
            return
        with self._condition:
            self.complete = complete and not self._pages
        # What it costs to look stays below a twentieth of the time.
        self._next_look = began + max(_LOOK_S, 20 * (time.monotonic() - began))
        if self.complete:
            self._wake()

    def _has_work(self) -> bool:
        return bool(self._pages or self._observations or self._draws or self._holds or self._moves or self._flags)

    def _collect(self, carried: Exchange, heartbeat: float) -> Exchange:
        with self._condition:
            while not (self._stopping or self._has_work() or carried.pages or carried.observations or carried.moves):
                now = time.monotonic()
                until = min(heartbeat, self._next_dispatch) if self._want > 0 else heartbeat
                if self._complete_when is not None:
                    until = min(until, self._next_look)
                if until <= now:
                    break
                self._condition.wait(until - now)
            now = time.monotonic()
            carried.pages += self._pages
            carried.observations += self._observations
            carried.draws += self._draws
            carried.live = list(self._live.items()) if now >= heartbeat else None
            carried.want = 0 if self._stopping else self._want
            carried.slots, carried.per_host = self._slots, self._per_host
            self._pages, self._observations, self._draws = [], [], 0
            carried.holds += self._holds
            carried.moves += self._moves
            carried.flags += self._flags
            self._holds, self._moves, self._flags = [], [], []
            carried.counters += self._counters
            self._counters = Counter()
            self._busy = True
        return carried

    def _deliver(self, carried: Exchange, outcome: Outcome) -> None:
        now = time.monotonic()
        for reason, page in outcome.trapped:
            self.traps.note(reason, page.host + (page.pattern if reason == "pattern" else ""))
        if carried.pages or carried.observations or carried.moves:
            self._recent.append((now, carried.pages, carried.observations, carried.moves))
        while self._recent and self._recent[0][0] < now - REPLAY_S:
            self._recent.popleft()
        with self._condition:
            self._busy = False
            self._condition.notify_all()
            if outcome.wait is not None:
                self._want = max(0, self._want - len(outcome.handouts))
                # Slots that are full, or became so with these handouts, are not in the wait: `ask` says when one opens.
                full = bool(carried.slots) or (carried.per_host > 0 and bool(outcome.handouts))
                self._waiting_for_room = len(outcome.handouts) >= carried.want or full
                wait = _LONGEST_WAIT_S if outcome.wait < 0 else min(outcome.wait, _LONGEST_WAIT_S)
                if not outcome.handouts:
                    wait = max(wait, _SHORTEST_WAIT_S)
                self._next_dispatch = now + wait
                if outcome.epoch != self._epoch:
                    self.generation += self._epoch != b""
                    self._epoch = outcome.epoch
            elif outcome.new or carried.observations:
                self._next_dispatch = 0.0  # something may be due sooner than the last wait said
            for handout in outcome.handouts:
                self._live[handout.slot] = handout.token
        self.ready.extend(outcome.handouts)
        if outcome.wait is not None and not outcome.handouts:
            self.idle_exchanges += 1
        self._wake()

    def _reconnect(self, carried: Exchange) -> None:
        try:
            self.dispatcher.store.connection.reconnect()
        except OptimalFrontierError as error:
            logger.debug("%s", error)  # the next attempt says so
            return
        pages: list[NewPage] = []
        observations: list[Observation] = []
        moves: list[Move] = []
        since = self._lost_at - REPLAY_S
        for at, some_pages, some_observations, some_moves in self._recent:
            if at >= since:
                pages += some_pages
                observations += some_observations
                moves += some_moves
        self._recent.clear()
        carried.pages[:0] = pages
        carried.observations[:0] = observations
        carried.moves[:0] = moves
        self.generation += 1
