"""Patterns whose pages are alike: their change rates differ no more than by chance, so that each is believed to be nearly that of all.

Notes
-----
A page with k changes in the time t, in a group that changes at the rate m on average, has k from a negative binomial distribution with mean
mu = m t and variance mu + mu^2 / S if the rates of the group are Gamma distributed with the shape S. By moments, over the group,

    1/S = sum((k - mu)^2 - mu) / sum(mu^2),    m = sum(k) / sum(t),

and where all rates are the same the numerator has the variance sum(2 mu^2 + mu). `CERTAINTY` deviations of that are added to 1/S, and S is
less by 1/n for n pages: a group is alike only as far as it has shown it. Pages that are not like the others, an index among articles, make
the numerator large, and end it. Where pages change more than `QUICKEST` times a round, visits see several changes as one, and pages seem
more alike than they are: there it is not asked, and little would be gained.

A prior of siblings never weighs more than `sibling_priors.MOST_SHAPE` changes, as it is for pages of which nothing is known. A page of
which something is known, and whose changes do not contradict it by `UNLIKE` deviations, has the rest of S, as if its siblings had been
it. What that gains: a crawl of pages alike is best revisited in turn, and what few bits say of each leads away from that.

References
----------
R. DerSimonian and N. Laird, "Meta-analysis in clinical trials", Controlled Clinical Trials 7, 1986, for the estimate by moments;
J. Lawless, "Negative binomial and mixed Poisson regression", Canadian Journal of Statistics 15, 1987, for counts. Limits are ours, measured
in docs/maths.md, "Pages that are alike".
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.estimation.sibling_priors import DEFAULT_SHAPE, MOST_SHAPE, SLOWEST

#: Deviations by which pages are taken to differ more than they have shown.
CERTAINTY: Final = 2.0
#: Deviations by which a page differs that is no longer one of them.
UNLIKE: Final = 3.0
#: Changes of a page in a round, the time of the default prior, up to which it is asked at all.
QUICKEST: Final = 0.25
#: Changes for which siblings count at most.
MOST_ALIKE: Final = 32.0
#: What is believed of siblings is told anew once it has moved by so much.
_MOVED: Final = 0.02
#: Medians of Gamma(`MOST_SHAPE`, 1) and of Gamma(`DEFAULT_SHAPE`, 1); that of Gamma(a, 1) is a less a third for larger shapes (K. P. Choi,
#: "On the medians of gamma distributions", Proc. AMS 121, 1994).
_MEDIAN: Final = 1.678346990016661
_DEFAULT_MEDIAN: Final = math.log(2.0)
_THIRD: Final = 1.0 / 3.0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LikePages:
    """What groups of pages have shown of how alike they are; sums, for pages that come in parts.

    Parameters
    ----------
    groups : int
        How many there are.
    default_time : float
        Time of the default prior, whose shape is 1, in the unit of the posteriors.
    """

    def __init__(self, groups: int, default_time: float) -> None:
        self._default = default_time
        self._sums: Floats = np.zeros((6, groups))

    def add(self, shape: Floats, time: Floats, group: Ints) -> None:
        """Take in the Gamma posteriors of some pages, and the group of each; those of shape 0 have none, and count nothing."""
        known = np.flatnonzero(shape > 0.0)
        # A page began with the default prior, or with one of its siblings that is like it.
        k, t = np.maximum(shape[known] - DEFAULT_SHAPE, 0.0), np.maximum(time[known] / self._default - 1.0, 0.0)
        for sums, values in zip(self._sums, (np.ones(len(k)), k, t, k * k, k * t, t * t), strict=True):
            sums += np.bincount(group[known], weights=values, minlength=len(sums))

    def fitted(self) -> tuple[Floats, Floats]:
        """Return for how many changes the siblings of each group count, at most `MOST_ALIKE`, and the mean rate; 0 where that is not known.

        Examples
        --------
        A hundred pages with about ten changes each are alike, and those with none or twenty are not:

        >>> known = LikePages(2, default_time=1.0)
        >>> known.add(np.tile([9.0, 13.0], 50), np.full(100, 101.0), np.zeros(100, int))
        >>> known.add(np.tile([1.0, 21.0], 50), np.full(100, 101.0), np.ones(100, int))
        >>> shape, rate = known.fitted()
        >>> shape.round(2).tolist(), rate.tolist()
        ([32.0, 1.07], [0.1, 0.1])
        """
        n, k, t, kk, kt, tt = self._sums
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(t > 0.0, k / t, 0.0)
            expected = mean * mean * tt
            apart = kk - 2.0 * mean * kt + expected - k
            spread = (np.maximum(apart, 0.0) + CERTAINTY * np.sqrt(2.0 * expected + k)) / expected
            # Each page is among those that it is compared with.
            shape = np.where((expected > 0.0) & (mean <= QUICKEST), np.minimum((1.0 - 1.0 / n) / spread, MOST_ALIKE), 0.0)
        return shape, mean / self._default


def priors_within(shape: ArrayLike, time: ArrayLike, default_time: float) -> tuple[Floats, Floats]:
    """Return what is believed of pages without a bit whose siblings have the rates Gamma(shape, time): no more than such a prior may say.

    Its median is that of its siblings, as far as `sibling_priors` admits it.

    Examples
    --------
    >>> shape, time = priors_within([1.5, 20.0, 20.0], [30.0, 400.0, 1.0], 10.0)
    >>> shape.tolist(), time.round(2).tolist()
    ([1.5, 2.0, 2.0], [30.0, 34.14, 12.11])
    """
    shapes, times = np.asarray(shape, np.float64), np.asarray(time, np.float64)
    is_alike = shapes > MOST_SHAPE
    fastest, slowest = (_MEDIAN / (limit * _DEFAULT_MEDIAN) * default_time for limit in (MOST_SHAPE, SLOWEST))
    within = np.clip(_MEDIAN * times / np.where(is_alike, shapes - _THIRD, 1.0), fastest, slowest)
    return np.where(is_alike, MOST_SHAPE, shapes), np.where(is_alike, within, times)


def with_siblings(shape: ArrayLike, time: ArrayLike, like_shape: ArrayLike, like_time: ArrayLike) -> tuple[Floats, Floats]:
    """Return posteriors of pages with what their siblings have shown, whose rates are Gamma(like_shape, like_time).

    Examples
    --------
    A page that seems twice as fast as its siblings, and one that is not like them:

    >>> shape, time = with_siblings(*np.array([[5.0, 50.0], [20.0, 20.0], [22.0, 22.0], [220.0, 220.0]]))
    >>> shape.tolist(), time.tolist()
    ([25.0, 50.0], [220.0, 20.0])
    """
    shape, time, like_shape, like_time = (np.asarray(values, np.float64) for values in (shape, time, like_shape, like_time))
    expected = time * like_shape / like_time
    # The prior that each began with may be of another rate: one change more or less.
    is_like = (shape - expected) ** 2 <= UNLIKE**2 * (1.0 + expected + expected**2 / like_shape)
    more = np.where(is_like, np.maximum(like_shape - MOST_SHAPE, 0.0), 0.0)
    return shape + more, time + more * like_time / like_shape


class LikePatterns(NamedTuple):
    """Patterns whose pages are alike, and the distribution of their change rates.

    Attributes
    ----------
    pattern : ndarray (n,)
        Rising.
    shape, time : ndarray (n,)
        Of a Gamma distribution; time in the unit of the posteriors.
    """

    pattern: NDArray[Any]
    shape: Floats
    time: Floats

    @classmethod
    def of(cls, pattern: NDArray[Any], shape: NDArray[Any], time: NDArray[Any]) -> LikePatterns:
        """Return those of a table of priors that are alike."""
        at = np.flatnonzero((shape > MOST_SHAPE) & (time > 0.0))
        return cls(pattern[at], shape[at].astype(np.float64), time[at].astype(np.float64))

    def find(self, pattern: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return which of some pages are of one of these patterns, and where it stands."""
        if not len(self.pattern):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at = np.minimum(np.searchsorted(self.pattern, pattern), len(self.pattern) - 1)
        pages = np.flatnonzero(self.pattern[at] == pattern)
        return pages, at[pages]

    def believed(self, pattern: NDArray[Any], shape: Floats, time: Floats) -> tuple[Floats, Floats]:
        """Return the posteriors of pages of these patterns, and of others, with what their siblings have shown; see `with_siblings`."""
        pages, at = self.find(pattern)
        if len(pages):
            shape, time = shape.copy(), time.copy()
            shape[pages], time[pages] = with_siblings(shape[pages], time[pages], self.shape[at], self.time[at])
        return shape, time

    def moved_since(self, before: LikePatterns) -> NDArray[Any]:
        """Return the patterns of which another distribution than before is believed."""
        patterns = np.union1d(self.pattern, before.pattern)
        told = []
        for which in (self, before):
            shape, rate = np.full(len(patterns), MOST_SHAPE), np.zeros(len(patterns))
            at = np.searchsorted(patterns, which.pattern)
            shape[at], rate[at] = which.shape, which.shape / which.time
            told.append((shape, rate))
        (shape, rate), (shape_before, rate_before) = told
        is_other = (np.abs(shape - shape_before) > _MOVED * shape) | (np.abs(rate - rate_before) > _MOVED * rate)
        return np.asarray(patterns[is_other])
