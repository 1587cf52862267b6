"""The budget of a plan: what CRAWL_RATE says or fetches show, and what of it is left for revisits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from optimal_frontier.settings import FrontierSettings

#: Weight of the newest measurement of an ``auto`` budget.
_NEWEST: Final = 0.5
#: A gap of more than so many RESOLVE_INTERVALs is downtime.
_DOWNTIME: Final = 3.0
#: Seconds in which a crawler calls at least once, also where it has no room, with some to spare.
_CALLED_S: Final = 10.0
#: First visits come first while those that wait could be finished within so many plan intervals.
SOON_PLANS: Final = 3.0
#: Revisits keep at least this share of the budget, and of the limit of a host.
LEAST_REVISITS: Final = 0.05


@dataclass(frozen=True)
class Budget:
    """Of a plan, fetches per second.

    Attributes
    ----------
    total : float
        All.
    revisits : float
        What is left for revisits.
    measured : float
        Rate that was measured last, for ``auto``; 0: none.
    fetches, extra : int
        So many there were until now: of all kinds; redirects, retries and robots.txt.
    calls : int
        For fetches, until now: a crawler makes one in `_CALLED_S` at the least.
    """

    total: float
    revisits: float
    measured: float
    fetches: int
    extra: int
    calls: int = 0

    @classmethod
    def of(
        cls,
        settings: FrontierSettings,
        counts: Mapping[str, float],
        previous: Mapping[str, str],
        opened: float,
        now: float,
        *,
        asked: float = 0.0,
    ) -> Budget:
        """Find the budget.

        Parameters
        ----------
        settings : FrontierSettings
            CRAWL_RATE, RESOLVE_INTERVAL and shares.
        counts : mapping
            Counters, of all partitions, their ``calls``, and how many ``partitions`` could be reached.
        previous : mapping of str to str
            What the last plan published.
        opened, now : float
            When the namespace was, and the time, seconds since the epoch.
        asked : float
            Fetches per second that the intervals of pinned pages ask for, where all pages are pinned: such a crawl makes all fetches that
            there are and stands still between them, so few are no sign that it could not make more.
        """
        extra = int(counts.get("extra_fetches", 0))
        fetches = int(counts.get("visits", 0)) + int(counts.get("failures", 0)) + extra
        measured, calls = 0.0, int(counts.get("calls", 0))
        if settings.crawl_rate is not None:
            total = settings.crawl_rate
        else:
            fetched = max(0, fetches - int(previous.get("measured_fetches", 0)))
            # Or what the last plan had, where CRAWL_RATE was a number.
            last = float(previous.get("measured_rate", 0)) or _whole_budget(previous)
            since = float(previous.get("measured_at", 0)) or opened
            is_known = fetched or calls != int(previous.get("measured_calls", -1)) or now - since < _CALLED_S
            # Of a partition that could not be reached then all fetches there were would count.
            is_known = is_known and counts.get("partitions") == int(previous.get("measured_partitions", counts.get("partitions", 0)))
            measured = _measured(settings, fetched if is_known else None, last, now - since)
            # A crawl that ended before its first plan made its fetches in the longest time that is no gap, at most.
            total = max(measured or fetched / (_DOWNTIME * settings.resolve_interval), asked, 1e-6)
        return cls(total, revisit_budget(settings, total, counts, previous, now), measured, fetches, extra, calls)


def is_soon_done(pending: int, settings: FrontierSettings, speed: float) -> bool:
    """Tell whether the first visits that wait could be finished within `SOON_PLANS`, at a speed in fetches per second (0: not known)."""
    return speed <= 0 or pending <= SOON_PLANS * settings.resolve_interval * speed


def revisit_budget(settings: FrontierSettings, total: float, counts: Mapping[str, float], previous: Mapping[str, str], now: float) -> float:
    """Return what a budget leaves for revisits: less first visits, redirects, retries and robots.txt."""
    # No more than the waiting first visits can use before the next plan.
    kept = min(
        (1.0 if settings.close_after is not None else settings.discovery_share) * total,
        counts.get("pending", 0) / settings.resolve_interval,
    )
    extra = 0.0
    if "time" in previous and now > float(previous["time"]):
        extra = (counts.get("extra_fetches", 0) - int(previous.get("extra_fetches", 0))) / (now - float(previous["time"]))
    return max(total - kept - max(extra, 0.0), LEAST_REVISITS * total)


def _whole_budget(previous: Mapping[str, str]) -> float:
    """Return the budget of the last plan, of all partitions; 0 where there was none."""
    budget, share = float(previous.get("budget", 0)), float(previous.get("share", 1))
    return budget / share if 0 < share <= 1 and budget < math.inf else 0.0


def _measured(settings: FrontierSettings, fetched: int | None, last: float, seconds: float) -> float:
    """Return the fetches per second since the last plan, averaged with what was measured before; 0: neither is known.

    ``fetched``: None in downtime.
    """
    # While there is anything to fetch dispatch never idles, so fetches per second are capacity; a gap is downtime and says nothing, nor do
    # plans of a process of its own while no crawler runs.
    if fetched is None or seconds <= 0 or seconds > _DOWNTIME * settings.resolve_interval:
        return last
    measured = fetched / seconds
    return measured if last <= 0 else (1 - _NEWEST) * last + _NEWEST * measured
