"""The leases of a process, and the turns of hosts that came with them.

A handout comes with a turn of its host: the host then waits to be told that the fetch has begun, or that it never will. A lease that ends
before its turn was used gives the turn back, however it ended; else the host would stay shut until the server waits no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from optimal_frontier.frontier.dispatching.work import Lease, Start
from optimal_frontier.state.messages import Handout

#: The share of a lease for which it is held for sure, unless the server says otherwise.
_SURE_SHARE: Final = 0.97


class HeldLeases:
    """Leases by their pages, and turns that nobody has used yet by their hosts; the caller holds a lock around every call.

    Parameters
    ----------
    lease_s : float
        Seconds of a lease.
    has_turns : bool
        Hosts wait to be told when fetches begin.
    """

    def __init__(self, lease_s: float, *, has_turns: bool) -> None:
        self._lease_s = lease_s
        self._has_turns = has_turns
        self._live: dict[tuple[int, bytes], Lease] = {}
        self._turns: dict[str, Handout] = {}

    def __len__(self) -> int:
        return len(self._live)

    def all(self) -> list[Lease]:
        """Return all leases that are held."""
        return list(self._live.values())

    def of_hosts(self, hosts: Iterable[str]) -> set[str]:
        """Return those of some hosts of which leases are held."""
        wanted = set(hosts)
        return {lease.handout.host for lease in self._live.values() if lease.handout.host in wanted} if wanted else wanted

    def take(self, handouts: Iterable[Handout]) -> None:
        """Hold the leases of handouts."""
        for handout in handouts:
            self._live[handout.partition, handout.page] = Lease.of(handout)
            if self._has_turns:
                self._turns[handout.host] = handout

    def clear(self) -> None:
        """Hold nothing: the server knows of none."""
        self._live.clear()
        self._turns.clear()

    def of(self, handout: Handout) -> Lease:
        """Return the lease of a handout, held or not."""
        lease = self._live.get((handout.partition, handout.page))
        # The page may be leased anew since: then this is an old lease.
        return Lease.of(handout) if lease is None or lease.handout.token != handout.token else lease

    def is_held(self, lease: Lease) -> bool:
        """Tell whether it is among those that are held."""
        return self._live.get((lease.handout.partition, lease.handout.page)) is lease

    def is_sure(self, handout: Handout) -> bool:
        """Tell whether a lease is held still, as far as this process can know: it may have slept for longer than one lasts."""
        lease = self.of(handout)
        return self.is_held(lease) and time.monotonic() - lease.renewed_at < _SURE_SHARE * self._lease_s

    def end(self, handout: Handout) -> tuple[Lease, list[Start]]:
        """Return the lease of a handout, which is held no more, and the start that its host waits for and that will never be."""
        lease = self.of(handout)
        if self.is_held(lease):
            del self._live[handout.partition, handout.page]
        unused = self._turns.get(handout.host)
        if unused is None or (unused.page, unused.token) != (handout.page, handout.token):
            return lease, []
        return lease, self.give_turns_back([self._turns.pop(handout.host)])

    def use_turn(self, host: str) -> float | None:
        """Use the turn that came with a handout of a host; return until when it awaits its start (us), or None: there was none."""
        handout = self._turns.pop(host, None)
        return None if handout is None else self._awaited(handout)

    def unused(self) -> list[Start]:
        """Return the starts that will never be if all leases end now."""
        return self.give_turns_back(self._turns.values())

    def give_turns_back(self, handouts: Iterable[Handout]) -> list[Start]:
        """Return what tells hosts that the fetches of handouts for which they wait will never begin."""
        return [Start(handout.host, 0.0, self._awaited(handout)) for handout in handouts] if self._has_turns else []

    def _awaited(self, handout: Handout) -> float:
        """Return until when the host of a handout waits to be told of its start (us): as long as a lease, see `AskTerms`."""
        return (handout.at + self._lease_s) * 1e6
