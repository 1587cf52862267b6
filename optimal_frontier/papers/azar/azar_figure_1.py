"""Azar's figure 1: how near to the optimum a schedule of slots comes, over bandwidths and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.papers.azar.azar_policies import POLICIES, RatePolicy
from optimal_frontier.papers.azar.cycle import cycle_freshness, cycle_slots
from optimal_frontier.papers.azar.edf import edf_schedule
from optimal_frontier.simulation.azar_pages import UTILITIES, Floats, Pages, Utilities, azar_pages

#: The paper's number of pages.
PAGES: Final = 1000
#: Bandwidths, visits per page and unit of time, in which a page changes half a time on average. The paper names none.
BANDWIDTHS: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
#: Slots of a cycle, per page, unless rare pages ask for more.
SLOTS_PER_PAGE: Final = 200
#: Name of what the policies are compared with.
OPTIMUM: Final = "optimum"
#: Share of the optimum that policies must reach everywhere.
BARS: Final[Mapping[str, float]] = MappingProxyType({"algorithm-2": 0.985, "eq-6": 0.999})


@dataclass(frozen=True)
class Measurement:
    """One policy on one set of pages.

    Attributes
    ----------
    utilities : str
        ``zipf`` or ``uniform``.
    bandwidth : float
        Visits per unit of time, over all pages.
    seed : int
        Of the pages.
    policy : str
        A name in `POLICIES`, or ``optimum``.
    freshness : float
        Share of the importance that is up to date, in the long run.
    ratio : float
        The same as a share of the optimum.
    """

    utilities: str
    bandwidth: float
    seed: int
    policy: str
    freshness: float
    ratio: float


@dataclass(frozen=True)
class Point:
    """One policy at one bandwidth: a point of the figure.

    Attributes
    ----------
    utilities, bandwidth, policy
        As in `Measurement`.
    freshness, ratio : float
        Means over seeds.
    freshness_spread, ratio_spread : float
        Standard deviations over seeds; NaN for a single one.
    lowest_ratio : float
        That of the worst seed.
    """

    utilities: str
    bandwidth: float
    policy: str
    freshness: float
    freshness_spread: float
    ratio: float
    ratio_spread: float
    lowest_ratio: float


@dataclass(frozen=True)
class Bar:
    """What a policy must reach everywhere, and its worst measurement.

    Attributes
    ----------
    policy : str
        Its name.
    at_least : float
        Share of the optimum.
    lowest : Measurement
        Where it came least near.
    """

    policy: str
    at_least: float
    lowest: Measurement

    @property
    def holds(self) -> bool:
        """Whether the worst measurement reaches it."""
        return self.lowest.ratio >= self.at_least


def measurements(
    pages: int = PAGES,
    seeds: Iterable[int] = range(5),
    bandwidths: Sequence[float] | None = None,
    utilities: Sequence[Utilities] = UTILITIES,
    slots_per_page: int = SLOTS_PER_PAGE,
) -> Iterator[Measurement]:
    """Measure the figure, one policy after the other, the optimum first.

    Parameters
    ----------
    pages : int
        Number of pages.
    seeds : iterable of int
        One set of pages each, per kind of utilities.
    bandwidths : sequence of float, optional
        Visits per unit of time over all pages; `BANDWIDTHS` per page unless given.
    utilities : sequence of str
        ``zipf``, ``uniform``.
    slots_per_page : int
        Slots of a cycle, per page, at least.

    Yields
    ------
    Measurement
        For every kind of utilities, seed and bandwidth one of the optimum and one of each of `POLICIES`.

    Notes
    -----
    The optimum is the greatest value of eq. 6, which is the freshness of visits that are perfectly evenly spaced. Whole slots
    cannot be so for all pages at a time, so no schedule with the same bandwidth exceeds it. Every policy's rates are made a sequence of
    slots by Algorithm 3 (slots 1/bandwidth long), which is repeated for ever, as the paper's carousel; its freshness is the
    exact expectation. The sequence is long enough for every page that matters to be visited, see `cycle_slots`.

    References
    ----------
    Azar et al. 2018, figure 1 and Algorithm 3.

    Examples
    --------
    >>> for found in measurements(50, seeds=[1], bandwidths=[25.0], utilities=["uniform"]):
    ...     print(f"{found.policy:12} {found.freshness:.4f} {found.ratio:.4f}")
    optimum      0.7173 1.0000
    algorithm-2  0.7129 0.9939
    eq-6         0.7162 0.9985
    change-rate  0.6800 0.9480
    utility      0.7021 0.9788
    uniform      0.6660 0.9285
    """
    for kind in utilities:
        for seed in seeds:
            world = azar_pages(pages, kind, seed)
            for bandwidth in bandwidths if bandwidths is not None else [share * pages for share in BANDWIDTHS]:
                total = float(world.importance.sum())
                best = solve_periodic(world.importance, world.change_rate, bandwidth).objective
                yield Measurement(kind, bandwidth, seed, OPTIMUM, best / total, 1.0)
                for name, policy in POLICIES.items():
                    reached = _reached(world, policy, bandwidth, slots_per_page)
                    yield Measurement(kind, bandwidth, seed, name, reached / total, reached / best)


def points(measured: Iterable[Measurement]) -> list[Point]:
    """Means and spreads over seeds, in the order in which utilities, bandwidths and policies first come."""
    groups: dict[tuple[str, float, str], list[Measurement]] = {}
    for one in measured:
        groups.setdefault((one.utilities, one.bandwidth, one.policy), []).append(one)
    found = []
    for (kind, bandwidth, policy), group in groups.items():
        freshness, ratio = np.array([[one.freshness, one.ratio] for one in group]).T
        found.append(Point(kind, bandwidth, policy, *_mean_and_spread(freshness), *_mean_and_spread(ratio), float(ratio.min())))
    return found


def bars(measured: Iterable[Measurement]) -> list[Bar]:
    """What `BARS` ask for, held against the worst of the measurements of each policy."""
    everything = list(measured)
    found = []
    for policy, at_least in BARS.items():
        of_policy = [one for one in everything if one.policy == policy]
        if of_policy:
            found.append(Bar(policy, at_least, min(of_policy, key=lambda one: one.ratio)))
    return found


def _reached(world: Pages, policy: RatePolicy, bandwidth: float, slots_per_page: int) -> float:
    """Importance that is up to date when a policy's rates are a repeated sequence of slots."""
    rates = policy(world, bandwidth)
    per_slot = rates / rates.sum()
    slots = cycle_slots(per_slot, world.importance * _evenly_spaced(world.change_rate, rates), slots_per_page * len(world))
    return float(world.importance @ cycle_freshness(edf_schedule(per_slot, slots), world.change_rate, 1 / bandwidth))


def _evenly_spaced(change_rate: Floats, rates: Floats) -> Floats:
    """Freshness of each page under evenly spaced visits, eq. 6."""
    with np.errstate(divide="ignore", over="ignore"):
        return -np.expm1(-change_rate / rates) * (rates / change_rate)


def _mean_and_spread(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else float("nan")
