"""When a page of which signals tell is worth a visit: `numbers.wait_at_price` for pages whose changes are announced, now and then.

Doubt about a copy is the negative logarithm of the chance that it is fresh. It rises with time, by the unannounced changes, and by the
evidence of every signal. A visit is due when it reaches a threshold. In seconds of the clock of unannounced changes a signal that comes
after a visit brings the next one nearer by ``evidence / unannounced(...)`` seconds, so a deadline stays one number:

    due = visit + signalled_wait(...) - signals since the visit x evidence(...) / unannounced(...)

`optimization.signal_response` has the theory. `signalled_wait` is for one page whose visit was judged, `signalled_waits` for the planner's
many; a test holds the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from optimal_frontier.optimization.signal_response import (
    LEAST_UNANNOUNCED,
    OneSignals,
    Signals,
    evidence_of_one,
    excess,
    excesses,
    signals_of,
    signals_of_one,
    threshold_of_one,
    thresholds_at,
)
from optimal_frontier.scheduling.numbers import MOST_SLOPE, WORTHLESS, Floats, Objective, price_share, wait_at_price, waits_at_price

#: Signals that tell less than this of a change, as a share of it, count for none: a threshold moves by less than that.
_NOTHING: Final = 1e-9


def unannounced(change_rate: float, recalls: Sequence[float]) -> float:
    """Return the changes per second that no source tells of, if sources tell independently of each other.

    Parameters
    ----------
    change_rate : float
        Changes per second, 0 or more.
    recalls : sequence of float
        Of each source that covers the page: the share of changes that it tells of, from 0 to 1.

    Notes
    -----
    At least `LEAST_UNANNOUNCED` of the changes, so that a page that is told of completely is looked at again some day.

    Examples
    --------
    >>> round(unannounced(0.5, [0.6, 0.5]), 9), unannounced(0.5, [])
    (0.1, 0.5)
    """
    share = 1.0
    for recall in recalls:
        share *= 1.0 - recall
    return change_rate * (share if share > LEAST_UNANNOUNCED else LEAST_UNANNOUNCED)


def evidence(change_rate: float, recall: float, false_rate: float) -> float:
    """Return by how much one signal lowers the logarithm of the chance that a copy is fresh.

    Parameters
    ----------
    change_rate : float
        Changes per second, 0 or more.
    recall : float
        Share of the changes that the source tells of.
    false_rate : float
        Signals per second that no change caused.

    Returns
    -------
    float
        From 0 (a source that knows nothing) to `MOST_EVIDENCE` (one that is never wrong).

    Examples
    --------
    >>> round(evidence(1.0, 0.6, 0.6), 6), evidence(1.0, 0.6, 0.0), evidence(1.0, 0.0, 0.5)
    (0.693147, 50.0, 0.0)
    """
    return evidence_of_one(recall * change_rate, false_rate)


def signalled_wait(
    log_price: float, importance: float, change_rate: float, recall: float, false_rate: float, objective: Objective = "freshness"
) -> tuple[float, float]:
    """Return how long after a visit the next one is worth the price if no signal comes, and by how much that grows with the log price.

    Parameters
    ----------
    log_price, importance, change_rate, objective
        As in `wait_at_price`.
    recall : float
        Share of the changes that are told of, from 0 to 1; with 0 it is `wait_at_price`.
    false_rate : float
        Signals per second that no change caused, 0 or more.

    Returns
    -------
    wait, slope : float
        Seconds of the clock of unannounced changes; (inf, 0) where a visit never is worth the price. The slope is at most `MOST_SLOPE`
        waits. Every signal brings the visit nearer by ``evidence / unannounced`` seconds.

    Notes
    -----
    About 4 us. For the objective "changes" it is the same with ``importance x change rate`` for the importance: a visit finds the
    page changed as often as it was fresh before.

    Examples
    --------
    >>> wait, slope = signalled_wait(math.log(5.94), 1.0, 0.1, 0.6, 0.06)
    >>> round(wait, 2), round(slope, 2)
    (45.11, 54.87)
    """
    return wait_with_sources(log_price, importance, change_rate, (recall,), (false_rate,), objective)


def signalled_waits(
    log_price: Floats | float,
    importance: Floats,
    change_rate: Floats,
    recall: Floats,
    false_rate: Floats,
    objective: Objective = "freshness",
) -> tuple[Floats, Floats]:
    """Return waits and slopes of many pages, arrays (n,): `signalled_wait` for arrays."""
    importance, change_rate = np.asarray(importance, np.float64), np.asarray(change_rate, np.float64)
    wait, slope = waits_at_price(log_price, importance, change_rate, objective)
    signals = signals_of(change_rate, np.asarray(recall, np.float64), np.asarray(false_rate, np.float64))
    told = np.flatnonzero((signals.rate * excesses(signals.evidence) >= _NOTHING) & (wait > 0.0) & (wait < np.inf))
    if len(told):
        some = Signals(*(of[told] for of in signals))
        rate = change_rate[told]
        price = np.broadcast_to(np.asarray(log_price, np.float64), change_rate.shape)[told]
        q = np.exp(price - np.log(importance[told]) + (np.log(rate) if objective == "freshness" else 0.0))
        threshold, steepness, _ = thresholds_at(q, some)
        wait[told] = threshold / rate
        slope[told] = np.minimum(q / steepness, MOST_SLOPE * threshold) / rate
    return wait / signals.unannounced, slope / signals.unannounced


def joined_sources(change_rate: float, recalls: Sequence[float], false_rates: Sequence[float]) -> OneSignals:
    """Return signals of one source that tell about as much of a page as those of several do.

    Parameters
    ----------
    change_rate : float
        Changes per second, above 0.
    recalls, false_rates : sequence of float
        Of each source: the share of changes that it tells of, and signals per second that no change caused.

    Returns
    -------
    unannounced, rate, evidence : float
        As in `Signals`, with the evidence of the strongest source. Weaker signals are joined to fewer of that evidence; what that leaves
        of them counts as unannounced changes. Thresholds in doubt hold for the page as it is; see `wait_with_sources`.

    Notes
    -----
    Each source of signals at the rate g and evidence E is replaced by one of evidence E', the largest, at the rate ``g c(E) / c(E')`` with
    ``c(E) = E - 1 + exp(-E)``: doubt rises as fast on average, and with the same variance to leading order. Sources that tell of the
    same change count twice in the doubt, as they are taken for independent; their changes do so too, so the joined recall is bounded by
    that of all of them, ``1 - prod(1 - recall)``.

    Examples
    --------
    >>> [round(number, 6) for number in joined_sources(0.1, [0.6, 0.0], [0.06, 3.0])]
    [0.4, 1.2, 0.693147]
    """
    every = [signals_of_one(change_rate, *source) for source in zip(recalls, false_rates, strict=True)]
    strongest = max([evidence for _, _, evidence in every])
    if strongest <= 0.0:
        return 1.0, 0.0, 0.0
    rate = sum([rate * excess(evidence) for _, rate, evidence in every]) / excess(strongest)
    true = -math.expm1(-strongest)
    recall = min(rate * true, 1.0 - math.prod([1.0 - recall for recall in recalls]))
    return max(1.0 - recall, LEAST_UNANNOUNCED), recall / true, strongest


def wait_with_sources(
    log_price: float,
    importance: float,
    change_rate: float,
    recalls: Sequence[float],
    false_rates: Sequence[float],
    objective: Objective = "freshness",
) -> tuple[float, float]:
    """Return wait and slope of a page of which any number of sources tell: `signalled_wait` for more than one.

    Returns
    -------
    wait, slope : float
        Seconds of the clock of unannounced changes, `unannounced`. A signal of a source brings the visit nearer by
        ``evidence(source) / unannounced`` seconds.
    """
    if not recalls or change_rate <= 0.0:
        return wait_at_price(log_price, importance, change_rate, objective)
    q = price_share(log_price, importance, change_rate, objective)
    if q >= WORTHLESS:
        return math.inf, 0.0
    if q <= 0.0:
        return 0.0, 0.0
    # The doubt at which the visit is due is that of the joined source; the clock is that of what all of them leave unannounced.
    if len(recalls) == 1:
        signals = signals_of_one(change_rate, recalls[0], false_rates[0])
        clock = change_rate * signals[0]
    else:
        signals, clock = joined_sources(change_rate, recalls, false_rates), unannounced(change_rate, recalls)
    _, rate, told = signals
    if rate * told * told < _NOTHING:
        wait, slope = wait_at_price(log_price, importance, change_rate, objective)
        return wait * change_rate / clock, slope * change_rate / clock
    threshold, steepness = threshold_of_one(q, signals)
    most = MOST_SLOPE * threshold
    return threshold / clock, (q / steepness if q < most * steepness else most) / clock
