"""Crawls into slots: time by number of tasks, and how far from their ideal times they end up.

    python benchmarks/slots.py [--quick]

A fifth of the tasks are quasi-deterministic (never early), as in figure 10 of Wolf et al. Ideal times are uniform, or those of pages with 5
evenly spaced crawls each and a phase of their own. With every place taken the assignment has no choice but to make up for the random walk
of uniform arrivals, about sqrt(n) / (2 crawlers) slots wide; 1% of free places is enough to end that.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from optimal_frontier.scheduling import assign_slots


def ideal_places(n: int, slots: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """In slots, of `n` tasks."""
    if kind == "uniform":
        return rng.random(n) * slots
    phases = rng.random(-(-n // 5)) / 5
    return ((phases[:, None] + np.arange(5) / 5).reshape(-1)[:n]) * slots


def run(crawlers: int, slots: int, load: float, kind: str) -> None:
    rng = np.random.default_rng(1)
    n = round(crawlers * slots * load)
    ideal = ideal_places(n, slots, kind, rng)
    # Those of the last hundredth would not fit if they came in a crowd.
    not_before = (rng.random(n) < 0.2) & (ideal < 0.99 * slots)
    start = time.perf_counter()
    slot = assign_slots(ideal, not_before, crawlers, slots, float(slots)) % slots
    seconds = time.perf_counter() - start
    off, far = slot - ideal, np.abs(slot - ideal)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n:>11,} {crawlers:>3} x {slots:>9,} {load:>6.0%} {kind:<8} {seconds:>7.2f} s  within 20 slots {np.mean(far <= 20):>8.3%}  "
        f"99.9% within {np.quantile(far, 0.999):>6.1f}  most {far.max():>6.1f}  never early: least {off[not_before].min():>5.2f}  "
        f"peak {peak:.2f} GiB",
        flush=True,
    )


def run_restricted(n: int, load: float, crawlers: int = 10) -> None:
    rng = np.random.default_rng(1)
    slots = -(-round(n / load) // crawlers)
    ideal = rng.random(n) * slots
    not_before = (rng.random(n) < 0.2) & (ideal < 0.99 * slots)
    half = np.ones((n, crawlers), np.bool_)
    half[rng.random(n) < 0.3, crawlers // 2 :] = False
    window = np.stack([ideal - 50, ideal + 50], axis=1)
    for name, allowed in (("half the crawlers for 30%", half), ("windows of 100 slots", window), ("both", (half, window))):
        start = time.perf_counter()
        assign_slots(ideal, not_before, crawlers, slots, float(slots), allowed)
        print(f"{n:>11,} {load:>6.0%} {name:<26} {time.perf_counter() - start:>7.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to a million tasks")
    quick = parser.parse_args().quick
    for crawlers, slots in ((10, 100_000), (1, 1_000_000)):
        for load in (1.0, 0.99, 0.7):
            run(crawlers, slots, load, "uniform")
    run(10, 100_000, 1.0, "spaced")
    if not quick:
        run(10, 1_000_000, 1.0, "uniform")
        run(10, 1_000_000, 1.0, "spaced")
        run(10, 1_000_000, 0.99, "uniform")
    print("\nrestricted")
    for n, load in ((10_000, 0.5), (10_000, 0.9), (10_000, 0.97)) + (() if quick else ((100_000, 0.9),)):
        run_restricted(n, load)


if __name__ == "__main__":
    main()
