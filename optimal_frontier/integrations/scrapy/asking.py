"""How much a crawl asks for at once, and how often: what the downloader has room for, and what two of Frontera's settings allow.

These are MAX_NEXT_REQUESTS and DELAY_ON_EMPTY, as with Frontera's own scheduler.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from optimal_frontier.frontier.dispatching.work import SlotRoom
from optimal_frontier.integrations.frontera.configuration import number_of, whole_number_of
from optimal_frontier.integrations.scrapy.compatibility import call_later

#: Slow slots leave one in so many of CONCURRENT_REQUESTS to the others, and at least one of two or more.
_LEFT: Final = 4
#: Stands for "no limit" in CONCURRENT_REQUESTS.
_UNLIMITED: Final = 256


@dataclass(frozen=True)
class Room:
    """How many more requests the downloader takes.

    Attributes
    ----------
    free : int
        In all, and ``ahead`` more.
    ahead : int
        Those that it takes only by the time of the next round trip but one.
    slots : mapping of str to SlotRoom
        Its slots that are not empty, and slow ones that are to wait.
    per_host : int
        Of any host; 0: no limit.
    """

    free: int
    ahead: int
    slots: Mapping[str, SlotRoom]
    per_host: int


def room_of(
    downloader: Any, ahead: int, hosts_of: Callable[[str], Sequence[str]], slow: Collection[str] = (), waiting: Iterable[str] = ()
) -> Room:
    """Return the room of a downloader.

    Parameters
    ----------
    downloader : Downloader
        Scrapy's.
    ahead : int
        How many requests may be asked for in advance.
    hosts_of : callable
        Says which hosts share one of its slots.
    slow : collection of str
        Slots that take long for each fetch. Together they leave some of CONCURRENT_REQUESTS to the others, for which one each is enough.
    waiting : iterable of str
        Slots that requests will have which the downloader has taken, and which wait for robots.txt or for another middleware.
    """
    total = downloader.total_concurrency or _UNLIMITED
    # What is asked for in advance waits in the courier, and not in a slot that is full: there it would keep other hosts from being fetched.
    per_host = downloader.ip_concurrency or downloader.domain_concurrency
    extra = ahead if per_host >= total else 0
    slots = {}
    in_use = Counter(waiting)
    in_use.update({key: len(slot.active) for key, slot in downloader.slots.items() if slot.active})
    for key, active in in_use.items():
        most = downloader.slots[key].concurrency if key in downloader.slots else per_host or total
        slots[key] = SlotRoom(list(dict.fromkeys(hosts_of(key))) or [key], max(0, most + (extra if most >= total else 0) - active))
    if slow:
        taken = sum(in_use[key] for key in slow)
        left = max(0, max(1, total - max(1, total // _LEFT)) - taken)
        for key in slow:
            if (known := slots.get(key)) is not None:
                slots[key] = known._replace(room=min(known.room, -(-left // len(slow))))
            elif not left:
                slots[key] = SlotRoom(list(hosts_of(key)) or [key], 0)
    return Room(total + ahead - len(downloader.active), ahead, slots, per_host + extra)


class Asking:
    """Bounds what is asked of Redis. Without the two settings nothing is bounded: Redis says when to ask again.

    Parameters
    ----------
    settings : ScrapySettingsAdapter
        What counts is set by the project; Frontera's defaults are for backends that are asked every few seconds.
    look : callable
        Lets the engine ask again when the delay is over.

    Raises
    ------
    ConfigurationError
        One of the two is no number of 0 or more.
    """

    def __init__(self, settings: Any, look: Callable[[], None]) -> None:
        self._most = whole_number_of(settings, "MAX_NEXT_REQUESTS") or 0
        self._delay_s = number_of(settings, "DELAY_ON_EMPTY") or 0.0
        self._look = look
        self._empty_looks = 0
        self._until = 0.0

    def bounded(self, wanted: int, ahead: int, empty_looks: int) -> tuple[int, int]:
        """Return how many requests to ask for, and how many of these in advance: what is too many is taken off these first.

        Parameters
        ----------
        wanted, ahead : int
            Those that the downloader has room for, and those of them that it takes only later.
        empty_looks : int
            Grows whenever Redis had nothing to hand out.
        """
        most = min(wanted, self._most) if self._most else wanted
        if self._delay_s > 0:
            now = time.monotonic()
            if empty_looks != self._empty_looks:
                self._empty_looks, self._until = empty_looks, now + self._delay_s
                call_later(self._delay_s, self._look)
            if now < self._until:
                most = 0
        return most, max(0, ahead - (wanted - most))
