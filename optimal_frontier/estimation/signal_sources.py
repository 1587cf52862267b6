"""What the word of a source is worth: the share of changes that it tells of, and how often it tells of none.

A source is whatever says that pages have changed: a sitemap, a feed, a listing, a ping. Every visit that finds a page changed or unchanged,
and knows how many signals came since the visit before, is a check of it.

Notes
-----
Let a page change at the rate x, a share r of the changes be told of, false signals come at the rate f, and signals in all at the rate
g = r x + f. After an interval I with n signals the page is unchanged with the chance ``q = exp(-(1 - r) x I) (f / g)^n``, and all that is
known has the likelihood ``g^n exp(-g I) x (q or 1 - q)``, whatever rule of signals and time chose the moment of the visit. It falls into
two factors.

The first is about the signals alone. Some come to every page alike, as from a sitemap that says "now" of all entries whenever it is read;
some come to pages as often as they change: ``g = u + v x``, a straight line, fitted to the signals of pages by least squares.

The second is about r alone, as ``f = g - r x``. Its logarithm is summed up on a grid of recalls, `RECALLS`, one of which is 0: a source
that signals at random. The recall that is believed is the mean of the posterior over the grid. A share `MISTAKEN` of the bits is taken for
chance, so that no single visit decides. Where x is not known well, ``exp(-(1 - r) x I)`` is its mean over the posterior of x, after the
signals: the more of them came, the more often the page changes.

Both fade: the last `MEMORY` visits with a signal or a change count. The kind of a source says what is assumed of it before anything is
known, as if so many changes had been seen. Signals that come within the delay of a source after a visit tell, as a rule, of what the visit
has seen already. They are to be left out.

Expectations of what is not seen, an online EM for r and f, were tried: it takes ten times as many visits to find out a source that lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

#: Recalls that are told apart.
RECALLS: Final = (0.0, 0.08, 0.18, 0.3, 0.42, 0.54, 0.66, 0.78, 0.88, 0.95, 0.99)
_RECALLS: Final = np.array(RECALLS)
#: Visits with a signal or a change that are remembered.
MEMORY: Final = 500.0
#: Share of the bits that tell nothing: copies that changed and changed back, pages served from several places.
MISTAKEN: Final = 0.02
#: Least share of the signals that is false: what is known of a source is never so sure that one signal more would make no difference.
LEAST_FALSE: Final = 0.02
#: A source whose signals are true less often than this is as good as none: neither its signals nor its silence count.
LEAST_PRECISION: Final = 0.05
#: Signals that what is assumed of the rate of signals counts as much as, for a page.
UNHEARD: Final = 3.0
#: Shape of the posterior of a rate that is known.
_KNOWN: Final = 1e15
#: Chance that a source of any kind signals at random.
AT_RANDOM: Final = 0.1


class Kind(NamedTuple):
    """What is assumed of a source of a kind before anything is known of it.

    Attributes
    ----------
    recall : float
        Share of the changes that it tells of.
    false_share : float
        False signals for each change.
    weight : float
        Changes that this counts as much as.
    """

    recall: float
    false_share: float
    weight: float


#: Kinds of sources. Pings come from the site itself, soon after a change; sitemaps are often made anew without one.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {"ping": Kind(0.7, 0.2, 4.0), "feed": Kind(0.5, 0.3, 4.0), "listing": Kind(0.5, 0.5, 4.0), "sitemap": Kind(0.5, 0.5, 4.0)}
)
#: Of a source of no known kind.
PLAIN: Final = Kind(0.4, 0.5, 4.0)


@dataclass(frozen=True, slots=True)
class Believed:
    """What is believed of a source, for pages of any change rate. Found once for a record, and read at every visit: slots are read fast.

    Attributes
    ----------
    recall : float
        Share of the changes that it tells of.
    even, slope : float
        Signals a second of a page of the change rate x are ``even + slope x``.
    signals : float
        That were heard of it, as far as they count still.
    """

    recall: float
    even: float
    slope: float
    signals: float

    def false_rate(self, change_rate: float) -> float:
        """Return how many signals a second come to a page of this change rate (1/s) that no change caused."""
        total = self.even + self.slope * change_rate
        false, least = total - self.recall * change_rate, LEAST_FALSE * total
        return false if false > least else least

    @property
    def least_rate(self) -> float:
        """Change rate (1/s) from which on `LEAST_PRECISION` of the signals are true, so that they count; inf: of no page are they."""
        more = self.recall - LEAST_PRECISION * self.slope
        return LEAST_PRECISION * self.even / more if more > 0.0 else math.inf

    def precision(self, change_rate: float) -> float:
        """Return the probability that a signal is true, for a page of this change rate (1/s)."""
        told = self.recall * change_rate
        return told / (told + self.false_rate(change_rate)) if told > 0.0 else 0.0

    def false_rate_after(self, change_rate: float, signals: float, seconds: float) -> float:
        """Return the false rate of a page that had so many signals in so many seconds.

        Parameters
        ----------
        change_rate : float
            Changes per second of the page.
        signals : float
            That came to it since it was seen.
        seconds : float
            Since then.

        Notes
        -----
        Signals come g times a second. What is believed of g is worth as many signals as were heard at visits, and `UNHEARD`. So the
        many signals of a source that no visit has checked yet are taken for its habit: however many come, in all they have an evidence
        of little more than ``UNHEARD recall x / g``. Changes cannot have caused more than ``recall x`` of them.

        Examples
        --------
        >>> new = SignalSource().believed()
        >>> [round(n * math.log1p(new.recall / new.false_rate_after(1.0, n, 0.0)), 2) for n in (1, 2, 10, 100)]
        [0.39, 0.6, 1.05, 1.26]
        """
        total = self.even + self.slope * change_rate
        known = UNHEARD + self.signals
        total *= max((known + signals) / (known + total * seconds), 1.0)
        return max(total - self.recall * change_rate, LEAST_FALSE * total)


class SignalVisit(NamedTuple):
    """A visit to a page that a source covers.

    Attributes
    ----------
    interval : float
        Seconds since the last successful visit.
    signals : float
        Of the source, in between.
    changed : bool
        The bit.
    change_rate : float
        Changes per second that the page was believed to have before the visit, above 0: the mean of the posterior.
    shape : float
        Of the Gamma posterior of that rate; inf: it is known.
    """

    interval: float
    signals: float
    changed: bool
    change_rate: float
    shape: float = math.inf


#: Fields of a `SignalVisit` in plain: it is made in a tenth of the time.
PlainVisit = tuple[float, float, bool, float, float]


class SignalSource(NamedTuple):
    """What was found out about a source; 0 at first. It fades.

    Attributes
    ----------
    time, changes, squares : float
        Seconds of pages that it covered, changes that were expected in them, and these times the change rate; in all, pages that change
        often weigh less.
    signals, products : float
        Signals in that time, and these times the change rate of their pages.
    likelihoods : tuple of float
        Logarithms, one for each of `RECALLS`.
    """

    time: float = 0.0
    changes: float = 0.0
    squares: float = 0.0
    signals: float = 0.0
    products: float = 0.0
    likelihoods: tuple[float, ...] = (0.0,) * len(RECALLS)

    @classmethod
    def parse(cls, text: str) -> SignalSource:
        """Read what is stored; an empty text stands for a source of which nothing is known."""
        numbers = tuple(map(float, text.split()))
        if not numbers:
            return cls()
        time, changes, squares, signals, products = numbers[:5]
        return cls(time, changes, squares, signals, products, numbers[5:])

    @property
    def text(self) -> str:
        """What is stored, about 100 characters; `parse` reads it."""
        return " ".join(f"{number:.6g}" for number in (*self[:5], *self.likelihoods))

    def recall(self, kind: Kind = PLAIN) -> float:
        """Return the share of the changes that it tells of, as is believed; 3 us.

        Examples
        --------
        >>> 0.3 < SignalSource().recall() < 0.4 < SignalSource().recall(KINDS["ping"])
        True
        """
        logarithms = [prior + seen for prior, seen in zip(_log_prior(kind), self.likelihoods, strict=True)]
        most = max(logarithms)
        weights = [math.exp(logarithm - most) for logarithm in logarithms]
        return sum(weight * recall for weight, recall in zip(weights, RECALLS, strict=True)) / sum(weights)

    def false_rate(self, change_rate: float, recall: float, kind: Kind = PLAIN) -> float:
        """Return how many signals a second come to a page of this change rate that no change caused.

        Parameters
        ----------
        change_rate : float
            Changes per second of the page.
        recall : float
            That is believed, from `recall`.
        kind : Kind

        Examples
        --------
        >>> round(SignalSource().false_rate(0.1, 0.4), 3)
        0.05
        """
        return Believed(recall, *self._line(kind), 0.0).false_rate(change_rate)

    def believed(self, kind: Kind = PLAIN) -> Believed:
        """Return what is believed of the source, for pages of any change rate; 10 us."""
        return Believed(self.recall(kind), *self._line(kind), self.signals)

    def _line(self, kind: Kind) -> tuple[float, float]:
        """Signals a second of a page of rate x are ``u + v x``: u and v by weighted least squares, neither below 0."""
        time, changes, squares, signals, products = self[:5]
        assumed = kind.recall + kind.false_share
        if changes <= 0.0:
            return 0.0, assumed
        mean = changes / time
        # What is assumed: pages that change half as often and twice as often as the mean one, whose signals come half of them by chance.
        for rate in (0.5 * mean, 2.0 * mean):
            seconds = 0.5 * kind.weight / rate
            came = 0.5 * assumed * (mean + rate) * seconds
            time, changes, squares = time + seconds, changes + rate * seconds, squares + rate * rate * seconds
            signals, products = signals + came, products + rate * came
        slope = (time * products - changes * signals) / (time * squares - changes * changes)
        slope = min(max(slope, 0.0), signals / changes)
        return (signals - slope * changes) / time, slope

    def after(self, visit: SignalVisit, kind: Kind = PLAIN) -> SignalSource:
        """Return what is known after one more visit to a page that it covers; 10 us.

        Examples
        --------
        >>> source = liar = SignalSource()
        >>> for _ in range(50):
        ...     source = source.after(SignalVisit(10.0, 1, True, 0.07)).after(SignalVisit(10.0, 0, False, 0.07))
        ...     for signals, changed in ((1, True), (1, False), (0, True), (0, False)):
        ...         liar = liar.after(SignalVisit(10.0, signals, changed, 0.07))
        >>> source.recall() > 0.9, liar.recall() < 0.1
        (True, True)
        """
        interval, signals, changed, rate, shape = visit
        even, slope = self._line(kind)
        total = even + slope * rate
        expected = rate * interval
        likely = rate
        if shape < math.inf:
            # Many signals of a page that is hardly known: it changes more often than was believed; few: less often.
            before, shape = shape, shape + signals * slope * rate / total
            likely = shape / (before / rate + slope * interval)
        kept = 1.0 - 1.0 / MEMORY if changed or signals else 1.0
        changes, share = likely * interval, likely / (even + slope * likely) if signals else 0.0
        likelihoods = []
        for recall, seen in zip(RECALLS, self.likelihoods, strict=True):
            silent = (1.0 - recall) * changes
            doubt = silent if shape == math.inf else shape * math.log1p(silent / shape)
            if signals:
                false = 1.0 - recall * share
                doubt -= signals * math.log(false if false > LEAST_FALSE else LEAST_FALSE)
            fresh = math.exp(-doubt)
            chance = 1.0 - fresh if changed else fresh
            likelihoods.append(kept * seen + math.log(0.5 * MISTAKEN + (1.0 - MISTAKEN) * chance))
        # Only differences count; so they stay small.
        most = max(likelihoods)
        mean = self.changes / self.time if self.time > 0.0 else rate
        weight = mean / (mean + rate)
        return SignalSource(
            kept * self.time + weight * interval,
            kept * self.changes + weight * expected,
            kept * self.squares + weight * expected * rate,
            kept * self.signals + weight * signals,
            kept * self.products + weight * signals * rate,
            tuple(likelihood - most for likelihood in likelihoods),
        )


def taught(known: Sequence[tuple[SignalSource, Believed]], of: ArrayLike, visits: ArrayLike) -> list[tuple[float, tuple[float, ...]]]:
    """Return what visits teach of their sources, all judged by what is known now: `SignalSource.after` for many, as something to add.

    Parameters
    ----------
    known : sequence of (SignalSource, Believed)
        Record of each source, and what is believed by it.
    of : array_like of int (n,)
        Number of the source of each visit; each source has one at least.
    visits : array_like (n, 5)
        Fields of `SignalVisit`, in their order of time.

    Returns
    -------
    list of (keep, sums)
        Of each source: what is left of each number of its record, and what is added to that, five sums and then logarithms of likelihoods.
        Of these only differences count.

    Notes
    -----
    About 100 us, and 1 us a visit. For one visit it is `SignalSource.after`; of many of one source, the first ones have faded by the end.
    """
    order = np.argsort(of, kind="stable")
    number = np.asarray(of)[order].astype(np.int64)
    interval, signals, changed, rate, before = np.asarray(visits, np.float64)[order].T
    firsts = np.flatnonzero(np.diff(number, prepend=-1))
    lines = [(one.even, one.slope, record.changes / record.time if record.time > 0.0 else math.nan) for record, one in known]
    even, slope, mean = np.array(lines)[number].T
    expected, before = rate * interval, np.minimum(before, _KNOWN)
    after = before + signals * slope * rate / (even + slope * rate)
    likely = after / (before / rate + slope * interval)
    doubt = after * np.log1p(np.multiply.outer(1.0 - _RECALLS, likely * interval / after))
    told = np.flatnonzero(signals)
    share = (likely / (even + slope * likely))[told]
    doubt[:, told] -= signals[told] * np.log(np.maximum(1.0 - np.multiply.outer(_RECALLS, share), LEAST_FALSE))
    seen = np.log(0.5 * MISTAKEN + (1.0 - MISTAKEN) * (changed + (1.0 - 2.0 * changed) * np.exp(-doubt)))
    mean = np.where(np.isnan(mean), rate, mean)
    weight = mean / (mean + rate)
    # What is left of each visit at the end: those of its source that come after it make it fade.
    fading = np.cumsum((changed > 0.0) | (signals > 0.0))
    until = fading[np.append(firsts[1:], len(number)) - 1]
    left = (1.0 - 1.0 / MEMORY) ** (until[number] - fading)
    keep = (1.0 - 1.0 / MEMORY) ** np.diff(until, prepend=0)
    sums = np.add.reduceat(np.array((interval, expected, expected * rate, signals, signals * rate)) * (weight * left), firsts, axis=1)
    likelihoods = np.add.reduceat(seen * left, firsts, axis=1)
    added = np.concatenate([sums, likelihoods - likelihoods.max(axis=0)]).T.tolist()
    return [(kept, tuple(more)) for kept, more in zip(keep.tolist(), added, strict=True)]


@cache
def _log_prior(kind: Kind) -> tuple[float, ...]:
    """As if ``weight`` changes had been seen, the share ``recall`` of them told of."""
    told, missed = kind.weight * kind.recall, kind.weight * (1.0 - kind.recall)
    weights = [recall**told * (1.0 - recall) ** missed for recall in RECALLS[1:]]
    scale = (1.0 - AT_RANDOM) / sum(weights)
    return (math.log(AT_RANDOM), *(math.log(scale * weight) for weight in weights))
