"""From what is known of a page to the five numbers of its deadline: what is special about it is a choice of these.

`numbers_of` is for one page whose visit was judged, `priced_numbers` for the planner's many; a test holds the two equal. Update times are
in `update_times`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation import posterior_median
from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.frontier.judging.backoff import wait_after_failures
from optimal_frontier.frontier.judging.heard import SILENCE, Heard
from optimal_frontier.frontier.judging.outcomes import CALLBACK, CAUSES, ITEM
from optimal_frontier.frontier.judging.retry_after import is_put_off
from optimal_frontier.scheduling.discovery import discovery_rate, wait_with_discovery, waits_with_discovery
from optimal_frontier.scheduling.exploration import NEVER_S
from optimal_frontier.scheduling.numbers import (
    Floats,
    ManyNumbers,
    Numbers,
    at_latest,
    draw_of,
    fixed,
    numbers_at,
    wait_at_price,
    waits_at_price,
    waits_that_last,
)
from optimal_frontier.scheduling.signals import wait_with_sources
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, APPEARED, CHECKED, FAR_S, HELD, SIGNALLED, TIMED, UNCONDITIONAL, Row

#: A pinned page may come back after this share of its interval, so that a visit that was late does not push all later ones.
PINNED_SLACK: Final = 0.5
#: Flags of pages whose numbers do not come from the price.
_APART: Final = UNCONDITIONAL | SIGNALLED | CHECKED | TIMED | HELD
#: Causes of failures in a row whose last visit was good.
_AFTER_A_VISIT: Final = frozenset({CAUSES.index(CALLBACK), CAUSES.index(ITEM)})
#: Relative error of what a row holds in 32 bits.
_ROUNDING: Final = 1e-6

#: Rows of pages: an array of `state.rows.LAYOUT` or another type with these fields, or columns by name.
Rows: TypeAlias = "NDArray[np.void] | Mapping[str, NDArray[Any]]"


class Terms(NamedTuple):
    """What waits depend on beside the page.

    Attributes
    ----------
    log_price : float
        Logarithm of the price of a visit in the crawl; what its host adds is in `published`.
    published : Published
        By the last plan.
    settings : FrontierSettings
        OBJECTIVE, POLICY.
    """

    log_price: float
    published: Published
    settings: FrontierSettings


def numbers_of(
    row: Row, page: bytes, terms: Terms, since: float = 0.0, late: float = 0.0, yielded: float = 0.0, heard: Heard = SILENCE
) -> Numbers:
    """Return the numbers of a page.

    Parameters
    ----------
    row : Row
        As it is from now on, but for its numbers.
    page : bytes
        Its identity.
    terms : Terms
        Price, prior and settings.
    since : float
        Seconds from ``row.b`` to now, where that is later: what happened meanwhile makes no deadline in the past.
    late : float
        Of a pinned page: seconds by which its visit came late, see `pinned_lateness`.
    yielded : float
        Importance of the new pages that it yields a second, see `hubs.worth_of`.
    heard : Heard
        What sources of signals say of it.
    """
    if row.failures and row.cause in _AFTER_A_VISIT:
        planned = numbers_of(row._replace(failures=0, cause=0), page, terms, since, late, yielded, heard)
        return at_latest(planned, wait_after_failures(page, row, shortest_wait(row), None))
    published = terms.published
    longest = longest_wait(row, published)
    if row.failures:
        interval = interval_of(row, terms, yielded, heard) if row.gone or row.visits else None
        wait = wait_after_failures(page, row, shortest_wait(row), interval)
        return fixed(min(wait, longest))
    if row.flags & CHECKED:
        return fixed(shortest_wait(row))
    if row.is_pinned:
        return fixed(longest - min(max(late, 0.0), (1.0 - PINNED_SLACK) * longest))
    if published.number == 0:
        return Numbers(math.inf, 0.0, row.min_interval, longest)
    exploring = published.exploring
    is_memoryless = terms.settings.policy == "poisson"
    draw = draw_of(page, row.attempts) if is_memoryless else 1.0
    if exploring.is_even:
        return fixed(min(max(exploring.interval * draw, row.min_interval), longest))
    wait, slope = _wait(row, terms, yielded, heard)
    if is_memoryless and wait < math.inf:
        wait, slope = wait * draw, slope * draw
    if heard.doubt > 0.0 and wait < math.inf:
        wait -= heard.seconds(is_silence_told=_is_silence_told(terms, yielded))
    return numbers_at(max(wait, since), slope, terms.log_price, row.min_interval, exploring.longest(page, longest))


def second_look_of(row: Row, terms: Terms, interval: float) -> float:
    """Return the wait (s) for a second look at a page that its last visit, ``interval`` seconds after the one before, shows as too fast.

    inf for pages that are not given up, and for those of which such a look says nothing: see `exploration.second_look`.
    """
    published, rate = terms.published, change_rate_of(row, terms.published)
    if rate is None or not goes_by_worth(row, terms):
        return math.inf
    exploring = published.exploring
    log_price = published.lasting_price_at(row.host, terms.log_price)
    return max(exploring.second_look(log_price, row.importance, rate, interval), row.min_interval)


def goes_by_worth(row: Row, terms: Terms) -> bool:
    """Tell whether a page that was just visited may be looked at before its numbers say, where the freshness is worth the price."""
    is_free = row.state == ACTIVE and row.failures == 0 and row.flags & _APART == 0 and not row.is_pinned
    published = terms.published
    return is_free and published.number > 0 and terms.settings.objective == "freshness" and not published.exploring.is_even


def priced_numbers(
    some: Rows,
    ids: NDArray[np.void],
    terms: Terms,
    now: float,
    yielded: Floats | None = None,
    shift: Floats | float = 0.0,
    rate: Floats | None = None,
) -> ManyNumbers:
    """Return the numbers of many pages that go by the price (`goes_by_price`), after a plan: `numbers_of` each, arrays (n,).

    Parameters
    ----------
    some : Rows
        As stored; with ``median`` those of the posteriors, as far as they are known (else nan).
    ids : ndarray (n,) of V12
        Their identities.
    terms : Terms
        Price, prior and settings.
    now : float
        Server's time, seconds since the epoch: what happened meanwhile makes no deadline in the past; -inf: it may.
    yielded : ndarray (n,), optional
        Importance of the new pages that each yields a second; None: no page does.
    shift : ndarray (n,) or float
        Seconds by which the clock of each page's neighbourhood is ahead of the calendar since its last visit; memoryless visits take none.
    rate : ndarray (n,), optional
        `change_rates_of` them, where that is known already.

    Notes
    -----
    About 0.5 us for each of them, memoryless 1.5 us.
    """
    published = terms.published
    least, longest = some["min_interval"].astype(np.float64), _longest_of_rows(some, published)
    exploring = published.exploring
    is_memoryless = terms.settings.policy == "poisson"
    draws: Floats | float = 1.0
    if is_memoryless:
        attempts = (some["visits"].astype(np.int64) + some["failed"]).tolist()
        draws = np.array([draw_of(page, n) for page, n in zip(_ids(ids), attempts, strict=True)])
    if exploring.is_even:
        wait = np.minimum(np.maximum(exploring.interval * draws, least), longest)
        return ManyNumbers(wait, np.zeros(len(wait)), wait, wait)
    wait, slope = waits_of_rows(some, change_rates_of(some, published) if rate is None else rate, terms, yielded)
    if is_memoryless:
        wait, slope = wait * draws, slope * draws
    else:
        wait = wait - shift
    longest = exploring.longest_of_many(ids, longest)
    wait = np.maximum(wait, np.maximum(now - some["b"] / 1e6, 0.0) if now > -math.inf else 0.0)
    flat = (slope <= 0.0) | np.isinf(wait)
    a = np.where(flat, wait, wait - np.where(flat, 0.0, slope) * (terms.log_price if math.isfinite(terms.log_price) else 0.0))
    return ManyNumbers(a, slope, np.minimum(least, longest), longest)


def goes_by_price(rows: Rows) -> NDArray[np.bool_]:
    """Tell of each row whether the price says when the page is visited."""
    is_well = (rows["state"] == ACTIVE) & (rows["visits"] > 0) & (rows["failures"] == 0)
    is_free = (rows["min_interval"] < rows["max_interval"]) & (rows["l"] > 0)  # wanted at once: all numbers 0
    # What has just appeared has its first look when its first visit said: nothing is to move it that depends on changes, or looks would
    # see them at the ages at which they are made. One that was given up waits for a lower price.
    is_new = (rows["flags"] & APPEARED > 0) & (rows["visits"] == 1) & (rows["a"] < NEVER_S)
    answer: NDArray[np.bool_] = is_well & is_free & (rows["flags"] & _APART == 0) & ~is_new
    return answer


def shortest_wait(row: Row) -> float:
    """Return the least seconds from one visit to the next: half the interval of a pinned page, else the least interval.

    None before the first, where the host has put that off.
    """
    if is_put_off(row):
        return 0.0
    return row.min_interval * (PINNED_SLACK if row.is_pinned else 1.0)


def longest_wait(row: Row, published: Published) -> float:
    """Return the most seconds from one visit to the next: its longest interval, stretched where the budget cannot hold all."""
    return min(row.max_interval * published.stretch, FAR_S)


def is_early_look(row: Row) -> bool:
    """Tell whether a page waits for a look that comes before its numbers would say, and is no check of its last visit: that is soon."""
    return bool(row.flags & CHECKED) and row.failures == 0 and row.l > shortest_wait(row)


def pinned_lateness(before: Row, b: float) -> float:
    """Return by how many seconds a visit of a pinned page came late.

    Parameters
    ----------
    before : Row
        Of the page, as it was handed out.
    b : float
        When the visit was, microseconds since the epoch.

    Notes
    -----
    The next one is due an interval after that one was, as far as that is at most half an interval ago. A visit that was no regular one (the
    first, one after a failure, one that somebody asked for) begins anew; one that was a check falls in between two regular ones.
    """
    if before.visits == 0 or before.failures:
        return 0.0
    since = (b - before.b) / 1e6
    if before.flags & CHECKED:
        return since
    is_regular = before.e == before.l and before.l >= (PINNED_SLACK - _ROUNDING) * before.max_interval
    return max(since - before.l, 0.0) if is_regular else 0.0


def change_rate_of(row: Row, published: Published) -> float | None:
    """Return the believed change rate (1/s): the posterior median, or that of the prior of its pattern; None before the first plan."""
    if row.shape > 0.0:
        return _median(*published.believed(row.pattern, row.shape, row.time))
    prior = published.prior_of(row.pattern)
    return None if prior is None else median_one(*prior)


def change_rates_of(rows: Rows, published: Published) -> Floats:
    """Return the believed change rates (1/s) of many pages: `change_rate_of` for rows as `priced_numbers` takes them; 0 for None."""
    shape, time = rows["shape"], rows["time"]
    known = shape > 0.0
    names = (rows.dtype.names or ()) if isinstance(rows, np.ndarray) else rows
    rate: Floats = rows["median"].copy() if "median" in names else np.full(len(shape), np.nan)
    unknown = np.flatnonzero(known & np.isnan(rate))
    if len(unknown):
        own = shape[unknown].astype(np.float64), time[unknown].astype(np.float64)
        rate[unknown] = posterior_median(*published.alike.believed(rows["pattern"][unknown], *own))
    if not known.all():
        patterns, at = np.unique(rows["pattern"][~known], return_inverse=True)
        priors = [published.prior_of(pattern) for pattern in patterns.tolist()]
        rate[~known] = np.array([0.0 if prior is None else median_one(*prior) for prior in priors])[at]
    return rate


@lru_cache(maxsize=64)
def _median(shape: float, time: float) -> float:
    """The same few are asked for several times while a visit is judged."""
    return median_one(shape, time)


def interval_of(row: Row, terms: Terms, yielded: float = 0.0, heard: Heard = SILENCE) -> float | None:
    """Return the interval (s) at which a page without update times is revisited while it does not fail, and its sources are silent; None
    before the first plan."""
    published = terms.published
    longest = longest_wait(row, published)
    if row.is_pinned:
        return longest
    if published.number == 0:
        return None
    exploring = published.exploring
    wait = exploring.interval if exploring.is_even else _wait(row, terms, yielded, heard)[0]
    return min(max(wait, row.min_interval), longest)


def intervals_of_rows(rows: Rows, rates: Floats, terms: Terms, yielded: Floats | None = None) -> Floats:
    """Return the intervals (s) of many pages: `interval_of` for arrays (n,), with the change rates as they are believed, 1/s.

    nan for what is not visited again, or not known yet. Of a page that was given up it is the longest one, though the price may have
    fallen since: the next plan will see to that.
    """
    published = terms.published
    longest = _longest_of_rows(rows, published)
    wait = np.full(len(longest), np.nan)
    if published.number and published.exploring.is_even:
        wait[:] = published.exploring.interval
    elif published.number:
        wait, _ = waits_of_rows(rows, rates, terms, yielded)
        wait[are_given_up(rows) & (True if yielded is None else yielded <= 0.0)] = np.inf
    pinned = rows["min_interval"] >= rows["max_interval"]
    intervals: Floats = np.where(pinned, longest, np.minimum(np.maximum(wait, rows["min_interval"]), longest))
    intervals[(rows["state"] != ACTIVE) | (rows["visits"] == 0)] = np.nan
    return intervals


def interval_of_judged(row: Row, terms: Terms) -> float | None:
    """Return the interval (s) that is in the numbers of a page that was just judged; None where these say something else."""
    is_apart = row.state != ACTIVE or row.failures or row.flags & (CHECKED | TIMED | HELD) or row.is_pinned
    if is_apart or terms.published.number == 0 or terms.settings.policy == "poisson":
        return None
    return min(max(row.a + row.s * terms.log_price if row.s else row.a, row.e), row.l)


def discovery_of(yielded: float, terms: Terms) -> float:
    """Return what the new pages of a second are worth in the unit of OBJECTIVE; they are believed to change as any new page."""
    newcomer_rate = 1.0 / terms.published.prior_time if terms.published.prior_time > 0.0 else 0.0
    return discovery_rate(yielded, terms.settings.objective, newcomer_rate)


def _is_silence_told(terms: Terms, yielded: float) -> bool:
    """Whether waits grow by the silence of sources: not of hubs, nor of memoryless visits, which go by all changes."""
    return yielded <= 0.0 and terms.settings.policy != "poisson"


def _wait(row: Row, terms: Terms, yielded: float, heard: Heard) -> tuple[float, float]:
    published, settings = terms.published, terms.settings
    rate = heard.change_rate or change_rate_of(row, published)
    if rate is None:
        return math.inf, 0.0
    log_price = published.log_price_at(row.host, terms.log_price)
    if yielded > 0.0:
        discovery = discovery_of(yielded, terms)
        wait, slope = wait_with_discovery(log_price, row.importance, rate, discovery, settings.objective, settings.policy)
    else:
        recalls, false_rates = (heard.recalls, heard.false_rates) if _is_silence_told(terms, yielded) else ((), ())

        def at_price(log_price: float) -> tuple[float, float]:
            if recalls:
                return wait_with_sources(log_price, row.importance, rate, recalls, false_rates, settings.objective)
            return wait_at_price(log_price, row.importance, rate, settings.objective, settings.policy)

        wait, slope = at_price(log_price)
        if wait >= NEVER_S and (lasting := published.lasting_price_at(row.host, terms.log_price)) < log_price:
            # As in `waits_that_last`.
            wait, slope = at_price(lasting)
            wait += slope * (log_price - lasting)
    # Visits to a host at its limit do not answer to the price of the crawl.
    return (wait, slope if log_price == terms.log_price else 0.0) if wait < NEVER_S else (math.inf, 0.0)


def waits_of_rows(rows: Rows, change_rate: Floats, terms: Terms, yielded: Floats | None = None) -> tuple[Floats, Floats]:
    """Return waits and slopes (s) of many pages at the price, before bounds, draws and exploration: arrays (n,).

    Parameters
    ----------
    rows : ndarray (n,) of `state.rows.LAYOUT`
        Pages.
    change_rate : ndarray (n,)
        As they are believed, 1/s.
    terms : Terms
        Price, prior and settings.
    yielded : ndarray (n,), optional
        Importance of the new pages that each yields a second; None: no page does.

    Returns
    -------
    wait, slope : ndarray (n,)
        (inf, 0) for a page that no visit is worth the price to, neither at that of now nor at the one that lasts.
    """
    published, settings = terms.published, terms.settings
    if terms.log_price == -math.inf:
        return np.zeros(len(change_rate)), np.zeros(len(change_rate))
    log_price = _prices(rows, published, terms.log_price)
    importance = rows["importance"].astype(np.float64)
    if yielded is not None and yielded.any():
        discovery = yielded * discovery_of(1.0, terms)
        wait, slope = waits_with_discovery(log_price, importance, change_rate, discovery, settings.objective, settings.policy)
    else:
        wait, slope = waits_at_price(log_price, importance, change_rate, settings.objective, settings.policy)
    if published.lasting < terms.log_price:
        prices = (log_price, _prices(rows, published, published.lasting))
        wait, slope = waits_that_last((wait, slope), prices, importance, change_rate, settings.objective, settings.policy)
    wait[wait >= NEVER_S] = np.inf
    slope[np.isinf(wait) | (np.asarray(log_price) > terms.log_price)] = 0.0
    return wait, slope


def _longest_of_rows(rows: Rows, published: Published) -> Floats:
    return np.minimum(rows["max_interval"].astype(np.float64) * published.stretch, FAR_S)


def _prices(rows: Rows, published: Published, log_price: float) -> Floats | float:
    """Return the log prices of visits to many pages when that of the crawl is ``log_price``: `Published.log_price_at`."""
    if not published.host_prices:
        return log_price
    hosts, at = np.unique(rows["host"], return_inverse=True)
    return np.array([published.log_price_at(host, log_price) for host in hosts.tolist()])[at]


def is_given_up(row: Row) -> bool:
    """Tell whether no visit was worth the price to a page when its numbers were made: its longest wait alone decides.

    Not of pages that wait for a callback, or that buy visits at their update times.
    """
    return row.state == ACTIVE and row.visits > 0 and row.failures == 0 and not row.flags & (TIMED | HELD) and row.a >= NEVER_S


def are_given_up(rows: Rows) -> NDArray[np.bool_]:
    """Tell of each row whether its page is given up: `is_given_up` for many."""
    is_well = (rows["state"] == ACTIVE) & (rows["visits"] > 0) & (rows["failures"] == 0)
    answer: NDArray[np.bool_] = is_well & (rows["flags"] & (TIMED | HELD) == 0) & (rows["a"] >= NEVER_S)
    return answer


def _ids(pages: NDArray[np.void]) -> list[bytes]:
    raw, width = pages.tobytes(), pages.dtype.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]
