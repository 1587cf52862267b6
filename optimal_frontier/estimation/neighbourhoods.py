"""Clocks of neighbourhoods: time passes faster for a page while its siblings are seen to change, and slower while they are seen not to.

Changes come together: a page whose siblings were just seen to change has probably changed too. The posterior of a page's change rate
stays as it is. Only what counts as the time since its last visit runs on the clock of its neighbourhood.

Notes
-----
A page is in one group of each of L levels (host, first two path segments, directory, directory and ending). A group keeps two sums for
each of the last `BINS` bins of time of length h: the changes that its visits expected in the bin (den) and those that are attributed to it
(num). With rho = `SHARE` and k = `STRENGTH`, the speed that group g adds in bin j, and the virtual time of page i from s to t, are ::

    ex(g, j) = (k rho + num) / (k + den)
    X_i(s, t) = (1 - L rho) (C(t) - C(s)) + sum over its groups g of the integral from s to t of ex(g, bin(u)) du

C is the calendar, or the clock of the host's rhythm where its gate is open (`rhythm`). Bins that were left behind count as if nothing were
known of them: ex = rho. Where nothing is known at all, X = t - s.

A visit to page i over (s, t] with posterior Gamma(a, b) before it expects ``e = a / b x overlap`` changes in each bin. It predicts a change
with probability ``p = 1 - (1 + X / b)^-a``. Then ``den += e``, and if a change was seen ``num += e ex / p``: expectation maximisation,
online. This is a self-exciting model (Hawkes 1971) whose kernel is learned anew in every bin. The visits of a batch all count with ex
from before the batch.

Each host has two gates (`likelihood_gates`), one for the fields and one for the rhythm. Where both are closed, X = t - s. Evidence for the
rhythm counts once a day of the host was seen, and each of its hours.

References
----------
Hawkes, A. G. (1971), "Spectra of some self-exciting and mutually exciting point processes", Biometrika 58(1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.group_bins import ATTRIBUTED, BINS, CHANGED, EXPECTED, SEEN, GroupBins
from optimal_frontier.estimation.likelihood_gates import LikelihoodGates, gains
from optimal_frontier.estimation.rhythm import HOURS, Rhythms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Bins in a round, the time in which the budget visits every page once: the length of a bin is chosen by this.
BINS_A_ROUND: Final = 8
#: rho: the share of a page's changes that each of its groups is given at first.
SHARE: Final = 0.125
#: k: expected changes in a bin that this share is worth; 0.3 in a round.
STRENGTH: Final = 0.3 / BINS_A_ROUND
#: A group of this number stands for none.
NO_GROUP: Final = -1
#: Least probability of a change that was seen.
_LEAST_CHANCE: Final = 1e-6
#: Beside the fullest bin of a group.
_NOTHING: Final = 1e-12
#: Pages whose clocks are read at once: more do not fit in the processor's cache.
_AT_ONCE: Final = 4096
#: Groups that are packed at once.
_PACKED_AT_ONCE: Final = 16_384
#: Rows from which on their bins are added up faster one bin after the other.
_MANY: Final = 64
#: A packed host begins with the evidence of its gates, and when its rhythm began to be learned.
_HOST: Final = np.dtype([("gates", "<f8", 3), ("sums", "<f4", (2, HOURS))])


@dataclass(frozen=True)
class VisitBatch:
    """Visits that gave a bit, with what was believed before them.

    Attributes
    ----------
    groups : ndarray of int (n, levels)
        Groups of each page, `NO_GROUP` for one that is not kept.
    host : ndarray of int (n,)
        Its host.
    since, until : ndarray (n,)
        When it was visited before, and now. `until` is when the copy was made.
    changed : ndarray of bool (n,)
        The bit.
    shape, time : ndarray (n,)
        Gamma posterior of its change rate before the visit, > 0.
    is_sample : ndarray of bool (n,)
        False where a signal chose the time of the visit: it does not count for the gates.
    """

    groups: Ints
    host: Ints
    since: Floats
    until: Floats
    changed: NDArray[np.bool_]
    shape: Floats
    time: Floats
    is_sample: NDArray[np.bool_]


class Neighbourhoods:
    """Clocks of groups of pages, learned from visits. Times are in one unit, seconds in a live crawl, from one origin.

    Parameters
    ----------
    bin_s : float
        Length of a bin, best `bin_length` of a round.
    day_s : float
        Length of a day. Days begin at multiples of it.
    levels : int
        Groups of a page.

    Attributes
    ----------
    bins : GroupBins
        The sums of the groups.
    gates, rhythm_gates : LikelihoodGates
        Of the hosts: whether groups, and the rhythm, move the clocks of their pages.
    rhythms : Rhythms
        Of the hosts.
    """

    def __init__(self, bin_s: float, day_s: float = 86_400.0, levels: int = 4) -> None:
        if not 1 <= levels < 1.0 / SHARE:
            raise InvalidProblemError(f"levels must be from 1 to {math.ceil(1.0 / SHARE) - 1}, got {levels!r}")
        self.levels = levels
        self.bins = GroupBins(bin_s)
        self.gates, self.rhythm_gates, self.rhythms = LikelihoodGates(), LikelihoodGates(), Rhythms(day_s)
        # Visits that the rhythm was not yet learned from: a profile moves slowly.
        self._waiting: list[tuple[Any, ...]] = []
        # The integral of ex from the beginning of the oldest bin, in bins, (groups + 1, BINS + 1).
        self._clock = np.zeros((0, BINS + 1), np.float32)
        self._remake_all()

    def grow(self, groups: int, hosts: int) -> None:
        """Make room for so many groups and hosts; those that are there stay. Cheap where there is room already."""
        for room in (self.gates, self.rhythm_gates, self.rhythms):
            room.grow(hosts)
        if groups > len(self.bins):
            self.bins.grow(groups)
            self._remake_all()

    @property
    def runs(self) -> NDArray[np.bool_]:
        """Of which hosts the clocks of pages run otherwise than the calendar, (hosts,)."""
        return np.asarray(self.gates.is_open | self.rhythm_gates.is_open)

    def advance(self, now: float) -> None:
        """Move on to the bin of a time: old bins are left behind, and the rhythm is learned from the visits since the last bin."""
        if self.bins.advance(now):
            self._remake_all()
            self._learn_rhythm()

    def fold(self, visits: VisitBatch) -> None:
        """Learn from visits, best those of a short time: a 64th of a round.

        Parameters
        ----------
        visits : VisitBatch
            In any order. Their hosts and groups have room (`grow`).
        """
        if not len(visits.until):
            return
        self.advance(float(visits.until.max()))
        self._attribute(visits, visits.shape / visits.time, _odds(visits.changed, self._judge(visits)))
        v = visits
        self._waiting.append((v.host, v.since, v.until, v.changed, v.shape, v.time, v.is_sample))

    def elapsed(self, groups: Ints, host: Ints, since: Floats, now: float) -> Floats:
        """Return the time since visits on the clocks of the pages; on the calendar where the gates of their hosts are closed.

        Parameters
        ----------
        groups : ndarray of int (m, levels)
            Groups of each page, `NO_GROUP` for one that is not kept.
        host : ndarray of int (m,)
            Its host.
        since : ndarray (m,)
            Its last visit.
        now : float
            Until when.

        Returns
        -------
        ndarray (m,)
        """
        self.advance(now)
        elapsed: Floats = np.asarray(now - since, np.float64)
        field, rhythm = self.gates.is_open[host], self.rhythm_gates.is_open[host]
        if rhythm.any():
            elapsed[rhythm] = self.rhythms.elapsed(host[rhythm], since[rhythm], np.full(int(rhythm.sum()), now))
        if field.all():
            elapsed = self._own * elapsed + self._integrals(groups, since, now)
        elif field.any():
            elapsed[field] = self._own * elapsed[field] + self._integrals(groups[field], since[field], now)
        return np.maximum(elapsed, 0.0)

    def speed(self, groups: Ints) -> Floats:
        """Return how fast the clocks of groups run in the newest bin beside the calendar: (m,), for people. 1 where nothing is known."""
        return np.asarray(self._excess(groups)[:, -1] / SHARE, np.float64)

    def recent(self, group: int, since: float) -> tuple[int, int]:
        """Return how many visits to a group saw a change, and how many there were, in the bins from that of a time on: for people."""
        first = min(max(math.floor((since - self.bins.begin) / self.bins.bin_s), 0), BINS)
        counts = self.bins.sums[:, group, first:].sum(axis=1)
        return round(float(counts[CHANGED])), round(float(counts[SEEN]))

    def forget(self, groups: Ints) -> None:
        """Make groups as if they were new; their numbers may be given to others."""
        self.bins.sums[:, groups] = 0.0
        self._remake(groups)

    def forget_hosts(self, hosts: Ints) -> None:
        """Make hosts as if they were new, likewise."""
        self._learn_rhythm()  # from visits that wait: the next ones of these numbers are another host's
        for gates in (self.gates, self.rhythm_gates):
            gates.evidence[hosts], gates.is_open[hosts] = 0.0, False
        for sums in (self.rhythms.attributed, self.rhythms.expected):
            sums[hosts] = 0.0
        self.rhythms.begun[hosts] = np.inf
        self.rhythms.refresh(hosts)

    def rescale(self, bin_s: float, now: float = math.inf) -> None:
        """Go over to bins that are a power of two times as long, none of which begins after ``now``, see `GroupBins.rescale`."""
        self.bins.rescale(bin_s, now)
        self._remake_all()

    def pack_groups(self, groups: Ints) -> list[bytes]:
        """Return what is known of each of some groups, 272 bytes; none for a group that is as if it were new."""
        return [packed for at in range(0, len(groups), _PACKED_AT_ONCE) for packed in self.bins.pack(groups[at : at + _PACKED_AT_ONCE])]

    def unpack_group(self, group: int, packed: bytes, now: float = math.inf) -> None:
        """Put what `pack_groups` returned, at any time, in the place of what is known of a group; see `GroupBins.unpack`."""
        newest = self.bins.newest
        self.bins.unpack(group, packed, now)
        if self.bins.newest != newest:
            self._remake_all()
        self._remake(np.array([group]))

    def pack_hosts(self, hosts: Ints) -> list[bytes]:
        """Return the gates and the profile of each of some hosts, 216 bytes, without the visits of the newest bin."""
        rows = np.zeros(len(hosts), _HOST)
        for at, gates in enumerate((self.gates.evidence, self.rhythm_gates.evidence, self.rhythms.begun)):
            rows["gates"][:, at] = gates[hosts]
        for at, sums in enumerate((self.rhythms.attributed, self.rhythms.expected)):
            rows["sums"][:, at] = sums[hosts]
        packed: list[bytes] = rows.view(f"V{rows.itemsize}").tolist()
        return packed

    def unpack_host(self, host: int, packed: bytes) -> None:
        """Put what `pack_hosts` returned of a host in the place of what is known of a host. A gate between its bounds is closed.

        Raises
        ------
        InvalidProblemError
            The bytes are no host.
        """
        if len(packed) != _HOST.itemsize:
            raise InvalidProblemError(f"host: expected {_HOST.itemsize} bytes, got {len(packed)}")
        row = np.frombuffer(packed, _HOST)[0]
        *evidences, self.rhythms.begun[host] = row["gates"].tolist()
        for gates, evidence in zip((self.gates, self.rhythm_gates), evidences, strict=True):
            gates.set(host, evidence)
        self.rhythms.attributed[host], self.rhythms.expected[host] = row["sums"]
        self.rhythms.refresh(np.array([host]))

    @property
    def _own(self) -> float:
        """Share of a page's changes that no group accounts for."""
        return 1.0 - self.levels * SHARE

    def _judge(self, visits: VisitBatch) -> Floats:
        """Count visits for the gates of the fields; return the chances of a change that the fields give."""
        host, since, until = visits.host, visits.since, visits.until
        base = until - since
        rhythm = self.rhythm_gates.is_open[host]
        if rhythm.any():
            base[rhythm] = self.rhythms.elapsed(host[rhythm], since[rhythm], until[rhythm])
        model = np.maximum(self._own * base + self._integrals(visits.groups, since, until), 0.0)
        gain, chance = gains(visits.shape, visits.time, model, base, visits.changed)
        self.gates.count(host, np.where(visits.is_sample, gain, 0.0))
        return chance

    def _learn_rhythm(self) -> None:
        """Take in the visits since the last bin: the gates of the rhythm, and the profiles."""
        if not self._waiting:
            return
        host, since, until, changed, shape, time, is_sample = (np.concatenate(column) for column in zip(*self._waiting, strict=True))
        self._waiting.clear()
        rhythmic = self.rhythms.elapsed(host, since, until)
        gain, chance = gains(shape, time, np.maximum(rhythmic, 0.0), until - since, changed)
        # Of less than a day the profile is no rhythm: it would only make good for a wrong prior.
        counts = is_sample & self.rhythms.is_known(host, until)
        self.rhythm_gates.count(host, np.where(counts, gain, 0.0))
        self.rhythms.fold(host, since, until, shape / time, _odds(changed, chance))
        self.rhythms.refresh(np.unique(host))

    def _attribute(self, visits: VisitBatch, rate: Floats, odds: Floats) -> None:
        """Add to the sums of groups what visits expected and saw."""
        bins, levels = self.bins, visits.groups.shape[1]
        groups = visits.groups.ravel()
        (some,) = (groups >= 0).nonzero()
        if not len(some):
            return
        groups, visit = groups[some], some // levels
        expected = rate * bins.bin_s
        spans = [np.minimum(np.maximum((at - bins.begin) / bins.bin_s, 0.0), BINS) for at in (visits.since, visits.until)]
        ended = np.minimum(spans[1].astype(np.int64), BINS - 1)
        rows, row = self._rows(groups)
        self._count(rows, row, ended[visit], odds[visit] > 0.0)
        seen, told = _covered(spans, (expected, expected * odds), visit, row, len(rows))
        attributed, before = (bins.sums[kind].take(rows, axis=0) for kind in (ATTRIBUTED, EXPECTED))
        attributed += _excess(attributed, before) * told
        before += seen
        bins.sums[ATTRIBUTED][rows], bins.sums[EXPECTED][rows] = attributed, before
        self._clock[rows, 1:] = _excess(attributed, before).cumsum(axis=1)

    def _count(self, rows: Ints, row: Ints, ended: Ints, changed: NDArray[np.bool_]) -> None:
        """Count visits by the bin in which they ended: one or two bins, as they are of a short time."""
        for at in np.bincount(ended).nonzero()[0].tolist():
            here = ended == at
            for kind, some in ((SEEN, here), (CHANGED, here & changed)):
                self.bins.sums[kind, rows, at] += np.bincount(row[some], minlength=len(rows)).astype(np.float32)

    def _rows(self, groups: Ints) -> tuple[Ints, Ints]:
        """Return the different ones of some groups, and where among them each is: `np.unique` in no order, in a fifth of its time."""
        place, numbers = np.empty(len(self.bins), np.int64), np.arange(len(groups))
        place[groups] = numbers
        rows = groups[place[groups] == numbers]
        place[rows] = numbers[: len(rows)]
        return rows, place[groups]

    def _integrals(self, groups: Ints, since: Floats, until: Floats | float) -> Floats:
        """Return the sum over groups of the integrals of ex, for spans of time; (m,)."""
        if isinstance(until, float) and groups.size > len(self.bins):
            # One time for all: once a group.
            at = np.full(len(self.bins) + 1, until)
            ends = self._positions(np.arange(len(at))[:, None], at)
            end, begin = sum(ends.take(of) for of in groups.T), self._positions(groups, since)
        elif len(since) < _MANY:
            # Both at once: of few pages most of the time is numpy's own.
            at = np.concatenate([np.full(since.shape, until) if isinstance(until, float) else until, since])
            end, begin = self._positions(np.concatenate([groups, groups]), at).reshape(2, -1)
        else:
            end = self._positions(groups, np.full(since.shape, until) if isinstance(until, float) else until)
            begin = self._positions(groups, since)
        return np.asarray((end - begin) * self.bins.bin_s)

    def _positions(self, groups: Ints, at: Floats) -> Floats:
        """The integrals of ex up to times, in bins, summed over the groups of each page, (m,). Beyond the bins on either side ex is the
        share."""
        place = (at - self.bins.begin) / self.bins.bin_s
        inside = np.minimum(np.maximum(place, 0.0), BINS)  # `np.clip` takes many times as long for few pages
        low = np.minimum(inside.astype(np.int64), BINS - 1)
        part = inside - low
        total: Floats = (groups.shape[1] * SHARE) * (place - inside)
        flat = self._clock.reshape(-1)
        for begin in range(0, len(total), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            # The last group stands for none, so that its number may be -1.
            first = groups[some].T * (BINS + 1) + low[some]
            below = flat.take(first)
            first += 1
            total[some] += (below + part[some] * (flat.take(first) - below)).sum(axis=0)
        return total

    def _excess(self, rows: Ints) -> NDArray[np.float32]:
        """Ex of groups, (rows, BINS)."""
        return _excess(*(self.bins.sums[kind].take(rows, axis=0) for kind in (ATTRIBUTED, EXPECTED)))

    def _remake(self, rows: Ints) -> None:
        self._clock[rows, 1:] = self._excess(rows).cumsum(axis=1)

    def _remake_all(self) -> None:
        rows = len(self.bins) + 1
        if len(self._clock) != rows:
            self._clock = np.zeros((rows, BINS + 1), np.float32)
        for at in range(0, rows, _AT_ONCE):
            self._remake(np.arange(at, min(at + _AT_ONCE, rows)))


def bin_length(round_s: float) -> float:
    """Return the length of bins for a round: the power of two seconds nearest to an eighth of it, in logarithms.

    Examples
    --------
    >>> bin_length(86_400.0), bin_length(1.0)
    (8192.0, 0.125)
    """
    return float(2.0 ** round(math.log2(round_s / BINS_A_ROUND)))


def fault_of_host(packed: bytes) -> str:
    """Return what is wrong with what is stored of a host; empty: nothing."""
    if len(packed) != _HOST.itemsize:
        return f"has {len(packed)} bytes, expected {_HOST.itemsize}"
    row = np.frombuffer(packed, _HOST)[0]
    (*evidence, begun), sums = row["gates"].tolist(), row["sums"]
    sound = all(map(math.isfinite, evidence)) and not math.isnan(begun) and bool(((sums >= 0.0) & np.isfinite(sums)).all())
    return "" if sound else "has numbers that no visits can have left"


def _odds(changed: NDArray[np.bool_], chance: Floats) -> Floats:
    """1 / p of visits that saw a change, else 0."""
    return np.asarray(np.where(changed, 1.0 / np.maximum(chance, _LEAST_CHANCE), 0.0))


def _excess(attributed: NDArray[np.float32], expected: NDArray[np.float32]) -> NDArray[np.float32]:
    """Ex, by the sums of bins."""
    return (attributed + np.float32(STRENGTH * SHARE)) / (expected + np.float32(STRENGTH))


def _covered(spans: Sequence[Floats], weights: Sequence[Floats], visit: Ints, row: Ints, rows: int) -> NDArray[np.float32]:
    """Sum weights times how much of each bin lies between visits, (weights, rows, BINS).

    What lies in front of a time is 1 in each bin before it, so visits add to the bins of two times, and to those after them by a
    cumulative sum. ``spans`` are from when and until when, in bins, within them; they and ``weights`` are of visits. ``visit`` and ``row``
    are of the pairs to sum: number of the visit, and the row that it adds to.
    """
    covered = np.empty((BINS + 2, len(weights), rows))
    lows = [at.astype(np.int64) for at in spans]
    firsts = [(low * rows)[visit] + row for low in lows]
    places = np.concatenate([place for first in firsts for place in (first, first + rows)])
    for which, weight in enumerate(weights):
        added = []
        for at, low, sign in zip(spans, lows, (1.0, -1.0), strict=True):
            after = sign * weight * (at - low)
            added += [(sign * weight - after)[visit], after[visit]]
        covered[:, which] = np.bincount(places, np.concatenate(added), rows * (BINS + 2)).reshape(BINS + 2, rows)
    covered = covered[:BINS]
    if rows < _MANY:
        np.cumsum(covered, axis=0, out=covered)
    else:
        for before, here in itertools.pairwise(covered):
            here += before
    # What rounding leaves of nothing is nothing.
    covered *= covered >= _NOTHING * covered.max(axis=0, initial=0.0)
    return covered.transpose(1, 2, 0).astype(np.float32)
