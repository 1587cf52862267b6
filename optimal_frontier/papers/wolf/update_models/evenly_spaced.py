"""What all renewal processes have in common: the best crawls are evenly spaced, and all follows from one curve of the gap between two.

The times between the updates of a page are independent, with tail ``G(t) = P(time > t)`` and mean ``1 / lambda``, and the process has
been going on for long. Then a copy of age s is stale with probability ``lambda int_0^s G`` (eq. 3), and over a gap of length d between two
crawls the copy is stale for the share

    ``a(d) = (lambda / d) int_0^d (d - u) G(u) du``

of it. d a(d) is convex in d, as its second derivative is ``lambda G(d) >= 0``, so equal gaps are best, and A is convex. In the paper's
convention (t_0 = 0, t_(x+1) = T in eq. 1) x crawls in [0, T] make x + 1 gaps, so ``A(x) = a(T / (x + 1))``: the copy is fresh at time 0
without a crawl that counts, and the last gap ends at T with a stale copy. Over intervals repeated for ever with x evenly spaced crawls
in each the gaps are T / x, and the long-run staleness is a(T / x) = A(x - 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.sweeps import blockwise
from optimal_frontier.papers.wolf.update_models.model import checked_crawls, checked_interval, crawls_of_pages
from optimal_frontier.validation import numeric_array, page_or_scalar

#: Gauss-Legendre nodes and weights on [0, 1].
_NODES, _WEIGHTS = (0.5 * values[:, None] for values in np.polynomial.legendre.leggauss(16))
_NODES += 0.5
#: Up to so many pages all terms of their sums are made at once, as most of the time is numpy's own.
FEW: Final = 64
#: Pages a block: a kernel keeps about ten arrays of it.
_WIDTH: Final = 8192
#: Newton steps of `EvenlySpaced.crawls_worth`, 3 to 6 usually and more where the slope hardly depends on the gap any more; and the step
#: after which it is close enough, as the next would be about the square of it.
_STEPS: Final = 60
_CLOSE: Final = 1e-4
#: Relative miss of the price that is rounding.
_ROUNDING: Final = 1e-14
#: Longest step.
_STRIDE: Final = 2.0

#: A kernel of some pages: their gaps (or slopes) and the interval in, one number per page out.
Kernel = Callable[["EvenlySpaced", Floats, float], Floats]


def quadrature(integrand: Callable[[Floats | float], Floats], pages: int) -> Floats:
    """Return the integral from 0 to 1 of what ``integrand`` gives of so many pages, (pages,)."""
    if pages <= FEW:
        terms = iter(_WEIGHTS * integrand(_NODES))
    else:
        terms = (weight * integrand(node) for node, weight in zip(_NODES.ravel().tolist(), _WEIGHTS.ravel().tolist(), strict=True))
    # One after the other, so that a page has the same beside any others: numpy's sum has another order where there is one page.
    total = np.zeros(pages)
    for term in terms:
        total += term
    return total


class EvenlySpaced(ABC):
    """Pages whose updates are renewal processes.

    A family of tails says what `_stale`, `_late` and `_density` are; parameters are attributes, named in `_per_page`, of one shape, ()
    or (n,).
    """

    _per_page: ClassVar[tuple[str, ...]]
    _pages: tuple[int, ...]

    def __len__(self) -> int:
        return self._pages[0] if self._pages else 1

    def staleness(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x), the share of time in which the copy is stale, if x crawls are evenly spaced over an interval.

        Parameters
        ----------
        crawls : array_like of int, scalar, (n,) or (..., n)
            Crawls in the interval, 0 or more.
        interval : float
            Length T of the scheduling interval, > 0, in the unit of the parameters.

        Returns
        -------
        ndarray
            In [0, 1], of the shape that crawls and parameters have together; a number if all are scalars. Convex and non-increasing in
            the crawls.

        Raises
        ------
        InvalidProblemError
            An argument is unusable; the message names it and the first offending index.

        Notes
        -----
        ``A(x) = (lambda / d) int_0^d (d - u) G(u) du`` with ``d = T / (x + 1)``. The copy is fresh at time 0: the crawls are at
        ``T / (x + 1), 2 T / (x + 1), ...``, and there is none at 0 or T. Crawls that go on for ever every T / x leave A(x - 1).

        References
        ----------
        Wolf et al. 2002, eq. 3, 4 and 14, and section 2.3.2.
        """
        return self._of_crawls(lambda few, visits, length: few._stale(length / (visits + 1.0)), crawls, interval)

    def decrease(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return A(x) - A(x + 1), what one more crawl takes off, without cancellation.

        Parameters
        ----------
        crawls : array_like of int, scalar, (n,) or (..., n)
        interval : float
            As in `staleness`.

        Returns
        -------
        ndarray
            Non-negative, non-increasing in the crawls.

        Raises
        ------
        InvalidProblemError

        Notes
        -----
        With ``n = x + 1`` and gaps ``T / n`` and ``e = T / (n + 1)`` it is the sum of two integrals of what is positive,
        ``(lambda / T) (int_0^e u G(u) du + n int_e^(T/n) (T/n - u) G(u) du)``.
        """
        return self._of_crawls(lambda few, visits, length: few._decrease(visits, length), crawls, interval)

    def slope(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return -dA/dx, where crawls need not be whole numbers.

        Parameters
        ----------
        crawls : array_like of float, scalar or (n,)
            0 or more.
        interval : float

        Returns
        -------
        ndarray
            ``(lambda / T) int_0^d u G(u) du`` with ``d = T / (x + 1)``; ``slope(x + 1) <= decrease(x) <= slope(x)``.

        Raises
        ------
        InvalidProblemError
        """
        return self._of_numbers(lambda few, visits, length: few._late(length / (visits + 1.0)) / (visits + 1.0), "crawls", crawls, interval)

    def crawls_worth(self, price: ArrayLike, interval: float) -> Floats:
        """Return where the slope falls to a price: the best crawls at that price, were they no whole numbers.

        Parameters
        ----------
        price : array_like of float, scalar or (n,)
            Decrease of staleness that a crawl must bring, > 0; may be inf.
        interval : float

        Returns
        -------
        ndarray
            x >= 0, to about 1e-8; 0 where even the first crawl is not worth the price. The best whole number, the first x with
            ``decrease(x) <= price``, lies within 1 of it, where slopes differ by more than rounding.

        Raises
        ------
        InvalidProblemError

        Notes
        -----
        Newton's method on the logarithms of the slope and of the gap. For the families here ``t x hazard(t)`` is non-decreasing, so the
        curve is concave: after one step at most the gap rises towards the answer.
        """
        return self._of_numbers(lambda few, prices, length: few._crawls_worth(prices, length), "price", price, interval, positive=True)

    def crawl_times(self, crawls: ArrayLike, interval: float) -> Floats:
        """Return the best times of the crawls, which are evenly spaced.

        Parameters
        ----------
        crawls : array_like of int, scalar or (n,)
        interval : float

        Returns
        -------
        ndarray (sum of crawls,)
            ``T / (x + 1), 2 T / (x + 1), ..., x T / (x + 1)`` of each page, page after page.

        Raises
        ------
        InvalidProblemError
        """
        length, counts = checked_interval(interval), crawls_of_pages(crawls, self._pages)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        times: Floats = (within + 1.0) / np.repeat(counts + 1.0, counts) * length
        return times

    def part(self, pages: slice | NDArray[np.int64]) -> Self:
        """Return the model of some of the pages; one of a single page, with scalar parameters, is returned as it is."""
        if not self._pages:
            return self
        few = copy(self)
        for name in self._per_page:
            setattr(few, name, getattr(self, name)[pages])
        few._pages = getattr(few, self._per_page[0]).shape
        return few

    @abstractmethod
    def _stale(self, gap: Floats) -> Floats:
        """``a(d)``, the share of a gap in which the copy is stale."""

    @abstractmethod
    def _late(self, gap: Floats) -> Floats:
        """``(lambda / d) int_0^d u G(u) du``; times ``d / T`` it is the slope."""

    @abstractmethod
    def _density(self, age: Floats) -> Floats:
        """``lambda G(t)``: the density of the time from a crawl to the next update."""

    def _triangle(self, start: Floats, width: Floats) -> Floats:
        """``(lambda / h) int_0^h (h - s) G(d + s) ds``, where d is a gap and h is how much longer it was with one crawl less."""
        return np.asarray(width * quadrature(lambda v: (1.0 - v) * self._density(start + width * v), start.size))

    def _decrease(self, visits: Floats, length: float) -> Floats:
        after = length / (visits + 2.0)
        result: Floats = (self._late(after) + self._triangle(after, after / (visits + 1.0))) / (visits + 2.0)
        return result

    def _crawls_worth(self, price: Floats, length: float) -> Floats:
        """Solve ``d x late(d) = price x length`` for the gap."""
        crawls = np.zeros(price.shape)
        first = self._late(np.full(price.shape, length))
        at = np.flatnonzero(first > price)
        few, wanted = self.part(at), price[at] * length
        gap = length * np.sqrt(price[at] / first[at])  # at least the answer, as late(d) / d falls in d
        for _ in range(_STEPS):
            late = few._late(gap)
            miss = np.log(wanted / (gap * late))
            step = np.clip(miss * late / (gap * few._density(gap)), -_STRIDE, _STRIDE)
            gap = np.minimum(gap * np.exp(step), length)
            going = (np.abs(step) > _CLOSE) & (np.abs(miss) > _ROUNDING)
            crawls[at] = length / gap - 1.0
            if not going.any():
                break
            at, few, wanted, gap = at[going], few.part(np.flatnonzero(going)), wanted[going], gap[going]
        return crawls

    def _of_crawls(self, kernel: Kernel, crawls: ArrayLike, interval: float) -> Floats:
        return self._sweep(kernel, checked_crawls(crawls, self._pages), checked_interval(interval))

    def _of_numbers(self, kernel: Kernel, name: str, values: ArrayLike, interval: float, *, positive: bool = False) -> Floats:
        array = numeric_array(name, values)
        n = len(self) if self._pages else array.size
        numbers = np.asarray(page_or_scalar(name, array, n, positive=positive, infinite=positive), dtype=np.float64)
        return self._sweep(kernel, np.broadcast_to(numbers, np.broadcast_shapes(numbers.shape, self._pages)), checked_interval(interval))

    def _sweep(self, kernel: Kernel, numbers: Floats, length: float) -> Floats:
        """Apply a kernel to one number per page, block by block."""
        result = np.empty(numbers.shape)
        if result.size == 0:
            return result
        width = numbers.shape[-1] if numbers.ndim else 1
        rows, answers = numbers.reshape(-1, width), result.reshape(-1, width)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            for row, answer in zip(rows, answers, strict=True):
                self._sweep_row(kernel, row, answer, length)
        return result[()]

    def _sweep_row(self, kernel: Kernel, row: Floats, answer: Floats, length: float) -> None:
        def work(blocks: Iterator[slice]) -> Iterator[None]:
            for at in blocks:
                answer[at] = kernel(self.part(at), row[at], length)
                yield

        blockwise(row.size, work, _WIDTH)
