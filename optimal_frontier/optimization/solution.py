"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Optimal revisit rates, and how good they are.

    Attributes
    ----------
    rates : ndarray (n,)
        Visits per unit of time of each page (per slot for `solve_discrete`).
    objective : float
        Sum of importance x term over the pages, not normalised.
    multiplier : float
        d objective / d bandwidth: what one more unit of bandwidth would add per unit of time.
    unused : float
        Bandwidth that the maxima leave, in the unit of the budget.
    kkt_residual : float
        Largest ``|marginal / multiplier - 1|`` over the pages strictly between their bounds (0 if there are none), evaluated without
        cancellation at the returned rates; with costs and host limits, ``marginal / (multiplier x cost + price of the host)``.
    """

    rates: NDArray[np.float64]
    objective: float
    multiplier: float
    unused: float
    kkt_residual: float
