"""What update models cost, and what the greedy choice of crawl times loses against the best.

    python benchmarks/update_models.py [--pages N]

First the processor time that N pages of each family take (means of the times between updates lognormal around the interval, shapes of
Weibull pages 0.35 to 0.6 and of Pareto pages 1 to 4, 0 to 9 crawls), and N / 10 quasi-deterministic pages, all of whose crawl times are
chosen at the first question. Then freshness of the greedy choice over that of the best, for all numbers of crawls from 1 to Q - 1: the
mean, the lowest, and how often the two are equal.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np

from optimal_frontier.optimization import Exponential, Pareto, QuasiDeterministic, Weibull

#: Potential update times of a page -> pages of the comparison.
TIMES = {4: 20_000, 12: 20_000, 24: 4000, 48: 2000}


def seconds(call: Callable[..., object], *arguments: object) -> float:
    begin = process_time()
    call(*arguments)
    return process_time() - begin


def costs(n: int) -> None:
    rng = np.random.default_rng(1)
    mean, crawls, price = rng.lognormal(0, 1, n), rng.integers(0, 10, n), 10.0 ** rng.uniform(-4, -1, n)
    models = (Exponential(1 / mean), Weibull.from_mean(mean, rng.uniform(0.35, 0.6, n)), Pareto.from_mean(mean, rng.uniform(1.01, 4, n)))
    print(f"{n:,} pages, seconds        staleness  decrease  crawls_worth")
    for model in models:
        spent = [seconds(model.staleness, crawls, 1.0), seconds(model.decrease, crawls, 1.0), seconds(model.crawls_worth, price, 1.0)]
        print(f"{type(model).__name__:<29}" + "".join(f"{time:9.2f} " for time in spent))
    n //= 10
    print(f"\n{n:,} quasi-deterministic pages, seconds    first  next  crawl_times")
    for count in (10, 24, 50):
        times, probabilities, crawls = np.sort(rng.random((n, count)), axis=1), rng.random((n, count)), rng.integers(0, count, n)
        for method in ("greedy", "exact"):
            late = QuasiDeterministic(times, probabilities, method=method)
            first, after = seconds(late.staleness, crawls, 1.0), seconds(late.decrease, crawls, 1.0)
            print(f"Q = {count}, {method:<32}{first:9.2f}{after:6.3f}{seconds(late.crawl_times, crawls, 1.0):9.2f}")


def losses() -> None:
    rng = np.random.default_rng(12)
    print("\ngreedy / best freshness          mean     lowest   equal")
    for count, n in TIMES.items():
        random, even = np.sort(rng.random((n, count)), axis=1), np.tile((np.arange(count) + 0.5) / count, (n, 1))
        crawls = np.repeat(np.arange(1, count)[:, None], n, axis=1)
        for name, times, probabilities, fresh in (
            ("random times", random, rng.random((n, count)), 1.0),
            ("even times", even, rng.random((n, count)), 1.0),
            ("probability 0.1", random, np.full((n, count), 0.1), 1.0),
            ("certain updates", random, np.ones((n, count)), 1.0),
            ("stale at 0", random, np.full((n, count), 0.5), 0.0),
        ):
            greedy, best = (
                1 - QuasiDeterministic(times, probabilities, fresh, method=m).staleness(crawls, 1.0) for m in ("greedy", "exact")
            )
            share = greedy / best
            print(f"Q = {count:<3} {name:<20}{share.mean():12.5f}{share.min():10.3f}{np.mean(best - greedy < 1e-12):8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    options = parser.parse_args()
    costs(options.pages)
    losses()
