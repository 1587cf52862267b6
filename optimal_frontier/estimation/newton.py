"""Newton's method for many pages at once, each with an equation of its own: all of them falling, convex, and started below the root.

Notes
-----
The tangent to a convex curve runs below it, so from below the root Newton's method never passes it, and needs no bracket. Pages that
have arrived are left out of the next step.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from optimal_frontier.errors import ConvergenceError
from optimal_frontier.estimation.histories import Bits, Floats

#: The last step, relatively. Newton squares it, times ten at most.
_LAST_STEP = 1e-9
_MAX_STEPS = 200


class Equations(Protocol):
    """One equation for the change rate of each page, the left side falling and convex, the right side 0."""

    def step(self, rates: Floats) -> Floats:
        """Newton's step from each rate."""

    def only(self, keep: Bits) -> Self:
        """The equations of the pages where `keep` is true."""


def solve_newton(equations: Equations, start: Floats) -> Floats:
    """Solve the equations from rates that are positive and not above the roots.

    Raises
    ------
    ConvergenceError
        If one is not solved after 200 steps.
    """
    rates = start.copy()
    active = np.arange(rates.size)
    with np.errstate(under="ignore"):
        for _ in range(_MAX_STEPS):
            if active.size == 0:
                return rates
            step = equations.step(rates[active])
            going = np.abs(step) > _LAST_STEP * rates[active]
            rates[active] += step
            equations, active = equations.only(going), active[going]
    raise ConvergenceError(f"the equations of {active.size} pages are not solved after {_MAX_STEPS} steps")
