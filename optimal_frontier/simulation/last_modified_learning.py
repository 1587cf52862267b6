"""A learner that goes by what pages say about their last change, in a world where some hosts lie."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.last_modified import FIRST_WEIGHT, update_one_with_age, update_one_with_first_age
from optimal_frontier.estimation.trust import Trust, is_lie
from optimal_frontier.scheduling.planning import PRIOR_SHAPE
from optimal_frontier.simulation.learners import Seen
from optimal_frontier.simulation.worlds import Realised

#: Share of the hosts that lie in `with_liars`.
LIARS: Final = 0.2
#: Pages of a host.
HOST_PAGES: Final = 20
#: How hosts lie, in turn: the last change is always now; at a random time of the last 20 rounds; always the same; at the last deploy of the
#: site, every two rounds, unless the page changed since.
LIES: Final = ("now", "random", "frozen", "deploy")
_RANDOM_ROUNDS: Final = 20.0
_DEPLOY_ROUNDS: Final = 2.0


class LastModified:
    """The Gamma posterior with ages of pages, as in a live crawl whose hosts send Last-Modified.

    Parameters
    ----------
    world : Realised
        Its size and budget give the prior.
    liars : float
        Share of the hosts that lie, from 0 to 1.
    is_checked : bool
        Whether a host is believed only when it has earned it; else all are, at once.
    first_weight : float
        Of what a page said before its first change was seen, see `update_with_first_age`.

    Raises
    ------
    InvalidProblemError
        If `liars` is out of range.
    """

    def __init__(self, world: Realised, liars: float = 0.0, *, is_checked: bool = True, first_weight: float = FIRST_WEIGHT) -> None:
        if not 0.0 <= liars <= 1.0:
            raise InvalidProblemError(f"liars must be a share from 0 to 1, got {liars!r}")
        self.shape, self.time = np.zeros(len(world)), np.zeros(len(world))
        self.prior_time = len(world) / world.budget
        self.is_checked, self.first_weight = is_checked, first_weight
        hosts = -(-len(world) // HOST_PAGES)
        #: Host of each page: not the world's, as who lies has nothing to do with who changes often.
        self.host = np.arange(len(world)) % hosts
        self.lie = np.where(np.arange(hosts) < round(liars * hosts), np.arange(hosts) % len(LIES), -1)
        self.trust = [Trust()] * hosts
        self.trusted = np.full(hosts, not is_checked)
        self._rng = np.random.default_rng(3)

    def learn(self, seen: Seen) -> None:
        """Take in a visit."""
        page, interval, changed = seen.page, seen.interval, seen.changed
        shape, time = float(self.shape[page]), float(self.time[page])
        is_first_bit = shape <= 0.0
        if is_first_bit:
            shape, time = PRIOR_SHAPE, self.prior_time
        host, age, rate = int(self.host[page]), self.told(seen), shape / time
        is_believed = bool(self.trusted[host]) and not math.isnan(age)
        shape, time = update_one_with_age(shape, time, interval, age if is_believed else None, changed)
        if is_believed and is_first_bit and not changed and age >= interval:
            # What was said at the first visit still stands at the first bit, unless that is a change.
            shape, time = update_one_with_first_age(shape, time, age - interval, self.first_weight)
        self.shape[page], self.time[page] = shape, time
        if self.is_checked and not math.isnan(age):
            self.trust[host] = self.trust[host].after(changed, is_lie(interval, age, changed, rate))
            self.trusted[host] = self.trust[host].is_earned

    def told(self, seen: Seen) -> float:
        """Return what the page says its age is."""
        lie = LIES[kind] if (kind := self.lie[self.host[seen.page]]) >= 0 else ""
        if lie == "now":
            return 0.0
        if lie == "random":
            return float(_RANDOM_ROUNDS * self.prior_time * self._rng.random())
        if lie == "frozen":
            return seen.at + _RANDOM_ROUNDS * self.prior_time
        if lie == "deploy":
            deployed = seen.at % (_DEPLOY_ROUNDS * self.prior_time)
            return deployed if math.isnan(seen.age) else min(seen.age, deployed)
        return seen.age


def with_liars(world: Realised) -> LastModified:
    """Return a learner in a world where one host in five lies."""
    return LastModified(world, LIARS)
