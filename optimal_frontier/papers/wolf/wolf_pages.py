"""The synthetic pages of Wolf et al.'s experiments: memoryless, heavy-tailed and quasi-deterministic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.papers.wolf.update_models.exponential import Exponential
from optimal_frontier.papers.wolf.update_models.model import UpdateModel
from optimal_frontier.papers.wolf.update_models.pareto import Pareto
from optimal_frontier.papers.wolf.update_models.quasi_deterministic import QuasiDeterministic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: The paper's number of pages, updates of a page on average in the scheduling interval, and the interval: one day.
PAGES: Final = 1_000_000
MEAN_RATE: Final = 1.5
INTERVAL: Final = 1.0
#: Kinds of pages, and their shares of all in the paper's mixture.
KINDS: Final = ("poisson", "pareto", "quasi-deterministic")
MIXTURE: Final = (0.6, 0.3, 0.1)
#: Shape of Pareto pages, between the paper's bounds for a heavy tail (0 and 2) and above 1, so that there is a mean. The paper names none.
SHAPE: Final = 1.5
#: Potential updates of quasi-deterministic pages a day: one of these numbers, more for a page that needs them for its rate, and at most
#: so many. The paper names none.
FEWEST_TIMES: Final = 1
USUAL_TIMES: Final = 5
MOST_TIMES: Final = 24
#: Halvings of the logarithm of a factor, to the last bit.
_HALVINGS: Final = 100


@dataclass(frozen=True)
class WolfPages:
    """Pages, kind after kind, quasi-deterministic ones with few potential updates first.

    Attributes
    ----------
    models : tuple of UpdateModel
        Each covers the next pages in a row.
    change_rate : ndarray (n,)
        Expected updates of each page in the interval.
    quasi_deterministic : int
        How many of the last pages are so.
    lot : ndarray of int (n,)
        A random order of the pages, in which they are served where whole numbers leave them all the same claim.
    """

    models: tuple[UpdateModel, ...]
    change_rate: Floats
    quasi_deterministic: int
    lot: Integers

    def __len__(self) -> int:
        return len(self.change_rate)

    def staleness(self, crawls: Integers) -> Floats:
        """Return A(x) of each page, (n,), in the paper's interval."""
        found = np.empty(len(self))
        start = 0
        for model in self.models:
            mine = slice(start, start + len(model))
            found[mine] = model.staleness(crawls[mine], INTERVAL)
            start = mine.stop
        return found


def wolf_pages(n: int, seed: int, *, shares: Sequence[float] = MIXTURE, skew: float = 0.0, shape: float = SHAPE) -> WolfPages:
    """Return pages as in the experiments.

    Parameters
    ----------
    n : int
        Number of pages; 1,000,000 in the paper.
    seed : int
        The same seed gives each page the same place among the rates, whatever `skew` and `shape`.
    shares : sequence of float
        Of Poisson, Pareto and quasi-deterministic pages; they sum to 1.
    skew : float
        The paper's Zipf-like parameter theta, 0 to 1: the page at rank i has a rate proportional to ``1 / i^(1 - theta)``, so that 0 is
        Zipf's law and 1 the same rate for all. Rates have mean 1.5.
    shape : float
        Of the Pareto pages, above 1; their scales follow from their rates.

    Returns
    -------
    WolfPages

    Raises
    ------
    InvalidProblemError
        An argument is unusable.

    Notes
    -----
    Kinds are dealt to ranks at random. A quasi-deterministic page has Q potential updates at times uniform on the interval, each of
    which occurs with probability rate / Q, and a copy that is fresh at time 0, as those of the other kinds are by eq. 1. Q goes
    through 1, ..., 5, and is the rate rounded up where that is more. More than 24 updates a day at set times are hard to imagine, while
    Zipf's law gives the first of a million pages 100,000: rates of quasi-deterministic pages are cut off at 24, and those below raised
    by one factor, so that they keep their sum. Pages with equally many times are one model.

    References
    ----------
    Wolf et al. 2002, section 5.

    Examples
    --------
    >>> pages = wolf_pages(1000, seed=1)
    >>> [type(model).__name__ for model in pages.models[:3]], len(pages.models[0]), pages.quasi_deterministic
    (['Exponential', 'Pareto', 'QuasiDeterministic'], 600, 100)
    >>> float(pages.change_rate.mean().round(9)), float(pages.change_rate[-100:].max())
    (1.5, 24.0)
    """
    _check(n, shares, skew)
    rng = np.random.default_rng(seed)
    ranks, lot = rng.permutation(n), rng.permutation(n)
    law = np.arange(1.0, n + 1.0) ** (skew - 1.0)
    rate = (law * (MEAN_RATE * n / law.sum()))[ranks]
    poisson, regular = round(shares[0] * n), n - round(shares[2] * n)
    models: list[UpdateModel] = []
    if poisson:
        models.append(Exponential(rate[:poisson]))
    if poisson < regular:
        models.append(Pareto.from_mean(1.0 / rate[poisson:regular], shape))
    if regular < n:
        rate[regular:], late = _quasi_deterministic(rate[regular:], rng)
        models += late
    return WolfPages(tuple(models), rate, n - regular, lot)


def capped(rates: Floats, most: float) -> Floats:
    """Return rates that have the same sum, if it can be so with none above `most`: the smaller ones times a factor, the others `most`.

    Examples
    --------
    >>> capped(np.array([10.0, 2.0, 1.0]), 7.0)
    array([7., 4., 2.])
    """
    if rates.max() <= most:
        return rates
    total = float(rates.sum())
    low, high = 0.0, float(np.log(most / rates.min()))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if np.minimum(rates * np.exp(middle), most).sum() < total:
            low = middle
        else:
            high = middle
    return np.asarray(np.minimum(rates * np.exp(high), most))


def _quasi_deterministic(rates: Floats, rng: np.random.Generator) -> tuple[Floats, list[UpdateModel]]:
    """Rates in the order of the models, and a model for each number of potential updates."""
    found = capped(rates, MOST_TIMES)
    usual = FEWEST_TIMES + np.arange(len(found)) % (USUAL_TIMES - FEWEST_TIMES + 1)
    times = np.maximum(usual, np.ceil(found)).astype(np.int64)
    order = np.argsort(times, kind="stable")
    found, times = found[order], times[order]
    models: list[UpdateModel] = []
    for count in np.unique(times).tolist():
        mine = found[times == count]
        at = np.sort(rng.random((len(mine), count)) * INTERVAL, axis=1)
        models.append(QuasiDeterministic(at, np.broadcast_to((mine / count)[:, None], at.shape)))
    return found, models


def _check(n: int, shares: Sequence[float], skew: float) -> None:
    if not n > 0:
        raise InvalidProblemError(f"n is {n!r}; expected a positive number of pages")
    if len(shares) != len(KINDS) or min(shares) < 0 or abs(sum(shares) - 1.0) > 1e-9:
        raise InvalidProblemError(f"shares is {shares!r}; expected {len(KINDS)} numbers, 0 or more, that sum to 1: {', '.join(KINDS)}")
    if not 0 <= skew <= 1:
        raise InvalidProblemError(f"skew is {skew!r}; expected a number from 0, Zipf's law, to 1, all alike")
