"""What follows an exchange, in round trips of its own: few exchanges have any of it.

Pages that are put aside, retired pages that are linked to, words and records of sources, moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from optimal_frontier.frontier.admitting.revival import revived
from optimal_frontier.frontier.dispatching.held_pages import bring_back_replaced
from optimal_frontier.frontier.dispatching.moving import carry_out
from optimal_frontier.frontier.dispatching.moving_back import give_back, has_former_name
from optimal_frontier.frontier.dispatching.revising import bring_back, force_wanted
from optimal_frontier.frontier.dispatching.setting_aside import forget_memories, set_aside
from optimal_frontier.frontier.dispatching.word_taking import take_in
from optimal_frontier.frontier.dispatching.work import Exchange, Outcome, grouped
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import Handout, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import UNCONDITIONAL, Row
from optimal_frontier.state.source_records import learn_calls, read_sources

#: Seconds between two looks at pages that are wanted and under way.
_LOOK_S: Final = 1.0


class FollowUp:
    """Does what follows exchanges.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    settings : FrontierSettings
        Parsed settings.
    recent : Recent
        Gets the records of sources that the next visits need.
    terms_of : callable
        Partition -> what its deadlines go by now.
    """

    def __init__(self, namespace: Namespace, settings: FrontierSettings, recent: Recent, terms_of: Callable[[int], Terms]) -> None:
        self._namespace = namespace
        self._settings = settings
        self._recent = recent
        self._terms_of = terms_of
        #: Pages that were wanted while a visit to them was under way, and when to look next whether it ended.
        self._under_way: list[tuple[int, bytes]] = []
        self._next_look = 0.0

    def run(self, work: Exchange, outcome: Outcome, idle: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Do all of it.

        Parameters
        ----------
        work, outcome
            Of the exchange.
        idle : sequence of (int, bytes, bytes)
            Partition, identity and row of retired pages that were linked to.
        """
        now: dict[int, float] = {}
        damaged = outcome.damaged + [(seen.handout.partition, seen.handout.page, seen.aside) for seen, _ in work.ended if seen.aside]
        for partition, pages in grouped(damaged, lambda one: one[0]).items():
            set_aside(self._namespace, partition, {page: reason for _, page, reason in pages})
        for partition, forgetful in grouped(outcome.forgetful, lambda one: one[0]).items():
            forget_memories(self._namespace, partition, [page for _, page in forgetful])
        for partition, page, stored in idle:
            row = Row.unpack(stored)
            if partition not in now:
                now[partition] = self._namespace.now(partition)
            back = revived(row, now[partition])
            if back is not None:
                self._namespace.run(revise_calls(partition, [(page, row.b, back, None)], "revived=1"))
                outcome.new += 1
        for partition, replaced in grouped(outcome.replaced, lambda one: one[0]).items():
            outcome.new += bring_back_replaced(self._namespace, partition, [page for _, page in replaced])
        told = [new for new in work.pages if new.lastmod is not None]
        if told:
            outcome.told_again = take_in(
                self._namespace, grouped(told, lambda new: self._namespace.partition_of(new.host)), self._terms_of
            ).again
        wanted = [(self._namespace.partition_of(new.host), new.page) for new in work.pages if new.is_wanted]
        full = _made_full(outcome.handouts, set(wanted))
        ended = {(seen.handout.partition, seen.handout.page) for seen, _ in work.ended} if self._under_way else set()
        self._force([place for place in wanted if place not in full], ended)
        while work.counted:  # where this fails, the exchange is repeated with those that are left: no visit counts twice
            self._follow(work.counted[0])
            del work.counted[0]
        moved, put_off = carry_out(self._namespace, work.moves, is_last=work.is_last)
        for moving in moved:
            self._learn(moving.move.observation)
        outcome.later += put_off
        self._learn_sources(outcome.handouts, at_once=work.is_last)

    def _force(self, wanted: list[tuple[int, bytes]], ended: set[tuple[int, bytes]]) -> None:
        """Make pages due now that are wanted now.

        Of one that is under way, perhaps on the terms of its last visit or with a crawler that was killed, a visit is made after that one.
        """
        now = time.monotonic()
        is_look = bool(self._under_way) and (now >= self._next_look or not ended.isdisjoint(self._under_way))
        if wanted or is_look:
            under_way = force_wanted(self._namespace, self._under_way + wanted if is_look else wanted)
            if is_look or not self._under_way:  # where others come all the time, those that wait are looked at all the same
                self._next_look = now + _LOOK_S
            self._under_way = under_way if is_look else self._under_way + under_way

    def _follow(self, observation: Observation) -> None:
        """Do what follows from a visit that was counted, or may have been."""
        handout = observation.handout
        if _is_followed_by_more(observation):
            value = self._namespace.command(
                "HGET", self._namespace.key("pages", handout.partition), handout.page, partition=handout.partition
            )
            if value is None or Row.unpack(value).b != observation.row.b:
                return  # another crawler has visited the page, or it is forgotten
        if observation.brings_back:
            bring_back(self._namespace, handout.partition, observation.row.host)
        if has_former_name(observation):
            give_back(self._namespace, self._settings, observation)
        self._learn(observation)

    def _learn(self, observation: Observation) -> None:
        """Take what a visit has taught of sources, which is the last of what follows from it."""
        if not observation.handout.is_followed:
            self._recent.sources.take(observation.lessons)
        observation.handout.is_followed = True

    def _learn_sources(self, handouts: Sequence[Handout], *, at_once: bool) -> None:
        """Store what visits have taught of sources of signals, and read what is known of those of the pages that are visited next."""
        sources = self._recent.sources
        lessons = sources.lessons(at_once=at_once)
        if lessons:
            self._namespace.run(learn_calls(self._namespace, lessons))
        wanted = [told.source for handout in handouts for told in handout.memory.signals]
        stale = sources.stale(wanted) if wanted else []
        if stale:
            sources.learn(read_sources(self._namespace, stale))


def _made_full(handouts: Sequence[Handout], wanted: set[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
    """Make visits full that are handed out just as their pages are wanted, as many start pages are that were due; return these pages."""
    full = set()
    for handout in handouts if wanted else ():
        if (handout.partition, handout.page) in wanted:
            handout.row = handout.row._replace(flags=handout.row.flags | UNCONDITIONAL)
            full.add((handout.partition, handout.page))
    return full


def is_in_doubt(observation: Observation, counted: Sequence[Observation]) -> bool:
    """Tell whether a visit that was refused is to be looked at beside those that were counted: the answer to it may have been lost."""
    is_known = observation.handout.is_followed or any(observation is known for known in counted)
    return not is_known and _is_followed_by_more(observation)


def _is_followed_by_more(observation: Observation) -> bool:
    """Tell whether a visit brings other pages back, or its own under a former name."""
    return observation.brings_back or has_former_name(observation)
