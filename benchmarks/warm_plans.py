"""What the carried price saves: plans of a million pages, started warm and cold, with and without limits of hosts.

    python benchmarks/warm_plans.py [--pages N] [--plans N]

Between two plans the estimates of one page in a hundred moved, and the budget by 2% or not at all. Each plan is solved on the same
pages cold, from the last price, and from the price that is carried along. Medians; ratios are what to trust.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from optimal_frontier.optimization import solve_periodic
from optimal_frontier.scheduling.price import CarriedPrice, answers_to_price

_BUDGET_SHARE = 0.1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--plans", type=int, default=8)
    options = parser.parse_args()
    print(f"{options.pages:,} pages, {options.plans} plans, milliseconds")
    titles = f"{'cold':>8}{'last price':>12}{'kept dual':>12}{'its upkeep':>12}{'it is off by':>15}{'last by':>10}"
    print(f"{'limits':<16}{'budget':<12}{titles}")
    for hosts in (0, options.pages // 10):
        for sway in (0.0, 0.01):
            print_row(options.pages, options.plans, hosts, sway)


def print_row(n: int, plans: int, hosts: int, sway: float) -> None:
    """Play a few plans and print medians."""
    rng = np.random.default_rng(1)
    importance, change_rate = rng.pareto(1.2, n) + 0.1, np.exp(rng.normal(np.log(0.1), 1.5, n))
    low, high, slots = np.full(n, 1e-6), np.full(n, 1.0), np.arange(n)
    host, limit = (rng.integers(0, hosts, n), 3.0) if hosts else (None, np.inf)
    price, last = CarriedPrice(), 0.0
    columns: dict[str, list[float]] = {name: [] for name in ("cold", "last", "dual", "upkeep", "off", "last_off")}
    for turn in range(plans + 2):
        moved = rng.random(n) < 0.01
        change_rate = np.where(moved, change_rate * rng.uniform(0.8, 1.25, n), change_rate)
        budget = _BUDGET_SHARE * n * (1 + sway * (-1) ** turn)
        limits = {"host": host, "host_max_rate": limit} if hosts else {}
        began = time.perf_counter()
        start = price.estimate(slots, importance, change_rate, budget)
        estimated = time.perf_counter() - began
        spent = {}
        for name, given in (("cold", None), ("last", last or None), ("dual", start)):
            began = time.perf_counter()
            solution = solve_periodic(importance, change_rate, budget, min_rate=low, max_rate=high, start=given, **limits)
            spent[name] = time.perf_counter() - began
        began = time.perf_counter()
        answers = answers_to_price(importance, change_rate, solution.rates, low, high, host, limit, solution.multiplier)
        price.settle(solution.rates, answers, solution.multiplier)
        upkeep = estimated + time.perf_counter() - began
        if turn >= 2 and start is not None:  # the first has nothing to start from, the second makes the sums anew
            for name, seconds in (*spent.items(), ("upkeep", upkeep)):
                columns[name].append(1e3 * seconds)
            columns["off"].append(abs(start / solution.multiplier - 1))
            columns["last_off"].append(abs(last / solution.multiplier - 1))
        last = solution.multiplier
    cold, warm, dual, upkeep, off, last_off = (statistics.median(values) for values in columns.values())
    name = f"{hosts:,} hosts" if hosts else "bounds only"
    budget_moves = f"moves {2 * sway:.0%}" if sway else "stays"
    print(f"{name:<16}{budget_moves:<12}{cold:>8.0f}{warm:>12.0f}{dual:>12.0f}{upkeep:>12.0f}{off:>15.1e}{last_off:>10.1e}")


if __name__ == "__main__":
    main()
