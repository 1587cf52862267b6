"""Whether a host that answers "304 Not Modified" can be believed.

Notes
-----
Some servers answer 304 although the page has changed. To find them some 304s are checked: the page is asked for again shortly after,
without conditions. Let U be the time for which 304s have been all that was heard, d the time from the last 304 to the check, and p(t) the
chance that the page changes within t by its posterior, 1 - (1 + t/b)^-a. Content that differs was hidden by a liar with the chance
p(U + d), by the posterior without what 304s have taught, but has changed since the last 304 of an honest server with p(d) only. A check
adds the logarithm of the ratio of what it found under the two, at most `MOST_EVIDENCE` either way, to the score of the host. A host whose
score reaches `ALARM` is asked with conditions now and then only (`PROBE`).

Of an honest host exp(score) has an expectation of at most 1, so by Ville's inequality a score that starts at 0 ever reaches `ALARM` with a
chance of at most exp(-ALARM) = 1%. One check cannot do it: it takes two. A change that the server tells (200 in place of a 304) lowers the
score by `TOLD`, so that a server that was mended is believed again. The score stays within `LEAST` and `MOST`: a server that breaks later,
or is mended, need not live down all of its past. Each time that it has fallen to `LEAST` the chance of a false alarm from there is at most
exp(LEAST - ALARM) = 0.14%.

References
----------
RFC 9110, sections 8.8 (validators) and 13 (conditional requests). Ville's inequality: Shafer and Vovk, "Game-Theoretic Foundations for
Probability and Finance", 2019, chapter 2.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

#: Score from which on a host is not believed.
ALARM: Final = math.log(100.0)
#: Most that one check adds or takes.
MOST_EVIDENCE: Final = math.log(20.0)
#: What a change that was told takes.
TOLD: Final = 1.0
#: Bounds of the score.
LEAST: Final = -2.0
MOST: Final = 8.0
#: Share of 304s that are checked of a host of which fewer than `KNOWN` checks and told changes are known, or that is under suspicion.
EARLY_CHECKS: Final = 1 / 3
KNOWN: Final = 5.0
#: The same of other hosts that told fewer changes than `HONEST`, where the page has rather changed since its last full answer (`DOUBT`).
DOUBTFUL_CHECKS: Final = 1 / 5
HONEST: Final = 3.0
DOUBT: Final = 0.5
#: The same of all others.
LATER_CHECKS: Final = 1 / 50
#: A page is checked after so many 304s without a full answer, however well its host is known.
MOST_UNCHECKED: Final = 100
#: A page that changes before a check with a chance above this is not checked: nothing could be said of what was found.
MOST_CHANCE: Final = 0.25
#: Content that differs is a lie of the page where a change since the 304 had at most this chance, and a hidden one so many times that.
LIE_CHANCE: Final = 0.1
LIE_RATIO: Final = 5.0
#: Share of the visits at which a page or host that is not believed is asked with conditions all the same.
PROBE: Final = 1 / 20


class ValidatorTrust(NamedTuple):
    """What is known of a host: its score, changes that it told when asked with conditions, 304s that were checked, and lies among these."""

    score: float = 0.0
    told: float = 0.0
    checks: float = 0.0
    lies: float = 0.0

    @property
    def is_believed(self) -> bool:
        """Whether its 304s are taken for what they say."""
        return self.score < ALARM

    def check_share(self, hidden: float) -> float:
        """Return the share of its 304s that are checked, where a liar would have hidden a change with the chance ``hidden`` by now.

        Only a change that was told shows that it does not lie: that checks agree may be because the pages did not change.
        """
        if self.told + self.checks < KNOWN or self.score > 0:
            return EARLY_CHECKS
        return DOUBTFUL_CHECKS if self.told < HONEST and hidden >= DOUBT else LATER_CHECKS

    def after(self, verdict: str, evidence: float) -> ValidatorTrust:
        """Return what is known after ``verdict`` (`verdict_of`, or ``told``).

        Examples
        --------
        >>> ValidatorTrust().after("lies", 2.5).after("lies", 2.5).is_believed
        False
        """
        told = verdict == "told"
        score = min(MOST, max(LEAST, self.score + evidence))
        return ValidatorTrust(score, self.told + told, self.checks + (not told), self.lies + (verdict == "lies"))


def change_chance(shape: float, time: float, interval: float) -> float:
    """Return the chance that a page changes within an interval (s), by its posterior (``time`` in s).

    Examples
    --------
    >>> round(change_chance(1.0, 10.0, 10.0), 12)
    0.5
    """
    return -math.expm1(-shape * math.log1p(interval / time))


def evidence_of(hidden: float, honest: float, changed: bool) -> float:
    """Return what a check adds to the score of a host.

    Parameters
    ----------
    hidden : float
        Chance that the page has changed since its last full answer, below 1.
    honest : float
        Chance that it has changed since the last 304, from 0 to ``hidden``.
    changed : bool
        Whether the content differs.

    Examples
    --------
    >>> round(evidence_of(0.5, 0.1, True), 3), round(evidence_of(0.5, 0.1, False), 3)
    (1.609, -0.588)
    """
    liar, other = (hidden, honest) if changed else (1.0 - hidden, 1.0 - honest)
    if liar <= 0.0 or other <= 0.0:
        return MOST_EVIDENCE if liar > other else -MOST_EVIDENCE if liar < other else 0.0
    return min(MOST_EVIDENCE, max(-MOST_EVIDENCE, math.log(liar / other)))


def verdict_of(hidden: float, honest: float, changed: bool) -> str:
    """Name what a check found: ``agrees``, ``lies``, or ``unclear``: it may well have changed since the 304."""
    if not changed:
        return "agrees"
    return "lies" if honest <= LIE_CHANCE and hidden >= LIE_RATIO * honest else "unclear"
