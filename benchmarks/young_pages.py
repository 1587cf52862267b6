"""What looks at young pages are worth: sites whose articles change when they are young, less and less, or at any time.

    python benchmarks/young_pages.py [--budget B ...] [--ages A ...] [--seeds S] [--seconds T]

Five lists show articles that are new, one in 30 s on average; each changes three times, at ages up to 120 s (young), at ages whose
logarithm is even (fading), or at any up to 2,500 s (any). 100 old articles never change. Played through the real server, scripts, judge and
planner on a clock that is set. Printed is the share of the second half of the time in which the copies of new articles were not current, or
there were none: with even revisiting (all pages in turn, articles that a list shows for the first time at once), without looks at young
pages, and with them; and the fetches of that half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from collections import deque
from pathlib import Path
from unittest.mock import patch

import numpy as np

from optimal_frontier.frontier.judging.young import birth_after
from optimal_frontier.state.embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontier"))

from frontier.played_crawl import parse  # tests are not installed
from timed_namespace import START, open_namespace
from young_site import AGES, LISTS, OLD, News  # type: ignore[import-not-found]  # mypy leaves untyped tests out


def played(socket: str, ages: str, budget: float, seed: int, seconds: float, *, looks: bool) -> tuple[float, int]:
    """Return the stale share of one crawl, and its fetches."""
    store = open_namespace(socket, f"young-{uuid.uuid4().hex[:12]}")
    store.command("HSET", store.key("meta"), "opened", repr(store.now()))
    site = News(store, parse(CRAWL_RATE=budget, MIN_INTERVAL=1.0, MAX_INTERVAL=30 * 86400.0), ages, seconds, seed)
    with patch("optimal_frontier.frontier.judging.judge.birth_after", birth_after if looks else lambda *_: None):
        site.until(seconds)
    store.connection.close()
    return site.stale(seconds / 2), site.count(seconds / 2, seconds)


def evenly(socket: str, ages: str, budget: float, seed: int, seconds: float) -> float:
    """Return the stale share where all pages are fetched in turn."""
    store = open_namespace(socket, f"young-{uuid.uuid4().hex[:12]}")
    site = News(store, parse(CRAWL_RATE=budget), ages, seconds, seed)
    turns, at, shown = deque(range(LISTS + OLD)), 0.0, [0] * LISTS
    store.connection.close()
    while at < seconds:
        page = turns.popleft()
        turns.append(page)
        site.visits[page].append(START + at)
        if page < LISTS:
            now = int(np.searchsorted(site.born[page::LISTS], at))
            for i in range(shown[page], now):
                number = LISTS + OLD + i * LISTS + page
                site.article[number] = i * LISTS + page
                turns.appendleft(number)
            shown[page] = now
        at += 1.0 / budget
    return float(site.stale(seconds / 2))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, nargs="+", default=[0.3, 0.6])
    parser.add_argument("--ages", nargs="+", choices=list(AGES), default=list(AGES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10_000.0)
    options = parser.parse_args()
    server = EmbeddedServer(Path(tempfile.mkdtemp(prefix="of-", dir="/tmp")))
    socket = server.ensure()
    try:
        print(f"{'ages':>8} {'budget':>7} {'even':>7} {'without':>8} {'with':>7} {'ratio':>6} {'fetches':>8}")
        for ages in options.ages:
            for budget in options.budget:
                found = []
                for seed in range(options.seeds):
                    plain, _ = played(socket, ages, budget, seed, options.seconds, looks=False)
                    young, fetches = played(socket, ages, budget, seed, options.seconds, looks=True)
                    found.append((evenly(socket, ages, budget, seed, options.seconds), plain, young, fetches))
                even, plain, young, fetches = np.mean(found, axis=0)
                print(f"{ages:>8} {budget:>7g} {even:>7.3f} {plain:>8.3f} {young:>7.3f} {young / plain:>6.2f} {fetches:>8.0f}", flush=True)
    finally:
        server.release()


if __name__ == "__main__":
    main()
