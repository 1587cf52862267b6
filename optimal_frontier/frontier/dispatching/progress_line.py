"""One line now and then that says how a crawl is doing, read and logged on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import OptimalFrontierError
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.progress_reading import ProgressReading, read_progress

logger = logging.getLogger(__name__)

#: Sizes of units of time, seconds.
_UNITS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))
#: From this many fetches a second on they are shown without decimals.
_MANY: Final = 100.0


def progress_line(before: ProgressReading, now: ProgressReading, seconds: float) -> str:
    """Return the line: what is known, and how fast it went since the reading before.

    Parameters
    ----------
    before, now : ProgressReading
    seconds : float
        Between the two.
    """
    parts = [f"Frontier: {now.pages:,} pages known, {now.waiting:,} wait for their first visit"]
    fetches = (now.fetches - before.fetches) / seconds
    parts.append(f"{fetches:,.{0 if fetches >= _MANY else 1}f} fetches/s, {now.changes - before.changes:,} changes in {_duration(seconds)}")
    if now.freshness is not None:
        parts.append(f"freshness {now.freshness:.1%} (estimated)")
    if len(now.lateness):
        half, most = np.percentile(now.lateness, [50, 99])
        parts.append(f"lateness {_duration(half)} (median), {_duration(most)} (99%)")
    end = _end(before, now, seconds)
    return "; ".join([*parts, end] if end else parts)


def _end(before: ProgressReading, now: ProgressReading, seconds: float) -> str:
    """Return how far it is to the end that is known, CLOSE_AFTER or that of the first pass; empty where there is none."""
    if now.done is not None:
        had, has, name = before.done or 0.0, now.done, "CLOSE_AFTER"
    elif now.waiting:
        had, has = (max(0.0, 1 - one.waiting / max(one.pages, one.waiting, 1)) for one in (before, now))
        name = "first pass"
    else:
        return ""
    # While more is found than is visited nobody knows the end.
    left = f", about {_duration((1 - has) * seconds / (has - had))} left" if had < has < 1 else ""
    return f"{name} {has:.0%} done{left}"


def _duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds > 1.99 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


class ProgressLog:
    """Logs a line every so many seconds until it is stopped; the crawl never waits for it.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    close_after : int or None
        CLOSE_AFTER.
    interval_s : float
        Seconds between two lines.
    extra : mapping, optional
        What goes with the log record.
    """

    def __init__(self, namespace: Namespace, close_after: int | None, interval_s: float, extra: Mapping[str, Any] | None = None) -> None:
        self._namespace, self._close_after = namespace, close_after
        self._interval_s, self._extra = interval_s, extra
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="optimal_frontier-progress", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        before: ProgressReading | None = None
        at, wait, is_told = 0.0, 0.0, False
        while not self._stopping.wait(wait):
            wait = self._interval_s
            try:
                now, read_at = read_progress(self._namespace, self._close_after), time.monotonic()
            except OptimalFrontierError as error:
                logger.debug("no progress line: %s", error)  # the courier reports outages
                continue
            except Exception:
                logger.exception("no progress line")  # of a damaged value: the next one may be there again
                continue
            if before is not None and now.fetches >= before.fetches:  # or the server has lost some
                logger.info("%s", progress_line(before, now, read_at - at), extra=self._extra)
            if before is not None and before.lost and now.lost and not is_told:  # once may be a moment between two steps
                is_told = True
                logger.warning(
                    "%s pages are known, and are in no queue: they are not fetched any more. A part of the state in Redis is gone "
                    "(evicted, or deleted): stop all crawls, run `optimal-frontier check --repair`, and start them again",
                    f"{now.lost:,}",
                    extra=self._extra,
                )
            before, at = now, read_at
