"""A page moves: it arrives under its new name with all that is known of it, then its old name becomes an alias, and its lease ends.

Each step is idempotent, and the two may be in different partitions. A crawler that dies in between leaves the page under both names; its
next visit is redirected again, and carries on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from optimal_frontier.frontier.dispatching.work import Moving
from optimal_frontier.frontier.judging.moved_pages import merge, rebounded
from optimal_frontier.state.aliases import Place, drop_calls, follow_all, pack_alias, point, split_alias
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, Move, NewPage, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import add_calls, become_alias_call, observe_calls, revise_calls
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, RETIRED, TAIL_BYTES, pack_tail, split_tail
from optimal_frontier.state.soundness import sound_rows
from optimal_frontier.state.steps import Steps, side_by_side

#: A page that so many name as canonical is named by mistake, and one that names another one each time goes on for ever.
CANONICAL_ALIASES: Final = 20
#: Of more aliases of a page the oldest are given up: a link to one of them makes a page of it, until it moves again.
MOST_ALIASES: Final = 100
#: A move onto a page that is under way is put off so often.
MOST_TRIES: Final = 60
#: A move; partition and name to which it goes; the page that is there.
_Found: TypeAlias = tuple[Moving, tuple[int, bytes], Place | None]


def carry_out(namespace: Namespace, moves: Sequence[Moving], *, is_last: bool = False) -> tuple[list[Moving], list[Moving]]:
    """Carry out moves, or end their leases as those of any other visits where they are refused.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    moves : sequence of Moving
        With the observations of the visits that showed them.
    is_last : bool
        None of them can be put off.

    Returns
    -------
    done, put_off : list of Moving
        The page at the target is being fetched: those that are put off have to wait for the end of that.

    Notes
    -----
    Moves go side by side, in as many round trips as one, but for those that have a page in common: these go in their order.

    Refused is a target that is fetched once only; and, where the page itself says so (rel=canonical), one that the page was called before,
    or one that `CANONICAL_ALIASES` others name.
    """
    done: list[Moving] = []
    put_off: list[Moving] = []
    todo = list(moves)
    while todo:
        names = [(namespace.partition_of(moving.move.target.host), moving.move.target.page) for moving in todo]
        apart, todo = _apart(list(zip(todo, names, follow_all(namespace, names), strict=True)))
        steps = [_carry_out(moving, there, place, at_last=is_last or moving.tries >= MOST_TRIES) for moving, (there, _page), place in apart]
        for (moving, *_), is_done in zip(apart, side_by_side(namespace, steps), strict=True):
            (done if is_done else put_off).append(moving)
    return done, put_off


def _apart(found: Sequence[_Found]) -> tuple[list[_Found], list[Moving]]:
    """Return moves that have no page in common with an earlier one, and the others."""
    apart: list[_Found] = []
    later: list[Moving] = []
    touched: set[tuple[int, bytes]] = set()
    for moving, name, place in found:
        handout = moving.move.observation.handout
        pages = {name, (handout.partition, handout.page)}
        if place is not None:
            pages.add((place.partition, place.page))
        if touched.isdisjoint(pages):
            apart.append((moving, name, place))
        else:
            later.append(moving)
        touched |= pages
    return apart, later


def _carry_out(moving: Moving, there: int, place: Place | None, *, at_last: bool) -> Steps[bool]:
    """Move to a partition, where a page is or none; False: it is put off."""
    move, token = moving.move, moving.lease.present
    observation, target = move.observation, move.target
    source = (observation.handout.partition, observation.handout.page)
    if observation.op != KEEP or target.row.state != ACTIVE or observation.row.state != ACTIVE or (there, target.page) == source:
        return (yield from _observe(observation, token))
    own = _own_memory(observation)
    is_own = place is not None and (place.partition, place.page) == source
    if is_own:
        place = None
    known = own if place is None else (yield from _memory_of(place))
    if observation.is_canonical and (is_own or len(known.aliases) >= CANONICAL_ALIASES):
        return (yield from _observe(observation, token, "canonical_refused"))
    if place is None:
        return (yield from _settle_down(move, token, own, there))
    return (yield from _join(move, token, place, known, at_last=at_last))


def _settle_down(move: Move, token: float, own: Memory, there: int) -> Steps[bool]:
    """Move to where no page is."""
    observation, target = move.observation, move.target
    names, given_up = _names(own, observation, (there, target.page))
    row = rebounded(observation.row, target.row)._replace(pattern=target.row.pattern, directory=target.row.directory)
    # A sitemap said it of the old one.
    memory = own._replace(lastmod=None, signals=(), aliases=names)
    tail = pack_tail(target.stated, target.record)
    (reply,) = yield [Call(there, "adopt", [target.page, target.host, row.pack(), tail, memory.pack()])]
    if reply != 1:
        place = Place(there, target.page, reply)
        return (yield from _join(move, token, place, (yield from _memory_of(place)), at_last=True))
    yield from _leave(move, token, (there, target.page), "moved", names, given_up)
    return True


def _join(move: Move, token: float, place: Place, known: Memory, *, at_last: bool) -> Steps[bool]:
    """Move to where a page is."""
    observation = move.observation
    (row,) = sound_rows([place.value])
    # A damaged one is put aside when it is handed out.
    if row is None or row.state not in (ACTIVE, RETIRED) or len(place.value) < HEAD_BYTES + TAIL_BYTES:
        return (yield from _observe(observation, token))
    own = _own_memory(observation)
    names, given_up = _names(known, observation, (place.partition, place.page), own)
    merged = merge(row, observation.row, observation.row.b / 1e6)
    memory = (
        own._replace(lastmod=known.lastmod, signals=known.signals, aliases=names) if merged.takes_over else known._replace(aliases=names)
    )
    stated, record = split_tail(place.value)
    is_done = True
    if row.b == 0:
        # It waits for its first visit, if that is not under way: it needs none.
        tail = pack_tail(max(stated, observation.handout.stated), record)
        (reply,) = yield [Call(place.partition, "adopt", [place.page, move.target.host, merged.row.pack(), tail, memory.pack()])]
        is_done = reply == 1
    elif merged.row != row or memory != known:
        ((answer,),) = yield revise_calls(place.partition, [(place.page, row.b, merged.row, memory)])
        is_done = answer == 1
    if not is_done:
        if not at_last:
            return False
        # It stays what it is, but for its names: by these a later run knows what it was asked for as.
        yield [Call(place.partition, "HSET", ["memory", place.page, known._replace(aliases=names).pack()])]
    if observation.handout.stated > stated:
        yield add_calls(place.partition, [NewPage(place.page, move.target.host, row, observation.handout.stated, record)])
    yield from _leave(move, token, (place.partition, place.page), "merged", names, given_up)
    return True


def _leave(
    move: Move, token: float, to: tuple[int, bytes], counter: str, names: tuple[bytes, ...], given_up: tuple[bytes, ...]
) -> Steps[None]:
    """Make aliases of what the page was called: its last name, by which its lease ends, and those before."""
    observation = move.observation
    handout = observation.handout
    counted = Counter(observation.counters)
    counted[counter] += 1
    if observation.is_canonical:
        counted["canonical_followed"] += 1
    for name in ("held", "pages", "fetched"):
        counted.pop(name, None)  # scripts see in rows what is no more, and what is where the page is now
    alias = pack_alias(*to) + move.url.encode("utf-8", "surrogatepass")
    (is_left,) = yield [become_alias_call(observation, token, alias, counted)]
    if is_left:
        yield from point([name for name in names if split_alias(name) != (handout.partition, handout.page)], to)
        if given_up:
            yield drop_calls(given_up)


def _observe(observation: Observation, token: float, counter: str = "") -> Steps[bool]:
    """End the lease as that of a page that stays where it is."""
    if counter:
        observation = replace(observation, counters={**observation.counters, counter: 1})
    yield observe_calls(observation.handout.partition, [observation], [token])
    return True


def _own_memory(observation: Observation) -> Memory:
    """Return what is remembered of the page that moves, with its other names."""
    before = observation.handout.memory
    return before if observation.memory is None else observation.memory._replace(aliases=before.aliases)


def _memory_of(place: Place) -> Steps[Memory]:
    (raw,) = yield [Call(place.partition, "HGET", ["memory", place.page])]
    return Memory.readable(raw)


def _names(
    known: Memory, observation: Observation, to: tuple[int, bytes], own: Memory | None = None
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the other names of a page from now on, oldest first, and those that are given up."""
    last = pack_alias(observation.handout.partition, observation.handout.page)
    before = (*known.aliases, *(own.aliases if own is not None else ()), last)
    names = tuple(name for name in dict.fromkeys(before) if name != pack_alias(*to))
    return names[-MOST_ALIASES:], names[:-MOST_ALIASES]
