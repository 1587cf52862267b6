"""404s, 410s and redirects home: a page is retired at the second in a row, but not while its host answers so for most of its pages.

Notes
-----
Each host with gone pages has two counts: of pages that were seen, and of pages that were found gone (the first of a row counts). They fade
by a tenth with every one, and a page that is seen halves the count of gone ones; a host that had only good ones begins with five of these.
It is held from three gone pages on (`LEAST_GONE`) that are half of all: four or five in a row. Where half of what is visited, at random, is
gone for good, as adverts are, it is held 9% of the time: each page of a held host takes thirteen visits from the others. Where two thirds
are it is held 38% of the time, three quarters 60%, nine tenths 94%; at each time that a hold begins pages come back that were retired in
between. Pages of a held host are asked for a few times an hour, and less and less often, and retired after five days of nothing else
(`GONE_FOR_GOOD`). Pages that were never seen say nothing of the others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from optimal_frontier.state.host_words import HostWords

#: What is left of a host's counts at every one more.
FADING: Final = 0.9
#: What is left of the count of gone pages at a good one.
FADING_AT_GOOD: Final = 0.5
#: Good pages that a host begins with.
CREDIT: Final = 5.0
#: A host is held from so many gone pages on, if they are at least this share of the pages that were looked at.
LEAST_GONE: Final = 3.0
GONE_PART: Final = 0.5
#: Failures in a row that a page of a held host has at least (it is asked 4 to 9 minutes later), and after which it is retired all the same.
HELD_FAILURES: Final = 9
GONE_FOR_GOOD: Final = 22
#: A page is retired at so many in a row.
_RETIRED_AT: Final = 2
#: Counts of gone pages below this are none.
_NONE: Final = 0.05


class Verdict(NamedTuple):
    """What a 404 or 410 means for its page.

    Attributes
    ----------
    words : HostWords
        Of its host, with one more gone page.
    failures : int
        In a row, this one included.
    is_retired, is_held : bool
        It is retired; or it is not because its host is held. Neither: it is looked at again.
    brings_back : bool
        Its host is held since this visit: pages that were retired just before come back.
    """

    words: HostWords
    failures: int
    is_retired: bool
    is_held: bool
    brings_back: bool


def is_held(good: float, missing: float) -> bool:
    """Tell whether a host with such counts is held: its pages are asked for now and then, but not retired.

    Parameters
    ----------
    good, missing : float
        Faded counts of its pages that were seen, and that were found gone.

    Examples
    --------
    >>> is_held(5.0, 1.0), is_held(3.3, 3.4)
    (False, True)
    """
    return missing >= LEAST_GONE and missing >= GONE_PART * (good + missing)


def after_good(words: HostWords) -> HostWords:
    """Return what is known of a host after a page of it was seen; only hosts with gone pages have counts."""
    return words if words.missing <= 0.0 else _counted(words, words.good * FADING + 1.0, words.missing * FADING_AT_GOOD)


def judge_gone(words: HostWords, visits: int, gone: int, failures: int) -> Verdict:
    """Judge a 404 or 410.

    Parameters
    ----------
    words : HostWords
        What was known of the host.
    visits : int
        Good responses of the page so far.
    gone, failures : int
        404s and 410s, and failures, in a row; this one included.
    """
    if visits > 0:
        was_held = is_held(words.good, words.missing)
        if gone == 1:
            good = words.good if words.missing > 0.0 or words.good > 0.0 else CREDIT
            words = _counted(words, good * FADING, words.missing * FADING + 1.0)
        if is_held(words.good, words.missing) and failures < GONE_FOR_GOOD:
            return Verdict(words, max(failures, HELD_FAILURES), False, True, not was_held)
    return Verdict(words, failures, gone >= _RETIRED_AT, False, False)


def _counted(words: HostWords, good: float, missing: float) -> HostWords:
    return words._replace(good=0.0, missing=0.0) if missing < _NONE else words._replace(good=good, missing=missing)
