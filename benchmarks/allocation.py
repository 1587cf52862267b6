"""Whole numbers of crawls: time by method and by number of pages, peak memory, and the objectives held against each other.

    python benchmarks/allocation.py [--quick]

Wolf's mixture: 60% Poisson, 30% Pareto (shape 2), 10% quasi-deterministic pages (8 times uniform on the interval, probabilities uniform on
[0, 1]), Zipf change rates with mean 1.5, weights uniform on [0, 1], 5 crawls a page. Tables of the quasi-deterministic pages are made at
the first use of a model and timed apart.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from optimal_frontier.optimization import Exponential, Pareto, QuasiDeterministic, UpdateModel, allocate_crawls
from optimal_frontier.optimization.sweeps import cores
from optimal_frontier.papers.wolf.allocation.allocating import Method

TIMES = 8


def world(n: int) -> tuple[list[UpdateModel], np.ndarray]:
    rng = np.random.default_rng(n)
    rate = 1.0 / np.arange(1, n + 1)
    rate = rng.permutation(rate * 1.5 * n / rate.sum())
    poisson, pareto = round(0.6 * n), round(0.9 * n)
    late = n - pareto
    models: list[UpdateModel] = [
        Exponential(rate[:poisson]),
        Pareto(1.0 / rate[poisson:pareto], 2.0),
        QuasiDeterministic(np.sort(rng.random((late, TIMES)), axis=1), rng.random((late, TIMES))),
    ]
    return models, rng.random(n)


def objective(models: list[UpdateModel], weights: np.ndarray, crawls: np.ndarray) -> float:
    total, start = 0.0, 0
    for model in models:
        mine = slice(start, start + len(model))
        total += float(np.dot(weights[mine], model.staleness(crawls[mine], 1.0)))
        start = mine.stop
    return total


def run(n: int, methods: tuple[Method, ...]) -> None:
    models, weights = world(n)
    start = time.perf_counter()
    models[2].decrease(0, 1.0)
    tables = time.perf_counter() - start
    for method in methods:
        start = time.perf_counter()
        crawls = allocate_crawls(models, weights, 5 * n, 1.0, method=method)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{n:>10,}  {method:<20} {seconds:>8.3f} s {seconds / n * 1e6:>7.2f} us/page  tables {tables:>6.3f} s  "
            f"peak {peak:>5.2f} GiB  staleness {objective(models, weights, crawls) / weights.sum():.12f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 100,000 pages")
    quick = parser.parse_args().quick
    print(f"{cores()} core(s); peak memory is that of the process, inputs included")
    fast: tuple[Method, ...] = ("auto", "frederickson-johnson")
    run(10_000, (*fast, "galil-megiddo", "greedy"))
    run(100_000, (*fast, "galil-megiddo", "greedy"))
    if not quick:
        run(1_000_000, fast)
        run(10_000_000, ("auto",))


if __name__ == "__main__":
    main()
