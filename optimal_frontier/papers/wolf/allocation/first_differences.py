"""The matrix of first differences: what the next crawl of each page takes off the objective, by how many it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.optimization.problem import Floats, Integers
from optimal_frontier.optimization.sweeps import blockwise

if TYPE_CHECKING:
    from optimal_frontier.papers.wolf.update_models.model import UpdateModel

#: Prices that a model is asked about lie within these.
_LEAST_PRICE: Final = 1e-99
_MOST_PRICE: Final = 1e99


@runtime_checkable
class Relaxed(Protocol):
    """A model that also solves its continuous problem."""

    def crawls_worth(self, price: ArrayLike, interval: float) -> Floats:
        """Return the best crawls at a price, were they no whole numbers."""


class Columns:
    """One column per page: entry x is ``weight x (A(x) - A(x + 1))``, the worth of crawl x + 1; convexity sorts it, largest first.

    Entries are worked out when they are asked for; none is kept.

    Parameters
    ----------
    models : sequence of UpdateModel
        Each covers the next pages in a row.
    weights : ndarray (n,)
    interval : float
        Length of the scheduling interval.
    """

    def __init__(self, models: Sequence[UpdateModel], weights: Floats, interval: float) -> None:
        self.models = models
        self.weights = weights
        self.interval = interval
        #: First page of each model, and the number of pages.
        self.starts = np.concatenate([[0], np.cumsum([len(model) for model in models], dtype=np.int64)])
        self.n = int(self.starts[-1])

    def part(self, pages: Integers) -> Columns:
        """Return the columns of some of the pages, in rising order."""
        models = [self._model(number, pages[at]) for number, at in self._by_model(pages)]
        return Columns(models, self.weights[pages], self.interval)

    def worth(self, pages: Integers, crawls: Integers) -> Floats:
        """Return the worth of one more crawl of `pages` that have `crawls`; pages in rising order, each as often as is liked."""
        found = np.empty(pages.size)

        def sweep(blocks: Iterator[slice]) -> Iterator[None]:
            for at in blocks:
                mine, visits, answer = pages[at], crawls[at], found[at]
                for number, some in self._by_model(mine):
                    answer[some] = self._model(number, mine[some]).decrease(visits[some], self.interval)
                answer *= self.weights[mine]
                yield None

        blockwise(pages.size, sweep)
        return found

    def relaxed(self, price: float, guess: Integers) -> Floats:
        """Return each page's best crawls at a price, were they no whole numbers; the guess where a model does not say."""
        found = guess.astype(np.float64)

        def sweep(blocks: Iterator[slice]) -> Iterator[None]:
            for at in blocks:
                mine, answer = np.arange(at.start, at.stop), found[at]
                with np.errstate(divide="ignore", over="ignore"):
                    prices = np.clip(price / self.weights[at], _LEAST_PRICE, _MOST_PRICE)
                for number, some in self._by_model(mine):
                    model = self._model(number, mine[some])
                    if isinstance(model, Relaxed):
                        answer[some] = model.crawls_worth(prices[some], self.interval)
                yield None

        blockwise(self.n, sweep)
        return found

    def _by_model(self, pages: Integers) -> Iterator[tuple[int, slice]]:
        """Yield the number of each model that has some of the pages, and where these are."""
        first = int(np.searchsorted(self.starts, pages[0], side="right")) - 1
        last = int(np.searchsorted(self.starts, pages[-1], side="right"))
        cuts = np.searchsorted(pages, self.starts[first : last + 1]).tolist()
        for number, start, stop in zip(range(first, last), cuts[:-1], cuts[1:], strict=True):
            if start < stop:
                yield number, slice(start, stop)

    def _model(self, number: int, pages: Integers) -> UpdateModel:
        """Return a model of these pages, all of model `number`; one of a single page takes crawls of any shape as it is."""
        model = self.models[number]
        return model.part(pages - self.starts[number]) if len(model) > 1 else model
