"""Whether what a host says about the last change of its pages can be believed.

Notes
-----
Every visit that gives a bit and an age, after an interval that resolves it, is a check:

* unchanged content, but a last change after the last visit: a lie ("always now", or a site that touches all files at every deploy);
* changed content, but no change since the last visit: a lie ("frozen");
* changed content, and a change in between, but suspiciously short ago: counts as a lie. By Poisson changes at rate x the age A of the last
  change in an interval I has the distribution function u(A) = (1 - e^(-xA)) / (1 - e^(-xI)), so u is uniform. u below `SUDDEN` comes from
  an honest host once in 1 / `SUDDEN` changes, and always from pages that are made when they are asked for and say so.

Changed and unchanged content are counted apart: a frozen host agrees at every unchanged visit. Counts fade, the last 40 checks of a kind
count, so trust can be lost and regained. With a uniform prior on the share of lies, l lies in n checks leave Beta(1 + l, 1 + n - l). A host
is believed if for changed content the share is below `TOLERATED` with a probability of `SURE` at least, and for unchanged content
that is not refuted (a probability of at least 1 - `SURE`), as there may be none. It takes 15 changes without a lie, 23 if the first was
one; 4 lies in a row end it after any number of truths, and 95 truths bring it back after any number of lies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import scipy  # scipy.special is imported at its first use: it takes 0.2 s

#: u below this is sudden: the false alarm of one check.
SUDDEN: Final = 0.01
#: Part of the interval by which an age may miss the last visit without being a lie: resolution, and the time that answers take.
SLACK: Final = 0.02
#: Share of lies that is put up with.
TOLERATED: Final = 0.2
#: Probability with which lies must be rarer than that.
SURE: Final = 0.95
#: What is left of a count after one more check of its kind: the memory is 1 / (1 - KEPT) checks.
KEPT: Final = 0.975
#: A change rate beyond so many changes per interval is no longer told apart.
_MOST_CHANGES: Final = 700.0


def is_lie(interval: float, age: float, changed: bool, rate: float) -> bool:
    """Tell whether an age contradicts the content, or comes too sudden.

    Parameters
    ----------
    interval : float
        Time since the last successful visit, > 0, long enough for the ages' resolution.
    age : float
        Time since the last change as the page has it, >= 0.
    changed : bool
        Whether the content had changed.
    rate : float
        Change rate as it was believed before the visit, > 0.

    Examples
    --------
    >>> is_lie(1000.0, 5000.0, False, 1e-3), is_lie(1000.0, 0.0, False, 1e-3)
    (False, True)
    >>> is_lie(1000.0, 400.0, True, 1e-3), is_lie(1000.0, 5000.0, True, 1e-3), is_lie(1000.0, 1.0, True, 1e-3)
    (False, True, True)
    """
    if not changed:
        return age < (1.0 - SLACK) * interval
    if age > (1.0 + SLACK) * interval:
        return True
    expected = min(rate * interval, _MOST_CHANGES)
    return math.expm1(-expected * age / interval) >= SUDDEN * math.expm1(-expected)


def fade(total: float, lies: float, checks: float, lying: float) -> tuple[float, float]:
    """Return faded counts of checks and lies after more checks, > 0 of them, so many of which were lies.

    Examples
    --------
    >>> fade(10.0, 1.0, 1.0, 0.0)
    (10.75, 0.975)
    """
    kept = KEPT**checks
    weight = (1.0 - kept) / (1.0 - KEPT)
    return total * kept + weight, lies * kept + weight * lying / checks


@dataclass(frozen=True, slots=True)
class Trust:
    """What was found out about a host; four numbers, all 0 at first. They fade (see the module), and those of two crawls add up.

    Attributes
    ----------
    unchanged, moved : float
        Checks at visits that found no change; of these, those that lied: the last change moved all the same.
    changed, wrong : float
        Checks at visits that found a change; of these, those that lied: it had not moved, or came too sudden.
    """

    unchanged: float = 0.0
    moved: float = 0.0
    changed: float = 0.0
    wrong: float = 0.0

    def __add__(self, other: Trust) -> Trust:
        return Trust(self.unchanged + other.unchanged, self.moved + other.moved, self.changed + other.changed, self.wrong + other.wrong)

    def after(self, changed: bool, lies: bool) -> Trust:
        """Return what is known after one more check.

        Examples
        --------
        >>> trust = Trust()
        >>> for _ in range(15):
        ...     trust = trust.after(True, False)
        >>> trust.is_earned
        True
        """
        if changed:
            return Trust(self.unchanged, self.moved, *fade(self.changed, self.wrong, 1.0, float(lies)))
        return Trust(*fade(self.unchanged, self.moved, 1.0, float(lies)), self.changed, self.wrong)

    @property
    def is_earned(self) -> bool:
        """Whether ages of this host are used."""
        return rare_lies(self.changed, self.wrong) >= SURE and rare_lies(self.unchanged, self.moved) >= 1.0 - SURE


def rare_lies(total: float, lies: float) -> float:
    """Return the probability that the share of lies is below `TOLERATED`, after so many checks and lies; counts may be fractions.

    Notes
    -----
    The regularised incomplete beta function at 1 + lies, 1 + total - lies; about 2 us.

    Examples
    --------
    >>> round(rare_lies(0.0, 0.0), 6), round(rare_lies(1.0, 1.0), 6), round(rare_lies(13.0, 0.0), 6)
    (0.2, 0.04, 0.95602)
    """
    return float(scipy.special.betainc(1.0 + lies, 1.0 + max(total - lies, 0.0), TOLERATED))
