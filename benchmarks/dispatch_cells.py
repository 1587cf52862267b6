"""The cells of `price_against_first_edition.py`: worlds, what befalls them, and what a crawl of them is worth at best.

Used with the package of either edition: it takes nothing from it but worlds, slots, the exact freshness and the solver.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.simulation.bandwidth import BandwidthChange, slot_times
from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.worlds import Realised, synthetic_world

try:
    from optimal_frontier.simulation.measuring import freshness_by_time
except ImportError:  # the first edition
    from optimal_frontier.simulation.simulating import freshness_by_time  # type: ignore[attr-defined, no-redef]

#: Length of a crawl, and from when on it is measured: from the change of the bandwidth on, transient included (days).
HORIZON, EVENT = 200.0, 110.0
#: An outage: nine days.
OUTAGE = BandwidthChange(1e-9, EVENT + 30.0, EVENT + 39.0)
#: Time between two plans, rounds.
REPLAN_ROUNDS = 0.4
HOSTS, HOST_SHARE = 20, 1.0 / 12.0
PINNED_DAYS = 2.0
OVERLOAD = 1.5
CELLS = ("stationary", "half", "double", "outage", "hosts", "pins", "overload", "jumping")
WORLDS = ("A", "B", "C")
FLIGHTS = (1, 16)
#: Moments at which the optimum of jumping rates is found.
_MOMENTS = 12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One world of one seed, and what befalls it."""

    world: Realised
    slots: Floats
    replan: float
    bandwidth: BandwidthChange | None
    least: Floats
    most: Floats
    host: NDArray[np.int64] | None
    host_rate: Floats | None
    optimum: float
    is_overloaded: bool

    def fraction(self, visits: Visits) -> float:
        """Freshness from the event to the end, as a share of the best there is at the real bandwidth.

        Where minima exceed the budget there is nothing to optimise: all pages are to be visited alike. There it is the visits of the page
        that is visited least, as a share of even ones; an interval that begins or ends outside counts by its share inside.
        """
        if self.is_overloaded:
            even = len(self.world) / self.world.budget
            order = np.lexsort((visits.times, visits.pages))
            by_page = np.split(visits.times[order], np.searchsorted(visits.pages[order], np.arange(1, len(self.world))))
            return min(_rounds(times, even) for times in by_page) * even / (HORIZON - EVENT)
        found = freshness_by_time(self.world, visits, np.array([0.0, EVENT, HORIZON]))[1]
        return float(found) / self.optimum


def _rounds(times: Floats, even: float) -> float:
    """Return how many intervals between visits to a page lie between the event and the end; it is visited again an even one later."""
    ends = np.append(times, max(times[-1] + even, HORIZON)) if len(times) else np.array([HORIZON])
    at_event, at_end = np.interp([EVENT, HORIZON], ends, np.arange(len(ends)))
    return float(at_end - at_event)


def case(name: str, cell: str, seed: int, pages: int = 1000) -> Case:
    """Return a cell of the table for one seed."""
    world = synthetic_world(name, "jumping" if cell == "jumping" else "poisson", pages=pages).realise(HORIZON, seed)
    n, budget = len(world), world.budget
    change = {"half": BandwidthChange(0.5, EVENT), "double": BandwidthChange(2.0, EVENT), "outage": OUTAGE}.get(cell)
    least, most = np.zeros(n), np.full(n, np.inf)
    host = host_rate = None
    if cell == "hosts":
        sizes = 1.0 / np.arange(1, HOSTS + 1)
        host = np.random.default_rng([seed, 7]).choice(HOSTS, n, p=sizes / sizes.sum()).astype(np.int64)
        host_rate = np.full(HOSTS, HOST_SHARE * budget)
    if cell == "pins":
        pinned = np.random.default_rng([seed, 8]).choice(n, n // 10, replace=False)
        least[pinned] = most[pinned] = 1.0 / PINNED_DAYS
    if cell == "jumping":
        optimum = float(np.mean([_best(world, budget, at=at) for at in np.linspace(EVENT, HORIZON, _MOMENTS)]))
    elif cell == "overload":
        least[:] = OVERLOAD * budget / n
        optimum = 1.0
    elif cell in ("half", "double"):
        optimum = replace(world, budget=budget * (0.5 if cell == "half" else 2.0)).optimum
    else:
        bounds: dict[str, Any] = {} if cell != "pins" else {"min_rate": least, "max_rate": most}
        bounds |= {} if host is None else {"host": host, "host_max_rate": host_rate}
        optimum = _best(world, budget, **bounds)
    slots, replan = slot_times(budget, HORIZON, change), REPLAN_ROUNDS * n / budget
    return Case(world, slots, replan, change, least, most, host, host_rate, optimum, cell == "overload")


def _best(world: Realised, budget: float, at: float = 0.0, **bounds: Any) -> float:
    return solve_periodic(world.importance, world.known_rates(at), budget, **bounds).objective / float(world.importance.sum())


def chosen_cells() -> tuple[argparse.ArgumentParser, Any]:
    """Return a parser of the options that say which cells are run, and what walks through them, seed by seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--cells", nargs="+", default=CELLS, choices=CELLS)
    parser.add_argument("--flights", nargs="+", type=int, default=FLIGHTS)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--known", action="store_true", help="Change rates are known.")

    def walk(options: argparse.Namespace) -> Iterator[tuple[int, str, str, Case]]:
        for seed in range(options.first_seed, options.seeds):
            for world in options.worlds:
                for cell in options.cells:
                    yield seed, world, cell, case(world, cell, seed)

    return parser, walk
