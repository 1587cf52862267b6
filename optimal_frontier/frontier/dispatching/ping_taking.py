"""Takes pings out of the stream, and tells them to the pages that they are about."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.word_taking import take_in
from optimal_frontier.state.aliases import follow_all
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.pings import RawPing, read_pings, remove_pings

logger = logging.getLogger(__name__)

#: Pings that are read at once.
BATCH: Final = 500
#: Bytes of a field that a warning shows.
_SHOWN: Final = 100


@dataclass
class Words:
    """What pings say, by their place among the pings: words about pages, and why others are none."""

    told: dict[int, NewPage] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


class PingTaking:
    """Takes pings in, a batch at a time.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    courier : Courier
        It is told where there is something to fetch.
    """

    def __init__(self, namespace: Namespace, courier: Courier) -> None:
        self._namespace, self._courier = namespace, courier
        self._has_warned = False

    def look(self, take_lock: Callable[[], bool], read: Callable[[Sequence[RawPing]], Words | None]) -> int:
        """Take a batch.

        Parameters
        ----------
        take_lock : callable
            Takes or renews the lock of whoever takes entries; False: another process has it.
        read : callable
            Makes words of pings; None: it is to stop before that is done.

        Returns
        -------
        int
            How many pings were taken out of the stream.
        """
        pings = read_pings(self._namespace, BATCH)
        words = read(pings) if pings and take_lock() else None
        if words is None:
            return 0
        stays, unknown = self._tell(words)
        gone = [ping.number for at, ping in enumerate(pings) if at not in stays]
        # Another process that has taken over by now takes them in once more, which is no news.
        if take_lock():
            counters = {"pings_unknown": unknown, "pings_refused": len(words.refused)}
            remove_pings(self._namespace, gone, counters | {"pings_taken": len(gone) - sum(counters.values())})
        if words.refused and not self._has_warned:
            self._has_warned = True
            at, reason = next(iter(words.refused.items()))
            shown = {name[:_SHOWN]: value[:_SHOWN] for name, value in list(pings[at].fields.items())[:3]}
            logger.warning("the ping %r was dropped: %s (further ones are counted, not logged)", shown, reason)
        return len(gone)

    def _tell(self, words: Words) -> tuple[set[int], int]:
        """Tell the pages; return the places of pings that stay, as their pages are being fetched, and how many are about no page."""
        place_of = {id(new): at for at, new in words.told.items()}
        again, lost = self._take_in([(self._namespace.partition_of(new.host), new) for new in words.told.values()])
        moved = []
        names = [(self._namespace.partition_of(new.host), new.page) for new in lost]
        for new, found in zip(lost, follow_all(self._namespace, names), strict=True):
            if found is not None:
                moved.append((found.partition, replace(new, page=found.page)))
                place_of[id(moved[-1][1])] = place_of[id(new)]
        more, gone = self._take_in(moved)
        # One ping of a page and a source is enough to wait.
        stays = {(new.page, new.announcement): place_of[id(new)] for new in (*again, *more)}
        return set(stays.values()), len(lost) - len(moved) + len(gone)

    def _take_in(self, told: Sequence[tuple[int, NewPage]]) -> tuple[list[NewPage], list[NewPage]]:
        groups: dict[int, list[NewPage]] = {}
        for partition, new in told:
            groups.setdefault(partition, []).append(new)
        taken = take_in(self._namespace, groups, self._courier.dispatcher.terms_of)
        if taken.moved:
            self._courier.look_again()
        return taken.again, taken.unknown
