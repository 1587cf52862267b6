"""What an exchange with the server carries, and what comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from optimal_frontier.state.downloader_limits import DownloaderLimits
from optimal_frontier.state.messages import Handout, Move, NewPage, Observation

_T = TypeVar("_T")


class SlotRoom(NamedTuple):
    """How many more requests one slot of the downloader takes, and the hosts that share it."""

    hosts: Sequence[str]
    room: int


@dataclass(slots=True)
class Lease:
    """A lease that this process holds, or held.

    Attributes
    ----------
    handout : Handout
        What was handed out under it.
    token : float
        Its present token.
    renewed_at : float
        Local monotonic time from which its term runs, seconds.
    next, asked_at : float
        Token that a renewal gives which is under way, and when it was asked for by the same clock; 0: none is.
    """

    handout: Handout
    token: float
    renewed_at: float
    next: float = 0.0
    asked_at: float = 0.0

    @classmethod
    def of(cls, handout: Handout) -> Lease:
        """Return the lease that came with a handout."""
        return cls(handout, handout.token, handout.received)

    @property
    def present(self) -> float:
        """The token that an observation has to name: that of a renewal which goes before it, or the last one that is known to hold."""
        return self.next or self.token


@dataclass(slots=True)
class Moving:
    """A move that is to be carried out under its lease, and how often that was put off."""

    move: Move
    lease: Lease
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """A fetch of a host began at a local monotonic time, seconds; 0: it never will. ``turn``: until when its turn awaits it, see `Turn`."""

    host: str
    at: float
    turn: float


@dataclass(slots=True)
class Turn:
    """A turn of a host for a fetch that is no dispatch: when it may begin, local monotonic time; 0: that is not known yet.

    ``awaited``: until when the host waits to be told of its start, by the server (us). That is its name: no later turn has the same.
    """

    host: str
    at: float = 0.0
    awaited: float = 0.0
    is_wanted: bool = True


#: A request that ended, and its lease.
Ended = tuple[Observation, Lease]


@dataclass
class Exchange:
    """What one round trip carries.

    Attributes
    ----------
    pages : list of NewPage
    ended : list of (Observation, Lease)
    counted : list of Observation
        Those of them that the server took, and whose consequences are still to be carried out.
    moves : list of Moving
    renewals : list of Lease
        To be renewed.
    again : list of (page, token, new token, partition)
        Renewals of the last seconds that the server may have lost.
    want : int
        Requests; 0 asks for none.
    slots : mapping of str to SlotRoom
        Slots of the downloader that are not free.
    per_host : int
        Most requests to any host; 0: no limit.
    under_way : set of str
        Hosts of which this process holds leases, as far as they take one request at a time.
    draws : Counter
        Fetches that were not dispatched, by host.
    holds : list of (str, float)
        Hosts to leave alone, and for how many seconds.
    starts : list of Start
    turns : list of Turn
        To be taken.
    flags : list of bytes
        Names of contents that are no page's own.
    counters : Counter
        Numbers that no page brings.
    limits : DownloaderLimits or None
        What the downloader admits, if it is told now.
    has_room : bool
        Slots have opened since the last exchange: partitions that were limited by that are worth asking.
    looks_again : bool
        So are all.
    stored : list of callable
        Told when the pages are stored.
    is_last : bool
        Nothing can be put off.
    """

    pages: list[NewPage] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    counted: list[Observation] = field(default_factory=list)
    moves: list[Moving] = field(default_factory=list)
    renewals: list[Lease] = field(default_factory=list)
    again: list[tuple[bytes, float, float, int]] = field(default_factory=list)
    want: int = 0
    slots: Mapping[str, SlotRoom] = field(default_factory=dict)
    per_host: int = 0
    under_way: AbstractSet[str] = frozenset()
    draws: Counter[str] = field(default_factory=Counter)
    holds: list[tuple[str, float]] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    flags: list[bytes] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    limits: DownloaderLimits | None = None
    has_room: bool = False
    looks_again: bool = False
    stored: list[Callable[[], None]] = field(default_factory=list)
    is_last: bool = False

    @property
    def is_any(self) -> bool:
        """Whether there is work that is worth a round trip."""
        return bool(self.pages or self.ended or self.moves or self.draws or self.holds or self.flags or self.starts or self.turns)

    def add(self, new: Exchange) -> None:
        """Add the work that has come since; what is asked for is the caller's."""
        self.pages += new.pages
        self.stored += new.stored
        self.ended += new.ended
        self.moves += new.moves
        self.draws += new.draws
        self.holds += new.holds
        self.starts += new.starts
        self.turns = [turn for turn in (*self.turns, *new.turns) if turn.is_wanted]
        self.flags += new.flags
        self.counters += new.counters
        self.limits = new.limits or self.limits
        self.has_room |= new.has_room
        self.looks_again |= new.looks_again


@dataclass
class Outcome:
    """What came back.

    Attributes
    ----------
    handouts : list of Handout
    wait : float or None
        Seconds until a partition is worth asking; 0: one is now. None: no requests were asked for.
    waits_for_room : bool
        There may be more behind full slots.
    new : int
        Pages that were added, or that came back: retired ones that are linked to, held ones that have another callback.
    trapped : list of (str, NewPage)
        Pages that were not taken, and why (see `traps.REASONS`).
    replaced : list of (int, bytes)
        Partition and identity of known pages that were yielded with another record.
    lost : list of Lease
        Leases that were to be renewed and are no longer held.
    has_forgotten : bool
        Pages were forgotten since the last exchange.
    later : list of Moving
        Moves that were put off.
    damaged : list of (int, bytes, str)
        Partition, identity and fault of pages that are put aside.
    forgetful : list of (int, bytes)
        Partition and identity of pages whose memory cannot be read.
    told_again : list of NewPage
        Pages under way of which a source told: it is to be said again.
    turns : list of Turn
        To be asked for again.
    unfetched : list of Handout
        Of which no request is made.
    never : list of Start
        Of turns that were given and are not used.
    is_other_server : bool
        The server is not the one it was.
    is_full : bool
        A call handed out as much as one does, and less than was asked for.
    """

    handouts: list[Handout] = field(default_factory=list)
    wait: float | None = None
    waits_for_room: bool = False
    new: int = 0
    trapped: list[tuple[str, NewPage]] = field(default_factory=list)
    replaced: list[tuple[int, bytes]] = field(default_factory=list)
    lost: list[Lease] = field(default_factory=list)
    has_forgotten: bool = False
    later: list[Moving] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    unfetched: list[Handout] = field(default_factory=list)
    never: list[Start] = field(default_factory=list)
    is_other_server: bool = False
    is_full: bool = False
    told_again: list[NewPage] = field(default_factory=list)
    damaged: list[tuple[int, bytes, str]] = field(default_factory=list)
    forgetful: list[tuple[int, bytes]] = field(default_factory=list)

    def take(self, part: Outcome) -> None:
        """Add what came of a part of an exchange; one that asked for requests says when to ask again."""
        self.wait = part.wait if part.wait is not None else self.wait
        self.waits_for_room |= part.waits_for_room
        self.has_forgotten |= part.has_forgotten
        self.is_other_server |= part.is_other_server
        self.is_full |= part.is_full
        self.new += part.new
        for name, some in vars(self).items():
            if isinstance(some, list):
                some.extend(getattr(part, name))


def grouped(values: Iterable[_T], key: Callable[[_T], int]) -> dict[int, list[_T]]:
    """Return values by their partitions."""
    groups: dict[int, list[_T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
