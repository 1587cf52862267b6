"""Whether a source that announces changes can be believed: a sitemap or feed names pages, and their next visits say whether it was right.

Notes
-----
A page that was announced and had changed is a right announcement, one that had not is a wrong one. The score of an announcer goes up by 1
with a wrong one and down by 1 with a right one, never below 0 (a CUSUM of a fair coin, Page 1954): at `SILENCED_AT` it is
silenced, until the score is 0 again. Meanwhile one of `PROBE_EVERY` announcements is tried.

Let p be the share that is wrong. Checks until it is silenced, on average (`mean_checks`): 6e7 at p = 0.1, 150,000 at 0.2, 3,800 at 0.3, 72
at 0.5, 15 at 0.75, 8 at 1. That is the rate of false alarms; a sitemap whose lastmod is always now costs a window of visits, and then one
announcement in `PROBE_EVERY`.

How many pages may wait at once for a visit that an announcer caused is bounded by a window, as nothing is known of it at first and a site
may touch all of its pages at once: `FIRST_WINDOW` at first, `WIDER` times that with each right announcement, `NARROWER` with each wrong
one. It grows as long as less than 24% are wrong.

References
----------
E. S. Page, Continuous inspection schemes, Biometrika 41, 1954.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

#: Score from which on an announcer is silenced.
SILENCED_AT: Final = 8
#: Of a silenced announcer one announcement of so many is tried.
PROBE_EVERY: Final = 32
#: Pages that may wait for a visit that one announcer caused: at first and at least, and at most.
FIRST_WINDOW: Final = 32.0
MOST_WINDOW: Final = 1000.0
#: What a right and a wrong announcement make of the window.
WIDER: Final = 1.25
NARROWER: Final = 0.5


@dataclass(frozen=True, slots=True)
class Announcer:
    """What was found out about the sitemaps, or the feeds, of a host.

    Attributes
    ----------
    right, wrong : int
        Announcements that were followed by a changed page, and by an unchanged one.
    score : int
        From 0 to `SILENCED_AT`.
    is_silenced : bool
        Its announcements are not acted on.
    waiting : int
        Pages that it put forward and that were not visited yet.
    window : float
        How many these may be.
    passed_over : int
        Announcements since the last probe.
    """

    right: int = 0
    wrong: int = 0
    score: int = 0
    is_silenced: bool = False
    waiting: int = 0
    window: float = FIRST_WINDOW
    passed_over: int = 0

    @classmethod
    def parse(cls, text: str) -> Announcer:
        """Read what is stored in the hash ``announcers``; of what cannot be read nothing is known.

        Examples
        --------
        >>> Announcer.parse("2 1 0 0 0 32 0").right, Announcer.parse("many") == Announcer()
        (2, True)
        """
        try:
            right, wrong, score, silenced, waiting, window, passed_over = text.split()
            counts = [int(value) for value in (right, wrong, score, waiting, passed_over)]
            if min(counts) < 0 or counts[2] > SILENCED_AT or not FIRST_WINDOW <= float(window) <= MOST_WINDOW:
                return cls()
            return cls(counts[0], counts[1], counts[2], silenced == "1", counts[3], float(window), counts[4])
        except (ValueError, OverflowError):
            return cls()

    @property
    def text(self) -> str:
        """What is stored; `parse` reads it."""
        known = (self.right, self.wrong, self.score, int(self.is_silenced), self.waiting, f"{self.window:.17g}", self.passed_over)
        return " ".join(map(str, known))

    def after(self, was_right: bool) -> Announcer:
        """Return what is known after one more check.

        Examples
        --------
        >>> announcer = Announcer()
        >>> for _ in range(8):
        ...     announcer = announcer.after(False)
        >>> announcer.is_silenced, announcer.after(True).is_silenced
        (True, True)
        """
        score = max(0, self.score - 1) if was_right else min(SILENCED_AT, self.score + 1)
        window = min(MOST_WINDOW, max(FIRST_WINDOW, self.window * (WIDER if was_right else NARROWER)))
        return replace(
            self,
            right=self.right + was_right,
            wrong=self.wrong + (not was_right),
            score=score,
            is_silenced=score == SILENCED_AT or (self.is_silenced and score > 0),
            waiting=max(0, self.waiting - 1),
            window=window,
        )


def mean_checks(wrong_share: float) -> float:
    """Return after how many checks, on average, an announcer without a record is silenced.

    Parameters
    ----------
    wrong_share : float
        Probability that an announcement is wrong, above 0.

    Notes
    -----
    With t_k the mean time from score k to k + 1: t_0 = 1/p, and t_k = 1/p + (1 - p)/p t_(k-1).

    Examples
    --------
    >>> [round(mean_checks(share), 1) for share in (0.1, 0.5, 1.0)]
    [60534440.0, 72.0, 8.0]
    """
    total = step = 1.0 / wrong_share
    for _ in range(SILENCED_AT - 1):
        step = 1.0 / wrong_share + (1.0 - wrong_share) / wrong_share * step
        total += step
    return total
