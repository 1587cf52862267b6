"""What the word of a source is worth: the share of changes that it tells of, and how often it tells of none.

A source is whatever says that pages have changed: a sitemap, a feed, a listing, a ping. Every visit that finds a page changed or unchanged,
and knows how many signals came since the visit before, is a check of it.

Notes
-----
Let a page change at the rate x, a share r of the changes be told of, and false signals come at the rate f. After an interval I with n
signals the chance that the page is unchanged is ``q = exp(-(1 - r) x I) (f / (f + r x))^n``, whatever rule of signals and time chose the
moment of the visit. What is not seen is counted by its expectation (EM, Dempster et al. 1977, online):

=========================  ============================  ==================================================================
expected at a visit        of an unchanged page          of a changed one
=========================  ============================  ==================================================================
changes that were told of  0                             ``n r x / (f + r x) / (1 - q)``, at most n
changes that were not      0                             ``(1 - r) x I / (1 - q)``
false signals              n                             the rest of n
=========================  ============================  ==================================================================

r is the first over the first two. False signals are of two sorts: some come to every page alike, as from a sitemap that says "now" of all
entries whenever it is read; some come to pages as often as they change, as from a feed that tells of a change twice. The rate of the
first is counted per second, that of the second per expected change, and each false signal is shared out between them. Counts fade: the last
`MEMORY` visits with a signal or a change count. The KIND of a source says what is assumed of it before, as if so many changes had been
seen.

Signals that come within the delay of a source after a visit tell, as a rule, of what the visit has seen already. They are to be left out.

References
----------
Dempster, Laird and Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39, 1977; Cappe and Moulines, On-line
expectation-maximization, JRSS B 71, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

#: Visits with a signal or a change that are remembered.
MEMORY: Final = 500.0
#: Recall is never believed to be closer to 1 than this.
MOST_RECALL: Final = 0.999
#: Of false signals, the share that is assumed to come to every page alike.
_EVEN_SHARE: Final = 0.5


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
    delay : float
        Seconds after a visit in which its signals are left out, as they tell of what the visit saw.
    """

    recall: float
    false_share: float
    weight: float
    delay: float


#: Kinds of sources. Pings come from the site itself, soon after a change; sitemaps are often made anew without one.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "ping": Kind(0.7, 0.2, 4.0, 0.0),
        "feed": Kind(0.5, 0.3, 4.0, 0.0),
        "listing": Kind(0.5, 0.5, 4.0, 0.0),
        "sitemap": Kind(0.5, 0.5, 4.0, 0.0),
    }
)
#: Of a source of no known kind.
PLAIN: Final = Kind(0.4, 0.5, 4.0, 0.0)


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
        Changes per second that the page was believed to have, above 0.
    """

    interval: float
    signals: float
    changed: bool
    change_rate: float


class SignalSource(NamedTuple):
    """What was found out about a source; six numbers, all 0 at first. They fade, and those of two crawls add up.

    Attributes
    ----------
    told, missed : float
        Changes that it told of, and that it did not.
    even, echoed : float
        False signals that come to all pages alike, and those that come to pages as often as they change.
    time, changes : float
        Seconds of pages that it covered, and changes that were expected in them.
    """

    told: float = 0.0
    missed: float = 0.0
    even: float = 0.0
    echoed: float = 0.0
    time: float = 0.0
    changes: float = 0.0

    @classmethod
    def parse(cls, text: str) -> SignalSource:
        """Read what is stored; an empty text stands for a source of which nothing is known."""
        return cls(*map(float, text.split()))

    @property
    def text(self) -> str:
        """What is stored, about 60 characters; `parse` reads it."""
        return " ".join(f"{number:.6g}" for number in self)

    def recall(self, kind: Kind = PLAIN) -> float:
        """Return the share of the changes that it tells of.

        Examples
        --------
        >>> SignalSource().recall(KINDS["feed"]), round(SignalSource(told=60.0, missed=36.0).recall(KINDS["feed"]), 3)
        (0.5, 0.62)
        """
        return min((self.told + kind.weight * kind.recall) / (self.told + self.missed + kind.weight), MOST_RECALL)

    def false_rate(self, change_rate: float, kind: Kind = PLAIN) -> float:
        """Return how many signals a second come to a page of this change rate that no change caused.

        Examples
        --------
        >>> SignalSource().false_rate(0.1, KINDS["sitemap"])
        0.05
        """
        even, echoed = self._false_rates(change_rate, kind)
        return even + echoed

    def _false_rates(self, change_rate: float, kind: Kind) -> tuple[float, float]:
        """The two sorts of false signals a second."""
        assumed = kind.weight * kind.false_share
        mean = self.changes / self.time if self.time > 0.0 and self.changes > 0.0 else change_rate
        even = (self.even + _EVEN_SHARE * assumed) / (self.time + kind.weight / mean)
        echoed = (self.echoed + (1.0 - _EVEN_SHARE) * assumed) / (self.changes + kind.weight)
        return even, echoed * change_rate

    def after(self, visit: SignalVisit, kind: Kind = PLAIN) -> SignalSource:
        """Return what is known after one more visit to a page that it covers.

        Examples
        --------
        >>> source = SignalSource()
        >>> for _ in range(200):
        ...     source = source.after(SignalVisit(10.0, 1, True, 0.1)).after(SignalVisit(10.0, 1, False, 0.1))
        >>> source.recall() > 0.6, round(source.false_rate(0.1), 2)
        (True, 0.06)
        """
        interval, signals, changed, rate = visit
        recall = self.recall(kind)
        even, echoed = self._false_rates(rate, kind)
        false = even + echoed
        true = told = missed = 0.0
        if changed:
            announced, silent = recall * rate, (1.0 - recall) * rate * interval
            doubt = silent + (signals * math.log1p(announced / false) if signals else 0.0)
            seen = -math.expm1(-doubt)
            if seen > 0.0:
                true = announced / (announced + false)
                told, missed = min(signals * true / seen, signals), silent / seen
        wrong = signals - told
        kept = 1.0 - 1.0 / MEMORY if changed or signals else 1.0
        return SignalSource(
            kept * self.told + told,
            kept * self.missed + missed,
            kept * self.even + wrong * even / false,
            kept * self.echoed + wrong * echoed / false,
            kept * self.time + interval,
            kept * self.changes + rate * interval,
        )
