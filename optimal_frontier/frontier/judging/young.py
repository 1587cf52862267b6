"""Young pages: what has just appeared on a page that was known is looked at early where its kind changes more often at first.

A page that is found on one that had been visited before has appeared since (`state.rows.APPEARED`). Its first looks tell the planner if
pages of its pattern, or else of its host, change more often while they are young (`estimation.first_looks`), and plans publish how often
and how long. By that it is looked at when it is worth the price (`scheduling.young_pages`), and what its bits teach is taken for as much
more time. Of `ONE_IN` such pages one has its first two looks early in any case: else nobody would learn at which age they change.
"""

from __future__ import annotations

import math
from typing import Final

from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, goes_by_worth
from optimal_frontier.scheduling.numbers import Numbers
from optimal_frontier.scheduling.young_pages import young_wait
from optimal_frontier.state.memory import Birth
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import APPEARED, HUB, SIGNALLED, UNCONDITIONAL, Row

#: Of so many pages that appear one is picked for early looks, while little is known of the youth of its kind, and later on. The first of
#: these comes by up to so many powers of two sooner than it would, the second one when the page is twice as old.
ONE_IN: Final = 8
ONE_IN_KNOWN: Final = 32
_EARLIEST: Final = 6.0
_DRAWS: Final = 1024
_LEAST_RATE: Final = 1e-30


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
        # The time of a look that was asked for, as of a change that was announced, is none that was chosen before.
        is_asked = before.flags & (SIGNALLED | UNCONDITIONAL) or before.l <= 0.0
        return None if is_asked else birth._replace(looked=at)
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
    prior = None if youth is None else published.prior_of(row.pattern)
    if birth is None or youth is None or prior is None:
        return interval
    age = at - birth.at
    young = min(age, youth.until) - (age - interval)
    # The belief of its kind, not its own: what looks teach does not depend on how many there were.
    return interval + min(max(young, 0.0), interval) * max(youth.rate / max(median_one(*prior), _LEAST_RATE) - 1.0, 0.0)


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
    is_apart = row.flags & HUB or not terms.settings.looks_at_young_pages
    if birth is None or rate is None or is_apart or not goes_by_worth(row, terms):
        return math.inf
    usual = min(max(numbers.a + (numbers.s * terms.log_price if numbers.s else 0.0), numbers.e), numbers.l)
    youth, wait = published.youth_of(row.host, row.pattern), math.inf
    if youth is not None and youth.rate > rate:
        log_worth = published.log_price_at(row.host, terms.log_price) - math.log(row.importance)
        wait = young_wait(youth, rate, log_worth, row.b / 1e6 - birth.at)
    if _is_picked(row, page, published):
        if row.visits == 1:
            early = int.from_bytes(page[4:6], "little") % _DRAWS / _DRAWS
            wait = min(wait, min(usual, published.prior_time) * 2.0 ** (-_EARLIEST * early))
        elif row.visits == 2:
            wait = min(wait, birth.looked - birth.at)
    wait = max(wait, row.min_interval)
    return wait if wait < usual else math.inf


def _is_picked(row: Row, page: bytes, published: Published) -> bool:
    """Tell whether a page is one of those whose looks are early so that something is learned; never where its host is at its limit."""
    one_in = ONE_IN_KNOWN if published.is_youth_known(row.host, row.pattern) else ONE_IN
    return int.from_bytes(page[:4], "little") % one_in == 0 and published.host_prices.get(row.host, 0.0) <= 0.0
