"""One fetch per time slot: Azar's Problem 1 and its exact solution, Algorithm 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.poisson import Method, slopes_and_depths
from optimal_frontier.optimization.problem import DECADES, PriceSearch, check_prices
from optimal_frontier.optimization.solution import Solution
from optimal_frontier.optimization.sweeps import inner
from optimal_frontier.optimization.water_level import level_by_sorting, level_without_sorting
from optimal_frontier.validation import check_values, choice, page_array


def solve_discrete(importance: ArrayLike, change_probability: ArrayLike, *, method: Method = "sort-free") -> Solution:
    """Best probabilities of fetching each page in a time slot.

    Maximises ``sum importance x p / (p + d - p d)`` subject to ``sum p = 1``, with ``d`` the probability that a page changes in a slot.

    Parameters
    ----------
    importance : array_like (n,)
        Weight of each page, >= 0.
    change_probability : array_like (n,)
        Per slot, in [0, 1].
    method : {"sort-free", "sort"}
        "sort" is Algorithm 1 as printed; "sort-free" reaches the same rates in a few linear passes.

    Returns
    -------
    Solution
        `rates` are visits per slot and sum to 1 (to 0, with `unused` 1, if no page is worth a visit).

    Raises
    ------
    InvalidProblemError
        An argument is unusable; the message names it and the first offending index.

    Notes
    -----
    With ``m`` the multiplier, ``p = (sqrt(importance d / m) - d) / (1 - d)`` where positive (eq. 9). The paper assumes ``d < 1``. A page
    that changes in every slot is worth its importance per fetch, however often it is fetched: such pages put a floor under the
    multiplier, and the most important of them (equally, if there are several) take what the others leave at that price.

    References
    ----------
    Azar et al. 2018, Problem 1, Algorithm 1, eqs. 3, 9 and 10.

    Examples
    --------
    >>> solve_discrete([1.0, 1.0, 1.0], [0.1, 0.1, 1.0]).rates.round(3)
    array([0.24 , 0.24 , 0.519])
    """
    weights = page_array("importance", importance)
    changes = page_array("change_probability", change_probability, weights.size)
    ranges = check_values("importance", weights, decades=DECADES), check_values("change_probability", changes, decades=DECADES)
    if changes.size and float(changes.max()) > 1:
        index = int(np.argmax(changes > 1))
        raise InvalidProblemError(f"change_probability[{index}] is {changes[index]}; expected a probability, at most 1")
    check_prices(
        weights, changes, 1.0, ranges=ranges, search=PriceSearch(by_share=False), names=("importance", "change_probability", "one fetch")
    )
    choice("method", method, ("sort-free", "sort"))
    rates = np.zeros(weights.size)
    steady = inner(weights, changes == 0)
    always = changes == 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        best_always = float(weights.max(where=always, initial=0.0))
        live = np.flatnonzero((weights > 0) & (changes > 0) & ~always)
        remaining = 1.0
        residual = 0.0
        multiplier = best_always
        objective = steady
        if live.size:
            weight, change = weights[live], changes[live]
            slope, depth = slopes_and_depths(weight, change)
            slope /= 1 - change
            shallowest = float(depth.min())
            depth -= shallowest
            level = (level_without_sorting if method == "sort-free" else level_by_sorting)(slope, depth, 1.0)
            highest = best_always**-0.5 - shallowest if best_always else np.inf
            shares = slope * np.maximum(min(level, highest) - depth, 0.0)
            if level <= highest:
                shares /= shares.sum()
                multiplier = (level + shallowest) ** -2
                remaining = 0.0
            else:
                remaining = 1.0 - float(shares.sum())
            rates[live] = shares
            stale = shares + change * (1 - shares)
            objective += inner(weight, shares / stale)
            visited = shares > 0
            if visited.any():
                residual = float(np.abs(weight * change / stale**2 / multiplier - 1)[visited].max())
        if remaining and best_always:
            winners = always & (weights == best_always)
            rates[winners] = remaining / np.count_nonzero(winners)
            objective += best_always * remaining
            remaining = 0.0
    return Solution(rates, objective, multiplier, remaining, residual)
