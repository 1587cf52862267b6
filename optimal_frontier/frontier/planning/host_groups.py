"""What each host can really bear: HOST_DELAY and HOST_MAX_RATE over all crawlers, and what their downloaders admit, added up.

Hosts that share a slot of a downloader are one limit: a group, which plans treat as one host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import DownloaderLimits

#: Stands for "no limit" where some hosts have one, fetches per second: it stays finite, as sums and quotients are made of it.
UNLIMITED: Final = 1e12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class HostGroups(NamedTuple):
    """Hosts 0, 1, ... and their limits.

    Attributes
    ----------
    group : ndarray of int (hosts,)
        The host that stands for each one's group: its own number for most.
    capacity : ndarray (hosts,) or None
        Most fetches per second of the group that a host stands for; None: nothing limits any.
    """

    group: Ints
    capacity: Floats | None


def host_groups(
    settings: FrontierSettings, told: Sequence[DownloaderLimits], numbers: Mapping[str, int], hosts: int, partitions: Ints | None = None
) -> HostGroups:
    """Return the groups of hosts and what they bear.

    Parameters
    ----------
    settings : FrontierSettings
        HOST_DELAY, HOST_MAX_RATE and DOWNLOAD_DELAY.
    told : sequence of DownloaderLimits
        Of each crawler; none: as if there were one that has nothing but DOWNLOAD_DELAY.
    numbers : mapping of str to int
        Numbers of the hosts that are told of, below ``hosts``; others are passed over.
    hosts : int
        How many there are.
    partitions : ndarray of int (hosts,), optional
        Of which partition each is: a crawler that does not serve it adds nothing. Hosts that nobody serves count as if none did more.
    """
    crawlers = told or [DownloaderLimits(1.0 / settings.slot_period if settings.slot_period > 0 else 0.0)]
    group = np.arange(hosts)
    members: dict[int, set[int]] = {}
    for crawler in crawlers:
        for slot in crawler.slots:
            known = sorted({numbers[host] for host in slot.hosts if host in numbers})
            together = set(known).union(*(members[group[host]] for host in known if group[host] in members))
            for old in {int(group[host]) for host in known}:
                members.pop(old, None)
            if together:
                members[min(together)] = together
                group[list(together)] = min(together)
    everywhere, default = np.ones(hosts, bool), np.zeros(hosts)
    serves = [everywhere if one.served is None or partitions is None else np.isin(partitions, one.served) for one in crawlers]
    for crawler, served in zip(crawlers, serves, strict=True):
        default[served] += crawler.default or math.inf
    default[default == 0] = math.inf
    paced = 1.0 / settings.host_pause if settings.host_pause > 0 else math.inf
    if np.isinf(default).all() and math.isinf(paced) and not members:
        return HostGroups(group, None)
    capacity = np.minimum(default, min(paced, UNLIMITED))
    for first, together in members.items():
        admitted = 0.0
        for crawler, served in zip(crawlers, serves, strict=True):
            rates, of_slots = 0.0, set()
            for slot in crawler.slots:
                mine = {numbers[host] for host in slot.hosts if host in numbers} & together
                rates += slot.rate if mine else 0.0
                of_slots |= mine
            others = sum(bool(served[host]) for host in together - of_slots)
            admitted += rates + (crawler.default or math.inf) * others if others else rates
        capacity[first] = min(admitted or math.inf, paced * len(together), UNLIMITED)
    return HostGroups(group, capacity)
