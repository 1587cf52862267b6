"""A learner that goes by what pages say about their last change, in a world where some hosts lie."""

from __future__ import annotations

from typing import Final

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.last_modified import FIRST_WEIGHT, update_with_age, update_with_first_age
from optimal_frontier.estimation.trust import SURE, are_lies, fade, rare_lies
from optimal_frontier.scheduling.planning import PRIOR_SHAPE
from optimal_frontier.simulation.learners import Seen
from optimal_frontier.simulation.ragged import Floats, Ints
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
        #: Faded counts of checks and lies by host, at visits without a change and with one.
        self.checks, self.lies = np.zeros((2, hosts)), np.zeros((2, hosts))
        self.trusted = np.full(hosts, not is_checked)
        self._rng = np.random.default_rng(3)

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
        pages, intervals = seen.pages, seen.intervals
        known = self.shape[pages] > 0
        a, b = np.where(known, self.shape[pages], PRIOR_SHAPE), np.where(known, self.time[pages], self.prior_time)
        told = self.told(seen)
        believed = np.where(self.trusted[self.host[pages]], told, np.nan)
        shape, time = update_with_age(a, b, intervals, believed, seen.changed)
        # What was said at the first visit still stands at the first bit, unless that is a change.
        before = np.where(~known & ~seen.changed & (believed >= intervals), believed - intervals, np.nan)
        self.shape[pages], self.time[pages] = update_with_first_age(shape, time, before, weight=self.first_weight)
        if self.is_checked:
            self._check(seen, told, a / b)

    def told(self, seen: Seen) -> Floats:
        """Return what the pages say their ages are."""
        lie, told = self.lie[self.host[seen.pages]], seen.ages.copy()
        told[lie == 0] = 0.0
        told[lie == 1] = _RANDOM_ROUNDS * self.prior_time * self._rng.random(np.count_nonzero(lie == 1))
        told[lie == 2] = seen.until[lie == 2] + _RANDOM_ROUNDS * self.prior_time
        deployed = seen.until % (_DEPLOY_ROUNDS * self.prior_time)
        told[lie == 3] = np.fmin(told, deployed)[lie == 3]
        return told

    def _check(self, seen: Seen, told: Floats, rates: Floats) -> None:
        lies = are_lies(seen.intervals, told, seen.changed, rates)
        for changed in (0, 1):
            counted = (seen.changed == changed) & ~np.isnan(told)
            checks = self._by_host(seen.pages[counted], np.ones(np.count_nonzero(counted)))
            lying = self._by_host(seen.pages[counted], lies[counted].astype(np.float64))
            now = checks > 0
            total, wrong = fade(self.checks[changed][now], self.lies[changed][now], checks[now], lying[now])
            self.checks[changed][now], self.lies[changed][now] = total, wrong
        for host in np.unique(self.host[seen.pages]).tolist():
            unchanged, moved = self.checks[0][host], self.lies[0][host]
            changed_, wrong_ = self.checks[1][host], self.lies[1][host]
            self.trusted[host] = rare_lies(changed_, wrong_) >= SURE and rare_lies(unchanged, moved) >= 1.0 - SURE

    def _by_host(self, pages: Ints, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.host[pages], weights=values, minlength=len(self.trusted)), dtype=np.float64)


def with_liars(world: Realised) -> LastModified:
    """Return a learner in a world where one host in five lies."""
    return LastModified(world, LIARS)
