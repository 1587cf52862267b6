"""Deadlines of stored pages: the columns put into the formula of `scheduling.credit`."""

from __future__ import annotations

import numpy as np

from optimal_frontier.scheduling import backoff, deadline


def deadlines(page: np.ndarray, seen: np.ndarray, plan: np.ndarray) -> np.ndarray:
    """Return when pages are due, seconds since the epoch; nan before the first attempt, inf for never.

    A page that never succeeded, or was gone at the last visit, is tried again after its backoff, whatever its rate.
    """
    due = deadline(
        seen["carry"],
        seen["settled"],
        plan["rate"],
        plan["base_time"],
        plan["base_credit"],
        seen["last_attempt"],
        page["gap"],
        seen["failures"],
    )
    again = (seen["visits"] == 0) | (seen["gone"] > 0)
    due = np.where(again, seen["last_attempt"] + np.maximum(page["gap"], backoff(seen["failures"])), due)
    return np.where(seen["attempts"] > 0, due, np.nan)
