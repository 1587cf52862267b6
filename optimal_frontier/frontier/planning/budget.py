"""The budget of a plan: what CRAWL_RATE says or fetches show, and what of it is left for revisits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import Row

#: Weight of the newest measurement of an ``auto`` budget.
_NEWEST: Final = 0.5
#: By so much it grows with each plan while longest intervals are stretched and yet no page waits.
_REGAINED: Final = 1.05
#: A gap of more than so many RESOLVE_INTERVALs is downtime.
_DOWNTIME: Final = 3.0
#: A page waits when it might have been fetched for so many seconds, or a RESOLVE_INTERVAL: more than a round trip and a look take, and less
#: than a crawl takes for a round of its pages. A busy one would pass for idle else, and keep the budget of better times.
_PATIENCE_S: Final = 10.0
#: Pages at the front of a queue that are looked at, about as many as dispatch looks at.
_LOOKED_AT: Final = 16
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
    """

    total: float
    revisits: float
    measured: float
    fetches: int
    extra: int

    @classmethod
    def of(
        cls,
        settings: FrontierSettings,
        counts: Mapping[str, float],
        previous: Mapping[str, str],
        opened: float,
        now: float,
        *,
        is_behind: bool = True,
    ) -> Budget:
        """Find the budget.

        Parameters
        ----------
        settings : FrontierSettings
            CRAWL_RATE, RESOLVE_INTERVAL and shares.
        counts : mapping
            Counters, of all partitions.
        previous : mapping of str to str
            What the last plan published.
        opened, now : float
            When the namespace was, and the time, seconds since the epoch.
        is_behind : bool
            Pages wait for the downloader; else few fetches are no sign that it could not make more.
        """
        extra = int(counts.get("extra_fetches", 0))
        fetches = int(counts.get("visits", 0)) + int(counts.get("failures", 0)) + extra
        measured = 0.0
        if settings.crawl_rate is not None:
            total = settings.crawl_rate
        else:
            measured = _measured(settings, fetches, previous, opened, now)
            if not is_behind and counts.get("pending", 0) <= 0:
                # Intervals that were stretched in vain, after an outage say, come back step by step.
                is_stretched = float(previous.get("stretch", 1)) > 1
                measured = max(measured, float(previous.get("measured_rate", 0)) * (_REGAINED if is_stretched else 1.0))
            total = max(measured, 1e-6)
        return cls(total, revisit_budget(settings, total, counts, previous, now), measured, fetches, extra)


def is_behind(namespace: Namespace, partitions: Iterable[int], now: float, resolve_interval_s: float) -> bool:
    """Tell whether pages wait for the downloader: one at the front of a queue might have been fetched for a while.

    It is not so where all pages are pinned, or at their shortest interval: such a crawl makes all fetches that there are, and
    stands still between them. Pages under a lease are being fetched; those that wait for their host count.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partitions : iterable of int
        Those that are planned.
    now : float
        Server's time, seconds since the epoch.
    resolve_interval_s : float
        RESOLVE_INTERVAL.
    """
    since = now - min(resolve_interval_s, _PATIENCE_S)
    for k in partitions:
        told = namespace.command("ZRANGE", namespace.key("q", k), 0, _LOOKED_AT - 1, "WITHSCORES", partition=k)
        pages = [page for page, score in zip(told[::2], told[1::2], strict=True) if float(score) % 2 == 0]
        values = namespace.command("HMGET", namespace.key("pages", k), *pages, partition=k) if pages else []
        for value in values:
            with contextlib.suppress(ValueError):  # a damaged row says nothing
                row = Row.unpack(value or b"")
                if row.b / 1e6 + row.e <= since:
                    return True
    return False


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


def _measured(settings: FrontierSettings, fetches: int, previous: Mapping[str, str], opened: float, now: float) -> float:
    since = float(previous.get("measured_at", 0)) or opened
    last = float(previous.get("measured_rate", 0))
    seconds = now - since
    # While there is anything to fetch dispatch never idles, so fetches per second are capacity; a gap is downtime and says nothing.
    if seconds <= 0 or (last > 0 and seconds > _DOWNTIME * settings.resolve_interval):
        return last
    measured = max(0.0, (fetches - int(previous.get("measured_fetches", 0))) / seconds)
    return measured if last <= 0 else (1 - _NEWEST) * last + _NEWEST * measured
