"""The rhythm of hosts: how much of what changes there changes in each hour of the day.

Notes
-----
Each host has a profile m of 24 hours with mean 1; its clock C(t) is the integral of m. A visit tells whether a page changed in an interval
that covers o_k seconds of hour k of the day. With y the mean change rate and p the probability of a change that was predicted, the changes
expected in the hour are ``e = y o_k``, and of a change that was seen the share ``e m_k / p`` is attributed to it (expectation maximisation,
online). Then ``m = (5 + num) / (5 + den)``, of sums smoothed over neighbouring hours. Intervals above two weeks say little, and are left
out. A profile of less than a day says nothing of hours: of what it has seen it only knows the mean.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOURS: Final = 24
#: Expected changes that a flat profile is worth.
PRIOR: Final = 5.0
#: Longest interval that is learned from, in days.
LONGEST: Final = 14.0
#: Weights of the hours at a distance of -2 to 2; and what sums of hours are multiplied by to be smoothed, (24, 24).
_SMOOTHING: Final = (0.05, 0.3, 1.0, 0.3, 0.05)
_SMOOTHED: Final = np.asarray(sum(weight * np.roll(np.eye(HOURS), at - 2, axis=1) for at, weight in enumerate(_SMOOTHING)))
#: A visit expects at most so many changes of its page.
_MOST_CHANGES: Final = 20.0
#: Least probability of a change that was seen.
_LEAST_CHANCE: Final = 1e-3
#: Beside the hour of which most was seen.
_NOTHING: Final = 1e-12


class Rhythms:
    """One profile for each host; all are flat at first.

    Parameters
    ----------
    day : float
        Length of a day in the unit of all times; days begin at multiples of it.

    Attributes
    ----------
    attributed, expected : ndarray (hosts, 24)
        The sums num and den.
    profile : ndarray (hosts, 24)
        m.
    begun : ndarray (hosts,)
        From when on visits tell of the host; inf: none does yet.
    """

    def __init__(self, day: float) -> None:
        self.day = day
        self.attributed: Floats = np.zeros((0, HOURS))
        self.expected: Floats = np.zeros((0, HOURS))
        self.profile: Floats = np.ones((0, HOURS))
        self.begun: Floats = np.zeros(0)
        self._clock: Floats = np.zeros((0, HOURS + 1))

    def grow(self, hosts: int) -> None:
        """Make room for so many hosts; those that are there stay."""
        more = hosts - len(self.profile)
        if more > 0:
            self.attributed = np.append(self.attributed, np.zeros((more, HOURS)), axis=0)
            self.expected = np.append(self.expected, np.zeros((more, HOURS)), axis=0)
            self.profile = np.append(self.profile, np.ones((more, HOURS)), axis=0)
            self.begun = np.append(self.begun, np.full(more, np.inf))
            self._clock = np.append(self._clock, np.tile(np.arange(HOURS + 1) * (self.day / HOURS), (more, 1)), axis=0)

    def refresh(self, hosts: Ints) -> None:
        """Make the profiles of some hosts anew from the sums."""
        profile = (PRIOR + self.attributed[hosts] @ _SMOOTHED) / (PRIOR + self.expected[hosts] @ _SMOOTHED)
        self.profile[hosts] = profile / profile.mean(axis=1, keepdims=True)
        self._clock[hosts, 1:] = np.cumsum(self.profile[hosts] * (self.day / HOURS), axis=1)

    def is_known(self, host: Ints, until: Floats) -> NDArray[np.bool_]:
        """Tell of visits that ended at these times whether a day of their host was seen before, and each hour of it: (n,)."""
        hours = (self.expected.min(axis=1, initial=np.inf) > 0.0)[host]
        return np.asarray(hours & (until - self.begun[host] >= self.day))

    def elapsed(self, host: Ints, since: Floats, until: Floats) -> Floats:
        """Return the time that passes on the clocks of hosts; all arguments have shape (n,)."""
        return self._at(host, until) - self._at(host, since)

    def _at(self, host: Ints, at: Floats) -> Floats:
        days = np.floor(at / self.day)
        hours = np.clip((at / self.day - days) * HOURS, 0.0, HOURS)
        hour = np.minimum(hours.astype(np.int64), HOURS - 1)
        return np.asarray(days * self.day + self._clock[host, hour] + (hours - hour) * self.profile[host, hour] * (self.day / HOURS))

    def fold(self, host: Ints, since: Floats, until: Floats, rate: Floats, odds: Floats) -> None:
        """Learn from visits; profiles stay as they are until `refresh`.

        Parameters
        ----------
        host, since, until : ndarray (n,)
            Of each visit, when the page was visited before, and now.
        rate : ndarray (n,)
            Mean change rate before the visit.
        odds : ndarray (n,)
            1 / p where a change was seen, by the clock of the rhythm; 0 where none was.
        """
        span = until - since
        told = (span > 0.0) & (span <= LONGEST * self.day)
        if not told.any():
            return
        host, since, until, span, rate, odds = host[told], since[told], until[told], span[told], rate[told], odds[told]
        np.minimum.at(self.begun, host, since)
        weight = np.minimum(rate, _MOST_CHANGES / span)
        hosts, row = np.unique(host, return_inverse=True)
        self.expected[hosts] += self._covered(since, until, weight, row, len(hosts))
        changed = np.flatnonzero(odds > 0.0)
        weight = weight[changed] * np.minimum(odds[changed], 1.0 / _LEAST_CHANCE)
        self.attributed[hosts] += self.profile[hosts] * self._covered(since[changed], until[changed], weight, row[changed], len(hosts))

    def _covered(self, since: Floats, until: Floats, weight: Floats, row: Ints, rows: int) -> Floats:
        """Sum weights times how much of each hour of the day lies between times, by row: (rows, 24).

        A time adds to its hour and to those after it, by a cumulative sum; whole days to all.
        """
        hour, begin = self.day / HOURS, row * (HOURS + 2)
        days = [np.floor(at / self.day) for at in (since, until)]
        places, added = [begin], [weight * (days[1] - days[0])]
        for at, midnight, sign in ((since, days[0], weight), (until, days[1], -weight)):
            hours = np.clip((at - midnight * self.day) / hour, 0.0, HOURS)
            low = hours.astype(np.int64)
            first, after = begin + low, sign * (hours - low)
            places += [first, first + 1]
            added += [sign - after, after]
        sums = np.bincount(np.concatenate(places), np.concatenate(added), rows * (HOURS + 2)).reshape(rows, HOURS + 2)
        covered = np.cumsum(sums, axis=1)[:, :HOURS]
        # What rounding leaves of nothing is nothing.
        covered[covered < _NOTHING * covered.max(axis=1, keepdims=True, initial=0.0)] = 0.0
        return np.asarray(covered * hour)
