"""How near the live path comes to the clairvoyant optimum: the real server, scripts, judge and planner, played on a clock that is set.

    python benchmarks/played_crawl.py [--pages N] [--rounds R] [--seeds S] [--world W ...] [--case C ...] [--known]

Worlds A, B and C as in simulated crawls; fetches take no time. A round is the time in which the budget visits every page once. Half of the
rounds pass before the event: none (steady), the bandwidth becomes half or twice of what plans go on counting with, or nothing is fetched
for a tenth of the time that is left (outage). Printed is the freshness after it as a share of that of the best evenly spaced visits at the
real bandwidth with known change rates; and the same from a round after the event on.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.simulation import synthetic_world
from optimal_frontier.simulation.worlds import Realised
from optimal_frontier.state.embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from frontier.played_crawl import Play  # tests are not installed
from timed_namespace import START, open_namespace  # neither

FACTORS = {"steady": 1.0, "half": 0.5, "double": 2.0, "outage": 1.0}


class WorldSite:
    """The pages of a world, as a site whose time runs faster."""

    def __init__(self, realised: Realised, speed: float) -> None:
        self.changes, self.speed = realised.drawn.changes, speed

    def __call__(self, page: int, at: float) -> int:
        """Return the edition of a page."""
        times, starts = self.changes.times, self.changes.starts
        first = starts[page]
        stop = starts[page + 1] if page + 1 < len(starts) else len(times)
        return int(np.searchsorted(times[first:stop], at * self.speed, side="right"))


def played(socket: str, case: str, seed: int, options: argparse.Namespace, name: str) -> tuple[float, float]:
    """Return the two shares of one crawl."""
    world = synthetic_world(name, pages=options.pages)
    n, rate = options.pages, options.rate
    round_s = n / rate
    speed = 1.0 / world.visits_per_page / round_s  # days of the world a second
    horizon, event = options.rounds * round_s, 0.5 * options.rounds * round_s
    realised = world.realise(horizon * speed, seed)
    rates = realised.known_rates(0.0) * speed
    given = {"CRAWL_RATE": rate, "RESOLVE_INTERVAL": options.plans * round_s, "MAX_INTERVAL": options.max_interval, "MIN_INTERVAL": 1e-3}
    given |= dict(setting.split("=", 1) for setting in options.set)
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_" + key: value for key, value in given.items()})
    store = open_namespace(socket, f"played-{uuid.uuid4().hex[:12]}", options.partitions)
    play = Play(store, settings, WorldSite(realised, speed), want=options.want)
    if options.known:
        play.site = lambda page, at: None
        play.add_known(realised.importance, rates, hosts=options.hosts)
    else:
        for i, weight in enumerate(realised.importance):
            play.add_page(f"h{i % options.hosts}/{i}", importance=float(weight))
    play.until(event)
    if case == "outage":
        play.set_time(START + event + 0.1 * (horizon - event))
    factor = FACTORS[case]
    if factor != 1.0:
        play.dispatch_by(dataclasses.replace(settings, crawl_rate=rate * factor))
    play.until(horizon)
    best = solve_periodic(realised.importance, rates, rate * factor).objective
    store.connection.close()
    return play.freshness(event, horizon, rates) / best, play.freshness(event + round_s, horizon, rates) / best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500, metavar="N")
    parser.add_argument("--rounds", type=float, default=60.0, metavar="R")
    parser.add_argument("--seeds", type=int, default=1, metavar="S")
    parser.add_argument("--rate", type=float, default=1.0, help="CRAWL_RATE")
    parser.add_argument("--plans", type=float, default=0.4, help="rounds between two plans")
    parser.add_argument("--want", type=int, default=16, help="requests asked for at a time")
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--max-interval", type=float, default=3e38, help="MAX_INTERVAL, seconds")
    parser.add_argument("--known", action="store_true", help="change rates are known")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting; may be repeated")
    parser.add_argument("--world", dest="worlds", action="append", choices=["A", "B", "C"], metavar="W", help="may be repeated")
    parser.add_argument("--case", dest="cases", action="append", choices=list(FACTORS), metavar="C", help="may be repeated")
    options = parser.parse_args()
    server = EmbeddedServer(Path(tempfile.mkdtemp(prefix="of-", dir="/tmp")))
    socket = server.ensure()
    try:
        print(f"{'world':5} {'case':7} {'share':>8} {'after a round':>14} {'s':>5}  by seed")
        for name in options.worlds or ("A", "B", "C"):
            for case in options.cases or list(FACTORS):
                began = time.monotonic()
                every = np.array([played(socket, case, seed, options, name) for seed in range(options.seeds)])
                shares = every.mean(axis=0)
                seconds, seeds = time.monotonic() - began, every[:, 0].round(4).tolist()
                print(f"{name:5} {case:7} {shares[0]:8.4f} {shares[1]:14.4f} {seconds:5.0f}  {seeds}", flush=True)
    finally:
        server.release()


if __name__ == "__main__":
    main()
