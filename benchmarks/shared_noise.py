"""What it is worth to leave out of all pages what differs within seconds on some of them.

    python benchmarks/shared_noise.py [--budget B ...] [--noise N ...] [--directories D ...] [--seeds S]

400 pages change twice each in 10,000 s (the median; rates are lognormal), and each shows a counter, or one of three advertisements at
random. They lie in one directory, or in 100: then no pattern has more than four pages, and they learn from others of their host. Played
through the real server, scripts, judge and planner on a clock that is set. Printed is the share of the time from the second round on in
which copies were not current: with all pages visited in turn, without sharing (each page finds its own noise), with it, and where there is
no noise; and the second fetches that were made.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from pathlib import Path
from unittest.mock import patch

import numpy as np

from optimal_frontier.frontier.judging.shared_noise import SharedNoise
from optimal_frontier.state.embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontier"))

from frontier.played_crawl import parse  # tests are not installed
from noisy_site import NOISE, PAGES, UNTIL_S, Noisy  # type: ignore[import-not-found]  # mypy leaves untyped tests out
from timed_namespace import open_namespace


def played(socket: str, budget: float, kind: str, directories: int, seed: int, *, shares: bool = True) -> tuple[float, int]:
    """Return the stale share of one crawl, and its second fetches."""
    store = open_namespace(socket, f"noise-{uuid.uuid4().hex[:12]}")
    store.command("HSET", store.key("meta"), "opened", repr(store.now()))
    site = Noisy(store, parse(CRAWL_RATE=budget, MIN_INTERVAL=1.0, MAX_INTERVAL=30 * 86400.0), kind, directories, seed=seed)
    asks = SharedNoise.asks if shares else lambda *_: False
    with patch.object(SharedNoise, "asks", asks):
        site.until(UNTIL_S)
    checks = int(store.hash("stats").get("noise_checks", 0))
    store.connection.close()
    return site.stale(2 * PAGES / budget), checks


def evenly(socket: str, budget: float, seed: int) -> float:
    """Return the stale share where all pages are fetched in turn."""
    store = open_namespace(socket, f"noise-{uuid.uuid4().hex[:12]}")
    site = Noisy(store, parse(CRAWL_RATE=budget), seed=seed)
    store.connection.close()
    site.visit_in_turn(budget)
    return float(site.stale(2 * PAGES / budget))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, nargs="+", default=[0.2, 0.8])
    parser.add_argument("--noise", nargs="+", choices=[kind for kind in NOISE if kind != "none"], default=["counter", "advert"])
    parser.add_argument("--directories", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    server = EmbeddedServer(Path(tempfile.mkdtemp(prefix="of-", dir="/tmp")))
    socket = server.ensure()
    try:
        print(f"{'noise':>8} {'dirs':>5} {'budget':>7} {'even':>7} {'without':>8} {'with':>7} {'no noise':>9} {'second fetches':>20}")
        for budget in options.budget:
            for directories in options.directories:
                quiet = np.mean([played(socket, budget, "none", directories, seed)[0] for seed in range(options.seeds)])
                even = np.mean([evenly(socket, budget, seed) for seed in range(options.seeds)])
                for kind in options.noise:
                    seeds = range(options.seeds)
                    alone = np.mean([played(socket, budget, kind, directories, seed, shares=False) for seed in seeds], axis=0)
                    shared = np.mean([played(socket, budget, kind, directories, seed) for seed in seeds], axis=0)
                    figures = f"{even:>7.3f} {alone[0]:>8.3f} {shared[0]:>7.3f} {quiet:>9.3f}"
                    print(f"{kind:>8} {directories:>5} {budget:>7g} {figures} {alone[1]:>10.0f} -> {shared[1]:>6.0f}", flush=True)
    finally:
        server.release()


if __name__ == "__main__":
    main()
