"""What Last-Modified is worth, and what hosts that lie about it cost.

    python benchmarks/last_modified.py [--seeds N] [--only WORLD ...]

First the relative error (RMSE) of a change rate x after 10 visits, at equal intervals I or irregular ones (exponential, mean I), by the
median of the posterior from Gamma(1, I): from bits alone, with ages, and with ages and that of the first visit at half weight.

Then simulated crawls, 1,000 pages, 400 days, policy "median": freshness as a share of the clairvoyant's, and what part of its staleness
(1 - freshness, second half) the crawl by bits alone loses, seed by seed, with 95% confidence intervals. Hosts have 20 pages; those that lie
do so in four ways in turn (always now, random, frozen, last deploy). "credulous" believes all of them at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from optimal_frontier.estimation import posterior_median, update_posterior
from optimal_frontier.estimation.last_modified import FIRST_WEIGHT, update_with_age, update_with_first_age
from optimal_frontier.simulation.comparing import interval
from optimal_frontier.simulation.last_modified_learning import LastModified
from optimal_frontier.simulation.learners import Bits, Learner
from optimal_frontier.simulation.measuring import freshness_by_time
from optimal_frontier.simulation.planned_crawl import planned_visits
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.simulating import REPLAN_ROUNDS
from optimal_frontier.simulation.worlds import Realised, synthetic_world

VISITS, HISTORIES, HORIZON = 10, 100_000, 400.0
WORLDS = ("A", "B", "C", "A weibull", "B weibull")
LEARNERS: dict[str, Callable[[Realised], Bits | Learner]] = {
    "bits only": lambda world: Bits(),
    "ages": LastModified,
    "no first ages": lambda world: LastModified(world, first_weight=0.0),
    "full first ages": lambda world: LastModified(world, first_weight=1.0),
    "credulous": lambda world: LastModified(world, is_checked=False),
    "20% lie": lambda world: LastModified(world, 0.2),
    "20% lie, credulous": lambda world: LastModified(world, 0.2, is_checked=False),
    "all lie": lambda world: LastModified(world, 1.0),
}


def errors() -> None:
    """Print RMSE after 10 visits."""
    rng = np.random.default_rng(1)
    print(f"relative RMSE of the median after {VISITS} visits, {HISTORIES:,} histories")
    print(f"{'intervals':10}{'xI':>5}{'bits':>8}{'ages':>8}{'first':>8}")
    for spacing in ("equal", "irregular"):
        for rate in (0.1, 1.0, 3.0):
            shape, time = np.ones((3, HISTORIES)), np.ones((3, HISTORIES))
            age = rng.exponential(1.0 / rate, HISTORIES)
            shape[2], time[2] = update_with_first_age(shape[2], time[2], age, weight=FIRST_WEIGHT)
            for _ in range(VISITS):
                spent = np.ones(HISTORIES) if spacing == "equal" else rng.exponential(1.0, HISTORIES) + 1e-12
                # Backwards in time the last change is an exponential time away; beyond the last visit it is the one before it.
                back = rng.exponential(1.0 / rate, HISTORIES)
                changed = back <= spent
                age = np.where(changed, back, age + spent)
                shape[0], time[0] = update_posterior(shape[0], time[0], spent, changed)
                shape[1:], time[1:] = update_with_age(shape[1:], time[1:], spent, age, changed)
            found = np.sqrt(((posterior_median(shape, time) / rate - 1.0) ** 2).mean(axis=1))
            print(f"{spacing:10}{rate:5}" + "".join(f"{value:8.3f}" for value in found))


def freshness(world: Realised, policy: str, learner: Bits | Learner, seed: int) -> float:
    """Return the freshness of the second half, as `simulate` does."""
    replan = REPLAN_ROUNDS * len(world) / world.budget
    visits = planned_visits(world, PLANNERS[policy](), learner, HORIZON, replan, np.random.default_rng([seed, 1]))
    return float(freshness_by_time(world, visits, np.array([HORIZON / 2, HORIZON]))[0])


def crawls(name: str, seeds: int) -> None:
    """Print the table of one world."""
    world_name, _, process = name.partition(" ")
    worlds = [synthetic_world(world_name, process or "poisson").realise(HORIZON, seed) for seed in range(seeds)]
    best = np.array([freshness(world, "clairvoyant", Bits(), seed) for seed, world in enumerate(worlds)])
    print(f"\n{name}: {seeds} seeds\n{'':20}{'% of clairvoyant':>20}{'staleness cut, %':>20}{'points':>18}")
    plain = None
    for learner, make in LEARNERS.items():
        fresh = np.array([freshness(world, "median", make(world), seed) for seed, world in enumerate(worlds)])
        plain = fresh if plain is None else plain
        values = (100 * fresh / best, 100 * (fresh - plain) / (1 - plain), 100 * (fresh - plain))
        shown = [interval(value.tolist()) for value in values]
        row = (f"{one.mean:{width}.2f} ±{one.error:.2f}" for one, width in zip(shown, (14, 14, 12), strict=True))
        print(f"{learner:20}" + "".join(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", nargs="*", default=WORLDS, help="worlds, such as A or 'B weibull'")
    options = parser.parse_args()
    errors()
    for name in options.only:
        crawls(name, options.seeds)


if __name__ == "__main__":
    main()
