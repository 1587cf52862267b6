"""How far a sample is from a distribution. `scipy.stats` tells it too, and takes 1.7 s of each worker to be imported."""

from __future__ import annotations

import numpy as np
from scipy.special import kolmogorov


def distance_to_exponential(values: np.ndarray) -> float:
    """Return the largest difference (Kolmogorov and Smirnov) to the exponential distribution of mean 1."""
    chance = -np.expm1(-np.sort(values))
    n = len(chance)
    return float(max((np.arange(1, n + 1) / n - chance).max(), (chance - np.arange(n) / n).max()))


def is_likely(distance: float, n: int) -> bool:
    """Tell whether more than one sample in a hundred of n draws is as far away (Stephens 1970)."""
    return bool(kolmogorov((n**0.5 + 0.12 + 0.11 / n**0.5) * distance) > 0.01)
