"""What it is worth to notice that habits change, and what it costs where they do not.

    python benchmarks/changing_habits.py [--seeds N] [--days D] [--world W ...] [--policy P]

Worlds A, B and C, 1,000 pages each. Rates stay what they are (poisson), or each page draws its own anew once in 100 days on average
(jumping). Every line: freshness in the second half with the posterior alone, in %; then what is added to it, in points with 95%
confidence over seeds, by watching for changed habits.
"""

from __future__ import annotations

import argparse

import numpy as np

from optimal_frontier.simulation import simulate, synthetic_world
from optimal_frontier.simulation.comparing import interval

LEARNERS = ("plain", "watching")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8, metavar="N")
    parser.add_argument("--days", type=float, default=400.0, metavar="D")
    parser.add_argument("--world", dest="worlds", action="append", choices=["A", "B", "C"], metavar="W", help="may be repeated")
    parser.add_argument("--policy", default="median", metavar="P")
    options = parser.parse_args()
    print(f"{'rates':8} {'world':5} {'alone, %':>9} {'watching':>12}")
    for process in ("poisson", "jumping"):
        for name in options.worlds or ("A", "B", "C"):
            world = synthetic_world(name, process)
            alone, watching = (
                np.array([100.0 * simulate(world, options.policy, options.days, s, learner=who).freshness for s in range(options.seeds)])
                for who in LEARNERS
            )
            gain = interval(list(watching - alone))
            print(f"{process:8} {name:5} {alone.mean():9.2f} {gain.mean:+7.2f} ±{gain.error:.2f}", flush=True)


if __name__ == "__main__":
    main()
