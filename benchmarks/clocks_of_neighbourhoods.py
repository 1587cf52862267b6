"""What clocks of neighbourhoods are worth in simulated crawls, and what folding visits costs.

    python benchmarks/clocks_of_neighbourhoods.py [--seeds N] [--days D] [--pages N] [--world W ...] [--policy NAME]

Each line is one world: freshness in % by the calendar, what the clocks add in points, with 95% confidence over seeds, and for which share
of looks and hosts the gate of the groups, and that of the rhythm, was open. In A, B, C and S pages change independently of each other, so
nothing can be won there; in N they change together. Then the time that one visit takes in a batch.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from optimal_frontier.estimation.neighbourhoods import Neighbourhoods, VisitBatch
from optimal_frontier.simulation import WORLDS, synthetic_world
from optimal_frontier.simulation.comparing import interval
from optimal_frontier.simulation.measuring import freshness_by_time
from optimal_frontier.simulation.planned_crawl import PlannedCrawl
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.shared_clocks import SharedClocks
from optimal_frontier.simulation.simulating import LEARNERS, REPLAN_ROUNDS
from optimal_frontier.simulation.worlds import Realised


class Watched(SharedClocks):
    """Clocks that count how often gates were open."""

    looks, open_groups, open_rhythms = 0, 0.0, 0.0

    def look(self, now: float) -> bool:
        """Look, and count."""
        has_moved = super().look(now)
        self.looks += 1
        self.open_groups += float(self.neighbourhoods.gates.is_open.mean())
        self.open_rhythms += float(self.neighbourhoods.rhythm_gates.is_open.mean())
        return has_moved


def freshness(world: Realised, policy: str, learner: str, seed: int, days: float) -> tuple[float, float, float]:
    """Return freshness in % in the second half, and how often gates were open."""
    crawl = PlannedCrawl(world, PLANNERS[policy](), LEARNERS[learner](world), days, np.random.default_rng([seed, 1]))
    even = len(world) / world.budget
    if crawl.clocks is not None:
        crawl.clocks = Watched(crawl.crawl, crawl.belief, world.sites, even, world.day)
    visits = crawl.run(REPLAN_ROUNDS * even)
    fresh = 100.0 * float(freshness_by_time(world, visits, np.array([0.0, days / 2.0, days]))[1])
    watched = crawl.clocks
    if not isinstance(watched, Watched):
        return fresh, 0.0, 0.0
    return fresh, watched.open_groups / watched.looks, watched.open_rhythms / watched.looks


def fold_cost(groups: int, visits: int, repeats: int = 400) -> tuple[float, float]:
    """Return microseconds a visit: the fastest tenth of batches, and the mean of all."""
    rng = np.random.default_rng(0)
    clocks, now, spent = Neighbourhoods(8192.0), 0.0, []
    clocks.grow(groups, 5)
    for _ in range(repeats):
        until = np.sort(now + 1350.0 * rng.random(visits))
        now += 1350.0
        batch = VisitBatch(
            rng.integers(0, groups, (visits, 4)),
            rng.integers(0, 5, visits),
            until - rng.exponential(86_400.0, visits),
            until,
            rng.random(visits) < 0.3,
            np.ones(visits),
            np.full(visits, 86_400.0),
            np.ones(visits, np.bool_),
        )
        begun = time.perf_counter()
        clocks.fold(batch)
        spent.append((time.perf_counter() - begun) / visits * 1e6)
    return float(np.quantile(spent, 0.1)), float(np.mean(spent))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8, metavar="N")
    parser.add_argument("--days", type=float, default=400.0, metavar="D")
    parser.add_argument("--pages", type=int, default=1000, metavar="N")
    parser.add_argument("--world", dest="worlds", action="append", choices=list(WORLDS), metavar="W", help="may be repeated")
    parser.add_argument("--policy", default="median", metavar="NAME")
    options = parser.parse_args()
    print(f"{'world':5} {'calendar, %':>12} {'clocks, points':>15} {'groups open':>12} {'rhythm open':>12}")
    for name in options.worlds or ("A", "B", "C", "S", "N"):
        runs = []
        for seed in range(options.seeds):
            world = synthetic_world(name, pages=options.pages).realise(options.days, seed)
            runs.append([freshness(world, options.policy, who, seed, options.days) for who in ("no-neighbourhoods", "live")])
        told = np.array(runs)
        gain = interval(list(told[:, 1, 0] - told[:, 0, 0]))
        open_groups, open_rhythms = told[:, 1, 1:].mean(axis=0)
        print(
            f"{name:5} {told[:, 0, 0].mean():12.2f} {gain.mean:+9.2f} ±{gain.error:.2f} {open_groups:12.2f} {open_rhythms:12.2f}",
            flush=True,
        )
    print(f"\n{'groups':>6} {'visits in a batch':>18} {'us a visit, fastest tenth':>26} {'mean':>6}")
    for groups, visits in ((100, 50), (1000, 50), (1000, 200), (10_000, 1000)):
        fastest, mean = fold_cost(groups, visits)
        print(f"{groups:6} {visits:18} {fastest:26.1f} {mean:6.1f}")


if __name__ == "__main__":
    main()
