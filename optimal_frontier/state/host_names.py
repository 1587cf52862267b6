"""Names of hosts by their numbers: asked for once, as a host keeps its number for as long as its namespace stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

#: Hosts of which names are kept; beyond that all are asked for again.
MOST_HOSTS: Final = 100_000


class HostNames:
    """Names of the hosts of a namespace.

    Numbers are given in order, so a partition that has fewer hosts than before was emptied: its numbers mean other hosts from then on. They
    may do so too where a server lost its last second, so whoever finds a server that is not the one it was calls `forget`.

    Parameters
    ----------
    ask : callable
        Partition and numbers -> their names, None where there is none.
    """

    def __init__(self, ask: Callable[[int, list[int]], list[bytes | None]]) -> None:
        self._ask = ask
        self._names: dict[int, dict[int, str]] = {}
        self._hosts: dict[int, int] = {}

    def look_up(self, partition: int, numbers: Iterable[int], hosts: int) -> dict[int, str]:
        """Return the names of all hosts that are known, those of ``numbers`` among them if they have one.

        Parameters
        ----------
        partition : int
        numbers : iterable of int
        hosts : int
            How many hosts the partition has.
        """
        if hosts < self._hosts.get(partition, 0) or len(self._names.get(partition, ())) >= MOST_HOSTS:
            self._names.pop(partition, None)
        self._hosts[partition] = hosts
        known = self._names.setdefault(partition, {})
        new = list({number for number in numbers if number not in known})
        if new:
            found = zip(new, self._ask(partition, new), strict=True)
            known.update((number, name.decode(errors="replace")) for number, name in found if name is not None)
        return known

    def forget(self) -> None:
        """Forget all names."""
        self._names.clear()
        self._hosts.clear()
