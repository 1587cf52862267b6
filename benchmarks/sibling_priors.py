"""What priors learned from siblings are worth: freshness of simulated crawls with them, less freshness without.

    python benchmarks/sibling_priors.py [--seeds N] [--days D] [--world W ...]

Worlds of `simulation/worlds.py`, 1,000 pages. In S half of the pages arrive during the crawl, to sites and sections whose pages change
alike; in M every section has two kinds of pages, 200 times apart; in A, B and C pages are there from the start and groups mean nothing.
Every line is one world: freshness without siblings in the first half of the crawl, in the second, and of new pages in their first five
rounds; then what siblings add to each, in points, with 95% confidence over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from optimal_frontier.simulation import WORLDS, synthetic_world
from optimal_frontier.simulation.comparing import interval
from optimal_frontier.simulation.measuring import freshness_by_time
from optimal_frontier.simulation.newcomers import freshness_when_new
from optimal_frontier.simulation.planned_crawl import planned_visits
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.simulating import LEARNERS, REPLAN_ROUNDS

#: For how long a page is new, in rounds.
NEW_ROUNDS = 5.0


def measured(name: str, learner: str, seed: int, days: float) -> list[float]:
    """Return freshness in % in the first half, in the second, and of new pages."""
    world = synthetic_world(name).realise(days, seed)
    replan = REPLAN_ROUNDS * len(world) / world.budget
    rng = np.random.default_rng([seed, 1])
    visits = planned_visits(world, PLANNERS["median"](), LEARNERS[learner](world), days, replan, rng)
    halves = freshness_by_time(world, visits, np.array([0.0, days / 2.0, days]))
    return [100.0 * share for share in (*halves, freshness_when_new(world, visits, NEW_ROUNDS, days))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8, metavar="N")
    parser.add_argument("--days", type=float, default=400.0, metavar="D")
    parser.add_argument("--world", dest="worlds", action="append", choices=list(WORLDS), metavar="W", help="may be repeated")
    options = parser.parse_args()
    print(f"{'':5} {'without siblings, %':>23}   {'with siblings, points':>35}")
    print(f"{'world':5} {'first':>7} {'second':>7} {'new':>7}   {'first half':>11} {'second half':>11} {'new pages':>11}")
    for name in options.worlds or ("S", "M", "A", "B", "C"):
        plain, siblings = (
            np.array([measured(name, who, seed, options.days) for seed in range(options.seeds)]) for who in ("plain", "siblings")
        )
        before = " ".join(f"{value:7.2f}" for value in plain.mean(axis=0))
        gains = [interval(list(column)) for column in (siblings - plain).T]
        print(f"{name:5} {before}   " + " ".join(f"{one.mean:+6.2f} ±{one.error:.2f}" for one in gains), flush=True)


if __name__ == "__main__":
    main()
