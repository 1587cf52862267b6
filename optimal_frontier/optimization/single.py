"""The optimal revisit rate of one page at a given price, in plain floats: what a new page gets between two plans.

`periodic_rates_at` answers the same for arrays; a test holds the two equal. On one page numpy's overhead is most of its time.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final, Literal

from optimal_frontier.validation import choice, scalar

_INFINITE: Final = math.inf
_OBJECTIVES: Final = ("freshness", "changes")


def periodic_rate_at(
    importance: float,
    change_rate: float,
    multiplier: float,
    objective: Literal["freshness", "changes"] = "freshness",
    *,
    min_rate: float = 0.0,
    max_rate: float = math.inf,
) -> float:
    """Return the revisit rate at which one more visit of the page is worth just ``multiplier``.

    Parameters
    ----------
    importance, change_rate : float
        Weight above 0 and change rate per second, 0 or more.
    multiplier : float
        Objective per fetch per second that a visit must be worth, above 0.
    objective : {"freshness", "changes"}
        Azar et al. 2018, eq. 6, or crawlfrontier's T.
    min_rate, max_rate : float
        Bounds, visits per second.

    Returns
    -------
    float
        Visits per second.

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it.

    Notes
    -----
    With changes per visit ``r = change_rate / rate`` the marginal of either objective is a multiple of ``1 - (1 + r) exp(-r)``, the
    distribution function of Gamma(2): r is its quantile.

    Examples
    --------
    >>> round(periodic_rate_at(1.0, 0.1, 2.0), 6)
    0.121302
    """
    if not (
        type(importance) is type(change_rate) is type(multiplier) is type(min_rate) is type(max_rate) is float
        and 0.0 <= importance < _INFINITE
        and 0.0 <= change_rate < _INFINITE
        and 0.0 < multiplier < _INFINITE
        and 0.0 <= min_rate < _INFINITE
        and max_rate >= 0.0
    ):
        importance, change_rate, multiplier, min_rate, max_rate = _checked(importance, change_rate, multiplier, min_rate, max_rate)
    if not (type(objective) is str and objective in _OBJECTIVES):
        choice("objective", objective, _OBJECTIVES)
    worth = importance / change_rate if objective == "freshness" and change_rate > 0 else importance
    if change_rate <= 0 or multiplier >= worth:
        return min(max(0.0, min_rate), max_rate)
    changes = changes_per_visit(multiplier / worth)
    rate = change_rate / changes if changes > 0 else _INFINITE
    return min(max(rate, min_rate), max_rate)


def _checked(
    importance: float, change_rate: float, multiplier: float, min_rate: float, max_rate: float
) -> tuple[float, float, float, float, float]:
    """Return the arguments as floats; the caller sees at once whether they are that already, and usable."""
    return (
        scalar("importance", importance),
        scalar("change_rate", change_rate),
        scalar("multiplier", multiplier, positive=True),
        scalar("min_rate", min_rate),
        scalar("max_rate", max_rate, infinite=True),
    )


def changes_per_visit(share: float) -> float:
    """Return the changes between two visits of a page whose price is this share, in (0, 1), of its value; 0.6 us, trusts its input.

    The quantile of Gamma(2): `response.changes_between_visits` answers the same for arrays.
    """
    return float(_gamma_quantile()(2.0, share))


@cache
def _gamma_quantile() -> Any:
    """scipy's, for floats: a third of the time of the one for arrays. Imported at its first use: it takes 0.2 s."""
    from scipy.special import cython_special

    return cython_special.gammaincinv
