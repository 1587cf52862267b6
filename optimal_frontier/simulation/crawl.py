"""The visits of a simulated crawl, and those that it begins with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised


@dataclass(frozen=True)
class Visits:
    """Visits in the order in which they were made.

    Attributes
    ----------
    pages : ndarray of int (m,)
        Which page.
    times : ndarray (m,)
        When.
    """

    pages: Ints
    times: Floats


def first_visits(world: Realised, slots: Floats) -> Visits:
    """Return the visits that every policy begins with, in the first slots: to pages that are there from the start."""
    order = np.argsort(-world.importance, kind="stable")
    order = order[world.arrival[order] <= 0.0][: len(slots)]
    return Visits(order, slots[: len(order)])
