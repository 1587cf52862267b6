"""The policies of Azar's figure 1: how a bandwidth is shared out among pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from optimal_frontier.optimization import solve_periodic, solve_poisson
from optimal_frontier.simulation.azar_pages import Floats, Pages

#: Pages and bandwidth (visits per unit of time) -> visits per unit of time of each page.
RatePolicy = Callable[[Pages, float], Floats]


def _algorithm_2(pages: Pages, bandwidth: float) -> Floats:
    return solve_poisson(pages.importance, pages.change_rate, bandwidth).rates


def _eq_6(pages: Pages, bandwidth: float) -> Floats:
    return solve_periodic(pages.importance, pages.change_rate, bandwidth).rates


def _change_rate_directed(pages: Pages, bandwidth: float) -> Floats:
    return solve_periodic(np.ones(len(pages)), pages.change_rate, bandwidth).rates


def _utility_proportional(pages: Pages, bandwidth: float) -> Floats:
    return pages.importance * (bandwidth / float(pages.importance.sum()))


def _uniform(pages: Pages, bandwidth: float) -> Floats:
    return np.full(len(pages), bandwidth / len(pages))


#: The figure's policies by name. ``algorithm-2``: best memoryless rates. ``eq-6``: best evenly spaced rates, which the paper only has as
#: the optimum. ``change-rate``: Cho and Garcia-Molina's, the best rates were all pages equally important. ``utility``: in
#: proportion to importance. ``uniform``: the same for every page.
POLICIES: Final[Mapping[str, RatePolicy]] = MappingProxyType(
    {
        "algorithm-2": _algorithm_2,
        "eq-6": _eq_6,
        "change-rate": _change_rate_directed,
        "utility": _utility_proportional,
        "uniform": _uniform,
    }
)
