"""Figure 2 of "Learning to crawl": how far off moment matching and maximum likelihood are, and what Lemma 3 says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.estimation import mle_rate
from optimal_frontier.papers.upadhyay.moments import moment_confidence, moment_rate
from optimal_frontier.simulation.ragged import Floats

#: Change rates and visits per unit of time of the panels, and numbers of visits. The copy of the paper at hand has lost its own.
CHANGE_RATES: Final = (0.25, 0.5, 0.75)
VISIT_RATES: Final = (0.5, 1.0)
VISITS: Final = (10, 20, 50, 100, 200, 500, 1000)
#: Bounds on the change rate that the estimators know, and the probability with which the bound may fail.
LOWER: Final = 0.1
UPPER: Final = 1.0
DELTA: Final = 0.1


@dataclass(frozen=True)
class EstimationError:
    """Errors of estimates after so many visits to one page, over simulations.

    Attributes
    ----------
    change_rate, visit_rate : float
        Of the page and of the memoryless visits, per unit of time.
    visits : int
        How many.
    moment, likelihood, bound : tuple of float
        Quartiles of |estimate - rate| of `moment_rate` and `mle_rate`, and of `moment_confidence`, which depends on the times of visits.
    covered : float
        Share of simulations in which the bound holds for moment matching.
    """

    change_rate: float
    visit_rate: float
    visits: int
    moment: tuple[float, float, float]
    likelihood: tuple[float, float, float]
    bound: tuple[float, float, float]
    covered: float


def upadhyay_figure_2(
    simulations: int = 500,
    seed: int = 0,
    change_rates: Sequence[float] = CHANGE_RATES,
    visit_rates: Sequence[float] = VISIT_RATES,
    visits: Sequence[int] = VISITS,
) -> Iterator[EstimationError]:
    """Measure the figure, one point after the other.

    Parameters
    ----------
    simulations : int
        Histories per point.
    seed : int
        Of visits and changes.
    change_rates, visit_rates : sequence of float
        One panel for each pair.
    visits : sequence of int
        Points of a panel.

    Yields
    ------
    EstimationError
        Panel by panel.

    References
    ----------
    U. Upadhyay et al., "Learning to crawl", AAAI 2020, section 6.1, Lemma 3.

    Examples
    --------
    >>> for point in upadhyay_figure_2(200, change_rates=[0.5], visit_rates=[1.0], visits=[50, 200]):
    ...     print(point.visits, round(point.moment[1], 2), round(point.likelihood[1], 2), round(point.bound[1], 2), point.covered)
    50 0.09 0.09 0.69 1.0
    200 0.04 0.04 0.35 1.0
    """
    rng = np.random.default_rng(seed)
    for visit_rate in visit_rates:
        for change_rate in change_rates:
            for count in visits:
                intervals = rng.exponential(1.0 / visit_rate, simulations * count)
                changed = rng.random(len(intervals)) < -np.expm1(-change_rate * intervals)
                counts = np.full(simulations, count)
                moment = np.abs(moment_rate(intervals, changed, LOWER, UPPER, counts=counts) - change_rate)
                likelihood = np.abs(mle_rate(intervals, changed, LOWER, UPPER, counts=counts) - change_rate)
                bound = moment_confidence(intervals, UPPER, DELTA, counts)
                covered = float(np.mean(moment <= bound))
                yield EstimationError(
                    change_rate, visit_rate, count, _quartiles(moment), _quartiles(likelihood), _quartiles(bound), covered
                )


def _quartiles(values: Floats) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return low, middle, high
