"""How long to wait at a given price where noisy signals tell of changes: the curve behind plans and deadlines with signals.

A page changes at rate d. A change is signalled with the probability ``recall``; false signals come at the rate ``false_rate``. All that
is known of a copy is how old it is and how many signals came since. The chance that it is fresh is ``exp(-x)`` with the *doubt*

    x = unannounced changes until now + evidence x signals until now,

where unannounced changes come at the rate ``(1 - recall) d``, and ``evidence = log(1 + recall d / false_rate)`` is by how much one signal
lowers the logarithm of that chance. The best policy visits when x reaches a threshold X. In changes of the page as the unit of time, with
``a = 1 - recall``, signals at the rate g a change, evidence E, and ``s = (X - k E) / a`` the time until X after k signals,

    psi = (1 / g) sum P(k + 1, g s)                                  mean time between visits,
    w   = sum (g exp(-E))^k / (a + g)^(k + 1) P(k + 1, (a + g) s)    mean time in it in which the copy is fresh,

over all k with k E < X; P is the regularised incomplete gamma function. A visit at the threshold is worth

    V(X) = w - exp(-X) psi,    V'(X) = exp(-X) psi,

which rises from 0 to 1, in units of importance / d. Without signals it is ``1 - (1 + X) exp(-X)``, as in `response`.

Notes
-----
Many weak signals are replaced by fewer strong ones: a source of evidence E' > E with ``g' = g c(E) / c(E')``, ``c(E) = E - 1 + exp(-E)``,
and ``a' = 1 - g' (1 - exp(-E'))`` has the same rate of changes, and x rises as fast on average. Its variance is the same to leading order,
and weak signals matter little, so that the threshold is right to 1e-3 and what it is worth to 1e-5 (docs/maths.md). The sums have at most
about `_TERMS` terms then.

References
----------
Busa-Fekete, Zimmert, Gyorgy et al., A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals, WWW 2025.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import scipy  # scipy.special is imported at its first use: it takes 0.2 s
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Least share of changes that no signal tells of: with 0 no time that passes would make a copy any older.
LEAST_UNANNOUNCED: Final = 1e-6
#: Most evidence of one signal: a copy that is fresh with a chance of exp(-50) is as good as certainly stale.
MOST_EVIDENCE: Final = 50.0
#: False signals for a true one at which a signal has that.
_SURE: Final = 1.0 / math.expm1(MOST_EVIDENCE)
#: Signals until the threshold that are told apart at least; more and weaker ones are joined.
_TERMS: Final = 12.0
#: Signals a change that stand for none.
_NONE: Final = 1e-30
#: Below this doubt what a visit is worth is taken from its series.
_SMALL: Final = 1e-5
#: Doubt that is as good as infinite; a signal that is never wrong says more.
_MOST_DOUBT: Final = 40.0
_LEAST_DOUBT: Final = 1e-300
#: Of `_first_guesses`, fitted to thresholds of all kinds of sources; and the share of the signals up to which the first one is waited for.
_TOGETHER: Final = 0.2
_SECOND: Final = 0.75
_THIRD: Final = 0.5
_MOST_FIRST: Final = 0.999
_STEPS: Final = range(100)
#: Accepted last step, relative; the one after it would be its square.
_CLOSE: Final = 3e-5
#: The same of one page, whose visit is judged: what is left is below 5e-4, most often 1e-9. With more, thresholds of sources that tell of
#: nearly all changes would be 1% off, as their sums have corners, where one signal more comes to matter. Between two corners curves bend
#: the less the more changes are unannounced: so much, times their share, leaves below 1e-4 where 3% of them are or more.
_CLOSE_OF_ONE: Final = 3e-3
_CLOSE_BETWEEN_CORNERS: Final = 0.075
#: Accepted last step of one page, in doubt: a visit is worth less by exp(-doubt), so of large thresholds a small share is too much.
_SHORT: Final = 0.1


class Signals(NamedTuple):
    """What is signalled of pages, in changes of each as its unit of time; arrays (n,).

    Attributes
    ----------
    unannounced : float
        Share of the changes that no signal tells of, above 0.
    rate : float
        Signals for each change, false ones included.
    evidence : float
        By how much one signal lowers the log of the chance that the copy is fresh.
    """

    unannounced: Any
    rate: Any
    evidence: Any


#: The same of one page, in plain floats: a named tuple takes 40 times as long to make.
OneSignals = tuple[float, float, float]


class Response(NamedTuple):
    """What a threshold leads to; arrays (n,).

    Attributes
    ----------
    worth : float
        Of a visit at the threshold, in units of importance / change rate.
    interval, fresh : float
        Mean time between two visits, and mean time in it in which the copy is fresh, in changes.
    """

    worth: Any
    interval: Any
    fresh: Any


def evidence_of_one(announced: float, false_rate: float) -> float:
    """Return the evidence of a signal: of those that changes cause, and of false ones, so many come per unit of time, 0 or more."""
    return math.log1p(announced / false_rate) if false_rate > announced * _SURE else MOST_EVIDENCE if announced > 0.0 else 0.0


def signals_of_one(change_rate: float, recall: float, false_rate: float) -> OneSignals:
    """Return what is signalled of one page; all three 0 or more, recall at most 1, the rates per unit of time."""
    announced = recall * change_rate
    if announced <= 0.0:
        return 1.0, _NONE, 0.0
    unannounced = 1.0 - recall
    if unannounced < LEAST_UNANNOUNCED:
        unannounced = LEAST_UNANNOUNCED
    return unannounced, recall + false_rate / change_rate, evidence_of_one(announced, false_rate)


def signals_of(change_rate: Floats, recall: Floats, false_rate: Floats) -> Signals:
    """Return what is signalled of many pages, arrays (n,): `signals_of_one` for arrays."""
    announced = recall * change_rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        evidence = np.where(announced > 0.0, np.minimum(np.log1p(announced / false_rate), MOST_EVIDENCE), 0.0)
        rate = np.where(announced > 0.0, recall + false_rate / change_rate, _NONE)
    return Signals(np.where(announced > 0.0, np.maximum(1.0 - recall, LEAST_UNANNOUNCED), 1.0), rate, evidence)


def excess(evidence: float) -> float:
    """Return ``E - 1 + exp(-E)`` without cancellation."""
    if evidence < 1e-3:
        return evidence * evidence * (0.5 - evidence * (1 / 6 - evidence / 24))
    return evidence + math.expm1(-evidence)


def excesses(evidence: Floats) -> Floats:
    """Return `excess` of an array."""
    series = evidence * evidence * (0.5 - evidence * (1 / 6 - evidence / 24))
    return np.asarray(np.where(evidence < 1e-3, series, evidence + np.expm1(-evidence)))


def joined(signals: OneSignals, evidence: float) -> OneSignals:
    """Return fewer signals of a page, each of this evidence, that tell about as much; more than the page's own."""
    rate = max(signals[1] * excess(signals[2]) / excess(evidence), _NONE)
    return max(1.0 + rate * math.expm1(-evidence), LEAST_UNANNOUNCED), rate, evidence


def many_joined(signals: Signals, evidence: Floats) -> Signals:
    """Return `joined` of many pages; those whose signals have this evidence already stay as they are."""
    weak = signals.evidence < evidence
    rate = np.where(weak, np.maximum(signals.rate * excesses(signals.evidence) / excesses(evidence), _NONE), signals.rate)
    unannounced = np.where(weak, np.maximum(1.0 + rate * np.expm1(-evidence), LEAST_UNANNOUNCED), signals.unannounced)
    return Signals(unannounced, rate, np.where(weak, evidence, signals.evidence))


def _response_of_one(threshold: float, a: float, g: float, evidence: float) -> tuple[float, float, float, float]:
    """Return to what a threshold > 0 of one page leads: interval and time in it in which the copy is fresh; first and second derivative of
    the interval. Exact if the sums are short; about 0.5 us a signal."""
    both, time = a + g, threshold / a
    first = math.expm1(-g * time)
    signals, rise, fresh = -first, 1.0 + first, -math.expm1(-both * time)
    bend = -rise
    if threshold > evidence:
        # With one signal P is 1 - (1 + y) exp(-y): found in a third of the time.
        scale = of_fresh = g * math.exp(-evidence) / both
        rest = (threshold - evidence) / a
        y, of_both = g * rest, both * rest
        none = math.exp(-y)
        one = y * none
        signals += 1.0 - none - one
        rise += one
        bend += none - one
        fresh += scale * (1.0 - (1.0 + of_both) * math.exp(-of_both))
        shape, rest = 3.0, rest - evidence / a
        while rest > 0.0:
            incomplete, y = _incomplete_gamma(), g * rest
            came = incomplete(shape, y)
            just = incomplete(shape - 1.0, y) - came
            signals += came
            rise += just
            bend += just * ((shape - 1.0) / y - 1.0)
            scale *= of_fresh
            fresh += scale * incomplete(shape, both * rest)
            shape, rest = shape + 1.0, rest - evidence / a
    return signals / g, fresh / both, rise / a, bend * g / (a * a)


def responses(threshold: Floats, signals: Signals) -> Response:
    """Return what thresholds > 0 lead to, arrays (n,)."""
    a, g, evidence = signals
    both = a + g
    s = threshold / a
    interval = -np.expm1(-g * s) / g
    fresh = -np.expm1(-both * s) / both
    of_fresh = g * np.exp(-evidence) / both
    scale = 1.0 / both
    shape, rows = 1.0, np.flatnonzero(threshold > evidence)
    while len(rows):
        shape += 1.0
        s = (threshold[rows] - (shape - 1.0) * evidence[rows]) / a[rows]
        scale[rows] *= of_fresh[rows]
        interval[rows] += scipy.special.gammainc(shape, g[rows] * s) / g[rows]
        fresh[rows] += scale[rows] * scipy.special.gammainc(shape, both[rows] * s)
        rows = rows[threshold[rows] > shape * evidence[rows]]
    worth = fresh - np.exp(-threshold) * interval
    small = np.flatnonzero(threshold < _SMALL)
    if len(small):
        x, rest = threshold[small], threshold[small] / a[small]
        y = g[small] * rest
        share = np.where(y < 1e-3, 0.5 - y * (1 / 6 - y / 24), excesses(y) / np.maximum(y * y, _NONE))
        worth[small] = np.exp(-x) * x * rest * share
    return Response(worth, interval, fresh)


def excess_share(y: float) -> float:
    """Return ``(y - 1 + exp(-y)) / y^2``, 1/2 at 0."""
    return 0.5 - y * (1 / 6 - y / 24) if y < 1e-3 else excess(y) / (y * y)


def threshold_of_one(share: float, signals: OneSignals) -> tuple[float, float]:
    """Return the threshold at which a visit is worth a share of importance / change rate, and where that leads.

    Parameters
    ----------
    share : float
        In (0, 1).
    signals : tuple of float
        Of one page.

    Returns
    -------
    threshold, steepness : float
        The threshold, which is doubt: it holds for the page as it is, also where weak signals were joined to find it. And the derivative
        of the worth by it.

    Notes
    -----
    Newton's method from where `_first_guesses` begin. One step for most pages; what the last one leaves is taken off to third order.
    """
    # The threshold without signals, within 0.5%: its series to the third order of the root, and what is left for long waits.
    alone = -math.log1p(-share)
    root = math.sqrt(2.0 * alone)
    target = alone + root / (1.0 + root / 6.0)
    a, g, evidence = signals
    if evidence * _TERMS < target:
        a, g, evidence = joined(signals, target / _TERMS)
    alone, threshold = target * math.sqrt(a), math.inf
    if alone < evidence and share * g < _MOST_FIRST:
        first = -math.log1p(-share * g)
        threshold = math.sqrt(alone * alone + first * first + _TOGETHER * alone * first)
    if threshold >= evidence:
        weight = evidence / target
        threshold = target * math.sqrt(a + (1.0 - a) / (1.0 + weight * (1.0 + weight * (_SECOND + weight * _THIRD))))
    threshold = threshold or _LEAST_DOUBT
    low, high, steepness = 0.0, _MOST_DOUBT, 0.0
    for _ in _STEPS:
        interval, fresh, rise, bend = _response_of_one(threshold, a, g, evidence)
        left = math.exp(-threshold)
        steepness = left * interval
        worth = fresh - steepness if threshold >= _SMALL else left * threshold * (threshold / a) * excess_share(g * threshold / a)
        step = (share - worth) / steepness
        reached, off = threshold + step, abs(step) / threshold
        # By which share the steepness, exp(-X) psi, grows over the step, to first order.
        more = step * (rise / interval - 1.0)
        is_short = abs(step) <= _SHORT
        if is_short and off <= _CLOSE_BETWEEN_CORNERS * a and (threshold < evidence) is (reached < evidence):
            curve = step * step * 0.5 * (bend / interval - 1.0) - step * more
            return threshold + step * (1.0 - 0.5 * more * (1.0 - more) - curve / 3.0), steepness * (1.0 + more * (1.0 - 0.5 * more) + curve)
        if is_short and off <= _CLOSE_OF_ONE:
            return threshold + step * (1.0 - 0.5 * more), steepness * (1.0 + more)
        if worth >= share:
            high = threshold
        else:
            low = threshold
        threshold = reached if low < reached < high else 0.5 * (low + high)
    return threshold, steepness


def thresholds_at(share: Floats, signals: Signals, start: Floats | None = None) -> tuple[Floats, Floats, Signals]:
    """Return thresholds at which visits are worth shares of importance / change rate: `threshold_of_one` for arrays (n,).

    Parameters
    ----------
    share : ndarray (n,)
        In (0, 1).
    signals : Signals
        Of the pages.
    start : ndarray (n,), optional
        Thresholds near the answer.

    Returns
    -------
    thresholds, steepness : ndarray (n,)
        The thresholds, and the derivatives of the worths by them.
    signals : Signals
        With which they were found: weak ones are joined.
    """
    target = np.asarray(scipy.special.gammaincinv(2.0, share))
    used = many_joined(signals, target / _TERMS)
    threshold = _first_guesses(share, target, used) if start is None else start.copy()
    low, high = np.zeros(share.shape), np.full(share.shape, _MOST_DOUBT)
    steepness = np.zeros(share.shape)
    rows = np.arange(len(share))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in _STEPS:
            at = threshold[rows]
            found = responses(at, Signals(*(of[rows] for of in used)))
            steepness[rows] = np.exp(-at) * found.interval
            above = found.worth >= share[rows]
            high[rows[above]], low[rows[~above]] = at[above], at[~above]
            r = np.where(found.worth < 1.0, scipy.special.gammaincinv(2.0, np.clip(found.worth, 0.0, 1.0)), _MOST_DOUBT)
            step = (target[rows] - r) * r * np.exp(-r) / steepness[rows]
            reached = at + step
            far = ~(np.abs(step) <= _CLOSE * at)
            outside = far & ~((low[rows] < reached) & (reached < high[rows]))
            reached[outside] = 0.5 * (low[rows] + high[rows])[outside]
            threshold[rows] = reached
            rows = rows[far]
            if not len(rows):
                break
    return threshold, steepness, used


def _first_guesses(share: Floats, target: Floats, signals: Signals) -> Floats:
    """Thresholds near the right ones, as `threshold_of_one` begins with; nine in ten are within 3%.

    Notes
    -----
    Where one signal is enough, they lie above ``target sqrt(a)``, until which all signals are waited for, and ``-log(1 - share g)``, until
    which the first one is. Where it takes more, the square of threshold / target goes from a, of strong signals, to 1, of weak ones, by a
    share that depends on little but evidence / target.
    """
    a, of_first, weight = signals.unannounced, share * signals.rate, signals.evidence / target
    alone, first = target * np.sqrt(a), -np.log1p(-np.minimum(of_first, _MOST_FIRST))
    by_first = np.sqrt(alone * alone + first * first + _TOGETHER * alone * first)
    with np.errstate(over="ignore"):
        by_more = target * np.sqrt(a + (1.0 - a) / (1.0 + weight * (1.0 + weight * (_SECOND + weight * _THIRD))))
    guess = np.where((of_first < _MOST_FIRST) & (by_first < signals.evidence), by_first, by_more)
    return np.asarray(np.maximum(guess, _LEAST_DOUBT))


@cache
def _incomplete_gamma() -> Any:
    """scipy's, for floats: a tenth of the time of the one for arrays."""
    from scipy.special import cython_special

    return cython_special.gammainc
