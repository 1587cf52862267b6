"""What each slot of Scrapy's downloader admits, by its delay, its concurrency and how long its hosts take to answer.

DOWNLOAD_SLOTS, AutoThrottle and ``meta["download_slot"]`` all end there. Planners are told of it now and then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from optimal_frontier.integrations.scrapy.compatibility import jitter_of_slot
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.settings.frontier_settings import mean_slot_period
from optimal_frontier.state.downloader_limits import MOST_TOLD, TELL_S, DownloaderLimits, SlotLimit

#: Seconds until slots are told of that are new, or have a new host.
_SOON_S: Final = 2.0
#: Weight of the newest answer in the mean time that one takes.
_NEWEST: Final = 0.2
#: Rates that differ by less than this share are one.
_NEAR: Final = 0.03
#: A slot is slow whose fetches take so many times as long as those of the quickest tenth of slots, and so many seconds at least.
_SLOW_TIMES: Final = 8.0
_SLOW_S: Final = 1.0
#: How many slots, those used last, are compared for that, and seconds between two comparisons.
_MOST_COMPARED: Final = 300
_COMPARE_S: Final = 1.0
#: Slots that are remembered, those used last, and hosts of each.
_MOST_SLOTS: Final = 10_000
_MOST_HOSTS: Final = 1000


@dataclass(slots=True)
class _Slot:
    """What is known of a slot, also after the downloader has forgotten it.

    In seconds: its delay, and for how long an answer, its body included, takes it, and any fetch, failed ones too.
    """

    hosts: dict[str, None] = field(default_factory=dict)
    concurrency: int = 0
    delay: float = 0.0
    jitter: float = 0.0
    answer_s: float = 0.0
    fetch_s: float = 0.0

    @property
    def rate(self) -> float:
        """Fetches per second that it admits."""
        period = mean_slot_period(self.delay, self.jitter)
        if self.concurrency > 0:
            period = max(period, self.answer_s / self.concurrency)
        return 1.0 / period if period > 0 else math.inf


class SlotLimits:
    """The slots of a downloader.

    Parameters
    ----------
    settings : FrontierSettings
        CRAWL_RATE and DOWNLOAD_DELAY.
    """

    def __init__(self, settings: FrontierSettings) -> None:
        self._most = settings.crawl_rate if settings.crawl_rate is not None else math.inf
        self._default = 1.0 / settings.slot_period if settings.slot_period > 0 else 0.0
        self._slots: dict[str, _Slot] = {}
        self._next = time.monotonic() + _SOON_S
        self._slow: Collection[str] = ()
        self._next_slow = 0.0

    def note(self, lease: Lease, downloader: Any) -> None:
        """Learn from a request that came back from the downloader: its slot, and for how long it took it.

        A redirect keeps the slot, but pages of the host that it leads to have their own: the host is that of the page. Scrapy's
        ``download_latency`` ends with the headers: a large body on a slow line takes its slot for far longer.
        """
        key, host, took_s = lease.request.meta.get("download_slot"), lease.handout.host, lease.took_s
        if not isinstance(key, str):
            return
        slot = self._slots.pop(key, None) or _Slot()
        self._slots[key] = slot  # the last one used
        if len(self._slots) > _MOST_SLOTS:
            del self._slots[next(iter(self._slots))]
        if host not in slot.hosts and len(slot.hosts) < _MOST_HOSTS:
            slot.hosts[host] = None
            self._next = min(self._next, time.monotonic() + _SOON_S)
        if took_s > 0:
            slot.fetch_s = _mean(slot.fetch_s, took_s)
        if took_s > 0 and lease.is_answered:
            slot.answer_s = _mean(slot.answer_s, took_s)
        self._look(key, slot, downloader)

    def hosts_of(self, key: str) -> list[str]:
        """Return the hosts of a slot that were seen."""
        slot = self._slots.get(key)
        return [] if slot is None else list(slot.hosts)

    def slow(self, under_way: Iterable[tuple[str, float]]) -> Collection[str]:
        """Return the slots whose fetches take far longer than those of others: where they fill a downloader, the others wait for them.

        Parameters
        ----------
        under_way : iterable of (str, float)
            The slots of fetches that have not ended, and the seconds that each took so far. It is read once a second.
        """
        now = time.monotonic()
        if now >= self._next_slow:
            self._next_slow = now + _COMPARE_S
            compared = {key: self._slots[key] for key in islice(reversed(self._slots), _MOST_COMPARED)}
            took = {key: slot.fetch_s for key, slot in compared.items()}
            for key, seconds in under_way:
                if seconds >= _SLOW_S:
                    took[key] = max(seconds, took.get(key, 0.0))
            answers = sorted(slot.answer_s for slot in compared.values() if slot.answer_s > 0)
            least = max(_SLOW_S, _SLOW_TIMES * answers[(len(answers) - 1) // 10]) if answers else math.inf
            self._slow = frozenset(key for key, seconds in took.items() if seconds >= least)
        return self._slow

    def news(self, downloader: Any) -> DownloaderLimits | None:
        """Return what is to be told, where it is time to."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + TELL_S
        told = []
        for key, slot in self._slots.items():
            self._look(key, slot, downloader)
            rate = slot.rate
            is_other = abs(rate - self._default) > _NEAR * self._default if self._default else rate < self._most
            if slot.hosts and rate < math.inf and (is_other or len(slot.hosts) > 1):
                told.append(SlotLimit(tuple(slot.hosts), rate))
        return DownloaderLimits(self._default, tuple(sorted(told, key=lambda slot: slot.rate)[:MOST_TOLD]))

    def _look(self, key: str, slot: _Slot, downloader: Any) -> None:
        present = downloader.slots.get(key)
        if present is not None:
            most = downloader.total_concurrency or present.concurrency
            slot.concurrency, slot.delay = min(present.concurrency, most), float(present.delay)
            slot.jitter = jitter_of_slot(present)


def _mean(before: float, newest: float) -> float:
    return before + _NEWEST * (newest - before) if before else newest
