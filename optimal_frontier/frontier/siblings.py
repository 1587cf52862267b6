"""Priors of a stored crawl: what its pages have taught of those without a bit, by pattern of their URLs."""

from __future__ import annotations

import numpy as np

from optimal_frontier.estimation.sibling_priors import SiblingPriors, sibling_priors
from optimal_frontier.state.columns import ACTIVE, PRIOR


def learned_priors(page: np.ndarray, seen: np.ndarray, default_time: float) -> SiblingPriors:
    """Fit the priors of all patterns.

    Parameters
    ----------
    page, seen : ndarray, shape (slots,)
        Columns of all slots.
    default_time : float
        Time of the default prior, seconds: pages / budget.
    """
    # Pages that were not visited yet teach nothing, but say of which host their pattern is.
    active = np.flatnonzero(page["state"] == ACTIVE)
    return sibling_priors(seen["shape"][active], seen["time"][active], page["host"][active], page["pattern"][active], default_time)


def with_prior(page: np.ndarray, seen: np.ndarray, priors: SiblingPriors) -> np.ndarray:
    """Return a copy of the column group *seen* with the prior of its pattern where a page has no bit."""
    believed = seen.copy()
    new = np.flatnonzero(~(seen["shape"] > 0))
    believed["shape"][new], believed["time"][new] = priors.shape[page["pattern"][new]], priors.time[page["pattern"][new]]
    return believed


def prior_column(priors: SiblingPriors) -> np.ndarray:
    """Return the rows of the column group *prior*; zeros while nothing was learned, so that the default of the day holds."""
    rows = np.zeros(len(priors.shape), PRIOR)
    if priors.siblings.any():
        rows["shape"], rows["time"], rows["siblings"] = priors.shape, priors.time, priors.siblings
    return rows
