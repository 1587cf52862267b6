"""A page moves: it arrives under its new name with all that is known of it, then its old name becomes an alias, and its lease ends.

Each step is idempotent, and the two may be in different partitions. A crawler that dies in between leaves the page under both names; its
next visit is redirected again, and carries on.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from optimal_frontier.frontier.judging.moved_pages import Merged, merge, rebounded
from optimal_frontier.state.aliases import Place, drop_aliases, follow, pack_alias, point, split_alias
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, KEPT_CHANGES, Move, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import add_calls, observe_calls, revise_calls
from optimal_frontier.state.rows import ACTIVE, RETIRED, Row, pack_tail, split_tail
from optimal_frontier.state.visit_notes import change_fields, note_calls

#: A page that so many name as canonical is named by mistake, and one that names another one each time goes on for ever.
CANONICAL_ALIASES: Final = 20
#: Of more aliases of a page the oldest are given up: a link to one of them makes a page of it, until it moves again.
MOST_ALIASES: Final = 100
_TOKEN: Final = struct.Struct("<d")


def carry_out(namespace: Namespace, move: Move, token: float, *, at_last: bool = False) -> bool:
    """Carry out a move, or end its lease as that of any other visit where the move is refused.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    move : Move
        With the observation of the visit that showed it.
    token : float
        Of the lease of that visit now.
    at_last : bool
        It cannot be put off.

    Returns
    -------
    bool
        False: the page at the target is being fetched, so the move has to wait for the end of that.

    Notes
    -----
    Refused is a target that is fetched once only; and, where the page itself says so (rel=canonical), one that the page was called before,
    or one that `CANONICAL_ALIASES` others name.
    """
    observation, target = move.observation, move.target
    source = (observation.handout.partition, observation.handout.page)
    there = namespace.partition_of(target.host)
    if observation.op != KEEP or target.row.state != ACTIVE or observation.row.state != ACTIVE or (there, target.page) == source:
        return _observe(namespace, observation, token)
    own = _own_memory(observation)
    place = follow(namespace, there, target.page)
    is_own = place is not None and (place.partition, place.page) == source
    if is_own:
        place = None
    known = _memory_of(namespace, place) if place is not None else own
    if observation.is_canonical and (is_own or len(known.aliases) >= CANONICAL_ALIASES):
        return _observe(namespace, observation, token, "canonical_refused")
    if place is None:
        return _settle_down(namespace, move, token, own, there)
    return _join(namespace, move, token, place, at_last=at_last)


def _settle_down(namespace: Namespace, move: Move, token: float, own: Memory, there: int) -> bool:
    """Move to where no page is."""
    observation, target = move.observation, move.target
    names, given_up = _names(own, observation, (there, target.page))
    row = rebounded(observation.row, target.row)._replace(pattern=target.row.pattern, directory=target.row.directory)
    # A sitemap said it of the old one.
    memory = own._replace(lastmod=None, signals=(), aliases=names)
    tail = pack_tail(target.stated, target.record)
    (reply,) = namespace.run([Call(there, "adopt", [target.page, target.host, row.pack(), tail, memory.pack()])])
    if reply != 1:
        return _join(namespace, move, token, Place(there, target.page, reply), at_last=True)
    _leave(namespace, move, token, (there, target.page), "moved", names, given_up)
    return True


def _join(namespace: Namespace, move: Move, token: float, place: Place, *, at_last: bool) -> bool:
    """Move to where a page is."""
    observation = move.observation
    row = Row.unpack(place.value)
    if row.state not in (ACTIVE, RETIRED):
        return _observe(namespace, observation, token)
    own = _own_memory(observation)
    known = _memory_of(namespace, place)
    names, given_up = _names(known, observation, (place.partition, place.page), own)
    merged = merge(row, observation.row, observation.row.b / 1e6)
    memory = (
        own._replace(lastmod=known.lastmod, signals=known.signals, aliases=names) if merged.takes_over else known._replace(aliases=names)
    )
    if row.b == 0:
        # It waits for its first visit, if that is not under way: it needs none.
        stated, record = split_tail(place.value)
        tail = pack_tail(max(stated, observation.handout.stated), record)
        adopted = [place.page, move.target.host, merged.row.pack(), tail, memory.pack()]
        done = namespace.run([Call(place.partition, "adopt", adopted)])[0] == 1
    else:
        done = _revise(namespace, place, row, merged, memory, known)
    if not done and not at_last:
        return False
    stated, record = split_tail(place.value)
    if observation.handout.stated > stated:
        page = NewPage(place.page, move.target.host, row, observation.handout.stated, record)
        namespace.run(add_calls(place.partition, [page]))
    _leave(namespace, move, token, (place.partition, place.page), "merged", names, given_up)
    return True


def _revise(namespace: Namespace, place: Place, row: Row, merged: Merged, memory: Memory, known: Memory) -> bool:
    if merged.row == row and memory == known:
        return True
    ((done,),) = namespace.run(revise_calls(place.partition, [(place.page, row.b, merged.row, memory)]))
    return bool(done == 1)


def _leave(
    namespace: Namespace,
    move: Move,
    token: float,
    to: tuple[int, bytes],
    counter: str,
    names: tuple[bytes, ...],
    given_up: tuple[bytes, ...],
) -> None:
    """Make aliases of what the page was called: its last name, by which its lease ends, and those before."""
    observation = move.observation
    handout = observation.handout
    counted = Counter(observation.counters)
    counted[counter] += 1
    if observation.is_canonical:
        counted["canonical_followed"] += 1
    counted.pop("held", None)  # the script sees that in the row
    # Where the page is now it is counted as fetched.
    if handout.row.visits == 0:
        counted.pop("fetched", None)
    alias = pack_alias(*to) + move.url.encode("utf-8", "surrogatepass")
    arguments: list[Any] = [handout.page, _TOKEN.pack(token), alias, *(word for counter in counted.items() for word in counter)]
    (done,) = namespace.run([Call(handout.partition, "become_alias", arguments)])
    if not done:
        return
    point(namespace, [name for name in names if split_alias(name) != (handout.partition, handout.page)], to)
    drop_aliases(namespace, given_up)
    _tell(namespace, observation)


def _tell(namespace: Namespace, observation: Observation) -> None:
    """Store what a visit shows beside its row: the change feed, the host's words, the lateness."""
    partition, page = observation.handout.partition, observation.handout.page
    calls = note_calls(partition, [observation])
    if observation.change is not None:
        fields = change_fields(page, observation.row.b, observation.change)
        calls.append(Call(partition, "XADD", ["changes", "MAXLEN", "~", KEPT_CHANGES, "*", *fields]))
    namespace.run(calls)


def _observe(namespace: Namespace, observation: Observation, token: float, counter: str = "") -> bool:
    """End the lease as that of a page that stays where it is."""
    if counter:
        observation = replace(observation, counters={**observation.counters, counter: 1})
    namespace.run(observe_calls(observation.handout.partition, [observation], [token]))
    return True


def _own_memory(observation: Observation) -> Memory:
    """Return what is remembered of the page that moves, with its other names."""
    before = observation.handout.memory
    return before if observation.memory is None else observation.memory._replace(aliases=before.aliases)


def _memory_of(namespace: Namespace, place: Place) -> Memory:
    key = namespace.key("memory", place.partition)
    return Memory.readable(namespace.command("HGET", key, place.page, partition=place.partition))


def _names(
    known: Memory, observation: Observation, to: tuple[int, bytes], own: Memory | None = None
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the other names of a page from now on, oldest first, and those that are given up."""
    last = pack_alias(observation.handout.partition, observation.handout.page)
    before = (*known.aliases, *(own.aliases if own is not None else ()), last)
    names = tuple(name for name in dict.fromkeys(before) if name != pack_alias(*to))
    return names[-MOST_ALIASES:], names[:-MOST_ALIASES]
