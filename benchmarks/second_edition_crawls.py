"""Crawls of the price law, one JSON line each: the cells of `dispatch_cells`, run by `price_against_first_edition.py`."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
from dispatch_cells import HORIZON, chosen_cells

from optimal_frontier.simulation.planned_crawl import Conditions, PlannedCrawl
from optimal_frontier.simulation.policies import PLANNERS
from optimal_frontier.simulation.simulating import LEARNERS


def main() -> None:
    parser, walk = chosen_cells()
    parser.add_argument("--batches", nargs="*", type=int, default=(16,), help="Fetches handed out at once, beside one at a time.")
    options = parser.parse_args()
    for seed, name, cell, case in walk(options):
        runs = [(flight, 1) for flight in options.flights] + [(1, batch) for batch in options.batches]
        for flight, batch in runs:
            begun, rng = time.process_time(), np.random.default_rng([seed, 1])
            conditions = Conditions(case.least, case.most, case.host, case.host_rate, batch, flight)
            planner, learner = PLANNERS["clairvoyant" if options.known else "median"](), LEARNERS["live"](case.world)
            crawl = PlannedCrawl(case.world, planner, learner, HORIZON, rng, replace(conditions, bandwidth=case.bandwidth))
            visits = crawl.run(case.replan)
            about = {"world": name, "cell": cell, "flight": flight, "batch": batch, "seed": seed, "known": options.known, "run": "price"}
            spent = round(time.process_time() - begun, 2)
            more = {"visits": len(visits.pages) / len(case.slots), "rewritten": crawl.rewritten, "cpu_s": spent}
            print(json.dumps({**about, "fraction": round(case.fraction(visits), 6), **more}), flush=True)


if __name__ == "__main__":
    main()
