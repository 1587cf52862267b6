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


def host_groups(settings: FrontierSettings, told: Sequence[DownloaderLimits], numbers: Mapping[str, int], hosts: int) -> HostGroups:
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
    default = sum(crawler.default or math.inf for crawler in crawlers)
    paced = 1.0 / settings.host_pause if settings.host_pause > 0 else math.inf
    if math.isinf(default) and math.isinf(paced) and not members:
        return HostGroups(group, None)
    capacity = np.full(hosts, min(default, paced, UNLIMITED))
    for first, together in members.items():
        admitted = 0.0
        for crawler in crawlers:
            rates, of_slots = 0.0, set()
            for slot in crawler.slots:
                mine = {numbers[host] for host in slot.hosts if host in numbers} & together
                rates += slot.rate if mine else 0.0
                of_slots |= mine
            admitted += rates + (crawler.default or math.inf) * len(together - of_slots) if together - of_slots else rates
        capacity[first] = min(admitted, paced * len(together), UNLIMITED)
    return HostGroups(group, capacity)
