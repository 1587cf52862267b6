"""Priors learned from siblings: what pages of a pattern, a host and the crawl have taught of those without a bit.

Notes
-----
Empirical Bayes in three levels. A page with bits has a posterior Gamma(a, b) with the log median y, and a variance of log rate that is
close to v = 1/a + 1/(2a^2). It counts with the weight w = 1 - min(1, 1/a) min(1, T/b): the share of its posterior that is not the
default prior Gamma(1, T), T = pages / budget. So a page that still has the default prior counts nothing. A group with a parent of mean y0
and variance v0 has, with K = `PARENT_PAGES`,

    mean     = (K y0 + sum w y) / (K + sum w)
    variance = (K v0 + sum w (v + (y - mean)^2)) / (K + sum w),

one step of EM for normal log rates: a small group stays near its parent, and what its pages do not know themselves yet counts as
variety. The crawl's parent is the default prior, a host's the crawl, a pattern's its host. The prior has e^mean as its median, and the
shape s with 1/s + 1/(2s^2) = variance: (1 + sqrt(1 + 2 variance)) / (2 variance).

What keeps it from starving pages, as the plain estimate does, which lets pages that seem too fast to follow never be looked at again, so
that they are never learned otherwise: the shape lies in [1, `MOST_SHAPE`], so that a prior weighs no more than two changes, and
where siblings differ one, as the default does. Its median, which is what the solver is given, is that of the medians of siblings: their
means after few bits lie above, and a young group would seem fast. And it lies between `SLOWEST` and s (or `UNLIKE_FASTEST`)
times the default's: only siblings that agree, s = 2, may say that a page is twice as quick.

References
----------
H. Robbins, "An empirical Bayes approach to statistics", Berkeley Symposium 1956; B. Efron and C. Morris, "Stein's estimation rule and its
competitors", JASA 68, 1973, for the shrinkage; A. Dempster, N. Laird, D. Rubin, JRSS B 39, 1977, for EM; K. P. Choi, "On the medians of
gamma distributions", Proc. AMS 121, 1994. Weights and limits are ours,
measured in docs/maths.md, "Priors learned from siblings".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.quantile import posterior_median
from optimal_frontier.validation import broadcast_values, check_vector, id_array, number_array, scalar

#: Shape of the default prior.
DEFAULT_SHAPE: Final = 1.0
#: Largest shape of a prior: it never weighs more than so many changes.
MOST_SHAPE: Final = 2.0
#: Least median of a prior, in medians of the default prior; the most is the prior's own shape.
SLOWEST: Final = 1.0 / 64.0
#: But so much at least, however little siblings are alike.
UNLIKE_FASTEST: Final = 4.0 / 3.0
#: Pages for which the parent of a group counts.
PARENT_PAGES: Final = 2.0
#: Variance of log rate of the default prior, by the formula of the notes.
_DEFAULT_VARIANCE: Final = 1.0 / DEFAULT_SHAPE + 0.5 / DEFAULT_SHAPE**2
#: Medians of posteriors are followed up to e^500 from the default's, and variances down to where the shape is at its limit by far.
_FAR: Final = 500.0
_LEAST_MEDIAN: Final = 1e-3
_LEAST_VARIANCE: Final = 1e-6

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SiblingPriors:
    """A prior for each pattern.

    Attributes
    ----------
    shape, time : ndarray (patterns,)
        Gamma priors; time in the unit of the posteriors.
    siblings : ndarray (patterns,)
        Pages that taught it, each counted by the share of its posterior that is not the default prior. 0 where all comes from
        the host or from the crawl.
    """

    shape: Floats
    time: Floats
    siblings: Floats


def sibling_priors(shape: ArrayLike, time: ArrayLike, host: ArrayLike, pattern: ArrayLike, default_time: float) -> SiblingPriors:
    """Fit the priors of patterns to what is known of pages.

    Parameters
    ----------
    shape, time : array_like (n,)
        Gamma posteriors; shape 0 for a page without a bit, which counts nothing.
    host : array_like of int (n,)
        Host of each page, 0 or more.
    pattern : array_like of int (n,)
        Pattern of each page, numbered through over all hosts; 0 for a page that has none. All pages of another pattern are of one host.
    default_time : float
        Time of the default prior, whose shape is 1; > 0.

    Returns
    -------
    SiblingPriors
        For the patterns 0 to max(pattern). Number 0 has the prior of the crawl, and so have patterns that no page is of.

    Raises
    ------
    InvalidProblemError
        If lengths differ, a posterior is negative or not finite, or a group is no whole number of 0 or more: the message names the
        argument.

    Notes
    -----
    O(n + hosts + patterns), without a loop over either. See the module for the formula.

    Examples
    --------
    Three pages of a section that changes about once in 100 s, none known yet of another on the same host:

    >>> found = sibling_priors([20, 30, 25, 0], [2000, 3000, 2500, 0], host=[0, 0, 0, 0], pattern=[1, 1, 1, 2], default_time=1.0)
    >>> (posterior_median(found.shape, found.time)).round(3).tolist()
    [0.054, 0.013, 0.019]
    >>> found.shape.round(2).tolist(), found.siblings.round(1).tolist()
    ([1.0, 2.0, 1.15], [0.0, 3.0, 0.0])
    """
    a = number_array("shape", shape)
    check_vector("shape", a)
    patterns = id_array("pattern", pattern, a.size)
    taught = TaughtPriors(int(patterns.max(initial=0)) + 1, default_time)
    taught.add(shape, time, host, patterns)
    return taught.priors()


class TaughtPriors:
    """`sibling_priors` of pages that come in parts: sums by pattern, which take 40 bytes a pattern.

    Parameters
    ----------
    patterns : int
        How many numbers of patterns there are, 0 included.
    default_time : float
        As in `sibling_priors`.
    """

    def __init__(self, patterns: int, default_time: float) -> None:
        self._default = scalar("default_time", default_time, positive=True)
        self._host_of = np.zeros(patterns, np.int64)
        self._sums = _Sums(*np.zeros((4, patterns)))

    def add(self, shape: ArrayLike, time: ArrayLike, host: ArrayLike, pattern: ArrayLike) -> None:
        """Take in some pages; arguments and errors are those of `sibling_priors`."""
        a = number_array("shape", shape)
        check_vector("shape", a)
        b = broadcast_values("time", time, a.shape)
        hosts, patterns = id_array("host", host, a.size), id_array("pattern", pattern, a.size)
        if (b[a > 0.0] <= 0.0).any():
            raise InvalidProblemError("time is 0 where shape is not; expected a positive number")
        self._host_of[patterns] = hosts
        bits = (a > 0.0).nonzero()[0]
        for sums, more in zip(self._sums, _taught(a[bits], b[bits], patterns[bits], len(self._host_of), self._default), strict=True):
            sums += more

    def priors(self) -> SiblingPriors:
        """Return what these pages have taught."""
        taught, host_of = self._sums, self._host_of
        # Pages without a pattern may be of any host: their parent, and what they teach, is the crawl.
        of_hosts = _Sums(*(_sums(host_of[1:], sums[1:]) for sums in taught))
        crawl = _shrunk(_Sums(*(sums.sum(keepdims=True) for sums in taught)), np.zeros(1), np.full(1, _DEFAULT_VARIANCE))
        mean, variance = _shrunk(of_hosts, *crawl)
        mean, variance = _shrunk(_Sums(*(sums[1:] for sums in taught)), mean[host_of[1:]], variance[host_of[1:]])
        mean, variance = np.append(crawl[0], mean), np.append(crawl[1], variance)
        fitted = np.clip((1.0 + np.sqrt(1.0 + 2.0 * variance)) / (2.0 * variance), DEFAULT_SHAPE, MOST_SHAPE)
        most = np.log(np.maximum(fitted, UNLIKE_FASTEST))
        median = posterior_median(DEFAULT_SHAPE, self._default) * np.exp(np.clip(mean, np.log(SLOWEST), most))
        return SiblingPriors(fitted, posterior_median(fitted, 1.0) / median, taught.weight)


class _Sums(NamedTuple):
    """Sums over the pages of each group: weights w, and of w times log median, its square, and the variance of log rate."""

    weight: Floats
    level: Floats
    square: Floats
    variance: Floats


def _taught(a: Floats, b: Floats, pattern: Ints, count: int, default: float) -> _Sums:
    inverse = 1.0 / a
    # a - 1/3 + 8/(405 a) is the median of Gamma(a, 1) to 1% from shape 1 on (Choi 1994). In units of the default prior's, so that a
    # crawl of centuries and one of seconds are the same.
    level = np.log(np.maximum(a - 1.0 / 3.0 + (8.0 / 405.0) * inverse, _LEAST_MEDIAN) * (default / np.log(2.0)) / b)
    level = np.clip(level, -_FAR, _FAR)
    weight = 1.0 - np.minimum(1.0, DEFAULT_SHAPE * inverse) * np.minimum(1.0, default / b)
    weighted = weight * level
    terms = (weight, weighted, weighted * level, weight * (inverse + 0.5 * inverse * inverse))
    return _Sums(*(_sums(pattern, term, count) for term in terms))


def _sums(group: Ints, values: Floats, count: int = 0) -> Floats:
    return np.asarray(np.bincount(group, weights=values, minlength=count), dtype=np.float64)


def _shrunk(sums: _Sums, parent: Floats, parent_variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of groups that begin as if they had seen `PARENT_PAGES` pages like their parent."""
    total = PARENT_PAGES + sums.weight
    mean = (PARENT_PAGES * parent + sums.level) / total
    apart = np.maximum(sums.square - 2.0 * mean * sums.level + mean * mean * sums.weight, 0.0)
    variance = (PARENT_PAGES * parent_variance + sums.variance + apart) / total
    return mean, np.maximum(variance, _LEAST_VARIANCE)
