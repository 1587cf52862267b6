"""The synthetic pages of Azar's experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError

Floats = NDArray[np.float64]
#: How importance is distributed over pages.
Utilities = Literal["zipf", "uniform"]
UTILITIES: Final[tuple[Utilities, ...]] = get_args(Utilities)
#: Zipf utilities are 1, 2, ... up to this, with probabilities as 1 / value^exponent.
ZIPF_RANGE: Final = 10_000
ZIPF_EXPONENT: Final = 2.0


@dataclass(frozen=True)
class Pages:
    """Pages that change at the times of Poisson processes.

    Attributes
    ----------
    importance : ndarray (n,)
        What an up-to-date copy of each page is worth.
    change_rate : ndarray (n,)
        Changes of each page per unit of time.
    """

    importance: Floats
    change_rate: Floats

    def __len__(self) -> int:
        return len(self.importance)


def azar_pages(n: int, utilities: Utilities, seed: int) -> Pages:
    """Return pages as in Azar's figure 1.

    Parameters
    ----------
    n : int
        Number of pages; 1,000 in the paper.
    utilities : {"zipf", "uniform"}
        Importance: Zipf with exponent 2 on 1 to 10,000, or uniform on (0, 1]. Change rates are uniform on (0, 1], independently.
    seed : int
        The same seed gives the same change rates with either kind of utilities.

    Returns
    -------
    Pages

    References
    ----------
    Azar et al. 2018, caption of figure 1.

    Examples
    --------
    >>> pages = azar_pages(4, "zipf", seed=1)
    >>> pages.importance, pages.change_rate.round(3)
    (array([1., 1., 4., 1.]), array([0.488, 0.05 , 0.856, 0.051]))
    """
    if utilities not in UTILITIES:
        raise InvalidProblemError(f"utilities is {utilities!r}; expected {' or '.join(map(repr, UTILITIES))}")
    rng = np.random.default_rng(seed)
    change_rate = 1.0 - rng.random(n)  # never 0
    draws = rng.random(n)
    if utilities == "uniform":
        return Pages(1.0 - draws, change_rate)
    probabilities = np.arange(1.0, ZIPF_RANGE + 1) ** -ZIPF_EXPONENT
    cumulated = np.cumsum(probabilities / probabilities.sum())
    values = 1.0 + np.searchsorted(cumulated[:-1], draws, side="right")
    return Pages(values.astype(np.float64), change_rate)
