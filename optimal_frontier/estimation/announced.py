"""The step of the filter for a visit that an announcement caused.

Notes
-----
Its time was chosen by the change, so the bit is no fair sample of the page, nor is the time since the change. Let the source announce all
changes, each soon after it. Then nothing changed between the last visit and the change that was announced, and the likelihood of a visit
after an interval I that finds it changed is x e^(-Ix): the posterior is Gamma(a + 1, b + I), exactly. An unchanged page did not change:
Gamma(a, b + I), as at any visit. Taken for an ordinary visit, 1 - e^(-Ix) says "one change or more, at any time in I" and makes the rate
too high without bound, as all intervals end with a change.

A source that announces only the share r of the changes leaves the others to the page's own visits, and each announced visit takes such
changes in without a count. The rate comes out between r x (where the page's own visits are rarer than its changes) and x: too low by the
factor r at most (``docs/maths.md``).
"""

from __future__ import annotations


def update_announced(shape: float, time: float, interval: float, changed: bool) -> tuple[float, float]:
    """Return shape and time of the posterior after a visit that was announced.

    Parameters
    ----------
    shape, time : float
        Posterior before it, > 0; time in seconds.
    interval : float
        Seconds since the last successful visit, > 0.
    changed : bool
        The bit.

    Examples
    --------
    >>> update_announced(2.0, 100.0, 50.0, True), update_announced(2.0, 100.0, 50.0, False)
    ((3.0, 150.0), (2.0, 150.0))
    """
    return shape + changed, time + interval
