"""Objective values of given revisit rates: how fresh is a plan?"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.optimization.problem import Floats
from optimal_frontier.optimization.response import caught_share, marginal_share
from optimal_frontier.validation import page_values

#: Stands for 0 where it is divided by: its inverse is a number, and so small a ratio leaves a copy fresh.
_LEAST: Final = 1e-300


def _checked(importance: ArrayLike, change_rate: ArrayLike, rates: ArrayLike) -> tuple[Floats, Floats, Floats]:
    weights = page_values("importance", importance, decades=150)
    return weights, page_values("change_rate", change_rate, weights.size, decades=150), page_values("rates", rates, weights.size)


def freshness_poisson(importance: ArrayLike, change_rate: ArrayLike, rates: ArrayLike) -> float:
    """Freshness under memoryless visits.

    Parameters
    ----------
    importance, change_rate, rates : array_like (n,)
        Weight of each page, its changes per unit of time, and its visits per unit of time.

    Returns
    -------
    float
        ``sum importance x rate / (rate + change_rate)``; a page that never changes counts fully, any other with rate 0 counts 0.

    References
    ----------
    Azar et al. 2018, eq. 5.

    Examples
    --------
    >>> freshness_poisson([1.0, 2.0], [1.0, 3.0], [1.0, 1.0])
    1.0
    """
    weights, changes, visits = _checked(importance, change_rate, rates)
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.divide(changes, visits, out=np.where(changes > 0, np.inf, 0.0), where=visits > 0)
    return float(np.sum(weights / (1 + ratio)))


def freshness_periodic(importance: ArrayLike, change_rate: ArrayLike, rates: ArrayLike) -> float:
    """Freshness under evenly spaced visits.

    Parameters
    ----------
    importance, change_rate, rates : array_like (n,)
        Weight of each page, its changes per unit of time, and its visits per unit of time.

    Returns
    -------
    float
        ``sum importance x (rate / change_rate) (1 - exp(-change_rate / rate))``; a page that never changes counts fully, any other with
        rate 0 counts 0.

    References
    ----------
    Azar et al. 2018, eq. 6; Cho and Garcia-Molina 2003, fixed-order policy.

    Examples
    --------
    >>> round(freshness_periodic([1.0], [1.0], [1.0]), 6)
    0.632121
    """
    weights, changes, visits = _checked(importance, change_rate, rates)
    return float(np.sum(weights * fresh_share(changes, visits)))


def fresh_share(change_rate: Floats, rates: Floats) -> Floats:
    """Share of time in which the copy of each page is fresh under evenly spaced visits; arguments, (n,), are not checked."""
    with np.errstate(over="ignore"):
        ratio = np.maximum(change_rate / np.maximum(rates, _LEAST), _LEAST)
    return np.asarray(caught_share(ratio) / ratio)


def changes_periodic(importance: ArrayLike, change_rate: ArrayLike, rates: ArrayLike) -> float:
    """Changes seen per unit of time under evenly spaced visits (several changes between two visits are seen as one).

    Parameters
    ----------
    importance, change_rate, rates : array_like (n,)
        Weight of each page, its changes per unit of time, and its visits per unit of time.

    Returns
    -------
    float
        ``sum importance x rate (1 - exp(-change_rate / rate))``.

    References
    ----------
    crawlfrontier, *Optimal revisiting algorithm*, target function T.

    Examples
    --------
    >>> round(changes_periodic([1.0, 5.0], [5.0, 1.0], [0.0, 1.0]), 6)
    3.160603
    """
    weights, changes, visits = _checked(importance, change_rate, rates)
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.divide(changes, visits, out=np.zeros_like(visits), where=visits > 0)
    return float(np.sum(weights * (visits * caught_share(ratio))))


def marginal_values(importance: Floats | float, change_rate: Floats | float, rates: Floats | float, objective: str, policy: str) -> Floats:
    """Return what one more visit per unit of time is worth to each page for its changes: the derivative of the objective by its rate.

    At the optimum that is the price of each page between its bounds. At rate 0 it is largest: importance / change_rate, or importance.

    Parameters
    ----------
    importance, change_rate, rates : ndarray (n,), or numbers
        Weight of each page, its changes per unit of time, and its visits per unit of time; unchecked, as planners ask often.
    objective, policy : str
        As in `OptimalSolver`; memoryless visits (``poisson``) are for freshness alone.

    References
    ----------
    Azar et al. 2018, eq. 6 and 5, differentiated.

    Examples
    --------
    >>> marginal_values(np.array([2.0, 2.0]), np.array([4.0, 4.0]), np.array([0.0, 4.0]), "freshness", "periodic").round(4)
    array([0.5   , 0.1321])
    """
    changes, weights = np.atleast_1d(np.asarray(change_rate, float)), np.asarray(importance, float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if policy == "poisson":
            value = weights * (changes / (rates + changes)) / (rates + changes)
        else:
            value = (weights / changes if objective == "freshness" else weights) * marginal_share(changes / rates)
    found: Floats = np.where(changes > 0, value, 0.0)
    return found
