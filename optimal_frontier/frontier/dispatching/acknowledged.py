"""Work that the server has acknowledged in the last seconds: one that dies may have lost it, and gets it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from optimal_frontier.frontier.dispatching.work import Ended, Exchange, Moving
from optimal_frontier.state.messages import NewPage

#: Seconds for which acknowledged work is kept, in case the server lost it.
REPLAY_S: Final = 2.0
#: A renewal that was made: page, token before, token since, partition.
Renewal = tuple[bytes, float, float, int]


@dataclass(frozen=True, slots=True)
class _Sent:
    """What was acknowledged at a local monotonic time."""

    at: float
    pages: Sequence[NewPage]
    ended: Sequence[Ended]
    moves: Sequence[Moving]
    renewals: Sequence[Renewal]


class Acknowledged:
    """Keeps acknowledged work for `REPLAY_S` seconds."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()

    def note(self, now: float, work: Exchange, moves: Sequence[Moving], renewals: Sequence[Renewal]) -> None:
        """Keep what an exchange has carried; of its moves and renewals those that were made."""
        if work.pages or work.ended or moves or renewals:
            self._sent.append(_Sent(now, work.pages, work.ended, moves, renewals))
        while self._sent and self._sent[0].at < now - REPLAY_S:
            self._sent.popleft()

    def forget(self) -> None:
        """Keep nothing: the server is another one."""
        self._sent.clear()

    def send_again(self, work: Exchange, lost_at: float) -> None:
        """Put what a server that was lost at a local time may have lost in front of the work that it gets next."""
        lost = [sent for sent in self._sent if sent.at >= lost_at - REPLAY_S]
        self._sent.clear()
        work.pages[:0] = [page for sent in lost for page in sent.pages]
        work.ended[:0] = [ended for sent in lost for ended in sent.ended]
        work.moves[:0] = [moving for sent in lost for moving in sent.moves]
        work.again[:0] = [renewal for sent in lost for renewal in sent.renewals]
