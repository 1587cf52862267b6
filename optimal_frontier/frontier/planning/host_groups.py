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
        Of which partition each is: a crawler that does not serve it adds nothing. Hosts that nobody serves are limited by no downloader.
    """
    crawlers = told or [DownloaderLimits(1.0 / settings.slot_period if settings.slot_period > 0 else 0.0)]
    group = np.arange(hosts)
    members: dict[int, set[int]] = {}
    for crawler in crawlers:
        for slot in crawler.slots:
            known = {numbers[host] for host in slot.hosts if host in numbers}
            old = {int(group[host]) for host in known}
            together = known.union(*(members.pop(first) for first in old if first in members))
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
    firsts, admitted = list(members), np.zeros(hosts)
    for crawler, served in zip(crawlers, serves, strict=True):
        others = served.copy()
        for slot in crawler.slots:
            known = {numbers[host] for host in slot.hosts if host in numbers}
            others[list(known)] = False
            admitted[group[list(known)[:1]]] += slot.rate
        apart = np.bincount(group[others], minlength=hosts)
        admitted[apart > 0] += (crawler.default or math.inf) * apart[apart > 0]
    admitted[admitted == 0] = math.inf
    capacity[firsts] = np.minimum(admitted[firsts], np.minimum(paced * np.bincount(group, minlength=hosts)[firsts], UNLIMITED))
    return HostGroups(group, capacity)
