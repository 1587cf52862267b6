"""Young pages: what has just appeared on a page that was known is looked at early where its kind changes more often at first.

A page that is found on one that had been visited before has appeared since (`state.rows.APPEARED`). Its first two looks tell the planner
whether pages of its pattern change more often while they are young (`estimation.first_looks`), and plans publish how often and how long.
A pattern of which too little was seen goes by its host. By that it is looked at when it is worth the price (`scheduling.young_pages`), and
what its bits teach is taken for as much more time. Of `ONE_IN` such pages one has its first look early in any case: else nobody would learn
at which age they change.
"""

from __future__ import annotations

import math
from typing import Final

from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, goes_by_worth
from optimal_frontier.scheduling.numbers import Numbers
from optimal_frontier.scheduling.young_pages import young_wait
from optimal_frontier.state.memory import Birth
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import APPEARED, HUB, Row

#: Of so many pages that appear one has its first look early, while little is known of the youth of its kind, and later on ...
ONE_IN: Final = 8
ONE_IN_KNOWN: Final = 32
#: ... by up to so many powers of two.
_EARLIEST: Final = 8.0
_DRAWS: Final = 1024


def birth_after(before: Row, birth: Birth | None, at: float, published: Published) -> Birth | None:
    """Return what is to be remembered of the birth of a page after a good visit; None: it is of no use any more.

    Parameters
    ----------
    before : Row
        As it was handed out.
    birth : Birth or None
        As is remembered so far.
    at : float
        When this visit was, seconds since the epoch.
    published : Published
        By the last plan.
    """
    if not before.flags & APPEARED:
        return None
    if before.visits == 0:
        return Birth(at)
    if birth is None:
        return None
    if not birth.looked:
        return birth._replace(looked=at)
    youth, age = published.youth_of(before.host, before.pattern), at - birth.at
    # It is compared with what it was when it has become twice as old.
    is_told = age >= 2.0 * (birth.looked - birth.at)
    return None if is_told and (youth is None or age >= youth.until) else birth


def lived(row: Row, birth: Birth | None, at: float, interval: float, published: Published) -> float:
    """Return in how much time of later life a page changes as often as it did in ``interval`` seconds up to ``at``; seconds.

    Examples
    --------
    >>> from optimal_frontier.scheduling.young_pages import Youth
    >>> from optimal_frontier.state.published import pattern_key
    >>> published = Published(prior_time=1000 * math.log(2), youth={pattern_key(7): Youth(0.1, 60.0)})
    >>> round(lived(Row(pattern=7), Birth(5000.0), 5100.0, 100.0, published)), lived(Row(), Birth(5000.0), 5100.0, 100.0, published)
    (6040, 100.0)
    """
    youth = None if birth is None else published.youth_of(row.host, row.pattern)
    rate = None if youth is None else change_rate_of(row, published)
    if birth is None or youth is None or rate is None or rate <= 0.0:
        return interval
    age = at - birth.at
    young = min(age, youth.until) - (age - interval)
    return interval + min(max(young, 0.0), interval) * max(youth.rate / rate - 1.0, 0.0)


def look_of(row: Row, page: bytes, birth: Birth | None, terms: Terms, numbers: Numbers) -> float:
    """Return the wait (s) for a look at a young page; inf where it has the one that its numbers say.

    Parameters
    ----------
    row : Row
        After its visit.
    page : bytes
        Its identity.
    birth : Birth or None
        As it is remembered from now on.
    terms : Terms
        Price, prior and settings.
    numbers : Numbers
        What it would have otherwise.
    """
    published, rate = terms.published, change_rate_of(row, terms.published)
    if birth is None or row.flags & HUB or rate is None or not goes_by_worth(row, terms) or terms.settings.policy != "periodic":
        return math.inf
    usual = min(max(numbers.a + (numbers.s * terms.log_price if numbers.s else 0.0), numbers.e), numbers.l)
    youth, wait = published.youth_of(row.host, row.pattern), math.inf
    if youth is not None and youth.rate > rate:
        log_worth = published.log_price_at(row.host, terms.log_price) - math.log(row.importance)
        wait = young_wait(youth, rate, log_worth, row.b / 1e6 - birth.at)
    if row.visits == 1:
        draw = int.from_bytes(page[:4], "little")
        if draw % (ONE_IN_KNOWN if published.is_youth_known(row.host, row.pattern) else ONE_IN) == 0:
            early = (draw // ONE_IN_KNOWN) % _DRAWS / _DRAWS
            wait = min(wait, min(usual, published.prior_time) * 2.0 ** (-_EARLIEST * early))
    wait = max(wait, row.min_interval)
    return wait if wait < usual else math.inf
