"""Solvers of revisit rates compared: time, objective, bandwidth error; and their speed in units of one numpy.exp over n float64.

    python benchmarks/solvers.py [--quick]
    taskset -c 0 python benchmarks/solvers.py          on one core

Objectives are relative to `solve_periodic` on the same problem ("freshness" or, for crawlfrontier's, "changes"); Azar's Algorithm 2 solves
the memoryless problem and is compared with itself as printed. The machine should be otherwise idle: from 200,000 pages on, the solvers use
all the cores that the process may.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import gammaincinv

from optimal_frontier.optimization import (
    OptimalSolver,
    WCluster,
    changes_periodic,
    freshness_periodic,
    solve_periodic,
    solve_poisson,
)
from optimal_frontier.optimization.sweeps import cores


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds, and the result."""
    seconds = []
    result = None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return median(seconds), result


def world(n: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(n)
    return 1 - rng.random(n), 1 - rng.random(n), 0.2 * n


def by_gammaincinv(importance: np.ndarray, change_rate: np.ndarray, budget: float) -> np.ndarray:
    """A root finder over scipy's Gamma(2) quantile."""
    value = importance / change_rate

    def rates(log_price: float) -> np.ndarray:
        q = np.exp(log_price) / value
        out = np.zeros(value.size)
        live = q < 1
        out[live] = change_rate[live] / gammaincinv(2, q[live])
        return out

    top = np.log(value.max())
    return rates(brentq(lambda x: rates(x).sum() - budget, top - 40, top, xtol=1e-12))


def by_slsqp(importance: np.ndarray, change_rate: np.ndarray, budget: float) -> np.ndarray:
    n = importance.size
    found = minimize(
        lambda f: -freshness_periodic(importance, change_rate, np.maximum(f, 0)),
        np.full(n, budget / n),
        method="SLSQP",
        bounds=[(0, budget)] * n,
        constraints={"type": "eq", "fun": lambda f: f.sum() - budget},
    )
    rates: np.ndarray = np.maximum(found.x, 0)
    return rates


def compare(n: int, repeats: int) -> None:
    importance, change_rate, budget = world(n)

    def row(name: str, seconds: float, value: float, best: float, rates: np.ndarray) -> None:
        print(f"{n:>9,}  {name:<42} {seconds * 1e3:>11.3f} ms  {value / best:>14.10f}  {abs(rates.sum() - budget) / budget:>9.1e}")

    seconds, exact = timed(lambda: solve_periodic(importance, change_rate, budget), repeats)
    row("solve_periodic, freshness", seconds, exact.objective, exact.objective, exact.rates)
    if n <= 50:
        seconds, rates = timed(lambda: by_slsqp(importance, change_rate, budget), 1)
        row("scipy SLSQP, freshness", seconds, freshness_periodic(importance, change_rate, rates), exact.objective, rates)
    seconds, rates = timed(lambda: by_gammaincinv(importance, change_rate, budget), 1)
    row("brentq over scipy gammaincinv, freshness", seconds, freshness_periodic(importance, change_rate, rates), exact.objective, rates)
    seconds, changes = timed(lambda: OptimalSolver().solve(importance, change_rate, budget / n, n), repeats)
    best = changes_periodic(importance, change_rate, changes)
    row("OptimalSolver, changes", seconds, best, best, changes)
    clusters = WCluster()
    for value, rate in zip(importance, change_rate, strict=True):
        clusters.add(value, rate)
    seconds, rates = timed(lambda: OptimalSolver(clusters=clusters).solve(importance, change_rate, budget / n, n), 1)
    row("golden section, 100 clusters, changes", seconds, changes_periodic(importance, change_rate, rates), best, rates)
    seconds, printed = timed(lambda: solve_poisson(importance, change_rate, budget, method="sort"), repeats)
    row("Algorithm 2 as printed (sort)", seconds, printed.objective, printed.objective, printed.rates)
    seconds, fast = timed(lambda: solve_poisson(importance, change_rate, budget), repeats)
    row("Algorithm 2 without the sort", seconds, fast.objective, printed.objective, fast.rates)


def time_in_units(n: int, repeats: int) -> None:
    """Time in units of numpy.exp over n float64, and peak extra memory in arrays of n float64."""
    importance, change_rate, budget = world(n)
    rng = np.random.default_rng(1)
    hosts = min(100_000, n // 10)
    host, limits = rng.integers(0, hosts, n), n / hosts * (0.003 + 0.5 * rng.random(hosts))
    bounded = partial(solve_periodic, importance, change_rate, budget, min_rate=0.001, max_rate=1.0)
    # hosts: 3 s a million pages on one core, with numpy.exp at about 1.1 ns a page
    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "Algorithm 2": (10, lambda: solve_poisson(importance, change_rate, budget)),
        "solve_periodic": (20, lambda: solve_periodic(importance, change_rate, budget)),
        "solve_periodic, bounds": (80, bounded),
        f"solve_periodic, bounds, {hosts:,} hosts": (2700, partial(bounded, host=host, host_max_rate=limits)),
    }
    for name, (bar, call) in calls.items():
        call()
        pairs = [(timed(lambda: np.exp(importance), 5)[0], timed(call, 1)[0]) for _ in range(repeats)]
        units, seconds = median(taken / exp for exp, taken in pairs), median(taken for _, taken in pairs)
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1] / (8 * n)
        tracemalloc.stop()
        print(f"{n:>10,}  {name:<40} {units:>7.1f} units (bar {bar:>4}) {seconds / n * 1e9:>7.1f} ns/page {peak:>5.1f} arrays")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds instead of a minute")
    quick = parser.parse_args().quick
    print(f"{'pages':>9}  {'solver':<42} {'time':>14}  {'objective':>14}  {'bandwidth error':>9}")
    for n in (20, 1000) if quick else (20, 1000, 100_000):
        compare(n, 3 if quick else 7)
    print(f"\ntime in units of numpy.exp over n, measured beside it, {cores()} core(s); peak extra memory in arrays of n float64")
    for n in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        time_in_units(n, 9 if n <= 1_000_000 else 3)


if __name__ == "__main__":
    main()
