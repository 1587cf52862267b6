"""The law of dispatch: which of the pages at the head of the queue go first, and how the price follows what is taken.

The queue is in order of deadlines. When more is due than can be fetched now, the earliest deadline is not the best choice: a page whose
visit gains value fast loses more by waiting. So of the first `candidates` of the queue those go that rank highest, and each of them moves
the price a little. `dispatch.lua` does the same in Redis; this is the statement of it in Python, which simulated crawls run.

Notes
-----
Let a page's deadline at log price L be ``d = b + a + s L`` (see `numbers`). The price that a visit now would be worth is to first order
``L + (now - d) / s``, so ``z = (now - d) / s`` is by how much a visit is worth more than the price, in logarithms. Pages that do not go by
the price (pinned, failed, at a bound) have no slope; ``2 (now - d) / (d - b)`` stands for it: a visit that is worth t^2 a time t after the
last one, as all are while few changes are expected.

A visit with z > 0 came late, so the price was too low: ``L += clip(z, -step, step)``, see `log_price_after`. One unit of L makes
``R = sum s / T`` visits fall due or wait, where T is the wait at the price. With ``step = gain / R`` the price moves at most at
``gain x bandwidth / R``: a bandwidth that is not the planned one is met within about the time in which every page is visited once.
"""

from __future__ import annotations

from typing import Final

#: The head of the queue that is looked at for n visits is ``n + FURTHER`` pages, and `FEWEST` at least. For one visit four are enough as
#: long as the bandwidth is the planned one; where it is another, and many pages are late, more find the best ones.
FURTHER: Final = 3
FEWEST: Final = 12
#: Rank from which on a page at its shortest wait tells that the price is too low: it is late by half of that wait.
STARVED: Final = 1.0
#: Visits come as planned if their rate differs by no more than this share from the budget.
AS_PLANNED: Final = 0.1
#: Least log price that counts: a price of nothing has no logarithm.
_LEAST: Final = -1000.0
#: A price that visits have found is an excursion from so much above the lasting one on: noise is less, but of few pages.
NOISE: Final = 0.1
#: Gain of the feedback, and that of a crawl of less than `FEW_PAGES` pages, where every single page shows in the price.
GAIN: Final = 1.0
GAIN_OF_FEW: Final = 0.5
FEW_PAGES: Final = 50
#: Shortest wait that lateness is measured by, seconds.
_SHORTEST: Final = 1e-6


def candidates(visits: int) -> int:
    """Return how many pages at the head of the queue are looked at for so many visits.

    Examples
    --------
    >>> candidates(1), candidates(16)
    (12, 19)
    """
    return max(visits + FURTHER, FEWEST)


def rank(elapsed: float, wait: float, slope: float, shortest: float, longest: float) -> float:
    """Return by how much a visit now is worth more than the price, in logarithms and to first order.

    Parameters
    ----------
    elapsed : float
        Seconds since the visit that the numbers are about.
    wait : float
        ``a + s L``: seconds from that visit to the one that is worth the price.
    slope, shortest, longest : float
        The numbers s, e and l.

    Returns
    -------
    float
        Above 0 for a page that is late.

    Examples
    --------
    >>> rank(30.0, 20.0, 5.0, 1.0, 60.0), rank(30.0, 20.0, 0.0, 20.0, 20.0), rank(70.0, 80.0, 5.0, 1.0, 60.0)
    (2.0, 1.0, 0.3333333333333333)
    """
    if slope > 0.0 and shortest < wait < longest:
        return (elapsed - wait) / slope
    bounded = min(max(wait, shortest), longest)
    return 2.0 * (elapsed - bounded) / max(bounded, _SHORTEST)


def moves_price(ranked: float, wait: float, slope: float, shortest: float, longest: float) -> bool:
    """Tell whether a visit with this `rank` moves the price; the other parameters are those of `rank`.

    A page strictly between its bounds does. One that would come sooner than its shortest wait does when it is `STARVED`: many such pages
    are more than the budget serves, and nobody else would tell. Pages with one wait (pinned, failed) never do.

    Examples
    --------
    >>> moves_price(0.1, 20.0, 5.0, 1.0, 60.0), moves_price(0.1, 0.5, 0.0, 1.0, 60.0), moves_price(1.1, 0.5, 0.0, 1.0, 60.0)
    (True, False, True)
    """
    return (slope > 0.0 and shortest < wait < longest) or (wait <= shortest < longest and ranked > STARVED)


def is_as_planned(rate: float, budget: float) -> bool:
    """Tell whether visits come at the rate that was planned, both per second: then a plan sets the price (`log_price_towards`).

    What a plan finds has no noise. What visits make of the price has; but where the bandwidth is another than the planned one, visits
    alone know.

    Examples
    --------
    >>> is_as_planned(95.0, 100.0), is_as_planned(50.0, 100.0)
    (True, False)
    """
    return abs(rate - budget) <= AS_PLANNED * budget


def log_price_towards(log_price: float, planned: float, moved: float = 0.0) -> float:
    """Return the log price after a plan that found another one, while visits come as planned (`is_as_planned`).

    Down it goes by a twentieth at most: what falls due at once comes in a burst, behind which pinned pages wait.

    Parameters
    ----------
    log_price, planned : float
        The price that visits have found, and the plan's.
    moved : float
        Share of the pages whose deadlines move with the clocks of their neighbourhoods. A plan counts with mean rates, and does not know
        what these make due: as far as they run, the price is left to the visits.

    Examples
    --------
    >>> log_price_towards(2.0, 1.0), log_price_towards(2.0, 2.5), log_price_towards(2.0, 2.5, moved=0.8)
    (1.95, 2.5, 2.1)
    """
    return log_price + (1.0 - moved) * (max(planned, log_price - 0.05) - log_price)


def lasting_log_price(planned: float, left: float) -> float:
    """Return the log price above which a price of visits is an excursion: pages are given up by this one then, until the next plan.

    Parameters
    ----------
    planned : float
        The plan's.
    left : float
        The price that the plan before has left to the visits, its own or the one that they had found; -inf where there was none.

    Notes
    -----
    Behind a backlog (the crawl stood still for a while) the price is high until that is cleared. What would be given up then would wait for
    the next plan. A price that two plans in a row have found is taken for no excursion: the bandwidth is another than the planned one, or
    the backlog has outlasted a plan.

    Examples
    --------
    >>> lasting_log_price(2.0, left=2.01), lasting_log_price(2.0, left=3.5)
    (2.11, 3.6)
    """
    return max(planned, left, _LEAST) + NOISE


def log_price_after(log_price: float, ranked: float, step: float) -> float:
    """Return the log price after a visit with this `rank` that `moves_price`; other visits leave it alone.

    Examples
    --------
    >>> log_price_after(2.0, 0.5, 0.01), log_price_after(2.0, -0.005, 0.01)
    (2.01, 1.995)
    """
    return log_price + min(max(ranked, -step), step)


def price_step(pages: int, response: float) -> float:
    """Return the largest move of the log price at one visit.

    Parameters
    ----------
    pages : int
        Of the crawl.
    response : float
        R: the sum of slope / wait over pages strictly between their bounds.

    Examples
    --------
    >>> price_step(1000, 800.0), price_step(20, 0.1)
    (0.00125, 0.5)
    """
    return (GAIN if pages >= FEW_PAGES else GAIN_OF_FEW) / max(response, 1.0)
