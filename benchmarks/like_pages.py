"""What it is worth to believe of pages that are alike what all of them have shown.

    python benchmarks/like_pages.py [--budget B ...] [--spread S ...] [--seeds N]

400 pages of one pattern change twice each in 10,000 s (the median; rates are lognormal with a spread of their logarithm). Played through
the real server, scripts, judge and planner on a clock that is set. Printed is the share of the time from the second round on in which
copies were not current: with all pages visited in turn, which is best where they are alike; where siblings weigh two changes at most; and
where pages that are alike are believed to be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from pathlib import Path
from unittest.mock import patch

import numpy as np

from optimal_frontier.estimation import like_pages
from optimal_frontier.estimation.sibling_priors import MOST_SHAPE
from optimal_frontier.state.embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontier"))

from frontier.played_crawl import parse  # tests are not installed
from noisy_site import PAGES, UNTIL_S, Noisy  # type: ignore[import-not-found]  # mypy leaves untyped tests out
from timed_namespace import open_namespace


def played(socket: str, budget: float, spread: float, seed: int, most: float) -> float:
    """Return the stale share of a crawl in which siblings count for so many changes at most."""
    store = open_namespace(socket, f"alike-{uuid.uuid4().hex[:12]}")
    store.command("HSET", store.key("meta"), "opened", repr(store.now()))
    site = Noisy(store, parse(CRAWL_RATE=budget, MIN_INTERVAL=1.0, MAX_INTERVAL=30 * 86400.0), "none", seed=seed, spread=spread)
    with patch.object(like_pages, "MOST_ALIKE", most):
        site.until(UNTIL_S)
    store.connection.close()
    return float(site.stale(2 * PAGES / budget))


def evenly(socket: str, budget: float, spread: float, seed: int) -> float:
    """Return the stale share where all pages are fetched in turn."""
    store = open_namespace(socket, f"alike-{uuid.uuid4().hex[:12]}")
    site = Noisy(store, parse(CRAWL_RATE=budget), "none", seed=seed, spread=spread)
    store.connection.close()
    site.visit_in_turn(budget)
    return float(site.stale(2 * PAGES / budget))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, nargs="+", default=[0.4, 0.8])
    parser.add_argument("--spread", type=float, nargs="+", default=[0.0, 0.3, 0.7, 1.5])
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    server = EmbeddedServer(Path(tempfile.mkdtemp(prefix="of-", dir="/tmp")))
    socket = server.ensure()
    try:
        print(f"{'spread':>7} {'budget':>7} {'even':>7} {'without':>8} {'with':>7}")
        for spread in options.spread:
            for budget in options.budget:
                seeds = range(options.seeds)
                even = np.mean([evenly(socket, budget, spread, seed) for seed in seeds])
                alone, alike = (
                    np.mean([played(socket, budget, spread, seed, most) for seed in seeds]) for most in (MOST_SHAPE, like_pages.MOST_ALIKE)
                )
                print(f"{spread:>7g} {budget:>7g} {even:>7.4f} {alone:>8.4f} {alike:>7.4f}", flush=True)
    finally:
        server.release()


if __name__ == "__main__":
    main()
