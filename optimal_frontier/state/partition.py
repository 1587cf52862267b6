"""What is asked of a partition, as script calls, and what their replies mean."""

from __future__ import annotations

import heapq
import math
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgpack

from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import KEEP, PAGE_BYTES, RELEASE, REST, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import HEAD_BYTES, Row, pack_tail, split_tail
from optimal_frontier.state.soundness import rows_of
from optimal_frontier.state.visit_log import pack_visits
from optimal_frontier.state.visit_notes import change_fields, note_calls

#: Pages of one script call, so that none blocks the server for long; and of one that has more to do for each.
BATCH: Final = 64
HEAVY_BATCH: Final = 32
#: Seconds of its budget that a partition saves up, for a crawler whose round trips are short.
BUCKET_S: Final = 0.1
#: Hosts of whose room one call tells, those that have least: a script looks past those that are full.
MOST_ROOMS: Final = 512
#: Stands for "no time", microseconds.
FAR_US: Final = 9e15

_META: Final = struct.Struct("<dII")
_ASK: Final = struct.Struct("<III10d")
_ROOM: Final = struct.Struct("<II")
_STATE: Final = struct.Struct("<10d")
_TURN: Final = struct.Struct("<dddd")
_ASKS: Final = struct.Struct("<dd?")
_SHUT: Final = struct.Struct("<ddd")
_RENEWAL: Final = struct.Struct("<dd")
_HOST: Final = struct.Struct("<I")

# Of a rank: pages that can arrive in order, steps of the importance, and the priorities that are told apart.
_ARRIVALS, _STEPS, _PRIORITIES = 2**27, 2**10, 2**15
_STEPS_AN_OCTAVE: Final = 16

#: What `add_pages` says of a page.
NEW, KNOWN, REPLACED, FULL_HOST, FULL_PATTERN = 1, 0, 2, -1, -2


def rank_of(priority: float, importance: float) -> float:
    """Return the rank of a first visit without its arrival: by priority, then importance, then arrival; the lowest goes first.

    A rank is one double, so it has limits: priorities are whole and within 32,767 of 0, importances that differ by less than 4% are one,
    and so are those beyond 2**32 or below 2**-32; 134 million pages arrive in order.

    Examples
    --------
    >>> rank_of(1, 1.0) < rank_of(0, 2.0) < rank_of(0, 1.0) < 0
    True
    """
    first = _PRIORITIES - 1 - round(min(max(priority, 1 - _PRIORITIES), _PRIORITIES - 1))
    weight = round(math.log2(importance) * _STEPS_AN_OCTAVE) if 0 < importance < math.inf else 0
    then = _STEPS // 2 - 1 - min(max(weight, 1 - _STEPS // 2), _STEPS // 2 - 1)
    return float((first * _STEPS + then) * _ARRIVALS - 2 * _PRIORITIES * _STEPS * _ARRIVALS)


def priority_of(rank: float) -> float:
    """Return the priority in a rank, with its arrival or without.

    Examples
    --------
    >>> priority_of(rank_of(-7, 2.5)), priority_of(rank_of(3, 1.0) + 1234)
    (-7.0, 3.0)
    """
    first = (rank + 2 * _PRIORITIES * _STEPS * _ARRIVALS) // (_STEPS * _ARRIVALS)
    return float(_PRIORITIES - 1 - first)


def add_calls(partition: int, pages: Sequence[NewPage]) -> list[Call]:
    """Return the calls that add pages; each yields per page `NEW`, `KNOWN`, `REPLACED`, `FULL_HOST` or `FULL_PATTERN`, or the stored value
    of a page that is in no queue (retired, done)."""
    calls = []
    for at in range(0, len(pages), HEAVY_BATCH):
        arguments: list[Any] = []
        for new in pages[at : at + HEAVY_BATCH]:
            meta = _META.pack(rank_of(new.priority, new.stated or new.row.importance), new.host_limit, new.pattern_limit)
            arguments += (new.page, new.host, meta, new.row.pack(), pack_tail(new.stated, new.record))
        calls.append(Call(partition, "add_pages", arguments))
    return calls


def count_calls(partition: int, counters: Mapping[str, int]) -> list[Call]:
    """Return the commands that add to counters what no page or lease brings."""
    return [Call(partition, "HINCRBY", ["stats", name, by]) for name, by in counters.items() if by]


class Belief(NamedTuple):
    """What a crawler takes for true of its server.

    Attributes
    ----------
    expected : float
        What the server's time should be by the crawler's own clock, microseconds since the epoch; 0: it cannot tell.
    within : float
        By how many microseconds the server's clock may differ from that and is believed all the same.
    run : float
        Of the namespace; 0: the caller does not live long enough to care; below 0: it was read a moment ago, so that it holds against what
        others have told the partition.
    """

    expected: float = 0.0
    within: float = 0.0
    run: float = 0.0


NO_BELIEF: Final = Belief()


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted of a partition. Times in seconds, rates per second.

    Attributes
    ----------
    n : int
        Requests; one call hands out `most` of them.
    per_host : int
        Most requests to a host; 0: no limit.
    lease : float
        How long they may go without a renewal.
    budget : float
        Of the partition, fetches per second; 0: no limit.
    share : float
        Of the budget for first visits while others are due. 1 more: they come first, and have that share while pinned pages or forced
        ones are due, which keep their times.
    host_delay, host_period : float
        Least seconds between two requests to a host, and mean seconds.
    room : mapping of int to int
        Hosts (by number) that take fewer requests now, and how many; of those that have least `MOST_ROOMS` count.
    awaited : float
        How long a host stays shut at most for a fetch whose start was not told; 0: starts are not told.
    belief : Belief
        What the caller knows of the server.
    drawn : int
        Fetches that were no dispatch (redirects, retries, robots.txt), for which the budget pays first, below zero if need be.
    depth : float
        Seconds of the budget that are saved up at most until they are asked for.
    """

    n: int
    per_host: int = 0
    lease: float = 15.0
    budget: float = 0.0
    share: float = 0.2
    host_delay: float = 0.0
    host_period: float = 0.0
    room: Mapping[int, int] = field(default_factory=dict)
    awaited: float = 0.0
    belief: Belief = NO_BELIEF
    drawn: int = 0
    depth: float = BUCKET_S

    @property
    def most(self) -> int:
        """How many requests one call hands out at most: fewer where it goes through queues of hosts."""
        return HEAVY_BATCH if self.share >= 1.0 else BATCH


def bucket_of(budget: float, depth: float = BUCKET_S) -> float:
    """Return how many fetches a budget (1/s) may save up: those of ``depth`` seconds, or one and what comes while it waits to be used.

    Examples
    --------
    >>> bucket_of(100.0), bucket_of(100.0, 0.3), bucket_of(5.0), bucket_of(5.0, 0.16), bucket_of(0.1)
    (10.0, 30.0, 1.5, 1.8, 1.01)
    """
    return max(depth * budget, min(1.9, 1.0 + depth * budget))


def dispatch_call(partition: int, ask: Ask) -> Call:
    """Return the call that hands out requests; `parse_dispatch` reads its reply."""
    paced = ask.host_delay, ask.host_period, ask.awaited
    counts = min(ask.n, ask.most), ask.per_host, ask.drawn
    said = _ASK.pack(*counts, ask.lease, ask.budget, bucket_of(ask.budget, ask.depth), ask.share, *paced, *ask.belief)
    room = ask.room.items() if len(ask.room) <= MOST_ROOMS else heapq.nsmallest(MOST_ROOMS, ask.room.items(), lambda told: told[1])
    return Call(partition, "dispatch", [said, b"".join(_ROOM.pack(host, max(0, left)) for host, left in room)])


@dataclass(slots=True)
class Dispatched:
    """The reply of a dispatch.

    Attributes
    ----------
    now : float
        Server's time, seconds since the epoch.
    wait : float
        Seconds until it is worth asking again; inf: there is nothing to wait for.
    log_price : float
    plan : int
        Number of the last plan.
    forgotten : int
        Pages forgotten so far: what was known to be stored may not be any more when it grows.
    server_time : float
        What the server's own clock says, seconds since the epoch.
    run : float
        Of the namespace, as the last crawler had it that had just read it; 0: none has.
    dispatches : int
        Calls of crawlers before this one.
    handouts : list of Handout
    damaged : dict of bytes to str
        Pages that are leased and cannot be read, and why.
    forgetful : list of bytes
        Pages among the handouts whose memory cannot be read: nothing is remembered of them.
    """

    now: float
    wait: float
    log_price: float
    plan: int
    forgotten: int
    server_time: float
    run: float
    dispatches: int
    handouts: list[Handout]
    damaged: dict[bytes, str]
    forgetful: list[bytes]


def parse_dispatch(partition: int, reply: list[Any]) -> Dispatched:
    """Read the reply of a dispatch."""
    received = time.monotonic()
    header, pages, values, memories, words, names = reply
    now, wait, ranked_at, log_price, plan, forgotten, token, own, run, dispatches = _STATE.unpack(header)
    at = now / 1e6
    wait_s, counts = wait / 1e6 if wait < FAR_US else math.inf, (int(plan), int(forgotten))
    result = Dispatched(at, wait_s, log_price, *counts, own / 1e6, run, int(dispatches), [], {}, [])
    numbers = [_HOST.unpack_from(value)[0] if len(value) >= _HOST.size else 0 for value in values]
    said: dict[int, tuple[str, HostWords]] = {}
    rows, broken = rows_of(values)
    for i, (page, value, number) in enumerate(zip(pages, values, numbers, strict=True)):
        if number not in said:
            at_host = len(said)
            name = names[at_host].decode("utf-8", "replace") if names[at_host] is not None else ""
            said[number] = name, HostWords.unpack(words[at_host] if words else None)
        host, host_words = said[number]
        try:
            row = rows[i] or Row.unpack(value)
            stated, record = split_tail(value)
            decoded = unpack_record(record, host)
        except (ValueError, struct.error) as error:
            result.damaged[page] = str(error)
            continue
        if i in broken or len(page) != PAGE_BYTES or not 0.0 <= stated < math.inf:
            result.damaged[page] = broken.get(i, "has a name that is none, or states an importance that is no number")
            continue
        memory = NOTHING_REMEMBERED
        if memories and memories[i]:
            try:
                memory = Memory.unpack(memories[i])
            except ValueError:
                result.forgetful.append(page)
        due = deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), ranked_at)
        late = None if row.b == 0 else max(0.0, at - due)
        result.handouts.append(
            Handout(partition, page, token, at, received, late, log_price, row, stated, decoded, host, host_words, memory, value)
        )
    return result


def hold_call(partition: int, host: str, seconds: float, belief: Belief = NO_BELIEF) -> Call:
    """Return the call that keeps requests from a host for a while."""
    return Call(partition, "shut_hosts", [_ASKS.pack(belief.expected, belief.within, True), host, _SHUT.pack(seconds * 1e6, 0.0, 0.0)])


def draw_call(
    partition: int, budget: float, fetches: int, lease: float = 15.0, belief: Belief = NO_BELIEF, depth: float = BUCKET_S
) -> Call:
    """Return the call that pays for fetches that are no dispatch; ``lease`` and ``depth`` are those of the dispatches, seconds."""
    ask = Ask(0, lease=lease, budget=budget, depth=depth, belief=belief._replace(run=0.0), drawn=fetches)
    return dispatch_call(partition, ask)._replace(beside=count_calls(partition, {"extra_fetches": fetches}))


def starts_calls(partition: int, pause: float, starts: Sequence[tuple[str, float, float]]) -> list[Call]:
    """Return the calls that tell when fetches began: host, server's time (s; 0: it never did), and until when their turn awaits them (us).

    ``pause`` are the least seconds between two starts.
    """
    calls = []
    for at in range(0, len(starts), BATCH):
        told: list[Any] = [_ASKS.pack(0.0, 0.0, False)]
        for host, began, named in starts[at : at + BATCH]:
            told += (host, _SHUT.pack(pause * 1e6 if began else 0.0, began * 1e6, named))
        calls.append(Call(partition, "shut_hosts", told))
    return calls


def turns_calls(partition: int, pause: float, awaited: float, hosts: Sequence[str], belief: Belief = NO_BELIEF) -> list[Call]:
    """Return the calls that take turns of hosts; each yields per host the microseconds until then, or -1: ask again; and until when its
    start is awaited (us)."""
    terms = _TURN.pack(pause * 1e6, awaited * 1e6, belief.expected, belief.within)
    return [Call(partition, "take_turns", [terms, *hosts[at : at + BATCH]]) for at in range(0, len(hosts), BATCH)]


def observe_calls(partition: int, observations: Sequence[Observation], tokens: Sequence[float], *, is_logged: bool = False) -> list[Call]:
    """Return the calls that end leases; each yields a byte per observation: 1 (counted) or 0 (the lease was no longer valid).

    ``tokens`` are those of the leases now, after renewals. Where ``is_logged``, visits that gave a bit go to the stream ``visited``.
    """
    starts = range(0, len(observations), BATCH)
    return [_observe_call(partition, observations[at : at + BATCH], tokens[at : at + BATCH], is_logged) for at in starts]


def _observe_call(partition: int, observations: Sequence[Observation], tokens: Sequence[float], is_logged: bool) -> Call:
    arguments: list[bytes] = [b"", pack_visits(observations) if is_logged else b"", *map(_value_after, observations)]
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens), 1)}
    tokens_of = {number: numbers[token] for number, token in enumerate(tokens, 1) if token != tokens[0]}
    ops: dict[int, int] = {}
    memories: dict[int, int] = {}
    changes: dict[int, list[Any]] = {}
    counted: dict[tuple[tuple[str, int], ...], bytearray] = {}
    for number, seen in enumerate(observations, 1):
        if seen.op != KEEP:
            ops[number] = seen.op
        if seen.memory is not None:
            packed = seen.memory.pack()
            arguments += [packed] if packed else []
            memories[number] = len(arguments) if packed else 0
        if seen.change is not None:
            changes[number] = change_fields(seen.handout.page, seen.row.b, seen.change)
        if seen.counters:
            counted.setdefault(tuple(seen.counters.items()), bytearray()).append(number)
    pages, digits = b"".join([seen.handout.page for seen in observations]), [b"%d" % token for token in numbers]
    counters = [one for by, of in counted.items() for one in (dict(by), bytes(of))]
    arguments[0] = msgpack.packb((pages, digits, tokens_of, ops, memories, changes, counters), use_bin_type=False)
    return Call(partition, "observe", arguments, note_calls(partition, observations))


def _value_after(seen: Observation) -> bytes:
    """Return what is stored of a page after a visit; empty where nothing changes, or nothing is left."""
    handout = seen.handout
    if seen.op in (KEEP, REST):
        return seen.row.pack() + handout.value[HEAD_BYTES:]
    return handout.value if seen.op == RELEASE and handout.row.b == 0 else b""


def renew_call(partition: int, leases: Sequence[tuple[bytes, float, float]]) -> Call:
    """Return the call that renews leases: page, token, new token of each; it yields 1 (held) or 0 per lease."""
    return Call(partition, "renew", [word for page, token, new in leases for word in (page, _RENEWAL.pack(token, new))])


def renewed(token: float, lease_s: float) -> float:
    """Return the token of a lease that is renewed for so many seconds from when its present term began, or later.

    Tokens are odd; a renewal must move it, so it is at least one millisecond later.
    """
    return token + max(1000, round(lease_s * 5e5)) * 2


def become_alias_call(seen: Observation, token: float, alias: bytes, counters: Mapping[str, int]) -> Call:
    """Return the call that ends the lease of a page that has moved: it yields 1, or 0 if the lease was no longer valid.

    ``alias`` is what the hash ``aliases`` gets, see `aliases.pack_alias`.
    """
    handout = seen.handout
    change = [] if seen.change is None else change_fields(handout.page, seen.row.b, seen.change)
    packed = msgpack.packb((counters, change), use_bin_type=False)
    arguments = [handout.page, struct.pack("<d", token), alias, packed]
    return Call(handout.partition, "become_alias", arguments, note_calls(handout.partition, [seen]))


def revise_calls(partition: int, revisions: Sequence[tuple[bytes, float, Row | None, Memory | None]], counter: str = "") -> list[Call]:
    """Return the calls that rewrite heads: page, b of the head that the new one was made from, the new head, memory (None: leave it).

    Each yields per page 1 (done), 0 (not known, or visited since) or 2 (under way, or waiting for its first visit).
    """
    calls = []
    for at in range(0, len(revisions), HEAVY_BATCH):
        arguments: list[Any] = [counter]
        for page, b, row, memory in revisions[at : at + HEAVY_BATCH]:
            arguments += (page + struct.pack("<d", b), b"" if row is None else row.pack(), b"" if memory is None else memory.pack() or b"-")
        calls.append(Call(partition, "revise", arguments))
    return calls
