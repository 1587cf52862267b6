"""Hosts that do not answer: how long each is left alone, and that one fetch at a time finds out whether it is back.

Without that each page of such a host would wait for an answer by itself, and a few hosts fill a downloader for as long as they are away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from optimal_frontier.frontier.judging.outcomes import REDIRECTS, TRUNCATED, cause_of
from optimal_frontier.frontier.judging.retry_after import LONGEST_HOLD_S

#: Why a fetch failed to which no answer came.
_UNANSWERED: Final = frozenset({"timeout", "dns", "connection"})
#: So many fetches in a row without an answer are not those of single pages any more.
_IN_A_ROW: Final = 3
#: Hosts that are remembered, of either kind.
_MOST_HOSTS: Final = 4_000


@dataclass(slots=True)
class _Silence:
    """Fetches without an answer in a row, since when (the end of the first), and when others were first seen to answer meanwhile."""

    since: float
    fetches: int = 0
    known_at: float = math.inf


class SilentHosts:
    """Hosts whose last fetches by this process had no answer; local monotonic times."""

    def __init__(self) -> None:
        #: Hosts of too few such fetches to say; and the others. Plain dicts, as another thread can list one while it grows.
        self._failing: dict[str, _Silence] = {}
        self._silent: dict[str, _Silence] = {}
        self._answered_at = -math.inf

    def after(self, host: str, error: str, begun: float, ended: float) -> float:
        """Take in a fetch; return for how many seconds its host is left alone: as long as it is silent by now, an hour at most.

        Parameters
        ----------
        host : str
            Its host.
        error : str
            What is wrong with it, see `outcomes`; empty for an answer.
        begun, ended : float
            When it was handed out, and when it ended.

        Notes
        -----
        Where no host answers it is the crawler's own network, or its proxy, that is away, and hosts are not left alone: each would be for
        as long again once it is back. So another one has to have answered since the silence began, and before the fetch did.
        """
        if cause_of(error) not in _UNANSWERED:
            if not error or error in (TRUNCATED, REDIRECTS) or error.isdigit():
                self._answered_at = max(self._answered_at, ended)
                self._failing.pop(host, None)
                self._silent.pop(host, None)
            return 0.0
        silence = self._silent.get(host) or self._failing.pop(host, None) or _Silence(ended)
        silence.fetches += 1
        hosts = self._silent if silence.fetches >= _IN_A_ROW else self._failing
        hosts[host] = silence
        if len(hosts) > _MOST_HOSTS:
            del hosts[next(iter(hosts))]
        is_known = begun >= silence.known_at
        if self._answered_at > silence.since:
            silence.known_at = min(silence.known_at, ended)
        return min(ended - silence.since, LONGEST_HOLD_S) if is_known and silence.fetches >= _IN_A_ROW else 0.0

    def hosts(self) -> list[str]:
        """Return those that get one fetch at a time; also for other threads."""
        return list(self._silent)
