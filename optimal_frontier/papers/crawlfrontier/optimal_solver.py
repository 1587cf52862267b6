"""crawlfrontier's optimal revisiting scheduler: its classes, its clusters, and the exact optimum behind the same interface."""

from __future__ import annotations

from math import ceil, floor, log2
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.periodic import solve_periodic
from optimal_frontier.optimization.problem import DECADES, Floats, PriceSearch, check_prices
from optimal_frontier.optimization.response import caught_share, changes_between_visits
from optimal_frontier.papers.crawlfrontier.golden_section import golden_section_search
from optimal_frontier.validation import check_values, choice, page_array, scalar, signed_scalar, whole_number

Spacing = Literal["equal", "log"]
#: Octaves below 1 that "log" clusters cover: twelve decades. Lower values go to the last cluster.
_OCTAVES = 40


class WCluster:
    """Sums of the change rates of pages of about the same value.

    Parameters
    ----------
    n_clusters : int
    spacing : {"equal", "log"}
        "equal" splits (0, 1] into equal parts, as the document does: with 100 clusters every value below 0.01 counts as 0.005. "log"
        splits the twelve decades below 1 into equal ratios, for weights that are spread widely.

    Attributes
    ----------
    value : ndarray (n_clusters,)
        The value that stands for each cluster, W: the arithmetic ("equal") or geometric ("log") middle.
    rate : ndarray (n_clusters,)
        Sum of the change rates of its pages.
    count : ndarray (n_clusters,)
        Number of its pages.

    Notes
    -----
    `add` and `delete` are O(1). In the document's formulas for W and I, N must read K, the number of clusters.
    """

    def __init__(self, n_clusters: int = 100, spacing: Spacing = "equal") -> None:
        self.n_clusters = n_clusters = whole_number("n_clusters", n_clusters, 1)
        choice("spacing", spacing, ("equal", "log"))
        self.spacing = spacing
        middle = (np.arange(n_clusters) + 0.5) / n_clusters
        self.value: Floats = middle if spacing == "equal" else 2.0 ** (-_OCTAVES * (1 - middle))
        self.rate: Floats = np.zeros(n_clusters)
        self.count = np.zeros(n_clusters, np.int64)

    def add(self, page_value: float, page_rate: float) -> None:
        """Add a page to its cluster."""
        self._change(page_value, page_rate, 1)

    def delete(self, page_value: float, page_rate: float) -> None:
        """Delete a page from its cluster; the arguments are those it was added with."""
        self._change(page_value, page_rate, -1)

    @staticmethod
    def clamp(w: float) -> float:
        """Make sure that 0 <= w <= 1."""
        return min(max(signed_scalar("w", w, infinite=True), 0.0), 1.0)

    def cluster_index(self, w: float) -> int:
        """Index of the cluster of a page value: ``k`` for ``k / K < w <= (k + 1) / K`` with equal spacing; values are clamped first."""
        w = self.clamp(w)
        if self.spacing == "equal":
            index = ceil(w * self.n_clusters) - 1
        else:
            index = floor(self.n_clusters * (1 + log2(w) / _OCTAVES)) if w > 0 else 0
        return min(max(index, 0), self.n_clusters - 1)

    def _change(self, page_value: float, page_rate: float, sign: int) -> None:
        rate = scalar("page_rate", page_rate, decades=DECADES)
        index = self.cluster_index(scalar("page_value", page_value))
        if sign < 0 and self.count[index] == 0:
            raise InvalidProblemError(f"page_value is {page_value}: its cluster {index} has no pages to delete")
        self.count[index] += sign
        self.rate[index] = max(self.rate[index] + sign * rate, 0.0) if self.count[index] else 0.0


class OptimalSolver:
    """Visit frequencies that maximise the value of changes seen per unit of time.

    Parameters
    ----------
    verbose : bool
        Print convergence information.
    clusters : WCluster, optional
        Without it (the default) `solve` returns the exact optimum. With it, the price comes from the golden section search over these
        clusters, as in the document; they must hold the pages (`WCluster.add`), and follow them as they come and go. On Pareto values
        scaled into (0, 1], 100 "equal" clusters reached 0.23 to 1.0 of the optimum depending on the scale, 100 "log" clusters 0.998.

    Attributes
    ----------
    alpha : float
        Lagrange multiplier of the last solution, in the document's sign and scale: ``-n_pages x d T / d bandwidth``.

    References
    ----------
    crawlfrontier, *Optimal revisiting algorithm*, Implementation.

    Examples
    --------
    >>> OptimalSolver().solve([0.2, 1.0], [5.0, 1.0], 0.1, 2).round(3)
    array([0. , 0.2])
    """

    def __init__(self, verbose: bool = False, clusters: WCluster | None = None) -> None:
        if clusters is not None and not isinstance(clusters, WCluster):
            raise InvalidProblemError(f"clusters is a {type(clusters).__name__}; expected a WCluster")
        self.verbose = verbose
        self.clusters = clusters
        self.alpha = 0.0

    def solve(self, values: ArrayLike, rates: ArrayLike, frequency: float, n_pages: int) -> Floats:
        """Get frequencies that maximise page value per unit of time.

        Parameters
        ----------
        values : array_like (n,)
            Page values, >= 0 (with clusters: clamped to 1, as in the document).
        rates : array_like (n,)
            Page change rates, >= 0.
        frequency : float
            Mean visits per page and unit of time.
        n_pages : int
            Number of pages that share the bandwidth, ``n_pages >= n``.

        Returns
        -------
        ndarray (n,)
            Visits per unit of time; they sum to ``n_pages x frequency`` (if any page is worth a visit).

        Raises
        ------
        InvalidProblemError
            An argument is unusable; the message names it and the first offending index.
        """
        weights = page_array("values", values)
        changes = page_array("rates", rates, weights.size)
        ranges = check_values("values", weights, decades=DECADES), check_values("rates", changes, decades=DECADES)
        n_pages = whole_number("n_pages", n_pages, weights.size)
        bandwidth = scalar("frequency", frequency, decades=DECADES) * n_pages
        check_prices(
            weights, changes, bandwidth, ranges=ranges, search=PriceSearch(of_freshness=False), names=("values", "rates", "frequency")
        )
        if self.clusters is None:
            solution = solve_periodic(weights, changes, bandwidth, "changes")
            self.alpha = -n_pages * solution.multiplier
            if self.verbose:
                print(f"exact: multiplier {solution.multiplier!r}, KKT residual {solution.kkt_residual:.1e}")
            return solution.rates
        held = int(self.clusters.count.sum())
        if held < weights.size:
            raise InvalidProblemError(f"clusters hold {held} pages, but values has {weights.size}: add every page first (WCluster.add)")
        return self._solve_clustered(self.clusters, weights, changes, bandwidth, n_pages)

    def _solve_clustered(self, clusters: WCluster, weights: Floats, changes: Floats, bandwidth: float, n_pages: int) -> Floats:
        used = clusters.rate > 0
        value, rate = clusters.value[used], clusters.rate[used]
        frequencies = np.zeros(weights.size)
        if not value.size or bandwidth == 0.0:
            return frequencies

        def dual(log_price: float) -> float:
            price = np.exp(log_price)
            visits = rate * _visits_per_change(price / value)
            ratio = np.divide(rate, visits, out=np.zeros_like(rate), where=visits > 0)
            return float(np.sum(visits * (value * caught_share(ratio) - price)) + price * bandwidth)

        # searched in log(-alpha): a linear scale finds no small price to more than eps
        top = float(np.log(value.max()))
        found = golden_section_search(dual, top - 60.0, top, 1e-9, self.verbose)
        price = float(np.exp(found[0][1] if found else top + np.log1p(-1e-12)))
        self.alpha = -n_pages * price
        places = np.array([clusters.cluster_index(w) for w in weights], np.intp)
        frequencies = changes * _visits_per_change(price / clusters.value)[places]
        total = float(frequencies.sum())
        return frequencies * (bandwidth / total) if total > 0 else frequencies


def _visits_per_change(share: Floats) -> Floats:
    """crawlfrontier's g: visits per change at price / value."""
    worth = share < 1
    odds = np.divide(share, 1 - share, out=np.ones_like(share), where=worth)
    result: Floats = np.where(worth, 1 / changes_between_visits(np.maximum(odds, 1e-300)), 0.0)
    return result
